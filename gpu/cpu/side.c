#include "cpu/side.h"

#include "base/clock.h"
#include "base/proc.h"
#include "cpu/sandbox.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { START_MS = 5000 };

static int keep_open(void *user)
{
    const int *fds = user;
    return fcntl(fds[0], F_SETFD, 0) < 0 || fcntl(fds[1], F_SETFD, 0) < 0;
}

static int start(struct side *s, const struct arena *a, const struct side_spec *spec, struct err *e)
{
    s->control_fd = memfd_create("ksmith-control", MFD_CLOEXEC);
    if (s->control_fd < 0 || ftruncate(s->control_fd, CONTROL_BYTES) < 0)
        return err_sys(e, "", "no room for a control page");
    void *p = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s->control_fd, 0);
    if (p == MAP_FAILED)
        return err_sys(e, "", "no room for a control page");
    s->control = p;
    struct control *c = s->control;
    arena_describe(a, c);
    c->cpu = spec->cpu;
    c->threads = (uint32_t)spec->threads;
    c->llc_bytes = spec->llc_bytes;
    snprintf(c->library, sizeof c->library, "%s", spec->library);
    snprintf(c->function, sizeof c->function, "%s", spec->function);
    char fd0[16], fd1[16], omp[32];
    snprintf(fd0, sizeof fd0, "%d", s->control_fd);
    snprintf(fd1, sizeof fd1, "%d", a->fd);
    snprintf(omp, sizeof omp, "OMP_NUM_THREADS=%d", spec->threads);
    const char *argv[] = {"/proc/self/exe", "--child", fd0, fd1, NULL};
    const char *env[] = {omp, "OMP_DYNAMIC=false", NULL};
    int fds[2] = {s->control_fd, a->fd};
    struct proc_spec p_spec = {.argv = argv,
                               .env = env,
                               .bare_env = true,
                               .in = -1,
                               .out = -1,
                               .err = -1,
                               .before_exec = keep_open,
                               .user = fds};
    if (proc_start(&p_spec, &s->pid, e) < 0)
        return -1;
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/schedstat", (long)s->pid);
    s->schedstat_fd = open(path, O_RDONLY | O_CLOEXEC);
    return 0;
}

static bool reap(struct side *s)
{
    if (!s->dead && s->pid > 0 && waitpid(s->pid, &s->wait_status, WNOHANG) == s->pid &&
        (WIFEXITED(s->wait_status) || WIFSIGNALED(s->wait_status)))
        s->dead = true;
    return s->dead;
}

bool side_start(struct side *s, const struct arena *a, const struct side_spec *spec, struct fault *f)
{
    *s = (struct side){.control_fd = -1, .schedstat_fd = -1};
    struct err e = {0};
    if (start(s, a, spec, &e) < 0)
        return fault_set(f, STATUS_TROUBLE, "%s", e.msg);
    s->whole_machine = s->sleeping_judge = spec->threads > 1;
    struct control *c = s->control;
    int64_t deadline = clock_ns() + (int64_t)START_MS * 1000000;
    for (;;) {
        uint32_t state = atomic_load(&c->state);
        if (state == CHILD_READY)
            return true;
        if (worker_cancelled())
            return fault_set(f, STATUS_CANCELLED, "cancelled");
        if (reap(s)) {
            c->message[sizeof c->message - 1] = 0;
            if (atomic_load(&c->state) == CHILD_FAILED)
                return fault_set(f,
                                 strstr(c->message, "flush-to-zero") ? STATUS_REJECTED : STATUS_LAUNCH_ERROR,
                                 "%s", c->message);
            return side_fault(s, WAIT_DEAD, 0, f);
        }
        if (clock_ns() > deadline)
            return fault_set(f, STATUS_LAUNCH_ERROR, "the kernel's library did not load within %d s",
                             START_MS / 1000);
        struct timespec pause = {0, 50000};
        nanosleep(&pause, NULL);
    }
}

void side_close(struct side *s)
{
    if (s->pid > 0) {
        if (s->dead)
            kill(-s->pid, SIGKILL); // what it may have left behind
        else
            proc_kill(s->pid);
    }
    if (s->control)
        munmap(s->control, CONTROL_BYTES);
    if (s->control_fd >= 0)
        close(s->control_fd);
    if (s->schedstat_fd >= 0)
        close(s->schedstat_fd);
    *s = (struct side){.control_fd = -1, .schedstat_fd = -1};
}

void side_send(struct side *s, enum control_op op)
{
    struct control *c = s->control;
    atomic_store(&c->judge_sleeps, s->sleeping_judge);
    c->op = op;
    atomic_store(&c->seq, ++s->seq);
    if (atomic_load(&c->asleep))
        syscall(SYS_futex, &c->seq, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Spins for the answer and looks up from it every millisecond. A judge that sleeps instead leaves its core to
// the threads of the kernel.
enum wait_end side_wait(struct side *s, int64_t timeout_ns, int64_t *at)
{
    struct control *c = s->control;
    int64_t start = clock_ns(), look = start + 1000000;
    for (;;) {
        for (int spin = 0; spin < 64 && !s->sleeping_judge; spin++) {
            if (atomic_load_explicit(&c->done, memory_order_acquire) == s->seq) {
                if (at)
                    *at = clock_ns();
                return WAIT_DONE;
            }
            relax();
        }
        if (s->sleeping_judge) {
            uint32_t seen = atomic_load(&c->done);
            if (seen == s->seq) {
                if (at)
                    *at = clock_ns();
                return WAIT_DONE;
            }
            struct timespec slice = {0, 5000000};
            syscall(SYS_futex, &c->done, FUTEX_WAIT, seen, &slice, NULL, 0);
        }
        int64_t now = clock_ns();
        if (now < look)
            continue;
        look = now + 1000000;
        if (worker_cancelled())
            return WAIT_CANCELLED;
        if (reap(s) && atomic_load(&c->done) != s->seq)
            return WAIT_DEAD;
        if (now - start > timeout_ns)
            return WAIT_TIMEOUT;
    }
}

enum wait_end side_do(struct side *s, enum control_op op, int64_t timeout_ns)
{
    side_send(s, op);
    return side_wait(s, timeout_ns, NULL);
}

void side_freeze(struct side *s)
{
    int status;
    if (!s->whole_machine || s->stopped || s->dead || kill(-s->pid, SIGSTOP) < 0)
        return;
    while (waitpid(s->pid, &status, WUNTRACED) < 0 && errno == EINTR)
        ;
    s->stopped = WIFSTOPPED(status);
    if (!s->stopped) {
        s->dead = true;
        s->wait_status = status;
    }
}

void side_thaw(struct side *s)
{
    if (s->stopped)
        kill(-s->pid, SIGCONT);
    s->stopped = 0;
}

uint64_t side_waited(const struct side *s)
{
    char text[128];
    ssize_t n = s->schedstat_fd >= 0 ? pread(s->schedstat_fd, text, sizeof text - 1, 0) : -1;
    unsigned long long ran, waited;
    if (n <= 0)
        return 0;
    text[n] = 0;
    // NOLINTNEXTLINE(cert-err34-c): the kernel's own text
    return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? waited
                                                         : 0; // NOLINT(cert-err34-c): the kernel's own text
}

static bool died(struct side *s, struct fault *f)
{
    const struct control *c = s->control;
    int signal = WIFSIGNALED(s->wait_status) ? WTERMSIG(s->wait_status) : c->signal;
    if (signal == SIGSYS && c->syscall >= 0) {
        const char *name = sandbox_syscall_name(c->syscall);
        bool thread = str_starts(name, "clone") || str_eq(name, "fork") || str_eq(name, "vfork");
        return fault_set(f, STATUS_REJECTED, "tried system call %s%s", name,
                         thread && c->threads <= 1 ? " (threads are not allowed)" : "");
    }
    if (signal > 0)
        return fault_set(f, STATUS_CRASH, "died of signal %d (%s)", signal, strsignal(signal));
    return fault_set(f, STATUS_CRASH, "ended the process with status %d",
                     WIFEXITED(s->wait_status) ? WEXITSTATUS(s->wait_status) : -1);
}

bool side_fault(struct side *s, enum wait_end w, double limit_s, struct fault *f)
{
    if (w == WAIT_CANCELLED)
        return fault_set(f, STATUS_CANCELLED, "cancelled");
    if (w == WAIT_TIMEOUT)
        return fault_set(f, STATUS_TIMEOUT, "did not come back within %.3g s", limit_s);
    if (w == WAIT_DEAD)
        return died(s, f);
    return true;
}
