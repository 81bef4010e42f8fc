// One trial in the GPU process: buffers on fresh memory at fresh places, a module loaded anew for each run,
// the candidate's launches, and the judgement of what they left.
#include "cuda/card.h"

#include "base/clock.h"
#include "base/hash.h"

#include <string.h>

enum { ZONE_ALIGN = 256, PLACES = 16, TAINT_REPEATS = 2 };

struct side {
    const struct trial_side *head;
    const struct trial_buffer *scratch;
    const struct trial_launch *launch[PLAN_MOST];
    const struct trial_arg *arg[PLAN_MOST];
    const void *image;
    size_t first_item; // of its scratch
    gpu_module module;
    gpu_function function[PLAN_MOST];
};

struct run {
    struct card *c;
    struct card_reply *r;
    const struct trial *t;
    const struct trial_buffer *buffer;
    const struct trial_content *content;
    struct side side[2];
    gpu_event from, to;
    VEC(struct item_group) groups;
    VEC(uint32_t) members;
    VEC(struct item_result) results;
    gpu_ptr d_items, d_groups, d_members, d_results;
    size_t sets_items; // without scratch
    struct trial_answer *a;
};

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

// ---- one run

// Contents move on by one set from sample to sample, so that no address means the same twice.
static uint32_t content_of(const struct run *x, uint32_t set, uint32_t sample)
{
    return (set + sample) % x->t->contents;
}

static void group_outputs(struct run *x, uint32_t sample, uint32_t content, uint32_t b)
{
    struct card *c = x->c;
    const struct trial_content *k = &x->content[(size_t)content * x->t->buffers + b];
    struct item_group g = {.elements = x->buffer[b].elements,
                           .rtol = k->rtol,
                           .atol = k->atol,
                           .rms = k->rms,
                           .eps = k->eps,
                           .type = x->buffer[b].type,
                           .first = (uint32_t)x->members.n};
    if (k->wanted) {
        g.wanted = c->stores.v[k->wanted].at;
        g.nonce = c->stores.v[k->wanted].nonce;
        c->stores.v[k->wanted].used = true;
    }
    for (uint32_t s = 0; s < x->t->sets; s++)
        if (content_of(x, s, sample) == content)
            vec_push(&x->members, s * x->t->buffers + b);
    g.n = (uint32_t)x->members.n - g.first;
    if (g.n && k->wanted)
        vec_push(&x->groups, g);
}

static int put_tables(struct run *x, uint32_t sample)
{
    struct card *c = x->c;
    for (size_t i = 0; i < x->sets_items; i++) {
        uint32_t set = (uint32_t)(i / x->t->buffers), b = (uint32_t)(i % x->t->buffers);
        uint32_t m = x->content[(size_t)content_of(x, set, sample) * x->t->buffers + b].master;
        c->items.v[i].master = m ? c->stores.v[m].at : 0;
        c->items.v[i].salt = hash_mix(c->items.v[i].salt + 1);
        if (m)
            c->stores.v[m].used = true;
    }
    for (size_t i = x->sets_items; i < c->items.n; i++)
        c->items.v[i].salt = hash_mix(c->items.v[i].salt + 1);
    x->groups.n = x->members.n = 0;
    for (uint32_t k = 0; k < x->t->contents; k++)
        for (uint32_t b = 0; b < x->t->buffers; b++)
            if (x->buffer[b].dir != ITEM_IN)
                group_outputs(x, sample, k, b);
    int rc = c->gpu.copy_in(x->d_items, c->items.v, c->items.n * sizeof(struct item));
    if (rc == 0 && x->groups.n)
        rc = c->gpu.copy_in(x->d_groups, x->groups.v, x->groups.n * sizeof(struct item_group));
    if (rc == 0 && x->members.n)
        rc = c->gpu.copy_in(x->d_members, x->members.v, x->members.n * sizeof(uint32_t));
    return rc;
}

// The kernels of a side, and whether each can be launched as the plan says.
static int check_kernel(struct run *x, struct side *s, uint32_t i)
{
    struct card *c = x->c;
    const struct trial_launch *l = s->launch[i];
    int rc = c->gpu.module_function(&s->function[i], s->module, l->name), threads = 0, fixed = 0;
    if (rc)
        return card_error(c, x->r, rc, l->name);
    c->gpu.func_get(&threads, GPU_FUNC_MAX_THREADS, s->function[i]);
    c->gpu.func_get(&fixed, GPU_FUNC_STATIC_SHARED, s->function[i]);
    unsigned asked = l->at.block[0] * l->at.block[1] * l->at.block[2];
    if (threads > 0 && asked > (unsigned)threads)
        return card_refuse(
            x->r,
            "%.100s can run with %d threads a block (__launch_bounds__ or its registers), and is "
            "launched with %u",
            l->name, threads, asked);
    if (l->at.shared + (size_t)fixed > 48 * 1024)
        rc = c->gpu.func_set(s->function[i], GPU_FUNC_DYNAMIC_SHARED, (int)l->at.shared);
    return rc ? card_error(c, x->r, rc, "asking for shared memory") : 0;
}

static int check_params(struct run *x, const struct side *s, uint32_t i)
{
    struct card *c = x->c;
    const struct trial_launch *l = s->launch[i];
    size_t offset, size;
    for (uint32_t k = 0; c->gpu.func_param && k < l->args; k++) {
        if (c->gpu.func_param(s->function[i], k, &offset, &size) != 0)
            return card_refuse(x->r, "%.100s takes %u arguments, and the launch gives %u", l->name, k,
                               l->args);
        size_t given = s->arg[i][k].kind <= PLAN_SCRATCH ? 8 : s->arg[i][k].bytes;
        if (given && given != size)
            return card_refuse(x->r, "argument %u of %.100s has %zu bytes, and the launch gives %zu", k + 1,
                               l->name, size, given);
    }
    if (c->gpu.func_param && c->gpu.func_param(s->function[i], l->args, &offset, &size) == 0)
        return card_refuse(x->r, "%.100s takes more than the %u arguments that the launch gives", l->name,
                           l->args);
    return 0;
}

static int load_side(struct run *x, struct side *s)
{
    struct card *c = x->c;
    int rc = c->gpu.module_load(&s->module, s->image);
    if (rc)
        return card_error(c, x->r, rc, "loading the module");
    for (uint32_t i = 0; i < s->head->launches && rc == 0; i++) {
        rc = check_kernel(x, s, i);
        if (rc == 0)
            rc = check_params(x, s, i);
    }
    return rc;
}

static int launch_set(struct run *x, struct side *s, uint32_t set)
{
    struct card *c = x->c;
    for (uint32_t i = 0; i < s->head->launches; i++) {
        const struct trial_launch *l = s->launch[i];
        const struct launch_at *at = &l->at;
        uint64_t value[CARD_ARGS];
        void *params[CARD_ARGS];
        for (uint32_t k = 0; k < l->args; k++) {
            const struct trial_arg *a = &s->arg[i][k];
            size_t item =
                a->kind == PLAN_BUFFER ? (size_t)set * x->t->buffers + a->index : s->first_item + a->index;
            value[k] = a->kind <= PLAN_SCRATCH ? c->items.v[item].at : a->bits;
            params[k] = &value[k];
        }
        if (at->grid[0] == 0 || at->grid[1] == 0 || at->grid[2] == 0)
            continue; // nothing to do at this shape
        int rc = c->gpu.launch(s->function[i], at->grid[0], at->grid[1], at->grid[2], at->block[0],
                               at->block[1], at->block[2], (unsigned)at->shared, c->stream, params, NULL);
        if (rc)
            return card_error(c, x->r, rc, l->name);
    }
    return 0;
}

static int launch_all(struct run *x, struct side *s)
{
    for (uint32_t i = 0; i < x->t->sets * x->t->repeat; i++) {
        int rc = launch_set(x, s, i % x->t->sets);
        if (rc)
            return rc;
    }
    return 0;
}

static int make_graph(struct run *x, struct side *s, gpu_exec *exec)
{
    struct card *c = x->c;
    gpu_graph graph = NULL;
    int rc = c->gpu.capture_begin(c->stream, GPU_CAPTURE_RELAXED);
    if (rc)
        return card_error(c, x->r, rc, "a graph");
    int failed = launch_all(x, s);
    rc = c->gpu.capture_end(c->stream, &graph);
    if (!failed && rc == 0)
        rc = c->gpu.graph_instantiate(exec, graph, 0);
    if (!failed && rc == 0)
        rc = c->gpu.graph_upload(*exec, c->stream);
    if (graph)
        c->gpu.graph_destroy(graph);
    return failed ? failed : card_error(c, x->r, rc, "a graph");
}

static int load_items(struct run *x)
{
    struct card *c = x->c;
    uint64_t most = 0;
    for (size_t i = 0; i < c->items.n; i++)
        most = c->items.v[i].bytes > most ? c->items.v[i].bytes : most;
    void *params[] = {&x->d_items};
    int rc = 0;
    for (size_t i = 0; i < c->items.n && rc == 0; i += 32768) { // rows of a grid end at 65535
        gpu_ptr at = x->d_items + i * sizeof(struct item);
        params[0] = &at;
        rc = card_launch(c, c->load, most / 16 + 1,
                         (unsigned)(c->items.n - i < 32768 ? c->items.n - i : 32768), params);
    }
    return rc;
}

static int judge(struct run *x, bool brief)
{
    struct card *c = x->c;
    size_t n = c->items.n;
    vec_reserve(&x->results, n);
    x->results.n = n;
    for (size_t i = 0; i < n; i++)
        x->results.v[i] = (struct item_result){
            .first = UINT64_MAX, .before = UINT64_MAX, .after = UINT64_MAX, .changed = UINT64_MAX};
    uint64_t most = 0, salt = x->t->salt;
    for (size_t i = 0; i < n; i++)
        most = c->items.v[i].bytes > most ? c->items.v[i].bytes : most;
    uint32_t flag = brief, red = x->t->red;
    void *in[] = {&x->d_items, &x->d_results, &salt, &red};
    void *out[] = {&x->d_groups, &x->d_members, &x->d_items, &x->d_results, (void *)&x->t->key, &flag};
    int rc = c->gpu.copy_in(x->d_results, x->results.v, n * sizeof(struct item_result));
    if (rc == 0)
        rc = card_launch(c, c->judge_in, most / 16 + 1, (unsigned)n, in);
    if (rc == 0 && x->groups.n)
        rc = card_launch(c, c->judge_out, most / 8 + 1, (unsigned)x->groups.n, out);
    if (rc == 0)
        rc = c->gpu.stream_sync(c->stream);
    return rc ? rc : c->gpu.copy_out(x->results.v, x->d_results, n * sizeof(struct item_result));
}

// Fills in got and want of a wrong item.
static void explain(struct run *x, uint32_t item)
{
    struct card *c = x->c;
    for (uint32_t g = 0; g < x->groups.n; g++)
        for (uint32_t k = 0; k < x->groups.v[g].n; k++) {
            if (x->members.v[x->groups.v[g].first + k] != item)
                continue;
            void *p[] = {&x->d_groups, &g, &x->d_items, &item, &x->d_results, (void *)&x->t->key};
            if (c->gpu.launch(c->explain, 1, 1, 1, 1, 1, 1, 0, c->stream, p, NULL) == 0 &&
                c->gpu.stream_sync(c->stream) == 0)
                c->gpu.copy_out(&x->results.v[item], x->d_results + item * sizeof(struct item_result),
                                sizeof(struct item_result));
            return;
        }
}

// The first item with something wrong, or -1.
static long find_fault(const struct run *x)
{
    for (size_t i = 0; i < x->results.n; i++) {
        const struct item_result *r = &x->results.v[i];
        if (r->wrong || r->before != UINT64_MAX || r->after != UINT64_MAX || r->changed != UINT64_MAX)
            return (long)i;
    }
    return -1;
}

// One side once, on the contents of a sample: fresh module, fresh contents, the launches, and their
// judgement.
static int run_once(struct run *x, uint32_t of, uint32_t sample, double *ns, bool *tainted)
{
    struct card *c = x->c;
    struct side *s = &x->side[of];
    bool graph = x->t->flags & TRIAL_GRAPH;
    gpu_exec exec = NULL;
    float ms = 0;
    struct nvml_state before, after;
    x->r->side = (int32_t)of;
    int rc = load_side(x, s);
    if (rc == 0 && graph)
        rc = make_graph(x, s, &exec);
    if (rc == 0) {
        nvml_quick(c->nvml, &before);
        int r = put_tables(x, sample);
        if (r == 0)
            r = load_items(x);
        if (r == 0)
            r = c->gpu.reset_persisting_l2();
        if (r == 0)
            r = c->gpu.event_record(x->from, c->stream);
        if (r == 0 && graph)
            r = c->gpu.graph_launch(exec, c->stream);
        rc = card_error(c, x->r, r, "preparing a run");
        if (rc == 0 && !graph)
            rc = launch_all(x, s);
        if (rc == 0)
            rc = card_error(c, x->r, c->gpu.event_record(x->to, c->stream), "a run");
        if (rc == 0)
            rc = card_error(c, x->r, card_wait(c, x->to, x->t->limit_s), "it");
        if (rc == 0) {
            nvml_quick(c->nvml, &after);
            c->gpu.event_ms(&ms, x->from, x->to);
            *tainted =
                before.known && after.known && ((before.throttle | after.throttle) & NVML_THROTTLE_SPOILS);
            x->a->throttle |= before.known ? before.throttle | after.throttle : 0;
            if (after.known && (after.sm_mhz < x->a->mhz_low || x->a->mhz_low == 0))
                x->a->mhz_low = after.sm_mhz;
            if (after.known && after.sm_mhz > x->a->mhz_high)
                x->a->mhz_high = after.sm_mhz;
        }
    }
    *ns = (double)ms * 1e6 / (x->t->sets * x->t->repeat);
    if (rc && x->r->lost)
        return rc;
    if (rc == 0)
        rc = card_error(c, x->r, judge(x, x->t->flags & TRIAL_BRIEF), "judging");
    if (exec)
        c->gpu.exec_destroy(exec);
    if (s->module)
        c->gpu.module_unload(s->module);
    s->module = NULL;
    return rc;
}

static void say_fault(struct run *x, uint32_t of, uint32_t sample, long item)
{
    struct trial_answer *a = x->a;
    a->side = of;
    a->sample = sample;
    a->set = (uint32_t)((size_t)item / x->t->buffers);
    a->buffer = (size_t)item < x->sets_items ? (uint32_t)((size_t)item % x->t->buffers) : UINT32_MAX;
    a->content = content_of(x, a->set, sample);
    a->results = 1;
    if (x->results.v[item].wrong)
        explain(x, (uint32_t)item);
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
                int rc = run_once(x, of, n, &ns, &tainted);
                if (rc)
                    return rc;
                long bad = find_fault(x);
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
        int rc = run_once(x, 0, n, &ns, &tainted);
        if (rc)
            return rc;
        a->ns[0][a->n[0]++] = ns;
        for (size_t i = 0; i < x->results.n; i++)
            if (x->results.v[i].wrong)
                explain(x, (uint32_t)i);
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
