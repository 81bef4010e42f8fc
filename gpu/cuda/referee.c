#include "cuda/referee.h"

#include "base/hash.h"
#include "base/io.h"
#include "cuda/tools.h"
#include "cuda/verify.h"
#include "worker.h"

#include <stdio.h>
#include <sys/utsname.h>

static void uuid_text(const unsigned char u[16], char out[48])
{
    int n = snprintf(out, 48, "GPU-");
    for (int i = 0; i < 16; i++)
        n += snprintf(out + n, (size_t)(48 - n), "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                      u[i]);
}

static json *environment(const struct device *d, const char *uuid, const char *compiler, char id[17])
{
    const struct card_facts *f = &d->facts;
    json *o = json_object();
    struct utsname u;
    struct str s = {0};
    char hex[65];
    json_put_str(o, "gpu", f->name);
    json_put_str(o, "uuid", uuid);
    json_put_str(o, "driver", f->driver);
    json_put_int(o, "driver_api", f->driver_version);
    json_put_str(o, "compiler", compiler);
    json_put_int(o, "sms", f->sms);
    json_put_int(o, "l2_bytes", f->l2_bytes);
    json_put_int(o, "clock_khz", f->clock_khz);
    if (uname(&u) == 0)
        json_put_str(o, "kernel", u.release);
    json_print(o, &s);
    sha256_hex(str_c(&s), s.len, hex);
    snprintf(id, 17, "%.16s", hex);
    str_free(&s);
    return o;
}

static int open_device(struct judge *j, json *opened, struct err *e)
{
    struct device *d = xcalloc(1, sizeof *d);
    j->device = d;
    judge_cores(j);
    if (device_open(d, j, e) < 0)
        return -1;
    char uuid[48], id[17];
    uuid_text(d->facts.uuid, uuid);
    if (lease_open(&j->lease, uuid, e) < 0)
        return -1;
    j->llc_bytes = (size_t)d->facts.l2_bytes;
    j->why[0] = 0;
    j->is_protected = !d->facts.pageable;
    if (!j->is_protected)
        snprintf(j->why, sizeof j->why,
                 "this driver lets kernels reach ordinary host memory (HMM): expected values are not out of "
                 "reach");
    json *env = environment(d, uuid, shop_version(d->shop), id);
    json_put_str(opened, "device", d->facts.name);
    json_put_str(opened, "compiler", shop_version(d->shop));
    json_put_str(opened, "fingerprint", id);
    json_put(opened, "env", env);
    return 0;
}

static void close_device(struct judge *j)
{
    if (j->device) {
        device_close(j->device);
        free(j->device);
    }
}

static bool build(struct judge *j, const json *request, struct entry *out, struct str *log, struct fault *f)
{
    struct device *d = j->device;
    const char *flags[64], *source = json_str(request, "source");
    size_t n = judge_flags(request, flags), shapes = 0;
    const int64_t *dims[256];
    const struct gpu_kernel *k = NULL;
    struct err e = {0};
    struct str why = {0};
    bool rejected = false;
    *out = (struct entry){.id = json_int(request, "id", -1),
                          .by_model = str_eq(json_str(request, "by"), "model"),
                          .approved = json_bool(request, "approved", false)};
    if (!source)
        return fault_set(f, STATUS_TROUBLE, "the request has no source");
    // The hidden shapes are as good as the task's own for limits, but identities must not depend on them.
    for (size_t i = 0; i < j->task.shapes.n && shapes < 256; i++)
        dims[shapes++] = j->task.shapes.v[i].dims;
    int r = shop_build(d->shop, source, flags, n, dims, shapes, &k, log, &why, &rejected, &e);
    if (r > 0)
        fault_set(f, rejected ? STATUS_REJECTED : STATUS_COMPILE_ERROR, "%.460s", str_c(&why));
    else if (r < 0)
        fault_set(f, STATUS_TROUBLE, "%s %s", e.msg, e.hint);
    if (r == 0) {
        out->binary.device = k;
        out->binary.flop_rate = k->compute == 4   ? 0
                                : k->compute == 3 ? 2
                                                  : 1; // tensor cores, pairs of halves
        memcpy(out->binary.id, k->id, sizeof out->binary.id);
    }
    str_free(&why);
    return r == 0;
}

static void facts(struct judge *j, const struct entry *e, json *out)
{
    const struct gpu_kernel *k = e->binary.device;
    (void)j;
    json *o = json_object(), *s = json_object();
    int registers = 0, shared = 0, stack = 0, spills = 0;
    for (size_t i = 0; i < k->reports.n; i++) {
        const struct kernel_report *r = &k->reports.v[i];
        registers = r->registers > registers ? r->registers : registers;
        shared = r->shared_bytes > shared ? r->shared_bytes : shared;
        stack = r->stack_bytes > stack ? r->stack_bytes : stack;
        spills += r->spill_stores + r->spill_loads;
    }
    json_put_int(o, "memory", k->memory);
    json_put_int(o, "compute", k->compute);
    json_put_int(o, "parallel", k->parallel);
    json_put(out, "features", o);
    json_put_int(s, "registers", registers);
    json_put_int(s, "shared_bytes", shared);
    json_put_int(s, "stack_bytes", stack);
    json_put_int(s, "spill_bytes", spills);
    json_put_int(s, "launches", (int64_t)k->plan.launches.n);
    json_put_int(s, "code_bytes", (int64_t)k->cubin.code_bytes);
    json_put(out, "static", s);
}

int cuda_referee(void)
{
    static const struct judge_ops ops = {.open = open_device,
                                         .close = close_device,
                                         .build = build,
                                         .facts = facts,
                                         .smoke = cuda_smoke,
                                         .check = cuda_check,
                                         .replicate = cuda_replicate,
                                         .baseline_right = cuda_baseline_right,
                                         .baseline_times = cuda_baseline_times,
                                         .ceilings = cuda_ceilings,
                                         .promote = tools_sanitize,
                                         .profile = tools_profile,
                                         .assembly = tools_assembly,
                                         .stand_in = cuda_stand_in};
    struct judge j = {.ops = &ops, .unit = "GPU", .slow_s = 0.01, .copy_slack = 1.03};
    return judge_main(&j);
}
