// The fold: each event does what its specification says, refuses what contradicts it, and is deterministic.
#include "base/io.h"
#include "session/event.h"
#include "session/session.h"
#include "t.h"

#include <inttypes.h>
#include <unistd.h>

static char *root;
static struct session s;

static const char blob0[] = "1111111111111111111111111111111111111111";

// A session with a session line and `n` candidates: 0 the baseline, each next a child of the one before.
static void fresh(int n)
{
    struct shape shapes[] = {{"small", false, 1}, {"big", true, 2}};
    struct lineage_file file = {.path = "k.c"};
    char *ksmith = io_join(root, ".ksmith");
    memcpy(file.blob, blob0, 41);
    io_remove(ksmith, NULL);
    free(ksmith);
    struct err e = {0};
    CHECK(session_open(&s, root, SESSION_WRITE, &e) == 0);
    if (e.msg[0])
        printf("# %s\n", e.msg);
    struct event_session head = {.name = "t",
                                 .backend = "cpu",
                                 .kernel = "k.c:k",
                                 .seed = UINT64_C(0xfedcba9876543210) >> 1,
                                 .islands = 2,
                                 .files = &file,
                                 .nfiles = 1,
                                 .shapes = shapes,
                                 .nshapes = 2};
    CHECK(session_log(&s, event_session(&head), JOURNAL_LAZY, NULL) == 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t parent = i - 1;
        struct event_candidate c = {.id = i,
                                    .parents = &parent,
                                    .nparents = i > 0,
                                    .op = i ? "tune" : "seed",
                                    .proposer = "rules",
                                    .iter = i,
                                    .gen = (int)i,
                                    .blob = blob0};
        CHECK(session_log(&s, event_candidate(&c), JOURNAL_LAZY, NULL) == 0);
    }
}

static int steer(const char *cmd, const char *args)
{
    return session_log(&s, event_steer("ann", cmd, json_parse(args, strlen(args), NULL)), JOURNAL_LAZY, NULL);
}

static int raw(const char *text)
{
    json *j = json_parse(text, strlen(text), NULL);
    CHECK(j != NULL);
    return session_log(&s, j, JOURNAL_LAZY, NULL);
}

// Closing, reading again and folding again give the same state; so does a snapshot with a tail.
static void same_again(void)
{
    char live[65], again[65], snap[65];
    state_digest(&s.state, live);
    struct session r;
    CHECK(session_open(&r, root, SESSION_READ, NULL) == 0);
    state_digest(&r.state, again);
    CHECK_STR(again, live);
    CHECK(state_save(&r.state, r.snapshot, r.journal_path, NULL) == 0);
    session_close(&r);
    CHECK(session_open(&r, root, SESSION_READ, NULL) == 0);
    state_digest(&r.state, snap);
    CHECK_STR(snap, live);
    CHECK_INT(r.saved, s.state.last);
    session_close(&r);
}

static const struct candidate *c(int64_t id)
{
    return state_candidate(&s.state, id);
}

static void session_line_is_read(void)
{
    fresh(0);
    CHECK_STR(s.state.name, "t");
    CHECK(s.state.seed == UINT64_C(0xfedcba9876543210) >> 1);
    CHECK_INT(s.state.shapes.n, 2);
    CHECK(s.state.shapes.v[1].bench && s.state.shapes.v[1].weight == 2);
    CHECK_STR(s.state.files.v[0].path, "k.c");
    CHECK(raw("{\"ev\":\"session\",\"format\":1}") < 0);
    same_again();
    session_close(&s);
}

static void unknown_format_and_events_are_refused(void)
{
    fresh(1);
    CHECK(raw("{\"ev\":\"candidat\",\"id\":1}") < 0);
    CHECK(raw("{\"ev\":\"verdict\",\"id\":1,\"status\":\"ok\",\"stage\":\"race\"}") < 0); // no candidate 1
    CHECK(raw("{\"ev\":\"verdict\",\"id\":0,\"status\":\"fine\",\"stage\":\"race\"}") < 0);
    CHECK(raw("{\"ev\":\"verdict\",\"id\":0,\"status\":\"ok\"}") < 0);
    CHECK(raw("{\"ev\":\"verdict\",\"id\":0,\"status\":\"ok\",\"stage\":\"race\",\"blob\":"
              "\"2222222222222222222222222222222222222222\"}") < 0); // another source was timed
    CHECK(raw("{\"ev\":\"candidate\",\"id\":2,\"op\":\"x\",\"proposer\":\"y\",\"blob\":"
              "\"1111111111111111111111111111111111111111\"}") < 0);
    CHECK(raw("{\"ev\":\"candidate\",\"id\":1,\"parents\":[1],\"op\":\"x\",\"proposer\":\"y\",\"blob\":"
              "\"1111111111111111111111111111111111111111\"}") < 0);
    CHECK(raw("{\"ev\":\"archive\",\"id\":0,\"island\":5,\"cell\":[0,0,0]}") < 0);
    CHECK(raw("{\"ev\":\"archive\",\"id\":0,\"island\":0,\"cell\":[0,0]}") < 0);
    CHECK(raw("{\"ev\":\"accept\",\"id\":0,\"champion\":true,\"commits\":[]}") < 0);
    CHECK(steer("explode", "{}") < 0);
    CHECK(steer("kill", "{\"id\":7}") < 0);
    CHECK_INT(s.state.last, 2); // none of it reached the journal
    same_again();
    session_close(&s);
}

static json *answer(int64_t id, const char *status, double gain, bool faster)
{
    char text[600];
    snprintf(text, sizeof text,
             "{\"ev\":\"verdict\",\"id\":%" PRId64
             ",\"status\":\"%s\",\"stage\":\"race\",\"gain\":%g,\"low\":%g,"
             "\"high\":%g,\"faster\":%s,\"features\":{\"vec\":2,\"acc\":1,\"block\":3},\"stages\":[{\"name\":"
             "\"compile\",\"ms\":120}],\"shapes\":[{\"name\":\"big\",\"time_ns\":1000.5,\"inc_ns\":2000,"
             "\"gain\":%g,"
             "\"low\":1.9,\"high\":2.1,\"n\":8}]}",
             id, status, gain, gain * 0.99, gain * 1.01, faster ? "true" : "false", gain);
    return json_parse(text, strlen(text), NULL);
}

static void judge(int64_t id, const char *status, double gain, bool faster, bool again)
{
    json *a = answer(id, status, gain, faster);
    CHECK(session_log(&s, event_verdict_of(a, id - 1, blob0, 2.5, again), JOURNAL_LAZY, NULL) == 0);
    json_free(a);
}

static void verdicts_fill_candidates_and_counters(void)
{
    fresh(4);
    judge(1, "ok", 2, true, false);
    judge(2, "ok", 1.5, false, false);
    CHECK(session_log(&s, event_verdict(3, ST_DUPLICATE, "source", "same text", 1), JOURNAL_LAZY, NULL) == 0);
    CHECK_NEAR(c(1)->speedup.value, 2, 1e-9);
    CHECK_NEAR(c(2)->speedup.value, 3, 1e-9);
    CHECK(c(2)->speedup.low < 3 * 0.99 && c(2)->speedup.low > 3 * 0.98);
    CHECK(c(1)->flags & CF_FASTER);
    CHECK(!(c(2)->flags & CF_FASTER));
    CHECK_INT(c(1)->ntimes, 1);
    CHECK_STR(s.state.shapes.v[c(1)->times[0].shape].name, "big");
    CHECK_NEAR(c(1)->times[0].time_ns, 1000.5, 1e-9);
    CHECK_INT(c(1)->cell[2], 3);
    CHECK_INT(c(3)->of, 1);
    CHECK_INT(s.state.by_status[ST_OK], 2);
    CHECK_INT(s.state.by_status[ST_DUPLICATE], 1);
    CHECK_INT(s.state.by_status[ST_PENDING], 1);
    CHECK_INT(s.state.evals, 2);
    const struct op_stats *o = state_op(&s.state, "tune");
    CHECK_INT(o->tried, 3);
    CHECK_INT(o->judged, 3);
    CHECK_INT(o->ok, 2);
    CHECK_INT(o->faster, 1);
    CHECK_NEAR(o->seconds, 5, 1e-9);
    // Measured again: the last verdict counts, once.
    judge(1, "flagged", 50, false, true);
    CHECK(c(1)->flags & CF_QUARANTINED);
    CHECK_INT(s.state.by_status[ST_OK], 1);
    CHECK_INT(state_op(&s.state, "tune")->judged, 3);
    CHECK_INT(state_op(&s.state, "tune")->faster, 0);
    json *line = session_line(&s, c(1)->at_verdict, NULL);
    CHECK(json_bool(line, "again", false));
    json_free(line);
    same_again();
    session_close(&s);
}

static void anchor_beats_the_product(void)
{
    fresh(2);
    judge(1, "ok", 2, true, false);
    CHECK(raw("{\"ev\":\"anchor\",\"id\":1,\"speedup\":2.2,\"low\":2.1,\"high\":2.3}") == 0);
    CHECK_NEAR(c(1)->speedup.value, 2.2, 1e-9);
    judge(1, "ok", 3, true, true);
    CHECK_NEAR(c(1)->speedup.value, 2.2, 1e-9);
    session_close(&s);
}

static void archive_evicts_and_migrates(void)
{
    fresh(3);
    int a[STATE_CELL] = {1, 2, 3};
    CHECK(session_log(&s, event_archive(1, 0, a, -1), JOURNAL_LAZY, NULL) == 0);
    CHECK(session_log(&s, event_migrate(1, 0, 1, a, -1), JOURNAL_LAZY, NULL) == 0);
    CHECK_INT(state_elite(&s.state, 1, a)->id, 1);
    CHECK(session_log(&s, event_archive(2, 0, a, 1), JOURNAL_LAZY, NULL) == 0);
    CHECK_INT(state_elite(&s.state, 0, a)->id, 2);
    CHECK(c(1)->flags & CF_ARCHIVED); // it still has its cell on island 1
    CHECK(session_log(&s, event_evict(1, 1, "test"), JOURNAL_LAZY, NULL) == 0);
    CHECK(!(c(1)->flags & CF_ARCHIVED) && c(1)->flags & CF_EVICTED);
    CHECK(state_elite(&s.state, 1, a) == NULL);
    same_again();
    session_close(&s);
}

static void steering_is_undone(void)
{
    char before[65], after[65];
    fresh(5);
    CHECK(steer("tag", "{\"id\":2,\"tag\":\"odd\"}") == 0);
    const struct {
        const char *cmd, *args;
    } acts[] = {{"pin", "{\"id\":1}"},
                {"kill", "{\"id\":1,\"tree\":true}"},
                {"revive", "{\"id\":3}"},
                {"note", "{\"id\":2,\"text\":\"why\"}"},
                {"tag", "{\"id\":2,\"tag\":\"good\"}"},
                {"untag", "{\"id\":2,\"tag\":\"odd\"}"},
                {"hint", "{\"text\":\"block for L1\",\"island\":1}"},
                {"move", "{\"id\":4,\"island\":1}"},
                {"weight", "{\"of\":\"tune\",\"value\":2.5}"},
                {"budget", "{\"what\":\"wall\",\"value\":\"2h\"}"},
                {"focus", "{\"id\":3}"}};
    // What the actions change, without the history itself.
    for (size_t i = 0; i < countof(acts); i++) {
        unsigned flags[5];
        int island = c(4)->island;
        for (int k = 0; k < 5; k++)
            flags[k] = c(k)->flags;
        const char *note = c(2)->note;
        size_t tags = c(2)->tags.n, n = s.state.steers.n;
        int64_t focus = s.state.focus;
        CHECK(steer(acts[i].cmd, acts[i].args) == 0);
        CHECK(s.state.steers.v[n].changes.n > 0 || strcmp(acts[i].cmd, "revive") == 0);
        char undo[40];
        snprintf(undo, sizeof undo, "{\"line\":%" PRId64 "}", s.state.last);
        CHECK(steer("undo", undo) == 0);
        CHECK(steer("undo", undo) < 0);
        for (int k = 0; k < 5; k++)
            CHECK_INT(c(k)->flags, flags[k]);
        CHECK_INT(c(4)->island, island);
        CHECK(c(2)->note == note);
        CHECK_INT(c(2)->tags.n, tags);
        CHECK_INT(s.state.focus, focus);
    }
    CHECK(state_setting(&s.state, "weight", "tune") == NULL);
    CHECK(s.state.hints.n == 1 && s.state.hints.v[0].gone);
    CHECK(state_last_undoable(&s.state, "ann") != NULL); // the first tag
    // And once more for good.
    for (size_t i = 0; i < countof(acts); i++)
        CHECK(steer(acts[i].cmd, acts[i].args) == 0);
    CHECK(c(1)->flags & CF_PINNED && c(1)->flags & CF_KILLED && c(2)->flags & CF_KILLED);
    CHECK(!(c(3)->flags & CF_KILLED) && c(4)->flags & CF_KILLED && !(c(0)->flags & CF_KILLED));
    CHECK_STR(state_setting(&s.state, "weight", "tune"), "2.5");
    CHECK_STR(state_setting(&s.state, "budget", "wall"), "2h");
    CHECK_STR(c(2)->note, "why");
    CHECK_STR(c(2)->tags.v[0], "good");
    CHECK_INT(c(2)->tags.n, 1);
    CHECK_STR(s.state.hints.v[1].text, "block for L1");
    CHECK(state_last_undoable(&s.state, "bob") == NULL);
    state_digest(&s.state, before);
    CHECK(steer("pin", "{\"id\":0}") == 0);
    state_digest(&s.state, after);
    CHECK(strcmp(before, after) != 0); // the digest sees it
    same_again();
    session_close(&s);
}

static void quarantine_waits_for_a_human(void)
{
    fresh(3);
    judge(1, "flagged", 100, false, false);
    judge(2, "flagged", 100, false, false);
    CHECK(steer("approve", "{\"id\":1}") == 0);
    CHECK(steer("reject", "{\"id\":2}") == 0);
    CHECK(c(1)->flags & CF_APPROVED && !(c(1)->flags & CF_QUARANTINED));
    CHECK(c(2)->flags & CF_REJECTED && !(c(2)->flags & CF_QUARANTINED));
    session_close(&s);
}

static void run_events(void)
{
    fresh(1);
    static const char text[] =
        "{\"device\":\"EPYC\",\"compiler\":\"gcc 12\",\"fingerprint\":\"ab\",\"protected\":true}";
    json *opened = json_parse(text, strlen(text), NULL);
    CHECK(opened != NULL);
    CHECK(session_log(&s, event_worker("cpu0", opened), JOURNAL_LAZY, NULL) == 0);
    CHECK(session_log(&s, event_worker("cpu0", opened), JOURNAL_LAZY, NULL) == 0);
    json_free(opened);
    CHECK_INT(s.state.workers.n, 1);
    CHECK_STR(s.state.workers.v[0].device, "EPYC");
    CHECK(session_log(&s, event_floor(0.0012, "ab"), JOURNAL_LAZY, NULL) == 0);
    CHECK_NEAR(s.state.floor, 0.0012, 1e-12);
    struct event_cost cost = {.wall = 2, .usd = 0.25, .tokens_in = 1000, .model = "m"};
    CHECK(session_log(&s, event_cost(&cost), JOURNAL_LAZY, NULL) == 0);
    CHECK(session_log(&s, event_cost(&cost), JOURNAL_LAZY, NULL) == 0);
    CHECK_NEAR(s.state.wall, 4, 1e-12);
    CHECK_NEAR(s.state.models.v[0].usd, 0.5, 1e-12);
    CHECK(session_log(&s, event_pause("asked"), JOURNAL_LAZY, NULL) == 0);
    CHECK(s.state.paused);
    CHECK(session_log(&s, event_stop("budget", "2 h are over"), JOURNAL_LAZY, NULL) == 0);
    CHECK_STR(s.state.stop_reason, "budget");
    CHECK(session_log(&s, event_resume(NULL), JOURNAL_LAZY, NULL) == 0);
    CHECK(!s.state.paused && !s.state.stopped);
    CHECK(session_log(&s, event_note("hello", -1), JOURNAL_LAZY, NULL) == 0);
    same_again();
    session_close(&s);
}

static void tree_and_ancestors(void)
{
    fresh(3);
    CHECK(raw("{\"ev\":\"candidate\",\"id\":3,\"parents\":[1,2],\"op\":\"cross\",\"proposer\":\"y\",\"blob\":"
              "\"1111111111111111111111111111111111111111\"}") == 0);
    CHECK_INT(c(0)->first_child, 1);
    CHECK_INT(c(1)->first_child, 2);
    CHECK_INT(c(2)->next_sibling, 3);
    CHECK_INT(c(1)->last_child, 3);
    CHECK_INT(state_common_ancestor(&s.state, 2, 3), 1);
    CHECK(state_is_ancestor(&s.state, 2, 3)); // along the second parent
    CHECK(!state_is_ancestor(&s.state, 3, 2));
    session_close(&s);
}

static void snapshot_that_does_not_fit_is_ignored(void)
{
    char live[65], got[65];
    fresh(3);
    CHECK(state_save(&s.state, s.snapshot, s.journal_path, NULL) == 0);
    CHECK(steer("pin", "{\"id\":1}") == 0);
    state_digest(&s.state, live);
    struct str snap = {0};
    CHECK(io_read_file(s.snapshot, 1 << 20, &snap, NULL) == 0);
    for (size_t at = 0; at < snap.len; at += 7) {
        struct session r;
        snap.s[at] ^= 4;
        CHECK(io_write_file(s.snapshot, snap.s, at % 2 ? snap.len : snap.len - 1, 0600, NULL) == 0);
        CHECK(session_open(&r, root, SESSION_READ, NULL) == 0);
        state_digest(&r.state, got);
        CHECK_STR(got, live);
        CHECK_INT(r.saved, 0);
        session_close(&r);
        snap.s[at] ^= 4;
    }
    // A snapshot of another journal: the same numbers of lines, other content.
    CHECK(io_write_file(s.snapshot, snap.s, snap.len, 0600, NULL) == 0);
    char *kept = xstrdup(s.snapshot);
    session_close(&s);
    fresh(2);
    CHECK(steer("pin", "{\"id\":0}") == 0);
    CHECK(steer("pin", "{\"id\":1}") == 0);
    state_digest(&s.state, live);
    CHECK(io_write_file(kept, snap.s, snap.len, 0600, NULL) == 0);
    struct session r;
    CHECK(session_open(&r, root, SESSION_READ, NULL) == 0);
    state_digest(&r.state, got);
    CHECK_STR(got, live);
    session_close(&r);
    session_close(&s);
    free(kept);
    str_free(&snap);
}

static void two_engines_and_another_host(void)
{
    struct session second;
    struct session_holder h;
    struct err e = {0};
    fresh(1);
    CHECK(session_holder(root, &h) && h.here && h.alive && h.pid == (long)getpid());
    CHECK(session_open(&second, root, SESSION_WRITE, &e) < 0);
    char want[80];
    snprintf(want, sizeof want, "an engine (pid %ld) already runs this session", (long)getpid());
    CHECK_STR(e.msg, want);
    CHECK(session_open(&second, root, SESSION_READ, NULL) == 0); // readers need no lock
    session_close(&second);
    char *lock = xstrdup(s.lock_path);
    session_close(&s);
    CHECK(!session_holder(root, &h));
    // A dead engine of this host: taken over. One of another host: named, with what to do.
    char text[200], host[100] = "";
    gethostname(host, sizeof host - 1);
    snprintf(text, sizeof text, "{\"host\":\"%s\",\"pid\":1,\"since\":1}\n", host);
    CHECK(io_write_file(lock, text, strlen(text), 0600, NULL) == 0);
    CHECK(session_open(&s, root, SESSION_WRITE, NULL) == 0);
    session_close(&s);
    const char *far = "{\"host\":\"elsewhere\",\"pid\":4711,\"since\":1}\n";
    CHECK(io_write_file(lock, far, strlen(far), 0600, NULL) == 0);
    CHECK(session_open(&s, root, SESSION_WRITE, &e) < 0);
    CHECK(strstr(e.msg, "elsewhere") && strstr(e.msg, "4711") && strstr(e.hint, "remove"));
    struct str now = {0};
    CHECK(io_read_file(lock, 1000, &now, NULL) == 0);
    CHECK_STR(str_c(&now), far); // not touched
    str_free(&now);
    free(lock);
}

int main(void)
{
    root = io_temp_dir("ksmith-state", NULL);
    T(session_line_is_read);
    T(unknown_format_and_events_are_refused);
    T(verdicts_fill_candidates_and_counters);
    T(anchor_beats_the_product);
    T(archive_evicts_and_migrates);
    T(steering_is_undone);
    T(quarantine_waits_for_a_human);
    T(run_events);
    T(tree_and_ancestors);
    T(snapshot_that_does_not_fit_is_ignored);
    T(two_engines_and_another_host);
    io_remove(root, NULL);
    free(root);
    T_END;
}
