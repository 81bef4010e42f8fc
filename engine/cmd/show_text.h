// How commands print numbers, candidates and verdicts: one spelling everywhere.
#pragma once
#include "base/json.h"
#include "session/session.h"

#include <stdio.h>

void show_time(char *out, size_t n, double ns);         // "5.30 ms"
void show_speedup(char *out, size_t n, struct ratio r); // "22.4x [22.1, 22.6]"
void show_age(char *out, size_t n, double seconds);     // "4m", "2h"
void show_json(const json *o);                          // one line on standard output
void show_clean(const char *s, FILE *f);                // one line of foreign text, made harmless
void show_block(const char *s, size_t n, const char *indent, FILE *f); // several lines
// What a candidate is, in one word: "champion", "accepted", "archived", "killed", "quarantined" or its
// status.
const char *show_word(const struct state *s, const struct candidate *c);
// A row for listings, and its heading.
void show_row_head(FILE *f);
void show_row(const struct state *s, const struct candidate *c, FILE *f);
// A candidate with the journal's keys, for programs. The caller frees it.
json *show_candidate_json(const struct state *s, const struct candidate *c);
// A verdict event of a worker, in words.
void show_verdict(const json *ev, FILE *f);
// Resolves "42", "#42", "champion", "baseline" or a commit's abbreviated hash; NULL and an error.
const struct candidate *show_find(const struct state *s, const char *word, struct err *e);
// The source text of a candidate, malloc'ed; NULL and an error where it is lost.
char *show_source(struct session *s, const struct candidate *c, struct err *e);
