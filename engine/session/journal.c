#include "session/journal.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CRC_TAIL = 18 }; // ,"crc":"9f3a11c2"}

struct journal {
    int fd;
    char *path;
    uint64_t size, lines;
};

// The line without its newline: whether its CRC holds.
static bool crc_ok(const char *s, size_t n)
{
    if (n < CRC_TAIL + 2 || memcmp(s + n - CRC_TAIL, ",\"crc\":\"", 8) != 0 || s[n - 1] != '}' || s[n - 2] != '"')
        return false;
    char want[16];
    snprintf(want, sizeof want, "%08x", crc32_of(s, n - CRC_TAIL));
    return memcmp(s + n - 10, want, 8) == 0;
}

static int bad_line(struct err *e, const char *path, uint64_t line, const char *what)
{
    err_set(e, ERR_FAIL, "Restore the file from a backup, or cut it off before this line: what comes after cannot be trusted.",
            "%s", what);
    err_at(e, path, (int)line, 1);
    return -1;
}

// One whole line.
static int take(const char *path, const char *s, size_t n, uint64_t offset, uint64_t number, journal_fn *fn, void *user,
                struct err *e)
{
    if (!crc_ok(s, n))
        return bad_line(e, path, number, "a line whose check sum does not hold");
    struct err inner = {0};
    json *o = json_parse(s, n, &inner);
    if (!o || !json_is_object(o)) {
        json_free(o);
        return bad_line(e, path, number, inner.msg[0] ? inner.msg : "a line that is no JSON object");
    }
    int r = json_int(o, "n", -1) == (int64_t)number ? 0 : bad_line(e, path, number, "a line with another line's number");
    if (r == 0 && fn && fn(user, o, offset, e) < 0) {
        r = -1;
        err_at(e, path, (int)number, 1);
    }
    json_free(o);
    return r;
}

// Reads whole lines of data[at..size); *at ends after the last whole line.
static int scan(const char *path, const char *data, size_t size, uint64_t base, size_t *at, uint64_t *lines, journal_fn *fn,
                void *user, struct err *e)
{
    while (*at < size) {
        const char *nl = memchr(data + *at, '\n', size - *at);
        if (!nl)
            return 0;
        size_t n = (size_t)(nl - data) - *at;
        // The last line may be torn although a newline follows, where blocks reached the disk out of order.
        if (nl + 1 == data + size && !crc_ok(data + *at, n))
            return 0;
        if (take(path, data + *at, n, base + *at, *lines + 1, fn, user, e) < 0)
            return -1;
        ++*lines;
        *at += n + 1;
    }
    return 0;
}

// Maps [from, end) of the file; *data is NULL where it is empty.
static int map_file(const char *path, int fd, uint64_t from, void **map, size_t *map_size, const char **data, size_t *size,
                    struct err *e)
{
    struct stat st;
    *map = NULL;
    *data = NULL;
    *size = 0;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "", "cannot read %s", path);
    if ((uint64_t)st.st_size <= from)
        return 0;
    uint64_t page = from & ~(uint64_t)4095;
    *map_size = (size_t)((uint64_t)st.st_size - page);
    *map = mmap(NULL, *map_size, PROT_READ, MAP_PRIVATE, fd, (off_t)page);
    if (*map == MAP_FAILED) {
        *map = NULL;
        return err_sys(e, "", "cannot read %s", path);
    }
    *data = (const char *)*map + (from - page);
    *size = (size_t)((uint64_t)st.st_size - from);
    return 0;
}

int journal_read(const char *path, uint64_t *offset, uint64_t *lines, journal_fn *fn, void *user, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, "", "cannot read %s", path);
    void *map;
    size_t map_size = 0, size, at = 0;
    const char *data;
    int r = map_file(path, fd, *offset, &map, &map_size, &data, &size, e);
    if (r == 0 && size)
        r = scan(path, data, size, *offset, &at, lines, fn, user, e);
    *offset += at;
    if (map)
        munmap(map, map_size);
    close(fd);
    return r;
}

json *journal_line_at(const char *path, uint64_t offset, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "", "cannot read %s", path), NULL;
    struct str s = {0};
    for (;;) {
        str_reserve(&s, 4096);
        ssize_t n = pread(fd, s.s + s.len, 4096, (off_t)(offset + s.len));
        if (n <= 0)
            break;
        s.len += (size_t)n;
        if (memchr(s.s + s.len - n, '\n', (size_t)n) || s.len > 64u << 20)
            break;
    }
    close(fd);
    char *nl = s.s ? memchr(s.s, '\n', s.len) : NULL;
    json *o = NULL;
    if (nl && crc_ok(s.s, (size_t)(nl - s.s)))
        o = json_parse(s.s, (size_t)(nl - s.s), e);
    else
        err_set(e, ERR_FAIL, "", "no whole line at offset %llu of %s", (unsigned long long)offset, path);
    str_free(&s);
    return o;
}

struct journal *journal_open(const char *path, journal_fn *fn, void *user, uint64_t *torn, struct err *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "", "cannot open %s", path), NULL;
    struct stat st;
    uint64_t offset = 0, lines = 0;
    if (fstat(fd, &st) < 0 || journal_read(path, &offset, &lines, fn, user, e) < 0) {
        close(fd);
        return NULL;
    }
    *torn = (uint64_t)st.st_size - offset;
    if (*torn && (ftruncate(fd, (off_t)offset) < 0 || fdatasync(fd) < 0)) {
        err_sys(e, "", "cannot cut the torn end off %s", path);
        close(fd);
        return NULL;
    }
    struct journal *j = xcalloc(1, sizeof *j);
    *j = (struct journal){fd, xstrdup(path), offset, lines};
    return j;
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    close(j->fd);
    free(j->path);
    free(j);
}

uint64_t journal_lines(const struct journal *j)
{
    return j->lines;
}

// {"n":17,"t":...,<event's own keys>,"crc":"..."}
static void format_line(const struct journal *j, json *event, struct str *out)
{
    char t[32];
    snprintf(t, sizeof t, "%.6f", clock_wall());
    json_put_int(event, "n", (int64_t)j->lines + 1);
    json_put_num(event, "t", strtod(t, NULL)); // exactly what a reader of the line will see
    str_addf(out, "{\"n\":%llu,\"t\":%s", (unsigned long long)(j->lines + 1), t);
    for (const json *x = json_first(event); x; x = json_next(x)) {
        if (str_eq(json_key(x), "n") || str_eq(json_key(x), "t"))
            continue;
        str_addf(out, ",\"%s\":", json_key(x));
        json_print(x, out);
    }
    str_addf(out, ",\"crc\":\"%08x\"}\n", crc32_of(out->s, out->len));
}

int journal_append(struct journal *j, json *event, bool sync, uint64_t *offset, struct err *e)
{
    struct str line = {0};
    format_line(j, event, &line);
    size_t done = 0;
    int r = 0;
    while (done < line.len && r == 0) {
        ssize_t n = pwrite(j->fd, line.s + done, line.len - done, (off_t)(j->size + done));
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            r = err_sys(e, "", "cannot write %s", j->path);
    }
    if (r == 0 && sync && fdatasync(j->fd) < 0)
        r = err_sys(e, "", "cannot make %s durable", j->path);
    if (r < 0) {
        // A part of a line must not stay in front of the next one.
        if (ftruncate(j->fd, (off_t)j->size) < 0)
            err_sys(e, "", "cannot write %s, nor take back the part that was written", j->path);
    } else {
        if (offset)
            *offset = j->size;
        j->size += line.len;
        j->lines++;
    }
    str_free(&line);
    return r;
}
