// The cage of a candidate, tried from inside: each attempt is a process in the very state a kernel runs in.
#include "cpu/probe_parts.h"

#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const readable[] = {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", NULL};
static pid_t judge;
static volatile int *trapped; // shared with the children

static void note(int number)
{
    *trapped = number;
}

// An attempt returns 0 where it succeeded, else it was refused.
enum { REFUSED = 1, GONE_WRONG = 90 };

static int open_file(void)
{
    return open("/etc/passwd", O_RDONLY) < 0;
}
static int open_library(void)
{
    return open("/usr/bin/env", O_RDONLY) < 0;
}
static int open_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) < 0;
}
static int fork_off(void)
{
    return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) < 0;
}
static int trace_judge(void)
{
    return ptrace(PTRACE_ATTACH, judge, NULL, NULL) < 0;
}
static int kill_judge(void)
{
    return kill(judge, 0) < 0;
}
static int write_memory(void)
{
    return open("/proc/self/mem", O_RDWR) < 0;
}
static int make_code(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0;
}
static int run_program(void)
{
    char *argv[] = {"true", NULL};
    execv("/usr/bin/true", argv);
    return REFUSED;
}
static int replace_handler(void)
{
    return signal(SIGSYS, SIG_IGN) == SIG_ERR;
}
static int set_timer(void)
{
    return alarm(1) != 0; // a refusal ends the process before it returns
}
static int loop_for_ever(void)
{
    volatile int go = 1;
    while (go)
        ;
    return 0;
}
#ifndef __SANITIZE_ADDRESS__ // which itself maps terabytes, so there is no limit then
static int take_memory(void)
{
    return mmap(NULL, 4ul << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}
#endif
static int fill_log(void)
{
    static char block[65536];
    for (int i = 0; i < 64; i++)
        if (write(1, block, sizeof block) < 0)
            return REFUSED;
    return 0;
}

// Runs act where a candidate would run: locked (after the library was loaded) or while it is loaded. Returns
// the exit status, or minus the signal.
static int attempt(int (*act)(void), bool locked)
{
    *trapped = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int log = memfd_create("log", 0);
        struct sandbox s = {.kind = SANDBOX_KERNEL,
                            .read_only = readable,
                            .memory_bytes = 1ull << 30,
                            .file_bytes = 1 << 20,
                            .cpu_seconds = 1};
        signal(SIGXFSZ, SIG_DFL);
        if (dup2(log, 1) < 0 || sandbox_on_trap(note) < 0 || sandbox_prepare(&s, NULL) < 0 ||
            sandbox_enter(&s) < 0 || (locked && sandbox_lock_kernel(&s) < 0))
            _exit(GONE_WRONG);
        syscall(SYS_exit_group, act()); // without the checks of a sanitizer, which trap
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return GONE_WRONG;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void describe(int end, char *out, size_t n)
{
    if (end == 0)
        snprintf(out, n, "it succeeded");
    else if (end == SANDBOX_TRAPPED)
        snprintf(out, n, "stopped at the system call %s", sandbox_syscall_name(*trapped));
    else if (end < 0)
        snprintf(out, n, "killed by signal %d (%s)", -end, strsignal(-end));
    else if (end == REFUSED)
        snprintf(out, n, "refused");
    else
        snprintf(out, n, "the attempt itself failed (status %d)", end);
}

void probe_kernel(struct probe *p)
{
    static const struct {
        const char *name;
        int (*act)(void);
        bool loading;
    } tries[] = {
        {"kernel cannot read files at load", open_file, true},
        {"kernel cannot open a file", open_library, false},
        {"kernel cannot open a socket", open_socket, false},
        {"kernel cannot fork", fork_off, false},
        {"kernel cannot fork at load", fork_off, true},
        {"kernel cannot trace the judge", trace_judge, false},
        {"kernel cannot kill the judge", kill_judge, false},
        {"kernel cannot open its memory", write_memory, false},
        {"kernel cannot open its memory at load", write_memory, true},
        {"kernel cannot make new code", make_code, false},
        {"kernel cannot run a program", run_program, false},
        {"kernel cannot catch signals", replace_handler, false},
        {"kernel cannot set a timer", set_timer, false},
        {"kernel cannot loop for ever", loop_for_ever, false},
#ifndef __SANITIZE_ADDRESS__
        {"kernel cannot take all memory", take_memory, false},
#endif
        {"kernel cannot fill the disk", fill_log, false},
    };
    judge = getpid();
    trapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trapped == MAP_FAILED)
        return;
    for (size_t i = 0; i < countof(tries); i++) {
        int end = attempt(tries[i].act, !tries[i].loading);
        char words[160];
        describe(end, words, sizeof words);
        bool holds = end == SANDBOX_TRAPPED || end == REFUSED || end == -SIGKILL || end == -SIGXFSZ;
        probe_say(p, tries[i].name, holds,
                  "Run candidates of models only on a kernel with Landlock and seccomp.", "%s", words);
    }
    munmap((void *)(uintptr_t)trapped, 4096);
}
