// Three-way merge of texts.
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

#include <stdint.h>

struct merge_conflict {
    uint32_t line, last_line; // of the merged text, marker lines included; 1-based
};
struct merge_result {
    struct str text; // with zdiff3 markers where there are conflicts
    VEC(struct merge_conflict) conflicts;
};
struct merge_side {
    const char *text;
    size_t len;
    const char *label; // "candidate 17"
};
// 0 and a result (clean where conflicts.n is 0); -1 for binary texts (NUL bytes) or a failure of the library.
int merge_texts(const struct merge_side *base, const struct merge_side *ours, const struct merge_side *theirs,
                struct merge_result *out, struct err *e);
void merge_result_free(struct merge_result *r);
