// Conditions over named fields: "speedup>1.2 op=cross island=2", all of which must hold. One grammar for `ls
// --filter`, `wait --until` and the workbench's filter.
#pragma once
#include "base/err.h"

struct filter;
struct filter_field {
    const char *name;
    bool is_text;
    const char *help;
};
struct filter_value {
    double number;    // NAN where the thing has none: then no comparison holds
    const char *text; // NULL where it has none
};
typedef struct filter_value filter_get(const void *thing, int field);

// Operators: = != < <= > >= for numbers, = != ~ (contains) for text; a bare name means "is there and not
// zero". Numbers may end in % or a unit of time (s, m, h). fields must outlive the filter.
int filter_parse(const char *text, const struct filter_field *fields, int n, struct filter **out,
                 struct err *e);
void filter_free(struct filter *f);
bool filter_match(const struct filter *f, filter_get *get, const void *thing);
