// ksmith check: proves the task itself before a second is spent on it.
#include "cmd/cmd.h"
#include "cmd/show_text.h"
#include "evolve/oneshot.h"

#include <unistd.h>

static void progress(void *user, const json *ev)
{
    (void)user;
    if (!isatty(STDERR_FILENO) || !json_has(ev, "what"))
        return;
    fprintf(stderr, "\r\033[K%s %lld/%lld", json_str_or(ev, "what", ""), (long long)json_int(ev, "done", 0),
            (long long)json_int(ev, "of", 0));
}

static void print_list(const json *list, const char *head)
{
    for (const json *p = json_first(list); p; p = json_next(p)) {
        printf("%s: %s\n", head, json_string(p) ? json_string(p) : json_str_or(p, "msg", "?"));
        if (json_str(p, "hint") && *json_str(p, "hint"))
            printf("  %s\n", json_str(p, "hint"));
    }
}

static void print_shapes(const json *shapes)
{
    if (!json_first(shapes))
        return;
    printf("%-12s %12s %10s %10s %9s\n", "shape", "time", "GB/s", "GFLOP/s", "ceiling");
    for (const json *x = json_first(shapes); x; x = json_next(x)) {
        char time[32];
        show_time(time, sizeof time, json_num(x, "time_ns", 0));
        printf("%-12s %12s", json_str_or(x, "name", "?"), time);
        double rate[] = {json_num(x, "bytes_s", 0) * 1e-9, json_num(x, "flops_s", 0) * 1e-9};
        for (int i = 0; i < 2; i++)
            if (rate[i] > 0)
                printf(" %10.3g", rate[i]);
            else
                printf(" %10s", "-");
        if (json_num(x, "ceiling_pct", 0) > 0)
            printf(" %8.1f%%", json_num(x, "ceiling_pct", 0));
        putchar('\n');
    }
}

static int report(const struct task *t, const json *opened, const json *ev)
{
    printf("task %s: %s in %s\n", t->name, t->kernel_func, t->kernel_file);
    printf("machine: %s, %s%s%s\n", json_str_or(opened, "device", "?"), json_str_or(opened, "compiler", "?"),
           json_bool(opened, "protected", true) ? "" : "; UNPROTECTED: ",
           json_bool(opened, "protected", true) ? "" : json_str_or(opened, "why", ""));
    print_shapes(json_get(ev, "shapes"));
    if (json_has(ev, "floor"))
        printf("identical code differs by up to %.2f %% here (A/A floor)\n", 100 * json_num(ev, "floor", 0));
    print_list(json_get(ev, "warnings"), "warning");
    print_list(json_get(ev, "problems"), "problem");
    bool ok = json_bool(ev, "ok", false);
    puts(ok ? "The task is sound: the baseline passes, and what must fail fails." : "The task is not sound.");
    return ok ? 0 : ERR_FAIL;
}

static int run(struct args *a)
{
    struct task t;
    err_list errors = {0};
    struct err e = {0};
    size_t n;
    const char **set = args_values(a, "set", &n);
    int status = ERR_FAIL;
    struct oneshot *o = NULL;
    char *baseline = NULL;
    if (task_load(a->dir, set, n, &t, &errors) < 0) {
        status = cmd_fail_list(&errors);
    } else if (!(baseline = oneshot_baseline(&t, &e)) ||
               !(o = oneshot_open(&t, set, n, args_flag(a, "trust"), &e))) {
        status = cmd_fail(&e);
    } else {
        json *request = json_object();
        json_put_str(request, "op", "preflight");
        json_put_str(request, "source", baseline);
        json_put(request, "flags", json_array());
        json *ev = oneshot_ask(o, request, "preflight", progress, NULL, &e);
        if (isatty(STDERR_FILENO))
            fputs("\r\033[K", stderr);
        if (!ev) {
            status = cmd_fail(&e);
        } else if (args_flag(a, "json")) {
            show_json(ev);
            status = json_bool(ev, "ok", false) ? 0 : ERR_FAIL;
        } else {
            status = report(&t, oneshot_opened(o), ev);
        }
        json_free(request);
        json_free(ev);
    }
    oneshot_close(o);
    free(baseline);
    free(set);
    task_free(&t);
    vec_free(&errors);
    return status;
}

static const struct opt opts[] = {OPT_TRUST, OPT_JSON, OPT_SET, OPT_END};

const struct cmd cmd_check = {
    .name = "check",
    .args = "[DIR]",
    .help = "prove the task itself: oracle, probes that must fail, noise floor, ceilings",
    .group = "start",
    .takes_dir = true,
    .opts = opts,
    .run = run,
};
