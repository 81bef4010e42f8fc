// One trial in the GPU process: buffers on fresh memory at fresh places, a module loaded anew for each run,
// the candidate's launches, and the judgement of what they left.
#include "cuda/card_run.h"

#include "base/hash.h"

#include <string.h>

enum { ZONE_ALIGN = 256, PLACES = 16, TAINT_REPEATS = 2 };

// ---- reading the question

static bool read_side(struct card_reader *q, struct side *s)
{
    s->head = card_take(q, sizeof *s->head);
    if (!s->head || s->head->launches > PLAN_MOST || s->head->scratch > PLAN_MOST)
        return false;
    s->scratch = card_take(q, s->head->scratch * sizeof *s->scratch);
    for (uint32_t i = 0; i < s->head->launches; i++) {
        s->launch[i] = card_take(q, sizeof **s->launch);
        s->arg[i] = s->launch[i] ? card_take(q, s->launch[i]->args * sizeof **s->arg) : NULL;
        if (!s->arg[i] || s->launch[i]->args > CARD_ARGS)
            return false;
    }
    s->image = card_take(q, (s->head->image_bytes + 7) / 8 * 8);
    return s->scratch && s->image;
}

static bool read_trial(struct run *x, struct card_reader *q)
{
    x->t = card_take(q, sizeof *x->t);
    if (!x->t || x->t->sides < 1 || x->t->sides > 2 || x->t->buffers > CARD_BUFFERS || x->t->sets < 1 ||
        x->t->contents < 1 || x->t->samples > CARD_SAMPLES)
        return false;
    x->buffer = card_take(q, x->t->buffers * sizeof *x->buffer);
    x->content = card_take(q, (size_t)x->t->contents * x->t->buffers * sizeof *x->content);
    for (uint32_t i = 0; i < x->t->sides; i++)
        if (!read_side(q, &x->side[i]))
            return false;
    return x->buffer && x->content;
}

// ---- places

static uint64_t bytes_of(const struct trial_buffer *b)
{
    return b->elements * dtype_info((enum dtype)b->type)->size;
}

static void place(struct run *x, const struct trial_buffer *b, uint64_t *at)
{
    struct card *c = x->c;
    uint64_t draw = hash_mix(x->t->salt ^ hash_mix(c->items.n + 1));
    uint64_t align = b->align > 1 ? b->align : 1, places = ZONE_ALIGN / align;
    *at = (*at + x->t->red + ZONE_ALIGN - 1) / ZONE_ALIGN * ZONE_ALIGN;
    if ((x->t->flags & TRIAL_MISALIGN) && places > 1)
        *at += draw % places * align;
    else
        *at += draw % PLACES * ZONE_ALIGN;
    vec_push(&c->items, (struct item){.at = *at, // relative to the slab for now
                                      .bytes = bytes_of(b),
                                      .elements = b->elements,
                                      .salt = hash_mix(draw),
                                      .type = b->type,
                                      .dir = b->dir});
    *at += bytes_of(b) + x->t->red;
}

// One allocation for each buffer; they end with the process.
static int make_separate(struct run *x)
{
    struct card *c = x->c;
    for (size_t i = 0; i < c->items.n; i++) {
        gpu_ptr at = 0;
        int rc = c->gpu.mem_alloc(&at, c->items.v[i].bytes ? c->items.v[i].bytes : 1);
        if (rc)
            return rc;
        c->items.v[i].at = at;
    }
    return 0;
}

static int make_slab(struct run *x)
{
    struct card *c = x->c;
    uint64_t at = 0;
    c->items.n = 0;
    c->buffers = x->t->buffers;
    for (uint32_t s = 0; s < x->t->sets; s++)
        for (uint32_t b = 0; b < x->t->buffers; b++)
            place(x, &x->buffer[b], &at);
    x->sets_items = c->items.n;
    for (uint32_t s = 0; s < x->t->sides; s++) {
        x->side[s].first_item = c->items.n;
        for (uint32_t b = 0; b < x->side[s].head->scratch; b++)
            place(x, &x->side[s].scratch[b], &at);
    }
    if (x->t->flags & TRIAL_SEPARATE)
        return make_separate(x);
    at = (at + ZONE_ALIGN) / ZONE_ALIGN * ZONE_ALIGN;
    if (c->slab)
        c->gpu.mem_free(c->slab);
    c->slab = 0;
    int rc = c->gpu.mem_alloc(&c->slab, at);
    if (rc)
        return rc;
    c->slab_bytes = at;
    for (size_t i = 0; i < c->items.n; i++)
        c->items.v[i].at += c->slab;
    uint64_t words = at / 8;
    uint64_t salt = x->t->salt;
    void *params[] = {&c->slab, &words, &salt};
    return card_launch(c, c->zones, words, 1, params);
}

// Room on the device for the tables of items, groups, members and results.
static int make_tables(struct run *x)
{
    struct card *c = x->c;
    uint64_t n = c->items.n, items = n * sizeof(struct item), groups = n * sizeof(struct item_group),
             members = (n * 4 + 7) / 8 * 8, results = n * sizeof(struct item_result);
    uint64_t all = items + groups + members + results;
    if (all > c->tables_bytes) {
        if (c->tables)
            c->gpu.mem_free(c->tables);
        c->tables = 0;
        int rc = c->gpu.mem_alloc(&c->tables, all * 2);
        if (rc)
            return rc;
        c->tables_bytes = all * 2;
    }
    x->d_items = c->tables;
    x->d_groups = x->d_items + items;
    x->d_members = x->d_groups + groups;
    x->d_results = x->d_members + members;
    return 0;
}

static void say_fault(struct run *x, uint32_t of, uint32_t sample, long item)
{
    struct trial_answer *a = x->a;
    a->side = of;
    a->sample = sample;
    a->set = (uint32_t)((size_t)item / x->t->buffers);
    a->buffer = (size_t)item < x->sets_items ? (uint32_t)((size_t)item % x->t->buffers) : UINT32_MAX;
    a->content = card_content(x, a->set, sample);
    a->results = 1;
    if (x->results.v[item].wrong)
        card_explain(x, (uint32_t)item);
}

// All samples of a brief trial; stops at the first fault.
static int race(struct run *x, struct str *out)
{
    struct trial_answer *a = x->a;
    for (uint32_t n = 0; n <= x->t->samples; n++) // the first of each side is not counted
        for (uint32_t k = 0; k < x->t->sides; k++) {
            uint32_t of = x->t->sides == 2 ? (n + k + x->t->first_side) % 2 : 0;
            double ns = 0;
            bool tainted = true;
            for (int i = 0; i <= TAINT_REPEATS && tainted; i++) {
                tainted = false;
                int rc = card_run(x, of, n, &ns, &tainted);
                if (rc)
                    return rc;
                long bad = card_find_fault(x);
                if (bad >= 0) {
                    say_fault(x, of, n, bad);
                    str_addn(out, (const char *)&x->results.v[bad], sizeof(struct item_result));
                    return 0;
                }
                a->tainted += tainted;
            }
            if (n > 0)
                a->ns[of][a->n[of]++] = ns;
        }
    return 0;
}

static int check(struct run *x, struct str *out)
{
    struct trial_answer *a = x->a;
    for (uint32_t n = 0; n < x->t->samples; n++) {
        bool tainted = false;
        double ns = 0;
        int rc = card_run(x, 0, n, &ns, &tainted);
        if (rc)
            return rc;
        a->ns[0][a->n[0]++] = ns;
        for (size_t i = 0; i < x->results.n; i++)
            if (x->results.v[i].wrong)
                card_explain(x, (uint32_t)i);
        str_addn(out, (const char *)x->results.v, x->results.n * sizeof(struct item_result));
        a->results += (uint32_t)x->results.n;
    }
    return 0;
}

// Masters and sealed values as they were: nothing that runs here may have touched them.
static int check_stores(struct run *x)
{
    struct card *c = x->c;
    for (size_t i = 1; i < c->stores.n; i++) {
        uint64_t now;
        if (!c->stores.v[i].used)
            continue;
        c->stores.v[i].used = false;
        int rc = card_hash(c, &c->stores.v[i], &now);
        if (rc)
            return card_error(c, x->r, rc, "hashing");
        x->a->hashes += now != c->stores.v[i].hash;
    }
    return 0;
}

int card_trial(struct card *c, struct card_reader *q, struct card_reply *r, struct str *out)
{
    struct trial_answer a = {0};
    struct run x = {.c = c, .r = r, .a = &a};
    r->side = -1;
    if (!read_trial(&x, q))
        return card_refuse(r, "a malformed trial");
    int rc = card_error(c, r, make_slab(&x), "memory for the buffers");
    if (rc == 0)
        rc = card_error(c, r, make_tables(&x), "memory for the tables");
    if (rc == 0)
        rc = card_error(c, r, c->gpu.event_create(&x.from, GPU_EVENT_DEFAULT), "an event");
    if (rc == 0)
        rc = card_error(c, r, c->gpu.event_create(&x.to, GPU_EVENT_DEFAULT), "an event");
    size_t at = out->len;
    str_addn(out, (const char *)&a, sizeof a);
    if (rc == 0)
        rc = x.t->flags & TRIAL_BRIEF ? race(&x, out) : check(&x, out);
    if (rc == 0)
        rc = check_stores(&x);
    memcpy(out->s + at, &a, sizeof a);
    if (!r->lost) {
        if (x.from)
            c->gpu.event_destroy(x.from);
        if (x.to)
            c->gpu.event_destroy(x.to);
    }
    vec_free(&x.groups);
    vec_free(&x.members);
    vec_free(&x.results);
    return rc;
}
