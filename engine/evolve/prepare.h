// What the engine itself checks of a candidate before a worker sees it: the evolve region, the signature,
// annotations, compiler flags and forbidden constructs (the referee's stage `scan`).
#pragma once
#include "base/json.h"
#include "base/task.h"

enum prepare_result { PREPARE_OK, PREPARE_REJECTED, PREPARE_FLAGGED };

struct prepared {
    enum prepare_result result;
    struct str reason; // why, every finding, in words with line:column
    strings flags;     // the candidate's own compiler flags
};

// baseline is the task's original text of the same file. p is always safe to free.
void prepare(const struct task *t, const char *baseline, const char *text, size_t len, struct prepared *p);
void prepared_free(struct prepared *p);
json *prepared_flags(const struct prepared *p); // as an array of strings
