#include "tui/graph.h"

#include <string.h>

struct lanes {
    VEC(const char *) want; // the commit that each lane leads to; NULL: free
};

static int find(const struct lanes *l, const char *hex)
{
    for (size_t i = 0; i < l->want.n; i++)
        if (l->want.v[i] && str_eq(l->want.v[i], hex))
            return (int)i;
    return -1;
}

static int take_free(struct lanes *l, const char *hex)
{
    for (size_t i = 0; i < l->want.n; i++)
        if (!l->want.v[i]) {
            l->want.v[i] = hex;
            return (int)i;
        }
    vec_push(&l->want, hex);
    return (int)l->want.n - 1;
}

static void set(struct graph_row *row, int lane, enum lane_kind kind)
{
    if (lane < GRAPH_LANES)
        row->kind[lane] = (uint8_t)kind;
    else
        row->more = true;
}

static struct graph_row make_row(struct lanes *l, const struct commit *c, int32_t index)
{
    struct graph_row row = {.commit = index};
    int own = find(l, c->hex);
    if (own < 0)
        own = take_free(l, c->hex);
    for (size_t i = 0; i < l->want.n; i++)
        if (l->want.v[i])
            set(&row, (int)i,
                (int)i == own                  ? LANE_COMMIT
                : str_eq(l->want.v[i], c->hex) ? LANE_JOINS
                                               : LANE_PASS);
    if (c->nparents > 1)
        set(&row, own, LANE_MERGE);
    // All lanes that led here end; the first parent goes on in this one unless a lane has it already.
    for (size_t i = 0; i < l->want.n; i++)
        if (l->want.v[i] && str_eq(l->want.v[i], c->hex))
            l->want.v[i] = NULL;
    if (c->nparents)
        l->want.v[own] = c->parents[0];
    for (int p = 1; p < c->nparents; p++)
        if (find(l, c->parents[p]) < 0)
            set(&row, take_free(l, c->parents[p]), LANE_OPENS);
    row.own = (uint8_t)(own < GRAPH_LANES ? own : GRAPH_LANES - 1);
    for (int i = 0; i < GRAPH_LANES; i++)
        if (row.kind[i])
            row.lanes = (uint8_t)(i + 1);
    while (l->want.n && !l->want.v[l->want.n - 1])
        l->want.n--;
    return row;
}

void graph_make(struct graph *g, const struct state *st)
{
    struct lanes l = {0};
    g->v.n = 0;
    for (size_t i = st->commits.n; i-- > 0;)
        vec_push(&g->v, make_row(&l, &st->commits.v[i], (int32_t)i));
    vec_free(&l.want);
}

void graph_free(struct graph *g)
{
    vec_free(&g->v);
}
