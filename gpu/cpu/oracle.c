// Expected values: the reference, in double precision, in a sandboxed child, for a pool of secret seeds.
#include "cpu/judge.h"

#include "base/draw.h"
#include "worker.h"

#include <math.h>

enum { SMALL_PLAIN = 2 };
static const double PATIENCE_NS = 45e9; // for the reference at one bench shape
static const size_t POOL_BYTES = (size_t)1 << 30;

static void progress(const char *what, size_t done, size_t of)
{
    json *o = json_object();
    json_put_str(o, "ev", "progress");
    json_put_str(o, "what", what);
    json_put_int(o, "done", (int64_t)done);
    json_put_int(o, "of", (int64_t)of);
    worker_send(o);
}

static bool varies(const struct judge *j, enum variant v)
{
    for (int i = 0; i < j->buffers.n; i++)
        if (inputs_varies(buffer_arg(&j->task, &j->buffers, i), v))
            return true;
    return false;
}

static void add_sets(struct judge *j, struct shape_data *s, bool bench)
{
    size_t one = dataset_bytes(&j->task, &j->buffers, s), room = POOL_BYTES / (j->bench.n ? j->bench.n : 1);
    int plain = SMALL_PLAIN;
    if (bench)
        plain = one * POOL <= room ? POOL : one * 4 <= room ? 4 : 2;
    for (int i = 0; i < plain; i++)
        vec_push(&s->sets, dataset_new(&j->task, &j->buffers, s, draw_secret(), VARIANT_PLAIN));
    for (int v = VARIANT_PLAIN + 1; v < VARIANT_COUNT && !bench; v++)
        if (varies(j, (enum variant)v))
            vec_push(&s->sets, dataset_new(&j->task, &j->buffers, s, draw_secret(), (enum variant)v));
}

// Contents for which the reference leaves the range of the type say nothing.
static bool finite_within(const struct judge *j, const struct shape_data *s, const struct dataset *d)
{
    for (int i = 0; i < j->buffers.n; i++) {
        const struct task_arg *a = buffer_arg(&j->task, &j->buffers, i);
        const double *w = d->wanted[i].real;
        double max = dtype_info(a->type)->max;
        for (int64_t k = 0; w && k < s->elements[i]; k++)
            if (!(fabs(w[k]) <= max))
                return false;
    }
    return true;
}

// What a call of the reference has to do at a shape, in some unit.
static double work_of(const struct judge *j, const struct shape_data *s)
{
    int64_t n;
    if (j->task.metric_flops && task_eval(&j->task, j->task.metric_flops, s->shape->dims, &n) && n > 0)
        return (double)n;
    return (double)s->bytes;
}

// Nanoseconds a unit of work, from the largest test shape.
struct pace {
    double work, ns;
};

static bool run_sets(struct judge *j, struct rig *r, struct shape_data *s, double limit_s, struct pace *pace,
                     struct fault *f)
{
    for (size_t i = 0; i < s->sets.n; i++) {
        struct dataset *d = s->sets.v[i];
        int64_t ns;
        if (d->ready)
            continue;
        rig_place(r, s, PLACE_RANDOM, 64);
        rig_load(r, d);
        if (!rig_prepare(r, 0, f) || !rig_call(r, 0, limit_s, &ns, NULL, f))
            return false;
        rig_collect(r, d);
        if (work_of(j, s) >= pace->work)
            *pace = (struct pace){work_of(j, s), (double)ns};
        d->useless = d->variant != VARIANT_PLAIN && !finite_within(j, s, d);
    }
    return true;
}

static bool reference_binary(struct judge *j, struct binary *out, struct fault *f)
{
    struct str log = {0};
    struct err e = {0};
    if (j->task.ref_original) {
        *out = j->baseline;
        return true;
    }
    int r = compiler_reference(j->compiler, out, &log, &e);
    if (r > 0)
        fault_set(f, STATUS_COMPILE_ERROR, "the reference does not compile: %.400s", str_c(&log));
    else if (r < 0)
        fault_set(f, STATUS_TROUBLE, "%s", e.msg);
    str_free(&log);
    return r == 0;
}

static bool fill_group(struct judge *j, const struct side_spec *spec, struct shape_data *const *shapes,
                       size_t n, const char *what, struct pace *pace, struct fault *f)
{
    struct rig r;
    bool ok =
        rig_open(&r, &j->task, &j->buffers, shapes, n, !j->task.ref_original, f) && rig_start(&r, 0, spec, f);
    for (size_t i = 0; i < n && ok; i++) {
        ok = run_sets(j, &r, shapes[i], 120, pace, f);
        progress(what, i + 1, n);
    }
    rig_close(&r);
    return ok;
}

// Bench shapes whose reference would take too long get their expected values from the baseline itself, which
// the test shapes prove.
static bool fill_bench(struct judge *j, const struct side_spec *spec, struct pace *pace, struct fault *f)
{
    for (size_t i = 0; i < j->bench.n; i++) {
        struct shape_data *s = j->bench.v[i];
        double ns = work_of(j, s) * pace->ns / pace->work * (double)s->sets.n;
        bool slow = j->ops->stand_in && (j->task.ref_original || ns > PATIENCE_NS);
        if (slow ? !j->ops->stand_in(j, s, f)
                 : !fill_group(j, spec, &j->bench.v[i], 1, "oracle of the bench shapes", pace, f))
            return false;
    }
    return true;
}

bool oracle_fill(struct judge *j, struct fault *f)
{
    struct binary ref;
    struct side_spec spec;
    struct pace pace = {1, 0};
    for (size_t i = 0; i < j->test.n; i++)
        add_sets(j, j->test.v[i], false);
    for (size_t i = 0; i < j->bench.n; i++)
        add_sets(j, j->bench.v[i], true);
    if (j->task.ref_original && j->ops->stand_in) { // the baseline is no C function
        for (size_t i = 0; i < j->test.n; i++)
            if (!j->ops->stand_in(j, j->test.v[i], f))
                return false;
        return fill_bench(j, NULL, &pace, f);
    }
    if (!reference_binary(j, &ref, f))
        return false;
    judge_spec(j, &ref, &spec);
    if (!j->task.ref_original)
        spec.function = j->task.ref_func;
    if (!fill_group(j, &spec, j->test.v, j->test.n, "oracle", &pace, f))
        return false;
    return fill_bench(j, &spec, &pace, f);
}
