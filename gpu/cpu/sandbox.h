// The cage around what we did not write. Two profiles: COMPILER for gcc and its children (and objdump),
// KERNEL for the process that loads a candidate. Built on Landlock and seccomp through raw system calls, so
// that it works as root and as any user, with no library and no set-up.
//
// Order for a compiler: sandbox_prepare() in the parent, sandbox_enter as proc_spec.before_exec (user = the
// struct sandbox), sandbox_done() in the parent after the start.
// Order for a kernel, all in the freshly exec'ed child, which has one thread: set up descriptors, shared
// pages, signal handlers; sandbox_on_trap(); sandbox_prepare(); sandbox_enter(); dlopen(RTLD_NOW|RTLD_LOCAL);
// sandbox_lock_kernel(); then call the candidate. From sandbox_enter on the child cannot fork, exec, signal,
// open for writing or change signal handlers; from sandbox_lock_kernel on it can also not open anything.
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum sandbox_kind { SANDBOX_COMPILER, SANDBOX_KERNEL };

struct sandbox_filter; // the prepared BPF programs

struct sandbox {
    enum sandbox_kind kind;
    // NULL-terminated lists of files and folders (with all below them), or NULL. What does not exist is left
    // out. Read-only paths of a compiler may also be executed. Nothing else of the file system can be opened.
    const char *const *read_only;
    const char *const *read_write;
    uint64_t memory_bytes; // address space of each process; 0: no limit (and none for a KERNEL under ASan)
    uint64_t file_bytes;   // largest file that can be written; beyond it SIGXFSZ
    unsigned cpu_seconds;  // of each process, then SIGKILL; 0: no limit
    unsigned processes;    // beyond those that the user runs already; root is not held by it; 0: no limit
    unsigned files;        // open descriptors; 0: 256
    bool threads;          // KERNEL: the candidate may start threads (in its own process only)
    // Filled by sandbox_prepare; start with a zeroed struct.
    int landlock_fd;
    struct sandbox_filter *filter;
    uint64_t nproc_limit;
    bool prepared;
};

// What this machine offers. full says that both hold, which is what candidates of models need.
struct sandbox_support {
    int landlock; // ABI version, 0 where the kernel has none
    bool seccomp;
    bool full;
    char why[200]; // words on what is missing, empty where full
};
void sandbox_support(struct sandbox_support *s);

// Builds the filter and the rule set; may allocate. Where the machine lacks Landlock or seccomp that layer is
// left out: whoever runs untrusted code asks sandbox_support first.
int sandbox_prepare(struct sandbox *s, struct err *e);
// Restricts the calling process for good. Async-signal-safe, so it can run between fork and exec; user is a
// struct sandbox that was prepared. Returns 0, or -1 with errno where a layer that exists could not be set.
int sandbox_enter(void *user);
// The second stage of a KERNEL. From here on: memory without execution, futex, exit, the clock, write to 1
// and 2, and threads where allowed. Anything else traps.
int sandbox_lock_kernel(const struct sandbox *s);
// Frees what sandbox_prepare made.
void sandbox_done(struct sandbox *s);

// Installs the SIGSYS handler of a KERNEL: a refused system call calls fn(number) on a stack of its own (so
// fn must be async-signal-safe) and the process ends with status SANDBOX_TRAPPED. Call it before
// sandbox_enter. Where the signal was blocked the process is killed by SIGSYS instead.
enum { SANDBOX_TRAPPED = 113 };
int sandbox_on_trap(void (*fn)(int number));
// "socket", or "number 437" (in a static buffer) where the table does not have it.
const char *sandbox_syscall_name(int number);
