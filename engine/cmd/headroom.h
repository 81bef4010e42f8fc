// How far the best kernel is from what the machine can do: what a run that accepted nothing has to say.
#pragma once
#include "session/state.h"

// Adds a line for each bench shape ("large: 11.2 GB/s, 86 % of the 13.0 GB/s that this machine copies") and one
// that says what that means. Nothing where no preflight was made or the task has no [metric].
void headroom_words(const struct state *st, const char *journal_path, struct str *out);
