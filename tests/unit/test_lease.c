// The machine's lock between processes, and the fingerprint.
#include "base/clock.h"
#include "base/io.h"
#include "cpu/fingerprint.h"
#include "cpu/lease.h"
#include "t.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool at_once(void *user)
{
    (void)user;
    return true;
}

// A child that takes the lease, says so on the pipe, and holds it until it is killed or ms passed.
static pid_t holder(int say, int ms)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct lease *l;
    if (lease_open(&l, "cpu", NULL) < 0 || lease_take(l, 5000, NULL, NULL, NULL) != 0 || write(say, "x", 1) != 1)
        _exit(1);
    clock_sleep_ms(ms);
    lease_close(l);
    _exit(0);
}

static void one_at_a_time(void)
{
    struct lease *l;
    int fds[2], status;
    char byte;
    CHECK_INT(lease_open(&l, "cpu", NULL), 0);
    CHECK(pipe(fds) == 0);
    pid_t pid = holder(fds[1], 10000);
    CHECK_INT(read(fds[0], &byte, 1), 1);
    CHECK_INT(lease_take(l, 30, NULL, NULL, NULL), 1);
    CHECK(!lease_held(l));
    CHECK_INT(lease_take(l, 60000, at_once, NULL, NULL), 1);
    kill(pid, SIGKILL); // the lock ends with its holder
    waitpid(pid, &status, 0);
    CHECK_INT(lease_take(l, 5000, NULL, NULL, NULL), 0);
    CHECK(lease_held(l) && !lease_wanted(l));
    lease_close(l);
    close(fds[0]);
    close(fds[1]);
}

static void yields_to_who_waits(void)
{
    struct lease *l;
    int fds[2], status;
    char byte;
    CHECK_INT(lease_open(&l, "cpu", NULL), 0);
    CHECK(pipe(fds) == 0);
    CHECK_INT(lease_take(l, 5000, NULL, NULL, NULL), 0);
    pid_t pid = holder(fds[1], 30);
    for (int i = 0; i < 1000 && !lease_wanted(l); i++)
        clock_sleep_ms(2);
    CHECK(lease_wanted(l));
    CHECK_INT(lease_yield(l, 5000, NULL, NULL, NULL), 0);
    CHECK_INT(read(fds[0], &byte, 1), 1); // it had its turn before we had the lease again
    CHECK(lease_held(l));
    waitpid(pid, &status, 0);
    CHECK_INT(status, 0);
    CHECK(!lease_wanted(l));
    CHECK_INT(lease_yield(l, 5000, NULL, NULL, NULL), 0);
    lease_close(l);
    close(fds[0]);
    close(fds[1]);
}

static void fingerprint_is_stable(void)
{
    struct fingerprint a, b;
    json *x = fingerprint_read(NULL, &a), *y = fingerprint_read(NULL, &b);
    CHECK_STR(a.id, b.id);
    CHECK_INT(strlen(a.id), 16);
    CHECK(a.device[0] && json_str(x, "kernel") && json_str(x, "libc"));
    json_free(x);
    json_free(y);
}

// A folder that another user prepared is not used, and said so; timing goes on.
static void hostile_folders_are_refused(void)
{
    static const char *const names[] = {"link", "closed", "target"};
    char *dir = io_temp_dir("ksmith-test", NULL), *path[3];
    for (int i = 0; i < 3; i++)
        path[i] = io_join(dir, names[i]);
    CHECK(mkdir(path[2], 01777) == 0 && chmod(path[2], 01777) == 0 && symlink(path[2], path[0]) == 0);
    CHECK(mkdir(path[1], 0755) == 0);
    char *lock = io_join(path[2], "cpu");
    CHECK(symlink("/etc/hostname", lock) == 0);
    for (int i = 0; i < 3; i++) {
        struct lease *l;
        setenv("KSMITH_LEASE", path[i], 1);
        CHECK_INT(lease_open(&l, "cpu", NULL), 0);
        CHECK(lease_warning(l) != NULL);
        CHECK_INT(lease_take(l, 0, NULL, NULL, NULL), 0);
        CHECK(!lease_wanted(l));
        lease_close(l);
        free(path[i]);
    }
    io_remove(dir, NULL);
    free(lock);
    free(dir);
}

int main(void)
{
    char *dir = io_temp_dir("ksmith-test", NULL), *folder = io_join(dir, "lease");
    setenv("KSMITH_LEASE", folder, 1);
    T(one_at_a_time);
    T(yields_to_who_waits);
    T(hostile_folders_are_refused);
    T(fingerprint_is_stable);
    io_remove(dir, NULL);
    free(folder);
    free(dir);
    T_END;
}
