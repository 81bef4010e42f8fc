// A journal event as a line for people.
#pragma once
#include "session/state.h"

#include <stdio.h>

// s is the state after the event was folded. Prints nothing for events that only keep books.
void event_print(const struct state *s, const json *event, FILE *f);
