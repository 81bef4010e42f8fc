// Preloaded into the crash driver: writes every operation that changes a disk, with its data, to a log, so
// that replay.c can rebuild what a machine would hold after a stop before any of them.
//   KSMITH_CRASH_ROOT  only what happens below this folder counts
//   KSMITH_CRASH_LOG   the log: records of a header line and raw bytes
// A record is "OP INODE OFFSET LENGTH PATH[\tPATH2]\n" and LENGTH bytes. A sync carries the file's whole
// contents, which also catches what was written through a mapping. Writes to descriptor 1 are the driver's
// acknowledgements.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int log_fd = -1;
static const char *root;

static void raw_write(const void *data, size_t n)
{
    const char *p = data;
    while (n) {
        long w = syscall(SYS_write, log_fd, p, n);
        if (w <= 0)
            _exit(99);
        p += w;
        n -= (size_t)w;
    }
}

static bool ready(void)
{
    if (log_fd < 0 && getenv("KSMITH_CRASH_LOG")) {
        root = getenv("KSMITH_CRASH_ROOT");
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, getenv("KSMITH_CRASH_LOG"),
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    return log_fd >= 0 && root;
}

static void record(const char *op, unsigned long ino, long long at, const void *data, size_t n, const char *a,
                   const char *b)
{
    char head[2 * PATH_MAX + 100];
    int len =
        snprintf(head, sizeof head, "%s %lu %lld %zu %s%s%s\n", op, ino, at, n, a, b ? "\t" : "", b ? b : "");
    raw_write(head, (size_t)len);
    if (n)
        raw_write(data, n);
}

// Whether path (absolute, or seen from the working folder) lies below the root; full gets it absolute.
static bool inside(const char *path, char full[PATH_MAX])
{
    if (!ready())
        return false;
    if (path[0] == '/') {
        snprintf(full, PATH_MAX, "%s", path);
    } else {
        char cwd[PATH_MAX / 2];
        if (!getcwd(cwd, sizeof cwd))
            return false;
        snprintf(full, PATH_MAX, "%s/%s", cwd, path);
    }
    size_t n = strlen(root);
    return strncmp(full, root, n) == 0 && full[n] == '/';
}

static bool of_fd(int fd, char full[PATH_MAX], struct stat *st)
{
    char link[64];
    if (!ready() || fstat(fd, st) < 0)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, full, PATH_MAX - 1);
    if (n <= 0)
        return false;
    full[n] = 0;
    char again[PATH_MAX];
    return strcmp(full, root) == 0 || inside(full, again);
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static int opened(int fd, int flags, bool existed, const char *full)
{
    struct stat st;
    int keep = errno;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        if (!existed)
            record("create", st.st_ino, 0, NULL, 0, full, NULL);
        else if (flags & O_TRUNC)
            record("truncate", st.st_ino, 0, NULL, 0, full, NULL);
    }
    errno = keep;
    return fd;
}

#define OPEN(name)                                                    \
    int name(const char *path, int flags, ...)                        \
    {                                                                 \
        REAL(name);                                                   \
        mode_t mode = 0;                                              \
        if (flags & (O_CREAT | O_TMPFILE)) {                          \
            va_list ap;                                               \
            va_start(ap, flags);                                      \
            mode = va_arg(ap, mode_t);                                \
            va_end(ap);                                               \
        }                                                             \
        char full[PATH_MAX];                                          \
        if (!(flags & (O_CREAT | O_TRUNC)) || !inside(path, full))    \
            return real(path, flags, mode);                           \
        bool existed = access(path, F_OK) == 0;                       \
        return opened(real(path, flags, mode), flags, existed, full); \
    }
OPEN(open)
OPEN(open64)

#define MKSTEMP(name)                                                    \
    int name(char *template)                                             \
    {                                                                    \
        REAL(name);                                                      \
        char full[PATH_MAX];                                             \
        int fd = real(template);                                         \
        return inside(template, full) ? opened(fd, 0, false, full) : fd; \
    }
MKSTEMP(mkstemp)
MKSTEMP(mkstemp64)

ssize_t write(int fd, const void *data, size_t n)
{
    REAL(write);
    struct stat st;
    char full[PATH_MAX];
    if (fd == 1 && ready())
        record("ack", 0, 0, data, n, "-", NULL);
    if (!of_fd(fd, full, &st) || !S_ISREG(st.st_mode))
        return real(fd, data, n);
    bool append = fcntl(fd, F_GETFL) & O_APPEND;
    off_t at = append ? st.st_size : lseek(fd, 0, SEEK_CUR);
    ssize_t w = real(fd, data, n);
    if (w > 0)
        record("write", st.st_ino, at, data, (size_t)w, full, NULL);
    return w;
}

#define PWRITE(name, type)                                               \
    ssize_t name(int fd, const void *data, size_t n, type at)            \
    {                                                                    \
        REAL(name);                                                      \
        struct stat st;                                                  \
        char full[PATH_MAX];                                             \
        ssize_t w = real(fd, data, n, at);                               \
        if (w > 0 && of_fd(fd, full, &st) && S_ISREG(st.st_mode))        \
            record("write", st.st_ino, at, data, (size_t)w, full, NULL); \
        return w;                                                        \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define FTRUNCATE(name, type)                                         \
    int name(int fd, type size)                                       \
    {                                                                 \
        REAL(name);                                                   \
        struct stat st;                                               \
        char full[PATH_MAX];                                          \
        int r = real(fd, size);                                       \
        if (r == 0 && of_fd(fd, full, &st))                           \
            record("truncate", st.st_ino, size, NULL, 0, full, NULL); \
        return r;                                                     \
    }
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)

static void synced(int fd)
{
    struct stat st;
    char full[PATH_MAX];
    if (!of_fd(fd, full, &st))
        return;
    if (S_ISDIR(st.st_mode)) {
        record("syncdir", st.st_ino, 0, NULL, 0, full, NULL);
        return;
    }
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd); // fd may be write-only
    int in = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
    char *data = malloc((size_t)st.st_size + 1);
    ssize_t n = in >= 0 ? pread(in, data, (size_t)st.st_size, 0) : -1;
    if (n < 0)
        _exit(98);
    record("sync", st.st_ino, 0, data, (size_t)n, full, NULL);
    free(data);
    syscall(SYS_close, in);
}

#define SYNC(name)        \
    int name(int fd)      \
    {                     \
        REAL(name);       \
        int r = real(fd); \
        if (r == 0)       \
            synced(fd);   \
        return r;         \
    }
SYNC(fsync)
SYNC(fdatasync)

#define TWO_PATHS(name)                             \
    int name(const char *a, const char *b)          \
    {                                               \
        REAL(name);                                 \
        char x[PATH_MAX], y[PATH_MAX];              \
        int r = real(a, b);                         \
        if (r == 0 && inside(a, x) && inside(b, y)) \
            record(#name, 0, 0, NULL, 0, x, y);     \
        return r;                                   \
    }
TWO_PATHS(rename)
TWO_PATHS(link)

#define ONE_PATH(name)                             \
    int name(const char *a)                        \
    {                                              \
        REAL(name);                                \
        char x[PATH_MAX];                          \
        int r = real(a);                           \
        if (r == 0 && inside(a, x))                \
            record(#name, 0, 0, NULL, 0, x, NULL); \
        return r;                                  \
    }
ONE_PATH(unlink)
ONE_PATH(rmdir)

int mkdir(const char *a, mode_t mode)
{
    REAL(mkdir);
    char x[PATH_MAX];
    int r = real(a, mode);
    if (r == 0 && inside(a, x))
        record("mkdir", 0, 0, NULL, 0, x, NULL);
    return r;
}
