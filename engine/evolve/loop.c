#include "evolve/loop.h"

#include "base/clock.h"
#include "base/vec.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

// A turn that took so long ends before the rest of what is ready, so that urgent descriptors wait for a slice
// and not for all that arrived together.
enum { SLICE_NS = 8000000 };

struct watch {
    int fd;
    short events;
    bool urgent;
    loop_fd_fn *fn;
    void *user;
};

struct timer {
    int id;
    int64_t at;
    loop_fn *fn;
    void *user;
};

struct loop {
    VEC(struct watch) watches;
    VEC(struct timer) timers;
    VEC(struct pollfd) polled;
    int next_id;
    int signal_fd;
    loop_signal_fn *signal_fn;
    void *signal_user;
    size_t turn_from; // where the last turn ended among what was ready
    bool stopped;
    int64_t longest_ns;
    double longest_cpu; // seconds
};

struct loop *loop_new(void)
{
    struct loop *l = xcalloc(1, sizeof *l);
    l->signal_fd = -1;
    l->next_id = 1;
    return l;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    if (l->signal_fd >= 0)
        close(l->signal_fd);
    vec_free(&l->watches);
    vec_free(&l->timers);
    vec_free(&l->polled);
    free(l);
}

static struct watch *find(struct loop *l, int fd)
{
    for (size_t i = 0; i < l->watches.n; i++)
        if (l->watches.v[i].fd == fd)
            return &l->watches.v[i];
    return NULL;
}

void loop_watch(struct loop *l, int fd, short events, loop_fd_fn *fn, void *user)
{
    struct watch w = {fd, events, false, fn, user}, *old = find(l, fd);
    if (old) {
        w.urgent = old->urgent;
        *old = w;
    } else
        vec_push(&l->watches, w);
}

void loop_urgent(struct loop *l, int fd)
{
    struct watch *w = find(l, fd);
    if (w)
        w->urgent = true;
}

void loop_unwatch(struct loop *l, int fd)
{
    struct watch *w = find(l, fd);
    if (w)
        vec_remove(&l->watches, (size_t)(w - l->watches.v));
}

int loop_after(struct loop *l, int ms, loop_fn *fn, void *user)
{
    struct timer t = {l->next_id++, clock_ns() + (int64_t)ms * 1000000, fn, user};
    vec_push(&l->timers, t);
    return t.id;
}

void loop_cancel(struct loop *l, int id)
{
    for (size_t i = 0; i < l->timers.n; i++)
        if (l->timers.v[i].id == id) {
            vec_remove(&l->timers, i);
            return;
        }
}

static void on_signal(void *user, int fd, short revents)
{
    struct loop *l = user;
    struct signalfd_siginfo info;
    (void)revents;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        l->signal_fn(l->signal_user, (int)info.ssi_signo);
}

void loop_signals(struct loop *l, const int *signals, loop_signal_fn *fn, void *user)
{
    sigset_t set;
    sigemptyset(&set);
    for (; *signals; signals++)
        sigaddset(&set, *signals);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    l->signal_fd = signalfd(l->signal_fd, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    l->signal_fn = fn;
    l->signal_user = user;
    loop_watch(l, l->signal_fd, POLLIN, on_signal, l);
}

// Milliseconds until the next timer, rounded up so that the loop does not spin before it; -1 without timers.
static int next_wait(const struct loop *l)
{
    int64_t first = INT64_MAX, now = clock_ns();
    for (size_t i = 0; i < l->timers.n; i++)
        if (l->timers.v[i].at < first)
            first = l->timers.v[i].at;
    if (first == INT64_MAX)
        return -1;
    return first <= now ? 0 : (int)((first - now + 999999) / 1000000);
}

static void fire_timers(struct loop *l, int64_t until)
{
    int64_t now = clock_ns();
    do {
        size_t due = l->timers.n;
        for (size_t i = 0; i < l->timers.n; i++)
            if (l->timers.v[i].at <= now && (due == l->timers.n || l->timers.v[i].at < l->timers.v[due].at))
                due = i;
        if (due == l->timers.n)
            return;
        struct timer t = l->timers.v[due];
        vec_remove(&l->timers, due);
        t.fn(t.user);
    } while (clock_ns() < until);
}

static void call_watch(struct loop *l, size_t i, bool urgent)
{
    struct pollfd p = l->polled.v[i];
    // A callback before this one may have unwatched it.
    struct watch *w = p.revents ? find(l, p.fd) : NULL;
    if (w && w->urgent == urgent) {
        struct watch copy = *w;
        copy.fn(copy.user, p.fd, p.revents);
    }
}

static void call_ready(struct loop *l, int64_t until)
{
    size_t n = l->polled.n, from = n ? l->turn_from % n : 0;
    for (size_t i = 0; i < n; i++)
        call_watch(l, i, true);
    for (size_t k = 0; k < n; k++) {
        call_watch(l, (from + k) % n, false);
        if (clock_ns() > until) {
            l->turn_from = (from + k + 1) % n;
            return;
        }
    }
}

void loop_step(struct loop *l, int wait_ms)
{
    int timer = next_wait(l);
    if (timer >= 0 && (wait_ms < 0 || timer < wait_ms))
        wait_ms = timer;
    l->polled.n = 0;
    for (size_t i = 0; i < l->watches.n; i++)
        vec_push(&l->polled, (struct pollfd){l->watches.v[i].fd, l->watches.v[i].events, 0});
    int ready = poll(l->polled.v, l->polled.n, wait_ms);
    int64_t start = clock_ns();
    double cpu = clock_cpu();
    if (ready > 0)
        call_ready(l, start + SLICE_NS);
    fire_timers(l, start + 2 * SLICE_NS);
    int64_t turn = clock_ns() - start;
    if (turn > l->longest_ns)
        l->longest_ns = turn;
    cpu = clock_cpu() - cpu;
    if (cpu > l->longest_cpu)
        l->longest_cpu = cpu;
}

void loop_run(struct loop *l)
{
    l->stopped = false;
    while (!l->stopped)
        loop_step(l, -1);
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}

double loop_longest_work_ms(const struct loop *l)
{
    return l->longest_cpu * 1e3;
}

double loop_longest_turn_ms(const struct loop *l)
{
    return (double)l->longest_ns * 1e-6;
}
