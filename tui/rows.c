#include "tui/rows.h"

#include "cmd/fields.h"
#include "tui/look.h"

#include <stdlib.h>
#include <string.h>

const char *const rows_layout_names[ROWS_LAYOUTS] = {"tree", "rank", "island", "generation"};
const char *const rows_sort_names[SORTS] = {"id", "speedup", "gain", "operator", "status", "time"};

static int parse(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (str_eq(names[i], name))
            return i;
    return -1;
}

int rows_sort_parse(const char *name)
{
    return parse(rows_sort_names, SORTS, name);
}

int rows_layout_parse(const char *name)
{
    return parse(rows_layout_names, ROWS_LAYOUTS, name);
}

bool rows_is_folded(const struct rows *r, int64_t id)
{
    return (size_t)id < r->folded.n && r->folded.v[id];
}

void rows_fold(struct rows *r, int64_t id, bool folded)
{
    while (r->folded.n <= (size_t)id)
        vec_push(&r->folded, 0);
    r->folded.v[id] = folded;
}

// ---- order

struct order {
    const struct state *st;
    enum rows_layout layout;
    enum rows_sort sort;
    bool reverse;
};

// A speedup that does not count ranks with those that have none.
static double believed(const struct candidate *c)
{
    return look_counts(c) ? c->speedup.value : 0;
}

static double time_of(const struct candidate *c)
{
    return c->ntimes ? c->times[0].time_ns : 0;
}

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

// What has no number comes after what has one, whichever way round.
static int compare_missing(double a, double b, int *order)
{
    if (a > 0 && b > 0)
        return 0;
    *order = a > 0 ? -1 : b > 0 ? 1 : 0;
    return 1;
}

static int by_number(double a, double b, bool big_first, bool reverse)
{
    int order = 0;
    if (compare_missing(a, b, &order))
        return order;
    order = compare_numbers(a, b);
    return (big_first != reverse) ? -order : order;
}

static int compare_key(const struct order *o, const struct candidate *a, const struct candidate *b)
{
    switch (o->sort) {
    case SORT_SPEEDUP:
        return by_number(believed(a), believed(b), true, o->reverse);
    case SORT_GAIN:
        return by_number(a->gain.value, b->gain.value, true, o->reverse);
    case SORT_TIME:
        return by_number(time_of(a), time_of(b), false, o->reverse);
    case SORT_OPERATOR: {
        int c = strcmp(a->op ? a->op : "", b->op ? b->op : "");
        return o->reverse ? -c : c;
    }
    case SORT_STATUS: {
        int c = (int)a->status - (int)b->status;
        return o->reverse ? -c : c;
    }
    default:
        return 0;
    }
}

static int compare(const void *x, const void *y, void *user)
{
    const struct order *o = user;
    const struct candidate *a = &o->st->c.v[*(const int64_t *)x], *b = &o->st->c.v[*(const int64_t *)y];
    if (o->layout == ROWS_ISLAND && a->island != b->island)
        return a->island < b->island ? -1 : 1;
    if (o->layout == ROWS_GENERATION && a->gen != b->gen)
        return a->gen < b->gen ? -1 : 1;
    int c = compare_key(o, a, b);
    if (c)
        return c;
    c = (a->id > b->id) - (a->id < b->id);
    return o->sort == SORT_ID && o->reverse ? -c : c;
}

// ---- making

struct build {
    struct rows *r;
    const struct state *st;
    struct order order;
    VEC(uint8_t) shown; // by id: passes the filter, or leads to one that does
};

static bool passes(const struct build *b, int64_t id)
{
    struct cand_view v = {b->st, &b->st->c.v[id]};
    return !b->r->filter || filter_match(b->r->filter, cand_field, &v);
}

static void choose(struct build *b)
{
    size_t n = b->st->c.n;
    vec_reserve(&b->shown, n);
    for (size_t i = 0; i < n; i++)
        vec_push(&b->shown, passes(b, (int64_t)i));
    for (size_t i = 0; i < n; i++)
        b->r->matched += b->shown.v[i];
    if (b->order.layout != ROWS_TREE)
        return;
    for (size_t i = n; i-- > 1;) { // ids grow from parent to child
        const struct candidate *c = &b->st->c.v[i];
        if (b->shown.v[i] && c->nparents)
            b->shown.v[c->parents[0]] = 1;
    }
}

static void add(struct build *b, struct row row)
{
    b->r->row_of.v[row.id] = (int32_t)b->r->v.n;
    vec_push(&b->r->v, row);
}

static void make_flat(struct build *b)
{
    VEC(int64_t) ids = {0};
    for (size_t i = 0; i < b->st->c.n; i++)
        if (b->shown.v[i])
            vec_push(&ids, (int64_t)i);
    if (ids.n)
        qsort_r(ids.v, ids.n, sizeof *ids.v, compare, &b->order);
    for (size_t i = 0; i < ids.n; i++)
        add(b, (struct row){.id = ids.v[i], .last = true});
    vec_free(&ids);
}

struct todo {
    int64_t id;
    uint16_t depth;
    bool last, branch;
};
typedef VEC(struct todo) todo_list;

static int32_t count_all_below(const struct build *b, int64_t id)
{
    int32_t n = 0;
    for (int64_t k = b->st->c.v[id].first_child; k >= 0; k = b->st->c.v[k].next_sibling)
        n += b->shown.v[k];
    return n;
}

// Pushes the children so that the first comes off the stack first.
static void push_children(struct build *b, todo_list *todo, int64_t id, uint16_t depth)
{
    VEC(int64_t) kids = {0};
    for (int64_t k = b->st->c.v[id].first_child; k >= 0; k = b->st->c.v[k].next_sibling)
        if (b->shown.v[k])
            vec_push(&kids, k);
    if (kids.n > 1)
        qsort_r(kids.v, kids.n, sizeof *kids.v, compare, &b->order);
    bool branch = kids.n > 1;
    for (size_t i = kids.n; i-- > 0;)
        vec_push(todo, ((struct todo){kids.v[i], (uint16_t)(depth + (branch && depth < UINT16_MAX)),
                                      i + 1 == kids.n, branch}));
    vec_free(&kids);
}

static void make_tree(struct build *b)
{
    todo_list todo = {0};
    if (b->st->c.n && b->shown.v[0])
        vec_push(&todo, ((struct todo){.last = true}));
    while (todo.n) {
        struct todo t = todo.v[--todo.n];
        bool folded = rows_is_folded(b->r, t.id);
        add(b, (struct row){t.id, t.depth, t.last, t.branch, folded, count_all_below(b, t.id)});
        if (!folded)
            push_children(b, &todo, t.id, t.depth);
    }
    vec_free(&todo);
}

void rows_make(struct rows *r, const struct state *st)
{
    struct build b = {.r = r, .st = st, .order = {st, r->layout, r->sort, r->reverse}};
    r->v.n = r->row_of.n = 0;
    r->matched = 0;
    vec_reserve(&r->row_of, st->c.n);
    for (size_t i = 0; i < st->c.n; i++)
        vec_push(&r->row_of, -1);
    choose(&b);
    if (r->layout == ROWS_TREE)
        make_tree(&b);
    else
        make_flat(&b);
    vec_free(&b.shown);
}

void rows_free(struct rows *r)
{
    filter_free(r->filter);
    vec_free(&r->v);
    vec_free(&r->row_of);
    vec_free(&r->folded);
    *r = (struct rows){0};
}

int64_t rows_find(const struct rows *r, const struct state *st, int64_t id)
{
    while (id >= 0 && (size_t)id < r->row_of.n) {
        if (r->row_of.v[id] >= 0)
            return r->row_of.v[id];
        if (r->layout != ROWS_TREE || !st->c.v[id].nparents)
            break;
        id = st->c.v[id].parents[0];
    }
    return -1;
}
