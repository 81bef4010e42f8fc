#include "models/run.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct run {
    struct loop *loop;
    pid_t pid;
    int pid_fd; // readable when the leader ended; -1: the kernel has none, then a timer looks
    int fd[2];  // its standard output and error; -1: closed
    struct run_result result;
    size_t limit;
    int64_t start;
    int deadline, look;
    run_fn *fn;
    void *user;
};

enum { LOOK_MS = 20 };

static void close_stream(struct run *r, int i)
{
    if (r->fd[i] < 0)
        return;
    loop_unwatch(r->loop, r->fd[i]);
    close(r->fd[i]);
    r->fd[i] = -1;
}

// Reads once; false where nothing was there or the stream is at its end.
static bool drain(struct run *r, int i)
{
    char buf[65536];
    ssize_t n = r->fd[i] < 0 ? -1 : read(r->fd[i], buf, sizeof buf);
    if (n < 0 && r->fd[i] >= 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        close_stream(r, i);
        return false;
    }
    struct str *out = i ? &r->result.err : &r->result.out;
    size_t room = out->len < r->limit ? r->limit - out->len : 0, keep = (size_t)n < room ? (size_t)n : room;
    str_addn(out, buf, keep);
    r->result.end.truncated |= keep < (size_t)n;
    return true;
}

static void on_output(void *user, int fd, short revents)
{
    struct run *r = user;
    (void)revents;
    drain(r, fd == r->fd[1]);
}

static void forget(struct run *r)
{
    close_stream(r, 0);
    close_stream(r, 1);
    if (r->pid_fd >= 0) {
        loop_unwatch(r->loop, r->pid_fd);
        close(r->pid_fd);
    }
    if (r->deadline)
        loop_cancel(r->loop, r->deadline);
    if (r->look)
        loop_cancel(r->loop, r->look);
    str_free(&r->result.out);
    str_free(&r->result.err);
    free(r);
}

// The leader is dead or dying: the rest of the group goes first, while the zombie still keeps its number
// taken.
static void finish(struct run *r)
{
    int status = 0;
    kill(-r->pid, SIGKILL);
    kill(r->pid, SIGKILL);
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        ;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 256 && drain(r, i); k++)
            ;
    r->result.end.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    r->result.end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    r->result.seconds = (double)(clock_ns() - r->start) * 1e-9;
    r->fn(r->user, &r->result);
    forget(r);
}

static void on_end(void *user, int fd, short revents)
{
    (void)fd, (void)revents;
    finish(user);
}

static void on_deadline(void *user)
{
    struct run *r = user;
    r->deadline = 0;
    r->result.end.timed_out = true;
    finish(r);
}

static void on_look(void *user)
{
    struct run *r = user;
    siginfo_t info = {0};
    r->look = 0;
    if (waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == r->pid)
        finish(r);
    else
        r->look = loop_after(r->loop, LOOK_MS, on_look, r);
}

struct run *run_start(struct loop *loop, const struct run_spec *s, struct err *e)
{
    int out[2], err[2];
    if (proc_pipe(out) < 0) {
        err_sys(e, "", "cannot make a pipe");
        return NULL;
    }
    if (proc_pipe(err) < 0) {
        err_sys(e, "", "cannot make a pipe");
        close(out[0]);
        close(out[1]);
        return NULL;
    }
    struct proc_spec p = {
        .argv = s->argv, .dir = s->dir, .env = s->env, .in = -1, .out = out[1], .err = err[1]};
    pid_t pid;
    int ok = proc_start(&p, &pid, e);
    close(out[1]);
    close(err[1]);
    if (ok < 0) {
        close(out[0]);
        close(err[0]);
        return NULL;
    }
    struct run *r = xcalloc(1, sizeof *r);
    *r = (struct run){.loop = loop,
                      .pid = pid,
                      .fd = {out[0], err[0]},
                      .limit = s->limit,
                      .start = clock_ns(),
                      .fn = s->fn,
                      .user = s->user};
    for (int i = 0; i < 2; i++) {
        fcntl(r->fd[i], F_SETFL, O_NONBLOCK);
        loop_watch(loop, r->fd[i], POLLIN, on_output, r);
    }
    r->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (r->pid_fd >= 0) {
        fcntl(r->pid_fd, F_SETFD, FD_CLOEXEC);
        loop_watch(loop, r->pid_fd, POLLIN, on_end, r);
    } else {
        r->look = loop_after(loop, LOOK_MS, on_look, r);
    }
    r->deadline = loop_after(loop, s->timeout_ms, on_deadline, r);
    return r;
}

void run_cancel(struct run *r)
{
    proc_kill(r->pid);
    forget(r);
}
