// Rules on CUDA kernels: what a rule makes must compile with nvcc (where it is installed) and compute what
// the kernel computed, on the CPU by tests/cuda/emu.h, for several sizes and knob values, with the threads in
// both orders. The values are small integers, so that most sums are exact.
#include "t.h"

#include "base/draw.h"
#include "base/io.h"
#include "base/proc.h"
#include "base/task.h"
#include "cuda_kernels.h"
#include "source/annot.h"
#include "source/edits.h"

#include <dlfcn.h>
#include <unistd.h>

enum { VARIANTS = 10, PAD = 64 };

struct variant {
    struct str text;
    char *how; // the rules that made it
    bool turned;
};
struct fixture {
    struct task task;
    struct variant v[VARIANTS];
    size_t n;
};
typedef int run_fn(void **p, int backwards);

static char dir[] = "/tmp/ks-cuda-XXXXXX";
static struct str all_cu; // one file for nvcc
static int made, compiled;

// ---- tasks and rules

// Without args the kernel is a session's: its name is the folder's.
static bool task_of(const struct kernel *k, struct task *t)
{
    struct str ini = {0};
    err_list errors = {0};
    if (!k->args) {
        bool ok = task_load(k->name, NULL, 0, t, &errors) == 0;
        vec_free(&errors);
        return ok;
    }
    str_addf(&ini,
             "[task]\nname = k\nbackend = cuda\nkernel = "
             "k.cu:%s\n%s[args]\n%s[shapes]\n%s[reference]\noriginal = yes\n",
             k->func, k->head ? k->head : "", k->args, k->shapes);
    bool ok = task_parse("k.ini", str_c(&ini), ini.len, dir, NULL, 0, t, &errors) == 0;
    for (size_t i = 0; i < errors.n; i++)
        printf("# %s: %s: %s\n", k->func, errors.v[i].where, errors.v[i].msg);
    vec_free(&errors);
    str_free(&ini);
    return ok;
}

static const struct rule *rule_named(const char *name)
{
    for (size_t i = 0; i < rule_table_n; i++)
        if (str_eq(rule_table[i]->name, name) && rule_table[i]->cuda)
            return rule_table[i];
    return NULL;
}

// The rule at its first place that it offers. false, with the reason in why, where it refuses.
// "rule" or "rule:name=value", each perhaps with "@kernel".
static bool rewrite(const struct fixture *f, const char *func, const char *word, struct str *text,
                    char why[320])
{
    char rule[64];
    snprintf(rule, sizeof rule, "%s", word);
    char *other = strchr(rule, '@');
    if (other)
        *other++ = 0;
    const char *in = other ? other : func;
    char *with = strchr(rule, ':'), *value = with ? strchr(with, '=') : NULL;
    json *params = value ? json_object() : NULL;
    if (value) {
        *with++ = *value++ = 0;
        json_put_str(params, with, value);
    }
    struct rule_source s;
    struct err e = {0};
    const struct rule *r = rule_named(rule);
    rule_sites sites = {0};
    bool done = false;
    snprintf(why, 320, "no place");
    CHECK(r != NULL);
    if (!r || rule_source_open(&s, str_c(text), text->len, "k.cu", in, &f->task, &e) < 0) {
        snprintf(why, 320, "%.300s", e.msg);
        return false;
    }
    CHECK(rule_fits(r, &s));
    r->sites(&s, &sites);
    rule_source_close(&s);
    for (size_t i = 0; i < sites.n && !done; i++) {
        CHECK(sites.v[i].why[0]);
        snprintf(why, 320, "%s", sites.v[i].why);
        if (!sites.v[i].ok)
            continue;
        struct edits l = {0};
        struct edits_env env = {rule_table, rule_table_n, "k.cu", func, &f->task};
        struct str out = {0};
        char *where = rule_where(func, in, sites.v[i].where);
        edits_add(&l, rule, where, params);
        free(where);
        done = edits_replay(&l, str_c(text), text->len, &env, &out, NULL, NULL, &e) == 0;
        if (!done)
            printf("# offered, then refused: %s of %s: %s\n", rule, func, e.msg);
        CHECK(done);
        edits_free(&l);
        if (done) {
            str_free(text);
            *text = out;
        }
    }
    rule_sites_free(&sites);
    json_free(params);
    return done;
}

// Another value for each knob, drawn; some stay.
static void turn_knobs(struct str *text, struct draw d)
{
    struct annots a;
    err_list errors = {0};
    annot_read(&a, str_c(text), text->len, "k.cu", &errors);
    for (size_t i = 0; i < errors.n; i++)
        CHECK_STR(errors.v[i].msg, "");
    vec_free(&errors);
    for (size_t i = 0; i < a.knobs.n; i++) {
        const struct knob *k = &a.knobs.v[i];
        struct str out = {0};
        const char *v = k->values[draw_below(d, k->name, i, k->n)];
        if (annot_set_knob(str_c(text), text->len, k->name, v, &out, NULL) == 0) {
            str_free(text);
            *text = out;
        }
    }
    annot_free(&a);
}

// ---- building

static void without_extern_shared(const char *text, struct str *out)
{
    static const char mark[] = "extern __shared__ ";
    for (const char *at; (at = strstr(text, mark)); text = strchr(at, ';') + 1) {
        const char *type = at + sizeof mark - 1, *name = strchr(type, ' '), *end = strchr(type, '[');
        str_addn(out, text, (size_t)(at - text));
        str_addf(out, "%.*s *%.*s = (%.*s *)emu::shared;", (int)(name - type), type, (int)(end - name - 1),
                 name + 1, (int)(name - type), type);
    }
    str_add(out, text);
}

// #undef of each #define, so that the next variant may have its own.
static void undefs(const char *text, struct str *out)
{
    for (const char *at = text; (at = strstr(at, "#define ")); at += 8)
        str_addf(out, "#undef %.*s\n", (int)strcspn(at + 8, " (\n"), at + 8);
}

// The launches of a variant as calls of the emulator.
static void launches(const struct fixture *f, const struct variant *v, const char *space, struct str *out)
{
    struct annots a;
    annot_read(&a, str_c(&v->text), v->text.len, "k.cu", NULL);
    size_t n = a.launches.n ? a.launches.n : f->task.launches.n;
    for (size_t i = 0; i < n; i++) {
        const char *l = a.launches.n ? a.launches.v[i].text : f->task.launches.v[i];
        const char *open = strstr(l, "<<<"), *close = strstr(l, ">>>"), *comma = open + 3;
        for (int depth = 0; comma < close && (*comma != ',' || depth); comma++)
            depth += *comma == '(' ? 1 : *comma == ')' ? -1 : 0;
        // The second and third configuration values go through as they are.
        const char *third = comma + 1;
        for (int depth = 0; third < close && (*third != ',' || depth); third++)
            depth += *third == '(' ? 1 : *third == ')' ? -1 : 0;
        str_addf(out, "    emu::launch(dim3(%.*s), dim3(%.*s), %.*s, %s, [&] { %s::%.*s%s; });\n",
                 (int)(comma - open - 3), open + 3, (int)(third - comma - 1), comma + 1,
                 third < close ? (int)(close - third - 1) : 1, third < close ? third + 1 : "0",
                 strstr(str_c(&v->text), "sync") ? "true" : "false", space, (int)(open - l), l, close + 3);
    }
    annot_free(&a);
}

// Scratch buffers, full of nothing that means anything.
static void scratch(const struct variant *v, struct str *out)
{
    struct annots a;
    annot_read(&a, str_c(&v->text), v->text.len, "k.cu", NULL);
    for (size_t i = 0; i < a.scratch.n; i++) {
        const char *x = a.scratch.v[i].text, *open = strchr(x, '['), *close = strrchr(x, ']');
        int n = (int)strcspn(x, " ");
        str_addf(out, "    static float scratch_%zu[100000]; float *%.*s = scratch_%zu;\n", i, n, x, i);
        str_addf(out, "    if ((%.*s) > 100000) abort();\n", (int)(close - open - 1), open + 1);
        str_addf(out, "    memset(scratch_%zu, 0x5a, sizeof scratch_%zu);\n", i, i);
    }
    annot_free(&a);
}

static void arguments(const struct task *t, struct str *out)
{
    for (size_t i = 0; i < t->args.n; i++) {
        const struct task_arg *a = &t->args.v[i];
        const char *type = dtype_info(a->type)->c_names[0];
        str_addf(out,
                 a->dir <= ARG_INOUT ? "    %s *%s = (%s *)args_[%zu]; (void)%s;\n"
                                     : "    %s %s = *(%s *)args_[%zu]; (void)%s;\n",
                 type, a->name, type, i, a->name);
    }
}

static void *build(const struct fixture *f)
{
    struct str cpp = {0}, log = {0};
    struct err e = {0};
    str_add(&cpp, "#include \"emu.h\"\n");
    for (size_t i = 0; i < f->n; i++) {
        char space[32];
        snprintf(space, sizeof space, "v%zu", i);
        str_addf(&cpp, "namespace %s {\n", space);
        without_extern_shared(str_c(&f->v[i].text), &cpp);
        str_addf(&cpp,
                 "}\nextern \"C\" int run_%zu(void **args_, int backwards) {\n    emu::backwards = "
                 "backwards;\n    emu::refused = false;\n",
                 i);
        arguments(&f->task, &cpp);
        scratch(&f->v[i], &cpp);
        launches(f, &f->v[i], space, &cpp);
        str_add(&cpp, "    return emu::refused;\n}\n");
        undefs(str_c(&f->v[i].text), &cpp);
        if (i && f->v[i].turned) // the same text but for numbers
            continue;
        str_addf(&all_cu, "namespace k%d_%zu {\n%s}\n", made, i, str_c(&f->v[i].text));
        undefs(str_c(&f->v[i].text), &all_cu);
        compiled++;
    }
    char *file = io_join(dir, "k.cpp"), *so = xasprintf("%s/k%d.so", dir, made++), *inc = NULL;
    CHECK_INT(io_write_file(file, str_c(&cpp), cpp.len, 0600, &e), 0);
    char cwd[4096];
    inc = xasprintf("-I%s/tests/cuda", getcwd(cwd, sizeof cwd) ? cwd : ".");
    char *stub = xasprintf("-I%s", dir);
    const char *argv[] = {"g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fno-strict-aliasing",
                          inc,   stub,         "-o",  so,   file,      NULL};
    struct proc_spec spec = {.argv = argv, .in = -1, .out = -1, .err = -1};
    struct proc_end end = {0};
    void *lib = NULL;
    if (proc_run(&spec, &log, 3000, 120000, &end, &e) == 0 && end.status == 0)
        lib = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        printf("# does not build: %s%s\n# %s\n", log.len ? str_c(&log) : e.msg, log.len ? "" : dlerror(),
               str_c(&cpp));
    CHECK(lib != NULL);
    unlink(so);
    free(file);
    free(so);
    free(inc);
    free(stub);
    str_free(&cpp);
    str_free(&log);
    return lib;
}

// ---- running

static double value_of(const struct task_arg *a, const void *p, size_t i)
{
    switch (a->type) {
    case DT_F32:
        return ((const float *)p)[i];
    case DT_BF16: {
        uint32_t u = (uint32_t)((const uint16_t *)p)[i] << 16;
        float v;
        memcpy(&v, &u, 4);
        return (double)v;
    }
    case DT_I32:
        return ((const int *)p)[i];
    default:
        return ((const unsigned char *)p)[i];
    }
}

static void set_value(const struct task_arg *a, void *p, size_t i, int v)
{
    float x = (float)v;
    uint32_t u;
    memcpy(&u, &x, 4);
    switch (a->type) {
    case DT_F32:
        ((float *)p)[i] = x;
        break;
    case DT_BF16:
        ((uint16_t *)p)[i] = (uint16_t)(u >> 16);
        break;
    case DT_I32:
        ((int *)p)[i] = v;
        break;
    default:
        ((unsigned char *)p)[i] = (unsigned char)(v & 15);
    }
}

struct buffers {
    char *whole[16];
    void *p[16];
    int64_t n[16];
    size_t bytes[16];
};

// Buffers of one shape, with room on both sides; where the task promises no alignment they are one element
// off.
static void fill(const struct fixture *f, const struct task_shape *shape, struct buffers *b)
{
    for (size_t i = 0; i < f->task.args.n; i++) {
        const struct task_arg *a = &f->task.args.v[i];
        size_t size = (size_t)dtype_info(a->type)->size;
        b->n[i] = 1;
        if (a->dir <= ARG_INOUT)
            task_elements(&f->task, a, shape->dims, &b->n[i], NULL);
        b->bytes[i] = (size_t)b->n[i] * size + 2 * PAD * size + 32;
        b->whole[i] = aligned_alloc(64, (b->bytes[i] + 63) / 64 * 64);
        memset(b->whole[i], 0x5a, b->bytes[i]);
        b->p[i] = b->whole[i] + (PAD + (a->align < 16 && a->dir <= ARG_INOUT ? 1 : 0)) * size;
        if (a->dir == ARG_DIM)
            *(int *)b->p[i] = (int)shape->dims[a->dim];
        else if (a->dir == ARG_VAL)
            *(float *)b->p[i] = (float)a->value;
        else if (a->dir != ARG_OUT)
            for (int64_t k = 0; k < b->n[i]; k++)
                set_value(a, b->p[i], (size_t)k, (int)((k * 7 + k / 5 + (int64_t)i) % 9) - 3);
    }
}

static void buffers_free(struct buffers *b)
{
    for (size_t i = 0; i < countof(b->whole); i++)
        free(b->whole[i]);
}

static bool same(const struct task_arg *a, const struct buffers *x, const struct buffers *y, size_t i)
{
    double top = 0;
    for (int64_t k = 0; k < x->n[i]; k++)
        top = fmax(top, fabs(value_of(a, x->p[i], (size_t)k)));
    double eps = a->type == DT_BF16 ? 0.01 : a->type == DT_F32 ? 2e-6 : 0;
    for (int64_t k = 0; k < x->n[i]; k++) {
        double u = value_of(a, x->p[i], (size_t)k), v = value_of(a, y->p[i], (size_t)k);
        if (!(fabs(u - v) <= eps * (fabs(u) + top))) {
            printf("# %s[%lld] is %g, was %g\n", a->name, (long long)k, v, u);
            return false;
        }
    }
    size_t from = (size_t)((char *)x->p[i] - x->whole[i]),
           to = from + (size_t)x->n[i] * (size_t)dtype_info(a->type)->size;
    if (memcmp(x->whole[i], y->whole[i], from) != 0 ||
        memcmp(x->whole[i] + to, y->whole[i] + to, x->bytes[i] - to) != 0) {
        printf("# outside %s something was written\n", a->name);
        return false;
    }
    return true;
}

static run_fn *symbol(void *lib, size_t i)
{
    char name[32];
    snprintf(name, sizeof name, "run_%zu", i);
    void *p = dlsym(lib, name);
    run_fn *f;
    memcpy(&f, &p, sizeof f);
    return f;
}

static bool small(const struct fixture *f, const struct task_shape *shape)
{
    for (size_t i = 0; i < f->task.args.n; i++) {
        int64_t n = 0;
        if (f->task.args.v[i].dir <= ARG_INOUT)
            task_elements(&f->task, &f->task.args.v[i], shape->dims, &n, NULL);
        if (n > 20000)
            return false;
    }
    return true;
}

static void compare(const struct fixture *f, void *lib)
{
    for (size_t s = 0; s < f->task.shapes.n; s++) {
        if (!small(f, &f->task.shapes.v[s]))
            continue;
        struct buffers want = {0};
        fill(f, &f->task.shapes.v[s], &want);
        symbol(lib, 0)(want.p, 0);
        for (size_t i = 1; i < f->n * 2; i++) { // the kernel itself backwards, then each variant twice
            struct buffers got = {0};
            fill(f, &f->task.shapes.v[s], &got);
            bool refused = symbol(lib, i / 2)(got.p, (int)(i & 1)) != 0, good = true;
            CHECK(!refused || f->v[i / 2].turned);
            for (size_t k = 0; k < f->task.args.n && good && !refused; k++)
                good = same(&f->task.args.v[k], &want, &got, k);
            buffers_free(&got);
            CHECK(good);
            if (!good) {
                printf("# at %s, %s, by %s:\n%s\n", f->task.shapes.v[s].name,
                       i & 1 ? "backwards" : "forwards", f->v[i / 2].how, str_c(&f->v[i / 2].text));
                buffers_free(&want);
                return;
            }
        }
        buffers_free(&want);
    }
}

// ---- one kernel

static void add_variant(struct fixture *f, const struct str *text, const char *how)
{
    if (f->n == VARIANTS)
        return;
    struct variant *v = &f->v[f->n++];
    str_addn(&v->text, text->s, text->len);
    v->how = xstrdup(how);
}

// Applies the words of a recipe; a word "!rule" must refuse. The result, and two turns of its knobs, are
// variants.
static void cook(struct fixture *f, const struct kernel *k, const char *func, const char *recipe)
{
    struct str text = {0};
    char *words = xstrdup(recipe), *save = NULL, why[320];
    str_add(&text, str_c(&f->v[0].text));
    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        bool refuse = *w == '!', ok = rewrite(f, func, w + refuse, &text, why);
        if (ok == refuse)
            printf("# %s: %s %s: %s\n%s\n", k->name, w + refuse, ok ? "applies" : "refuses", why,
                   str_c(&text));
        CHECK(ok != refuse);
    }
    free(words);
    add_variant(f, &text, recipe);
    for (uint64_t i = 0; i < 2; i++) {
        turn_knobs(&text, (struct draw){7, i * 100 + f->n});
        add_variant(f, &text, recipe);
        f->v[f->n - 1].turned = true;
    }
    str_free(&text);
}

static const struct kernel *current;

static void rules_keep_the_meaning(void)
{
    struct fixture f = {0};
    if (!task_of(current, &f.task)) {
        CHECK(!"the task is read");
        return;
    }
    struct str text = {0};
    struct err e = {0};
    char *file = current->source ? NULL : io_join(current->name, f.task.kernel_file);
    if (file)
        CHECK_INT(io_read_file(file, 1 << 20, &text, &e), 0);
    else
        str_add(&text, current->source);
    free(file);
    add_variant(&f, &text, "nothing");
    str_free(&text);
    for (size_t i = 0; i < countof(current->recipes) && current->recipes[i]; i++)
        cook(&f, current, f.task.kernel_func, current->recipes[i]);
    void *lib = build(&f);
    if (lib) {
        compare(&f, lib);
        dlclose(lib);
    }
    for (size_t i = 0; i < f.n; i++) {
        str_free(&f.v[i].text);
        free(f.v[i].how);
    }
    task_free(&f.task);
}

static void nvcc_takes_them_all(void)
{
    struct err e = {0};
    struct str text = {0}, log = {0};
    char *file = io_join(dir, "all.cu"), *out = io_join(dir, "all.cubin");
    str_addf(&text, "#include <cuda_bf16.h>\n#include <math.h>\n%s", str_c(&all_cu));
    CHECK_INT(io_write_file(file, str_c(&text), text.len, 0600, &e), 0);
    const char *argv[] = {"nvcc", "-cubin", "-arch=sm_90", "-o", out, file, NULL};
    struct proc_spec spec = {.argv = argv, .in = -1, .out = -1, .err = -1};
    struct proc_end end = {0};
    CHECK(proc_run(&spec, &log, 8000, 280000, &end, &e) == 0 && end.status == 0);
    if (end.status || strstr(str_c(&log), "error"))
        printf("# %s %s\n", str_c(&log), e.msg);
    printf("# %d kernels\n", compiled);
    str_free(&log);
    str_free(&text);
    unlink(out);
    free(file);
    free(out);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    if (!mkdtemp(dir))
        return 1;
    // Kernels include it; the emulation has its own.
    char *stub = io_join(dir, "cuda_bf16.h");
    io_write_file(stub, "#pragma once\n", 13, 0600, &e);
    free(stub);
    for (size_t i = 0; i < kernels_n; i++) {
        current = &kernels[i];
        // Without a word, only some: all of them take a minute. "all", or part of a name, chooses others.
        bool chosen = argc > 1 ? str_eq(argv[1], "all") || strstr(current->name, argv[1]) : i % 7 == 2;
        if (!chosen)
            continue;
        printf("# %s\n", current->name);
        T(rules_keep_the_meaning);
    }
    if (argc < 2)
        SKIP("nvcc_takes_them_all", "tests/cases/cuda_rules.test does it");
    else if (system("nvcc --version >/dev/null 2>&1") == 0)
        T(nvcc_takes_them_all);
    else
        SKIP("nvcc_takes_them_all", "there is no nvcc");
    str_free(&all_cu);
    io_remove(dir, NULL);
    T_END;
}
