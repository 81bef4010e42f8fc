#include "cmd/event_text.h"

#include "cmd/show_text.h"

static void put_verdict(const struct state *s, const json *ev, FILE *f)
{
    const struct cand *c = state_cand(s, json_int(ev, "id", -1));
    char speed[64];
    fprintf(f, "%lld %s", (long long)c->id, cand_status_name(c->status));
    if (c->status == CAND_OK && c->speedup > 0) {
        show_speedup(speed, sizeof speed, c->speedup, c->speed_low, c->speed_high);
        fprintf(f, " %s", speed);
    } else if (*c->reason) {
        fputs(": ", f);
        show_clean(c->reason, f);
    }
    fputs("  (", f);
    show_clean(c->subject, f);
    fputs(")\n", f);
}

static void put_accept(const struct state *s, const json *ev, FILE *f)
{
    const struct cand *c = state_cand(s, json_int(ev, "id", -1));
    char speed[64];
    show_speedup(speed, sizeof speed, c->speedup, c->speed_low, c->speed_high);
    fprintf(f, "%lld ACCEPTED %s commit %.10s  ", (long long)c->id, speed, c->commit);
    show_clean(c->subject, f);
    fputc('\n', f);
}

static void put_steer(const struct state *s, const json *ev, FILE *f)
{
    const struct steer_line *l = &s->steers.v[s->steers.n - 1];
    (void)ev;
    fprintf(f, "%s: %s ", l->who, l->verb);
    show_clean(l->args, f);
    fputc('\n', f);
}

static void put_stop(const struct state *s, const json *ev, FILE *f)
{
    (void)s;
    fputs("stopped: ", f);
    show_clean(json_str_or(ev, "reason", ""), f);
    fputc('\n', f);
}

static void put_worker(const struct state *s, const json *ev, FILE *f)
{
    (void)ev;
    fprintf(f, "worker: %s, %s%s%s\n", s->device, s->compiler, s->unprotected ? "; UNPROTECTED: " : "",
            s->unprotected ? s->unprotected : "");
}

static void put_preflight(const struct state *s, const json *ev, FILE *f)
{
    (void)ev;
    fprintf(f, "preflight: %s, identical code differs by up to %.2f %%\n", s->preflight_ok ? "the task is sound" : "failed",
            100 * s->floor);
}

static const struct {
    const char *ev;
    void (*put)(const struct state *s, const json *ev, FILE *f);
} rows[] = {{"verdict", put_verdict}, {"accept", put_accept}, {"steer", put_steer},
            {"stop", put_stop},       {"worker", put_worker}, {"preflight", put_preflight}};

void event_print(const struct state *s, const json *event, FILE *f)
{
    for (size_t i = 0; i < countof(rows); i++) {
        if (!str_eq(rows[i].ev, json_str(event, "ev")))
            continue;
        fprintf(f, "%8.1fs  ", json_num(event, "t", 0) - s->first_t);
        rows[i].put(s, event, f);
    }
}
