// Crossing two candidates without a model. B's edits that A lacks are replayed on A (each may refuse), else
// A's on B, else the two texts are merged at their common ancestor. Nothing is made up: the child is A or B
// with edits that the other one carries, or a merge whose every line stands in one of them.
#pragma once
#include "evolve/moves.h"

enum cross_how { CROSS_ON_FIRST, CROSS_ON_SECOND, CROSS_MERGE };

struct cross_parent {
    int64_t id;
    const char *text;
    const struct edits *edits; // NULL: it has no list; else the list that made it
};

struct crossing {
    enum cross_how how; // CROSS_ON_SECOND: the child is an edit of the second parent
    struct str text;
    struct edits edits; // of the child, after those of the parent it edits; none after a merge
    size_t took, refused; // edits that were replayed, and that could not be
    struct str words;     // what was crossed, one line
};

// 0 and a child that differs from both parents; -1 and why there is none. ancestor is their common ancestor.
// out is always safe to free.
int cross_make(const struct moves_env *env, const struct cross_parent *a, const struct cross_parent *b,
               const struct cross_parent *ancestor, struct crossing *out, struct err *e);
void crossing_free(struct crossing *c);
