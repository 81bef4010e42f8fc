// The steps that can be taken from one kernel without a model: every place of every rule with its choices,
// and every compiler gene. A move is an edit (source/edits.h) with words; applying it gives the child's
// source.
#pragma once
#include "source/edits.h"

struct move {
    char op[24];       // operator as the journal names it: "interchange", "flags", ...
    char words[256];   // "swap loops j and k", for the commit's subject
    struct edits edit; // exactly one
};
typedef VEC(struct move) moves;

struct moves_env {
    const struct task *task;
    const char *path; // of the kernel file, for messages
};

// Lists the moves of a source. Nothing is applied yet, so some may still refuse.
int moves_list(const struct moves_env *env, const char *text, size_t len, moves *out, struct err *e);
void moves_free(moves *m);
// Applies one or more edits to a text; -1 with words where one refuses.
int moves_apply(const struct moves_env *env, const struct edits *edits, const char *text, size_t len,
                struct str *out, struct err *e);
