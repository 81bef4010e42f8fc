// The evolve region: the bytes a candidate may change. Lines outside are compared byte by byte.
#pragma once
#include "base/err.h"
#include "base/task.h"
#include "source/token.h"

struct span {
    size_t at, end;           // bytes [at, end)
    uint32_t line, last_line; // 1-based lines of its first and last byte
};
struct region {
    VEC(struct span) spans; // in order, not touching
};

// Finds the regions of a text. body: from after the function's { to before its }; file: all; markers: what
// stands between lines that hold EVOLVE-BLOCK-START and EVOLVE-BLOCK-END in a comment (//, /* */, #, --, ;).
// Errors: no such function, no marker, markers that nest, are left open or stand outside a comment.
int region_find(struct region *r, const char *text, size_t len, const char *path, const char *func,
                enum task_evolve how, struct err *e);
void region_free(struct region *r);
// Are bytes [at, end) inside one span?
bool region_allows(const struct region *r, size_t at, size_t end);

struct task;
// Holds a candidate against its parent: nothing outside the regions changed (byte exact), the function is
// still there once and its signature is the same (also where evolve is file). Every difference is an error
// with line:column of the candidate.
int region_check(const char *parent, size_t plen, const char *cand, size_t clen, const char *path,
                 const char *func, enum task_evolve how, err_list *errors);
// "lines 12-40 (body of sgemm)" for messages and prompts.
void region_describe(const struct region *r, struct str *out);
