// One run within a trial: fresh contents, a fresh module, the launches, and the judgement of what they left.
#include "cuda/card_run.h"

#include "base/hash.h"

// ---- one run

// Contents move on by one set from sample to sample, so that no address means the same twice.
uint32_t card_content(const struct run *x, uint32_t set, uint32_t sample)
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
        if (card_content(x, s, sample) == content)
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
        uint32_t m = x->content[(size_t)card_content(x, set, sample) * x->t->buffers + b].master;
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
void card_explain(struct run *x, uint32_t item)
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
long card_find_fault(const struct run *x)
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
int card_run(struct run *x, uint32_t of, uint32_t sample, double *ns, bool *tainted)
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
