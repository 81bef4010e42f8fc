// C integer expressions over named values, with min, max, ceildiv and align: shapes, launches, requirements,
// metrics. 64-bit signed; overflow, division by zero and unknown names are errors in words. && || ?: and
// comparisons as in C.
#pragma once
#include "base/err.h"

#include <stdint.h>

struct expr; // immutable once parsed

// Parses all of text; the error's `where` is the 1-based column inside text as ":0:COLUMN" unless the caller
// sets it. *column (may be NULL) receives that column as well.
int expr_parse(const char *text, struct expr **out, int *column, struct err *e);
void expr_free(struct expr *x);
// Looks a name up; returns false where it is unknown.
typedef bool expr_lookup(void *user, const char *name, int64_t *value);
int expr_eval(const struct expr *x, expr_lookup *lookup, void *user, int64_t *value, struct err *e);
// Calls visit for each name that occurs in x.
void expr_names(const struct expr *x, void (*visit)(void *user, const char *name), void *user);
const char *expr_text(const struct expr *x); // as it was written
