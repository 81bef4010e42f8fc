// ksmith wait: blocks until something is true of a session, for scripts.
#include "base/clock.h"
#include "cmd/cmd.h"
#include "evolve/server.h"
#include "session/filter.h"
#include "session/session.h"

#include <math.h>
#include <unistd.h>

static const int64_t GRACE_NS = 3000000000;

enum {
    W_SPEEDUP,
    W_CHAMPION,
    W_ITERATIONS,
    W_EVALUATIONS,
    W_ACCEPTED,
    W_SECONDS,
    W_STOPPED,
    W_PAUSED,
    W_QUARANTINED
};

static const struct filter_field fields[] = {
    [W_SPEEDUP] = {"speedup", false, "of the champion over the baseline"},
    [W_CHAMPION] = {"champion", false, "its number"},
    [W_ITERATIONS] = {"iterations", false, "proposals so far"},
    [W_EVALUATIONS] = {"evaluations", false, "verdicts of workers so far"},
    [W_ACCEPTED] = {"accepted", false, "commits so far"},
    [W_SECONDS] = {"seconds", false, "wall time spent"},
    [W_STOPPED] = {"stopped", false, "1 when no engine searches any more"},
    [W_PAUSED] = {"paused", false, ""},
    [W_QUARANTINED] = {"quarantined", false, "candidates that wait for a human"},
};

struct view {
    const struct state *s;
    bool running;
};

static struct filter_value get(const void *thing, int field)
{
    const struct view *v = thing;
    const struct state *s = v->s;
    const struct candidate *c = state_champion(s);
    double quarantined = 0;
    for (size_t i = 0; i < s->c.n; i++)
        quarantined += (s->c.v[i].flags & CF_QUARANTINED) != 0;
    const double values[] = {[W_SPEEDUP] = c ? c->speedup.value : NAN,
                             [W_CHAMPION] = c ? (double)c->id : NAN,
                             [W_ITERATIONS] = (double)(s->iterations ? s->iterations - 1 : 0),
                             [W_EVALUATIONS] = (double)s->evals,
                             [W_ACCEPTED] = s->accepted.n ? (double)(s->accepted.n - 1) : 0,
                             [W_SECONDS] = s->wall,
                             [W_STOPPED] = !v->running,
                             [W_PAUSED] = s->paused,
                             [W_QUARANTINED] = quarantined};
    return (struct filter_value){values[field], NULL};
}

static bool running(const struct session *s)
{
    char *socket = session_socket(s->dir, NULL);
    int fd = socket ? server_connect(socket) : -1;
    free(socket);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int wait_for(struct session *s, const struct filter *f, double limit, struct err *e)
{
    int64_t start = clock_ns();
    for (;;) {
        bool alive = running(s);
        int64_t news;
        if (session_poll(s, &news, e) < 0)
            return cmd_fail(e);
        struct view v = {&s->state, alive};
        if (filter_match(f, get, &v))
            return 0;
        // An engine that was started a moment ago may not listen yet.
        if (!alive && clock_ns() - start > GRACE_NS)
            return cmd_fail((err_set(e, ERR_FAIL, "`ksmith run` goes on with the search.",
                                     "the engine stopped before it was true (%s)",
                                     s->state.stop_msg ? s->state.stop_msg : "it never ran"),
                             e));
        if (limit > 0 && (double)(clock_ns() - start) * 1e-9 > limit)
            return cmd_fail((err_set(e, ERR_FAIL, "", "still not true after %.0f s", limit), e));
        clock_sleep_ms(100);
    }
}

static int run(struct args *a)
{
    struct session s;
    struct err e = {0};
    struct filter *f = NULL;
    if (filter_parse(args_value(a, "until", "stopped"), fields, (int)countof(fields), &f, &e) < 0)
        return cmd_fail(&e);
    if (session_open(&s, a->dir, SESSION_READ, &e) < 0) {
        filter_free(f);
        return cmd_fail(&e);
    }
    int status = wait_for(&s, f, strtod(args_value(a, "timeout", "0"), NULL), &e);
    session_close(&s);
    filter_free(f);
    return status;
}

static const struct opt opts[] = {
    {"until", "CONDITIONS", "as in 'speedup>20' or 'accepted>0'; 'stopped' by default"},
    {"timeout", "SECONDS", "give up after so long, with status 1"},
    OPT_END};

const struct cmd cmd_wait = {
    .name = "wait",
    .args = "[DIR] [--until CONDITIONS]",
    .help = "block until something is true of a session",
    .more = "fields: speedup champion iterations evaluations accepted seconds stopped paused quarantined",
    .group = "watch and steer",
    .takes_dir = true,
    .opts = opts,
    .run = run,
};
