#include "models/record.h"

#include "base/io.h"
#include "base/log.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TAG = 40, MAX_SALVAGE = 8 << 20 };

struct entry {
    char tag[MAX_TAG + 1];
    int turn;
    off_t at;
    size_t len;
};

struct record {
    int fd;
    char *path;
    off_t seen; // indexed so far
    VEC(struct entry) index;
};

static bool tag_ok(const char *tag)
{
    size_t n = tag ? strlen(tag) : 0;
    return n > 0 && n <= MAX_TAG && tag[0] != '.' &&
           strspn(tag, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

// A line begins with {"tag":"17","turn":0, because record_add writes it so: the index needs no more of it.
static bool read_head(const char *line, size_t n, struct entry *x)
{
    char head[MAX_TAG + 48];
    size_t k = n < sizeof head - 1 ? n : sizeof head - 1;
    memcpy(head, line, k);
    head[k] = 0;
    if (!str_starts(head, "{\"tag\":\""))
        return false;
    const char *tag = head + 8, *end = strchr(tag, '"');
    if (!end || end == tag || end - tag > MAX_TAG || !str_starts(end, "\",\"turn\":"))
        return false;
    memcpy(x->tag, tag, (size_t)(end - tag));
    x->tag[end - tag] = 0;
    x->turn = (int)strtol(end + 9, NULL, 10);
    return true;
}

// Indexes whole lines that were appended since. A line that is no exchange is passed over.
static void refresh(struct record *r)
{
    struct str rest = {0};
    struct stat st;
    if (fstat(r->fd, &st) < 0 || st.st_size <= r->seen)
        return;
    for (off_t at = r->seen; at < st.st_size;) {
        char buf[65536];
        ssize_t n = pread(r->fd, buf, sizeof buf, at);
        if (n <= 0)
            break;
        at += n;
        const char *from = buf, *end = buf + n;
        for (const char *nl; from < end && (nl = memchr(from, '\n', (size_t)(end - from))); from = nl + 1) {
            str_addn(&rest, from, (size_t)(nl - from));
            struct entry x = {.at = r->seen, .len = rest.len};
            if (read_head(str_c(&rest), rest.len, &x))
                vec_push(&r->index, x);
            r->seen += (off_t)rest.len + 1;
            str_clear(&rest);
        }
        str_addn(&rest, from, (size_t)(end - from));
    }
    str_free(&rest);
}

struct record *record_open(const char *dir, bool write, struct err *e)
{
    struct record *r = xcalloc(1, sizeof *r);
    struct stat st;
    r->path = xasprintf("%s/exchanges.jsonl", dir);
    r->fd = open(r->path, write ? O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0600);
    if (r->fd < 0) {
        err_sys(e, "", "cannot open %s", r->path);
        free(r->path);
        free(r);
        return NULL;
    }
    refresh(r);
    // What a crash left of a last line goes, or the next line would be glued to it.
    if (write && fstat(r->fd, &st) == 0 && st.st_size > r->seen) {
        log_line("the last line of %s was torn and is cut off", r->path);
        if (ftruncate(r->fd, r->seen) < 0)
            log_line("it cannot be cut off: %s", strerror(errno));
    }
    return r;
}

void record_free(struct record *r)
{
    if (!r)
        return;
    close(r->fd);
    vec_free(&r->index);
    free(r->path);
    free(r);
}

static void put_text(json *o, const char *key, const char *s)
{
    if (!s)
        return;
    struct str text = {0};
    str_add(&text, s);
    log_redact(&text); // before it is escaped, which could hide a secret from the search
    json_put_str(o, key, str_c(&text));
    str_free(&text);
}

static void put_number(json *o, const char *key, double x)
{
    if (isfinite(x))
        json_put_num(o, key, x);
}

int record_add(struct record *r, const struct exchange *x, struct err *e)
{
    if (!tag_ok(x->tag))
        return err_set(e, ERR_FAIL, "", "no tag for an exchange: %s", x->tag ? x->tag : "(none)");
    json *o = json_object();
    struct str line = {0};
    json_put_str(o, "tag", x->tag);
    json_put_int(o, "turn", x->turn);
    json_put_str(o, "kind", x->kind);
    put_text(o, "who", x->who);
    put_number(o, "temperature", x->temperature);
    put_text(o, "system", x->system);
    put_text(o, "prompt", x->prompt);
    json_put_str(o, "end", x->end);
    put_text(o, "reply", x->reply);
    put_text(o, "finish", x->finish);
    put_text(o, "error", x->error);
    json_put_int(o, "attempts", x->attempts);
    put_number(o, "seconds", x->seconds);
    put_number(o, "waited", x->waited);
    put_number(o, "tokens_in", x->tokens_in);
    put_number(o, "tokens_out", x->tokens_out);
    put_number(o, "usd", x->usd);
    json_put_bool(o, "estimated", x->estimated);
    json_put_int(o, "at", x->at);
    if (x->note)
        json_put(o, "note", json_copy(x->note));
    json_print(o, &line);
    json_free(o);
    log_redact(&line);
    str_addc(&line, '\n');
    // One write, so that a reader sees the line or not.
    int ok = io_write_all(r->fd, line.s, line.len) < 0 ? err_sys(e, "", "cannot write %s", r->path) : 0;
    str_free(&line);
    refresh(r);
    return ok;
}

static json *read_entry(const struct record *r, const struct entry *x)
{
    char *line = xmalloc(x->len + 1);
    json *j = NULL;
    if (pread(r->fd, line, x->len, x->at) == (ssize_t)x->len)
        j = json_parse(line, x->len, NULL);
    free(line);
    return j;
}

json *record_find(struct record *r, const char *tag, int turn)
{
    refresh(r);
    for (size_t i = r->index.n; i-- > 0;)
        if (r->index.v[i].turn == turn && str_eq(r->index.v[i].tag, tag))
            return read_entry(r, &r->index.v[i]);
    return NULL;
}

json *record_answer(struct record *r, size_t k)
{
    refresh(r);
    for (size_t i = 0; i < r->index.n; i++) {
        bool last = true;
        for (size_t j = i + 1; j < r->index.n && last; j++)
            last = !str_eq(r->index.v[i].tag, r->index.v[j].tag);
        if (last && k-- == 0)
            return read_entry(r, &r->index.v[i]);
    }
    return NULL;
}

json *record_newest(struct record *r, record_fits *fits, void *user)
{
    refresh(r);
    for (size_t i = r->index.n; i-- > 0;) {
        json *j = read_entry(r, &r->index.v[i]);
        if (j && fits(user, j))
            return j;
        json_free(j);
    }
    return NULL;
}

size_t record_count(struct record *r)
{
    refresh(r);
    return r->index.n;
}

int64_t record_highest(struct record *r)
{
    int64_t most = -1;
    refresh(r);
    for (size_t i = 0; i < r->index.n; i++) {
        char *end;
        long long x = strtoll(r->index.v[i].tag, &end, 10);
        if (!*end && x > most)
            most = x;
    }
    return most;
}

// ---- salvage

static char *salvage_path(const char *dir, const char *tag)
{
    return tag_ok(tag) ? xasprintf("%s/salvage/%s.json", dir, tag) : NULL;
}

int salvage_put(const char *dir, const char *tag, const json *item, struct err *e)
{
    char *path = salvage_path(dir, tag), *folder = xasprintf("%s/salvage", dir);
    struct str text = {0};
    json_print(item, &text);
    log_redact(&text);
    str_addc(&text, '\n');
    int r =
        !path ? err_set(e, ERR_FAIL, "", "no tag to keep an answer by: %s", tag) : io_mkdirs(folder, 0700, e);
    if (r == 0)
        r = io_write_file(path, text.s, text.len, 0600, e);
    str_free(&text);
    free(path);
    free(folder);
    return r;
}

json *salvage_get(const char *dir, const char *tag, struct err *e)
{
    char *path = salvage_path(dir, tag);
    struct str text = {0};
    json *j = NULL;
    if (!path || !io_exists(path))
        err_set(e, ERR_USAGE, "`ksmith salvage` lists what waits.", "no answer %s waits for repair", tag);
    else if (io_read_file(path, MAX_SALVAGE, &text, e) == 0)
        j = json_parse(str_c(&text), text.len, e);
    str_free(&text);
    free(path);
    return j;
}

static int by_tag(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    long n = strtol(x, NULL, 10), m = strtol(y, NULL, 10);
    return n != m ? (n < m ? -1 : 1) : strcmp(x, y);
}

json *salvage_list(const char *dir)
{
    json *list = json_array();
    char *folder = xasprintf("%s/salvage", dir);
    VEC(char *) tags = {0};
    DIR *d = opendir(folder);
    for (struct dirent *x; d && (x = readdir(d));)
        if (str_ends(x->d_name, ".json")) {
            char *tag = xstrndup(x->d_name, strlen(x->d_name) - 5);
            if (tag_ok(tag))
                vec_push(&tags, tag);
            else
                free(tag);
        }
    if (d)
        closedir(d);
    if (tags.n)
        qsort(tags.v, tags.n, sizeof *tags.v, by_tag);
    for (size_t i = 0; i < tags.n; i++) {
        json *j = salvage_get(dir, tags.v[i], NULL);
        if (j)
            json_push(list, j);
        free(tags.v[i]);
    }
    vec_free(&tags);
    free(folder);
    return list;
}

int salvage_drop(const char *dir, const char *tag, struct err *e)
{
    char *path = salvage_path(dir, tag);
    int r = path && io_exists(path) ? io_remove(path, e)
                                    : err_set(e, ERR_USAGE, "`ksmith salvage` lists what waits.",
                                              "no answer %s waits for repair", tag);
    free(path);
    return r;
}
