// ksmith-cpu: the referee for C kernels. Speaks the worker protocol (ksmith-worker(7)); with --probe it tries
// to break its own protections; with --child it is the cage that a kernel runs in.
#include "cpu/judge.h"

#include "cpu/assembly.h"
#include "cpu/child.h"
#include "cpu/features.h"
#include "cpu/fingerprint.h"
#include "cpu/probe.h"

#include <stdio.h>

static bool build(struct judge *j, const json *request, struct entry *out, struct str *log, struct fault *f)
{
    const char *flags[64], *source = json_str(request, "source");
    size_t n = judge_flags(request, flags);
    struct err e = {0};
    struct str why = {0};
    struct binary_facts facts = {0};
    *out = (struct entry){.id = json_int(request, "id", -1),
                          .by_model = str_eq(json_str(request, "by"), "model"),
                          .approved = json_bool(request, "approved", false)};
    if (!source)
        return fault_set(f, STATUS_TROUBLE, "the request has no source");
    int r = compiler_build(j->compiler, source, flags, n, &out->binary, log, &e);
    if (r > 0)
        return fault_set(f, STATUS_COMPILE_ERROR, "it does not compile");
    if (r < 0)
        return fault_set(f, STATUS_TROUBLE, "%s %s", e.msg, e.hint);
    r = compiler_check_binary(j->compiler, &out->binary, j->task.kernel_func, &facts, &why, &e);
    if (r > 0)
        fault_set(f, STATUS_REJECTED, "%.460s", str_c(&why));
    else if (r < 0)
        fault_set(f, STATUS_TROUBLE, "%s %s", e.msg, e.hint);
    else if (facts.state_bytes > 0)
        r = fault_set(f, STATUS_REJECTED,
                      "keeps %zu bytes of state between calls (a static or global variable)",
                      facts.state_bytes)
                ? 0
                : 1;
    out->binary.flop_rate = 1;
    str_free(&why);
    return r == 0;
}

static void put_features(struct judge *j, const struct entry *e, json *out)
{
    struct features x;
    if (features_of(e->binary.path, j->task.kernel_func, &x, NULL) < 0 || !x.known)
        return;
    json *o = json_object(), *s = json_object();
    json_put_int(o, "vec", x.vec);
    json_put_int(o, "acc", x.acc);
    json_put_int(o, "block", x.block);
    json_put(out, "features", o);
    json_put_int(s, "instructions", x.instructions);
    json_put_int(s, "fma", x.fma);
    json_put_int(s, "loads", x.loads);
    json_put_int(s, "stores", x.stores);
    json_put_int(s, "spills", x.spills);
    json_put_int(s, "code_bytes", x.code_bytes);
    json_put(out, "static", s);
}

static bool assembly(struct judge *j, const struct binary *b, struct str *out, struct fault *f)
{
    struct str listing = {0};
    struct err e = {0};
    (void)j;
    bool ok = features_listing(b->path, &listing, &e) == 0;
#ifdef __x86_64__
    if (ok)
        assembly_x86(str_c(&listing), out);
#else
    if (ok)
        str_addn(out, listing.s, listing.len);
#endif
    str_free(&listing);
    return ok || fault_set(f, STATUS_TROUBLE, "%s %s", e.msg, e.hint);
}

static int open_cpu(struct judge *j, json *opened, struct err *e)
{
    if (lease_open(&j->lease, "cpu", e) < 0)
        return -1;
    judge_cores(j);
    struct fingerprint print;
    json *env = fingerprint_read(j->compiler, &print);
    json_put_str(opened, "device", print.device);
    json_put_str(opened, "compiler", compiler_version(j->compiler));
    json_put_str(opened, "fingerprint", print.id);
    json_put(opened, "env", env);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct judge_ops ops = {.open = open_cpu,
                                         .build = build,
                                         .facts = put_features,
                                         .smoke = check_smoke,
                                         .check = check_all,
                                         .replicate = cpu_replicate,
                                         .baseline_right = cpu_baseline_right,
                                         .baseline_times = cpu_baseline_times,
                                         .ceilings = cpu_ceilings,
                                         .assembly = assembly};
    struct judge j = {.ops = &ops, .unit = "core", .slow_s = 0.2, .copy_slack = 1.5};
    if (argc > 1 && str_eq(argv[1], "--child"))
        child_main(argc, argv);
    if (argc > 1 && str_eq(argv[1], "--probe"))
        return probe_main();
    if (argc > 1) {
        fputs("usage: ksmith-cpu [--probe]\nIt reads requests as JSON lines; see ksmith-worker(7).\n",
              stderr);
        return 2;
    }
    return judge_main(&j);
}
