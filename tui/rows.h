// Which candidates the population view lists, in what order and how deep: rows made from the fold, pure and
// tested. A row is an id; nothing here knows the screen.
#pragma once
#include "session/filter.h"
#include "session/state.h"

enum rows_layout { ROWS_TREE, ROWS_RANK, ROWS_ISLAND, ROWS_GENERATION, ROWS_LAYOUTS };
enum rows_sort { SORT_ID, SORT_SPEEDUP, SORT_GAIN, SORT_OPERATOR, SORT_STATUS, SORT_TIME, SORTS };
extern const char *const rows_layout_names[ROWS_LAYOUTS];
extern const char *const rows_sort_names[SORTS];

struct row {
    int64_t id;
    uint16_t depth;   // of the branch, not of the generation: an only child stands below its parent
    bool last;        // no further sibling
    bool branch;      // its parent has several children shown
    bool folded;      // children are hidden
    int32_t children; // shown ones, or hidden where folded
};
struct rows {
    enum rows_layout layout;
    enum rows_sort sort;
    bool reverse;
    struct filter *filter; // owned; NULL: all
    VEC(struct row) v;
    VEC(int32_t) row_of; // by id: its row, or -1
    VEC(uint8_t) folded; // by id
    int64_t matched;     // candidates that pass the filter
};

// Makes the rows anew. In a tree the ancestors of what passes the filter are shown too.
void rows_make(struct rows *r, const struct state *st);
void rows_free(struct rows *r);
// The row of a candidate, or of its nearest ancestor that is shown; -1 where there is none.
int64_t rows_find(const struct rows *r, const struct state *st, int64_t id);
void rows_fold(struct rows *r, int64_t id, bool folded);
bool rows_is_folded(const struct rows *r, int64_t id);
int rows_sort_parse(const char *name); // -1 where unknown
int rows_layout_parse(const char *name);
