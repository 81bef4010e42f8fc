#include "cpu/lease.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

// Everybody on the machine may lock here, so the folder is sticky and the files are writable for all: nothing
// is ever read from or written to them. Two locks: `cpu` (or the name of a GPU) is the right to measure,
// `cpu.wait` is held (shared) by those who wait for it, so that a holder between two replicates sees them.
enum { POLL_MS = 5, ASK_MS = 20, HAND_OVER_MS = 200 };

struct lease {
    int lock, wait; // descriptors; -1 for a private lease
    bool held;
    char *path;
    char warning[256];
};

// A regular file of ours, made where it is missing. Links are not followed, and an existing file is opened
// without O_CREAT, which kernels refuse for other users' files in a sticky folder.
static int open_file(int dir, const char *name)
{
    for (int i = 0; i < 3; i++) {
        int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 && errno == ENOENT) {
            fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
            if (fd >= 0 && fchmod(fd, 0666) < 0) { // past the umask
                close(fd);
                return -1;
            }
        }
        struct stat st;
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
            return fd;
        if (fd >= 0)
            close(fd);
        else if (errno != EEXIST) // another process was first: open it
            return -1;
    }
    errno = EPERM;
    return -1;
}

static int open_folder(const char *folder)
{
    if (mkdir(folder, 01777) == 0 && chmod(folder, 01777) < 0)
        return -1;
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (dir < 0 || fstat(dir, &st) < 0)
        return -1;
    if ((st.st_mode & 01777) == 01777)
        return dir;
    close(dir);
    errno = EPERM;
    return -1;
}

int lease_open(struct lease **out, const char *what, struct err *e)
{
    (void)e; // there is always a lease, if need be a private one
    struct lease *l = xcalloc(1, sizeof *l);
    const char *set = getenv("KSMITH_LEASE"), *folder = set && *set == '/' ? set : "/tmp/ksmith-lease";
    char wait[96];
    snprintf(wait, sizeof wait, "%.80s.wait", what);
    l->path = xasprintf("%s/%s", folder, what);
    l->lock = l->wait = -1;
    int dir = open_folder(folder);
    if (dir >= 0) {
        l->lock = open_file(dir, what);
        l->wait = l->lock >= 0 ? open_file(dir, wait) : -1;
    }
    int saved = errno;
    if (l->wait < 0) {
        if (l->lock >= 0)
            close(l->lock);
        l->lock = -1;
        snprintf(l->warning, sizeof l->warning,
                 "%s cannot be used (%s): other sessions on this machine may disturb timings", l->path,
                 strerror(saved));
    }
    if (dir >= 0)
        close(dir);
    *out = l;
    return 0;
}

void lease_close(struct lease *l)
{
    if (!l)
        return;
    if (l->lock >= 0)
        close(l->lock); // also releases
    if (l->wait >= 0)
        close(l->wait);
    free(l->path);
    free(l);
}

const char *lease_warning(const struct lease *l)
{
    return l->warning[0] ? l->warning : NULL;
}
const char *lease_path(const struct lease *l)
{
    return l->path;
}
bool lease_held(const struct lease *l)
{
    return l->held;
}

// 1 ours, 0 somebody else's, -1 trouble.
static int try_lock(int fd, int how)
{
    while (flock(fd, how | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return 0;
        if (errno != EINTR)
            return -1;
    }
    return 1;
}

int lease_take(struct lease *l, int timeout_ms, bool (*stop)(void *user), void *user, struct err *e)
{
    if (l->held)
        return 0;
    if (l->lock < 0) {
        l->held = true;
        return 0;
    }
    int64_t start = clock_ns(), asked = start;
    bool waiting = false;
    int r = -1;
    for (;;) {
        int got = try_lock(l->lock, LOCK_EX);
        int64_t now = clock_ns();
        if (got > 0) {
            l->held = true;
            r = 0;
        } else if (got < 0) {
            r = err_sys(e, "Remove it when no session runs, and try again.", "cannot lock %s", l->path);
        } else if ((timeout_ms >= 0 && now - start >= (int64_t)timeout_ms * 1000000)) {
            r = 1;
        } else if (stop && now - asked >= ASK_MS * 1000000) {
            asked = now;
            r = stop(user) ? 1 : -1;
        }
        if (got != 0 || r >= 0)
            break;
        waiting = waiting || try_lock(l->wait, LOCK_SH) > 0;
        clock_sleep_ms(POLL_MS);
    }
    if (waiting)
        flock(l->wait, LOCK_UN);
    return r;
}

void lease_release(struct lease *l)
{
    if (l->held && l->lock >= 0)
        flock(l->lock, LOCK_UN);
    l->held = false;
}

bool lease_wanted(const struct lease *l)
{
    if (l->wait < 0 || try_lock(l->wait, LOCK_EX) == 0)
        return l->wait >= 0;
    flock(l->wait, LOCK_UN);
    return false;
}

int lease_yield(struct lease *l, int timeout_ms, bool (*stop)(void *user), void *user, struct err *e)
{
    if (!l->held || !lease_wanted(l))
        return lease_take(l, timeout_ms, stop, user, e);
    lease_release(l);
    // Until somebody else has it; one that gave up meanwhile costs a fraction of a second.
    for (int64_t start = clock_ns(); clock_ns() - start < HAND_OVER_MS * 1000000;) {
        if (try_lock(l->lock, LOCK_SH) == 0)
            break;
        flock(l->lock, LOCK_UN);
        if (!lease_wanted(l))
            break;
        clock_sleep_ms(POLL_MS);
    }
    return lease_take(l, timeout_ms, stop, user, e);
}
