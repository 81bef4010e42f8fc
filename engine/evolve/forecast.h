// What asking models will cost, before a run: from what this session's requests cost so far, or from the
// baseline and the models' limits where it has not asked yet.
#pragma once
#include "models/proposer.h"
#include "session/session.h"

// Appends a line such as "about 400 requests, 2.1 million tokens, $3.10 to $4.80; the budget of $5.00 lasts
// for ..."; nothing where no proposer is configured.
void forecast(const struct proposers *p, const struct task *t, const struct session *s, struct str *out);
