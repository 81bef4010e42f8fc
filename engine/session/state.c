#include "session/state.h"

#include "session/fold.h"

#include <inttypes.h>

static const char *const names[ST_COUNT] = {"pending",      "ok",    "duplicate", "rejected", "compile_error",
                                            "launch_error", "wrong", "timeout",   "crash",    "flagged"};

const char *status_name(enum status s)
{
    return (unsigned)s < ST_COUNT ? names[s] : "unknown";
}

int status_parse(const char *name)
{
    for (int i = 0; i < ST_COUNT; i++)
        if (str_eq(name, names[i]))
            return i;
    return -1;
}

void state_init(struct state *st)
{
    *st = (struct state){.focus = -1, .at_preflight = -1, .at_worker = -1, .memory = memory_new()};
}

void state_free(struct state *st)
{
    for (size_t i = 0; i < st->c.n; i++)
        vec_free(&st->c.v[i].tags);
    for (size_t i = 0; i < st->steers.n; i++)
        vec_free(&st->steers.v[i].changes);
    vec_free(&st->files);
    vec_free(&st->shapes);
    vec_free(&st->c);
    vec_free(&st->cells);
    vec_free(&st->commits);
    vec_free(&st->champions);
    vec_free(&st->accepted);
    vec_free(&st->funnel);
    vec_free(&st->ops);
    vec_free(&st->proposers);
    vec_free(&st->models);
    vec_free(&st->steers);
    vec_free(&st->hints);
    vec_free(&st->settings);
    vec_free(&st->workers);
    memory_free(st->memory);
    *st = (struct state){0};
}

int fold_bad(struct fold *f, const char *fmt, ...)
{
    struct str text = {0};
    va_list ap;
    va_start(ap, fmt);
    str_addv(&text, fmt, ap);
    va_end(ap);
    err_set(f->e, ERR_FAIL, "", "%s", str_c(&text));
    str_free(&text);
    return -1;
}

bool fold_hex(const char *hex, unsigned char out[20])
{
    if (!hex || strlen(hex) != 40)
        return false;
    for (int i = 0; i < 40; i++) {
        char c = hex[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        out[i / 2] = (unsigned char)(i % 2 ? out[i / 2] | digit : digit << 4);
    }
    return true;
}

void candidate_blob(const struct candidate *c, char hex[41])
{
    for (int i = 0; i < 20; i++) {
        hex[2 * i] = "0123456789abcdef"[c->blob[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[c->blob[i] & 15];
    }
    hex[40] = 0;
}

struct candidate *fold_candidate(struct fold *f, const json *o, const char *key)
{
    int64_t id = json_int(o, key, -1);
    if (id >= 0 && id < (int64_t)f->st->c.n)
        return &f->st->c.v[id];
    fold_bad(f, "%s line about candidate %" PRId64 ", which does not exist", json_str(f->event, "ev"), id);
    return NULL;
}

struct ratio fold_ratio(const json *o, const char *key)
{
    return (struct ratio){json_num(o, key, 0), json_num(o, "low", 0), json_num(o, "high", 0)};
}

int fold_cell(struct fold *f, int bins[STATE_CELL])
{
    const json *a = json_get(f->event, "cell");
    int n = 0;
    for (const json *x = json_first(a); x; x = json_next(x), n++)
        if (n < STATE_CELL)
            bins[n] = (int)json_number(x, -1);
    return n == STATE_CELL ? 0 : fold_bad(f, "a cell of %d bins instead of %d", n, STATE_CELL);
}

static const struct {
    const char *ev;
    int (*fold)(struct fold *f);
} events[] = {
    {"candidate", fold_new_candidate},
    {"verdict", fold_verdict},
    {"cost", fold_cost},
    {"archive", fold_archive},
    {"accept", fold_accept},
    {"anchor", fold_anchor},
    {"evict", fold_evict},
    {"migrate", fold_migrate},
    {"steer", fold_steer},
    {"session", fold_session},
    {"worker", fold_worker},
    {"preflight", fold_preflight},
    {"floor", fold_floor},
    {"pause", fold_pause},
    {"resume", fold_resume},
    {"stop", fold_stop},
    {"note", fold_note},
};

static int fold_one(struct fold *f, const char *ev)
{
    if (f->st->last == 0 && !str_eq(ev, "session"))
        return fold_bad(f, "the first line is a %s line, not the session line", ev ? ev : "nameless");
    for (size_t i = 0; ev && i < countof(events); i++)
        if (strcmp(events[i].ev, ev) == 0)
            return events[i].fold(f);
    return fold_bad(f, "an event of the unknown kind %s", ev ? ev : "(none)");
}

int state_apply(struct state *st, const struct journal_line *line, struct err *e)
{
    struct fold f = {
        .st = st, .event = line->event, .n = line->n, .t = line->t, .offset = line->offset, .e = e};
    if (fold_one(&f, line->ev) < 0)
        return -1;
    st->last = line->n;
    st->offset = line->offset + (int64_t)line->len;
    st->latest = line->t;
    return 0;
}

int state_check(const struct state *st, const json *event, struct err *e)
{
    // With check set the handlers change nothing.
    struct fold f = {.st = (struct state *)st, .event = event, .check = true, .e = e};
    return fold_one(&f, json_str(event, "ev"));
}

const struct candidate *state_candidate(const struct state *st, int64_t id)
{
    return id >= 0 && id < (int64_t)st->c.n ? &st->c.v[id] : NULL;
}

const struct candidate *state_champion(const struct state *st)
{
    return st->champions.n ? &st->c.v[st->champions.v[st->champions.n - 1]] : NULL;
}

const struct candidate *state_elite(const struct state *st, int island, const int bins[STATE_CELL])
{
    for (size_t i = 0; i < st->cells.n; i++)
        if (st->cells.v[i].island == island &&
            memcmp(st->cells.v[i].bins, bins, sizeof st->cells.v[i].bins) == 0)
            return &st->c.v[st->cells.v[i].id];
    return NULL;
}

const struct commit *state_commit_of(const struct state *st, int64_t id)
{
    for (size_t i = st->commits.n; i-- > 0;)
        if (st->commits.v[i].id == id && !st->commits.v[i].main)
            return &st->commits.v[i];
    return NULL;
}

const struct commit *state_main(const struct state *st)
{
    for (size_t i = st->commits.n; i-- > 0;)
        if (st->commits.v[i].main)
            return &st->commits.v[i];
    return state_commit_of(st, 0);
}

const struct op_stats *state_op(const struct state *st, const char *op)
{
    for (size_t i = 0; i < st->ops.n; i++)
        if (strcmp(st->ops.v[i].name, op) == 0)
            return &st->ops.v[i];
    return NULL;
}

const char *state_setting(const struct state *st, const char *kind, const char *key)
{
    for (size_t i = 0; i < st->settings.n; i++) {
        const struct setting *s = &st->settings.v[i];
        if (strcmp(s->kind, kind) == 0 && strcmp(s->key, key) == 0)
            return *s->value ? s->value : NULL;
    }
    return NULL;
}

const struct steer *state_last_undoable(const struct state *st, const char *who)
{
    for (size_t i = st->steers.n; i-- > 0;) {
        const struct steer *s = &st->steers.v[i];
        if (s->undoable && !s->undone && (!who || strcmp(s->who, who) == 0))
            return s;
    }
    return NULL;
}

int64_t state_common_ancestor(const struct state *st, int64_t a, int64_t b)
{
    // A parent's id is always lower than its child's: step from the higher one.
    while (a >= 0 && b >= 0 && a != b) {
        int64_t *x = a > b ? &a : &b;
        const struct candidate *c = state_candidate(st, *x);
        *x = c && c->nparents ? c->parents[0] : -1;
    }
    return a == b ? a : -1;
}

bool state_is_ancestor(const struct state *st, int64_t ancestor, int64_t id)
{
    if (!state_candidate(st, ancestor) || !state_candidate(st, id) || ancestor > id)
        return false;
    // Marks from id downwards; again parents have lower ids.
    bool *reached = xcalloc((size_t)id + 1, sizeof *reached);
    reached[id] = true;
    for (int64_t i = id; i > ancestor; i--)
        for (int k = 0; reached[i] && k < st->c.v[i].nparents; k++)
            reached[st->c.v[i].parents[k]] = true;
    bool yes = reached[ancestor];
    free(reached);
    return yes;
}
