// The fields of candidates that ls --filter and the workbench filter and sort by.
#pragma once
#include "session/filter.h"
#include "session/state.h"

extern const struct filter_field cand_fields[];
extern const int cand_fields_n;
struct cand_view { // what the getter is given
    const struct state *state;
    const struct candidate *cand;
};
struct filter_value cand_field(const void *view, int field);
