// One iteration: a parent, a move, a new candidate; or what the engineer ordered. Everything that is decided
// here is a function of the state and of draws that depend on (seed, iteration), so a run replays.
#include "evolve/engine_int.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "evolve/moves.h"
#include "evolve/population.h"
#include "evolve/tune.h"
#include "source/annot.h"

#include <math.h>

enum { TRIES = 24, OPS_MAX = 64, PARENTS_SWEPT = 64 };

struct proposal {
    const struct candidate *parent;
    char op[24];
    char subject[256];
    struct str text;
    struct edits edits; // the whole list from the baseline
};

// The candidate with exactly this source, or NULL.
static const struct candidate *same_source(const struct state *s, const char *hex, int64_t not_this)
{
    char other[41];
    for (size_t i = 0; i < s->c.n; i++) {
        candidate_blob(&s->c.v[i], other);
        if (memcmp(other, hex, 40) == 0 && s->c.v[i].id != not_this)
            return &s->c.v[i];
    }
    return NULL;
}

// The edit list of a candidate, from its journal line.
static void edits_of(struct engine *en, const struct candidate *c, struct edits *out)
{
    struct err e = {0};
    json *line = session_line(en->session, c->at_candidate, &e);
    if (json_has(line, "edits") && edits_from_json(out, json_get(line, "edits"), &e) < 0)
        log_line("edits of %lld: %s", (long long)c->id, e.msg);
    json_free(line);
}

int64_t search_record(struct engine *en, const struct new_candidate *n)
{
    char blob[41], author[200];
    struct err e = {0};
    const struct candidate *parent = state_candidate(en->state, n->parents[0]);
    const struct candidate *second = state_candidate(en->state, n->parents[1]);
    if (lineage_blob(en->session->lineage, n->text, strlen(n->text), blob, &e) < 0) {
        engine_stop(en, ERR_FAIL, "%s %s", e.msg, e.hint);
        return -1;
    }
    int gen = parent ? parent->gen + 1 : 1;
    struct event_candidate c = {
        .id = (int64_t)en->state->c.n,
        .parents = n->parents,
        .nparents = second ? 2 : 1,
        .iter = en->state->iterations,
        .island = parent ? parent->island : 0,
        .gen = second && second->gen >= gen ? second->gen + 1 : gen,
        .seen = en->state->last,
        .op = n->op,
        .proposer = n->proposer,
        .model = n->model,
        .seconds = n->seconds,
        .blob = blob,
        .title = n->title,
        .edits = n->edits,
    };
    json *event = event_candidate(&c);
    snprintf(author, sizeof author, "%s", n->author ? n->author : "");
    if (author[0])
        json_put_str(event, "author", author);
    return engine_append(en, event, false) < 0 ? -1 : c.id;
}

static json *judged(struct engine *en, int64_t id, const char *text)
{
    struct prepared p;
    json *o = json_object();
    prepare(&en->task, en->baseline, text, strlen(text), &p);
    json_put_int(o, "id", id);
    json_put_str(o, "source", text);
    json_put(o, "flags", prepared_flags(&p));
    prepared_free(&p);
    return o;
}

void search_judge(struct engine *en, int64_t id, enum work work)
{
    const struct candidate *c = state_candidate(en->state, id), *base = state_candidate(en->state, 0);
    const struct candidate *rival = work == WORK_ANCHOR ? base : population_incumbent(en->state, c->island);
    if (rival->id == id) // re-measuring the best: against the baseline
        rival = base;
    char *text = engine_source(en, id), *other = text ? engine_source(en, rival->id) : NULL;
    if (!other) {
        free(text);
        verdict_reject(en, id, ST_REJECTED, "scan", "its source, or its rival's, is lost", -1);
        return;
    }
    static const char *const ops[] = {
        [WORK_JUDGE] = "judge", [WORK_ANCHOR] = "anchor", [WORK_REMEASURE] = "rejudge"};
    json *o = judged(en, id, text);
    json_put_str(o, "op", ops[work]);
    json_put_str(o, "by",
                 str_eq(c->proposer, "rules") || str_eq(c->proposer, "tune") ? "rule"
                 : c->model                                                  ? "model"
                                                                             : "human");
    json_put(o, work == WORK_ANCHOR ? "baseline" : "incumbent", judged(en, rival->id, other));
    json_put_num(o, "parent_gain_limit", 10);
    json_put_str(o, "until", "race");
    json_put_bool(o, "approved", (c->flags & CF_APPROVED) != 0);
    en->work = work;
    en->work_id = id;
    en->rival = rival->id;
    en->work_started = clock_ns();
    snprintf(en->stage, sizeof en->stage, "%s", work == WORK_ANCHOR ? "anchor" : "compile");
    worker_request(en->worker, o);
    json_free(o);
    free(text);
    free(other);
}

// Scans a recorded candidate and sends it on, or gives its verdict at once.
static void scan_and_judge(struct engine *en, int64_t id, const char *text)
{
    struct prepared p;
    char blob[41];
    const struct candidate *c = state_candidate(en->state, id);
    candidate_blob(c, blob);
    const struct candidate *twin = same_source(en->state, blob, id);
    prepare(&en->task, en->baseline, text, strlen(text), &p);
    if (twin && twin->id < id)
        verdict_reject(en, id, ST_DUPLICATE, "dedup", "the same source", twin->id);
    else if (p.result == PREPARE_REJECTED)
        verdict_reject(en, id, ST_REJECTED, "scan", str_c(&p.reason), -1);
    else if (p.result == PREPARE_FLAGGED && !(c->flags & CF_APPROVED))
        verdict_reject(en, id, ST_FLAGGED, "scan", str_c(&p.reason), -1);
    else
        search_judge(en, id, WORK_JUDGE);
    prepared_free(&p);
}

// ---- drawing a move

struct op_group {
    const char *name;
    VEC(size_t) moves; // indices
};

struct space { // what can be done with one parent
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
    *sp = (struct space){0};
    if (moves_list(&env, text, strlen(text), &sp->all, &e) < 0)
        log_line("moves: %s", e.msg);
    annot_read(&sp->annots, text, strlen(text), en->task.kernel_file, &errors);
    vec_free(&errors);
    for (size_t i = 0; i < sp->all.n; i++) {
        struct op_group *g = group_of(sp, sp->all.v[i].op);
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

// Draws one move and applies it; false where it refuses or gives nothing new.
static bool try_move(struct engine *en, struct space *sp, const char *text, struct draw d, uint64_t try,
                     struct proposal *p, struct edits *step)
{
    double weight[OPS_MAX];
    struct moves_env env = {&en->task, en->task.kernel_file};
    struct err e = {0};
    for (int i = 0; i < sp->n_groups; i++)
        weight[i] = population_operator_weight(en->state, sp->groups[i].name);
    const struct op_group *g = &sp->groups[draw_weighted(d, "operator", try, weight, sp->n_groups)];
    snprintf(p->op, sizeof p->op, "%s", g->name);
    if (str_eq(g->name, "tune")) {
        if (!draw_knobs(&sp->annots, d, try, p, step))
            return false;
    } else {
        const struct move *m = &sp->all.v[g->moves.v[draw_below(d, "move", try, g->moves.n)]];
        edits_copy(step, &m->edit);
        snprintf(p->subject, sizeof p->subject, "%s", m->words);
    }
    str_clear(&p->text);
    if (moves_apply(&env, step, text, strlen(text), &p->text, &e) < 0)
        return false;
    char blob[41];
    return lineage_hash(p->text.s, p->text.len, blob, &e) == 0 && !same_source(en->state, blob, -1);
}

static bool propose(struct engine *en, struct draw d, struct proposal *p)
{
    int island = en->task.islands > 1 ? (int)(d.iteration % (uint64_t)en->task.islands) : 0;
    for (uint64_t round = 0; round < 6; round++) {
        const struct candidate *forced =
            en->breed.n && round < 2 ? state_candidate(en->state, en->breed.v[0]) : NULL;
        p->parent = forced ? forced : population_parent(en->state, island, d, round);
        char *text = p->parent ? engine_source(en, p->parent->id) : NULL;
        if (!text)
            continue;
        struct space sp;
        space_open(en, text, &sp);
        bool found = false;
        for (uint64_t t = 0; t < TRIES && !found && sp.n_groups; t++) {
            struct edits step = {0};
            found = try_move(en, &sp, text, d, round * TRIES + t, p, &step);
            if (found) {
                edits_of(en, p->parent, &p->edits);
                for (size_t i = 0; i < step.v.n; i++)
                    edits_add(&p->edits, step.v.v[i].rule, step.v.v[i].where, step.v.v[i].params);
            }
            edits_free(&step);
        }
        space_close(&sp);
        free(text);
        if (found)
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
        p->parent = &en->state->c.v[i];
        char *text = population_parent_ok(p->parent) ? engine_source(en, p->parent->id) : NULL;
        if (!text)
            continue;
        struct space sp;
        struct err e = {0};
        bool found = false;
        char blob[41];
        swept++;
        space_open(en, text, &sp);
        for (size_t k = 0; k < sp.all.n && !found; k++) {
            const struct move *m = &sp.all.v[k];
            if (population_operator_weight(en->state, m->op) <= 0)
                continue;
            str_clear(&p->text);
            found = moves_apply(&env, &m->edit, text, strlen(text), &p->text, &e) == 0 &&
                    lineage_hash(p->text.s, p->text.len, blob, &e) == 0 && !same_source(en->state, blob, -1);
            if (found) {
                snprintf(p->op, sizeof p->op, "%s", m->op);
                snprintf(p->subject, sizeof p->subject, "%s", m->words);
                edits_of(en, p->parent, &p->edits);
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

// A candidate that waits for a verdict: brought by hand, approved by the engineer, or left behind by a crash.
static const struct candidate *waiting(const struct state *s)
{
    for (size_t i = 1; i < s->c.n; i++) {
        const struct candidate *c = &s->c.v[i];
        bool approved = c->status == ST_FLAGGED && (c->flags & CF_APPROVED);
        if (!(c->flags & (CF_KILLED | CF_REJECTED)) && (c->status == ST_PENDING || approved))
            return c;
    }
    return NULL;
}

// A judged winner whose acceptance a crash prevented.
static const struct candidate *unfinished(const struct state *s)
{
    for (size_t i = 1; i < s->c.n; i++)
        if (s->c.v[i].status == ST_OK &&
            (s->c.v[i].flags & (CF_FASTER | CF_ACCEPTED | CF_KILLED)) == CF_FASTER)
            return &s->c.v[i];
    return NULL;
}

static bool take_over(struct engine *en)
{
    const struct candidate *left = unfinished(en->state);
    if (left) {
        verdict_accept(en, left->id);
        return true;
    }
    if (en->remeasure.n) {
        int64_t id = en->remeasure.v[0];
        vec_remove(&en->remeasure, 0);
        search_judge(en, id, WORK_REMEASURE);
        return true;
    }
    left = waiting(en->state);
    if (!left)
        return false;
    char *text = engine_source(en, left->id);
    if (text)
        scan_and_judge(en, left->id, text);
    else
        verdict_reject(en, left->id, ST_REJECTED, "scan", "its source is lost", -1);
    free(text);
    return true;
}

void search_next(struct engine *en)
{
    asking_next(en);
    if (take_over(en))
        return;
    struct draw d = {en->task.seed, (uint64_t)en->state->iterations};
    struct proposal p = {0};
    bool rules = asking_share(en, "rules") > 0;
    if (!rules || (!propose(en, d, &p) && !sweep(en, &p))) {
        if (asking_running(en)) { // an answer brings the search back
            snprintf(en->stage, sizeof en->stage, "waiting for models");
            return;
        }
        engine_stop(en, 0,
                    rules ? "nothing new to try: every move from every parent is known"
                          : "nothing new to try: rules are off and no model can be asked");
    } else {
        json *edits = edits_json(&p.edits);
        struct new_candidate n = {.parents = {p.parent->id, -1},
                                  .op = p.op,
                                  .title = p.subject,
                                  .text = str_c(&p.text),
                                  .edits = edits};
        n.proposer = str_eq(p.op, "tune") || str_eq(p.op, "flags") ? "tune" : "rules";
        if (en->breed.n && en->breed.v[0] == p.parent->id)
            vec_remove(&en->breed, 0);
        int64_t id = search_record(en, &n);
        json_free(edits);
        if (id >= 0)
            scan_and_judge(en, id, str_c(&p.text));
    }
    str_free(&p.text);
    edits_free(&p.edits);
}
