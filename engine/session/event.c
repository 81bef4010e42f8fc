// Builders of journal events, and a candidate as programs want it.
#include "session/state.h"

#include <math.h>

json *event_new(const char *ev)
{
    json *o = json_object();
    json_put_str(o, "ev", ev);
    return o;
}

json *event_session(const char *name, const char *task_hash, const char *kernel, const char *func)
{
    json *o = event_new("session");
    json_put_int(o, "format", 1);
    json_put_str(o, "ksmith", KSMITH_VERSION);
    json_put_str(o, "name", name);
    json_put_str(o, "task", task_hash);
    json_put_str(o, "kernel", kernel);
    json_put_str(o, "func", func);
    return o;
}

json *event_simple(const char *ev, int64_t id)
{
    json *o = event_new(ev);
    json_put_int(o, "id", id);
    return o;
}

json *event_candidate(const struct event_candidate *c)
{
    json *o = event_simple("candidate", c->id), *parents = json_array();
    for (int i = 0; i < 2; i++)
        if (c->parents[i] >= 0)
            json_push(parents, json_new_int(c->parents[i]));
    json_put(o, "parents", parents);
    json_put_str(o, "op", c->op);
    json_put_str(o, "proposer", c->proposer);
    json_put_str(o, "model", c->model);
    json_put_str(o, "author", c->author);
    json_put_int(o, "island", c->island);
    json_put_int(o, "iter", c->iteration);
    json_put_str(o, "blob", c->blob);
    json_put_str(o, "hash", c->hash);
    json_put_str(o, "subject", c->subject);
    if (c->edits)
        json_put(o, "edits", json_copy(c->edits));
    json_put_int(o, "seen", (int64_t)c->seen);
    return o;
}

static void put_positive(json *o, const char *key, double x)
{
    if (x > 0)
        json_put_num(o, key, x);
}

static void put_text(json *o, const char *key, const char *s)
{
    if (s && *s)
        json_put_str(o, key, s);
}

json *state_cand_json(const struct state *s, const struct cand *c)
{
    json *o = json_object(), *parents = json_array(), *shapes = json_array();
    json_put_int(o, "id", c->id);
    for (int i = 0; i < 2; i++)
        if (c->parents[i] >= 0)
            json_push(parents, json_new_int(c->parents[i]));
    json_put(o, "parents", parents);
    put_text(o, "op", c->op);
    put_text(o, "proposer", c->proposer);
    put_text(o, "model", c->model);
    json_put_int(o, "island", c->island);
    json_put_int(o, "generation", c->generation);
    json_put_int(o, "iteration", c->iteration);
    json_put_str(o, "status", cand_status_name(c->status));
    json_put_str(o, "state", state_word(s, c));
    put_text(o, "stage", c->stage);
    put_text(o, "reason", c->reason);
    if (c->of >= 0)
        json_put_int(o, "of", c->of);
    put_positive(o, "speedup", c->speedup);
    put_positive(o, "speedup_low", c->speed_low);
    put_positive(o, "speedup_high", c->speed_high);
    if (c->incumbent >= 0)
        json_put_int(o, "incumbent", c->incumbent);
    put_positive(o, "gain", c->gain);
    put_positive(o, "low", c->low);
    put_positive(o, "high", c->high);
    for (int i = 0; i < c->n_shapes; i++) {
        const struct shape_time *t = &s->shapes.v[c->shapes_at + (uint32_t)i];
        json *x = json_object();
        json_put_str(x, "name", (size_t)i < s->bench.n ? s->bench.v[i] : "?");
        json_put_num(x, "time_ns", round((double)t->time_us * 1e4) / 10);
        put_positive(x, "gain", (double)t->gain);
        put_positive(x, "low", (double)t->low);
        put_positive(x, "high", (double)t->high);
        json_push(shapes, x);
    }
    json_put(o, "shapes", shapes);
    if (c->cell >= 0)
        json_put_int(o, "cell", c->cell);
    json_put_num(o, "seconds", c->seconds);
    put_text(o, "commit", c->commit);
    put_text(o, "blob", c->blob);
    put_text(o, "subject", c->subject);
    put_text(o, "note", c->note);
    put_text(o, "tags", c->tags);
    json_put_bool(o, "pinned", c->pinned);
    json_put_num(o, "t", c->born);
    return o;
}
