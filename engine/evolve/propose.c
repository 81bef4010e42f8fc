#include "evolve/propose.h"

#include "base/hash.h"
#include "base/log.h"
#include "evolve/cross.h"
#include "evolve/engine_int.h"
#include "evolve/moves.h"
#include "evolve/population.h"
#include "evolve/tune.h"
#include "source/annot.h"

enum {
    OPENING = 16,
    OPENING_PROMISE = 2,
    TRIES = 24,
    OPS_MAX = 64,
    PARENTS_SWEPT = 64,
    RANDOM_STEPS = 8,
    REPAIR_WINDOW = 24
};

void proposal_free(struct proposal *p)
{
    str_free(&p->text);
    edits_free(&p->edits);
    *p = (struct proposal){0};
}

const struct candidate *propose_same_source(const struct engine *en, const char *hex, int64_t not_this)
{
    const struct state *s = en->state;
    char other[41];
    for (size_t i = 0; i < s->c.n; i++) {
        candidate_blob(&s->c.v[i], other);
        if (memcmp(other, hex, 40) == 0 && s->c.v[i].id != not_this)
            return &s->c.v[i];
    }
    return NULL;
}

static bool is_new(const struct engine *en, const struct str *text)
{
    char blob[41];
    return lineage_hash(str_c(text), text->len, blob, NULL) == 0 && !propose_same_source(en, blob, -1);
}

// The edit list of a candidate, from its journal line; false where it has none.
static bool edits_of(struct engine *en, const struct candidate *c, struct edits *out)
{
    struct err e = {0};
    json *line = c->at_candidate >= 0 ? session_line(en->session, c->at_candidate, &e) : NULL;
    bool has = json_has(line, "edits");
    if (has && edits_from_json(out, json_get(line, "edits"), &e) < 0)
        log_line("edits of %lld: %s", (long long)c->id, e.msg);
    json_free(line);
    return has || c->id == 0;
}

// The candidate that the list of c starts from.
static const struct candidate *edits_base(struct engine *en, const struct candidate *c)
{
    while (c->id > 0 && c->nparents) {
        struct edits l = {0};
        bool has = edits_of(en, c, &l);
        edits_free(&l);
        if (!has)
            break;
        c = state_candidate(en->state, c->parents[0]);
    }
    return c;
}

// ---- what can be done with one parent

struct op_group {
    const char *name;
    VEC(size_t) moves; // indices
};

struct space {
    const struct candidate *parent;
    const char *text;
    struct draw d;
    moves all;
    struct annots annots;
    struct op_group groups[OPS_MAX];
    int n_groups;
};

static struct op_group *group_of(struct space *sp, const char *name)
{
    for (int i = 0; i < sp->n_groups; i++)
        if (str_eq(sp->groups[i].name, name))
            return &sp->groups[i];
    if (sp->n_groups == OPS_MAX)
        return NULL;
    sp->groups[sp->n_groups] = (struct op_group){.name = name};
    return &sp->groups[sp->n_groups++];
}

static void space_open(struct engine *en, const char *text, struct space *sp)
{
    struct moves_env env = {&en->task, en->task.kernel_file};
    struct err e = {0};
    err_list errors = {0};
    *sp = (struct space){.text = text};
    if (moves_list(&env, text, strlen(text), &sp->all, &e) < 0)
        log_line("moves: %s", e.msg);
    annot_read(&sp->annots, text, strlen(text), en->task.kernel_file, &errors);
    vec_free(&errors);
    for (size_t i = 0; i < sp->all.n; i++) {
        bool flags = str_eq(sp->all.v[i].op, "flags");
        struct op_group *g = flags || en->task.policy != POLICY_KNOBS ? group_of(sp, sp->all.v[i].op) : NULL;
        if (g)
            vec_push(&g->moves, i);
    }
    if (sp->annots.knobs.n)
        group_of(sp, "tune");
}

static void space_close(struct space *sp)
{
    for (int i = 0; i < sp->n_groups; i++)
        vec_free(&sp->groups[i].moves);
    moves_free(&sp->all);
    annot_free(&sp->annots);
}

// ---- knobs

static bool never(void *user, const int *point)
{
    (void)user;
    (void)point;
    return false;
}

// A point of the knob space near where the parent stands, as edits.
static bool draw_knobs(const struct annots *a, struct draw d, uint64_t try, struct proposal *p,
                       struct edits *out)
{
    struct tune_space space = {0};
    int point[TUNE_KNOBS_MAX];
    const struct knob *knobs[TUNE_KNOBS_MAX] = {NULL};
    for (size_t i = 0; i < a->knobs.n && space.n < TUNE_KNOBS_MAX; i++) {
        const struct knob *k = &a->knobs.v[i];
        knobs[space.n] = k;
        space.sizes[space.n] = (int)k->n;
        for (size_t v = 0; v < k->n; v++)
            if (str_eq(k->values[v], k->value))
                space.at[space.n] = (int)v;
        space.n++;
    }
    d.seed ^= hash_mix(try + 1);
    if (!tune_next(&space, d, never, NULL, point))
        return false;
    struct str words = {0};
    str_add(&words, "tune");
    for (int k = 0; k < space.n; k++) {
        if (!knobs[k] || point[k] == space.at[k])
            continue;
        json *params = json_object();
        json_put_str(params, "value", knobs[k]->values[point[k]]);
        edits_add(out, "knob", knobs[k]->name, params);
        json_free(params);
        str_addf(&words, " %s=%s (was %s)", knobs[k]->name, knobs[k]->values[point[k]], knobs[k]->value);
    }
    snprintf(p->subject, sizeof p->subject, "%s", str_c(&words));
    str_free(&words);
    return true;
}

// ---- crossing

// What crossing is given of a candidate; false where its source is lost.
static bool cross_side(struct engine *en, const struct candidate *c, struct edits *list,
                       struct cross_parent *out)
{
    char *text = engine_source(en, c->id);
    *out = (struct cross_parent){.id = c->id, .text = text};
    if (text && edits_of(en, c, list))
        out->edits = list;
    return text != NULL;
}

int propose_cross(struct engine *en, const struct candidate *a, const struct candidate *b, struct proposal *p,
                  struct err *e)
{
    struct moves_env env = {&en->task, en->task.kernel_file};
    int64_t base = state_common_ancestor(en->state, a->id, b->id);
    const struct candidate *all[] = {a, b, state_candidate(en->state, base < 0 ? 0 : base)};
    struct cross_parent sides[3] = {0};
    struct edits lists[3] = {0};
    struct crossing c = {0};
    bool whole = true;
    for (int i = 0; i < 3; i++)
        whole &= cross_side(en, all[i], &lists[i], &sides[i]);
    int r = whole ? cross_make(&env, &sides[0], &sides[1], &sides[2], &c, e)
                  : err_set(e, ERR_FAIL, "", "the source of a parent is lost");
    if (r == 0) {
        bool swapped = c.how == CROSS_ON_SECOND;
        p->parents[0] = swapped ? b->id : a->id;
        p->parents[1] = swapped ? a->id : b->id;
        snprintf(p->op, sizeof p->op, "cross");
        snprintf(p->subject, sizeof p->subject, "%s", str_c(&c.words));
        str_clear(&p->text);
        str_addn(&p->text, str_c(&c.text), c.text.len);
        edits_free(&p->edits);
        p->edits = (struct edits){0};
        edits_copy(&p->edits, &c.edits);
    }
    for (int i = 0; i < 3; i++) {
        free((char *)(uintptr_t)sides[i].text);
        edits_free(&lists[i]);
    }
    crossing_free(&c);
    return r;
}

// ---- repair: a failed child with several new edits, without one of them

static bool failed(const struct candidate *c)
{
    return c->status == ST_COMPILE_ERROR || c->status == ST_WRONG || c->status == ST_CRASH ||
           c->status == ST_TIMEOUT;
}

// The youngest failures of this parent that may be more than one edit.
static const struct candidate *to_repair(const struct engine *en, const struct candidate *parent,
                                         uint64_t skip)
{
    const struct state *s = en->state;
    for (size_t i = s->c.n; i-- > 1 && i + REPAIR_WINDOW > s->c.n;) {
        const struct candidate *c = &s->c.v[i];
        bool many = str_eq(c->op, "cross") || str_eq(c->op, "random") || str_eq(c->op, "tune");
        if (many && failed(c) && c->nparents && c->parents[0] == parent->id && !(c->flags & CF_KILLED) &&
            skip-- == 0)
            return c;
    }
    return NULL;
}

static bool repair(struct engine *en, const struct candidate *parent, struct draw d, uint64_t try,
                   struct proposal *p)
{
    const struct candidate *c = to_repair(en, parent, try % 3);
    struct edits had = {0}, list = {0}, less = {0};
    bool found = false;
    edits_of(en, parent, &had);
    if (c && edits_of(en, c, &list) && list.v.n > had.v.n + 1) {
        size_t drop = had.v.n + draw_below(d, "repair", try, list.v.n - had.v.n);
        struct moves_env env = {&en->task, en->task.kernel_file};
        const struct candidate *base = edits_base(en, parent);
        char *text = engine_source(en, base->id);
        for (size_t i = 0; i < list.v.n; i++)
            if (i != drop)
                edits_add(&less, list.v.v[i].rule, list.v.v[i].where, list.v.v[i].params);
        str_clear(&p->text);
        found = text && moves_apply(&env, &less, text, strlen(text), &p->text, NULL) == 0;
        free(text);
        if (found) {
            edits_free(&p->edits);
            p->edits = less;
            less = (struct edits){0};
            snprintf(p->subject, sizeof p->subject, "repair %lld: without %s %s", (long long)c->id,
                     list.v.v[drop].rule, list.v.v[drop].where);
        }
    }
    edits_free(&had);
    edits_free(&list);
    edits_free(&less);
    return found;
}

// ---- drawing

static double share(const struct engine *en, const char *op)
{
    bool tune = str_eq(op, "tune") || str_eq(op, "flags");
    const char *set = json_str(json_get(en->task.extra, "proposers"), tune ? "tune" : op);
    return (tune || str_eq(op, "cross")) && set ? strtod(set, NULL) : 1;
}

// What gained most elsewhere goes first; once tried here, only what it brought here counts.
static double promise(const struct engine *en, const char *op)
{
    const struct op_stats *o = state_op(en->state, op);
    for (size_t i = 0; i < rule_table_n && (!o || o->tried == 0); i++)
        if (str_eq(rule_table[i]->name, op))
            return 1 + rule_table[i]->promise;
    return 1;
}

static double weight_of(const struct engine *en, const char *op)
{
    return population_operator_weight(en->state, op) * share(en, op) * promise(en, op);
}

static const struct op_group *draw_group(struct engine *en, const struct space *sp, uint64_t try)
{
    double weight[OPS_MAX], sum = 0;
    for (int i = 0; i < sp->n_groups; i++) {
        weight[i] = weight_of(en, sp->groups[i].name);
        if (en->task.policy == POLICY_RANDOM &&
            weight[i] > 0) // blind: what an operator brought is not looked at
            weight[i] = 1;
        sum += weight[i];
    }
    return sum > 0 ? &sp->groups[draw_weighted(sp->d, "operator", try, weight, sp->n_groups)] : NULL;
}

// The edits of one drawn knob point, flag or rule; false where it refuses. p gets op, subject and text.
static bool draw_step(struct engine *en, struct space *sp, const struct op_group *g, uint64_t try,
                      struct proposal *p, struct edits *step)
{
    struct moves_env env = {&en->task, en->task.kernel_file};
    if (str_eq(g->name, "tune")) {
        if (!draw_knobs(&sp->annots, sp->d, try, p, step))
            return false;
    } else {
        const struct move *m = &sp->all.v[g->moves.v[draw_below(sp->d, "move", try, g->moves.n)]];
        edits_copy(step, &m->edit);
        snprintf(p->subject, sizeof p->subject, "%s", m->words);
    }
    str_clear(&p->text);
    return moves_apply(&env, step, sp->text, strlen(sp->text), &p->text, NULL) == 0;
}

// Draws one move of an operator and applies it; false where it refuses or gives nothing new.
static bool try_group(struct engine *en, struct space *sp, const struct op_group *g, uint64_t try,
                      struct proposal *p)
{
    p->parents[0] = sp->parent->id;
    p->parents[1] = -1;
    snprintf(p->op, sizeof p->op, "%s", g->name);
    if (str_eq(g->name, "repair"))
        return repair(en, sp->parent, sp->d, try, p) && is_new(en, &p->text);
    if (str_eq(g->name, "cross")) {
        const struct candidate *second = population_second(en->state, sp->parent, sp->d, try);
        return second && propose_cross(en, sp->parent, second, p, NULL) == 0 && is_new(en, &p->text);
    }
    struct edits step = {0};
    bool found = draw_step(en, sp, g, try, p, &step) && is_new(en, &p->text);
    if (found) {
        edits_free(&p->edits);
        p->edits = (struct edits){0};
        edits_of(en, sp->parent, &p->edits);
        edits_copy(&p->edits, &step);
    }
    edits_free(&step);
    return found;
}

static bool try_move(struct engine *en, struct space *sp, uint64_t try, struct proposal *p)
{
    const struct op_group *g = draw_group(en, sp, try);
    return g && try_group(en, sp, g, try, p);
}

// The opening: a rule that promises much and was never tried is tried on the baseline where it applies there,
// the most promising first. Draws alone follow the first success, and what only the baseline offers (a
// register tile of a loop nest that another rule took apart since) would never be seen.
static bool propose_opening(struct engine *en, struct draw d, struct proposal *p)
{
    const struct op_group *best = NULL;
    struct space sp;
    bool found = false;
    char *text = engine_source(en, 0);
    if (!text)
        return false;
    space_open(en, text, &sp);
    sp.parent = state_candidate(en->state, 0);
    sp.d = d;
    for (int i = 0; i < sp.n_groups; i++) {
        const char *name = sp.groups[i].name;
        if (promise(en, name) > OPENING_PROMISE && weight_of(en, name) > 0 &&
            (!best || promise(en, name) > promise(en, best->name)))
            best = &sp.groups[i];
    }
    for (uint64_t t = 0; t < TRIES && best && !found; t++)
        found = try_group(en, &sp, best, t, p);
    space_close(&sp);
    free(text);
    return found;
}

static bool propose(struct engine *en, struct draw d, struct proposal *p)
{
    bool opening = d.iteration <= OPENING && !en->breed.n && en->state->focus < 0;
    if (opening && en->task.policy == POLICY_EVOLVE && propose_opening(en, d, p))
        return true;
    int island = en->task.islands > 1 ? (int)(d.iteration % (uint64_t)en->task.islands) : 0;
    for (uint64_t round = 0; round < 6; round++) {
        const struct candidate *forced =
            en->breed.n && round < 2 ? state_candidate(en->state, en->breed.v[0]) : NULL;
        const struct candidate *parent = forced ? forced : population_parent(en->state, island, d, round);
        char *text = parent ? engine_source(en, parent->id) : NULL;
        if (!text)
            continue;
        struct space sp;
        space_open(en, text, &sp);
        sp.parent = parent;
        sp.d = d;
        if (en->task.policy != POLICY_KNOBS && population_second(en->state, parent, d, 0))
            group_of(&sp, "cross");
        if (to_repair(en, parent, 0))
            group_of(&sp, "repair");
        bool found = false;
        for (uint64_t t = 0; t < TRIES && !found && sp.n_groups; t++)
            found = try_move(en, &sp, round * TRIES + t, p);
        space_close(&sp);
        free(text);
        if (found)
            return true;
    }
    return false;
}

// Policy random: up to RANDOM_STEPS drawn steps from the baseline, whatever others brought. The best of N
// such candidates is what selection has to beat.
static bool propose_random(struct engine *en, struct draw d, struct proposal *p)
{
    for (uint64_t round = 0; round < TRIES; round++) {
        int steps = 1 + (int)draw_below(d, "random-steps", round, RANDOM_STEPS), done = 0;
        struct str words = {0};
        char *text = engine_source(en, 0);
        edits_free(&p->edits);
        p->edits = (struct edits){0};
        for (uint64_t k = 0; text && k < (uint64_t)steps; k++) {
            struct space sp;
            struct edits step = {0};
            space_open(en, text, &sp);
            sp.d = d;
            const struct op_group *g = draw_group(en, &sp, round * RANDOM_STEPS + k);
            if (g && draw_step(en, &sp, g, round * RANDOM_STEPS + k, p, &step)) {
                edits_copy(&p->edits, &step);
                str_addf(&words, "%s%s", done++ ? ", " : "random: ", g->name);
            }
            space_close(&sp);
            if (step.v.n && p->text.len) {
                free(text);
                text = xstrdup(str_c(&p->text));
            }
            edits_free(&step);
        }
        str_clear(&p->text);
        str_add(&p->text, text ? text : "");
        free(text);
        snprintf(p->op, sizeof p->op, "random");
        snprintf(p->subject, sizeof p->subject, "%s", str_c(&words));
        p->parents[0] = 0;
        p->parents[1] = -1;
        str_free(&words);
        if (done && is_new(en, &p->text))
            return true;
    }
    return false;
}

// When draws find nothing: every move of every parent in turn, from the youngest, until one is new. So
// "nothing new" is said only where it is true of the PARENTS_SWEPT youngest parents.
static bool sweep(struct engine *en, struct proposal *p)
{
    struct moves_env env = {&en->task, en->task.kernel_file};
    int swept = 0;
    for (size_t i = en->state->c.n; i-- > 0 && swept < PARENTS_SWEPT;) {
        const struct candidate *parent = &en->state->c.v[i];
        char *text = population_parent_ok(parent) ? engine_source(en, parent->id) : NULL;
        if (!text)
            continue;
        struct space sp;
        bool found = false;
        swept++;
        space_open(en, text, &sp);
        for (int g = 0; g < sp.n_groups && !found; g++)
            for (size_t k = 0; k < sp.groups[g].moves.n && !found; k++) {
                const struct move *m = &sp.all.v[sp.groups[g].moves.v[k]];
                if (weight_of(en, m->op) <= 0)
                    break;
                str_clear(&p->text);
                found = moves_apply(&env, &m->edit, text, strlen(text), &p->text, NULL) == 0 &&
                        is_new(en, &p->text);
                if (found) {
                    p->parents[0] = parent->id;
                    p->parents[1] = -1;
                    snprintf(p->op, sizeof p->op, "%s", m->op);
                    snprintf(p->subject, sizeof p->subject, "%s", m->words);
                    edits_free(&p->edits);
                    p->edits = (struct edits){0};
                    edits_of(en, parent, &p->edits);
                    edits_copy(&p->edits, &m->edit);
                }
            }
        space_close(&sp);
        free(text);
        if (found)
            return true;
    }
    return false;
}

bool propose_next(struct engine *en, struct draw d, struct proposal *p)
{
    if (en->task.policy == POLICY_RANDOM && !en->breed.n)
        return propose_random(en, d, p);
    return propose(en, d, p) || sweep(en, p);
}
