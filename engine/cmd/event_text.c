#include "cmd/event_text.h"

#include "cmd/show_text.h"

static void put_verdict(const struct state *s, const json *ev, FILE *f)
{
    const struct candidate *c = state_candidate(s, json_int(ev, "id", -1));
    char speed[64];
    fprintf(f, "%lld %s", (long long)c->id, status_name(c->status));
    if (c->status == ST_OK && c->speedup.value > 0) {
        show_speedup(speed, sizeof speed, c->speedup);
        fprintf(f, " %s", speed);
    } else if (c->reason) {
        fputs(": ", f);
        show_clean(c->reason, f);
    }
    fputs("  (", f);
    show_clean(c->title ? c->title : "", f);
    fputs(")\n", f);
}

static void put_accept(const struct state *s, const json *ev, FILE *f)
{
    const struct candidate *c = state_candidate(s, json_int(ev, "id", -1));
    char speed[64];
    show_speedup(speed, sizeof speed, c->speedup);
    fprintf(f, "%lld ACCEPTED %s commit %.10s  ", (long long)c->id, speed, c->commit);
    show_clean(c->title ? c->title : "", f);
    fputc('\n', f);
}

static void put_steer(const struct state *s, const json *ev, FILE *f)
{
    const struct steer *l = &s->steers.v[s->steers.n - 1];
    (void)ev;
    fprintf(f, "%s: %s ", l->who, l->cmd);
    show_clean(l->args, f);
    fputc('\n', f);
}

static void put_stop(const struct state *s, const json *ev, FILE *f)
{
    (void)s;
    fputs("stopped: ", f);
    show_clean(json_str_or(ev, "msg", ""), f);
    fputc('\n', f);
}

static void put_worker(const struct state *s, const json *ev, FILE *f)
{
    const struct worker_info *w = &s->workers.v[0];
    (void)ev;
    fprintf(f, "worker: %s, %s%s%s\n", w->device ? w->device : "?", w->compiler ? w->compiler : "?",
            w->is_protected ? "" : "; UNPROTECTED: ", w->is_protected || !w->why ? "" : w->why);
}

static void put_preflight(const struct state *s, const json *ev, FILE *f)
{
    fprintf(f, "preflight: %s", s->preflight_ok ? "the task is sound" : "failed");
    if (json_has(ev, "floor"))
        fprintf(f, ", identical code differs by up to %.2f %%", 100 * json_num(ev, "floor", 0));
    fputc('\n', f);
}

static const struct {
    const char *ev;
    void (*put)(const struct state *s, const json *ev, FILE *f);
} rows[] = {{"verdict", put_verdict}, {"accept", put_accept}, {"steer", put_steer},
            {"stop", put_stop},       {"worker", put_worker}, {"preflight", put_preflight}};

void event_print(const struct state *s, const json *event, double t, FILE *f)
{
    for (size_t i = 0; i < countof(rows); i++) {
        if (!str_eq(rows[i].ev, json_str(event, "ev")))
            continue;
        fprintf(f, "%8.1fs  ", t - s->started);
        rows[i].put(s, event, f);
    }
}

int event_follow(struct journal_reader *r, struct state *s, event_tell *tell, void *user, struct err *e)
{
    struct journal_line line;
    int got;
    while ((got = journal_next(r, &line, e)) > 0) {
        if (state_apply(s, &line, e) < 0)
            return -1;
        tell(user, &line);
    }
    return got;
}
