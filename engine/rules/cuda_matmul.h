// What the rule matmul found, and the writer of its text.
#pragma once
#include "rules/cuda.h"

enum { MM_TN, MM_TM, MM_BK, MM_BN, MM_BM, MM_KNOBS };

struct mm_factor {
    const struct node *value, *access; // as it is multiplied; the access in it
    const char *base, *type;
    int axis; // of the plane
    struct poly stride, kstride, rest;
    bool wide; // the source computes the subscript in 64 bits
};
struct mm {
    struct cu_plane p;
    const struct loop *k;
    const char *acc, *type;
    const struct node *init, *decl;
    struct mm_factor f[2]; // rows and columns of the tile
    char *names[MM_KNOBS];
};
void mm_write(const struct rule_source *s, const struct mm *m, struct str *out);
