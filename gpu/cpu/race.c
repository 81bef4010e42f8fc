// The race: incumbent and candidate in turn on the same pages, fresh inputs before each run, a replicate
// being a fresh pair of processes on fresh places. Intervals from within one pair are too narrow, since
// process and page placement dominate; the t-interval is over replicates, and never narrower than identical
// code's own spread (the A/A floor).
#include "cpu/judge.h"

#include "base/clock.h"
#include "base/stats.h"
#include "worker.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { SAMPLES_MOST = 60, REPEATS = 3, EMPTY_CALLS = 21 };
static const double SIDE_SECONDS = 0.03;  // aimed at per side, shape and replicate
static const int64_t SHORT_NS = 20000000; // shorter kernels get a warm run before each timed one

struct samples {
    double v[2][SAMPLES_MOST];
    int n[2];
};

struct runner {
    struct judge *j;
    const struct binary *binary[2];
    const struct race_plan *plan;
    struct rig rig;
    struct race *out;
    int own_schedstat;
    double empty_ns[2];
    uint64_t turn;
    double *logs;     // [replicate * shapes + shape]
    double *times[2]; // the same
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
    size_t at = (size_t)replicate * x->j->bench.n + k;
    for (int side = 0; side < 2; side++)
        x->times[side][at] = location(all.v[side], all.n[side]);
    x->logs[at] = log(x->times[0][at] / x->times[1][at]);
    keep_samples(x, s, replicate, &all);
    return true;
}

static bool replicate(struct runner *x, int number, struct fault *f)
{
    struct err e = {0};
    if (lease_yield(x->j->lease, -1, NULL, NULL, &e) < 0)
        return fault_set(f, STATUS_TROUBLE, "%s", e.msg);
    bool ok = rig_open(&x->rig, &x->j->task, &x->j->buffers, x->j->bench.v, x->j->bench.n, false, f);
    // Who starts first changes too.
    for (int i = 0; i < 2 && ok; i++) {
        int side = (i + number) % 2;
        struct side_spec spec;
        judge_spec(x->j, x->binary[side], &spec);
        ok = rig_start(&x->rig, side, &spec, f) && empty_floor(x, side, f);
    }
    for (size_t k = 0; k < x->j->bench.n && ok; k++)
        ok = replicate_shape(x, number, k, f);
    rig_close(&x->rig);
    return ok;
}

static double weighted(const struct runner *x, int replicate)
{
    double sum = 0, weights = 0;
    for (size_t k = 0; k < x->j->bench.n; k++) {
        double w = x->j->bench.v[k]->shape->weight;
        sum += w * x->logs[(size_t)replicate * x->j->bench.n + k];
        weights += w;
    }
    return sum / weights;
}

// A race given up after two replicates has no useful t-interval (one degree of freedom): what is published
// then is the range of the two, widened by what identical code shows.
static struct stats_interval interval(const struct runner *x, const double *v, int n)
{
    if (n != 2)
        return stats_t_interval(v, (size_t)n, x->plan->level, x->j->floor);
    double mid = (v[0] + v[1]) / 2, half = fabs(v[0] - v[1]) / 2 + 2 * x->j->floor;
    return (struct stats_interval){mid, mid - half, mid + half};
}

static void conclude(struct runner *x, int n)
{
    struct race *r = x->out;
    size_t shapes = x->j->bench.n;
    double *v = xmalloc((size_t)n * sizeof *v);
    r->replicates = n;
    for (int i = 0; i < n; i++)
        v[i] = weighted(x, i);
    struct stats_interval all = interval(x, v, n);
    r->gain = exp(all.mid);
    r->low = exp(all.low);
    r->high = exp(all.high);
    for (size_t k = 0; k < shapes; k++) {
        struct race_shape *s = &r->shapes[k];
        for (int i = 0; i < n; i++)
            v[i] = x->logs[(size_t)i * shapes + k];
        struct stats_interval one = interval(x, v, n);
        s->gain = exp(one.mid);
        s->low = exp(one.low);
        s->high = exp(one.high);
        for (int side = 0; side < 2; side++) {
            for (int i = 0; i < n; i++)
                v[i] = x->times[side][(size_t)i * shapes + k];
            s->ns[side] = stats_median(v, (size_t)n);
        }
    }
    free(v);
}

static void report(const struct runner *x, int n)
{
    if (x->plan->report < 0)
        return;
    json *o = json_object();
    json_put_str(o, "ev", "rate");
    json_put_int(o, "id", x->plan->report);
    json_put_int(o, "replicate", n);
    json_put_num(o, "gain", x->out->gain);
    worker_send(o);
}

// Whether the race may end after n replicates.
static bool enough(const struct runner *x, int n, double spent)
{
    const struct race *r = x->out;
    double worst = -1;
    for (int i = 0; i < n; i++)
        worst = fmax(worst, weighted(x, i));
    if (n >= 2 && x->plan->may_give_up && worst < -0.03 && worst < -2 * x->j->floor) {
        x->out->hopeless = true;
        return true;
    }
    if (n < x->plan->least)
        return false;
    double next = spent / n;
    bool decided = r->low > 1 || r->high < x->j->task.gain || (r->high < 1.0);
    return decided || spent + next > x->plan->seconds;
}

bool race_run(struct judge *j, const struct binary *incumbent, const struct binary *candidate,
              const struct race_plan *plan, struct race *out, struct fault *f)
{
    struct runner x = {.j = j, .binary = {incumbent, candidate}, .plan = plan, .out = out};
    size_t cells = (size_t)plan->most * j->bench.n;
    struct err e = {0};
    *out = (struct race){.shapes = xcalloc(j->bench.n, sizeof *out->shapes), .samples = json_array()};
    x.logs = xcalloc(cells, sizeof *x.logs);
    for (int side = 0; side < 2; side++)
        x.times[side] = xcalloc(cells, sizeof(double));
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", (long)gettid());
    x.own_schedstat = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = lease_take(j->lease, -1, NULL, NULL, &e) == 0 || fault_set(f, STATUS_TROUBLE, "%s", e.msg);
    int64_t start = clock_ns();
    for (int n = 0; n < plan->most && ok; n++) {
        ok = replicate(&x, n, f);
        if (!ok)
            break;
        conclude(&x, n + 1);
        report(&x, n + 1);
        if (enough(&x, n + 1, (double)(clock_ns() - start) * 1e-9))
            break;
    }
    lease_release(j->lease);
    if (x.own_schedstat >= 0)
        close(x.own_schedstat);
    free(x.logs);
    free(x.times[0]);
    free(x.times[1]);
    return ok;
}

void race_free(struct race *r)
{
    free(r->shapes);
    json_free(r->samples);
    *r = (struct race){0};
}
