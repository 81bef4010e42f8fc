// Times on the GPU: a replicate is a fresh allocation and, for each run, a module loaded anew; a run is a
// graph of launches over a ring of buffer sets with different contents, every output of which is checked.
#include "cuda/trial.h"
#include "cuda/verify.h"

#include "base/stats.h"

#include <math.h>
#include <stdio.h>

enum {
    SAMPLES = 2,
    SHORT_SAMPLES = 3,
    SHORT_NS = 20000,
    LEAST = 20,
    MOST = 400,
    LONG_LEAST = 4,
    LONG_NS = 75000,
    SLOW_NS = 5000000
};
static const double SHORT_RUN_NS = 1.5e6, LONG_RUN_NS = 2e6; // aimed at for one run
static const double MEMORY_SHARE = 0.4;                      // of the device, for the ring

// How many sets a run goes over, and how often over each. Each launch has buffers of its own, so that no
// output can be left over from the launch before.
static void ring(const struct judge *j, const struct shape_data *s, double ns, uint32_t *copies,
                 uint32_t *repeat)
{
    const struct device *d = j->device;
    double launches = ceil((ns < LONG_NS ? SHORT_RUN_NS : LONG_RUN_NS) / fmax(ns, 1000));
    launches = ns < LONG_NS ? fmin(fmax(launches, LEAST), MOST)
                            : fmin(fmax(launches, ns < SLOW_NS ? LONG_LEAST : 2), LEAST);
    double bytes = fmax((double)s->bytes, 1), room = MEMORY_SHARE * (double)d->facts.free / bytes;
    *repeat = 1;
    if (j->task.cache == CACHE_WARM) {
        bool in_place = false;
        for (int i = 0; i < j->buffers.n; i++)
            in_place |= buffer_arg(&j->task, &j->buffers, i)->dir == ARG_INOUT;
        *copies = 1; // an in-place kernel cannot run twice on the same contents
        *repeat = in_place ? 1 : (uint32_t)launches;
        return;
    }
    double cold = ceil(2.0 * (double)d->facts.l2_bytes / bytes) + 1;
    launches = fmin(fmax(launches, fmin(cold, MOST)), fmax(room, 2));
    *copies = (uint32_t)fmax(launches, 2);
}

// A fault of a trial that times: whose it is, and in words.
static bool brief(struct judge *j, const struct trial_spec *t, const struct trial_out *o, int *side,
                  struct fault *f)
{
    if (o->results.n == 0)
        return true;
    *side = (int)o->a.side;
    int buffer = o->a.buffer == UINT32_MAX ? j->buffers.n : (int)o->a.buffer;
    return trial_right(j, t, buffer, &o->results.v[0], f);
}

static void keep_samples(struct race_cells *out, const struct shape_data *s, int replicate,
                         const struct trial_answer *a)
{
    static const char *const names[] = {"incumbent_ns", "candidate_ns"};
    json *row = json_object();
    json_put_str(row, "shape", s->shape->name);
    json_put_int(row, "replicate", replicate);
    for (int side = 0; side < 2; side++) {
        json *v = json_array();
        for (uint32_t i = 0; i < a->n[side]; i++)
            json_push(v, json_new_num(round(a->ns[side][i] * 10) / 10));
        json_put(row, names[side], v);
    }
    json_put_int(row, "mhz", a->mhz_low);
    if (a->throttle)
        json_put_int(row, "throttle", (int64_t)a->throttle);
    json_push(out->samples, row);
}

static bool run_shape(struct judge *j, const struct binary *const binary[2], const struct race_plan *plan,
                      int number, size_t k, struct race_cells *out, struct fault *f)
{
    struct device *d = j->device;
    struct shape_data *s = j->bench.v[k];
    struct trial_out o = {0};
    int side = -1;
    // A small pool is used whole by race and recheck.
    size_t n = s->sets.n, half = n >= POOL ? n / 2 : n, first = n >= POOL ? (size_t)plan->first_seed % n : 0;
    double ns = d->last_ns[k] > 0 ? d->last_ns[k] : s->baseline_ns;
    struct trial_spec t = {.shape = s,
                           .sets = s->sets.v + first,
                           .nsets = half,
                           .kernel = {binary[0]->device, binary[1]->device},
                           .samples = ns < SHORT_NS ? SHORT_SAMPLES : SAMPLES,
                           .first_side = (uint32_t)number % 2,
                           .flags = TRIAL_GRAPH | TRIAL_BRIEF};
    ring(j, s, ns, &t.copies, &t.repeat);
    t.limit_s = trial_limit(s, (double)t.copies * t.repeat);
    bool ok = trial_run(d, j, &t, &o, &side, f) && brief(j, &t, &o, &side, f);
    if (!ok && side == 0 && binary[0]->device != binary[1]->device) {
        char why[sizeof f->reason];
        snprintf(why, sizeof why, "%.400s", f->reason);
        fault_set(f, STATUS_TROUBLE, "the incumbent failed in the race: %s", why);
    }
    if (ok) {
        for (int i = 0; i < 2; i++)
            out->ns[i][k] = stats_median(o.a.ns[i], o.a.n[i]);
        keep_samples(out, s, number, &o.a);
        out->tainted += (int)o.a.tainted;
        d->last_ns[k] = fmin(out->ns[0][k], out->ns[1][k]);
    }
    trial_free(&o);
    return ok;
}

bool cuda_replicate(struct judge *j, const struct binary *const binary[2], const struct race_plan *plan,
                    int number, struct race_cells *out, struct fault *f)
{
    for (size_t k = 0; k < j->bench.n; k++)
        if (!run_shape(j, binary, plan, number, k, out, f))
            return false;
    return true;
}

// ---- the baseline's times, and the ceilings

static bool time_baseline(struct judge *j, size_t k, struct fault *f)
{
    struct device *d = j->device;
    struct shape_data *s = j->bench.v[k];
    struct trial_out o = {0};
    int side;
    struct trial_spec t = {.shape = s,
                           .sets = s->sets.v,
                           .nsets = s->sets.n,
                           .kernel = {j->baseline.device, NULL},
                           .copies = 2,
                           .repeat = 1,
                           .samples = 1,
                           .flags = TRIAL_GRAPH | TRIAL_BRIEF,
                           .limit_s = 120};
    bool ok = true;
    // First roughly, then over a ring whose length that tells.
    for (int round = 0; round < 2 && ok; round++) {
        ok = trial_run(d, j, &t, &o, &side, f) && brief(j, &t, &o, &side, f);
        if (ok)
            d->last_ns[k] = s->baseline_ns = fmax(stats_median(o.a.ns[0], o.a.n[0]), 100);
        ring(j, s, s->baseline_ns, &t.copies, &t.repeat);
        t.samples = 3;
        if (s->baseline_ns > 1e8)
            break;
    }
    trial_free(&o);
    return ok;
}

bool cuda_baseline_times(struct judge *j, json *problems)
{
    for (size_t k = 0; k < j->bench.n; k++) {
        struct fault f = {0};
        char msg[640];
        if (time_baseline(j, k, &f))
            continue;
        snprintf(msg, sizeof msg, "the baseline on bench shape %s: %s", j->bench.v[k]->shape->name, f.reason);
        preflight_problem(problems, msg, "The baseline must be right on every bench shape.");
        return false;
    }
    return true;
}

void cuda_ceilings(struct judge *j, json *out)
{
    struct device *d = j->device;
    struct card_reply r;
    struct str answer = {0};
    struct fault f = {0};
    if (device_ask(d, CARD_CEILINGS, NULL, 0, 60, &r, &answer, &f) && answer.len == sizeof d->ceilings)
        memcpy(&d->ceilings, answer.s, sizeof d->ceilings);
    str_free(&answer);
    const struct card_ceilings *c = &d->ceilings;
    double copy = fmax(c->copy, c->memcpy_rate);
    j->copy_ceiling = fmax(copy, c->read); // what only reads may be a little faster than what copies
    j->fma_ceiling = c->fma;
    j->launch_floor_ns = c->launch_ns;
    json_put_num(out, "copy_bytes_s", copy);
    json_put_num(out, "read_bytes_s", c->read);
    json_put_num(out, "fma_flops_s", c->fma);
    json_put_num(out, "launch_ns", c->launch_ns);
}
