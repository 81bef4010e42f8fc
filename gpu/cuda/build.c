#include "cuda/build.h"

#include "base/cudaflags.h"
#include "base/hash.h"
#include "base/io.h"
#include "cuda/compile_server.h"

enum { KEEP = 512, STATE_BYTES = 1024, LOG_BYTES = 4096 };

struct made {
    unsigned char key[32];
    bool failed, rejected;
    struct gpu_kernel *kernel;
    char *log, *why;
    uint64_t used;
};

struct build_shop {
    const struct task *task;
    const struct shop_device *device;
    struct compile_server *server;
    char version[64], arch[32];
    VEC(struct made) made;
    uint64_t clock;
    strings include;
};

int shop_open(const struct task *t, const struct shop_device *d, struct build_shop **out, struct err *e)
{
    struct build_shop *s = xcalloc(1, sizeof *s);
    s->task = t;
    s->device = d;
    char *file = io_join(t->project, t->kernel_file), *slash = strrchr(file, '/');
    if (slash)
        *slash = 0;
    vec_push(&s->include, file); // local headers stand beside the kernel
    for (size_t i = 0; i < t->include.n; i++)
        vec_push(&s->include, io_join(t->project, t->include.v[i]));
    if (compile_server_open(&s->include, &s->server, e) < 0) {
        shop_close(s);
        return -1;
    }
    char real[4096];
    const char *name = realpath(compile_server_library(s->server), real) ? strstr(real, ".so.") : NULL;
    snprintf(s->version, sizeof s->version, "NVRTC %.40s", name ? name + 4 : "");
    *out = s;
    return 0;
}

static void kernel_free(struct gpu_kernel *k)
{
    if (!k)
        return;
    for (int i = 0; i < PLAN_MOST; i++)
        free(k->symbol[i]);
    str_free(&k->image);
    cubin_free(&k->cubin);
    plan_free(&k->plan);
    vec_free(&k->reports);
    free(k);
}

static void made_free(struct made *m)
{
    kernel_free(m->kernel);
    free(m->log);
    free(m->why);
}

void shop_close(struct build_shop *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->made.n; i++)
        made_free(&s->made.v[i]);
    vec_free(&s->made);
    for (size_t i = 0; i < s->include.n; i++)
        free(s->include.v[i]);
    vec_free(&s->include);
    compile_server_close(s->server);
    free(s);
}

const char *shop_version(const struct build_shop *s)
{
    return s->version;
}

// ---- options

struct options {
    VEC(const char *) v;
    strings own;
};

static void option(struct options *o, char *text)
{
    vec_push(&o->own, text);
    vec_push(&o->v, text);
}

// Instructions that only the architecture's own target (sm_90a) has.
static bool needs_own_target(const char *source)
{
    static const char *const words[] = {"wgmma", "setmaxnreg", "tcgen05"};
    for (size_t i = 0; i < countof(words); i++)
        if (strstr(source, words[i]))
            return true;
    return false;
}

static void make_options(const struct build_shop *s, const char *source, const char *const *flags, size_t n,
                         struct options *o)
{
    const struct task *t = s->task;
    option(o, xasprintf("--gpu-architecture=sm_%d%d%s", s->device->major, s->device->minor,
                        s->device->major >= 9 && needs_own_target(source) ? "a" : ""));
    static const char *const fixed[] = {"--std=c++17", "--ptxas-options=-v", "-lineinfo"};
    for (size_t i = 0; i < countof(fixed); i++)
        vec_push(&o->v, fixed[i]);
    const char *cuda = compile_server_includes(s->server);
    for (const char *end; (end = strchr(cuda, '\n')) != NULL; cuda = end + 1)
        option(o, xstrndup(cuda, (size_t)(end - cuda)));
    for (size_t i = 0; i < s->include.n; i++)
        option(o, xasprintf("-I%s", s->include.v[i]));
    for (size_t i = 0; i < t->define.n; i++)
        option(o, xasprintf("-D%s", t->define.v[i]));
    for (size_t i = 0; i < t->cflags.n; i++)
        vec_push(&o->v, t->cflags.v[i]);
    for (size_t i = 0; i < n; i++)
        vec_push(&o->v, flags[i]);
}

static void options_free(struct options *o)
{
    for (size_t i = 0; i < o->own.n; i++)
        free(o->own.v[i]);
    vec_free(&o->own);
    vec_free(&o->v);
}

// ---- what the binary says

static bool uses(const struct str *ptx, const char *word)
{
    return ptx->len && memmem(ptx->s, ptx->len, word, strlen(word));
}

static void features(struct gpu_kernel *k, const struct str *ptx)
{
    bool wide = uses(ptx, ".v4.") || uses(ptx, ".v2.b64") || uses(ptx, ".v2.u64") || uses(ptx, ".v2.f64");
    bool shared = uses(ptx, "st.shared") || uses(ptx, "st.volatile.shared");
    k->memory = uses(ptx, "cp.async") ? 4 : shared && wide ? 3 : shared ? 2 : wide ? 1 : 0;
    int most = 0;
    for (size_t i = 0; i < k->reports.n; i++)
        most = k->reports.v[i].registers > most ? k->reports.v[i].registers : most;
    bool tensor = uses(ptx, "mma.sync") || uses(ptx, "wgmma"),
         half = uses(ptx, "f16x2") || uses(ptx, "bf16x2");
    k->compute = tensor ? 4 : half ? 3 : most > 64 ? 2 : most > 32 ? 1 : 0;
    k->parallel = k->plan.launches.n > 1 || uses(ptx, "atom.") || uses(ptx, "red.") ? 3
                  : uses(ptx, "bar.sync") || uses(ptx, "barrier.sync")              ? 2
                  : uses(ptx, "shfl.sync")                                          ? 1
                                                                                    : 0;
}

// Functions outside the kernel that a candidate must not need.
static bool needs_refused(const struct cubin *c, struct str *why)
{
    static const struct {
        const char *name, *words;
    } refused[] = {{"malloc", "allocates memory on the device"},
                   {"free", "frees memory on the device"},
                   {"vprintf", "prints; a kernel only computes"},
                   {"cudaLaunchDevice", "launches kernels of its own"},
                   {"cudaGetParameterBuffer", "launches kernels of its own"}};
    for (size_t i = 0; i < c->needs.n; i++)
        for (size_t k = 0; k < countof(refused); k++)
            if (str_starts(c->needs.v[i], refused[k].name)) {
                str_addf(why, "%s (%s)", refused[k].words, c->needs.v[i]);
                return true;
            }
    if (c->state_bytes > STATE_BYTES) {
        str_addf(why, "keeps %zu bytes of state between calls (__device__ variables); %d are allowed",
                 c->state_bytes, STATE_BYTES);
        return true;
    }
    return false;
}

static int resolve(struct gpu_kernel *k, const json *names, struct str *why)
{
    for (size_t i = 0; i < k->plan.launches.n; i++) {
        const char *name = k->plan.launches.v[i].name, *lowered = json_str(names, name);
        int matches = 0;
        const char *found = cubin_kernel(&k->cubin, lowered ? lowered : name, &matches);
        if (!found) {
            str_addf(why,
                     matches > 1 ? "%s is the name of several kernels; write one of these in the launch:"
                                 : "the launch names %s, and the source has no such kernel, only:",
                     name);
            for (size_t n = 0; n < k->cubin.kernels.n && n < 6; n++)
                str_addf(why, " %s", k->cubin.kernels.v[n]);
            return -1;
        }
        k->symbol[i] = xstrdup(found);
    }
    return 0;
}

static bool scratch_fits(const struct build_shop *s, const struct gpu_kernel *k, const struct plan_at *at,
                         struct str *why)
{
    double bytes = 0, most = (double)s->device->memory / 4;
    for (int i = 0; i < at->nscratch; i++)
        bytes += (double)at->scratch[i] * (double)dtype_info(k->plan.scratch.v[i].type)->size;
    if (bytes > most)
        str_addf(why, "asks for %.3g GB of scratch memory; %.3g GB are allowed", bytes * 1e-9, most * 1e-9);
    return bytes <= most;
}

// Numbers at every shape must be launchable; they are part of the identity too.
static int check_plan(const struct build_shop *s, struct gpu_kernel *k, const int64_t *const *shapes,
                      size_t n, struct str *why)
{
    struct sha256 h;
    struct plan_at at;
    sha256_init(&h);
    sha256_add(&h, k->cubin.code_id, sizeof k->cubin.code_id);
    for (size_t i = 0; i < k->plan.launches.n; i++) {
        const struct plan_launch *l = &k->plan.launches.v[i];
        sha256_add(&h, k->symbol[i], strlen(k->symbol[i]) + 1);
        for (size_t a = 0; a < l->args.n; a++) {
            int key[2] = {(int)l->args.v[a].kind, l->args.v[a].index};
            sha256_add(&h, key, sizeof key);
            sha256_add(&h, &l->args.v[a].value, sizeof(double));
        }
    }
    for (size_t x = 0; x < n; x++) {
        if (plan_eval(&k->plan, s->task, shapes[x], &at, why) < 0 || !scratch_fits(s, k, &at, why))
            return -1;
        for (int i = 0; i < at.n; i++)
            if (plan_fits(&at.launch[i], k->plan.launches.v[i].name, report_find(&k->reports, k->symbol[i]),
                          &s->device->limits, why) < 0)
                return -1;
        for (int i = 0; i < at.n; i++) {
            sha256_add(&h, at.launch[i].grid, sizeof at.launch[i].grid);
            sha256_add(&h, at.launch[i].block, sizeof at.launch[i].block);
            sha256_add(&h, &at.launch[i].shared, sizeof at.launch[i].shared);
        }
        sha256_add(&h, at.scratch, (size_t)at.nscratch * sizeof *at.scratch);
    }
    sha256_end_hex(&h, k->id);
    return 0;
}

// ---- one build

static json *compile(struct build_shop *s, const char *source, const char *const *flags, size_t n,
                     const struct plan *plan, struct str *cubin, struct str *ptx, struct err *e)
{
    struct options o = {0};
    const char *names[PLAN_MOST];
    size_t nnames = 0;
    for (size_t i = 0; plan && i < plan->launches.n; i++)
        if (strchr(plan->launches.v[i].name, '<'))
            names[nnames++] = plan->launches.v[i].name;
    make_options(s, source, flags, n, &o);
    json *a = compile_server_ask(s->server, source, s->task->kernel_file, o.v.v, o.v.n, names, nnames, cubin,
                                 ptx, e);
    options_free(&o);
    return a;
}

// Fills in m; -1: this machine is in trouble.
static int make(struct build_shop *s, const char *source, const char *const *flags, size_t n,
                const int64_t *const *shapes, size_t nshapes, struct made *m, struct err *e)
{
    struct gpu_kernel *k = m->kernel = xcalloc(1, sizeof *k);
    struct str why = {0}, log = {0}, ptx = {0};
    struct err bad = {0};
    int r = 0;
    json *a = NULL;
    m->failed = m->rejected = true;
    for (size_t i = 0; i < n && r == 0; i++)
        if ((r = cudaflags_check(flags[i], s->task->allow_fast_math, &bad)) < 0)
            str_add(&why, bad.msg);
    if (r == 0)
        r = plan_read(&k->plan, s->task, source, &why);
    if (r == 0) {
        a = compile(s, source, flags, n, &k->plan, &k->image, &ptx, &bad);
        const char *text = json_str_or(a, "log", "");
        if (a)
            report_distil(text, strlen(text), LOG_BYTES, &log);
        m->rejected = a && json_int(a, "rc", -1) == 0;
        r = m->rejected ? 0 : -1;
        if (!m->rejected)
            str_add(&why, a ? "it does not compile" : bad.msg);
        if (m->rejected)
            report_parse(text, strlen(text), &k->reports);
    }
    bool trouble = a && json_int(a, "rc", 0) < 0;
    if (trouble)
        err_set(e, ERR_FAIL, "`ksmith doctor` says what is there.", "%.400s", json_str_or(a, "log", "NVRTC"));
    if (r == 0 && cubin_read(k->image.s, k->image.len, &k->cubin, &bad) < 0) {
        str_add(&why, bad.msg);
        r = -1;
    }
    if (r == 0 && !needs_refused(&k->cubin, &why) && resolve(k, json_get(a, "names"), &why) == 0 &&
        check_plan(s, k, shapes, nshapes, &why) == 0) {
        m->failed = false;
        features(k, &ptx);
    }
    m->log = str_steal(&log);
    m->why = str_steal(&why);
    str_free(&ptx);
    json_free(a);
    return trouble ? -1 : 0;
}

static void key_of(const struct build_shop *s, const char *source, const char *const *flags, size_t n,
                   unsigned char key[32])
{
    struct sha256 h;
    sha256_init(&h);
    sha256_add(&h, source, strlen(source) + 1);
    for (size_t i = 0; i < n; i++)
        sha256_add(&h, flags[i], strlen(flags[i]) + 1);
    sha256_add(&h, s->version, sizeof s->version);
    sha256_add(&h, s->device->driver, sizeof s->device->driver);
    sha256_end(&h, key);
}

static struct made *cached(struct build_shop *s, const unsigned char key[32])
{
    for (size_t i = 0; i < s->made.n; i++)
        if (memcmp(s->made.v[i].key, key, 32) == 0) {
            s->made.v[i].used = ++s->clock;
            return &s->made.v[i];
        }
    return NULL;
}

static void forget_oldest(struct build_shop *s)
{
    size_t oldest = 1; // the first is the baseline
    if (s->made.n < KEEP)
        return;
    for (size_t i = 1; i < s->made.n; i++)
        if (s->made.v[i].used < s->made.v[oldest].used)
            oldest = i;
    made_free(&s->made.v[oldest]);
    vec_remove(&s->made, oldest);
}

int shop_build(struct build_shop *s, const char *source, const char *const *flags, size_t n,
               const int64_t *const *shapes, size_t nshapes, const struct gpu_kernel **out, struct str *log,
               struct str *why, bool *rejected, struct err *e)
{
    unsigned char key[32];
    key_of(s, source, flags, n, key);
    struct made *m = cached(s, key);
    if (!m) {
        struct made fresh = {.used = ++s->clock};
        memcpy(fresh.key, key, 32);
        if (make(s, source, flags, n, shapes, nshapes, &fresh, e) < 0) {
            made_free(&fresh);
            return -1;
        }
        if (fresh.failed) {
            kernel_free(fresh.kernel);
            fresh.kernel = NULL;
        }
        forget_oldest(s);
        vec_push(&s->made, fresh);
        m = &s->made.v[s->made.n - 1];
    }
    str_add(log, m->log ? m->log : "");
    str_add(why, m->why ? m->why : "");
    *rejected = m->rejected;
    *out = m->kernel;
    return m->failed;
}

int shop_text(struct build_shop *s, const char *source, const char *name, struct str *image, struct err *e)
{
    char *arch = xasprintf("--gpu-architecture=sm_%d%d", s->device->major, s->device->minor);
    const char *options[] = {arch, "--std=c++17"};
    struct str ptx = {0};
    json *a = compile_server_ask(s->server, source, name, options, countof(options), NULL, 0, image, &ptx, e);
    bool ok = a && json_int(a, "rc", -1) == 0;
    if (a && !ok)
        err_set(e, ERR_FAIL, "", "%s: %.300s", name, json_str_or(a, "log", ""));
    json_free(a);
    free(arch);
    str_free(&ptx);
    return ok ? 0 : -1;
}
