// The lineage as plain git sees it: history, trailers, parents, refs, rebuilding, packing.
#include "base/io.h"
#include "base/proc.h"
#include "session/event.h"
#include "session/session.h"
#include "t.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *root;
static struct session s;
static const char kernel[] = "#include <stdio.h>\n#include \"k.h\"\nint k(void);\n";

// Output of a git command in the lineage, without its last newline. The status must be 0.
static const char *git(const char *args)
{
    static struct str out;
    struct proc_end end;
    struct err e = {0};
    char *cmd = xasprintf("cd '%s' && git %s", s.lineage_path, args);
    const char *argv[] = {"sh", "-c", cmd, NULL};
    struct proc_spec spec = {.argv = argv, .in = -1, .out = -1, .err = -1};
    str_clear(&out);
    CHECK(proc_run(&spec, &out, 1 << 20, 20000, &end, &e) == 0);
    if (end.status != 0) {
        printf("# git %s: status %d: %s\n", args, end.status, str_c(&out));
        t_bad = 1;
    }
    free(cmd);
    while (out.len && out.s[out.len - 1] == '\n')
        out.s[--out.len] = 0;
    return str_c(&out);
}

static void fsck(void)
{
    const char *said = git("fsck --full --strict --no-dangling 2>&1");
    CHECK_STR(said, "");
}

static int64_t propose(int64_t a, int64_t b, const char *text, const char *title)
{
    char hex[41];
    int64_t parents[2] = {a, b}, id = (int64_t)s.state.c.n;
    CHECK(lineage_blob(s.lineage, text, strlen(text), hex, NULL) == 0);
    struct event_candidate c = {.id = id,
                                .parents = parents,
                                .nparents = (a >= 0) + (b >= 0),
                                .op = b >= 0 ? "cross" : "tune",
                                .proposer = "rules",
                                .title = title,
                                .blob = hex,
                                .iter = id};
    CHECK(session_log(&s, event_candidate(&c), JOURNAL_LAZY, NULL) == 0);
    return id;
}

static void judge(int64_t id, const char *status, double gain)
{
    char text[300];
    snprintf(
        text, sizeof text,
        "{\"id\":%" PRId64
        ",\"status\":\"%s\",\"stage\":\"race\",\"gain\":%g,\"low\":%g,\"high\":%g,\"shapes\":"
        "[{\"name\":\"big\",\"time_ns\":1234567,\"inc_ns\":2,\"gain\":%g,\"low\":1,\"high\":2,\"n\":8}]}",
        id, status, gain, gain * .99, gain * 1.01, gain);
    json *a = json_parse(text, strlen(text), NULL);
    CHECK(session_log(&s, event_verdict_of(a, 0, NULL, 1, false), JOURNAL_LAZY, NULL) == 0);
    json_free(a);
}

static void accept_as(int64_t id, int64_t over, bool champion, lineage_describe *describe)
{
    struct err e = {0};
    struct lineage_accept a = {.id = id, .over = over, .gain = 1.5, .low = 1.4, .high = 1.6};
    a.champion = champion;
    a.describe = describe;
    int r = lineage_accept(&s, &a, &e);
    if (r)
        printf("# accept %" PRId64 ": %s\n", id, e.msg);
    CHECK_INT(r, 0);
}

static void fresh(void)
{
    struct shape shapes[] = {{"big", true, 1}};
    struct lineage_file *files;
    size_t n;
    char head[41], *ksmith = io_join(root, ".ksmith");
    io_remove(ksmith, NULL);
    free(ksmith);
    CHECK(session_open(&s, root, SESSION_WRITE, NULL) == 0);
    struct err e = {0};
    CHECK(lineage_project(s.lineage, root, "src/k.c", &files, &n, head, &e) == 0);
    CHECK_INT(n, 3);
    struct event_session se = {.name = "t",
                               .backend = "cpu",
                               .kernel = "src/k.c:k",
                               .head = head,
                               .islands = 1,
                               .files = files,
                               .nfiles = n,
                               .shapes = shapes,
                               .nshapes = 1};
    CHECK(session_log(&s, event_session(&se), JOURNAL_SYNC, NULL) == 0);
    lineage_files_free(files, n);
    static const char opened[] = "{\"device\":\"EPYC\",\"compiler\":\"gcc 12.2.0\"}";
    json *o = json_parse(opened, strlen(opened), NULL);
    CHECK(session_log(&s, event_worker("cpu0", o), JOURNAL_LAZY, NULL) == 0);
    json_free(o);
    propose(-1, -1, kernel, "Baseline"); // the text that lineage_project() has stored
    judge(0, "ok", 1);
    accept_as(0, -1, true, NULL);
}

static void human(void *user, int64_t id, struct lineage_text *text)
{
    (void)user;
    if (id % 2)
        *text = (struct lineage_text){"Unroll by hand", "Because the loop\nis short.", "Ann <b> Smith",
                                      "ann@example.org"};
}

static void story_is_plain_git(void)
{
    fresh();
    CHECK_STR(git("log --first-parent --format=%s main"), "Baseline");
    CHECK_STR(git("ls-tree -r --name-only main"), "src/inc/deep.h\nsrc/k.c\nsrc/k.h");
    int64_t a = propose(0, -1, "a\n", "Make a"), b = propose(a, -1, "b\n", "Make b");
    judge(a, "ok", 1.2);
    judge(b, "ok", 2);
    accept_as(b, 0, true, NULL); // a is a stepping stone
    int64_t x = propose(0, -1, "x\n", "Make x");
    judge(x, "ok", 1.1);
    accept_as(x, 0, false, NULL); // accepted, not champion
    int64_t y = propose(b, x, "y\n", "Cross");
    judge(y, "ok", 3);
    accept_as(y, b, true, human);
    CHECK_STR(git("log --first-parent --format=%s main"), "Cross\nMake b\nBaseline");
    char *cmd = xasprintf("log -1 --format='%%s|%%an|%%ae|%%cn' %s", s.state.c.v[y].commit);
    CHECK_STR(git(cmd), "Cross|ksmith|ksmith@localhost|ksmith"); // y is even
    free(cmd);
    cmd = xasprintf("log -1 --format=%%P %s", s.state.c.v[y].commit);
    char *want = xasprintf("%s %s", s.state.c.v[b].commit, s.state.c.v[x].commit);
    CHECK_STR(git(cmd), want);
    free(want);
    free(cmd);
    cmd = xasprintf("log -1 --format='%%(trailers:key=Status,valueonly)' %s", s.state.c.v[a].commit);
    CHECK_STR(git(cmd), "stepping-stone");
    free(cmd);
    CHECK_STR(git("log -1 --format='%(trailers:key=Candidate,valueonly)' main^2"), "4");
    CHECK_STR(git("log -1 --format='%(trailers:key=Speedup,valueonly)' main^2"), "3 [2.97, 3.03]");
    CHECK_STR(git("log -1 --format='%(trailers:key=Shapes,valueonly)' main"), "big 1.23 ms (3x)");
    CHECK_STR(git("log -1 --format='%(trailers:key=Compiler,valueonly)' main"), "gcc 12.2.0");
    CHECK_STR(git("show main:src/k.c"), "y");
    CHECK_STR(git("diff --name-only main^2^1 main^2"), "src/k.c");
    fsck();
    // Nothing outside the accepted ones is needed for a clone; every accepted commit is reachable.
    char *clone = io_join(root, "clone"), *to = xasprintf("clone -q . '%s'", clone);
    git(to);
    char *file = io_join(clone, "src/k.c");
    CHECK(io_exists(file));
    git("merge-base --is-ancestor main^2^2 refs/ksmith/lineage");
    free(file);
    free(to);
    io_remove(clone, NULL);
    free(clone);
    session_close(&s);
}

static void edits_carry_the_engineers_name(void)
{
    fresh();
    int64_t a = propose(0, -1, "a\n", NULL);
    judge(a, "ok", 1.2);
    accept_as(a, 0, true, human);
    CHECK_STR(git("log -1 --format='%s|%an|%ae' main^2"), "Unroll by hand|Ann b Smith|ann@example.org");
    CHECK(strstr(git("log -1 --format=%B main^2"), "Because the loop\nis short.\n\nCandidate: 1\n") != NULL);
    fsck();
    session_close(&s);
}

static void failed_parents_are_no_steps(void)
{
    fresh();
    int64_t bad = propose(0, -1, "bad\n", "Broken"), good = propose(bad, -1, "good\n", "Repaired");
    judge(bad, "compile_error", 0);
    judge(good, "ok", 2);
    accept_as(good, 0, true, NULL);
    CHECK(s.state.c.v[bad].commit == NULL);
    char *cmd = xasprintf("log -1 --format=%%P %s", s.state.c.v[good].commit);
    CHECK_STR(git(cmd), s.state.c.v[0].commit);
    free(cmd);
    session_close(&s);
}

static void accepting_twice_or_nothing_is_refused(void)
{
    fresh();
    struct err e = {0};
    struct lineage_accept a = {.id = 0, .over = -1};
    CHECK(lineage_accept(&s, &a, &e) < 0 && e.msg[0]);
    a.id = 17;
    CHECK(lineage_accept(&s, &a, &e) < 0);
    session_close(&s);
}

static void refs_and_commits_are_rebuilt(void)
{
    fresh();
    for (int i = 0; i < 4; i++) {
        char text[20];
        snprintf(text, sizeof text, "v%d\n", i);
        int64_t id = propose(i, -1, text, "Step");
        judge(id, "ok", 1.5);
        accept_as(id, i, i % 2, NULL);
    }
    char *refs = xstrdup(git("for-each-ref")), *head = xstrdup(git("rev-parse main"));
    char *first = xasprintf("%s", s.state.c.v[2].commit);
    char *lost[] = {head, first};
    // Lose the refs, two commits and leave locks behind.
    for (size_t i = 0; i < countof(lost); i++) {
        char *path = xasprintf("%s/objects/%.2s/%s", s.lineage_path, lost[i], lost[i] + 2);
        CHECK(unlink(path) == 0);
        free(path);
    }
    char *dir = xasprintf("%s/refs", s.lineage_path), *lock = xasprintf("%s/heads/main.lock", dir);
    char *sub = xasprintf("%s/heads", dir), *heads = xasprintf("%s/ksmith", dir);
    CHECK(io_remove(heads, NULL) == 0 && io_remove(sub, NULL) == 0 && io_mkdirs(sub, 0700, NULL) == 0);
    CHECK(io_write_file(lock, "", 0, 0600, NULL) == 0);
    session_close(&s);
    struct err e = {0};
    CHECK(session_open(&s, root, SESSION_WRITE, &e) == 0);
    if (e.msg[0])
        printf("# %s\n", e.msg);
    CHECK_STR(git("for-each-ref"), refs);
    CHECK(!io_exists(lock));
    fsck();
    struct lineage_repaired did;
    CHECK(lineage_repair(s.lineage, &s.state, &did, NULL) == 0);
    CHECK_INT(did.commits + did.refs + did.locks, 0);
    // A lost source cannot be rebuilt: said in words.
    char blob[41];
    candidate_blob(&s.state.c.v[2], blob);
    char *path = xasprintf("%s/objects/%.2s/%s", s.lineage_path, blob, blob + 2);
    char *commit = xasprintf("%s/objects/%.2s/%s", s.lineage_path, first, first + 2);
    CHECK(unlink(path) == 0 && unlink(commit) == 0);
    session_close(&s);
    CHECK(session_open(&s, root, SESSION_WRITE, &e) < 0);
    CHECK(strstr(e.msg, "source of candidate 2") != NULL && e.hint[0]);
    char *all[] = {refs, head, first, dir, lock, sub, heads, path, commit};
    for (size_t i = 0; i < countof(all); i++)
        free(all[i]);
}

static void sources_stay_reachable_and_pack(void)
{
    fresh();
    for (int i = 1; i < 600; i++) {
        char text[40];
        snprintf(text, sizeof text, "source %d\n", i);
        propose(0, -1, text, NULL);
    }
    CHECK_INT(lineage_idle(s.lineage, &s.state, 1, NULL), 1);
    CHECK_INT(lineage_idle(s.lineage, &s.state, 9, NULL), 0);
    char *attempts = xstrdup(git("rev-parse refs/ksmith/attempts"));
    CHECK_INT(lineage_idle(s.lineage, &s.state, 9, NULL), 0); // nothing to do
    CHECK_STR(git("rev-parse refs/ksmith/attempts"), attempts);
    CHECK_STR(git("log --format=%s refs/ksmith/attempts"), "sources 256-511\nsources 0-255");
    CHECK_STR(git("show refs/ksmith/attempts:000300.c"), "source 300");
    CHECK_STR(git("show refs/ksmith/recent:000599.c"), "source 599");
    CHECK_STR(git("fsck --full --strict --unreachable 2>&1"), "");
    // Packed by another process, and read by this one without opening again.
    struct err e = {0};
    pid_t pid = fork();
    if (pid == 0)
        _exit(lineage_pack(s.lineage_path, false, &e) < 0);
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK_STR(git("count-objects"), "0 objects, 0 kilobytes");
    struct str text = {0};
    char blob[41];
    candidate_blob(&s.state.c.v[77], blob);
    CHECK(lineage_refresh(s.lineage, &e) == 0 && lineage_read(s.lineage, blob, &text, &e) == 0);
    CHECK_STR(str_c(&text), "source 77\n");
    str_free(&text);
    propose(0, -1, "one more\n", NULL);
    CHECK(lineage_pack(s.lineage_path, true, &e) == 0);
    CHECK_STR(git("count-objects -v | grep -E '^(count|packs)'"), "count: 0\npacks: 1");
    CHECK(lineage_refresh(s.lineage, &e) == 0);
    fsck();
    free(attempts);
    session_close(&s);
}

static void pick_is_one_commit_on_the_baseline(void)
{
    fresh();
    int64_t a = propose(0, -1, "a\n", "Make a"), b = propose(a, -1, "b // knob\n", "Make b");
    char hex[41];
    struct lineage_text say = {"Faster k", "Measured here.", "Ann", "ann@example.org"};
    CHECK(lineage_pick(s.lineage, &s.state, b, "b\n", &say, hex, NULL) == 0);
    CHECK_STR(git("show pick-2:src/k.c"), "b");
    CHECK_STR(git("log --format='%s|%an' pick-2"), "Faster k|Ann\nBaseline|ksmith");
    fsck();
    session_close(&s);
}

int main(void)
{
    root = io_temp_dir("ksmith-lineage", NULL);
    char *src = io_join(root, "src/inc");
    io_mkdirs(src, 0700, NULL);
    static const char *const files[][2] = {
        {"src/k.c", kernel},
        {"src/k.h", "  # include \"inc/deep.h\"\n#include \"/etc/hostname\"\n"},
        {"src/inc/deep.h", "#include \"../k.h\"\n"},
        {"src/other.h", "\n"}};
    for (size_t i = 0; i < countof(files); i++) {
        char *path = io_join(root, files[i][0]);
        io_write_file(path, files[i][1], strlen(files[i][1]), 0600, NULL);
        free(path);
    }
    T(story_is_plain_git);
    T(edits_carry_the_engineers_name);
    T(failed_parents_are_no_steps);
    T(accepting_twice_or_nothing_is_refused);
    T(refs_and_commits_are_rebuilt);
    T(sources_stay_reachable_and_pack);
    T(pick_is_one_commit_on_the_baseline);
    io_remove(root, NULL);
    free(src);
    free(root);
    T_END;
}
