#include "session/journal.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, CRC_TAIL = 18 }; // CRC_TAIL: the bytes of `,"crc":"01234567"}`

static const char restore_hint[] =
    "Everything before that line is good: put a backup back, or copy the lines before it over the file.";

// Whether s[0..n), without its newline, ends in the right checksum.
static bool crc_holds(const char *s, size_t n)
{
    if (n <= CRC_TAIL || memcmp(s + n - CRC_TAIL, ",\"crc\":\"", 8) != 0 || memcmp(s + n - 2, "\"}", 2) != 0)
        return false;
    uint32_t want = 0;
    for (const char *p = s + n - 10; p < s + n - 2; p++) {
        int digit = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        want = want << 4 | (uint32_t)digit;
    }
    return crc32_of(s, n - CRC_TAIL) == want;
}

int journal_reader_open(struct journal_reader *r, const char *path, struct err *e)
{
    *r = (struct journal_reader){.fd = -1, .path = xstrdup(path)};
    r->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0 && errno != ENOENT) {
        err_sys(e, "", "cannot read %s", path);
        journal_reader_close(r);
        return -1;
    }
    return 0;
}

void journal_reader_seek(struct journal_reader *r, int64_t offset, int64_t n)
{
    r->offset = offset;
    r->last = n;
    r->start = r->end = 0;
}

void journal_reader_close(struct journal_reader *r)
{
    if (r->fd >= 0)
        close(r->fd);
    free(r->path);
    free(r->buf);
    json_free(r->event);
    *r = (struct journal_reader){.fd = -1};
}

// Reads more behind what is buffered; returns the bytes read, 0 at the end of the file.
static ssize_t fill(struct journal_reader *r)
{
    if (r->fd < 0)
        r->fd = open(r->path, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0)
        return errno == ENOENT ? 0 : -1;
    if (r->start) {
        memmove(r->buf, r->buf + r->start, r->end - r->start);
        r->end -= r->start;
        r->start = 0;
    }
    if (r->cap - r->end < CHUNK / 2) {
        r->cap = r->cap ? r->cap * 2 : CHUNK;
        r->buf = xrealloc(r->buf, r->cap, 1);
    }
    ssize_t got;
    do
        got = pread(r->fd, r->buf + r->end, r->cap - r->end, (off_t)(r->offset + (int64_t)r->end));
    while (got < 0 && errno == EINTR);
    if (got > 0)
        r->end += (size_t)got;
    return got;
}

// The length of the next whole line with its newline; 0 where the file ends before one, -1 on a read error.
static ssize_t whole_line(struct journal_reader *r)
{
    size_t seen = 0;
    for (;;) {
        size_t have = r->end - r->start;
        const char *nl = have > seen ? memchr(r->buf + r->start + seen, '\n', have - seen) : NULL;
        if (nl)
            return nl - (r->buf + r->start) + 1;
        seen = have;
        ssize_t got = fill(r);
        if (got <= 0)
            return got;
    }
}

// After a bad line: does a good one follow? Then it is damage, and not the torn end of a crash.
static bool good_line_follows(struct journal_reader *r, size_t bad)
{
    size_t at = bad;
    for (;;) {
        const char *from = r->buf + r->start + at;
        size_t have = r->end - r->start - at;
        const char *nl = have ? memchr(from, '\n', have) : NULL;
        if (!nl) {
            if (fill(r) <= 0)
                return false;
            continue;
        }
        if (crc_holds(from, (size_t)(nl - from)))
            return true;
        at += (size_t)(nl - from) + 1;
    }
}

// Forgets what is buffered: the file may end differently when it is looked at again.
static int at_end(struct journal_reader *r)
{
    r->torn = (int64_t)(r->end - r->start);
    r->start = r->end = 0;
    return 0;
}

static int bad_line(const struct journal_reader *r, struct err *e, const char *what)
{
    err_set(e, ERR_FAIL, restore_hint, "the journal is damaged at line %" PRId64 " (byte %" PRId64 "): %s",
            r->last + 1, r->offset, what);
    if (e)
        snprintf(e->where, sizeof e->where, "%s:%" PRId64, r->path, r->last + 1);
    return -1;
}

int journal_next(struct journal_reader *r, struct journal_line *line, struct err *e)
{
    json_free(r->event);
    r->event = NULL;
    ssize_t len = whole_line(r);
    if (len < 0)
        return err_sys(e, "", "cannot read %s", r->path);
    if (len == 0)
        return at_end(r);
    if (!crc_holds(r->buf + r->start, (size_t)len - 1)) {
        if (!good_line_follows(r, (size_t)len))
            return at_end(r);
        return bad_line(r, e, "its checksum is wrong");
    }
    struct err why = {0};
    r->event = json_parse_own(r->buf + r->start, (size_t)len - 1, &why);
    if (!r->event)
        return bad_line(r, e, why.msg);
    int64_t n = json_int(r->event, "n", -1);
    const char *ev = json_str(r->event, "ev");
    if (n != r->last + 1) {
        snprintf(why.msg, sizeof why.msg, "it says to be line %" PRId64, n);
        return bad_line(r, e, why.msg);
    }
    if (!ev || !json_is_number(json_get(r->event, "t")))
        return bad_line(r, e, "it has no event or no time");
    *line = (struct journal_line){.n = n,
                                  .t = json_num(r->event, "t", 0),
                                  .ev = ev,
                                  .event = r->event,
                                  .offset = r->offset,
                                  .len = (size_t)len};
    r->last = n;
    r->offset += len;
    r->start += (size_t)len;
    r->torn = 0;
    return 1;
}

json *journal_line_at(const char *path, int64_t offset, struct err *e)
{
    struct journal_reader r;
    if (journal_reader_open(&r, path, e) < 0)
        return NULL;
    r.offset = offset;
    ssize_t len = offset < 0 ? 0 : whole_line(&r);
    json *j = NULL;
    if (len <= 0 || !crc_holds(r.buf + r.start, (size_t)len - 1))
        err_set(e, ERR_FAIL, "Open the session again.", "%s has no whole line at byte %" PRId64, path,
                offset);
    else
        j = json_parse_own(r.buf + r.start, (size_t)len - 1, e);
    journal_reader_close(&r);
    return j;
}

// Keeps the bytes that are cut off, so that nobody has to take our word for what was in them.
static void keep_torn(const struct journal *j, int64_t torn)
{
    char *path = xasprintf("%s.torn", j->path);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    char buf[65536];
    for (int64_t at = 0; fd >= 0 && at < torn;) {
        ssize_t got = pread(j->fd, buf, sizeof buf, (off_t)(j->size + at));
        if (got <= 0 || io_write_all(fd, buf, (size_t)got) < 0)
            break;
        at += got;
    }
    if (fd >= 0)
        close(fd);
    free(path);
}

static int sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
    int r = io_sync_dir(dir);
    free(dir);
    return r;
}

int journal_open(struct journal *j, const char *path, const struct journal_reader *at_end, int64_t *cut,
                 struct err *e)
{
    *j = (struct journal){.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), .path = xstrdup(path)};
    j->last = at_end->last;
    j->size = at_end->offset;
    struct stat st;
    if (j->fd < 0 || fstat(j->fd, &st) < 0) {
        err_sys(e, "", "cannot open %s", path);
        journal_close(j);
        return -1;
    }
    int64_t torn = (int64_t)st.st_size - j->size;
    if (cut)
        *cut = torn;
    if (torn > 0)
        keep_torn(j, torn);
    // What a reader has seen must not vanish at the next power cut, hence the sync also of what was found.
    if (torn < 0 || ftruncate(j->fd, (off_t)j->size) < 0 || fdatasync(j->fd) < 0 ||
        sync_folder_of(path) < 0) {
        err_sys(e, "", "cannot prepare %s for writing", path);
        journal_close(j);
        return -1;
    }
    return 0;
}

void journal_close(struct journal *j)
{
    if (j->fd >= 0) {
        if (j->unsynced)
            fdatasync(j->fd);
        close(j->fd);
    }
    free(j->path);
    str_free(&j->text);
    json_free(j->event);
    *j = (struct journal){.fd = -1};
}

// The line's bytes in j->text; returns its time.
static double line_text(struct journal *j, const json *event)
{
    bool timed = json_is_number(json_get(event, "t"));
    double t = timed ? json_num(event, "t", 0) : floor(clock_wall() * 1000 + 0.5) / 1000;
    str_clear(&j->text);
    str_addf(&j->text, "{\"n\":%" PRId64 ",", j->last + 1);
    if (!timed)
        str_addf(&j->text, "\"t\":%.3f,", t);
    size_t at = j->text.len;
    json_print(event, &j->text);
    str_splice(&j->text, at, 1, "", 0); // the object's own brace
    str_splice(&j->text, j->text.len - 1, 1, "", 0);
    str_addf(&j->text, ",\"crc\":\"%08" PRIx32 "\"}\n", crc32_of(j->text.s, j->text.len));
    return t;
}

static int write_at(int fd, const char *s, size_t n, int64_t at)
{
    while (n) {
        ssize_t w = pwrite(fd, s, n, (off_t)at);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return -1;
        s += w;
        at += w;
        n -= (size_t)w;
    }
    return 0;
}

static int take_back(struct journal *j, bool synced, struct err *e)
{
    int why = errno;
    // A failed sync may have dropped earlier lines as well: nothing more may be built on this descriptor.
    bool taken = ftruncate(j->fd, (off_t)j->size) == 0;
    j->broken = synced || !taken;
    errno = why;
    return err_sys(e,
                   why == ENOSPC ? "The disk is full: free some space, then resume. Nothing was lost." : "",
                   "cannot write to %s", j->path);
}

int journal_append(struct journal *j, json *event, enum journal_sync sync, struct journal_line *line,
                   struct err *e)
{
    json_free(j->event);
    j->event = event;
    if (j->broken)
        return err_set(e, ERR_FAIL, "Stop this engine and start it again.",
                       "%s could not be written earlier and takes no more lines", j->path);
    const char *ev = json_str(event, "ev");
    if (!ev)
        return err_set(e, ERR_FAIL, "", "a journal line without an event");
    double t = line_text(j, event);
    if (write_at(j->fd, j->text.s, j->text.len, j->size) < 0)
        return take_back(j, false, e);
    if (sync == JOURNAL_SYNC && fdatasync(j->fd) < 0)
        return take_back(j, true, e);
    j->unsynced = sync == JOURNAL_SYNC ? 0 : j->unsynced + (int64_t)j->text.len;
    j->last++;
    if (line)
        *line = (struct journal_line){
            .n = j->last, .t = t, .ev = ev, .event = event, .offset = j->size, .len = j->text.len};
    j->size += (int64_t)j->text.len;
    return 0;
}

int journal_flush(struct journal *j, struct err *e)
{
    if (!j->unsynced)
        return 0;
    if (fdatasync(j->fd) < 0) {
        j->broken = true;
        return err_sys(e, "", "cannot sync %s", j->path);
    }
    j->unsynced = 0;
    return 0;
}
