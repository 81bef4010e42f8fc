// ksmith try: the full verdict of one kernel file, with an exit status; --watch judges it again at each save.
#include "base/clock.h"
#include "base/io.h"
#include "cmd/cmd.h"
#include "cmd/show_text.h"
#include "evolve/oneshot.h"
#include "evolve/prepare.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

struct attempt {
    struct args *a;
    struct task t;
    struct oneshot *o;
    char *baseline;
    int64_t id;
};

static void stages(void *user, const json *ev)
{
    struct attempt *x = user;
    if (!isatty(STDERR_FILENO) || args_flag(x->a, "json"))
        return;
    const char *stage = json_str(ev, "stage");
    if (stage || json_has(ev, "what"))
        fprintf(stderr, "\r\033[K%s ...", stage ? stage : json_str(ev, "what"));
}

static json *with_source(const char *text, const json *flags)
{
    json *o = json_object();
    json_put_int(o, "id", 0);
    json_put_str(o, "source", text);
    json_put(o, "flags", json_copy(flags));
    return o;
}

static json *rejected(const char *status, const char *reason)
{
    json *ev = json_object();
    json_put_str(ev, "ev", "verdict");
    json_put_str(ev, "status", status);
    json_put_str(ev, "stage", "scan");
    json_put_str(ev, "reason", reason);
    return ev;
}

// The verdict, or NULL and an error.
static json *judge(struct attempt *x, const char *text, struct err *e)
{
    struct prepared p, base;
    prepare(&x->t, x->baseline, text, strlen(text), &p);
    prepare(&x->t, x->baseline, x->baseline, strlen(x->baseline), &base);
    json *ev = NULL;
    if (p.result == PREPARE_REJECTED) {
        ev = rejected("rejected", str_c(&p.reason));
    } else {
        json *flags = prepared_flags(&p), *base_flags = prepared_flags(&base),
             *request = with_source(text, flags);
        json_put_str(request, "op", "judge");
        json_put_str(request, "by", "human");
        json_put_str(request, "until", "race");
        json_put(request, "incumbent", with_source(x->baseline, base_flags));
        ev = oneshot_ask(x->o, request, "verdict", stages, x, e);
        json_free(request);
        json_free(flags);
        json_free(base_flags);
    }
    prepared_free(&p);
    prepared_free(&base);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    return ev;
}

// Exit status: 0 correct (and with --faster proven faster), 1 not.
static int once(struct attempt *x, const char *path)
{
    struct str text = {0};
    struct err e = {0};
    if (io_read_file(path, 4 << 20, &text, &e) < 0) {
        str_free(&text);
        return cmd_fail(&e);
    }
    json *ev = judge(x, str_c(&text), &e);
    str_free(&text);
    if (!ev)
        return cmd_fail(&e);
    if (args_flag(x->a, "json"))
        show_json(ev);
    else
        show_verdict(ev, stdout);
    fflush(stdout);
    bool ok = str_eq(json_str(ev, "status"), "ok") &&
              (!args_flag(x->a, "faster") || json_bool(ev, "faster", false));
    json_free(ev);
    return ok ? 0 : ERR_FAIL;
}

static int64_t stamp(const char *path)
{
    struct stat st;
    return stat(path, &st) < 0 ? 0
                               : (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec + st.st_size;
}

static int watch(struct attempt *x, const char *path)
{
    int64_t last = 0;
    for (int status = 0;; clock_sleep_ms(200)) {
        sigset_t pending;
        if (sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM)))
            return status;
        int64_t now = stamp(path);
        // An editor that replaces the file leaves a moment without one.
        if (!now || now == last)
            continue;
        last = now;
        status = once(x, path);
        if (!args_flag(x->a, "json"))
            printf("-- waiting for %s to change; Ctrl-C ends\n", path);
        fflush(stdout);
    }
}

static int preflight(struct attempt *x, struct err *e)
{
    json *request = json_object();
    json_put_str(request, "op", "preflight");
    json_put_str(request, "source", x->baseline);
    json_put(request, "flags", json_array());
    json *ev = oneshot_ask(x->o, request, "preflight", stages, x, e);
    json_free(request);
    if (!ev)
        return -1;
    bool ok = json_bool(ev, "ok", false);
    const json *p = json_first(json_get(ev, "problems"));
    if (!ok)
        err_set(e, ERR_FAIL, "`ksmith check` shows all.", "the task is not sound: %s",
                json_str_or(p, "msg", "?"));
    json_free(ev);
    return ok ? 0 : -1;
}

static int run(struct args *a)
{
    struct attempt x = {.a = a};
    err_list errors = {0};
    struct err e = {0};
    size_t n;
    const char **set = args_values(a, "set", &n);
    int status;
    if (task_load(a->dir, set, n, &x.t, &errors) < 0)
        status = cmd_fail_list(&errors);
    else if (!io_exists(a->pos[0]))
        status = cmd_fail(
            (err_set(&e, ERR_USAGE, "Name a whole kernel file.", "there is no file %s", a->pos[0]), &e));
    else if (!(x.baseline = oneshot_baseline(&x.t, &e)) ||
             !(x.o = oneshot_open(&x.t, set, n, args_flag(a, "trust"), &e)) || preflight(&x, &e) < 0)
        status = cmd_fail(&e);
    else
        status = args_flag(a, "watch") ? watch(&x, a->pos[0]) : once(&x, a->pos[0]);
    oneshot_close(x.o);
    free(x.baseline);
    free(set);
    task_free(&x.t);
    vec_free(&errors);
    return status;
}

static const struct opt opts[] = {{"watch", NULL, "judge it again each time it is saved"},
                                  {"faster", NULL, "exit status 0 only where it is proven faster too"},
                                  OPT_TRUST,
                                  OPT_JSON,
                                  OPT_SET,
                                  OPT_END};

const struct cmd cmd_try = {
    .name = "try",
    .args = "[DIR] FILE",
    .help = "the full verdict of one kernel file against the baseline; exit status 1 where it is refused",
    .group = "start",
    .min = 1,
    .max = 1,
    .takes_dir = true,
    .opts = opts,
    .complete = "file",
    .run = run,
};
