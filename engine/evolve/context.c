#include "evolve/context.h"

#include "base/task.h"
#include "models/facts.h"
#include "source/region.h"

enum { ATTEMPTS = 8, NEIGHBOURS = 4, PROGRAMS = 2, LOG_BYTES = 6000 };
enum { L_ATTEMPTS, L_NEIGHBOURS, L_PROGRAMS, L_DISTANT, L_HINTS };

struct filling {
    struct context *c;
    const struct session *s;
    context_source_fn *source;
    void *user;
};

static const char *own(struct context *c, char *text)
{
    vec_push(&c->texts, text);
    return text;
}

static json *verdict_of(const struct filling *f, const struct candidate *x)
{
    return x->at_verdict >= 0 ? session_line(f->s, x->at_verdict, NULL) : NULL;
}

static const char *title_of(struct filling *f, const struct candidate *x)
{
    struct str t = {0};
    str_addf(&t, "candidate %lld", (long long)x->id);
    if (x->speedup.value > 0)
        str_addf(&t, ", %.3fx over the baseline", x->speedup.value);
    if (x->title)
        str_addf(&t, ", %s", x->title);
    return own(f->c, str_steal(&t));
}

static void add_item(struct filling *f, int list, const struct candidate *x, bool with_source)
{
    struct str outcome = {0};
    json *v = verdict_of(f, x);
    facts_outcome(v, &outcome);
    json_free(v);
    char *source = with_source ? f->source(f->user, x->id) : NULL;
    struct prompt_item item = {.title = title_of(f, x), .text = own(f->c, str_steal(&outcome))};
    if (source)
        item.code = own(f->c, source);
    else if (with_source)
        return;
    vec_push(&f->c->lists[list], item);
}

static void add_attempts(struct filling *f, const struct candidate *parent)
{
    const struct state *st = &f->s->state;
    VEC(int64_t) ids = {0};
    for (int64_t id = parent->first_child; id >= 0; id = state_candidate(st, id)->next_sibling)
        if (state_candidate(st, id)->status != ST_PENDING)
            vec_push(&ids, id);
    for (size_t i = ids.n; i-- > 0 && f->c->lists[L_ATTEMPTS].n < ATTEMPTS;)
        add_item(f, L_ATTEMPTS, state_candidate(st, ids.v[i]), false);
    vec_free(&ids);
}

// Accepted children of the parent's own parent, and of its ancestors: changes that helped close by.
static void add_neighbours(struct filling *f, const struct candidate *parent)
{
    const struct state *st = &f->s->state;
    for (size_t i = st->accepted.n; i-- > 0 && f->c->lists[L_NEIGHBOURS].n < NEIGHBOURS;) {
        const struct candidate *x = state_candidate(st, st->accepted.v[i]);
        if (x->id != parent->id && x->id != 0 && x->nparents && parent->nparents &&
            (x->parents[0] == parent->parents[0] || state_is_ancestor(st, x->id, parent->id)))
            add_item(f, L_NEIGHBOURS, x, false);
    }
}

static int distance(const struct candidate *a, const struct candidate *b)
{
    int d = 0;
    for (int i = 0; i < STATE_CELL; i++)
        d += a->cell[i] > b->cell[i] ? a->cell[i] - b->cell[i] : b->cell[i] - a->cell[i];
    return d;
}

static void add_programs(struct filling *f, const struct candidate *parent)
{
    const struct state *st = &f->s->state;
    const struct candidate *far = NULL;
    for (size_t i = st->champions.n; i-- > 1 && f->c->lists[L_PROGRAMS].n < PROGRAMS;)
        if (st->champions.v[i] != parent->id)
            add_item(f, L_PROGRAMS, state_candidate(st, st->champions.v[i]), true);
    for (size_t i = 0; i < st->cells.n; i++) {
        const struct candidate *x = state_candidate(st, st->cells.v[i].id);
        if (x && x->id != parent->id && distance(x, parent) > (far ? distance(far, parent) : 1))
            far = x;
    }
    if (far)
        add_item(f, L_DISTANT, far, true);
}

static void add_hints(struct filling *f, const struct candidate *parent)
{
    const struct state *st = &f->s->state;
    for (size_t i = st->hints.n; i-- > 0;) {
        const struct hint *h = &st->hints.v[i];
        bool here = h->id >= 0 ? state_is_ancestor(st, h->id, parent->id)
                               : h->island < 0 || h->island == parent->island;
        struct prompt_item item = {.text = h->text};
        if (!h->gone && here)
            vec_push(&f->c->lists[L_HINTS], item);
    }
}

static void add_facts(struct filling *f, const struct task *t, const struct candidate *parent)
{
    struct str task = {0}, hardware = {0}, verdict = {0}, log = {0};
    struct prompt_ctx *x = &f->c->ctx;
    const struct state *st = &f->s->state;
    json *opened = st->at_worker >= 0 ? session_line(f->s, st->at_worker, NULL) : NULL;
    json *preflight = st->at_preflight >= 0 ? session_line(f->s, st->at_preflight, NULL) : NULL;
    json *v = verdict_of(f, parent);
    facts_task(t, &task);
    facts_hardware(opened, preflight, &hardware);
    if (v)
        facts_verdict(v, &verdict);
    else if (parent->id == 0)
        str_add(&verdict, "This is the baseline.\n");
    if (json_str(v, "log"))
        facts_log(json_str(v, "log"), LOG_BYTES, &log);
    x->task = own(f->c, str_steal(&task));
    x->hardware = hardware.len ? own(f->c, str_steal(&hardware)) : NULL;
    x->verdict = verdict.len ? own(f->c, str_steal(&verdict)) : NULL;
    x->log = log.len ? own(f->c, str_steal(&log)) : NULL;
    f->c->feedback = v ? v : json_object();
    str_free(&hardware);
    str_free(&verdict);
    str_free(&log);
    json_free(opened);
    json_free(preflight);
}

static int add_region(struct filling *f, const struct task *t, struct err *e)
{
    struct region r = {0};
    struct str words = {0};
    const char *s = f->c->ctx.source;
    int ok = region_find(&r, s, strlen(s), t->kernel_file, t->kernel_func, t->evolve, e);
    if (ok == 0) {
        region_describe(&r, &words);
        if (t->evolve == EVOLVE_BODY)
            str_addf(&words, " (the body of %s)", t->kernel_func);
        f->c->ctx.region = own(f->c, str_steal(&words));
    }
    region_free(&r);
    return ok;
}

int context_fill(struct context *c, const struct session *s, const struct task *t, int64_t parent,
                 int64_t second, enum ask ask, context_source_fn *source, void *user, struct err *e)
{
    struct filling f = {c, s, source, user};
    const struct candidate *p = state_candidate(&s->state, parent), *q = state_candidate(&s->state, second);
    *c = (struct context){.ctx = {.ask = ask, .func = t->kernel_func, .cuda = t->backend == BACKEND_CUDA}};
    char *text = p ? source(user, parent) : NULL, *other = q ? source(user, second) : NULL;
    if (text)
        c->ctx.source = own(c, text);
    if (other)
        own(c, other);
    if (!text || (q && !other))
        return err_set(e, ERR_FAIL, "", "the source of candidate %lld is lost",
                       (long long)(text ? second : parent));
    if (add_region(&f, t, e) < 0)
        return -1;
    c->ctx.title = title_of(&f, p);
    add_facts(&f, t, p);
    add_attempts(&f, p);
    add_neighbours(&f, p);
    add_programs(&f, p);
    add_hints(&f, p);
    if (q) {
        struct str outcome = {0};
        json *v = verdict_of(&f, q);
        facts_outcome(v, &outcome);
        json_free(v);
        c->ctx.other = (struct prompt_item){title_of(&f, q), own(c, str_steal(&outcome)), other};
    }
    struct prompt_items *const into[] = {&c->ctx.attempts, &c->ctx.neighbours, &c->ctx.programs,
                                         &c->ctx.distant, &c->ctx.hints};
    for (size_t i = 0; i < countof(into); i++)
        *into[i] = (struct prompt_items){c->lists[i].v, c->lists[i].n};
    return 0;
}

void context_free(struct context *c)
{
    for (size_t i = 0; i < c->texts.n; i++)
        free(c->texts.v[i]);
    vec_free(&c->texts);
    for (size_t i = 0; i < countof(c->lists); i++)
        vec_free(&c->lists[i]);
    json_free(c->feedback);
    *c = (struct context){0};
}
