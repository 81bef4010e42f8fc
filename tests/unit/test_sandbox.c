// The two profiles, tried from inside: each test forks, restricts the child and looks at how it ends.
#include "base/clock.h"
#include "base/io.h"
#include "base/proc.h"
#include "cpu/compile.h"
#include "cpu/sandbox.h"
#include "t.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct sandbox_support have;
static volatile int *trapped; // shared with the children

static void note(int number)
{
    *trapped = number;
}

static const char *const readable[] = {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", NULL};

// Runs act in a locked kernel sandbox. Returns its exit status, or minus the signal.
static int in_kernel(bool threads, bool locked, int (*act)(void))
{
    *trapped = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct sandbox s = {
            .kind = SANDBOX_KERNEL, .read_only = readable, .file_bytes = 1 << 20, .threads = threads};
        if (sandbox_on_trap(note) < 0 || sandbox_prepare(&s, NULL) < 0 || sandbox_enter(&s) < 0)
            _exit(99);
        if (locked && sandbox_lock_kernel(&s) < 0)
            _exit(98);
        syscall(SYS_exit_group, act()); // without the checks of a sanitizer, which trap
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int do_nothing(void)
{
    return 0;
}
static int do_work(void)
{
    struct timespec t;
    char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         *q = malloc(4 << 20);
    bool ok = p != MAP_FAILED && q && clock_gettime(CLOCK_MONOTONIC, &t) == 0 && write(2, "", 0) == 0;
    if (ok)
        *(volatile char *)(q + 12345) = p[1] = 1;
    free(q);
    munmap(p, 1 << 20);
    sched_yield();
    return !ok;
}
static int do_open(void)
{
    return open("/usr/include/stdio.h", O_RDONLY) < 0;
}
static int do_secret(void)
{
    return open("/etc/passwd", O_RDONLY) >= 0 ? 1 : errno == EACCES ? 0 : 2;
}
static int do_open_write(void)
{
    return open("/usr/include/stdio.h", O_RDWR) >= 0;
}
static int do_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) >= 0;
}
static int do_fork(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid > 0;
}
static int do_exec(void)
{
    char *argv[] = {"true", NULL};
    execv("/usr/bin/true", argv);
    return 1;
}
static int do_kill(void)
{
    return kill(getppid(), 0);
}
static int do_sigaction(void)
{
    return signal(SIGSYS, SIG_IGN) == SIG_ERR;
}
static int do_executable(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mprotect(p, 4096, PROT_READ | PROT_EXEC);
}
static int do_map_executable(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
           MAP_FAILED;
}
static int do_write_elsewhere(void)
{
    return write(7, "x", 1) < 0;
}
#if !defined __SANITIZE_ADDRESS__ // its start of a thread asks the system for more
static void *thread_main(void *p)
{
    *(volatile int *)p = 42;
    return NULL;
}
static int do_thread(void)
{
    pthread_t t;
    int x = 0;
    if (pthread_create(&t, NULL, thread_main, &x) != 0)
        return 1;
    pthread_join(t, NULL);
    return x != 42;
}
#endif
static int do_blocked(void)
{
    sigset_t all;
    sigfillset(&all);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, 8);
    return socket(AF_INET, SOCK_STREAM, 0) >= 0;
}

static void kernel_does_its_work(void)
{
    CHECK_INT(in_kernel(false, true, do_nothing), 0);
    CHECK_INT(in_kernel(false, true, do_work), 0);
}

static void kernel_reads_libraries_only_while_loading(void)
{
    CHECK_INT(in_kernel(false, false, do_open), 0);
    CHECK_INT(in_kernel(false, true, do_open), SANDBOX_TRAPPED);
    CHECK_STR(sandbox_syscall_name(*trapped), "openat");
    CHECK_INT(in_kernel(false, false, do_open_write), SANDBOX_TRAPPED);
    if (have.landlock)
        CHECK_INT(in_kernel(false, false, do_secret), 0);
}

static void kernel_traps(void)
{
    static const struct {
        int (*act)(void);
        const char *call;
    } cases[] = {
        {do_socket, "socket"},
        {do_fork, "clone"},
        {do_exec, "execve"},
        {do_kill, "getppid"},
        {do_sigaction, "rt_sigaction"},
        {do_executable, "mprotect"},
        {do_map_executable, "mmap"},
        {do_write_elsewhere, "write"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(in_kernel(false, true, cases[i].act), SANDBOX_TRAPPED);
        CHECK_STR(sandbox_syscall_name(*trapped), cases[i].call);
    }
    CHECK_INT(in_kernel(false, false, do_socket), SANDBOX_TRAPPED);
    CHECK_INT(in_kernel(false, false, do_fork), SANDBOX_TRAPPED);
    CHECK_INT(in_kernel(false, false, do_sigaction), SANDBOX_TRAPPED);
}

static void kernel_with_threads(void)
{
#if !defined __SANITIZE_ADDRESS__
    CHECK_INT(in_kernel(true, true, do_thread), 0);
    CHECK_INT(in_kernel(false, true, do_thread), SANDBOX_TRAPPED);
#endif
    CHECK_INT(in_kernel(true, true, do_fork), SANDBOX_TRAPPED);
    CHECK_INT(in_kernel(true, true, do_socket), SANDBOX_TRAPPED);
    CHECK_INT(in_kernel(true, true, do_blocked), -SIGSYS);
}

#if !defined __SANITIZE_ADDRESS__
// A real parallel kernel: its library starts inside the cage, its threads after the lock.
static void openmp_runs_in_the_cage(void)
{
    char *dir = io_temp_dir("ksmith-test", NULL), flag[] = "-fopenmp";
    struct task task = {.dir = dir,
                        .project = dir,
                        .kernel_file = "k.c",
                        .kernel_func = "k",
                        .allow_threads = true,
                        .threads = 2};
    struct compiler *c = NULL;
    struct binary b = {0};
    struct str log = {0};
    struct err e = {0};
    vec_push(&task.cflags, flag);
    CHECK_INT(compiler_open(&task, &c, &e), 0);
    if (c)
        CHECK_INT(compiler_build(c,
                                 "void k(int *o, int n) {\n_Pragma(\"omp parallel for num_threads(2)\")\n"
                                 "for (int i = 0; i < n; i++) o[i] = i; }\n",
                                 NULL, 0, &b, &log, &e),
                  0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        const char *const paths[] = {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", b.path, NULL};
        struct sandbox s = {
            .kind = SANDBOX_KERNEL, .read_only = paths, .threads = true, .memory_bytes = 1ull << 30};
        int out[1000];
        void (*k)(int *, int) = NULL;
        if (sandbox_on_trap(note) < 0 || sandbox_prepare(&s, NULL) < 0 || sandbox_enter(&s) < 0)
            _exit(99);
        void *so = dlopen(b.path, RTLD_NOW | RTLD_LOCAL);
        if (so)
            *(void **)&k = dlsym(so, "k");
        if (!k || sandbox_lock_kernel(&s) < 0)
            _exit(98);
        for (int i = 0; i < 3; i++)
            k(out, 1000);
        syscall(SYS_exit_group, out[999] != 999);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK_INT(status, 0);
    if (status)
        printf("# trapped %s\n", sandbox_syscall_name(*trapped));
    compiler_close(c);
    vec_free(&task.cflags);
    io_remove(dir, NULL);
    free(dir);
    str_free(&log);
}
#endif

// Runs a shell line under the compiler's profile.
static struct proc_end in_compiler(const char *line, struct sandbox *s, struct str *out)
{
    const char *argv[] = {"sh", "-c", line, NULL};
    struct proc_end end = {0};
    struct err e = {0};
    str_clear(out);
    CHECK(sandbox_prepare(s, &e) == 0);
    struct proc_spec spec = {
        .argv = argv, .in = -1, .out = -1, .err = -1, .before_exec = sandbox_enter, .user = s};
    CHECK(proc_run(&spec, out, 4096, 5000, &end, &e) == 0);
    sandbox_done(s);
    return end;
}

static void compiler_profile(void)
{
    char *dir = io_temp_dir("ksmith-test", NULL), *line = xasprintf("echo fine > %s/a; cat %s/a", dir, dir);
    const char *const ro[] = {"/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", NULL};
    const char *const rw[] = {dir, "/dev/null", NULL};
    struct sandbox s = {.kind = SANDBOX_COMPILER,
                        .read_only = ro,
                        .read_write = rw,
                        .memory_bytes = 512u << 20,
                        .file_bytes = 65536,
                        .cpu_seconds = 2,
                        .processes = 64};
    struct str out = {0};
    CHECK_INT(in_compiler(line, &s, &out).status, 0);
    CHECK_STR(str_c(&out), "fine\n");
    if (have.landlock) {
        CHECK(in_compiler("cat /etc/passwd", &s, &out).status != 0);
        CHECK(strstr(str_c(&out), "root:") == NULL);
        CHECK(in_compiler("echo x > /tmp/ksmith-outside", &s, &out).status != 0);
        CHECK(!io_exists("/tmp/ksmith-outside"));
    }
    CHECK(in_compiler("kill -0 $PPID", &s, &out).status != 0);
    CHECK(in_compiler("head -c 1000000 /usr/bin/gcc > $0.big || exit 9", &s, &out).status != 0);
    CHECK_INT(in_compiler("while :; do :; done", &s, &out).signal, SIGKILL);
    free(line);
    io_remove(dir, NULL);
    free(dir);
    str_free(&out);
}

int main(void)
{
    trapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sandbox_support(&have);
    if (have.seccomp) {
        T(kernel_does_its_work);
        T(kernel_reads_libraries_only_while_loading);
        T(kernel_traps);
        T(kernel_with_threads);
#if !defined __SANITIZE_ADDRESS__
        T(openmp_runs_in_the_cage);
#endif
        T(compiler_profile);
    } else {
        SKIP("sandbox", have.why);
    }
    T_END;
}
