// The shipped sessions: each loads, and its naive kernel agrees with its reference on the test shapes and on
// hidden ones, while a kernel that writes zeros does not. `test_sessions measure [FLAGS...]` prints times of
// the bench shapes and how much of the tolerance the kernel needs when it is compiled with FLAGS.
#include "base/clock.h"
#include "base/draw.h"
#include "base/io.h"
#include "base/proc.h"
#include "base/task.h"
#include "t.h"

#include <dirent.h>
#include <dlfcn.h>

typedef void shim_fn(void **p);

struct session {
    struct task t;
    char *work; // folder of the built libraries
    void *kernel_lib, *ref_lib;
    shim_fn *kernel, *ref;
};

// Values of every argument at one shape: as the kernel sees them and as the reference does.
struct values {
    void *kernel[16], *ref[16];
    int64_t n[16];
};

static const char *extra_flags[16];
static size_t extra_n;

static void shim_text(const struct task *t, const char *file, const char *func, bool ref, struct str *out)
{
    str_addf(out, "%s#include \"%s\"\nvoid shim(void **p)\n{\n    %s(", ref ? "#include <tgmath.h>\n" : "",
             file, func);
    for (size_t i = 0; i < t->args.n; i++) {
        const struct task_arg *a = &t->args.v[i];
        const struct dtype_info *d = dtype_info(a->type);
        const char *type = ref && d->is_float ? "real" : d->c_names[0];
        str_addf(out, a->dir <= ARG_INOUT ? "%s(%s *)p[%zu]" : "%s*(%s *)p[%zu]", i ? ", " : "", type, i);
    }
    str_add(out, ");\n}\n");
}

static void *build(const struct session *s, const char *file, const char *func, bool ref, struct err *e)
{
    struct str text = {0}, log = {0};
    char *c = xasprintf("%s/%s.c", s->work, ref ? "ref" : "kernel");
    char *so = xasprintf("%s/%s.so", s->work, ref ? "ref" : "kernel");
    shim_text(&s->t, file, func, ref, &text);
    VEC(const char *) argv = {0};
    static const char *const fixed[] = {"gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"};
    for (size_t i = 0; i < countof(fixed); i++)
        vec_push(&argv, fixed[i]);
    if (ref) {
        vec_push(&argv, "-O2");
        vec_push(&argv, "-Dreal=double");
    }
    for (size_t i = 0; !ref && i < s->t.cflags.n; i++)
        vec_push(&argv, s->t.cflags.v[i]);
    for (size_t i = 0; !ref && i < extra_n; i++)
        vec_push(&argv, extra_flags[i]);
    const char *last[] = {"-o", so, c, "-lm", NULL};
    for (size_t i = 0; i < countof(last); i++)
        vec_push(&argv, last[i]);
    struct proc_spec spec = {.argv = argv.v, .in = -1, .out = -1, .err = -1};
    struct proc_end end = {0};
    void *lib = NULL;
    if (io_write_file(c, str_c(&text), text.len, 0600, e) == 0 &&
        proc_run(&spec, &log, 4000, 60000, &end, e) == 0 &&
        (end.status != 0 || !(lib = dlopen(so, RTLD_NOW | RTLD_LOCAL))))
        err_set(e, ERR_FAIL, "", "cannot build %s: %s", file, log.len ? str_c(&log) : dlerror());
    vec_free(&argv);
    str_free(&text);
    str_free(&log);
    free(c);
    free(so);
    return lib;
}

static shim_fn *symbol(void *lib)
{
    void *p = lib ? dlsym(lib, "shim") : NULL;
    shim_fn *f = NULL;
    memcpy(&f, &p, sizeof f); // a cast from void * to a function is not ISO C
    return f;
}

static bool session_open(struct session *s, const char *dir)
{
    err_list errors = {0};
    struct err e = {0};
    *s = (struct session){0};
    bool good = task_load(dir, NULL, 0, &s->t, &errors) == 0;
    for (size_t i = 0; i < errors.n; i++)
        printf("# %s: %s (%s)\n", errors.v[i].where, errors.v[i].msg, errors.v[i].hint);
    vec_free(&errors);
    s->work = io_temp_dir("ksmith-sessions", &e);
    if (good && s->work) {
        char *kernel = io_join(s->t.project, s->t.kernel_file), *ref = io_join(s->t.dir, s->t.ref_file);
        s->kernel_lib = build(s, kernel, s->t.kernel_func, false, &e);
        s->ref_lib = build(s, ref, s->t.ref_func, true, &e);
        free(kernel);
        free(ref);
        s->kernel = symbol(s->kernel_lib);
        s->ref = symbol(s->ref_lib);
    }
    if (e.kind)
        printf("# %s\n", e.msg);
    return s->kernel && s->ref;
}

static void session_close(struct session *s)
{
    if (s->kernel_lib)
        dlclose(s->kernel_lib);
    if (s->ref_lib)
        dlclose(s->ref_lib);
    if (s->work)
        io_remove(s->work, NULL);
    free(s->work);
    task_free(&s->t);
}

static double draw_value(const struct dist *d, struct draw draw, uint64_t i)
{
    switch (d->kind) {
    case DIST_NORMAL:
        return d->a + d->b * draw_normal(draw, "value", i);
    case DIST_UNIFORM:
        return d->a + (d->b - d->a) * draw_unit(draw, "value", i);
    case DIST_INT:
        return d->a + (double)draw_below(draw, "value", i, (uint64_t)(d->b - d->a) + 1);
    case DIST_ONES:
        return 1;
    default:
        return 0;
    }
}

static void values_make(const struct task *t, const struct task_shape *shape, uint64_t seed, struct values *v)
{
    for (size_t i = 0; i < t->args.n; i++) {
        const struct task_arg *a = &t->args.v[i];
        const struct dtype_info *d = dtype_info(a->type);
        v->n[i] = 1;
        if (a->dir <= ARG_INOUT)
            task_elements(t, a, shape->dims, &v->n[i], NULL);
        size_t n = (size_t)v->n[i];
        v->kernel[i] = xcalloc(n + 1, d->size);
        v->ref[i] = xcalloc(n + 1, sizeof(double));
        struct draw draw = {seed, i};
        double fixed = a->dir == ARG_DIM ? (double)shape->dims[a->dim] : a->value;
        for (size_t k = 0; k < n; k++) {
            double x = a->dir >= ARG_DIM ? fixed : a->dir == ARG_OUT ? -77 : draw_value(&a->dist, draw, k);
            dtype_store(a->type, (char *)v->kernel[i] + k * d->size, x);
            x = dtype_load(a->type, (char *)v->kernel[i] + k * d->size);
            dtype_store(d->is_float ? DT_F64 : a->type, (char *)v->ref[i] + k * (d->is_float ? 8 : d->size),
                        x);
        }
    }
}

static void values_free(const struct task *t, struct values *v)
{
    for (size_t i = 0; i < t->args.n; i++) {
        free(v->kernel[i]);
        free(v->ref[i]);
    }
}

// The largest error as a share of the tolerance; over 1 is wrong.
static double worst(const struct task *t, const struct values *v)
{
    double most = 0;
    for (size_t i = 0; i < t->args.n; i++) {
        const struct task_arg *a = &t->args.v[i];
        const struct dtype_info *d = dtype_info(a->type);
        size_t n = (size_t)v->n[i];
        if (a->dir != ARG_OUT && a->dir != ARG_INOUT)
            continue;
        struct task_tol tol =
            t->tol[a->type].set ? t->tol[a->type] : (struct task_tol){true, d->rtol, d->atol_k};
        double *y = xcalloc(n + 1, 8), *r = xcalloc(n + 1, 8), sum = 0;
        dtype_load_n(a->type, v->kernel[i], y, n);
        dtype_load_n(d->is_float ? DT_F64 : a->type, v->ref[i], r, n);
        for (size_t k = 0; k < n; k++)
            sum += r[k] * r[k];
        double rms = n ? sqrt(sum / (double)n) : 0;
        for (size_t k = 0; k < n; k++) {
            double error = fabs(y[k] - r[k]), limit = tol.rtol * fabs(r[k]) + tol.k * d->eps * rms;
            double share = error == 0 ? 0 : limit > 0 ? error / limit : INFINITY;
            if (!(share <= most)) // also NaN
                most = isnan(share) ? INFINITY : share;
        }
        free(y);
        free(r);
    }
    return most;
}

static double error_at(const struct session *s, const struct task_shape *shape, uint64_t seed, bool zeros)
{
    struct values v = {0};
    values_make(&s->t, shape, seed, &v);
    s->ref(v.ref);
    if (!zeros)
        s->kernel(v.kernel);
    for (size_t i = 0; zeros && i < s->t.args.n; i++)
        if (s->t.args.v[i].dir == ARG_OUT || s->t.args.v[i].dir == ARG_INOUT)
            memset(v.kernel[i], 0, (size_t)v.n[i] * dtype_info(s->t.args.v[i].type)->size);
    double x = worst(&s->t, &v);
    values_free(&s->t, &v);
    return x;
}

static bool shape_good(const struct session *s, const struct task_shape *shape)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        double x = error_at(s, shape, seed, false), zero = error_at(s, shape, seed, true);
        if (x > 0.5 || zero < 2) {
            printf("# %s %s", s->t.name, shape->name);
            for (size_t i = 0; i < s->t.dims.n; i++)
                printf(" %s=%lld", s->t.dims.v[i], (long long)shape->dims[i]);
            printf(": the kernel's error is %.3g of the tolerance, that of zeros %.3g\n", x, zero);
            return false;
        }
    }
    return true;
}

static const char *current;

static void session_is_right(void)
{
    char *dir = xasprintf("sessions/%s", current);
    struct session s;
    bool open = session_open(&s, dir);
    CHECK(open);
    int tested = 0;
    for (size_t i = 0; open && i < s.t.shapes.n; i++)
        if (s.t.shapes.v[i].test) {
            CHECK(shape_good(&s, &s.t.shapes.v[i]));
            tested++;
        }
    struct task_shape *hidden = NULL;
    size_t n = 0;
    if (open)
        task_hidden_shapes(&s.t, 20, &hidden, &n);
    for (size_t i = 0; i < n; i++) {
        CHECK(shape_good(&s, &hidden[i]));
        task_shape_free(&hidden[i]);
    }
    free(hidden);
    CHECK(tested >= 3 && n >= 3);
    CHECK_STR(open ? s.t.name : "", current);
    session_close(&s);
    free(dir);
}

static void measure(const char *name)
{
    char *dir = xasprintf("sessions/%s", name);
    struct session s;
    for (size_t i = 0; session_open(&s, dir) && i < s.t.shapes.n; i++) {
        const struct task_shape *shape = &s.t.shapes.v[i];
        struct values v = {0};
        double best = INFINITY, spent = 0;
        values_make(&s.t, shape, 3, &v);
        for (int k = 0; k < 2 || (spent < 0.5 && k < 2000); k++) {
            double t0 = (double)clock_ns();
            s.kernel(v.kernel);
            double x = ((double)clock_ns() - t0) * 1e-9;
            spent += x;
            best = x < best ? x : best;
        }
        values_free(&s.t, &v);
        double error = 0;
        for (uint64_t seed = 1; seed <= 3; seed++)
            error = fmax(error, error_at(&s, shape, seed, false));
        printf("%-12s %-10s %12.2f us   error %.3f of the tolerance\n", name, shape->name, best * 1e6, error);
        fflush(stdout);
    }
    session_close(&s);
    free(dir);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"sgemm-c",    "dot-c",    "rmsnorm-c",   "softmax-c",   "layernorm-c",
                                        "jacobi2d-c", "conv2d-c", "transpose-c", "histogram-c", "saxpy-c"};
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1); // the user's own settings are not what is tested
    if (argc > 1 && strcmp(argv[1], "measure") == 0) {
        for (int i = 2; i < argc && extra_n < countof(extra_flags); i++)
            extra_flags[extra_n++] = argv[i];
        for (size_t i = 0; i < countof(names); i++)
            measure(names[i]);
        return 0;
    }
    for (size_t i = 0; i < countof(names); i++) {
        current = names[i];
        t_bad = 0;
        session_is_right();
        printf("%sok %d - %s loads and its kernel agrees with its reference\n", t_bad ? "not " : "",
               ++t_count, current);
        t_failed_tests += t_bad;
        fflush(stdout);
    }
    T_END;
}
