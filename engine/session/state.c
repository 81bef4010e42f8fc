#include "session/state.h"

#include "base/hash.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>

// Strings that many lines repeat are kept once.
struct interner {
    char **slots;
    size_t cap, n;
};

static const char *intern(struct state *s, const char *text)
{
    struct interner *in = s->names;
    if (!text)
        return NULL;
    if (in->n * 2 >= in->cap) {
        size_t old = in->cap;
        char **slots = in->slots;
        in->cap = old ? old * 2 : 1024;
        in->slots = xcalloc(in->cap, sizeof *in->slots);
        for (size_t i = 0; i < old; i++)
            if (slots[i]) {
                size_t at = hash_bytes(slots[i], strlen(slots[i]), 1) & (in->cap - 1);
                while (in->slots[at])
                    at = (at + 1) & (in->cap - 1);
                in->slots[at] = slots[i];
            }
        free(slots);
    }
    size_t at = hash_bytes(text, strlen(text), 1) & (in->cap - 1);
    while (in->slots[at] && strcmp(in->slots[at], text) != 0)
        at = (at + 1) & (in->cap - 1);
    if (!in->slots[at]) {
        in->slots[at] = xstrdup(text);
        in->n++;
    }
    return in->slots[at];
}

static const char *const status_names[] = {"pending",      "ok",    "duplicate", "rejected", "compile_error",
                                           "launch_error", "wrong", "timeout",   "crash",    "flagged"};

const char *cand_status_name(enum cand_status s)
{
    return status_names[s];
}

enum cand_status cand_status_of(const char *name)
{
    for (int i = 0; name && i < CAND_STATUS_COUNT; i++)
        if (strcmp(status_names[i], name) == 0)
            return (enum cand_status)i;
    return CAND_PENDING;
}

void state_init(struct state *s)
{
    *s = (struct state){.focus = -1};
    s->names = xcalloc(1, sizeof *s->names);
}

void state_free(struct state *s)
{
    for (size_t i = 0; s->names && i < s->names->cap; i++)
        free(s->names->slots[i]);
    if (s->names)
        free(s->names->slots);
    free(s->names);
    vec_free(&s->cands);
    vec_free(&s->shapes);
    vec_free(&s->ops);
    vec_free(&s->steers);
    vec_free(&s->hints);
    vec_free(&s->bench);
    vec_free(&s->champions);
    vec_free(&s->breed);
    vec_free(&s->weights);
    *s = (struct state){0};
}

struct cand *state_cand(const struct state *s, int64_t id)
{
    return id >= 0 && (uint64_t)id < s->cands.n ? &s->cands.v[id] : NULL;
}

const struct cand *state_champion(const struct state *s)
{
    for (size_t i = s->champions.n; i-- > 0;) {
        const struct cand *c = state_cand(s, s->champions.v[i]);
        if (!c->killed && !c->quarantined)
            return c;
    }
    return state_cand(s, 0);
}

const struct cand *state_elite(const struct state *s, int island, int cell)
{
    const struct cand *best = NULL;
    for (size_t i = 0; i < s->cands.n; i++) {
        const struct cand *c = &s->cands.v[i];
        bool lives = c->status == CAND_OK && (c->archived || c->accepted) && !c->killed && !c->evicted && !c->quarantined;
        if (lives && c->cell == cell && c->island == island && (!best || c->speedup > best->speedup))
            best = c;
    }
    return best;
}

static struct op_stat *op_of(struct state *s, const char *name)
{
    for (size_t i = 0; i < s->ops.n; i++)
        if (s->ops.v[i].name == name)
            return &s->ops.v[i];
    vec_push(&s->ops, (struct op_stat){.name = name});
    return &s->ops.v[s->ops.n - 1];
}

const struct op_stat *state_op(const struct state *s, const char *name)
{
    for (size_t i = 0; i < s->ops.n; i++)
        if (str_eq(s->ops.v[i].name, name))
            return &s->ops.v[i];
    return NULL;
}

bool state_descends(const struct state *s, const struct cand *c, int64_t ancestor)
{
    if (!c || c->id < ancestor)
        return false;
    if (c->id == ancestor)
        return true;
    return state_descends(s, state_cand(s, c->parents[0]), ancestor) ||
           (c->parents[1] >= 0 && state_descends(s, state_cand(s, c->parents[1]), ancestor));
}

const char *state_word(const struct state *s, const struct cand *c)
{
    const struct cand *champion = state_champion(s);
    if (c->killed)
        return "killed";
    if (c->quarantined)
        return "quarantined";
    if (champion && c->id == champion->id)
        return c->id == 0 ? "baseline" : "champion";
    if (c->id == 0)
        return "baseline";
    if (c->accepted)
        return "accepted";
    if (c->status == CAND_OK && c->archived && !c->evicted)
        return "archived";
    return cand_status_name(c->status);
}

static int misfit(struct err *e, const char *ev, int64_t id)
{
    return err_set(e, ERR_FAIL, "The journal was changed by hand or by another program; restore it from a backup.",
                   "the event %s of candidate %lld does not fit what came before", ev, (long long)id);
}

static void copy_hex(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static int fold_session(struct state *s, const json *o, uint64_t offset, struct err *e)
{
    (void)offset;
    if (json_int(o, "format", 0) != 1)
        return err_set(e, ERR_FAIL, "Open this session with the version of ksmith that made it.",
                       "the journal has format %lld, this program reads format 1", (long long)json_int(o, "format", 0));
    s->name = intern(s, json_str_or(o, "name", ""));
    s->task_hash = intern(s, json_str_or(o, "task", ""));
    s->kernel = intern(s, json_str_or(o, "kernel", ""));
    s->func = intern(s, json_str_or(o, "func", ""));
    return 0;
}

static int fold_candidate(struct state *s, const json *o, uint64_t offset, struct err *e)
{
    struct cand c = {.id = json_int(o, "id", -1), .parents = {-1, -1}, .of = -1, .incumbent = -1, .cell = -1};
    if (c.id != (int64_t)s->cands.n)
        return misfit(e, "candidate", c.id);
    int n = 0;
    for (const json *p = json_first(json_get(o, "parents")); p && n < 2; p = json_next(p)) {
        struct cand *parent = state_cand(s, (int64_t)json_number(p, -1));
        if (!parent)
            return misfit(e, "candidate", c.id);
        c.parents[n++] = parent->id;
        parent->children++;
        if (parent->generation >= c.generation)
            c.generation = parent->generation + 1;
    }
    c.op = intern(s, json_str_or(o, "op", "seed"));
    c.proposer = intern(s, json_str_or(o, "proposer", "human"));
    c.model = intern(s, json_str_or(o, "model", ""));
    c.author = intern(s, json_str_or(o, "author", ""));
    c.subject = intern(s, json_str_or(o, "subject", ""));
    c.reason = c.stage = "";
    c.island = (int)json_num(o, "island", 0);
    c.iteration = json_int(o, "iter", 0);
    c.born = json_num(o, "t", 0);
    c.offset = offset;
    copy_hex(c.blob, sizeof c.blob, json_str(o, "blob"));
    copy_hex(c.hash, sizeof c.hash, json_str(o, "hash"));
    if (c.id == 0) {
        c.speedup = c.speed_low = c.speed_high = 1;
        c.status = CAND_OK;
    }
    s->by_status[c.status]++;
    if (c.iteration > s->iterations)
        s->iterations = c.iteration;
    if (c.id)
        op_of(s, c.op)->tried++;
    for (size_t i = 0; i < s->breed.n; i++)
        if (s->breed.v[i] == c.parents[0]) {
            vec_remove(&s->breed, i);
            break;
        }
    vec_push(&s->cands, c);
    return 0;
}

static void fold_shapes(struct state *s, struct cand *c, const json *shapes)
{
    c->shapes_at = (uint32_t)s->shapes.n;
    c->n_shapes = 0;
    for (const json *x = json_first(shapes); x; x = json_next(x)) {
        float v[4] = {0};
        int i = 0;
        for (const json *y = json_first(x); y && i < 4; y = json_next(y))
            v[i++] = (float)json_number(y, 0);
        vec_push(&s->shapes, (struct shape_time){v[0], v[1], v[2], v[3]});
        c->n_shapes++;
    }
}

static int fold_verdict(struct state *s, const json *o, uint64_t offset, struct err *e)
{
    struct cand *c = state_cand(s, json_int(o, "id", -1));
    if (!c)
        return misfit(e, "verdict", json_int(o, "id", -1));
    bool first = c->verdict_offset == 0;
    s->by_status[c->status]--;
    c->status = cand_status_of(json_str(o, "status"));
    s->by_status[c->status]++;
    c->quarantined = c->status == CAND_FLAGGED && !c->approved;
    c->stage = intern(s, json_str_or(o, "stage", ""));
    c->reason = intern(s, json_str_or(o, "reason", ""));
    c->of = json_int(o, "of", -1);
    c->incumbent = json_int(o, "incumbent", -1);
    c->gain = json_num(o, "gain", 0);
    c->low = json_num(o, "low", 0);
    c->high = json_num(o, "high", 0);
    c->speedup = json_num(o, "speedup", 0);
    c->speed_low = json_num(o, "slow", 0);
    c->speed_high = json_num(o, "shigh", 0);
    c->cell = (int)json_num(o, "cell", -1);
    copy_hex(c->binary, sizeof c->binary, json_str(o, "binary"));
    c->verdict_offset = offset;
    fold_shapes(s, c, json_get(o, "shapes"));
    double seconds = json_num(o, "seconds", 0);
    c->seconds += seconds;
    struct op_stat *op = op_of(s, c->op);
    op->seconds += seconds;
    if (first && c->id) {
        op->ok += c->status == CAND_OK;
        s->evaluations += json_bool(o, "worker", true);
    }
    return 0;
}

static int fold_accept(struct state *s, const json *o, uint64_t offset, struct err *e)
{
    (void)offset;
    struct cand *c = state_cand(s, json_int(o, "id", -1));
    if (!c)
        return misfit(e, "accept", json_int(o, "id", -1));
    copy_hex(c->commit, sizeof c->commit, json_str(o, "commit"));
    c->accepted = c->archived = true;
    c->accept_n = (uint64_t)json_int(o, "n", 0);
    for (const json *d = json_first(json_get(o, "commits")); d; d = json_next(d)) {
        struct cand *stone = str_eq(json_str(d, "role"), "stone") ? state_cand(s, json_int(d, "id", -1)) : NULL;
        if (stone)
            copy_hex(stone->commit, sizeof stone->commit, json_str(d, "commit"));
    }
    if (json_bool(o, "title", false))
        vec_push(&s->champions, c->id);
    if (c->id == 0)
        return 0;
    struct op_stat *op = op_of(s, c->op);
    const struct cand *parent = state_cand(s, c->parents[0]);
    op->accepted++;
    if (parent && parent->speedup > 0 && c->speedup > parent->speedup)
        op->log_gain += log(c->speedup / parent->speedup);
    s->accepted++;
    s->last_accept_iter = c->iteration;
    return 0;
}

static int fold_mark(struct state *s, const json *o, uint64_t offset, struct err *e)
{
    (void)offset;
    struct cand *c = state_cand(s, json_int(o, "id", -1));
    const char *ev = json_str_or(o, "ev", "");
    if (!c)
        return misfit(e, ev, json_int(o, "id", -1));
    if (str_eq(ev, "archive")) {
        c->archived = true;
        c->evicted = false;
    } else if (str_eq(ev, "evict")) {
        c->evicted = true;
    } else {
        c->island = (int)json_num(o, "to", c->island);
    }
    return 0;
}

static int fold_anchor(struct state *s, const json *o, uint64_t offset, struct err *e)
{
    (void)offset;
    struct cand *c = state_cand(s, json_int(o, "id", -1));
    if (!c)
        return misfit(e, "anchor", json_int(o, "id", -1));
    c->speedup = json_num(o, "speedup", c->speedup);
    c->speed_low = json_num(o, "slow", c->speed_low);
    c->speed_high = json_num(o, "shigh", c->speed_high);
    return 0;
}

static int fold_worker(struct state *s, const json *o, uint64_t offset, struct err *e)
{
    (void)offset;
    (void)e;
    s->device = intern(s, json_str_or(o, "device", ""));
    s->compiler = intern(s, json_str_or(o, "compiler", ""));
    s->fingerprint = intern(s, json_str_or(o, "fingerprint", ""));
    s->unprotected = json_bool(o, "protected", true) ? NULL : intern(s, json_str_or(o, "why", "unprotected"));
    return 0;
}

static int fold_preflight(struct state *s, const json *o, uint64_t offset, struct err *e)
{
    (void)e;
    s->preflight_ok = json_bool(o, "ok", false);
    s->floor = json_num(o, "floor", 0.001);
    s->preflight_offset = offset;
    s->bench.n = 0;
    for (const json *x = json_first(json_get(o, "shapes")); x; x = json_next(x))
        vec_push(&s->bench, intern(s, json_str_or(x, "name", "")));
    return 0;
}

static int fold_cost(struct state *s, const json *o, uint64_t offset, struct err *e)
{
    (void)offset;
    (void)e;
    s->spent_s += json_num(o, "s", 0);
    s->spent_usd += json_num(o, "usd", 0);
    return 0;
}

static int fold_run(struct state *s, const json *o, uint64_t offset, struct err *e)
{
    (void)offset;
    (void)e;
    const char *ev = json_str_or(o, "ev", "");
    if (str_eq(ev, "stop")) {
        s->stop = intern(s, json_str_or(o, "reason", ""));
        s->stopped_done = json_bool(o, "done", false);
    } else if (str_eq(ev, "start")) {
        s->stop = NULL;
    }
    return 0;
}

// What a steering line does to the state. on is false where a later line takes it back.
struct steer_effect {
    const char *verb;
    void (*apply)(struct state *s, struct cand *c, const json *o, bool on);
};

static const char *arg_text(struct state *s, const json *o, int skip)
{
    struct str text = {0};
    int i = 0;
    for (const json *a = json_first(json_get(o, "args")); a; a = json_next(a))
        if (i++ >= skip)
            str_addf(&text, "%s%s", text.len ? " " : "", json_string(a) ? json_string(a) : "");
    const char *kept = intern(s, str_c(&text));
    str_free(&text);
    return kept;
}

static void on_pin(struct state *s, struct cand *c, const json *o, bool on)
{
    (void)s;
    c->pinned = str_eq(json_str(o, "verb"), "pin") == on;
}

static void on_kill(struct state *s, struct cand *c, const json *o, bool on)
{
    bool kill = str_eq(json_str(o, "verb"), "kill") == on;
    bool all = json_bool(o, "descendants", false);
    for (size_t i = (size_t)c->id; i < s->cands.n; i++)
        if ((int64_t)i == c->id || (all && state_descends(s, &s->cands.v[i], c->id)))
            s->cands.v[i].killed = kill;
}

static void on_approve(struct state *s, struct cand *c, const json *o, bool on)
{
    (void)s;
    (void)o;
    c->approved = on;
    c->quarantined = !on && c->status == CAND_FLAGGED;
}

static void on_reject(struct state *s, struct cand *c, const json *o, bool on)
{
    (void)s;
    (void)o;
    c->killed = on;
}

static void on_note(struct state *s, struct cand *c, const json *o, bool on)
{
    c->note = on ? arg_text(s, o, 1) : NULL;
}

static void on_tag(struct state *s, struct cand *c, const json *o, bool on)
{
    c->tags = on ? arg_text(s, o, 1) : NULL;
}

static void on_hint(struct state *s, struct cand *c, const json *o, bool on)
{
    uint64_t n = (uint64_t)json_int(o, "n", 0);
    if (on)
        vec_push(&s->hints, (struct hint){c ? c->id : -1, arg_text(s, o, c ? 1 : 0), n});
    for (size_t i = 0; !on && i < s->hints.n; i++)
        if (s->hints.v[i].n == n) {
            vec_remove(&s->hints, i);
            break;
        }
}

static void on_pause(struct state *s, struct cand *c, const json *o, bool on)
{
    (void)c;
    s->paused = str_eq(json_str(o, "verb"), "pause") == on;
}

static void on_focus(struct state *s, struct cand *c, const json *o, bool on)
{
    (void)o;
    s->focus = on && c ? c->id : -1;
}

static void on_breed(struct state *s, struct cand *c, const json *o, bool on)
{
    int n = (int)json_num(o, "times", 1);
    for (int i = 0; on && i < n; i++)
        vec_push(&s->breed, c->id);
    for (size_t i = 0; !on && i < s->breed.n; i++)
        if (s->breed.v[i] == c->id)
            vec_remove(&s->breed, i--);
}

static void on_budget(struct state *s, struct cand *c, const json *o, bool on)
{
    (void)c;
    if (!on)
        return;
    s->wall_limit = json_num(o, "wall", s->wall_limit);
    s->eval_limit = json_num(o, "evaluations", s->eval_limit);
    s->iter_limit = json_num(o, "iterations", s->iter_limit);
}

static void on_weight(struct state *s, struct cand *c, const json *o, bool on)
{
    (void)c;
    if (on)
        vec_push(&s->weights, arg_text(s, o, 0));
}

static void on_move(struct state *s, struct cand *c, const json *o, bool on)
{
    (void)s;
    c->island = (int)json_num(o, on ? "to" : "from", c->island);
}

static const struct steer_effect effects[] = {
    {"pin", on_pin},     {"unpin", on_pin},   {"kill", on_kill},     {"revive", on_kill}, {"approve", on_approve},
    {"reject", on_reject}, {"note", on_note}, {"tag", on_tag},       {"hint", on_hint},   {"pause", on_pause},
    {"resume", on_pause}, {"focus", on_focus}, {"breed", on_breed},  {"budget", on_budget}, {"weight", on_weight},
    {"move", on_move},
};

static void apply_steer(struct state *s, const json *o, bool on)
{
    struct cand *c = state_cand(s, json_int(o, "id", -1));
    for (size_t i = 0; i < countof(effects); i++)
        if (str_eq(effects[i].verb, json_str(o, "verb")))
            effects[i].apply(s, c, o, on);
}

static int fold_steer(struct state *s, const json *o, uint64_t offset, struct err *e)
{
    int64_t id = json_int(o, "id", -1);
    if (id >= 0 && !state_cand(s, id))
        return misfit(e, "steer", id);
    struct steer_line l = {.n = (uint64_t)json_int(o, "n", 0), .offset = offset, .t = json_num(o, "t", 0), .undoes = -1};
    l.verb = intern(s, json_str_or(o, "verb", ""));
    l.who = intern(s, json_str_or(o, "who", ""));
    l.args = arg_text(s, o, 0);
    const json *undone = json_get(o, "line"); // undo carries the line that it takes back
    if (undone) {
        l.undoes = json_int(o, "undo", -1);
        for (size_t i = 0; i < s->steers.n; i++)
            if ((int64_t)s->steers.v[i].n == l.undoes)
                s->steers.v[i].undone = str_eq(l.verb, "undo");
        apply_steer(s, undone, str_eq(l.verb, "redo"));
    } else {
        apply_steer(s, o, true);
    }
    vec_push(&s->steers, l);
    return 0;
}

static const struct {
    const char *ev;
    int (*fold)(struct state *s, const json *o, uint64_t offset, struct err *e);
} folds[] = {
    {"candidate", fold_candidate}, {"verdict", fold_verdict}, {"accept", fold_accept},       {"archive", fold_mark},
    {"evict", fold_mark},          {"migrate", fold_mark},    {"anchor", fold_anchor},       {"cost", fold_cost},
    {"steer", fold_steer},         {"session", fold_session}, {"preflight", fold_preflight}, {"worker", fold_worker},
    {"start", fold_run},           {"stop", fold_run},        {"floor", fold_run},           {"note", fold_run},
};

int state_fold(struct state *s, const json *line, uint64_t offset, struct err *e)
{
    const char *ev = json_str_or(line, "ev", "");
    for (size_t i = 0; i < countof(folds); i++) {
        if (!str_eq(folds[i].ev, ev))
            continue;
        if (folds[i].fold(s, line, offset, e) < 0)
            return -1;
        s->last_t = json_num(line, "t", 0);
        if (s->lines == 0)
            s->first_t = s->last_t;
        s->lines = (uint64_t)json_int(line, "n", (int64_t)s->lines + 1);
        return 0;
    }
    return err_set(e, ERR_FAIL, "Open it with a newer version of ksmith.", "the journal has an event %s, unknown to this version", ev);
}

static void mix(uint64_t *h, const void *p, size_t n)
{
    *h = hash_bytes(p, n, *h);
}

static void mix_str(uint64_t *h, const char *s)
{
    mix(h, s ? s : "", s ? strlen(s) + 1 : 1);
}

uint64_t state_digest(const struct state *s)
{
    uint64_t h = 1;
    for (size_t i = 0; i < s->cands.n; i++) {
        const struct cand *c = &s->cands.v[i];
        const int64_t ints[] = {c->id,       c->parents[0], c->parents[1], c->island,  c->generation,  c->iteration, c->status,
                                c->of,       c->incumbent,  c->cell,       c->children, c->accepted,   c->archived,  c->pinned,
                                c->killed,   c->quarantined, c->evicted,   c->approved, c->n_shapes,   (int64_t)c->offset};
        const double reals[] = {c->gain, c->low, c->high, c->speedup, c->speed_low, c->speed_high, c->seconds};
        mix(&h, ints, sizeof ints);
        mix(&h, reals, sizeof reals);
        const char *const texts[] = {c->op, c->proposer, c->subject, c->reason, c->blob, c->hash, c->commit, c->note, c->tags};
        for (size_t k = 0; k < countof(texts); k++)
            mix_str(&h, texts[k]);
    }
    const int64_t ints[] = {(int64_t)s->lines, s->iterations, s->evaluations, s->accepted, s->paused, s->focus, (int64_t)s->steers.n};
    const double reals[] = {s->spent_s, s->spent_usd, s->wall_limit, s->eval_limit, s->iter_limit};
    mix(&h, ints, sizeof ints);
    mix(&h, reals, sizeof reals);
    if (s->champions.n)
        mix(&h, s->champions.v, s->champions.n * sizeof *s->champions.v);
    if (s->breed.n)
        mix(&h, s->breed.v, s->breed.n * sizeof *s->breed.v);
    mix_str(&h, s->stop);
    return h;
}
