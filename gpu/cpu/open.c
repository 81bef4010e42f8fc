// Opening a task: what it says, its shapes and hidden shapes, and the device's own part.
#include "cpu/judge.h"

#include "base/draw.h"
#include "base/io.h"
#include "cpu/sandbox.h"
#include "worker.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The last level cache that one core sees. A virtual machine's sysconf may tell the host's sum instead.
static size_t last_level_cache(void)
{
    struct str text = {0};
    size_t kib = 0;
    if (io_read_file("/sys/devices/system/cpu/cpu0/cache/index3/size", 64, &text, NULL) == 0)
        kib = strtoul(text.s, NULL, 10);
    str_free(&text);
    long llc = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (kib)
        return kib << 10;
    return llc > 0 ? (size_t)llc : (size_t)32 << 20;
}

void judge_cores(struct judge *j)
{
    int cpus[256], n = io_cpus(cpus, 256);
    struct sandbox_support s;
    sandbox_support(&s);
    j->child_cpu = n > 1 ? cpus[n - 1] : -1;
    j->is_protected = n > 1 && s.full;
    if (n < 2)
        snprintf(j->why, sizeof j->why, "unprotected timing: only one core, so judge and kernel share it");
    else if (!s.full)
        snprintf(j->why, sizeof j->why, "%.150s", s.why);
    if (n > 1) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)cpus[0], &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    j->llc_bytes = last_level_cache();
}

size_t judge_flags(const json *request, const char *out[64])
{
    size_t n = 0;
    for (const json *x = json_first(json_get(request, "flags")); x && n < 64; x = json_next(x))
        if (json_string(x))
            out[n++] = json_string(x);
    return n;
}

static void judge_close(struct judge *j)
{
    for (size_t i = 0; i < j->test.n; i++) {
        shape_data_free(j->test.v[i]);
        free(j->test.v[i]);
    }
    for (size_t i = 0; i < j->bench.n; i++) {
        shape_data_free(j->bench.v[i]);
        free(j->bench.v[i]);
    }
    for (size_t i = 0; i < j->n_hidden; i++)
        task_shape_free(&j->hidden[i]);
    vec_free(&j->test);
    vec_free(&j->bench);
    free(j->hidden);
    if (j->ops->close)
        j->ops->close(j);
    compiler_close(j->compiler);
    lease_close(j->lease);
    json_free(j->binaries);
    free(j->samples);
    task_free(&j->task);
    *j = (struct judge){.ops = j->ops, .unit = j->unit, .slow_s = j->slow_s, .copy_slack = j->copy_slack};
}

static int add_shape(struct judge *j, const struct task_shape *shape, bool bench, struct err *e)
{
    struct shape_data *s = xcalloc(1, sizeof *s);
    if (shape_data_init(s, &j->task, &j->buffers, shape, e) < 0) {
        free(s);
        return -1;
    }
    if (bench)
        vec_push(&j->bench, s);
    else
        vec_push(&j->test, s);
    return 0;
}

static int by_size(const void *a, const void *b)
{
    const struct shape_data *x = *(struct shape_data *const *)a, *y = *(struct shape_data *const *)b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int open_shapes(struct judge *j, struct err *e)
{
    if (buffers_of(&j->task, &j->buffers, e) < 0)
        return -1;
    task_hidden_shapes(&j->task, draw_secret(), &j->hidden, &j->n_hidden);
    for (size_t i = 0; i < j->task.shapes.n; i++) {
        const struct task_shape *s = &j->task.shapes.v[i];
        if ((s->test && add_shape(j, s, false, e) < 0) || (s->bench && add_shape(j, s, true, e) < 0))
            return -1;
    }
    for (size_t i = 0; i < j->n_hidden; i++)
        if (add_shape(j, &j->hidden[i], false, e) < 0)
            return -1;
    qsort(j->test.v, j->test.n, sizeof *j->test.v, by_size);
    return 0;
}

static bool load_task(struct judge *j, const json *request)
{
    VEC(const char *) set = {0};
    err_list errors = {0};
    for (const json *x = json_first(json_get(request, "set")); x; x = json_next(x))
        vec_push(&set, json_string(x));
    int r = task_load(json_str_or(request, "dir", "."), set.v, set.n, &j->task, &errors);
    if (r < 0 && errors.n)
        worker_error(&errors.v[0]);
    vec_free(&set);
    vec_free(&errors);
    return r == 0;
}

static void judge_open(void *user, const json *request)
{
    struct judge *j = user;
    struct err e = {0};
    judge_close(j);
    if (!load_task(j, request))
        return;
    const json *known = json_get(request, "binaries");
    j->binaries = known ? json_copy(known) : json_object();
    j->samples = json_str(request, "samples") ? xstrdup(json_str(request, "samples")) : NULL;
    json *o = json_object();
    json_put_str(o, "ev", "opened");
    if (open_shapes(j, &e) < 0 || compiler_open(&j->task, &j->compiler, &e) < 0 ||
        j->ops->open(j, o, &e) < 0) {
        json_free(o);
        worker_error(&e);
        return;
    }
    json_put_bool(o, "protected", j->is_protected);
    json_put_str(o, "why", j->why);
    worker_send(o);
}

static void judge_preflight(void *user, const json *request)
{
    struct judge *j = user;
    struct err e = {0};
    if (!j->compiler) {
        err_set(&e, ERR_USAGE, "Send open first.", "no task is open");
        worker_error(&e);
        return;
    }
    preflight_run(j, request);
}

int judge_main(struct judge *j)
{
    static const struct worker_verb verbs[] = {{"open", judge_open},        {"preflight", judge_preflight},
                                               {"judge", judge_verdict},    {"rejudge", judge_verdict},
                                               {"anchor", judge_anchor},    {"profile", judge_profile},
                                               {"assembly", judge_assembly}};
    int status = worker_run(verbs, countof(verbs), j);
    judge_close(j);
    return status;
}
