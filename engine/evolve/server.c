#include "evolve/server.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "evolve/lines.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { REQUEST_MAX = 4 << 20, CLIENTS_MAX = 64, BEHIND_MAX = 1 << 20 };

struct client {
    struct server *server;
    struct lines *lines;
    bool subscribed, gone;
};

struct server {
    struct loop *loop;
    int fd;
    char *path;
    server_fn *fn;
    void *user;
    VEC(struct client *) clients;
};

static void reap(void *user)
{
    struct server *s = user;
    for (size_t i = s->clients.n; i-- > 0;) {
        struct client *c = s->clients.v[i];
        if (!c->gone)
            continue;
        lines_free(c->lines);
        free(c);
        vec_remove(&s->clients, i);
    }
}

static void on_closed(void *user)
{
    struct client *c = user;
    c->gone = true;
    loop_after(c->server->loop, 0, reap, c->server);
}

static void answer(struct client *c, const json *request, json *reply)
{
    const json *re = request ? json_get(request, "re") : NULL;
    if (re)
        json_put(reply, "re", json_copy(re));
    lines_send(c->lines, reply);
    json_free(reply);
}

static void on_line(void *user, json *request)
{
    struct client *c = user;
    if (str_eq(json_str(request, "cmd"), "subscribe"))
        c->subscribed = true;
    answer(c, request, c->server->fn(c->server->user, request));
}

static void on_bad(void *user, const char *text, const struct err *e)
{
    (void)text;
    json *reply = json_object();
    json_put_bool(reply, "ok", false);
    json_put_str(reply, "msg", e->msg);
    answer(user, NULL, reply);
}

static const struct lines_ops ops = {on_line, on_bad, on_closed};

static void on_connect(void *user, int fd, short revents)
{
    struct server *s = user;
    (void)revents;
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (peer < 0)
        return;
    struct ucred who;
    socklen_t n = sizeof who;
    if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || (who.uid != getuid() && who.uid != 0) ||
        s->clients.n >= CLIENTS_MAX) {
        log_line("socket: refused a connection");
        close(peer);
        return;
    }
    struct client *c = xcalloc(1, sizeof *c);
    c->server = s;
    c->lines = lines_new(s->loop, peer, peer, REQUEST_MAX, &ops, c);
    loop_urgent(s->loop, peer);
    vec_push(&s->clients, c);
}

static int address(const char *path, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a->sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(a->sun_path, path, strlen(path) + 1);
    return 0;
}

struct server *server_open(struct loop *l, const char *path, server_fn *fn, void *user, struct err *e)
{
    struct sockaddr_un a;
    int fd = -1;
    if (address(path, &a) < 0 || (fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0) {
        err_sys(e, "Set XDG_RUNTIME_DIR to a short path of yours.", "cannot make the socket %s", path);
        return NULL;
    }
    unlink(path); // only the engine that holds the session's lock comes here
    mode_t old = umask(0177);
    int r = bind(fd, (struct sockaddr *)&a, sizeof a);
    umask(old);
    if (r < 0 || listen(fd, 16) < 0) {
        err_sys(e, "Set XDG_RUNTIME_DIR to a folder of yours.", "cannot listen on %s", path);
        close(fd);
        return NULL;
    }
    struct server *s = xcalloc(1, sizeof *s);
    *s = (struct server){.loop = l, .fd = fd, .path = xstrdup(path), .fn = fn, .user = user};
    loop_watch(l, fd, POLLIN, on_connect, s);
    loop_urgent(l, fd);
    return s;
}

void server_close(struct server *s)
{
    if (!s)
        return;
    loop_unwatch(s->loop, s->fd);
    for (size_t i = 0; i < s->clients.n; i++) {
        if (!s->clients.v[i]->gone)
            lines_flush(s->clients.v[i]->lines, 200);
        lines_free(s->clients.v[i]->lines);
        free(s->clients.v[i]);
    }
    vec_free(&s->clients);
    close(s->fd);
    unlink(s->path);
    free(s->path);
    free(s);
}

void server_broadcast(struct server *s, const json *event)
{
    for (size_t i = 0; i < s->clients.n; i++) {
        struct client *c = s->clients.v[i];
        // Live events are worth nothing late: who is behind misses some, and reads what counts from the
        // journal.
        if (c->subscribed && !c->gone && lines_unsent(c->lines) < BEHIND_MAX)
            lines_send(c->lines, event);
    }
}

int server_clients(const struct server *s)
{
    return (int)s->clients.n;
}

int server_connect(const char *path)
{
    struct sockaddr_un a;
    if (address(path, &a) < 0)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
        int code = errno;
        close(fd);
        errno = code;
        return -1;
    }
    return fd;
}

static json *read_answer(int fd, int timeout_ms, struct err *e)
{
    struct str got = {0};
    int64_t end = clock_ns() + (int64_t)timeout_ms * 1000000;
    json *reply = NULL;
    while (!reply) {
        char *nl = got.s ? memchr(got.s, '\n', got.len) : NULL;
        if (nl) {
            size_t n = (size_t)(nl - got.s);
            reply = json_parse(got.s, n, e);
            if (reply && !json_has(reply, "ok")) { // a live event came first
                json_free(reply);
                reply = NULL;
                str_splice(&got, 0, n + 1, "", 0);
                continue;
            }
            break;
        }
        int left = (int)((end - clock_ns()) / 1000000);
        struct pollfd p = {fd, POLLIN, 0};
        if (left <= 0 || poll(&p, 1, left) <= 0) {
            err_set(e, ERR_FAIL, "See engine.log in the session's .ksmith folder.",
                    "the engine did not answer");
            break;
        }
        char buf[65536];
        ssize_t n = read(fd, buf, sizeof buf);
        if (n <= 0) {
            err_set(e, ERR_FAIL, "See engine.log in the session's .ksmith folder.", "the engine hung up");
            break;
        }
        str_addn(&got, buf, (size_t)n);
    }
    str_free(&got);
    return reply;
}

// Without SIGPIPE: an engine that only answered steering may end while we write.
static int send_all(int fd, const char *s, size_t n)
{
    while (n) {
        ssize_t k = send(fd, s, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        s += k;
        n -= (size_t)k;
    }
    return 0;
}

json *server_ask(int fd, const json *request, int timeout_ms, struct err *e)
{
    struct str out = {0};
    json_print(request, &out);
    str_addc(&out, '\n');
    int r = send_all(fd, out.s, out.len);
    str_free(&out);
    if (r < 0)
        return err_sys(e, "Try it again.", "the engine ended just now"), NULL;
    return read_answer(fd, timeout_ms, e);
}
