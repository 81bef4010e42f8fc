#include "cpu/sandbox_filter.h"

#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#define X32_BIT \
    0x40000000u // the x32 table of the same architecture reaches the same kernel with other numbers
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#endif
enum {
    LAST_KNOWN = 450
}; // set_mempolicy_home_node; the C library asks for later calls and takes "no" for an answer
#define NEW_NAMESPACES                                                                            \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
     CLONE_NEWNET)
#define OF_A_THREAD (CLONE_VM | CLONE_THREAD | CLONE_SIGHAND)

enum how { ALWAYS, EQUAL, ALL_SET, NONE_SET, ANY_SET };
struct test {
    enum how how;
    int arg; // its low 32 bits are tested: the kernel ignores the rest of these arguments
    uint32_t value;
};
// The first rule of a call whose tests all hold decides; where none does, the profile's default.
struct rule {
    int number;
    struct test tests[2];
};

// What ld.so, the OpenMP library's start and the harness need between sandbox_enter and the lock.
static const struct rule kernel_loading[] = {
    {__NR_openat, {{NONE_SET, 2, O_ACCMODE | O_CREAT | O_TRUNC}}}, // reading only; Landlock says which files
    {__NR_read, {{0}}},
    {__NR_pread64, {{0}}},
    {__NR_write, {{0}}},
    {__NR_close, {{0}}},
    {__NR_fstat, {{0}}},
    {__NR_newfstatat, {{0}}},
    {__NR_statx, {{0}}},
    {__NR_lseek, {{0}}},
    {__NR_getcwd, {{0}}},
    {__NR_readlinkat, {{0}}},
    {__NR_faccessat, {{0}}},
    {__NR_uname, {{0}}},
    {__NR_getpid, {{0}}},
    {__NR_getppid, {{0}}},
    {__NR_getrandom, {{0}}},
    {__NR_mmap, {{NONE_SET, 2, PROT_EXEC}}},
    {__NR_mmap, {{NONE_SET, 3, MAP_ANONYMOUS}, {NONE_SET, 2, PROT_WRITE}}}, // code from a file, not writable
    {__NR_prlimit64, {{EQUAL, 0, 0}, {EQUAL, 2, 0}}},                       // asking, not setting
    {__NR_sysinfo, {{0}}},
    {__NR_sched_getscheduler, {{0}}},
    {__NR_seccomp, {{0}}},
#ifdef __x86_64__
    {__NR_open, {{NONE_SET, 1, O_ACCMODE | O_CREAT | O_TRUNC}}},
    {__NR_stat, {{0}}},
    {__NR_lstat, {{0}}},
    {__NR_access, {{0}}},
    {__NR_readlink, {{0}}},
    {__NR_getrlimit, {{0}}},
#endif
};
// What a candidate may do while it runs; in both stages.
static const struct rule kernel_running[] = {
    {__NR_futex, {{0}}},
    {__NR_sched_yield, {{0}}},
    {__NR_clock_gettime, {{0}}},
    {__NR_write, {{EQUAL, 0, 1}}},
    {__NR_write, {{EQUAL, 0, 2}}},
    {__NR_exit_group, {{0}}},
    {__NR_exit, {{0}}},
    {__NR_mmap, {{NONE_SET, 2, PROT_EXEC}, {ALL_SET, 3, MAP_ANONYMOUS | MAP_PRIVATE}}},
    {__NR_mprotect, {{NONE_SET, 2, PROT_EXEC}}},
    {__NR_munmap, {{0}}},
    {__NR_mremap, {{0}}},
    {__NR_madvise, {{0}}},
    {__NR_brk, {{0}}},
    {__NR_rt_sigreturn, {{0}}},
    {__NR_restart_syscall, {{0}}},
};
// Starting and ending threads of the same process. clone3 hides its flags in memory and is answered with "no
// such call", after which the C library uses clone. A SIGSYS that a thread blocked ends the process all the
// same.
static const struct rule kernel_threads[] = {
    {__NR_clone, {{ALL_SET, 0, OF_A_THREAD}, {NONE_SET, 0, NEW_NAMESPACES}}},
    {__NR_set_robust_list, {{0}}},
    {__NR_rseq, {{0}}},
    {__NR_rt_sigprocmask, {{0}}},
    {__NR_rt_sigaction, {{EQUAL, 0, 32}}}, // the C library's own two signals, set at the first thread
    {__NR_rt_sigaction, {{EQUAL, 0, 33}}},
    {__NR_gettid, {{0}}},
    {__NR_sched_getaffinity, {{0}}},
};
static const struct rule kernel_loading_threads[] = {{__NR_sched_getaffinity, {{0}}},
                                                     {__NR_rt_sigprocmask, {{0}}}};
static const struct rule no_such_call[] = {{__NR_clone3, {{0}}}};

// What no compiler needs and an attack would like.
static const struct rule compiler_denied[] = {
    {__NR_socket, {{0}}},
    {__NR_socketpair, {{0}}},
    {__NR_ptrace, {{0}}},
    {__NR_process_vm_readv, {{0}}},
    {__NR_process_vm_writev, {{0}}},
    {__NR_process_madvise, {{0}}},
    {__NR_process_mrelease, {{0}}},
    {__NR_kcmp, {{0}}},
    {__NR_kill, {{0}}},
    {__NR_tkill, {{0}}},
    {__NR_tgkill, {{0}}},
    {__NR_rt_sigqueueinfo, {{0}}},
    {__NR_rt_tgsigqueueinfo, {{0}}},
    {__NR_pidfd_open, {{0}}},
    {__NR_pidfd_getfd, {{0}}},
    {__NR_pidfd_send_signal, {{0}}},
    {__NR_setpgid, {{0}}}, // the group is what the time limit kills
    {__NR_setsid, {{0}}},
    {__NR_clone, {{ANY_SET, 0, (uint32_t)NEW_NAMESPACES}}},
    {__NR_unshare, {{0}}},
    {__NR_setns, {{0}}},
    {__NR_mount, {{0}}},
    {__NR_umount2, {{0}}},
    {__NR_pivot_root, {{0}}},
    {__NR_chroot, {{0}}},
    {__NR_open_tree, {{0}}},
    {__NR_move_mount, {{0}}},
    {__NR_fsopen, {{0}}},
    {__NR_fsconfig, {{0}}},
    {__NR_fsmount, {{0}}},
    {__NR_fspick, {{0}}},
    {__NR_mount_setattr, {{0}}},
    {__NR_name_to_handle_at, {{0}}},
    {__NR_open_by_handle_at, {{0}}},
    {__NR_fanotify_init, {{0}}},
    {__NR_quotactl, {{0}}},
    {__NR_quotactl_fd, {{0}}},
    {__NR_swapon, {{0}}},
    {__NR_swapoff, {{0}}},
    {__NR_acct, {{0}}},
    {__NR_reboot, {{0}}},
    {__NR_syslog, {{0}}},
    {__NR_sethostname, {{0}}},
    {__NR_setdomainname, {{0}}},
    {__NR_settimeofday, {{0}}},
    {__NR_clock_settime, {{0}}},
    {__NR_clock_adjtime, {{0}}},
    {__NR_adjtimex, {{0}}},
    {__NR_init_module, {{0}}},
    {__NR_finit_module, {{0}}},
    {__NR_delete_module, {{0}}},
    {__NR_kexec_load, {{0}}},
    {__NR_bpf, {{0}}},
    {__NR_perf_event_open, {{0}}},
    {__NR_userfaultfd, {{0}}},
    {__NR_io_uring_setup, {{0}}},
    {__NR_io_uring_enter, {{0}}},
    {__NR_io_uring_register, {{0}}},
    {__NR_keyctl, {{0}}},
    {__NR_add_key, {{0}}},
    {__NR_request_key, {{0}}},
    {__NR_seccomp, {{0}}},
    {__NR_personality, {{0}}},
    {__NR_sched_setaffinity, {{0}}},
    {__NR_sched_setscheduler, {{0}}},
    {__NR_sched_setattr, {{0}}},
    {__NR_sched_setparam, {{0}}},
    {__NR_setpriority, {{0}}},
    {__NR_ioprio_set, {{0}}},
    {__NR_migrate_pages, {{0}}},
    {__NR_move_pages, {{0}}},
    {__NR_setuid, {{0}}},
    {__NR_setgid, {{0}}},
    {__NR_setreuid, {{0}}},
    {__NR_setregid, {{0}}},
    {__NR_setresuid, {{0}}},
    {__NR_setresgid, {{0}}},
    {__NR_setgroups, {{0}}},
    {__NR_capset, {{0}}},
    {__NR_shmget, {{0}}},
    {__NR_shmat, {{0}}},
    {__NR_msgget, {{0}}},
    {__NR_semget, {{0}}},
    {__NR_mq_open, {{0}}},
    {__NR_mknodat, {{0}}},
    {__NR_fchmod, {{0}}}, // modes, owners and times are not Landlock's
    {__NR_fchmodat, {{0}}},
    {__NR_utimensat, {{0}}},
    {__NR_fchownat, {{0}}},
    {__NR_fchown, {{0}}},
    {__NR_setxattr, {{0}}},
    {__NR_lsetxattr, {{0}}},
    {__NR_fsetxattr, {{0}}},
    {__NR_ioctl, {{EQUAL, 1, TIOCSTI}}},
    {__NR_ioctl, {{EQUAL, 1, TIOCLINUX}}},
    {__NR_prlimit64, {{ANY_SET, 0, ~0u}}}, // of another process
#ifdef __x86_64__
    {__NR_iopl, {{0}}},
    {__NR_ioperm, {{0}}},
    {__NR_modify_ldt, {{0}}},
    {__NR_mknod, {{0}}},
    {__NR_chmod, {{0}}},
    {__NR_utime, {{0}}},
    {__NR_utimes, {{0}}},
    {__NR_futimesat, {{0}}},
    {__NR_chown, {{0}}},
    {__NR_lchown, {{0}}},
    {__NR_kexec_file_load, {{0}}},
#endif
};

typedef VEC(struct sock_filter) program;

static void op(program *p, int code, uint32_t k, int yes, int no)
{
    struct sock_filter f = {(uint16_t)code, (uint8_t)yes, (uint8_t)no, k};
    vec_push(p, f);
}
static void load(program *p, size_t offset)
{
    op(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}
static void answer(program *p, uint32_t action)
{
    op(p, BPF_RET | BPF_K, action, 0, 0);
}

// A test's jump: on to the next instruction where it holds, else past the rest of the rule (`past` more).
static void emit_test(program *p, const struct test *t, int past)
{
    load(p, offsetof(struct seccomp_data, args) + 8 * (size_t)t->arg);
    switch (t->how) {
    case ALWAYS:
        break;
    case EQUAL:
        op(p, BPF_JMP | BPF_JEQ | BPF_K, t->value, 0, past);
        break;
    case NONE_SET:
        op(p, BPF_JMP | BPF_JSET | BPF_K, t->value, past, 0);
        break;
    case ANY_SET:
        op(p, BPF_JMP | BPF_JSET | BPF_K, t->value, 0, past);
        break;
    case ALL_SET:
        op(p, BPF_ALU | BPF_AND | BPF_K, t->value, 0, 0);
        op(p, BPF_JMP | BPF_JEQ | BPF_K, t->value, 0, past);
        break;
    }
}
static int test_length(const struct test *t)
{
    return t->how == ALWAYS ? 0 : t->how == ALL_SET ? 3 : 2;
}

static void emit_rules(program *p, const struct rule *rules, size_t n, uint32_t action)
{
    for (size_t i = 0; i < n; i++) {
        const struct rule *r = &rules[i];
        int first = test_length(&r->tests[0]), second = test_length(&r->tests[1]);
        int reload = first + second > 0; // tests overwrite the number
        op(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->number, 0, first + second + 1 + reload);
        if (first)
            emit_test(p, &r->tests[0], second + 1);
        if (second)
            emit_test(p, &r->tests[1], 1);
        answer(p, action);
        if (reload)
            load(p, offsetof(struct seccomp_data, nr));
    }
}

#ifdef ARCH
static void emit_head(program *p)
{
    load(p, offsetof(struct seccomp_data, arch));
    op(p, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    answer(p, SECCOMP_RET_KILL_PROCESS);
    load(p, offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
    op(p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    answer(p, SECCOMP_RET_KILL_PROCESS);
#endif
}

static struct sock_fprog finish(program *p, uint32_t otherwise)
{
    answer(p, otherwise);
    return (struct sock_fprog){(unsigned short)p->n, p->v};
}

static struct sock_fprog compiler_program(void)
{
    program p = {0};
    emit_head(&p);
    op(&p, BPF_JMP | BPF_JGT | BPF_K, LAST_KNOWN, 0, 1);
    answer(&p, SECCOMP_RET_ERRNO | ENOSYS);
    emit_rules(&p, no_such_call, countof(no_such_call), SECCOMP_RET_ERRNO | ENOSYS);
    emit_rules(&p, compiler_denied, countof(compiler_denied), SECCOMP_RET_ERRNO | EPERM);
    return finish(&p, SECCOMP_RET_ALLOW);
}

static struct sock_fprog kernel_program(bool loading, bool threads)
{
    program p = {0};
    emit_head(&p);
    emit_rules(&p, kernel_running, countof(kernel_running), SECCOMP_RET_ALLOW);
    if (threads) {
        emit_rules(&p, no_such_call, countof(no_such_call), SECCOMP_RET_ERRNO | ENOSYS);
        emit_rules(&p, kernel_threads, countof(kernel_threads), SECCOMP_RET_ALLOW);
    }
    if (loading) {
        emit_rules(&p, kernel_loading, countof(kernel_loading), SECCOMP_RET_ALLOW);
        emit_rules(&p, kernel_loading_threads, countof(kernel_loading_threads), SECCOMP_RET_ALLOW);
    }
    return finish(&p, SECCOMP_RET_TRAP);
}
#endif

struct sandbox_filter *sandbox_filter_build(enum sandbox_kind kind, bool threads)
{
#ifdef ARCH
    struct sandbox_filter *f = xcalloc(1, sizeof *f);
    if (kind == SANDBOX_COMPILER) {
        f->enter = compiler_program();
    } else {
        f->enter = kernel_program(true, threads);
        f->lock = kernel_program(false, threads);
    }
    return f;
#else
    (void)kind;
    (void)threads;
    return NULL;
#endif
}

void sandbox_filter_free(struct sandbox_filter *f)
{
    if (!f)
        return;
    free(f->enter.filter);
    free(f->lock.filter);
    free(f);
}
