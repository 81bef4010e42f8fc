#include "evolve/lines.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { UNSENT_MAX = 16 << 20 };

struct lines {
    struct loop *loop;
    int in, out;
    size_t max_line;
    const struct lines_ops *ops;
    void *user;
    struct str got, unsent;
    size_t scanned; // bytes of got known to hold no newline
    bool skipping;  // inside a line that was too long
    bool dead;
    bool *freed; // set where a callback frees this object while it is being read
};

static void on_ready(void *user, int fd, short revents);

static void watch(struct lines *c)
{
    bool pending = c->unsent.len > 0 && !c->dead;
    if (c->in == c->out) {
        loop_watch(c->loop, c->in, (short)(POLLIN | (pending ? POLLOUT : 0)), on_ready, c);
        return;
    }
    loop_watch(c->loop, c->in, POLLIN, on_ready, c);
    if (pending)
        loop_watch(c->loop, c->out, POLLOUT, on_ready, c);
    else
        loop_unwatch(c->loop, c->out);
}

static void die(struct lines *c)
{
    if (c->dead)
        return;
    c->dead = true;
    loop_unwatch(c->loop, c->in);
    loop_unwatch(c->loop, c->out);
    c->ops->closed(c->user);
}

struct lines *lines_new(struct loop *l, int in, int out, size_t max_line, const struct lines_ops *ops,
                        void *user)
{
    struct lines *c = xcalloc(1, sizeof *c);
    *c = (struct lines){.loop = l, .in = in, .out = out, .max_line = max_line, .ops = ops, .user = user};
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
    watch(c);
    return c;
}

void lines_free(struct lines *c)
{
    if (!c)
        return;
    if (c->freed)
        *c->freed = true;
    loop_unwatch(c->loop, c->in);
    loop_unwatch(c->loop, c->out);
    close(c->in);
    if (c->out != c->in)
        close(c->out);
    str_free(&c->got);
    str_free(&c->unsent);
    free(c);
}

// Writes what the peer takes now; false where it is gone.
static bool push(struct lines *c)
{
    while (c->unsent.len) {
        ssize_t n = write(c->out, c->unsent.s, c->unsent.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        str_splice(&c->unsent, 0, (size_t)n, "", 0);
    }
    return true;
}

int lines_send(struct lines *c, const json *object)
{
    if (c->dead || c->unsent.len > UNSENT_MAX)
        return -1;
    json_print(object, &c->unsent);
    str_addc(&c->unsent, '\n');
    bool alive = push(c);
    if (alive)
        watch(c);
    // A peer that is gone is noticed by the read side, in a turn of its own, not inside the caller.
    return alive ? 0 : -1;
}

size_t lines_unsent(const struct lines *c)
{
    return c->unsent.len;
}

void lines_flush(struct lines *c, int ms)
{
    int64_t end = clock_ns() + (int64_t)ms * 1000000;
    while (!c->dead && c->unsent.len && clock_ns() < end) {
        struct pollfd p = {c->out, POLLOUT, 0};
        if (poll(&p, 1, 10) > 0 && !push(c))
            return;
    }
}

static void deliver(struct lines *c, const char *s, size_t n)
{
    if (n && s[n - 1] == '\r')
        n--;
    if (n == 0)
        return;
    struct err e = {0};
    json *o = json_parse(s, n, &e);
    if (o && !json_is_object(o))
        err_set(&e, ERR_USAGE, "", "not a JSON object");
    if (e.kind) {
        char *text = xstrndup(s, n);
        c->ops->bad(c->user, text, &e);
        free(text);
    } else {
        c->ops->line(c->user, o);
    }
    json_free(o);
}

// Delivers the whole lines of c->got. False where a callback freed c.
static bool split(struct lines *c)
{
    bool freed = false;
    // cppcheck-suppress autoVariables ; taken back before this returns
    c->freed = &freed;
    size_t start = 0;
    for (char *nl; (nl = memchr(c->got.s + c->scanned, '\n', c->got.len - c->scanned));) {
        size_t end = (size_t)(nl - c->got.s);
        bool skip = c->skipping;
        c->skipping = false;
        c->scanned = end + 1;
        if (!skip)
            deliver(c, c->got.s + start, end - start);
        if (freed)
            return false;
        start = end + 1;
    }
    str_splice(&c->got, 0, start, "", 0);
    c->scanned = c->got.len;
    if (c->got.len > c->max_line && !c->skipping) {
        struct err e = {0};
        err_set(&e, ERR_USAGE, "", "a line of over %zu bytes", c->max_line);
        c->skipping = true;
        c->ops->bad(c->user, "", &e);
        if (freed)
            return false;
    }
    if (c->skipping) {
        str_clear(&c->got);
        c->scanned = 0;
    }
    c->freed = NULL;
    return true;
}

static void on_ready(void *user, int fd, short revents)
{
    struct lines *c = user;
    if ((revents & POLLOUT) && !push(c)) {
        die(c);
        return;
    }
    if (fd == c->in && (revents & (POLLIN | POLLHUP | POLLERR))) {
        // A bounded read a turn, so that one loud peer does not hold the loop.
        str_reserve(&c->got, 65536);
        ssize_t n = read(c->in, c->got.s + c->got.len, 65536);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            die(c);
            return;
        }
        if (n > 0) {
            c->got.len += (size_t)n;
            c->got.s[c->got.len] = 0;
            if (!split(c))
                return;
        }
    } else if (revents & (POLLHUP | POLLERR)) {
        die(c);
        return;
    }
    watch(c);
}
