// Child processes. Each gets its own process group, dies with its parent, inherits no descriptors but its
// three, and is killed as a group: a compiler's grandchildren or a fork bomb do not outlive their deadline.
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdint.h>
#include <sys/types.h>

struct proc_spec {
    const char *const *argv; // NULL-terminated; argv[0] is looked up in PATH
    const char *dir;         // working folder, or NULL
    const char *const *env;  // "NAME=value" added to this process's environment, or NULL
    bool bare_env;           // start from an empty environment (PATH, HOME, LANG=C.UTF-8 only)
    int in, out, err;        // descriptors for the child's 0, 1, 2; -1 is /dev/null
    // Runs in the child after the descriptors are set and before exec (sandboxing); non-zero ends the child
    // with status 126. Must not allocate.
    int (*before_exec)(void *user);
    void *user;
};

struct proc_end {
    int status;     // exit status, or -1 where a signal ended it
    int signal;     // the signal, or 0
    bool timed_out; // we killed it at its deadline
    bool truncated; // output beyond the limit was dropped
};

// Starts a child; *pid is also its process group. A missing program is an error here, not status 127.
int proc_start(const struct proc_spec *spec, pid_t *pid, struct err *e);
// Kills the whole group and reaps the leader.
void proc_kill(pid_t pid);
// Runs to the end with standard output and error together in out (at most limit bytes kept, the rest drained
// and counted as truncated) and at most timeout_ms of wall time.
int proc_run(struct proc_spec *spec, struct str *out, size_t limit, int timeout_ms, struct proc_end *end,
             struct err *e);
// Asked every 20 ms while proc_run waits, where set: true ends the child as if its time were over. For
// programs that are told to stop from outside whatever they wait for.
extern bool (*proc_interrupt)(void);
// "exit status 1", "killed by signal 9 (Killed)", "stopped at its limit of 5 s"
void proc_describe(const struct proc_end *end, struct str *out);
// close-on-exec, and for the poll loop not blocking
int proc_pipe(int fds[2]);
