#include "base/proc.h"

#include "base/clock.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

bool (*proc_interrupt)(void);

int proc_pipe(int fds[2])
{
    return pipe2(fds, O_CLOEXEC);
}

// Environment for the child: malloc'ed array of borrowed strings.
static const char **build_env(const struct proc_spec *spec)
{
    VEC(const char *) env = {0};
    static const char *const kept[] = {"PATH=", "HOME=", "TMPDIR="};
    for (char **x = environ; *x; x++) {
        bool keep = !spec->bare_env;
        for (size_t i = 0; i < countof(kept) && !keep; i++)
            keep = str_starts(*x, kept[i]);
        for (const char *const *y = spec->env; y && *y && keep; y++) {
            size_t n = strcspn(*y, "=") + 1;
            keep = strncmp(*x, *y, n) != 0;
        }
        if (keep)
            vec_push(&env, *x);
    }
    if (spec->bare_env)
        vec_push(&env, "LANG=C.UTF-8");
    for (const char *const *y = spec->env; y && *y; y++)
        vec_push(&env, *y);
    vec_push(&env, NULL);
    return env.v;
}

static char *find_program(const char *name)
{
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? xstrdup(name) : NULL;
    const char *path = getenv("PATH");
    for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
        size_t n = strcspn(p, ":");
        char *full = xasprintf("%.*s/%s", (int)n, p, name);
        if (n && access(full, X_OK) == 0 && !io_is_dir(full))
            return full;
        free(full);
        p += n + (p[n] == ':');
    }
    return NULL;
}

// Everything from here on happens between fork and exec: async-signal-safe calls only.
__attribute__((noreturn)) static void child(const struct proc_spec *spec, const char *program,
                                            const char **env, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int fds[3] = {spec->in, spec->out, spec->err};
    for (int i = 0; i < 3; i++) {
        // First out of the way of 0..2, so that one dup2 cannot close another's source.
        fds[i] = fcntl(fds[i] < 0 ? null : fds[i], F_DUPFD_CLOEXEC, 3);
    }
    for (int i = 0; i < 3; i++)
        if (dup2(fds[i], i) < 0)
            _exit(126);
    if (spec->dir && chdir(spec->dir) < 0)
        _exit(126);
    if (spec->before_exec && spec->before_exec(spec->user) != 0)
        _exit(126);
    execve(program, (char *const *)(uintptr_t)spec->argv, (char *const *)(uintptr_t)env);
    _exit(127);
}

int proc_start(const struct proc_spec *spec, pid_t *pid, struct err *e)
{
    char *program = find_program(spec->argv[0]);
    if (!program)
        return err_set(e, ERR_FAIL, "Install it, or correct PATH; `ksmith doctor` says what is missing.",
                       "the program %s is not on this machine", spec->argv[0]);
    const char **env = build_env(spec);
    pid_t parent = getpid();
    *pid = fork();
    if (*pid == 0)
        child(spec, program, env, parent);
    int r = *pid < 0 ? err_sys(e, "", "cannot start %s", spec->argv[0]) : 0;
    if (r == 0)
        setpgid(*pid, *pid); // on both sides, so that a kill right now finds the group
    free(env);
    free(program);
    return r;
}

void proc_kill(pid_t pid)
{
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

// Reads what is there; false at the end of the stream.
static bool drain(int fd, struct str *out, size_t limit, bool *truncated)
{
    char buf[65536];
    ssize_t n = read(fd, buf, sizeof buf);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    size_t room = out->len < limit ? limit - out->len : 0;
    size_t keep = (size_t)n < room ? (size_t)n : room;
    str_addn(out, buf, keep);
    *truncated |= keep < (size_t)n;
    return n > 0;
}

int proc_run(struct proc_spec *spec, struct str *out, size_t limit, int timeout_ms, struct proc_end *end,
             struct err *e)
{
    int fds[2];
    *end = (struct proc_end){0};
    if (proc_pipe(fds) < 0)
        return err_sys(e, "", "cannot make a pipe");
    spec->out = spec->err = fds[1];
    pid_t pid;
    int r = proc_start(spec, &pid, e);
    close(fds[1]);
    if (r < 0) {
        close(fds[0]);
        return r;
    }
    int64_t deadline = clock_ns() + (int64_t)timeout_ms * 1000000;
    int status = 0;
    bool open = true, reaped = false;
    // A grandchild may hold the pipe after the leader ended: the leader's end is what counts.
    while (!reaped) {
        int64_t left = (deadline - clock_ns()) / 1000000;
        if (left <= 0 || (proc_interrupt && proc_interrupt())) {
            end->timed_out = true;
            break;
        }
        struct pollfd p = {open ? fds[0] : -1, POLLIN, 0};
        int slice = open && left > 20 ? 20 : left > 2 && !open ? 2 : (int)left;
        if (poll(&p, 1, slice) > 0)
            open = drain(fds[0], out, limit, &end->truncated);
        reaped = waitpid(pid, &status, WNOHANG) == pid;
    }
    kill(-pid, SIGKILL);
    if (!reaped) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 64 && open; i++) {
        size_t before = out->len;
        open = drain(fds[0], out, limit, &end->truncated);
        if (out->len == before)
            break;
    }
    close(fds[0]);
    end->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return 0;
}

void proc_describe(const struct proc_end *end, struct str *out)
{
    if (end->timed_out)
        str_add(out, "stopped at its time limit");
    else if (end->signal)
        str_addf(out, "killed by signal %d (%s)", end->signal, strsignal(end->signal));
    else
        str_addf(out, "exit status %d", end->status);
}
