// The session's folder: journal lines, the fold, the lock, acceptance in order, repair, and what plain git says of it.
#include "t.h"

#include "base/io.h"
#include "base/proc.h"
#include "session/session.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[200];

static void fresh(void)
{
    char *d = io_temp_dir("ksmith-test", NULL);
    snprintf(dir, sizeof dir, "%s", d);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    free(d);
}

static void gone(void)
{
    io_remove(dir, NULL);
}

static char *in(const char *name)
{
    return xasprintf("%s/.ksmith/%s", dir, name);
}

static int64_t add(struct session *s, int64_t parent, int64_t second, const char *text, const char *author)
{
    char blob[41];
    struct err e = {0};
    CHECK(repo_put_blob(lineage_repo(s->lineage), text, strlen(text), blob, &e) == 0);
    struct event_candidate c = {.id = (int64_t)s->state.cands.n, .parents = {parent, second}, .op = "tune", .proposer = "tune",
                                .iteration = (int64_t)s->state.cands.n, .blob = blob, .hash = "0123456789abcdef",
                                .subject = "a step", .author = author};
    CHECK(session_append(s, event_candidate(&c), false, &e) == 0);
    return c.id;
}

static void judge(struct session *s, int64_t id, const char *status, double speedup)
{
    json *o = event_simple("verdict", id);
    json_put_str(o, "status", status);
    json_put_num(o, "gain", speedup);
    json_put_num(o, "speedup", speedup);
    json_put_num(o, "slow", speedup * 0.99);
    json_put_num(o, "shigh", speedup * 1.01);
    json_put_int(o, "cell", 3);
    CHECK(session_append(s, o, false, NULL) == 0);
}

static void accept(struct session *s, int64_t id, bool title)
{
    struct err e = {0};
    struct repo_file file = {"csrc/k.c", state_cand(&s->state, 0)->blob};
    struct lineage_accept a = {.state = &s->state, .cand = state_cand(&s->state, id), .title = title, .subject = "Faster",
                               .trailers = "Device: here\n", .files = id == 0 ? &file : NULL, .n_files = 1};
    json *ev = lineage_accept(s->lineage, &a, &e);
    CHECK(ev != NULL);
    json *copy = json_copy(ev);
    CHECK(session_append(s, ev, true, &e) == 0);
    CHECK(lineage_refs(s->lineage, copy, &e) == 0);
    json_free(copy);
}

static int open_it(struct session *s)
{
    struct err e = {0};
    int r = session_open(s, dir, &e);
    if (r < 0)
        printf("# %s: %s\n", e.where, e.msg);
    return r;
}

// Baseline, two ordinary candidates, a stepping stone and a winner on it, a cross.
static void fill(struct session *s)
{
    CHECK(open_it(s) == 0);
    session_append(s, event_session("t", "h", "csrc/k.c", "k"), true, NULL);
    add(s, -1, -1, "int k;\n", NULL);
    accept(s, 0, true);
    add(s, 0, -1, "int k1;\n", NULL);
    judge(s, 1, "ok", 1.0);
    session_append(s, event_simple("archive", 1), false, NULL);
    add(s, 1, -1, "int k2;\n", "Ann Lee <ann@example.org>");
    judge(s, 2, "ok", 2.0);
    accept(s, 2, true);
    add(s, 0, -1, "int k3;\n", NULL);
    judge(s, 3, "wrong", 0);
    add(s, 2, 1, "int k4;\n", NULL);
    judge(s, 4, "ok", 3.0);
    accept(s, 4, true);
}

static void git(const char *command, struct str *out)
{
    char *path = in("lineage.git"), *line = xasprintf("git --git-dir=%s %s", path, command);
    const char *argv[] = {"sh", "-c", line, NULL};
    struct proc_spec spec = {.argv = argv, .in = -1};
    struct proc_end end;
    str_clear(out);
    CHECK(proc_run(&spec, out, 100000, 20000, &end, NULL) == 0);
    CHECK_INT(end.status, 0);
    free(path);
    free(line);
}

static void two_folds_agree(void)
{
    struct session a, b;
    fresh();
    fill(&a);
    CHECK(session_read(&b, dir, NULL) == 0);
    CHECK(state_digest(&a.state) == state_digest(&b.state));
    CHECK_INT(b.state.cands.n, 5);
    CHECK_INT(state_champion(&b.state)->id, 4);
    CHECK_INT(state_elite(&b.state, 0, 3)->id, 4);
    CHECK_INT(b.state.by_status[CAND_WRONG], 1);
    CHECK(state_descends(&b.state, state_cand(&b.state, 4), 1));
    CHECK(!state_descends(&b.state, state_cand(&b.state, 3), 1));
    add(&a, 4, -1, "int k5;\n", NULL);
    CHECK_INT(session_refresh(&b, NULL), 1);
    CHECK(state_digest(&a.state) == state_digest(&b.state));
    session_close(&b);
    session_close(&a);
    gone();
}

static void plain_git_reads_the_lineage(void)
{
    struct session s;
    struct str out = {0};
    fresh();
    fill(&s);
    CHECK(lineage_attempts(s.lineage, &s.state, NULL) == 0);
    session_close(&s);
    git("fsck --full --strict 2>&1", &out);
    CHECK(!strstr(str_c(&out), "error") && !strstr(str_c(&out), "missing"));
    git("log --first-parent --format=%s main", &out);
    CHECK_STR(str_c(&out), "Faster\nFaster\nFaster\n");
    git("log -1 --format=%an:%ae main^2^", &out); // the winner 2, by hand
    CHECK_STR(str_c(&out), "Ann Lee:ann@example.org\n");
    git("log -1 --format=%B main^2^^", &out); // the stone below it
    CHECK(strstr(str_c(&out), "Status: stepping-stone"));
    git("show main:csrc/k.c", &out);
    CHECK_STR(str_c(&out), "int k4;\n");
    git("rev-list --parents -1 main^2", &out); // the cross has two parents
    size_t words = 1;
    for (const char *p = str_c(&out); *p; p++)
        words += *p == ' ';
    CHECK_INT(words, 3);
    git("ls-tree --name-only refs/ksmith/attempts", &out);
    CHECK_STR(str_c(&out), "0\n1\n2\n3\n4\n");
    str_free(&out);
    gone();
}

static void lost_objects_and_refs_are_rebuilt(void)
{
    struct session s;
    struct str before = {0}, after = {0};
    fresh();
    fill(&s);
    session_close(&s);
    git("rev-parse main refs/ksmith/lineage", &before);
    // Every commit and ref goes; blobs stay.
    char *refs = in("lineage.git/refs/heads/main");
    CHECK(unlink(refs) == 0);
    free(refs);
    char *path = in("lineage.git");
    char *script = xasprintf("cd %s && for c in $(git rev-list refs/ksmith/lineage); do rm -f objects/$(echo $c | cut -c1-2)/$(echo $c | cut -c3-); done; "
                             "rm -f refs/ksmith/lineage", path);
    const char *argv[] = {"sh", "-c", script, NULL};
    struct proc_spec spec = {.argv = argv, .in = -1};
    struct proc_end end;
    CHECK(proc_run(&spec, &after, 1000, 10000, &end, NULL) == 0);
    free(script);
    free(path);
    CHECK(open_it(&s) == 0);
    CHECK_INT(s.mended.len, 0);
    session_close(&s);
    str_clear(&after);
    git("rev-parse main refs/ksmith/lineage", &after);
    CHECK_STR(str_c(&after), str_c(&before));
    str_free(&before);
    str_free(&after);
    gone();
}

static void spoil(const char *name, off_t at, const char *bytes, off_t cut)
{
    char *path = in(name);
    int fd = open(path, O_RDWR);
    struct stat st;
    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    if (bytes)
        CHECK(pwrite(fd, bytes, strlen(bytes), at < 0 ? st.st_size + at : at) > 0);
    if (cut)
        CHECK(ftruncate(fd, st.st_size - cut) == 0);
    close(fd);
    free(path);
}

static void a_torn_line_is_cut_off_a_bad_one_stops(void)
{
    struct session s;
    struct err e = {0};
    fresh();
    fill(&s);
    uint64_t digest = state_digest(&s.state);
    add(&s, 0, -1, "int torn;\n", NULL);
    session_close(&s);
    spoil("journal.jsonl", 0, NULL, 9);
    CHECK(open_it(&s) == 0);
    CHECK(strstr(str_c(&s.mended), "torn"));
    CHECK(state_digest(&s.state) == digest);
    add(&s, 0, -1, "int again;\n", NULL);
    session_close(&s);
    // A line whose end is there but whose middle is not.
    spoil("journal.jsonl", -30, "XXXX", 0);
    CHECK(open_it(&s) == 0);
    CHECK(state_digest(&s.state) == digest);
    session_close(&s);
    spoil("journal.jsonl", 200, "XXXX", 0);
    CHECK(session_open(&s, dir, &e) < 0);
    CHECK(strstr(e.where, "journal.jsonl:") && strstr(e.msg, "check sum") && e.hint[0]);
    gone();
}

static void one_engine_a_session(void)
{
    struct session s, other;
    struct err e = {0};
    fresh();
    CHECK(open_it(&s) == 0);
    CHECK(session_open(&other, dir, &e) < 0);
    CHECK(strstr(e.msg, "already runs"));
    char host[128], pid[16];
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    CHECK_INT(session_owner(dir, host), getpid());
    CHECK(strstr(e.msg, pid));
    session_close(&s);
    CHECK_INT(session_owner(dir, host), 0);
    // A lock of another host, as on a shared file system.
    spoil("lock", 0, "4711 elsewhere.example\n", 0);
    CHECK(session_open(&s, dir, &e) < 0);
    CHECK(strstr(e.msg, "another host") && strstr(e.msg, "4711") && strstr(e.msg, "elsewhere.example"));
    // A dead process of this host.
    char here[64] = "", line[100];
    gethostname(here, sizeof here - 1);
    snprintf(line, sizeof line, "999999 %s\n", here);
    char *path = in("lock");
    CHECK(io_write_file(path, line, strlen(line), 0600, NULL) == 0);
    free(path);
    CHECK(open_it(&s) == 0);
    session_close(&s);
    gone();
}

static void steer(struct session *s, const char *verb, int64_t id, uint64_t undo)
{
    json *o = event_new("steer");
    json_put_str(o, "verb", verb);
    json_put_str(o, "who", "me");
    if (id >= 0)
        json_put_int(o, "id", id);
    if (undo) {
        for (size_t i = 0; i < s->state.steers.n; i++)
            if (s->state.steers.v[i].n == undo)
                json_put(o, "line", journal_line_at(s->journal_path, s->state.steers.v[i].offset, NULL));
        json_put_int(o, "undo", (int64_t)undo);
    } else if (strcmp(verb, "kill") == 0) {
        json_put_bool(o, "descendants", true);
    }
    CHECK(session_append(s, o, true, NULL) == 0);
}

static void steering_can_be_taken_back(void)
{
    struct session s;
    fresh();
    fill(&s);
    steer(&s, "pin", 1, 0);
    CHECK(state_cand(&s.state, 1)->pinned);
    steer(&s, "kill", 2, 0);
    CHECK(state_cand(&s.state, 4)->killed && !state_cand(&s.state, 1)->killed);
    CHECK_INT(state_champion(&s.state)->id, 0);
    uint64_t n = s.state.lines;
    steer(&s, "undo", -1, n);
    CHECK(!state_cand(&s.state, 4)->killed);
    CHECK_INT(state_champion(&s.state)->id, 4);
    steer(&s, "redo", -1, n);
    CHECK(state_cand(&s.state, 2)->killed);
    uint64_t digest = state_digest(&s.state);
    session_close(&s);
    CHECK(open_it(&s) == 0);
    CHECK(state_digest(&s.state) == digest);
    session_close(&s);
    gone();
}

static void limit_file_size(unsigned long bytes)
{
    struct rlimit l = {bytes, bytes};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &l);
}

static void a_full_disk_loses_nothing(void)
{
    struct session s;
    fresh();
    fill(&s);
    uint64_t lines = journal_lines(s.journal);
    // A file size limit stands in for the full disk: the write comes back short.
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct err e = {0};
        json *o = event_new("note");
        struct str big = {0};
        for (int i = 0; i < 100000; i++)
            str_addc(&big, 'x');
        json_put_str(o, "msg", big.s);
        struct stat st;
        stat(s.journal_path, &st);
        limit_file_size((unsigned long)st.st_size + 1000);
        int r = session_append(&s, o, true, &e);
        _exit(r < 0 && e.msg[0] ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    session_close(&s);
    CHECK(open_it(&s) == 0);
    CHECK_INT(journal_lines(s.journal), lines);
    CHECK_INT(s.mended.len, 0);
    session_close(&s);
    gone();
}

int main(void)
{
    T(two_folds_agree);
    T(plain_git_reads_the_lineage);
    T(lost_objects_and_refs_are_rebuilt);
    T(a_torn_line_is_cut_off_a_bad_one_stops);
    T(one_engine_a_session);
    T(steering_can_be_taken_back);
    T(a_full_disk_loses_nothing);
    T_END;
}
