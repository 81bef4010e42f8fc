// A small engine for the crash tests: driver DIR SEED STEPS opens the session and does STEPS things
// (candidates, verdicts, steering, acceptances, keeping sources, packing), telling on descriptor 1 after
// each:
//   "at LINE DIGEST"  the state after that line
//   "ack LINE"        all lines up to this one are promised
// It goes on where an earlier run was stopped.
#include "session/event.h"
#include "session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct session s;
static struct err e;
static uint64_t seed;

static int fail(void)
{
    err_print(&e, stderr);
    return 1;
}

static uint64_t draw(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

static void say(bool promised)
{
    char hex[65], line[160];
    state_digest(&s.state, hex);
    int n = snprintf(line, sizeof line, "at %" PRId64 " %s\n", s.state.last, hex);
    if (promised)
        n += snprintf(line + n, sizeof line - (size_t)n, "ack %" PRId64 "\n", s.state.last);
    if (write(1, line, (size_t)n) != n)
        _exit(97);
}

static int log_it(json *event, enum journal_sync sync)
{
    int r = session_log(&s, event, sync, &e);
    if (r == 0)
        say(sync == JOURNAL_SYNC);
    return r;
}

static int propose(void)
{
    char text[80], hex[41];
    int64_t id = (int64_t)s.state.c.n, parents[2] = {0, 0};
    int np = id == 0 ? 0 : 1 + (int)draw(3) / 2;
    for (int i = 0; i < np; i++)
        parents[i] = (int64_t)draw((uint64_t)id);
    snprintf(text, sizeof text, "int k(void) { return %" PRId64 "; }\n", id);
    if (lineage_blob(s.lineage, text, strlen(text), hex, &e) < 0)
        return -1;
    struct event_candidate c = {.id = id,
                                .parents = parents,
                                .nparents = np,
                                .op = np == 2 ? "cross" : "tune",
                                .proposer = "rules",
                                .blob = hex,
                                .iter = id};
    if (log_it(event_candidate(&c), JOURNAL_LAZY) < 0)
        return -1;
    json *a = json_object();
    json_put_int(a, "id", id);
    json_put_str(a, "status", draw(4) || id == 0 ? "ok" : "wrong");
    json_put_str(a, "stage", "race");
    json_put_num(a, "gain", 1.25);
    json_put_num(a, "low", 1.125);
    json_put_num(a, "high", 1.375);
    int r = log_it(event_verdict_of(a, 0, hex, 0.5, false), JOURNAL_LAZY);
    json_free(a);
    return r;
}

static int accept_one(int64_t id)
{
    const struct candidate *c = state_candidate(&s.state, id);
    if (!c || c->status != ST_OK || c->flags & CF_ACCEPTED)
        return 0;
    struct lineage_accept a = {.id = id, .over = id ? 0 : -1, .gain = 1.25, .low = 1.125, .high = 1.375};
    a.champion = id == 0 || draw(2);
    int r = lineage_accept(&s, &a, &e);
    if (r >= 0)
        say(true);
    return r;
}

static int steer(void)
{
    static const char *const cmds[] = {"pin", "kill", "revive", "unpin"};
    json *args = json_object();
    json_put_int(args, "id", (int64_t)draw(s.state.c.n));
    return log_it(event_steer("ann", cmds[draw(4)], args), JOURNAL_SYNC);
}

static int pack(void)
{
    struct err why = {0};
    // In this process, so that the shim sees it too.
    if (lineage_pack(s.lineage_path, draw(2), &why) < 0 || lineage_refresh(s.lineage, &why) < 0) {
        e = why;
        return -1;
    }
    return 0;
}

static int begin(void)
{
    struct lineage_file *files;
    size_t n;
    char head[41];
    if (s.state.last == 0) {
        if (lineage_project(s.lineage, s.dir, "k.c", &files, &n, head, &e) < 0)
            return -1;
        struct event_session se = {
            .name = "crash", .backend = "cpu", .kernel = "k.c:k", .islands = 1, .files = files, .nfiles = n};
        int r = log_it(event_session(&se), JOURNAL_SYNC);
        lineage_files_free(files, n);
        if (r < 0)
            return -1;
    }
    while (s.state.c.n == 0 || s.state.c.v[0].status != ST_OK)
        if (s.state.c.n == 0) {
            if (propose() < 0)
                return -1;
        } else if (log_it(event_verdict(0, ST_OK, "race", NULL, -1), JOURNAL_LAZY) < 0) {
            return -1;
        }
    return accept_one(0) < 0 ? -1 : 0;
}

static int step(void)
{
    switch (draw(10)) {
    case 0:
    case 1:
        return steer();
    case 2:
    case 3:
    case 4:
        return accept_one((int64_t)draw(s.state.c.n));
    case 5:
        return lineage_idle(s.lineage, &s.state, 4, &e);
    case 6:
        return draw(3) ? 0 : pack();
    default:
        return propose();
    }
}

int main(int argc, char **argv)
{
    if (argc < 4 || session_open(&s, argv[1], SESSION_WRITE, &e) < 0)
        return fail();
    seed = strtoull(argv[2], NULL, 10) + (uint64_t)s.state.last;
    int r = begin();
    for (long i = strtol(argv[3], NULL, 10); r >= 0 && i > 0; i--)
        r = step();
    if (r < 0)
        return fail();
    session_close(&s);
    return 0;
}
