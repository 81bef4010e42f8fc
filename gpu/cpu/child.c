#include "cpu/child.h"

#include "cpu/control.h"
#include "cpu/mxcsr.h"
#include "cpu/sandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef void kernel_fn(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double, double, double,
                       double, double, double, double, double, uint64_t, uint64_t, uint64_t, uint64_t,
                       uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                       uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                       uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                       uint64_t, uint64_t, uint64_t, uint64_t);

// About 5 ms on a fast core: longer than the judge needs between two commands, short enough to be a good
// neighbour.
enum { SPINS = 100000 };
// What a kernel may allocate beside its buffers, with room for the libraries.
#define KERNEL_MEMORY ((uint64_t)2 << 30)

static struct control *page; // for the signal handler alone
static char *sweep;          // what a cold run reads to push everything else out of the caches
static size_t sweep_bytes;

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// The kernel sees this call's arguments in the order that the judge laid them out. Not inlined, so that the
// empty function and the kernel are called by the very same instructions.
__attribute__((noinline)) static void call(kernel_fn *f, const struct call_args *a)
{
    const uint64_t *i = a->ints, *s = a->stack;
    const double *d = a->floats;
    f(i[0], i[1], i[2], i[3], i[4], i[5], d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], s[0], s[1], s[2],
      s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15], s[16], s[17], s[18],
      s[19], s[20], s[21], s[22], s[23], s[24], s[25], s[26], s[27], s[28], s[29], s[30], s[31]);
}

__attribute__((noinline)) static void empty(void)
{
    __asm__ volatile("");
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    page->signal = number;
    page->fault_address = (uint64_t)(uintptr_t)info->si_addr;
    _exit(100);
}

static void on_trap(int number)
{
    page->signal = SIGSYS;
    page->syscall = number;
}

static void catch_signals(void)
{
    static char stack[16384];
    stack_t alt = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alt, NULL);
    struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND};
    static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        sigaction(caught[i], &a, NULL);
}

__attribute__((noreturn)) static void fail(struct control *c, const char *what, const char *why)
{
    snprintf(c->message, sizeof c->message, "%s%s%s", what, why ? ": " : "", why ? why : "");
    atomic_store(&c->state, CHILD_FAILED);
    _exit(101);
}

static void pin(int cpu)
{
    if (cpu < 0)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void map_arena(struct control *c, int fd)
{
    void *want = (void *)(uintptr_t)c->arena_address;
    void *got = mmap(want, c->arena_bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_POPULATE | MAP_FIXED_NOREPLACE, fd, 0);
    if (got != want)
        fail(c, "cannot map the buffers", strerror(errno));
    for (uint32_t i = 0; i < c->guards; i++)
        if (mprotect((char *)want + c->guard[i].offset, c->guard[i].bytes, PROT_NONE) < 0)
            fail(c, "cannot protect a guard page", strerror(errno));
    sweep_bytes = c->llc_bytes;
    if (!sweep_bytes)
        return;
    sweep =
        mmap(NULL, sweep_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (sweep == MAP_FAILED)
        fail(c, "no memory for the cache sweep", NULL);
}

static kernel_fn *load(struct control *c)
{
    uint32_t clean = mxcsr_get();
    void *lib = dlopen(c->library, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        fail(c, "cannot load the compiled kernel", dlerror());
    c->mxcsr = mxcsr_get();
    if (mxcsr_mode(c->mxcsr) != mxcsr_mode(clean))
        fail(c, "sets flush-to-zero for the whole process when it is loaded", NULL);
    void *f = dlsym(lib, c->function);
    if (!f)
        fail(c, "the compiled kernel does not define the function", c->function);
    kernel_fn *k;
    memcpy(&k, &f, sizeof k);
    return k;
}

// Reads every line of what the kernel reads and takes ownership of every line that it writes, so that a run
// starts from the same caches whatever ran before.
static void warm(const struct touch *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        volatile char *p = (volatile char *)(uintptr_t)t[i].address;
        for (uint64_t at = 0; at < t[i].bytes; at += 64)
            if (t[i].write)
                // cppcheck-suppress selfAssignment ; a write that keeps the value: ownership of the line
                p[at] = p[at];
            else
                (void)p[at];
        if (t[i].bytes && t[i].write)
            // cppcheck-suppress selfAssignment
            p[t[i].bytes - 1] = p[t[i].bytes - 1];
    }
}

static void cool(const struct touch *t, uint32_t n)
{
    // Dirty lines first, then everything that is left by reading twice what the last cache holds.
#if defined(__x86_64__)
    for (uint32_t i = 0; i < n; i++) {
        char *p = (char *)(uintptr_t)t[i].address;
        for (uint64_t at = 0; at < t[i].bytes; at += 64)
            __builtin_ia32_clflush(p + at);
    }
    __builtin_ia32_mfence();
#else
    (void)t;
    (void)n;
#endif
    volatile char *s = sweep;
    for (size_t at = 0; at < sweep_bytes; at += 64)
        (void)s[at];
}

static uint32_t next_command(struct control *c, uint32_t last)
{
    for (int spin = 0;; spin++) {
        uint32_t seq = atomic_load_explicit(&c->seq, memory_order_acquire);
        if (seq != last)
            return seq;
        if (spin < SPINS) {
            relax();
            continue;
        }
        atomic_store(&c->asleep, 1);
        syscall(SYS_futex, &c->seq, FUTEX_WAIT, last, NULL, NULL, 0);
        atomic_store(&c->asleep, 0);
        spin = 0;
    }
}

static void answer(struct control *c, uint32_t seq)
{
    atomic_store(&c->done, seq);
    if (atomic_load(&c->judge_sleeps))
        syscall(SYS_futex, &c->done, FUTEX_WAKE, 1, NULL, NULL, 0);
}

__attribute__((noreturn)) static void obey(struct control *c, kernel_fn *kernel)
{
    static struct call_args args;
    static struct touch touches[MAX_BUFFERS];
    kernel_fn *nothing = (kernel_fn *)(uintptr_t)empty;
    uint32_t seq = 0;
    for (;;) {
        seq = next_command(c, seq);
        switch (c->op) {
        case OP_RUN:
            call(kernel, &args);
            break;
        case OP_EMPTY:
            call(nothing, &args);
            break;
        case OP_PREPARE: {
            args = c->args;
            uint32_t n = c->touches < MAX_BUFFERS ? c->touches : MAX_BUFFERS;
            memcpy(touches, c->touch, n * sizeof *touches);
            if (c->condition == CONDITION_WARM)
                warm(touches, n);
            else if (c->condition == CONDITION_COLD)
                cool(touches, n);
            break;
        }
        case OP_SLEEP:
            atomic_store(&c->asleep, 1);
            answer(c, seq);
            while (atomic_load(&c->seq) == seq)
                syscall(SYS_futex, &c->seq, FUTEX_WAIT, seq, NULL, NULL, 0);
            atomic_store(&c->asleep, 0);
            continue;
        case OP_QUIT:
            _exit(0);
        default: // OP_PING
            c->mxcsr = mxcsr_get();
            mxcsr_set_default(); // what one call left must not change the next
            break;
        }
        answer(c, seq);
    }
}

void child_main(int argc, char **argv)
{
    if (argc != 4)
        _exit(101);
    int control_fd = atoi(argv[2]), arena_fd = atoi(argv[3]); // NOLINT(cert-err34-c): our own words
    struct control *c =
        mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, control_fd, 0);
    if (c == MAP_FAILED)
        _exit(101);
    page = c;
    prctl(PR_SET_DUMPABLE, 0);
    pin(c->cpu);
    map_arena(c, arena_fd);
    close(control_fd);
    close(arena_fd);
    catch_signals();
    mxcsr_set_default();
    struct err e = {0};
    const char *const readable[] = {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", c->library, NULL};
    struct sandbox cage = {.kind = SANDBOX_KERNEL,
                           .read_only = readable,
                           .threads = c->threads > 1,
                           .memory_bytes = c->arena_bytes + sweep_bytes + KERNEL_MEMORY};
    if (sandbox_on_trap(on_trap) < 0 || sandbox_prepare(&cage, &e) < 0 || sandbox_enter(&cage) < 0)
        fail(c, "cannot enter the sandbox", e.msg[0] ? e.msg : strerror(errno));
    atomic_store(&c->state, CHILD_SANDBOXED);
    kernel_fn *kernel = load(c);
    if (sandbox_lock_kernel(&cage) < 0)
        fail(c, "cannot close the sandbox", strerror(errno));
    atomic_store(&c->state, CHILD_READY);
    obey(c, kernel);
}
