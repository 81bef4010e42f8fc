// Stops that were recorded, and real kills:
//   replay stops LOG ROOT EVERY [WORK]     for every EVERY-th operation of a driver's log and each way in
//   which
//                                          unsynced data may be lost: rebuild the disk, open the session,
//                                          check
//   replay kills DRIVER DIR COUNT          run the driver, kill it at random moments, open the session, check
// What is checked: the session opens; the fold of its journal equals what the driver saw at that line; each
// line that was promised is there; sources and commits are there; git fsck is clean; work goes on. Prints
// TAP.
#include "base/clock.h"
#include "base/io.h"
#include "base/proc.h"
#include "model.h"
#include "session/event.h"
#include "session/session.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

struct seen { // what the driver said, line by line
    VEC(struct at {
        int64_t line;
        char digest[65];
    })
    at;
    int64_t promised;
};

static void listen_to(struct seen *s, const char *text, size_t n)
{
    char *copy = xstrndup(text, n);
    for (char *save = NULL, *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct at a;
        if (sscanf(line, "at %" SCNd64 " %64s", &a.line, a.digest) == 2)
            vec_push(&s->at, a);
        else if (sscanf(line, "ack %" SCNd64, &a.line) == 1 && a.line > s->promised)
            s->promised = a.line;
    }
    free(copy);
}

static const char *digest_at(const struct seen *s, int64_t line)
{
    for (size_t i = s->at.n; i-- > 0;)
        if (s->at.v[i].line == line)
            return s->at.v[i].digest;
    return NULL;
}

static int bad(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("# ");
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
    return 1;
}

static int fsck(const char *repo)
{
    const char *argv[] = {"git", "-C", repo, "fsck", "--full", "--strict", "--no-dangling", NULL};
    struct proc_spec spec = {.argv = argv, .in = -1, .out = -1, .err = -1};
    struct proc_end end = {0};
    struct str out = {0};
    struct err e = {0};
    int r = proc_run(&spec, &out, 1 << 16, 30000, &end, &e);
    bool clean = r == 0 && end.status == 0 && out.len == 0;
    // A repository before its first commit has a HEAD that names no branch yet.
    if (!clean && r == 0 && end.status == 0 && str_starts(str_c(&out), "notice: "))
        clean = true;
    r = clean ? 0 : bad("git fsck: status %d: %s%s", end.status, e.msg, str_c(&out));
    str_free(&out);
    return r;
}

// The journal as it is found, before anything is repaired.
static int check_fold(const char *dir, const struct seen *seen, int64_t *last)
{
    struct session s;
    struct err e = {0};
    char hex[65];
    // A repository that is only half there is for the writer to make; the journal alone is looked at here.
    char *path = io_join(dir, ".ksmith/journal.jsonl");
    struct journal_reader r;
    struct journal_line line;
    int got = journal_reader_open(&r, path, &e);
    state_init(&s.state);
    while (got == 0 && (got = journal_next(&r, &line, &e)) == 1)
        got = state_apply(&s.state, &line, &e);
    journal_reader_close(&r);
    free(path);
    *last = s.state.last;
    state_digest(&s.state, hex);
    int64_t accepted = (int64_t)s.state.accepted.n;
    state_free(&s.state);
    (void)accepted;
    if (got < 0)
        return bad("the journal does not read: %s", e.msg);
    if (*last < seen->promised)
        return bad("line %" PRId64 " was promised, the journal ends at %" PRId64, seen->promised, *last);
    const char *want = *last ? digest_at(seen, *last) : hex;
    // A line may be on the disk that the driver was stopped before telling of.
    if (want && strcmp(want, hex) != 0)
        return bad("the fold at line %" PRId64 " differs", *last);
    return 0;
}

static int check_objects(struct session *s)
{
    struct err e = {0};
    for (size_t i = 0; i < s->state.c.n; i++) {
        struct str text = {0};
        char blob[41], want[80];
        candidate_blob(&s->state.c.v[i], blob);
        snprintf(want, sizeof want, "int k(void) { return %zu; }\n", i);
        int r = lineage_read(s->lineage, blob, &text, &e);
        bool same = r == 0 && strcmp(str_c(&text), want) == 0;
        str_free(&text);
        if (!same)
            return bad("the source of candidate %zu is lost: %s", i, e.msg);
    }
    struct lineage_repaired did;
    if (lineage_repair(s->lineage, &s->state, &did, &e) < 0 || did.commits + did.refs + did.locks)
        return bad("repairing once was not enough: %s", e.msg);
    return 0;
}

static int go_on(struct session *s)
{
    struct err e = {0};
    if (s->state.c.n == 0)
        return 0;
    json *args = json_object();
    json_put_int(args, "id", 0);
    if (session_log(s, event_steer("test", "pin", args), JOURNAL_SYNC, &e) < 0 ||
        lineage_idle(s->lineage, &s->state, 100, &e) < 0)
        return bad("work does not go on: %s", e.msg);
    return 0;
}

static int check(const char *dir, const struct seen *seen)
{
    struct session s;
    struct err e = {0};
    int64_t last;
    if (check_fold(dir, seen, &last))
        return 1;
    if (session_open(&s, dir, SESSION_WRITE, &e) < 0)
        return bad("the session does not open: %s", e.msg);
    int r = check_objects(&s) || go_on(&s) || fsck(s.lineage_path);
    char live[65], again[65];
    state_digest(&s.state, live);
    session_close(&s);
    if (!r && session_open(&s, dir, SESSION_READ, &e) == 0) {
        state_digest(&s.state, again);
        r = strcmp(live, again) ? bad("what was added after the stop reads differently") : 0;
        session_close(&s);
    }
    return r;
}

// In a process of its own: a crash of the checked code is a failed check.
static int check_apart(const char *dir, const struct seen *seen)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(30); // a check that hangs is a failed one
        int r = check(dir, seen);
        fflush(stdout);
        _exit(r);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    return status;
}

static int one_stop(const struct model *m, const struct seen *seen, const char *work, const char *kernel,
                    enum variant v, size_t k)
{
    char *to = io_join(work, "k.c");
    io_remove(work, NULL);
    model_write(m, work, v, k);
    struct str text = {0};
    int r = io_read_file(kernel, 1 << 16, &text, NULL);
    if (r == 0)
        r = io_write_file(to, str_c(&text), text.len, 0600, NULL);
    str_free(&text);
    free(to);
    return r < 0 ? bad("cannot write %s", work) : check_apart(work, seen);
}

// Making the repository is 300 times the same: there one stop in 16 is looked at.
static bool dull(const struct op *op)
{
    return strstr(op->a, "/objects/") && strstr(op->a, "lineage.git.new");
}

static int stops(char **argv)
{
    struct str log = {0};
    struct err e = {0};
    size_t every = strtoul(argv[4], NULL, 10), k = 0, done = 0, failed = 0;
    if (io_read_file(argv[2], 1u << 30, &log, &e) < 0) {
        err_print(&e, stderr);
        return 1;
    }
    char *work = argv[5] ? xstrdup(argv[5]) : io_temp_dir("ksmith-stop", &e),
         *kernel = io_join(argv[3], "k.c");
    struct model m;
    struct seen seen = {0};
    model_init(&m, argv[3]);
    const char *p = log.s, *end = log.s + log.len;
    struct op op;
    for (const char *q = p; op_read(&q, end, &op); op_free(&op)) // digests of later lines count as well
        if (strcmp(op.name, "ack") == 0)
            listen_to(&seen, op.data, op.n);
    seen.promised = 0;
    for (; op_read(&p, end, &op); op_free(&op)) {
        if (strcmp(op.name, "ack") == 0) {
            struct seen now = {0};
            listen_to(&now, op.data, op.n);
            seen.promised = now.promised > seen.promised ? now.promised : seen.promised;
            vec_free(&now.at);
            continue;
        }
        model_apply(&m, &op);
        if (k++ % (dull(&op) ? 16 * every : every))
            continue;
        for (int v = 0; v < VARIANTS; v++, done++)
            if (one_stop(&m, &seen, work, kernel, (enum variant)v, k)) {
                failed++;
                printf("# stop after operation %zu (%s %s), %s\n", k, op.name, op.a, variant_names[v]);
            }
    }
    io_remove(work, NULL);
    printf("%sok - %zu stops at %zu operations, each with data lost in %d ways: %zu failed\n",
           failed || !done ? "not " : "", done, k, VARIANTS, failed);
    return failed != 0 || !done;
}

// Starts the driver with its words coming through a pipe and kills it after a while.
static int kill_once(const char *driver, const char *dir, int round, struct seen *seen)
{
    int fds[2];
    char seed[24], buf[65536];
    snprintf(seed, sizeof seed, "%d", round * 7 + 1);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        execl(driver, driver, dir, seed, "1000000", (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    uint64_t r = (uint64_t)round * 0x9e3779b97f4a7c15u;
    clock_sleep_ms((int)(r >> 33) % (round % 4 ? 300 : 40));
    kill(pid, SIGKILL);
    int status;
    waitpid(pid, &status, 0);
    struct str said = {0};
    for (ssize_t n; (n = read(fds[0], buf, sizeof buf)) > 0;)
        str_addn(&said, buf, (size_t)n);
    close(fds[0]);
    listen_to(seen, str_c(&said), said.len);
    str_free(&said);
    if (!WIFSIGNALED(status))
        return bad("the driver ended by itself with status %d", status);
    return 0;
}

static int kills(char **argv)
{
    int count = (int)strtol(argv[4], NULL, 10), failed = 0;
    struct seen seen = {0};
    int64_t lines = 0;
    for (int i = 0; i < count; i++) {
        // The pipe holds 64 kB: more than a round says, so that the driver never waits for us.
        if (kill_once(argv[2], argv[3], i, &seen) || check_apart(argv[3], &seen)) {
            failed++;
            printf("# kill %d\n", i + 1);
        }
        lines = seen.promised;
        // What check_apart() added is promised too, but its digest was not told: forget what came before.
        seen.at.n = 0;
    }
    printf("%sok - %d kills, %" PRId64 " lines promised: %d failed\n", failed || !lines ? "not " : "", count,
           lines, failed);
    return failed != 0 || !lines;
}

int main(int argc, char **argv)
{
    if (argc >= 5 && strcmp(argv[1], "stops") == 0)
        return stops(argv);
    if (argc >= 5 && strcmp(argv[1], "kills") == 0)
        return kills(argv);
    fprintf(stderr, "usage: replay stops LOG ROOT EVERY [WORK] | kills DRIVER DIR COUNT\n");
    return 2;
}
