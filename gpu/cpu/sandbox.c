#include "cpu/sandbox.h"

#include "base/io.h"
#include "cpu/sandbox_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Landlock as the newest kernel we know has it; the system's header may be older, so the numbers stand here.
enum { CREATE_RULESET_VERSION = 1, RULE_PATH_BENEATH = 1 };
struct ruleset_attr {
    uint64_t fs, net, scoped;
};
struct path_attr {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));
#define FS_EXECUTE (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_REMOVE_DIR (1ull << 4)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_DIR (1ull << 7)
#define FS_MAKE_REG (1ull << 8)
#define FS_REFER (1ull << 13)
#define FS_TRUNCATE (1ull << 14)
#define FS_IOCTL_DEV (1ull << 15)
#define OF_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
#define NET_TCP 3ull // bind and connect
#define SCOPES 3ull  // abstract unix sockets and signals outside
// Rights of the file system that the ABIs 1, 2, ... know.
static const uint64_t fs_of_abi[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};

static int landlock_abi(void)
{
    long v = syscall(__NR_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
    return v < 0 ? 0 : (int)v;
}
static uint64_t fs_rights(int abi)
{
    int last = (int)countof(fs_of_abi) - 1;
    return fs_of_abi[abi < last ? abi : last];
}

void sandbox_support(struct sandbox_support *s)
{
    *s = (struct sandbox_support){.landlock = landlock_abi()};
    uint32_t action = SECCOMP_RET_TRAP;
    struct sandbox_filter *f = sandbox_filter_build(SANDBOX_COMPILER, false);
    s->seccomp = f && syscall(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
    sandbox_filter_free(f);
    s->full = s->landlock && s->seccomp;
    if (!s->full)
        snprintf(s->why, sizeof s->why, "this kernel has %s%s%s: nothing keeps a candidate from %s",
                 s->landlock ? "" : "no Landlock", !s->landlock && !s->seccomp ? " and " : "",
                 s->seccomp ? "" : "no seccomp filter", s->landlock ? "system calls" : "reading your files");
}

static int add_path(int ruleset, const char *path, uint64_t rights, struct err *e)
{
    struct path_attr a = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
    struct stat st;
    if (a.parent_fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES
                   ? 0
                   : err_sys(e, "", "cannot open %s for the sandbox", path);
    a.allowed = rights;
    if (fstat(a.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
        a.allowed &= OF_FILES;
    long r = syscall(__NR_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &a, 0);
    int saved = errno;
    close(a.parent_fd);
    errno = saved;
    return r < 0 ? err_sys(e, "", "cannot allow %s in the sandbox", path) : 0;
}

static int prepare_landlock(struct sandbox *s, int abi, struct err *e)
{
    uint64_t all = fs_rights(abi);
    struct ruleset_attr attr = {all, abi >= 4 ? NET_TCP : 0, abi >= 6 ? SCOPES : 0};
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    s->landlock_fd = (int)syscall(__NR_landlock_create_ruleset, &attr, size, 0);
    if (s->landlock_fd < 0)
        return err_sys(e, "`ksmith doctor` says what holds on this machine.",
                       "cannot make a Landlock rule set");
    uint64_t read = FS_READ_FILE | FS_READ_DIR | (s->kind == SANDBOX_COMPILER ? FS_EXECUTE : 0);
    uint64_t write = FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE |
                     FS_MAKE_DIR | FS_MAKE_REG | FS_REFER | FS_TRUNCATE;
    int r = 0;
    for (const char *const *p = s->read_only; p && *p && r == 0; p++)
        r = add_path(s->landlock_fd, *p, read & all, e);
    for (const char *const *p = s->read_write; p && *p && r == 0; p++)
        r = add_path(s->landlock_fd, *p, write & all, e);
    return r;
}

// RLIMIT_NPROC counts every thread of the user, on all of the machine: what runs now is the base.
static uint64_t threads_now(void)
{
    struct str s = {0};
    const char *slash = io_read_file("/proc/loadavg", 4096, &s, NULL) == 0 ? strchr(str_c(&s), '/') : NULL;
    uint64_t total = slash ? strtoull(slash + 1, NULL, 10) : 4096; // "0.20 0.18 0.12 1/80 11206"
    str_free(&s);
    return total;
}

int sandbox_prepare(struct sandbox *s, struct err *e)
{
    struct sandbox_support have;
    sandbox_support(&have);
    s->landlock_fd = -1;
    s->filter = have.seccomp ? sandbox_filter_build(s->kind, s->threads) : NULL;
    s->nproc_limit = s->processes ? threads_now() + s->processes : 0;
    s->prepared = true;
    int r = have.landlock ? prepare_landlock(s, have.landlock, e) : 0;
    if (r < 0)
        sandbox_done(s);
    return r;
}

void sandbox_done(struct sandbox *s)
{
    if (s->prepared && s->landlock_fd >= 0)
        close(s->landlock_fd);
    sandbox_filter_free(s->filter);
    s->landlock_fd = -1;
    s->filter = NULL;
    s->prepared = false;
}

static int limit(int what, uint64_t value)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)what, &now) < 0)
        return -1;
    rlim_t v = now.rlim_max < value ? now.rlim_max : value;
    return setrlimit((__rlimit_resource_t)what, &(struct rlimit){v, v});
}

static int set_limits(const struct sandbox *s)
{
#if defined __SANITIZE_ADDRESS__
    bool memory = s->memory_bytes && s->kind == SANDBOX_COMPILER; // ASan itself maps terabytes
#else
    bool memory = s->memory_bytes != 0;
#endif
    int r = limit(RLIMIT_CORE, 0) | limit(RLIMIT_NOFILE, s->files ? s->files : 256);
    if (memory)
        r |= limit(RLIMIT_AS, s->memory_bytes);
    if (s->file_bytes)
        r |= limit(RLIMIT_FSIZE, s->file_bytes);
    if (s->cpu_seconds)
        r |= limit(RLIMIT_CPU, s->cpu_seconds);
    if (s->nproc_limit)
        r |= limit(RLIMIT_NPROC, s->nproc_limit);
    return r;
}

// Without SPEC_ALLOW older kernels slow every branch of a filtered process down, which would show in timings.
static int install(const struct sock_fprog *p, unsigned flags)
{
    if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_SPEC_ALLOW, p) == 0)
        return 0;
    return errno == EINVAL ? (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, p) : -1;
}

int sandbox_enter(void *user)
{
    struct sandbox *s = user;
    if (!s->prepared) {
        errno = EINVAL;
        return -1;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || set_limits(s) < 0)
        return -1;
    if (s->landlock_fd >= 0 && syscall(__NR_landlock_restrict_self, s->landlock_fd, 0) < 0)
        return -1;
    return s->filter ? install(&s->filter->enter, 0) : 0;
}

int sandbox_lock_kernel(const struct sandbox *s)
{
    // All threads: one that a library started while it was loaded is locked as well.
    return s->filter ? install(&s->filter->lock, SECCOMP_FILTER_FLAG_TSYNC) : 0;
}

static void (*trap_fn)(int number);

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    if (trap_fn)
        trap_fn(info->si_syscall);
    syscall(__NR_exit_group, SANDBOX_TRAPPED); // _exit looks for leaks under ASan, with calls that trap again
    __builtin_unreachable();
}

int sandbox_on_trap(void (*fn)(int number))
{
    // The candidate may have run the stack out: the handler has its own.
    static char stack[16384];
    trap_fn = fn;
    struct sigaction a = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&a.sa_mask);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGSYS);
    if (sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL) < 0 ||
        sigaction(SIGSYS, &a, NULL) < 0)
        return -1;
    return sigprocmask(SIG_UNBLOCK, &only, NULL);
}
