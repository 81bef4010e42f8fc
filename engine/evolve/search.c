// One iteration: a parent, a move, a new candidate; or what the engineer ordered. Everything that is decided here is a
// function of the state and of draws that depend on (seed, iteration), so a run replays.
#include "evolve/engine_int.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "evolve/moves.h"
#include "evolve/population.h"
#include "evolve/tune.h"
#include "source/annot.h"

#include <math.h>

enum { TRIES = 24, OPS_MAX = 64 };

struct proposal {
    const struct cand *parent;
    char op[24];
    char subject[256];
    struct str text;
    struct edits edits; // the whole list from the baseline
};

static bool seen_hash(const struct state *s, const char *hash16)
{
    for (size_t i = 0; i < s->cands.n; i++)
        if (memcmp(s->cands.v[i].hash, hash16, 16) == 0)
            return true;
    return false;
}

static void norm_of(const struct str *text, char hash[65])
{
    source_norm_hash(text->s, text->len, hash);
    hash[16] = 0;
}

// The edit list of a candidate, from its journal line.
static void edits_of(struct engine *en, const struct cand *c, struct edits *out)
{
    struct err e = {0};
    json *line = session_candidate_line(en->session, c);
    if (json_has(line, "edits") && edits_from_json(out, json_get(line, "edits"), &e) < 0)
        log_line("edits of %lld: %s", (long long)c->id, e.msg);
    json_free(line);
}

static int64_t append_candidate(struct engine *en, const struct event_candidate *c)
{
    return engine_append(en, event_candidate(c), false) < 0 ? -1 : c->id;
}

int64_t search_record(struct engine *en, const struct cand *parent, const struct cand *second, const char *op,
                      const char *proposer, const char *subject, const char *author, const char *text, const json *edits)
{
    char blob[41], hash[65];
    struct err e = {0};
    struct str s = {0};
    str_add(&s, text);
    norm_of(&s, hash);
    int r = repo_put_blob(lineage_repo(en->session->lineage), text, s.len, blob, &e);
    str_free(&s);
    if (r < 0) {
        engine_stop(en, ERR_FAIL, "%s %s", e.msg, e.hint);
        return -1;
    }
    struct event_candidate c = {
        .id = (int64_t)en->state->cands.n,
        .parents = {parent ? parent->id : 0, second ? second->id : -1},
        .iteration = en->state->iterations + 1,
        .island = parent ? parent->island : 0,
        .seen = en->state->lines,
        .op = op,
        .proposer = proposer,
        .author = author,
        .blob = blob,
        .hash = hash,
        .subject = subject,
        .edits = edits,
    };
    return append_candidate(en, &c);
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
    const struct cand *c = state_cand(en->state, id);
    const struct cand *rival = work == WORK_ANCHOR ? state_cand(en->state, 0) : population_incumbent(en->state, c->island);
    if (rival->id == id) // re-measuring the best: against the baseline
        rival = state_cand(en->state, 0);
    char *text = engine_source(en, id), *other = text ? engine_source(en, rival->id) : NULL;
    if (!other) {
        free(text);
        verdict_reject(en, id, "rejected", "scan", "its source, or its rival's, is lost");
        return;
    }
    static const char *const ops[] = {[WORK_JUDGE] = "judge", [WORK_ANCHOR] = "anchor", [WORK_REMEASURE] = "rejudge"};
    json *o = judged(en, id, text);
    json_put_str(o, "op", ops[work]);
    json_put_str(o, "by", str_eq(c->proposer, "rules") || str_eq(c->proposer, "tune") ? "rule" : *c->model ? "model" : "human");
    json_put(o, work == WORK_ANCHOR ? "baseline" : "incumbent", judged(en, rival->id, other));
    json_put_num(o, "parent_gain_limit", 10);
    json_put_str(o, "until", "race");
    en->work = work;
    en->work_id = id;
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
    prepare(&en->task, en->baseline, text, strlen(text), &p);
    if (p.result == PREPARE_REJECTED)
        verdict_reject(en, id, "rejected", "scan", str_c(&p.reason));
    else if (p.result == PREPARE_FLAGGED && !state_cand(en->state, id)->approved)
        verdict_reject(en, id, "flagged", "scan", str_c(&p.reason));
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

static double steered_weight(const struct state *s, const char *op)
{
    size_t n = strlen(op);
    for (size_t i = s->weights.n; i-- > 0;)
        if (strncmp(s->weights.v[i], op, n) == 0 && s->weights.v[i][n] == '=')
            return strtod(s->weights.v[i] + n + 1, NULL);
    return 1;
}

static bool never(void *user, const int *point)
{
    (void)user;
    (void)point;
    return false;
}

// A point of the knob space near where the parent stands, as edits.
static bool draw_knobs(const struct annots *a, struct draw d, uint64_t try, struct proposal *p, struct edits *out)
{
    struct tune_space space = {0};
    int point[TUNE_KNOBS_MAX];
    const struct knob *knobs[TUNE_KNOBS_MAX];
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
        if (point[k] == space.at[k])
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
static bool try_move(struct engine *en, struct space *sp, const char *text, struct draw d, uint64_t try, struct proposal *p,
                     struct edits *step)
{
    double weight[OPS_MAX];
    struct moves_env env = {&en->task, en->task.kernel_file};
    struct err e = {0};
    for (int i = 0; i < sp->n_groups; i++)
        weight[i] = population_operator_weight(en->state, sp->groups[i].name) * steered_weight(en->state, sp->groups[i].name);
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
    char hash[65];
    norm_of(&p->text, hash);
    return !seen_hash(en->state, hash);
}

static bool propose(struct engine *en, struct draw d, struct proposal *p)
{
    int island = en->task.islands > 1 ? (int)(d.iteration % (uint64_t)en->task.islands) : 0;
    for (uint64_t round = 0; round < 6; round++) {
        const struct cand *forced = en->state->breed.n && round < 2 ? state_cand(en->state, en->state->breed.v[0]) : NULL;
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

// A candidate that waits for a verdict: brought by hand, asked to be measured again, or left behind by a crash.
static const struct cand *waiting(const struct state *s)
{
    for (size_t i = 0; i < s->cands.n; i++) {
        const struct cand *c = &s->cands.v[i];
        if (!c->killed && c->id != 0 && (c->status == CAND_PENDING || (c->status == CAND_FLAGGED && c->approved)))
            return c;
    }
    return NULL;
}

void search_next(struct engine *en)
{
    if (en->remeasure.n) {
        int64_t id = en->remeasure.v[0];
        vec_remove(&en->remeasure, 0);
        search_judge(en, id, WORK_REMEASURE);
        return;
    }
    const struct cand *left = waiting(en->state);
    if (left) {
        char *text = engine_source(en, left->id);
        if (text)
            scan_and_judge(en, left->id, text);
        else
            verdict_reject(en, left->id, "rejected", "scan", "its source is lost");
        free(text);
        return;
    }
    struct draw d = {en->task.seed, (uint64_t)en->state->iterations + 1};
    struct proposal p = {0};
    if (!propose(en, d, &p)) {
        engine_stop(en, 0, "nothing new to try: every move from every parent is known");
    } else {
        const char *proposer = str_eq(p.op, "tune") || str_eq(p.op, "flags") ? "tune" : "rules";
        json *edits = edits_json(&p.edits);
        int64_t id = search_record(en, p.parent, NULL, p.op, proposer, p.subject, NULL, str_c(&p.text), edits);
        json_free(edits);
        if (id >= 0)
            scan_and_judge(en, id, str_c(&p.text));
    }
    str_free(&p.text);
    edits_free(&p.edits);
}
