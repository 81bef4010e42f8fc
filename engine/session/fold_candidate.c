// The fold of candidates, verdicts and anchors.
#include "session/fold.h"

#include <inttypes.h>
#include <math.h>

struct op_stats *fold_stats(stats_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].name == name)
            return &l->v[i];
    vec_push(l, (struct op_stats){.name = name});
    return &l->v[l->n - 1];
}

struct three {
    struct op_stats *s[3];
};

// Names are interned: pointers compare. Growing one list does not move another, so the three stay valid.
static struct three stats_for(struct state *st, const struct candidate *c)
{
    struct three t = {{0}};
    if (c->op)
        t.s[0] = fold_stats(&st->ops, c->op);
    if (c->proposer)
        t.s[1] = fold_stats(&st->proposers, c->proposer);
    if (c->model)
        t.s[2] = fold_stats(&st->models, c->model);
    return t;
}

#define FOR_STATS(x, st, c)                     \
    struct three three_ = stats_for((st), (c)); \
    for (int i_ = 0; i_ < 3; i_++)              \
        for (struct op_stats *x = three_.s[i_]; x; x = NULL)

// Ids of an array that are all below `limit`; -1 where one is not.
static int ids_check(const json *a, int64_t limit)
{
    int n = 0;
    for (const json *x = json_first(a); x; x = json_next(x), n++) {
        double id = json_number(x, -1);
        if (id < 0 || id >= (double)limit)
            return -1;
    }
    return n;
}

static int64_t *ids_copy(struct state *st, const json *a, int n)
{
    if (n == 0)
        return NULL;
    int64_t *ids = memory_alloc(st->memory, (size_t)n * sizeof *ids), *out = ids;
    for (const json *x = json_first(a); x; x = json_next(x))
        *out++ = (int64_t)json_number(x, 0);
    return ids;
}

static void link_child(struct state *st, struct candidate *c)
{
    if (!c->nparents)
        return;
    struct candidate *p = &st->c.v[c->parents[0]];
    if (p->last_child < 0)
        p->first_child = c->id;
    else
        st->c.v[p->last_child].next_sibling = c->id;
    p->last_child = c->id;
}

static struct candidate blank(int64_t id)
{
    struct candidate c = {.id = id, .of = -1, .incumbent = -1, .at_verdict = -1, .at_anchor = -1};
    c.first_child = c.last_child = c.next_sibling = -1;
    for (int i = 0; i < STATE_CELL; i++)
        c.cell[i] = -1;
    return c;
}

int fold_new_candidate(struct fold *f)
{
    struct state *st = f->st;
    const json *ev = f->event;
    struct candidate c = blank(json_int(ev, "id", -1));
    if (c.id != (int64_t)st->c.n)
        return fold_bad(f, "candidate %" PRId64 " where %zu comes next", c.id, st->c.n);
    const json *parents = json_get(ev, "parents"), *inspired = json_get(ev, "inspired");
    c.nparents = ids_check(parents, c.id);
    c.ninspired = ids_check(inspired, c.id);
    if (c.nparents < 0 || c.ninspired < 0)
        return fold_bad(f, "candidate %" PRId64 " names a parent that does not exist", c.id);
    int64_t island = json_int(ev, "island", 0);
    if (island < 0 || island >= st->islands)
        return fold_bad(f, "candidate %" PRId64 " is on island %" PRId64 " of %d", c.id, island, st->islands);
    const char *blob = json_str(ev, "blob");
    if (!blob || !fold_hex(blob, c.blob) || !json_str(ev, "op") || !json_str(ev, "proposer"))
        return fold_bad(f, "candidate %" PRId64 " has no source, operator or proposer", c.id);
    if (f->check)
        return 0;
    struct state_memory *m = st->memory;
    c.parents = ids_copy(st, parents, c.nparents);
    c.inspired = ids_copy(st, inspired, c.ninspired);
    c.op = memory_intern(m, json_str(ev, "op"));
    c.proposer = memory_intern(m, json_str(ev, "proposer"));
    c.model = memory_intern(m, json_str(ev, "model"));
    c.title = memory_intern(m, json_str(ev, "title"));
    c.hint = memory_intern(m, json_str(ev, "hint"));
    c.island = (int)island;
    c.gen = (int)json_int(ev, "gen", 0);
    c.iter = json_int(ev, "iter", 0);
    c.seen = json_int(ev, "seen", 0);
    c.seconds = json_num(ev, "seconds", 0);
    c.usd = json_num(ev, "usd", 0);
    c.born = f->t;
    c.at_candidate = f->offset;
    if (c.id == 0) {
        c.speedup = (struct ratio){1, 1, 1};
        c.flags = CF_ANCHORED;
    }
    vec_push(&st->c, c);
    link_child(st, &st->c.v[c.id]);
    st->by_status[ST_PENDING]++;
    if (c.iter >= st->iterations)
        st->iterations = c.iter + 1;
    FOR_STATS(x, st, &c)
    {
        x->tried++;
        x->seconds += c.seconds;
        x->usd += c.usd;
    }
    return 0;
}

static int shape_index(struct state *st, const char *name)
{
    for (size_t i = 0; i < st->shapes.n; i++)
        if (strcmp(st->shapes.v[i].name, name) == 0)
            return (int)i;
    vec_push(&st->shapes, (struct shape){.name = memory_intern(st->memory, name), .weight = 1});
    return (int)st->shapes.n - 1;
}

static void take_shapes(struct state *st, struct candidate *c, const json *rows)
{
    int n = (int)json_count(rows);
    if (n == 0)
        return;
    if (n > c->ntimes)
        c->times = memory_alloc(st->memory, (size_t)n * sizeof *c->times);
    c->ntimes = n;
    struct shape_time *t = c->times;
    for (const json *row = json_first(rows); row; row = json_next(row), t++) {
        const json *x = json_first(row);
        double v[6] = {0};
        t->shape = shape_index(st, json_string(x));
        for (int i = 0; i < 6 && (x = json_next(x)); i++)
            v[i] = json_number(x, 0);
        t->time_ns = v[0];
        t->inc_ns = v[1];
        t->gain = (float)v[2];
        t->low = (float)v[3];
        t->high = (float)v[4];
        t->n = (int)v[5];
    }
}

static bool shapes_ok(const json *rows)
{
    for (const json *row = json_first(rows); row; row = json_next(row))
        if (!json_is_array(row) || !json_string(json_first(row)))
            return false;
    return true;
}

// A speedup that was not measured: the incumbent's times the gain; independent errors add as squares of logs.
static struct ratio multiply(struct ratio a, struct ratio b)
{
    if (!(a.value > 0 && a.low > 0 && a.high > 0 && b.value > 0 && b.low > 0 && b.high > 0))
        return (struct ratio){0};
    double down = hypot(log(a.value / a.low), log(b.value / b.low));
    double up = hypot(log(a.high / a.value), log(b.high / b.value));
    double v = a.value * b.value;
    return (struct ratio){v, v * exp(-down), v * exp(up)};
}

static struct funnel *funnel_of(struct state *st, const char *stage)
{
    for (size_t i = 0; i < st->funnel.n; i++)
        if (st->funnel.v[i].stage == stage)
            return &st->funnel.v[i];
    vec_push(&st->funnel, (struct funnel){.stage = stage});
    return &st->funnel.v[st->funnel.n - 1];
}

// Moves a candidate from its earlier status (pending, or an earlier verdict's) to a new one in all counters.
static void count_verdict(struct state *st, const struct candidate *c, enum status now, const char *stage,
                          bool faster)
{
    bool first = c->status == ST_PENDING;
    st->by_status[c->status]--;
    st->by_status[now]++;
    if (!first && c->stage)
        funnel_of(st, c->stage)->by_status[c->status]--;
    funnel_of(st, stage)->by_status[now]++;
    FOR_STATS(x, st, c)
    {
        x->judged += first;
        x->ok += (now == ST_OK) - (c->status == ST_OK);
        x->faster += faster - ((c->flags & CF_FASTER) != 0);
    }
}

static void set_flag(struct candidate *c, unsigned flag, bool on)
{
    c->flags = on ? c->flags | flag : c->flags & ~flag;
}

static void take_verdict(struct fold *f, struct candidate *c, enum status status)
{
    struct state *st = f->st;
    const json *ev = f->event;
    const char *stage = memory_intern(st->memory, json_str(ev, "stage"));
    bool faster = json_bool(ev, "faster", false);
    count_verdict(st, c, status, stage, faster);
    double seconds = json_num(ev, "seconds", 0);
    st->evals += json_has(ev, "seconds");
    FOR_STATS(x, st, c)
    x->seconds += seconds;
    c->seconds += seconds;
    c->status = status;
    c->stage = stage;
    c->reason = memory_copy(st->memory, json_str(ev, "reason"));
    c->of = json_int(ev, "of", -1);
    c->incumbent = json_int(ev, "inc", -1);
    c->gain = fold_ratio(ev, "gain");
    c->regress = memory_intern(st->memory, json_str(ev, "regress"));
    c->judged = f->t;
    c->at_verdict = f->offset;
    if (json_has(ev, "binary"))
        c->binary = memory_copy(st->memory, json_str(ev, "binary"));
    set_flag(c, CF_FASTER, faster);
    set_flag(c, CF_QUARANTINED, status == ST_FLAGGED && !(c->flags & (CF_APPROVED | CF_REJECTED)));
    take_shapes(st, c, json_get(ev, "shapes"));
    if (json_has(ev, "cell"))
        fold_cell(f, c->cell);
    if (!(c->flags & CF_ANCHORED) && c->incumbent >= 0)
        c->speedup = multiply(st->c.v[c->incumbent].speedup, c->gain);
}

int fold_verdict(struct fold *f)
{
    struct state *st = f->st;
    const json *ev = f->event;
    struct candidate *c = fold_candidate(f, ev, "id");
    if (!c)
        return -1;
    int status = json_str(ev, "status") ? status_parse(json_str(ev, "status")) : -1;
    if (status <= ST_PENDING)
        return fold_bad(f, "verdict of %" PRId64 " has no known status", c->id);
    if (!json_str(ev, "stage"))
        return fold_bad(f, "verdict of %" PRId64 " has no stage", c->id);
    if (json_int(ev, "of", -1) >= (int64_t)st->c.n || json_int(ev, "inc", -1) >= (int64_t)st->c.n)
        return fold_bad(f, "verdict of %" PRId64 " names a candidate that does not exist", c->id);
    const char *blob = json_str(ev, "blob");
    unsigned char timed[20];
    // Invariant: what was timed is what is kept.
    if (blob && (!fold_hex(blob, timed) || memcmp(timed, c->blob, 20) != 0))
        return fold_bad(f, "verdict of %" PRId64 " is about another source than the candidate's", c->id);
    int bins[STATE_CELL];
    if (!shapes_ok(json_get(ev, "shapes")) || (json_has(ev, "cell") && fold_cell(f, bins) < 0))
        return fold_bad(f, "verdict of %" PRId64 " has malformed shapes or cell", c->id);
    if (!f->check)
        take_verdict(f, c, (enum status)status);
    return 0;
}

int fold_anchor(struct fold *f)
{
    struct candidate *c = fold_candidate(f, f->event, "id");
    if (!c)
        return -1;
    struct ratio r = fold_ratio(f->event, "speedup");
    if (!(r.value > 0))
        return fold_bad(f, "anchor of %" PRId64 " has no speedup", c->id);
    if (f->check)
        return 0;
    c->speedup = r;
    c->flags |= CF_ANCHORED;
    c->at_anchor = f->offset;
    return 0;
}
