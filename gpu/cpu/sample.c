// One replicate of a race on this machine's cores: a fresh pair of sandboxed processes on fresh places, fresh
// inputs before each run, incumbent and candidate in turn on the same pages.
#include "cpu/judge.h"

#include "base/clock.h"
#include "base/stats.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

void judge_spec(const struct judge *j, const struct binary *b, struct side_spec *out)
{
    bool threads = j->task.allow_threads && j->task.threads > 1;
    *out = (struct side_spec){.library = b->path,
                              .function = j->task.kernel_func,
                              .cpu = threads ? -1 : j->child_cpu,
                              .threads = threads ? j->task.threads : 1,
                              .llc_bytes = j->task.cache == CACHE_COLD ? 2 * j->llc_bytes : 0};
}

double judge_limit(const struct shape_data *s)
{
    return s->baseline_ns > 0 ? 5 * s->baseline_ns * 1e-9 + 1 : 60;
}

enum { SAMPLES_MOST = 60, REPEATS = 3, EMPTY_CALLS = 21 };
static const double SIDE_SECONDS = 0.03;  // aimed at per side, shape and replicate
static const int64_t SHORT_NS = 20000000; // shorter kernels get a warm run before each timed one

struct samples {
    double v[2][SAMPLES_MOST];
    int n[2];
};

struct runner {
    struct judge *j;
    const struct race_plan *plan;
    struct race_cells *out;
    struct rig rig;
    int own_schedstat;
    double empty_ns[2];
    uint64_t turn;
};

static uint64_t waited_self(const struct runner *x)
{
    char text[128];
    ssize_t n = x->own_schedstat >= 0 ? pread(x->own_schedstat, text, sizeof text - 1, 0) : -1;
    if (n <= 0)
        return 0;
    text[n] = 0;
    char *end;
    strtoull(text, &end, 10);
    return strtoull(end, NULL, 10);
}

static struct dataset *draw_set(struct runner *x, struct shape_data *s)
{
    // A small pool is used whole by both halves.
    size_t n = s->sets.n, half = n >= POOL ? n / 2 : n;
    size_t first = n >= POOL ? (size_t)x->plan->first_seed % n : 0;
    return s->sets.v[first + x->turn++ % half];
}

// One timed run. *tainted where somebody else had the core meanwhile.
static bool sample(struct runner *x, int side, struct shape_data *s, bool warm, double *ns, bool *tainted,
                   struct fault *f)
{
    int64_t took;
    struct side *c = &x->rig.side[side];
    if (warm) {
        x->rig.condition = CONDITION_NONE;
        if (!rig_run(&x->rig, side, draw_set(x, s), judge_limit(s), NULL, NULL, f))
            return false;
    }
    struct dataset *d = draw_set(x, s);
    x->rig.condition = x->j->task.cache == CACHE_COLD ? CONDITION_COLD : CONDITION_WARM;
    rig_load(&x->rig, d);
    if (!rig_prepare(&x->rig, side, f))
        return false;
    uint64_t before = side_waited(c) + waited_self(x);
    if (!rig_call(&x->rig, side, judge_limit(s), &took, NULL, f))
        return false;
    uint64_t lost = side_waited(c) + waited_self(x) - before;
    *ns = fmax((double)took - x->empty_ns[side], 1);
    *tainted = (double)lost > 0.005 * *ns + 500;
    return rig_judge(&x->rig, side, d, NULL, f);
}

static bool measure(struct runner *x, int side, struct shape_data *s, bool warm, struct samples *all,
                    struct fault *f)
{
    double ns = 0;
    bool tainted = true;
    for (int i = 0; i <= REPEATS && tainted; i++) {
        if (!sample(x, side, s, warm, &ns, &tainted, f))
            return false;
        x->out->tainted += tainted;
    }
    all->v[side][all->n[side]++] = ns;
    return true;
}

static bool empty_floor(struct runner *x, int side, struct fault *f)
{
    double v[EMPTY_CALLS];
    struct side *s = &x->rig.side[side];
    for (int i = 0; i < EMPTY_CALLS; i++) {
        int64_t start = clock_ns(), done = 0;
        side_send(s, OP_EMPTY);
        if (!side_fault(s, side_wait(s, 5000000000, &done), 5, f))
            return false;
        v[i] = (double)(done - start);
    }
    x->empty_ns[side] = stats_median(v, EMPTY_CALLS);
    return true;
}

static void keep_samples(struct runner *x, const struct shape_data *s, int replicate,
                         const struct samples *all)
{
    json *row = json_object();
    json_put_str(row, "shape", s->shape->name);
    json_put_int(row, "replicate", replicate);
    static const char *const names[] = {"incumbent_ns", "candidate_ns"};
    for (int side = 0; side < 2; side++) {
        json *a = json_array();
        for (int i = 0; i < all->n[side]; i++)
            json_push(a, json_new_num(round(all->v[side][i])));
        json_put(row, names[side], a);
    }
    json_push(x->out->samples, row);
}

// A low quantile: interference only ever adds time. Of three or fewer the smallest.
static double location(double *v, int n)
{
    return stats_quantile(v, (size_t)n, n > 3 ? 0.25 : 0);
}

static bool replicate_shape(struct runner *x, int replicate, size_t k, struct fault *f)
{
    struct shape_data *s = x->j->bench.v[k];
    struct samples all = {0};
    double ns[2] = {0};
    bool unused;
    rig_place(&x->rig, s, PLACE_RANDOM, 64);
    // The first runs fault pages in and tell how many samples fit.
    for (int side = 0; side < 2; side++)
        if (!sample(x, side, s, false, &ns[side], &unused, f))
            return false;
    double longest = fmax(ns[0], ns[1]) * 1e-9, fit = SIDE_SECONDS / longest;
    int n = fit < 1 ? 1 : fit > SAMPLES_MOST ? SAMPLES_MOST : (int)fit;
    bool warm = longest * 1e9 < (double)SHORT_NS;
    // A kernel that runs that long leaves nothing of what was before it: its first run counts.
    for (int side = 0; side < 2 && n == 1 && !warm; side++)
        all.v[side][all.n[side]++] = ns[side];
    for (int i = all.n[0]; i < n; i++)
        for (int t = 0; t < 2; t++)
            if (!measure(x, (i + t + replicate) % 2, s, warm, &all, f))
                return false;
    for (int side = 0; side < 2; side++)
        x->out->ns[side][k] = location(all.v[side], all.n[side]);
    keep_samples(x, s, replicate, &all);
    return true;
}

bool cpu_replicate(struct judge *j, const struct binary *const binary[2], const struct race_plan *plan,
                   int number, struct race_cells *out, struct fault *f)
{
    struct runner x = {.j = j, .plan = plan, .out = out, .turn = (uint64_t)number * 17};
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", (long)gettid());
    x.own_schedstat = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = rig_open(&x.rig, &j->task, &j->buffers, j->bench.v, j->bench.n, false, f);
    // Who starts first changes too.
    for (int i = 0; i < 2 && ok; i++) {
        int side = (i + number) % 2;
        struct side_spec spec;
        judge_spec(j, binary[side], &spec);
        ok = rig_start(&x.rig, side, &spec, f) && empty_floor(&x, side, f);
    }
    for (size_t k = 0; k < j->bench.n && ok; k++)
        ok = replicate_shape(&x, number, k, f);
    rig_close(&x.rig);
    if (x.own_schedstat >= 0)
        close(x.own_schedstat);
    return ok;
}
