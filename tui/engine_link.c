// The workbench's line to the engine, and its eye on the journal. Without an engine nothing wakes it but the
// journal itself.
#include "tui/app.h"

#include "base/clock.h"
#include "base/io.h"
#include "cmd/client.h"
#include "evolve/server.h"
#include "evolve/steer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { EVENT_MAX = 8 << 20, SLOW_LOOK_MS = 2000, QUICK_LOOK_MS = 30 };

static void drop_requests(struct app *a)
{
    for (size_t i = 0; i < a->requests.n; i++)
        free(a->requests.v[i].what);
    a->requests.n = 0;
}

static void say_answer(struct app *a, const struct request *q, const json *o)
{
    if (json_bool(o, "ok", false))
        app_say(a, SLOT_INFO, "%s: %s", q->what, json_str_or(o, "msg", "done"));
    else
        app_say(a, SLOT_ERROR, "%s  %s", json_str_or(o, "msg", "refused"), json_str_or(o, "hint", ""));
}

static void take_answer(struct app *a, const json *o)
{
    int64_t re = json_int(o, "re", -1);
    for (size_t i = 0; i < a->requests.n; i++) {
        if (a->requests.v[i].re != re)
            continue;
        struct request q = a->requests.v[i];
        vec_remove(&a->requests, i);
        if (q.what)
            say_answer(a, &q, o);
        if (q.fn)
            q.fn(a, q.user, o);
        free(q.what);
        return;
    }
}

static void look(struct app *a)
{
    int r = model_poll(&a->model, &a->fatal);
    if (r < 0) {
        a->status = ERR_FAIL;
        app_leave(a);
        return;
    }
    if (r > 0)
        app_changed(a, MODEL_JOURNAL);
}

static void hang_up(void *user)
{
    struct app *a = user;
    if (!a->lines || a->requests.n)
        return;
    lines_free(a->lines);
    a->lines = NULL;
    a->model.connected = false;
    a->model.held = false;
    app_changed(a, MODEL_LIVE);
}

static void on_line(void *user, json *o)
{
    struct app *a = user;
    if (json_has(o, "ok"))
        take_answer(a, o);
    else {
        model_event(&a->model, o);
        app_changed(a, MODEL_LIVE);
    }
    look(a);
    if (a->serving && !a->requests.n)
        loop_after(a->loop, 0, hang_up, a);
}

static void on_bad(void *user, const char *text, const struct err *e)
{
    (void)text;
    app_say(user, SLOT_WARN, "the engine sent what cannot be read: %s", e->msg);
}

static void reap(void *user)
{
    struct app *a = user;
    lines_free(a->lines);
    a->lines = NULL;
}

static void on_closed(void *user)
{
    struct app *a = user;
    a->model.connected = false;
    json_free(a->model.status);
    a->model.status = NULL;
    if (a->requests.n)
        app_say(a, SLOT_WARN, "the engine ended before it answered; what it acknowledged is kept");
    drop_requests(a);
    loop_after(a->loop, 0, reap, a);
    look(a);
    a->model.held = session_holder(a->model.session.dir, &a->model.holder);
    app_changed(a, MODEL_LIVE);
}

static void on_hello(struct app *a, void *user, const json *answer)
{
    (void)user;
    a->serving = json_bool(answer, "serving", false);
}

static const struct lines_ops ops = {on_line, on_bad, on_closed};

// Who steers, as every command says it; asked of git once, and only when something is steered.
static void sign(struct app *a, json *o)
{
    if (!a->signature) {
        a->signature = json_object();
        client_who(a->signature);
    }
    for (const json *x = json_first(a->signature); x; x = json_next(x))
        json_put(o, json_key(x), json_copy(x));
}

static void transmit(struct app *a, const char *command, json *o, const char *what, answer_fn *fn, void *user)
{
    json_put_str(o, "cmd", command);
    json_put_int(o, "re", ++a->next_re);
    if (what)
        sign(a, o);
    vec_push(&a->requests, ((struct request){a->next_re, what ? xstrdup(what) : NULL, fn, user}));
    lines_send(a->lines, o);
    json_free(o);
}

void link_open(struct app *a)
{
    if (a->model.connected || a->lines)
        return;
    a->tried_ns = clock_ns();
    int fd = server_connect(a->socket);
    a->model.held = session_holder(a->model.session.dir, &a->model.holder);
    if (fd < 0)
        return;
    a->lines = lines_new(a->loop, fd, fd, EVENT_MAX, &ops, a);
    a->model.connected = true;
    a->serving = false;
    transmit(a, "subscribe", json_object(), NULL, on_hello, NULL);
    app_changed(a, MODEL_LIVE);
}

void link_close(struct app *a)
{
    if (a->lines && a->requests.n)
        lines_flush(a->lines, 500);
    lines_free(a->lines);
    a->lines = NULL;
    drop_requests(a);
    json_free(a->signature);
    vec_free(&a->requests);
    if (a->notify >= 0)
        close(a->notify);
}

// ---- the journal

static void on_look(void *user)
{
    struct app *a = user;
    a->notify_timer = 0;
    look(a);
    if (!a->model.connected && clock_ns() - a->tried_ns > (int64_t)RECONNECT_MS * 1000000)
        link_open(a);
    if (a->notify < 0)
        a->notify_timer = loop_after(a->loop, SLOW_LOOK_MS, on_look, a);
}

static void on_notify(void *user, int fd, short revents)
{
    struct app *a = user;
    char buf[4096];
    (void)revents;
    while (read(fd, buf, sizeof buf) > 0)
        ;
    // Several lines come together: one look for all of them.
    if (!a->notify_timer)
        a->notify_timer = loop_after(a->loop, QUICK_LOOK_MS, on_look, a);
}

void link_watch(struct app *a)
{
    a->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (a->notify >= 0 &&
        inotify_add_watch(a->notify, a->model.session.ksmith, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0) {
        close(a->notify);
        a->notify = -1;
    }
    if (a->notify >= 0)
        loop_watch(a->loop, a->notify, POLLIN, on_notify, a);
    else // a folder that cannot be watched (some network file systems): look now and then
        a->notify_timer = loop_after(a->loop, SLOW_LOOK_MS, on_look, a);
}

// ---- steering

static bool can_serve(struct app *a, const char *verb, struct err *e)
{
    struct session_holder h;
    if (session_holder(a->model.session.dir, &h) && !h.here)
        return err_set(e, ERR_FAIL, "Steer it from a login on that machine.",
                       "the engine of this session runs on %s (process %ld)", h.host, h.pid),
               false;
    if (steer_searches(verb))
        return err_set(e, ERR_FAIL, ":run starts it.", "%s needs a running search", verb), false;
    if (!a->w->serve)
        return err_set(e, ERR_FAIL, "", "no engine runs this session"), false;
    return a->w->serve(a->model.session.dir, e) == 0;
}

void link_send(struct app *a, const char *command, json *extra, answer_fn *fn, void *user)
{
    struct err e = {0};
    char verb[32];
    json *o = extra ? extra : json_object();
    snprintf(verb, sizeof verb, "%.*s", (int)strcspn(command, " "), command);
    if (a->w->read_only) {
        app_say(a, SLOT_ERROR, "this workbench was opened read-only");
        json_free(o);
        return;
    }
    if (!a->lines)
        link_open(a);
    if (!a->lines && can_serve(a, verb, &e))
        link_open(a);
    if (!a->lines) {
        app_say(a, SLOT_ERROR, "%s  %s", e.msg[0] ? e.msg : "the engine cannot be reached", e.hint);
        json_free(o);
        return;
    }
    transmit(a, command, o, command, fn, user);
}
