// The lanes of a commit graph, newest commit first, as `git log --graph` would draw them in one row each.
// Pure.
#pragma once
#include "session/state.h"

enum { GRAPH_LANES = 16 };
enum lane_kind { LANE_EMPTY, LANE_PASS, LANE_COMMIT, LANE_MERGE, LANE_OPENS, LANE_JOINS };
struct graph_row {
    int32_t commit; // index into state.commits
    uint8_t lanes, own;
    uint8_t kind[GRAPH_LANES]; // enum lane_kind
    bool more;                 // lanes beyond the last one shown
};
struct graph {
    VEC(struct graph_row) v;
};
void graph_make(struct graph *g, const struct state *st);
void graph_free(struct graph *g);
