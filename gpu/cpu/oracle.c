// Expected values: the reference, in double precision, in a sandboxed child, for a pool of secret seeds.
#include "cpu/judge.h"

#include "base/draw.h"
#include "worker.h"

#include <math.h>

enum { SMALL_PLAIN = 2 };
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

static bool run_sets(struct judge *j, struct rig *r, struct shape_data *s, double limit_s, struct fault *f)
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
                       size_t n, const char *what, struct fault *f)
{
    struct rig r;
    bool ok =
        rig_open(&r, &j->task, &j->buffers, shapes, n, !j->task.ref_original, f) && rig_start(&r, 0, spec, f);
    for (size_t i = 0; i < n && ok; i++) {
        ok = run_sets(j, &r, shapes[i], 120, f);
        progress(what, i + 1, n);
    }
    rig_close(&r);
    return ok;
}

bool oracle_fill(struct judge *j, struct fault *f)
{
    struct binary ref;
    struct side_spec spec;
    if (!reference_binary(j, &ref, f))
        return false;
    judge_spec(j, &ref, &spec);
    if (!j->task.ref_original)
        spec.function = j->task.ref_func;
    for (size_t i = 0; i < j->test.n; i++)
        add_sets(j, j->test.v[i], false);
    for (size_t i = 0; i < j->bench.n; i++)
        add_sets(j, j->bench.v[i], true);
    if (!fill_group(j, &spec, j->test.v, j->test.n, "oracle", f))
        return false;
    return fill_group(j, &spec, j->bench.v, j->bench.n, "oracle of the bench shapes", f);
}
