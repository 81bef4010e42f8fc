#include "cuda/verify.h"

#include "cuda/trial.h"

#include <math.h>
#include <stdio.h>

enum { MOST_SETS = 16, ROUNDS = 4 };

static size_t useful(const struct shape_data *s, struct dataset *out[MOST_SETS])
{
    size_t n = 0;
    for (size_t i = 0; i < s->sets.n && n < MOST_SETS; i++)
        if (!s->sets.v[i]->useless)
            out[n++] = s->sets.v[i];
    return n;
}

static bool name_shape(const struct shape_data *s, const char *extra, struct fault *f)
{
    char text[sizeof f->reason];
    if (f->status != STATUS_TROUBLE && f->status != STATUS_CANCELLED) {
        snprintf(text, sizeof text, "%.360s (shape %.40s%s)", f->reason, s->shape->name, extra);
        fault_set(f, f->status, "%s", text);
    }
    return false;
}

static void add_precision(const struct item_result *r, double eps, struct precision *p)
{
    p->error_sq += r->error_sq;
    p->wanted_sq += r->wanted_sq;
    p->max_ulp = eps > 0 ? fmax(p->max_ulp, r->ulp / eps) : p->max_ulp;
}

// The buffer that result i of a check is of; scratch buffers come last in each sample.
static size_t rows_of(const struct judge *j, const struct trial_spec *t)
{
    return t->copies * (size_t)j->buffers.n + t->kernel[0]->plan.scratch.n;
}

static bool judge_results(struct judge *j, const struct trial_spec *t, const struct trial_out *o,
                          struct precision *p, struct fault *f)
{
    size_t rows = rows_of(j, t), sets = t->copies * (size_t)j->buffers.n;
    for (size_t i = 0; i < o->results.n; i++) {
        size_t row = i % rows;
        int buffer = row < sets ? (int)(row % (size_t)j->buffers.n) : j->buffers.n;
        const struct item_result *r = &o->results.v[i];
        if (!trial_right(j, t, buffer, r, f))
            return false;
        const struct dataset *d = row < sets ? t->sets[row / (size_t)j->buffers.n % t->nsets] : NULL;
        if (p && i < rows && d && d->variant == VARIANT_PLAIN)
            add_precision(r, dtype_info(buffer_arg(&j->task, &j->buffers, buffer)->type)->eps, p);
    }
    return true;
}

static bool run_shape(struct judge *j, const struct gpu_kernel *k, struct shape_data *s, struct precision *p,
                      struct fault *f)
{
    struct dataset *sets[MOST_SETS];
    struct trial_out o = {0};
    int side;
    size_t n = useful(s, sets);
    // Each set on buffers of its own, and once more with other contents at the same addresses at once.
    struct trial_spec t = {.shape = s,
                           .sets = sets,
                           .nsets = n,
                           .kernel = {k, NULL},
                           .copies = (uint32_t)n,
                           .samples = 2,
                           .flags = TRIAL_MISALIGN,
                           .limit_s = trial_limit(s, (double)n)};
    bool ok = trial_run(j->device, j, &t, &o, &side, f) && judge_results(j, &t, &o, p, f);
    trial_free(&o);
    return ok;
}

// The same contents give the same bits, wherever the buffers lie.
static bool deterministic(struct judge *j, const struct gpu_kernel *k, struct shape_data *s, struct fault *f)
{
    struct trial_out o = {0};
    int side;
    struct trial_spec t = {.shape = s,
                           .sets = s->sets.v,
                           .nsets = 1,
                           .kernel = {k, NULL},
                           .copies = ROUNDS,
                           .samples = 1,
                           .limit_s = trial_limit(s, ROUNDS)};
    bool ok = trial_run(j->device, j, &t, &o, &side, f);
    for (size_t i = 0; ok && i < (size_t)ROUNDS * (size_t)j->buffers.n; i++) {
        size_t b = i % (size_t)j->buffers.n;
        const struct task_arg *a = buffer_arg(&j->task, &j->buffers, (int)b);
        if (a->dir != ARG_IN && o.results.v[i].hash != o.results.v[b].hash)
            ok = fault_set(f, STATUS_WRONG,
                           "gives other bits in %s for the same inputs (the task says deterministic = yes)",
                           a->name);
    }
    trial_free(&o);
    return ok;
}

bool cuda_smoke(struct judge *j, const struct binary *b, struct fault *f)
{
    // The smallest of the task's own: a kernel made for just those fails later, where that is said.
    size_t first = 0;
    if (!trial_alive(j->device, b->device, f))
        return false;
    while (first + 1 < j->test.n && j->test.v[first]->shape->hidden)
        first++;
    struct shape_data *s = j->test.v[first];
    struct trial_out o = {0};
    int side;
    struct trial_spec t = {.shape = s,
                           .sets = s->sets.v,
                           .nsets = 1,
                           .kernel = {b->device, NULL},
                           .copies = 1,
                           .samples = 1,
                           .limit_s = trial_limit(s, 1)};
    bool ok = (trial_run(j->device, j, &t, &o, &side, f) && judge_results(j, &t, &o, NULL, f)) ||
              name_shape(s, "", f);
    trial_free(&o);
    return ok;
}

bool cuda_check(struct judge *j, const struct binary *b, struct precision *p, struct fault *f)
{
    bool own_passed = true, ok = true;
    // The task's own shapes before the hidden ones, so that a kernel made for just those is told so.
    for (int hidden = 0; hidden < 2 && ok; hidden++)
        for (size_t i = 0; i < j->test.n && ok; i++) {
            struct shape_data *s = j->test.v[i];
            if (s->shape->hidden != hidden)
                continue;
            ok = run_shape(j, b->device, s, p, f) ||
                 name_shape(
                     s,
                     hidden && own_passed ? ": right on all of the task's own, so are sizes hard-wired?" : "",
                     f);
            own_passed &= ok;
        }
    return ok && (!j->task.deterministic || deterministic(j, b->device, j->test.v[0], f));
}

// ---- the baseline

static bool baseline_shape(struct judge *j, struct shape_data *s, struct fault *f)
{
    struct dataset *sets[MOST_SETS];
    struct trial_out o = {0};
    struct precision p = {0};
    int side;
    size_t n = useful(s, sets);
    struct trial_spec t = {.shape = s,
                           .sets = sets,
                           .nsets = n,
                           .kernel = {j->baseline.device, NULL},
                           .copies = (uint32_t)n,
                           .samples = 1,
                           .flags = TRIAL_MISALIGN,
                           .limit_s = 60};
    bool ok = trial_run(j->device, j, &t, &o, &side, f);
    for (size_t i = 0; ok && i < n * (size_t)j->buffers.n; i++) {
        struct dataset *d = sets[i / (size_t)j->buffers.n];
        int b = (int)(i % (size_t)j->buffers.n);
        struct fault one = {0};
        if (trial_right(j, &t, b, &o.results.v[i], &one)) {
            if (d->variant == VARIANT_PLAIN)
                add_precision(&o.results.v[i], dtype_info(buffer_arg(&j->task, &j->buffers, b)->type)->eps,
                              &p);
        } else if (d->variant != VARIANT_PLAIN) {
            d->useless = true; // the baseline itself is not right for such contents
        } else {
            *f = one;
            ok = false;
        }
    }
    s->baseline_ns = ok ? fmax(o.a.ns[0][0], 1000) : 0;
    s->error_sq = p.error_sq;
    s->wanted_sq = p.wanted_sq;
    trial_free(&o);
    return ok;
}

bool cuda_baseline_right(struct judge *j, json *problems)
{
    for (size_t i = 0; i < j->test.n; i++) {
        struct fault f = {0};
        char msg[640];
        if (baseline_shape(j, j->test.v[i], &f))
            continue;
        snprintf(msg, sizeof msg, "the baseline itself is %s on shape %s: %s", status_names[f.status],
                 j->test.v[i]->shape->name, f.reason);
        preflight_problem(
            problems, msg,
            "Correct the kernel, its launch or the reference, or give [check] the tolerance that the "
            "kernel needs.");
        return false;
    }
    return true;
}

// ---- expected values from the baseline itself

static bool fetch(struct judge *j, const struct shape_data *s, struct dataset *d, int i, struct fault *f)
{
    struct device *dev = j->device;
    enum dtype type = buffer_arg(&j->task, &j->buffers, i)->type;
    size_t size = dtype_info(type)->size, bytes = (size_t)s->elements[i] * size;
    for (size_t at = 0; at < bytes; at += CARD_STAGING) {
        size_t n = bytes - at < CARD_STAGING ? bytes - at : CARD_STAGING;
        struct card_fetch q = {.buffer = (uint32_t)i, .offset = at, .bytes = n};
        struct card_reply r;
        if (!device_ask(dev, CARD_FETCH, &q, sizeof q, 60, &r, NULL, f))
            return false;
        if (r.error)
            return fault_set(f, STATUS_TROUBLE, "%s", r.words);
        if (d->wanted[i].real)
            dtype_load_n(type, dev->staging, d->wanted[i].real + at / size, n / size);
        else
            memcpy((char *)d->wanted[i].exact + at, dev->staging, n);
    }
    if (d->wanted[i].real)
        d->wanted[i].rms = compare_rms(d->wanted[i].real, (size_t)s->elements[i]);
    return true;
}

bool cuda_stand_in(struct judge *j, struct shape_data *s, struct fault *f)
{
    bool ok = true;
    s->baseline_is_oracle = true;
    for (size_t i = 0; i < s->sets.n && ok; i++) {
        struct trial_out o = {0};
        int side;
        struct trial_spec t = {.shape = s,
                               .sets = &s->sets.v[i],
                               .nsets = 1,
                               .kernel = {j->baseline.device, NULL},
                               .copies = 1,
                               .samples = 1,
                               .limit_s = 60};
        ok = trial_run(j->device, j, &t, &o, &side, f);
        trial_free(&o);
        for (int b = 0; b < j->buffers.n && ok; b++)
            if (buffer_arg(&j->task, &j->buffers, b)->dir != ARG_IN)
                ok = fetch(j, s, s->sets.v[i], b, f);
        s->sets.v[i]->ready = ok;
    }
    return ok;
}
