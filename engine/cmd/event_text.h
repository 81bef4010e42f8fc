// A journal event as a line for people.
#pragma once
#include "session/session.h"

#include <stdio.h>

// s is the state after the event was folded (or a later one: then numbers of candidates are today's). Adds
// nothing for events that only keep books.
void event_text(const struct state *s, const json *event, struct str *out);
// Whether lines of this event are told at all; ev need not end in NUL.
bool event_is_told(const char *ev, size_t n);
// The same as a line with its time.
void event_print(const struct state *s, const json *event, double t, FILE *f);
// Reads a session's lines from the reader's place on, folds each into s and hands it to tell; -1 on a bad
// line.
typedef void event_tell(void *user, const struct journal_line *line);
int event_follow(struct journal_reader *r, struct state *s, event_tell *tell, void *user, struct err *e);
