// What becomes of a judged candidate: accepted and committed, archived, quarantined, or left as a record.
#include "evolve/engine_int.h"

#include "base/clock.h"
#include "base/log.h"
#include "evolve/population.h"

#include <math.h>

static void next_turn(void *user)
{
    engine_next(user);
}

static void done(struct engine *en)
{
    en->work = WORK_NONE;
    en->work_id = -1;
    en->stage[0] = 0;
    loop_after(en->loop, 0, next_turn, en);
}

void verdict_reject(struct engine *en, int64_t id, const char *status, const char *stage, const char *reason)
{
    json *o = event_simple("verdict", id);
    json_put_str(o, "status", status);
    json_put_str(o, "stage", stage);
    json_put_str(o, "reason", reason);
    json_put_bool(o, "worker", str_eq(status, "crash"));
    if (engine_append(en, o, false) == 0)
        done(en);
}

static int cell_of(const json *features)
{
    int vec = (int)json_num(features, "vec", 0), acc = (int)json_num(features, "acc", 0), block = (int)json_num(features, "block", 0);
    if (vec < 0 || vec > 3 || acc < 0 || acc > 4 || block < 0 || block > 3)
        return 0;
    return (vec * 5 + acc) * 4 + block;
}

static double rounded(double x)
{
    double scale = x > 0 ? pow(10, 5 - floor(log10(x))) : 1;
    return round(x * scale) / scale;
}

static void put_rounded(json *o, const char *key, double x)
{
    if (x > 0)
        json_put_num(o, key, rounded(x));
}

static void copy_keys(json *to, const json *from, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (json_has(from, keys[i]))
            json_put(to, keys[i], json_copy(json_get(from, keys[i])));
}

// Per shape: microseconds, gain, low, high.
static json *lean_shapes(const json *shapes)
{
    json *out = json_array();
    for (const json *x = json_first(shapes); x; x = json_next(x)) {
        json *row = json_array();
        json_push(row, json_new_num(rounded(json_num(x, "time_ns", 0) / 1000)));
        static const char *const keys[] = {"gain", "low", "high"};
        for (size_t i = 0; i < countof(keys); i++)
            json_push(row, json_new_num(rounded(json_num(x, keys[i], 0))));
        json_push(out, row);
    }
    return out;
}

// The journal's lean line of a worker's verdict. The speedup over the baseline is the incumbent's times the gain,
// with both intervals; an anchor replaces it by a direct measurement.
static json *lean(const struct engine *en, const json *ev)
{
    static const char *const kept[] = {"status", "stage", "reason", "of", "features", "static", "error", "regress", "floor_ns"};
    int64_t id = json_int(ev, "id", -1);
    const struct cand *c = state_cand(en->state, id);
    const struct cand *rival = state_cand(en->state, json_int(ev, "incumbent", population_incumbent(en->state, c->island)->id));
    json *o = event_simple("verdict", id);
    copy_keys(o, ev, kept, countof(kept));
    const char *text = json_str(ev, "log");
    if (text && *text)
        json_put_strn(o, "log", text, strlen(text) < 4000 ? strlen(text) : 4000);
    const char *binary = json_str(ev, "binary");
    if (binary && strlen(binary) >= 16)
        json_put_strn(o, "binary", binary, 16);
    double gain = json_num(ev, "gain", 0), low = json_num(ev, "low", 0), high = json_num(ev, "high", 0);
    if (gain > 0) {
        json_put_int(o, "incumbent", rival->id);
        put_rounded(o, "gain", gain);
        put_rounded(o, "low", low);
        put_rounded(o, "high", high);
        // Log intervals add in squares, since they were measured apart.
        double spread = hypot(log(high / low) / 2, rival->id ? log(rival->speed_high / rival->speed_low) / 2 : 0);
        put_rounded(o, "speedup", rival->speedup * gain);
        put_rounded(o, "slow", rival->speedup * gain * exp(-spread));
        put_rounded(o, "shigh", rival->speedup * gain * exp(spread));
        json_put(o, "shapes", lean_shapes(json_get(ev, "shapes")));
    }
    if (json_has(ev, "features"))
        json_put_int(o, "cell", cell_of(json_get(ev, "features")));
    json_put_num(o, "seconds", round((double)(clock_ns() - en->work_started) * 1e-6) / 1000);
    json_put_bool(o, "faster", json_bool(ev, "faster", false));
    return o;
}

static void trailers(const struct engine *en, struct str *out)
{
    const struct state *s = en->state;
    if (s->device && *s->device)
        str_addf(out, "Device: %s\n", s->device);
    if (s->compiler && *s->compiler)
        str_addf(out, "Compiler: %s\n", s->compiler);
    if (s->unprotected)
        str_addf(out, "Protection: %s\n", s->unprotected);
}

// Objects, then the accept line, then refs.
static void accept(struct engine *en, int64_t id)
{
    const struct cand *c = state_cand(en->state, id), *champion = state_champion(en->state);
    struct str tail = {0};
    struct err e = {0};
    trailers(en, &tail);
    bool title = c->island == champion->island || champion->id == 0 || c->speedup > champion->speedup;
    struct lineage_accept a = {.state = en->state, .cand = c, .title = title, .subject = c->subject, .trailers = str_c(&tail)};
    json *event = lineage_accept(en->session->lineage, &a, &e);
    str_free(&tail);
    if (!event) {
        engine_stop(en, ERR_FAIL, "%s %s", e.msg, e.hint);
        return;
    }
    json *copy = json_copy(event);
    if (engine_append(en, event, true) == 0) {
        if (lineage_refs(en->session->lineage, copy, &e) < 0)
            log_line("refs: %s (they are set again at the next start)", e.msg);
        server_broadcast(en->server, copy);
    }
    json_free(copy);
}

static void archive(struct engine *en, int64_t id)
{
    const struct cand *c = state_cand(en->state, id), *evicts = NULL;
    struct population_verdict v = {false, c->speedup, c->speed_low, c->speed_high, c->cell};
    if (c->status != CAND_OK || population_fate(en->state, c, &v, &evicts) != FATE_ARCHIVE)
        return;
    int64_t out = evicts ? evicts->id : -1;
    if (engine_append(en, event_simple("archive", id), false) == 0 && out >= 0)
        engine_append(en, event_simple("evict", out), false);
}

// Journals the verdict and does what follows from it.
static void settle(struct engine *en, json *line)
{
    int64_t id = json_int(line, "id", -1);
    bool faster = json_bool(line, "faster", false) && str_eq(json_str(line, "status"), "ok");
    json *shown = json_copy(line);
    if (engine_append(en, line, faster) < 0) {
        json_free(shown);
        return;
    }
    server_broadcast(en->server, shown);
    json_free(shown);
    const struct cand *c = state_cand(en->state, id);
    if (faster && !c->accepted)
        accept(en, id);
    else if (!c->accepted)
        archive(en, id);
    done(en);
}

static void on_verdict(struct engine *en, const json *ev)
{
    json *line = lean(en, ev);
    const struct cand *c = state_cand(en->state, json_int(ev, "id", -1));
    // Approved by the engineer: what made the referee suspicious is known and accepted.
    if (c->approved && str_eq(json_str(line, "status"), "flagged") && json_num(line, "gain", 0) > 0) {
        json *ok = json_copy(line);
        json_free(line);
        line = json_object();
        for (const json *x = json_first(ok); x; x = json_next(x))
            json_put(line, json_key(x), str_eq(json_key(x), "status") ? json_new_str("ok") : json_copy(x));
        json_free(ok);
    }
    if (json_bool(line, "faster", false) && json_int(line, "incumbent", 0) != 0 && en->phase == PHASE_SEARCH) {
        // Before it is published it is timed against the baseline itself.
        json_free(en->pending);
        en->pending = line;
        search_judge(en, c->id, WORK_ANCHOR);
        return;
    }
    settle(en, line);
}

static void replace(json **o, const char *key, double x)
{
    json *next = json_object();
    for (const json *y = json_first(*o); y; y = json_next(y))
        if (!str_eq(json_key(y), key))
            json_put(next, json_key(y), json_copy(y));
    put_rounded(next, key, x);
    json_free(*o);
    *o = next;
}

static void on_anchor(struct engine *en, const json *ev)
{
    json *line = en->pending;
    en->pending = NULL;
    double speedup = json_num(ev, "speedup", 0);
    if (speedup > 0 && line) {
        replace(&line, "speedup", speedup);
        replace(&line, "slow", json_num(ev, "low", speedup));
        replace(&line, "shigh", json_num(ev, "high", speedup));
    }
    if (line)
        settle(en, line);
    else
        done(en);
}

void verdict_event(struct engine *en, const json *ev)
{
    const char *name = json_str_or(ev, "ev", "");
    if (str_eq(name, "verdict") && state_cand(en->state, json_int(ev, "id", -1))) {
        on_verdict(en, ev);
    } else if (str_eq(name, "anchor")) {
        on_anchor(en, ev);
    } else if (str_eq(name, "error") || str_eq(name, "cancelled")) {
        if (en->pending) {
            json *line = en->pending;
            en->pending = NULL;
            settle(en, line);
        } else if (en->work == WORK_JUDGE) {
            verdict_reject(en, en->work_id, "crash", en->stage, json_str_or(ev, "msg", "the judgement was broken off"));
        } else {
            done(en);
        }
    } else {
        log_line("an unexpected event %s of the worker", name);
    }
}
