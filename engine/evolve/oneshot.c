#include "evolve/oneshot.h"

#include "base/io.h"
#include "evolve/loop.h"
#include "evolve/worker.h"

#include <signal.h>

struct oneshot {
    struct loop *loop;
    struct worker *worker;
    const char *want;
    json *answer, *opened;
    oneshot_show *show;
    void *user;
    char failed[600], hint[320];
};

static void on_event(void *user, const json *ev)
{
    struct oneshot *o = user;
    const char *name = json_str_or(ev, "ev", "");
    if (o->want && str_eq(name, o->want)) {
        json_free(o->answer);
        o->answer = json_copy(ev);
        loop_stop(o->loop);
    } else if (str_eq(name, "error")) {
        snprintf(o->failed, sizeof o->failed, "%s", json_str_or(ev, "msg", "the worker failed"));
        snprintf(o->hint, sizeof o->hint, "%s", json_str_or(ev, "hint", ""));
        loop_stop(o->loop);
    } else if (o->show) {
        o->show(o->user, ev);
    }
}

static void on_gone(void *user, const char *why)
{
    struct oneshot *o = user;
    worker_free(o->worker);
    o->worker = NULL;
    snprintf(o->failed, sizeof o->failed, "the worker ended: %s", why);
    loop_stop(o->loop);
}

static void on_signal(void *user, int signal)
{
    struct oneshot *o = user;
    (void)signal;
    snprintf(o->failed, sizeof o->failed, "interrupted");
    loop_stop(o->loop);
}

static const struct worker_ops ops = {on_event, on_gone};

json *oneshot_ask(struct oneshot *o, const json *request, const char *want, oneshot_show *show, void *user,
                  struct err *e)
{
    o->want = want;
    o->show = show;
    o->user = user;
    o->failed[0] = o->hint[0] = 0;
    if (o->worker && worker_request(o->worker, request) == 0)
        loop_run(o->loop);
    else
        snprintf(o->failed, sizeof o->failed, "the worker does not run");
    json *answer = o->answer;
    o->answer = NULL;
    if (!answer)
        err_set(e, ERR_FAIL, o->hint, "%s", o->failed);
    return answer;
}

struct oneshot *oneshot_open(const struct task *t, const char *const *overrides, size_t n, bool trust,
                             struct err *e)
{
    static const int signals[] = {SIGINT, SIGTERM, 0};
    struct oneshot *o = xcalloc(1, sizeof *o);
    char **argv = worker_command(t, trust, e);
    o->loop = loop_new();
    loop_signals(o->loop, signals, on_signal, o);
    if (argv)
        o->worker = worker_start(o->loop, (const char *const *)argv, "/dev/null", &ops, o, e);
    free(argv);
    if (o->worker) {
        json *request = json_object(), *set = json_array();
        json_put_str(request, "op", "open");
        json_put_str(request, "dir", t->dir);
        for (size_t i = 0; i < n; i++)
            json_push(set, json_new_str(overrides[i]));
        json_put(request, "set", set);
        o->opened = oneshot_ask(o, request, "opened", NULL, NULL, e);
        json_free(request);
    }
    if (!o->opened) {
        oneshot_close(o);
        return NULL;
    }
    return o;
}

void oneshot_close(struct oneshot *o)
{
    if (!o)
        return;
    worker_free(o->worker);
    json_free(o->opened);
    json_free(o->answer);
    loop_free(o->loop);
    free(o);
}

const json *oneshot_opened(const struct oneshot *o)
{
    return o->opened;
}

char *oneshot_baseline(const struct task *t, struct err *e)
{
    struct str text = {0};
    char *path = io_join(t->project, t->kernel_file);
    int r = io_read_file(path, 4 << 20, &text, e);
    free(path);
    if (r < 0) {
        str_free(&text);
        return NULL;
    }
    return str_steal(&text);
}
