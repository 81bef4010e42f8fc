#include "cmd/event_text.h"

#include "base/text.h"
#include "cmd/show_text.h"

#include <string.h>

static void add_clean(struct str *out, const char *s)
{
    if (s)
        text_clean(out, s, strlen(s), TEXT_LINE);
}

static const struct candidate *candidate_of(const struct state *s, const json *ev)
{
    return state_candidate(s, json_int(ev, "id", -1));
}

static void put_verdict(const struct state *s, const json *ev, struct str *out)
{
    const struct candidate *c = candidate_of(s, ev);
    const char *status = json_str_or(ev, "status", "");
    char speed[64];
    str_addf(out, "%lld ", (long long)c->id);
    add_clean(out, status);
    if (str_eq(status, "ok") && c->speedup.value > 0) {
        show_speedup(speed, sizeof speed, c->speedup);
        str_addf(out, " %s", speed);
    } else if (json_has(ev, "reason")) {
        str_add(out, ": ");
        add_clean(out, json_str(ev, "reason"));
    }
    str_add(out, "  (");
    add_clean(out, c->title);
    str_add(out, ")");
}

static void put_accept(const struct state *s, const json *ev, struct str *out)
{
    const struct candidate *c = candidate_of(s, ev);
    char speed[64];
    show_speedup(speed, sizeof speed, c->speedup);
    str_addf(out, "%lld ACCEPTED %s commit %.10s  ", (long long)c->id, speed, c->commit ? c->commit : "-");
    add_clean(out, c->title);
}

static void put_steer(const struct state *s, const json *ev, struct str *out)
{
    (void)s;
    add_clean(out, json_str(ev, "who"));
    str_add(out, ": ");
    add_clean(out, json_str(ev, "cmd"));
    str_addc(out, ' ');
    json_print(json_get(ev, "args"), out);
}

static void put_stop(const struct state *s, const json *ev, struct str *out)
{
    (void)s;
    str_add(out, "stopped: ");
    add_clean(out, json_str_or(ev, "msg", json_str_or(ev, "reason", "")));
}

static void put_note(const struct state *s, const json *ev, struct str *out)
{
    (void)s;
    str_add(out, "note: ");
    add_clean(out, json_str(ev, "msg"));
}

static void put_pause(const struct state *s, const json *ev, struct str *out)
{
    (void)s;
    add_clean(out, json_str(ev, "ev"));
    if (json_has(ev, "why")) {
        str_add(out, " by ");
        add_clean(out, json_str(ev, "why"));
    }
}

static void put_worker(const struct state *s, const json *ev, struct str *out)
{
    const struct worker_info *w = s->workers.n ? &s->workers.v[0] : NULL;
    (void)ev;
    if (!w)
        return;
    str_add(out, "worker: ");
    add_clean(out, w->device ? w->device : "?");
    str_add(out, ", ");
    add_clean(out, w->compiler ? w->compiler : "?");
    if (w->is_protected)
        return;
    str_add(out, "; UNPROTECTED: ");
    add_clean(out, w->why);
}

static void put_preflight(const struct state *s, const json *ev, struct str *out)
{
    str_addf(out, "preflight: %s", s->preflight_ok ? "the task is sound" : "failed");
    if (json_has(ev, "floor"))
        str_addf(out, ", identical code differs by up to %.2f %%", 100 * json_num(ev, "floor", 0));
}

static const struct {
    const char *ev;
    void (*put)(const struct state *s, const json *ev, struct str *out);
} rows[] = {{"verdict", put_verdict}, {"accept", put_accept}, {"steer", put_steer},
            {"stop", put_stop},       {"worker", put_worker}, {"preflight", put_preflight},
            {"note", put_note},       {"pause", put_pause},   {"resume", put_pause}};

bool event_is_told(const char *ev, size_t n)
{
    for (size_t i = 0; i < countof(rows); i++)
        if (strlen(rows[i].ev) == n && memcmp(rows[i].ev, ev, n) == 0)
            return true;
    return false;
}

void event_text(const struct state *s, const json *event, struct str *out)
{
    const char *ev = json_str(event, "ev");
    bool candidate = str_eq(ev, "verdict") || str_eq(ev, "accept");
    if (candidate && !candidate_of(s, event))
        return;
    for (size_t i = 0; i < countof(rows); i++)
        if (str_eq(rows[i].ev, ev))
            rows[i].put(s, event, out);
}

void event_print(const struct state *s, const json *event, double t, FILE *f)
{
    struct str line = {0};
    event_text(s, event, &line);
    if (line.len)
        fprintf(f, "%8.1fs  %s\n", t - s->started, str_c(&line));
    str_free(&line);
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
