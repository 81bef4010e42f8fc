// What a task must show before anything is judged: the baseline is right, wrong answers are refused, every
// input matters; and what this machine is worth: floors and ceilings.
#include "cpu/judge.h"

#include "base/stats.h"
#include "worker.h"

#include <math.h>
#include <string.h>

void preflight_problem(json *list, const char *msg, const char *hint)
{
    json *o = json_object();
    json_put_str(o, "msg", msg);
    json_put_str(o, "hint", hint);
    json_push(list, o);
}

static void progress(const char *what)
{
    json *o = json_object();
    json_put_str(o, "ev", "progress");
    json_put_str(o, "what", what);
    worker_send(o);
}

// ---- probes: answers that no task may take for right

enum probe { PROBE_ZEROS, PROBE_ONES, PROBE_COPY, PROBE_COUNT };
static const char *const probe_names[] = {"all zeros", "all ones", "a copy of an input"};

static double probe_value(const struct judge *j, const struct dataset *d, enum probe p, int out, size_t k,
                          bool *possible)
{
    if (p != PROBE_COPY)
        return p == PROBE_ONES;
    for (int i = 0; i < j->buffers.n; i++) {
        const struct task_arg *a = buffer_arg(&j->task, &j->buffers, i),
                              *o = buffer_arg(&j->task, &j->buffers, out);
        if (a->dir != ARG_IN || a->type != o->type)
            continue;
        *possible = true;
        return dtype_load(a->type, (const char *)d->in[i] + k * dtype_info(a->type)->size);
    }
    *possible = false;
    return 0;
}

// Whether a kernel that gives this would pass on one set.
static bool probe_passes(const struct judge *j, const struct shape_data *s, const struct dataset *d,
                         enum probe p)
{
    bool right = true, possible = true;
    for (int i = 0; i < j->buffers.n && right; i++) {
        const struct task_arg *a = buffer_arg(&j->task, &j->buffers, i);
        const struct wanted *w = &d->wanted[i];
        size_t n = (size_t)s->elements[i], size = dtype_info(a->type)->size;
        if (a->dir == ARG_IN)
            continue;
        for (int b = 0; b < j->buffers.n && p == PROBE_COPY; b++)
            if (buffer_arg(&j->task, &j->buffers, b)->dir == ARG_IN && s->elements[b] < (int64_t)n)
                return false;
        char *fake = xcalloc(n + 1, size);
        for (size_t k = 0; k < n; k++)
            dtype_store(a->type, fake + k * size, probe_value(j, d, p, i, k, &possible));
        struct comparison c;
        if (w->real)
            compare_real(a->type, fake, w->real, w->rms, n, compare_tolerance(&j->task, a->type), &c);
        else
            compare_exact(a->type, fake, w->exact, n, &c);
        right = c.wrong == 0;
        free(fake);
    }
    return right && possible;
}

static void probe_task(const struct judge *j, json *problems)
{
    for (int p = 0; p < PROBE_COUNT; p++) {
        bool all = true;
        for (size_t i = 0; i < j->test.n && all; i++)
            for (size_t k = 0; k < j->test.v[i]->sets.n && all; k++)
                all = j->test.v[i]->sets.v[k]->useless ||
                      probe_passes(j, j->test.v[i], j->test.v[i]->sets.v[k], (enum probe)p);
        if (!all)
            continue;
        char msg[160];
        snprintf(msg, sizeof msg, "a kernel that gives %s would pass every test", probe_names[p]);
        preflight_problem(problems, msg,
                          "Tighten [check], or give the inputs other values or larger test shapes.");
    }
}

// Two sets of one shape differ in every input; an output that is the same for all seeds depends on none of
// them.
static bool same_wanted(const struct judge *j, const struct shape_data *s, const struct dataset *a,
                        const struct dataset *b)
{
    for (int i = 0; i < j->buffers.n; i++) {
        const struct wanted *x = &a->wanted[i], *y = &b->wanted[i];
        size_t n = (size_t)s->elements[i];
        if (x->real && memcmp(x->real, y->real, n * sizeof(double)) != 0)
            return false;
        if (x->exact &&
            memcmp(x->exact, y->exact, n * dtype_info(buffer_arg(&j->task, &j->buffers, i)->type)->size) != 0)
            return false;
    }
    return true;
}

static void inputs_matter(const struct judge *j, json *problems)
{
    const struct shape_data *s = j->test.v[j->test.n - 1];
    if (s->sets.n >= 2 && same_wanted(j, s, s->sets.v[0], s->sets.v[1]))
        preflight_problem(problems, "the result is the same whatever the inputs hold",
                          "Check the reference and the arguments' directions.");
}

// Identical code through whole races.
bool preflight_floor(struct judge *j, const struct binary *b, int most, struct fault *f)
{
    struct race_plan plan = {.least = most, .most = most, .level = 0.95, .seconds = 15, .report = -1};
    struct race r;
    double before = j->floor;
    j->floor = 0;
    bool ok = race_run(j, b, b, &plan, &r, f);
    j->floor = before;
    if (ok) {
        // From the interval back to the deviation of a replicate, and on to a race of five.
        double sd = log(r.high / r.gain) * sqrt((double)r.replicates) / stats_t(r.replicates - 1, plan.level);
        j->floor = fmin(fmax(1.96 * sd / sqrt(5.0), 0.001), 0.02);
        j->floor_ns = 0;
        for (size_t k = 0; k < j->bench.n; k++)
            j->floor_ns += r.shapes[k].ns[1];
    }
    race_free(&r);
    return ok;
}

static bool noise_floor(struct judge *j, json *problems)
{
    double slowest = 0;
    struct fault f = {0};
    for (size_t k = 0; k < j->bench.n; k++)
        slowest += j->bench.v[k]->baseline_ns * 1e-9;
    if (preflight_floor(j, &j->baseline, slowest > j->slow_s ? 3 : 10, &f))
        return true;
    preflight_problem(problems, f.reason, "");
    return false;
}

static json *shape_rows(struct judge *j)
{
    json *rows = json_array();
    for (size_t k = 0; k < j->bench.n; k++) {
        const struct shape_data *s = j->bench.v[k];
        json *o = json_object();
        int64_t n;
        double rate, best = 0;
        json_put_str(o, "name", s->shape->name);
        json_put_num(o, "time_ns", s->baseline_ns);
        if (j->task.metric_bytes && task_eval(&j->task, j->task.metric_bytes, s->shape->dims, &n)) {
            rate = (double)n / s->baseline_ns * 1e9;
            json_put_num(o, "bytes_s", rate);
            if (s->bytes > 2 * j->llc_bytes)
                best = fmax(best, rate / j->copy_ceiling);
        }
        if (j->task.metric_flops && task_eval(&j->task, j->task.metric_flops, s->shape->dims, &n)) {
            rate = (double)n / s->baseline_ns * 1e9;
            json_put_num(o, "flops_s", rate);
            best = fmax(best, rate / j->fma_ceiling);
        }
        if (best > 0)
            json_put_num(o, "ceiling_pct", 100 * best);
        json_push(rows, o);
    }
    return rows;
}

static bool build_baseline(struct judge *j, const json *request, json *problems)
{
    struct entry e;
    struct str log = {0};
    struct fault f = {0};
    bool ok = j->ops->build(j, request, &e, &log, &f);
    if (ok) {
        j->baseline = e.binary;
    } else {
        char msg[500];
        snprintf(msg, sizeof msg, "the baseline: %.400s", f.reason);
        preflight_problem(problems, msg, log.len ? str_c(&log) : "");
    }
    str_free(&log);
    return ok;
}

void preflight_run(struct judge *j, const json *request)
{
    json *o = json_object(), *problems = json_array(), *warnings = json_array(), *ceilings = json_object();
    struct fault f = {0};
    bool ok = build_baseline(j, request, problems);
    if (ok && !oracle_fill(j, &f)) {
        ok = false;
        preflight_problem(problems, f.reason,
                          "The reference must run on every shape; see [reference] in ksmith-task(5).");
    }
    if (ok)
        progress("baseline");
    ok = ok && j->ops->baseline_right(j, problems) && j->ops->baseline_times(j, problems);
    if (ok) {
        probe_task(j, problems);
        inputs_matter(j, problems);
        progress("ceilings");
        j->ops->ceilings(j, ceilings);
        progress("noise floor");
        ok = noise_floor(j, problems) && json_count(problems) == 0;
    }
    if (!j->is_protected)
        preflight_problem(warnings, j->why, "");
    j->ready = ok;
    json_put_str(o, "ev", "preflight");
    json_put_bool(o, "ok", ok);
    json_put(o, "problems", problems);
    json_put(o, "warnings", warnings);
    if (ok) {
        json_put(o, "shapes", shape_rows(j));
        json_put_num(o, "floor", j->floor);
        json_put(o, "ceilings", json_copy(ceilings));
    }
    json_free(ceilings);
    worker_send(o);
}
