// What the search tries next without a model: a parent, and a rule, flag, knob, crossing or repair on it.
// Pure but for reading: a function of the state and of draws that depend on (seed, iteration).
#pragma once
#include "base/draw.h"
#include "base/err.h"
#include "source/edits.h"

struct engine;
struct candidate;

struct proposal {
    int64_t parents[2]; // the second is -1 but after a crossing
    char op[24];
    char subject[256];
    struct str text;
    struct edits
        edits; // from the nearest ancestor (along first parents) that has no list, as the journal has it
};
void proposal_free(struct proposal *p);

// The next proposal of the task's policy; false where nothing new was found.
bool propose_next(struct engine *en, struct draw d, struct proposal *p);
// The child of two candidates; -1 and why there is none.
int propose_cross(struct engine *en, const struct candidate *a, const struct candidate *b, struct proposal *p,
                  struct err *e);
// The candidate with exactly this source (not_this aside), or NULL.
const struct candidate *propose_same_source(const struct engine *en, const char *hex, int64_t not_this);
