#include "session/session.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_paths(struct session *s, const char *dir, struct err *e)
{
    *s = (struct session){.lock = -1};
    s->dir = realpath(dir, NULL);
    if (!s->dir)
        return err_sys(e, "Name a folder with a task.ini.", "cannot open the session %s", dir);
    s->hidden = io_join(s->dir, ".ksmith");
    s->journal_path = io_join(s->hidden, "journal.jsonl");
    s->samples = io_join(s->hidden, "samples");
    s->log_path = io_join(s->hidden, "engine.log");
    char *run = io_runtime_dir(e);
    if (!run)
        return -1;
    char hex[65];
    sha256_hex(s->dir, strlen(s->dir), hex);
    s->socket = xasprintf("%s/%.16s.sock", run, hex);
    free(run);
    state_init(&s->state);
    return 0;
}

// "pid host" as the lock file says.
static int read_owner(int fd, char host[128])
{
    char text[200] = "";
    int pid = 0;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    host[0] = 0;
    if (n > 0) {
        char *end;
        pid = (int)strtol(text, &end, 10);
        snprintf(host, 128, "%s", *end == ' ' ? end + 1 : "");
        host[strcspn(host, "\n")] = 0;
    }
    return pid;
}

int session_owner(const char *dir, char host[128])
{
    char *path = xasprintf("%s/.ksmith/lock", dir), here[128] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    host[0] = 0;
    if (fd < 0)
        return 0;
    int pid = read_owner(fd, host);
    gethostname(here, sizeof here - 1);
    // On this machine the lock itself tells; another host's lock can only be believed.
    bool held = flock(fd, LOCK_SH | LOCK_NB) < 0 || (host[0] && strcmp(host, here) != 0);
    close(fd);
    return held ? pid : 0;
}

static int take_lock(struct session *s, struct err *e)
{
    char *path = io_join(s->hidden, "lock"), here[128] = "", host[128], text[200];
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    free(path);
    if (fd < 0)
        return err_sys(e, "", "cannot open the lock of %s", s->dir);
    gethostname(here, sizeof here - 1);
    bool got = flock(fd, LOCK_EX | LOCK_NB) == 0;
    int pid = read_owner(fd, host);
    int r = 0;
    if (!got)
        r = err_set(e, ERR_FAIL, "`ksmith attach` follows it, `ksmith ctl stop` ends it.",
                    "an engine already runs this session (process %d on %s)", pid, host[0] ? host : here);
    else if (pid && host[0] && strcmp(host, here) != 0)
        r = err_set(e, ERR_FAIL,
                    "Stop it there first. If that machine is gone for good, remove .ksmith/lock and run again.",
                    "an engine runs this session on another host (process %d on %s)", pid, host);
    if (r < 0) {
        close(fd);
        return r;
    }
    int n = snprintf(text, sizeof text, "%ld %s\n", (long)getpid(), here);
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n) {
        close(fd);
        return err_sys(e, "", "cannot write the lock of %s", s->dir);
    }
    s->lock = fd;
    return 0;
}

static int fold(void *user, const json *line, uint64_t offset, struct err *e)
{
    struct session *s = user;
    return state_fold(&s->state, line, offset, e);
}

int session_open(struct session *s, const char *dir, struct err *e)
{
    uint64_t torn = 0;
    size_t lost = 0;
    if (set_paths(s, dir, e) < 0 || io_mkdirs(s->hidden, 0700, e) < 0 || io_mkdirs(s->samples, 0700, e) < 0 || take_lock(s, e) < 0)
        goto failed;
    s->journal = journal_open(s->journal_path, fold, s, &torn, e);
    if (!s->journal)
        goto failed;
    io_sync_dir(s->hidden);
    s->lineage = lineage_open(s->hidden, true, e);
    if (!s->lineage || lineage_repair(s->lineage, s->journal_path, &lost, e) < 0)
        goto failed;
    if (torn)
        str_addf(&s->mended, "cut off a torn last line of %llu bytes; ", (unsigned long long)torn);
    if (lost)
        str_addf(&s->mended, "%zu sources or commits are lost; ", lost);
    return 0;
failed:
    session_close(s);
    return -1;
}

int session_read(struct session *s, const char *dir, struct err *e)
{
    if (set_paths(s, dir, e) < 0 || session_refresh(s, e) < 0) {
        session_close(s);
        return -1;
    }
    return 0;
}

int session_refresh(struct session *s, struct err *e)
{
    uint64_t before = s->read_lines;
    if (journal_read(s->journal_path, &s->read_to, &s->read_lines, fold, s, e) < 0)
        return -1;
    return (int)(s->read_lines - before);
}

void session_close(struct session *s)
{
    journal_close(s->journal);
    lineage_close(s->lineage);
    if (s->lock >= 0) {
        // Empty, so that nobody reads a dead process's number; the flock itself ends with the descriptor.
        int cut = ftruncate(s->lock, 0);
        (void)cut; // a full lock file only names a process that no longer holds the flock
        close(s->lock);
    }
    state_free(&s->state);
    free(s->dir);
    free(s->hidden);
    free(s->journal_path);
    free(s->samples);
    free(s->log_path);
    free(s->socket);
    str_free(&s->mended);
    *s = (struct session){.lock = -1};
}

int session_append(struct session *s, json *event, bool sync, struct err *e)
{
    uint64_t offset = 0;
    int r = journal_append(s->journal, event, sync, &offset, e);
    if (r == 0)
        r = state_fold(&s->state, event, offset, e);
    json_free(event);
    return r;
}

char *session_source(struct session *s, const struct cand *c, struct err *e)
{
    if (!s->lineage)
        s->lineage = lineage_open(s->hidden, false, e);
    struct str text = {0};
    if (!s->lineage || repo_get_blob(lineage_repo(s->lineage), c->blob, &text, e) < 0) {
        str_free(&text);
        return NULL;
    }
    return str_steal(&text);
}

json *session_candidate_line(struct session *s, const struct cand *c)
{
    return journal_line_at(s->journal_path, c->offset, NULL);
}

json *session_verdict_line(struct session *s, const struct cand *c)
{
    return c->verdict_offset ? journal_line_at(s->journal_path, c->verdict_offset, NULL) : NULL;
}
