#include "base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int io_read_file(const char *path, size_t max, struct str *out, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        int r = err_sys(e, "", "cannot read %s", path);
        if (fd >= 0)
            close(fd);
        return r;
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return err_set(e, ERR_FAIL, "Name a regular file.", "cannot read %s: not a regular file", path);
    }
    size_t start = out->len;
    ssize_t got = 1;
    while (got > 0 && out->len - start <= max) {
        str_reserve(out, 65536);
        got = read(fd, out->s + out->len, 65536);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            out->len += (size_t)got;
    }
    out->s[out->len] = 0;
    int r = 0;
    if (got < 0)
        r = err_sys(e, "", "cannot read %s", path);
    else if (out->len - start > max)
        r = err_set(e, ERR_FAIL, "", "%s is larger than %zu bytes", path, max);
    close(fd);
    return r;
}

int io_write_all(int fd, const void *data, size_t n)
{
    const char *p = data;
    while (n) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -1;
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

int io_sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int r = fsync(fd);
    close(fd);
    return r;
}

static char *dir_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return xstrdup(".");
    return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

int io_write_file(const char *path, const char *data, size_t n, mode_t mode, struct err *e)
{
    char *temp = xasprintf("%s.tmp.%ld", path, (long)getpid());
    char *dir = dir_of(path);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    int r = fd < 0 ? -1 : io_write_all(fd, data, n);
    if (r == 0)
        r = fsync(fd);
    if (fd >= 0 && close(fd) < 0)
        r = -1;
    if (r == 0)
        r = rename(temp, path);
    if (r < 0) {
        err_sys(e, "", "cannot write %s", path);
        unlink(temp);
    } else {
        io_sync_dir(dir);
    }
    free(temp);
    free(dir);
    return r;
}

int io_mkdirs(const char *path, mode_t mode, struct err *e)
{
    char *p = xstrdup(path);
    int r = 0;
    for (char *slash = p + 1; r == 0; slash++) {
        slash = strchr(slash, '/');
        if (slash)
            *slash = 0;
        if (mkdir(p, mode) < 0 && !(errno == EEXIST && io_is_dir(p)))
            r = err_sys(e, "", "cannot make the folder %s", p);
        if (!slash)
            break;
        *slash = '/';
    }
    free(p);
    return r;
}

int io_remove(const char *path, struct err *e)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(e, "", "cannot remove %s", path);
    if (!S_ISDIR(st.st_mode))
        return unlink(path) < 0 && errno != ENOENT ? err_sys(e, "", "cannot remove %s", path) : 0;
    DIR *d = opendir(path);
    if (!d)
        return err_sys(e, "", "cannot remove %s", path);
    int r = 0;
    for (struct dirent *x; r == 0 && (x = readdir(d));) {
        if (str_eq(x->d_name, ".") || str_eq(x->d_name, ".."))
            continue;
        char *sub = io_join(path, x->d_name);
        r = io_remove(sub, e);
        free(sub);
    }
    closedir(d);
    return r < 0 ? r : rmdir(path) < 0 ? err_sys(e, "", "cannot remove %s", path) : 0;
}

static int copy_file(const char *from, const char *to, mode_t mode, struct err *e)
{
    struct str data = {0};
    int r = io_read_file(from, 64u << 20, &data, e);
    if (r == 0)
        r = io_write_file(to, str_c(&data), data.len, mode & 0777, e);
    str_free(&data);
    return r;
}

int io_copy_tree(const char *from, const char *to, struct err *e)
{
    struct stat st;
    if (stat(from, &st) < 0)
        return err_sys(e, "", "cannot copy %s", from);
    if (S_ISREG(st.st_mode))
        return copy_file(from, to, st.st_mode, e);
    DIR *d = S_ISDIR(st.st_mode) ? opendir(from) : NULL;
    if (!d)
        return err_set(e, ERR_FAIL, "", "cannot copy %s: neither a file nor a folder", from);
    int r = io_mkdirs(to, 0777, e);
    for (struct dirent *x; r == 0 && (x = readdir(d));) {
        if (x->d_name[0] == '.')
            continue;
        char *a = io_join(from, x->d_name), *b = io_join(to, x->d_name);
        r = io_copy_tree(a, b, e);
        free(a);
        free(b);
    }
    closedir(d);
    return r;
}

bool io_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool io_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *io_join(const char *a, const char *b)
{
    if (b[0] == '/' || !a[0])
        return xstrdup(b);
    return xasprintf("%s%s%s", a, str_ends(a, "/") ? "" : "/", b);
}

char *io_self_dir(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0)
        return xstrdup(".");
    path[n] = 0;
    return dir_of(path);
}

char *io_data_dir(const char *what)
{
    // From build/, from PREFIX/bin/ and from a bundle's own folder.
    static const char *const places[] = {"../share/ksmith", "..", "share/ksmith", "."};
    char *self = io_self_dir(), *found = NULL;
    for (size_t i = 0; !found && i < countof(places); i++) {
        char *path = xasprintf("%s/%s/%s", self, places[i], what);
        found = io_is_dir(path) ? realpath(path, NULL) : NULL;
        free(path);
    }
    free(self);
    return found;
}

char *io_temp_dir(const char *prefix, struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    char *path = xasprintf("%s/%s.XXXXXX", tmp && *tmp ? tmp : "/tmp", prefix);
    if (mkdtemp(path))
        return path;
    err_sys(e, "Set TMPDIR to a folder that can be written.", "cannot make a folder %s", path);
    free(path);
    return NULL;
}

char *io_runtime_dir(struct err *e)
{
    const char *run = getenv("XDG_RUNTIME_DIR");
    char *path = run && *run == '/' && io_is_dir(run) ? xasprintf("%s/ksmith", run)
                                                      : xasprintf("/tmp/ksmith-%u", (unsigned)getuid());
    struct stat st;
    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        err_sys(e, "Set XDG_RUNTIME_DIR to a folder of yours.", "cannot make %s", path);
    } else if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid() || (st.st_mode & 077)) {
        err_set(e, ERR_FAIL, "Remove it, or set XDG_RUNTIME_DIR to a folder of yours.",
                "%s is not a private folder of this user", path);
    } else {
        return path;
    }
    free(path);
    return NULL;
}

int io_cpus(int *cpus, int max)
{
    cpu_set_t set;
    int n = 0;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return 0;
    for (int i = 0; i < CPU_SETSIZE && n < max; i++)
        if (CPU_ISSET(i, &set))
            cpus[n++] = i;
    return n;
}
