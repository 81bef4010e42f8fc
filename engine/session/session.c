#include "session/session.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"
#include "session/event.h"
#include "session/loose.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SNAPSHOT_LINES = 4000 }; // fewer new lines are read as fast as a snapshot is written

static struct session blank(void)
{
    struct session s = {.lock = -1};
    state_init(&s.state);
    s.journal.fd = s.reader.fd = -1;
    return s;
}

static int name_paths(struct session *s, const char *dir, struct err *e)
{
    s->dir = realpath(dir, NULL);
    if (!s->dir)
        return err_sys(e, "", "cannot open the session %s", dir);
    s->ksmith = io_join(s->dir, ".ksmith");
    s->journal_path = io_join(s->ksmith, "journal.jsonl");
    s->lineage_path = io_join(s->ksmith, "lineage.git");
    s->samples = io_join(s->ksmith, "samples");
    s->log = io_join(s->ksmith, "engine.log");
    s->snapshot = io_join(s->ksmith, "snapshot");
    s->lock_path = io_join(s->ksmith, "lock");
    return 0;
}

// --- the lock ---------------------------------------------------------------------------------------------

static void host_name(char *out, size_t n)
{
    if (gethostname(out, n) < 0)
        snprintf(out, n, "unknown");
    out[n - 1] = 0;
}

static bool read_lock(const char *path, struct session_holder *h)
{
    struct str text = {0};
    bool ok = io_read_file(path, 4096, &text, NULL) == 0 && text.len;
    json *j = ok ? json_parse(str_c(&text), strcspn(str_c(&text), "\n"), NULL) : NULL;
    ok = json_str(j, "host") != NULL;
    if (ok) {
        char host[sizeof h->host];
        host_name(host, sizeof host);
        snprintf(h->host, sizeof h->host, "%s", json_str(j, "host"));
        h->pid = (long)json_int(j, "pid", 0);
        h->since = json_num(j, "since", 0);
        h->here = strcmp(h->host, host) == 0;
    }
    json_free(j);
    str_free(&text);
    return ok;
}

// Open-file-description locks: they survive fork, are given back by the kernel at any death, work on NFS, and
// can be asked about without being taken.
static struct flock whole_file(short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

int session_lock_mine(struct session *s, struct err *e)
{
    char host[128];
    host_name(host, sizeof host);
    json *j = json_object();
    json_put_str(j, "host", host);
    json_put_int(j, "pid", getpid());
    json_put_num(j, "since", (double)(int64_t)clock_wall());
    struct str text = {0};
    json_print(j, &text);
    json_free(j);
    str_addc(&text, '\n');
    int r = 0;
    if (ftruncate(s->lock, 0) < 0 || pwrite(s->lock, text.s, text.len, 0) != (ssize_t)text.len)
        r = err_sys(e, "", "cannot write %s", s->lock_path);
    str_free(&text);
    return r;
}

static int take_lock(struct session *s, struct err *e)
{
    struct session_holder h = {0};
    s->lock = open(s->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock < 0)
        return err_sys(e, "", "cannot open %s", s->lock_path);
    struct flock want = whole_file(F_WRLCK);
    bool got = fcntl(s->lock, F_OFD_SETLK, &want) == 0;
    if (!got && errno != EAGAIN && errno != EACCES)
        return err_sys(e, "This file system has no locks: copy the session to a local disk.",
                       "cannot lock %s", s->lock_path);
    bool named = read_lock(s->lock_path, &h);
    if (named && !h.here) {
        struct str hint = {0};
        str_addf(&hint, "Log in to %s to steer it. If that engine is gone, remove %s.", h.host, s->lock_path);
        err_set(e, ERR_FAIL, str_c(&hint), "an engine on the host %s (pid %ld) already runs this session",
                h.host, h.pid);
        str_free(&hint);
        return -1;
    }
    if (!got)
        return err_set(e, ERR_FAIL, "`ksmith attach` opens it, `ksmith ctl stop` ends it.",
                       "an engine (pid %ld) already runs this session", h.pid);
    // A name of this host without the kernel's lock is a dead engine's: taken over.
    return session_lock_mine(s, e);
}

static void drop_lock(struct session *s)
{
    if (s->lock < 0)
        return;
    // An empty file tells other hosts that nobody is here.
    if (ftruncate(s->lock, 0) < 0)
        errno = 0;
    close(s->lock);
    s->lock = -1;
}

void session_forget(struct session *s)
{
    if (s->lock >= 0)
        close(s->lock);
    s->lock = -1;
}

bool session_holder(const char *dir, struct session_holder *h)
{
    struct session s = blank();
    *h = (struct session_holder){0};
    bool held = false;
    if (name_paths(&s, dir, NULL) == 0) {
        int fd = open(s.lock_path, O_RDWR | O_CLOEXEC);
        struct flock ask = whole_file(F_WRLCK);
        bool named = read_lock(s.lock_path, h);
        bool locked = fd >= 0 && fcntl(fd, F_OFD_GETLK, &ask) == 0 && ask.l_type != F_UNLCK;
        held = named && (locked || !h->here);
        h->alive = held;
        if (fd >= 0)
            close(fd);
    }
    session_close(&s);
    return held;
}

// --- opening ----------------------------------------------------------------------------------------------

static int fold_rest(struct session *s, int64_t *news, struct err *e)
{
    struct journal_line line;
    int r;
    while ((r = journal_next(&s->reader, &line, e)) == 1) {
        if (state_apply(&s->state, &line, e) < 0) {
            if (e) {
                snprintf(e->where, sizeof e->where, "%s:%" PRId64, s->journal_path, line.n);
                if (!e->hint[0])
                    snprintf(e->hint, sizeof e->hint,
                             "The line was changed by hand, or by another ksmith: put a backup back.");
            }
            return -1;
        }
        if (news)
            ++*news;
    }
    s->cut = s->reader.torn;
    return r;
}

static int make_folder(struct session *s, struct err *e)
{
    if (mkdir(s->ksmith, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "", "cannot make %s", s->ksmith);
    struct stat st;
    if (lstat(s->ksmith, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(e, ERR_FAIL, "Remove it.", "%s is not a folder", s->ksmith);
    if ((st.st_mode & 077) && chmod(s->ksmith, 0700) < 0)
        return err_sys(e, "", "cannot make %s private", s->ksmith);
    io_sync_dir(s->dir);
    return io_mkdirs(s->samples, 0700, e);
}

// What a disk damaged in the repository, in words: commits and trees are rebuilt from the journal, a source
// that is gone is gone.
static int note_damage(struct session *s, const char *ids, int n, struct err *e)
{
    struct str msg = {0};
    str_addf(&msg, "%d damaged objects of lineage.git were removed, and commits rebuilt from the journal", n);
    for (size_t i = 0, lost = 0; i < s->state.c.n; i++) {
        char hex[41];
        candidate_blob(&s->state.c.v[i], hex);
        if (strstr(ids, hex))
            str_addf(&msg, "%s%lld",
                     lost++ ? " " : "; the sources of these candidates are lost: ", (long long)i);
    }
    int r = session_log(s, event_note(str_c(&msg), -1), JOURNAL_LAZY, e);
    str_free(&msg);
    return r;
}

static int open_to_write(struct session *s, struct err *e)
{
    struct str ids = {0};
    int damaged = io_exists(s->lineage_path) ? loose_sweep(s->lineage_path, &ids) : 0;
    int r = lineage_open(&s->lineage, s->lineage_path, true, e);
    if (r == 0 && damaged)
        lineage_distrust(s->lineage);
    if (r < 0 || fold_rest(s, NULL, e) < 0 ||
        journal_open(&s->journal, s->journal_path, &s->reader, &s->cut, e) < 0 ||
        lineage_repair(s->lineage, &s->state, NULL, e) < 0) {
        str_free(&ids);
        return -1;
    }
    r = damaged && s->state.last > 0 ? note_damage(s, str_c(&ids), damaged, e) : 0;
    str_free(&ids);
    if (r == 0 && s->cut > 0 && s->state.last > 0) {
        char msg[100];
        snprintf(msg, sizeof msg, "a torn last line of %" PRId64 " bytes was cut off", s->cut);
        return session_log(s, event_note(msg, -1), JOURNAL_LAZY, e);
    }
    return r;
}

static int open_all(struct session *s, const char *dir, struct err *e)
{
    if (name_paths(s, dir, e) < 0)
        return -1;
    if (s->mode == SESSION_WRITE && (make_folder(s, e) < 0 || take_lock(s, e) < 0))
        return -1;
    if (journal_reader_open(&s->reader, s->journal_path, e) < 0)
        return -1;
    if (state_load(&s->state, s->snapshot, s->journal_path) == 0)
        journal_reader_seek(&s->reader, s->state.offset, s->state.last);
    s->saved = s->state.last;
    if (s->mode == SESSION_WRITE)
        return open_to_write(s, e);
    if (io_exists(s->lineage_path) && lineage_open(&s->lineage, s->lineage_path, false, e) < 0)
        return -1;
    return fold_rest(s, NULL, e);
}

int session_open(struct session *s, const char *dir, enum session_mode mode, struct err *e)
{
    *s = blank();
    s->mode = mode;
    if (open_all(s, dir, e) == 0)
        return 0;
    session_close(s);
    return -1;
}

// A snapshot that cannot be written costs only time.
static void save_snapshot(struct session *s)
{
    if (s->state.last - s->saved >= SNAPSHOT_LINES)
        state_save(&s->state, s->snapshot, s->journal_path, NULL);
}

void session_close(struct session *s)
{
    if (s->journal.fd >= 0) {
        journal_close(&s->journal);
        save_snapshot(s);
    }
    lineage_close(s->lineage);
    journal_reader_close(&s->reader);
    state_free(&s->state);
    // A lock that was never ours (another host's name is in it) must not be emptied.
    if (s->lock >= 0) {
        struct session_holder h = {0};
        if (read_lock(s->lock_path, &h) && h.here && h.pid == getpid())
            drop_lock(s);
        else
            session_forget(s);
    }
    char **paths[] = {&s->dir,     &s->ksmith, &s->journal_path, &s->lineage_path,
                      &s->samples, &s->log,    &s->snapshot,     &s->lock_path};
    for (size_t i = 0; i < countof(paths); i++) {
        free(*paths[i]);
        *paths[i] = NULL;
    }
}

int session_log(struct session *s, json *event, enum journal_sync sync, struct err *e)
{
    struct journal_line line;
    // What the fold would refuse must never reach the file.
    if (state_check(&s->state, event, e) < 0) {
        json_free(event);
        return -1;
    }
    if (journal_append(&s->journal, event, sync, &line, e) < 0)
        return -1;
    return state_apply(&s->state, &line, e);
}

int session_poll(struct session *s, int64_t *news, struct err *e)
{
    int64_t none = 0;
    news = news ? news : &none;
    *news = 0;
    if (!s->lineage && io_exists(s->lineage_path) && lineage_open(&s->lineage, s->lineage_path, false, e) < 0)
        return -1;
    return fold_rest(s, news, e);
}

json *session_line(const struct session *s, int64_t offset, struct err *e)
{
    return journal_line_at(s->journal_path, offset, e);
}

char *session_find(const char *from, struct err *e)
{
    char *dir = realpath(from, NULL);
    if (!dir) {
        err_sys(e, "", "cannot open %s", from);
        return NULL;
    }
    for (;;) {
        char *task = io_join(dir, "task.ini");
        bool found = io_exists(task);
        free(task);
        if (found)
            return dir;
        char *slash = strrchr(dir, '/');
        if (!slash || !dir[1])
            break;
        slash[slash == dir ? 1 : 0] = 0;
    }
    free(dir);
    err_set(e, ERR_USAGE, "Name its folder, or make one with `ksmith new` or `ksmith init`.",
            "no session (a folder with a task.ini) at or above %s", from);
    return NULL;
}

char *session_socket(const char *dir, struct err *e)
{
    char *real = realpath(dir, NULL), *run = NULL, *path = NULL;
    char hex[65];
    if (!real)
        err_sys(e, "", "cannot open the session %s", dir);
    else
        run = io_runtime_dir(e);
    if (run) {
        sha256_hex(real, strlen(real), hex);
        path = xasprintf("%s/%.16s.sock", run, hex);
    }
    free(real);
    free(run);
    return path;
}
