// What the files of steering share: one call on its way from the request to the journal.
#pragma once
#include "evolve/engine_int.h"
#include "evolve/steer.h"

struct call {
    const struct steer_verb *verb;
    const struct candidate *cand; // NULL: none
    char **words;                 // after the candidate
    size_t n;
    json *args; // of the steer line
    const json *request;
    const char *journal; // what the journal calls it, where that is not the verb's name
    struct str reply;
    char tag[24]; // of the request to a model that it started
};

// "42", "#42", "champion" or "baseline"; NULL where it names no candidate.
const struct candidate *steer_candidate(struct engine *en, const char *word);

// steer_make.c: the verbs that make or judge candidates. check: before the journal line, -1 with words where
// it is refused; do: after the line.
int steer_check_breed(struct engine *en, struct call *c, struct err *e);
int steer_check_add(struct engine *en, struct call *c, struct err *e);
int steer_check_cross(struct engine *en, struct call *c, struct err *e);
int steer_check_clone(struct engine *en, struct call *c, struct err *e);
int steer_check_remeasure(struct engine *en, struct call *c, struct err *e);
void steer_do_breed(struct engine *en, struct call *c);
void steer_do_remeasure(struct engine *en, struct call *c);
