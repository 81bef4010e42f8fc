// One iteration: a parent, a move, a new candidate; or what the engineer ordered. Everything that is decided
// here is a function of the state and of draws that depend on (seed, iteration), so a run replays.
#include "evolve/engine_int.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "evolve/population.h"
#include "evolve/propose.h"

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

// Does a model's text live on in it? Rules and crossings of a model's candidate carry what the model wrote.
static bool from_model(const struct state *s, int64_t id)
{
    bool *in = xcalloc((size_t)id + 1, sizeof *in), found = false;
    in[id] = true;
    for (int64_t i = id; i > 0 && !found; i--) {
        const struct candidate *c = &s->c.v[i];
        found = in[i] && c->model;
        for (int k = 0; in[i] && k < c->nparents; k++)
            in[c->parents[k]] = true;
    }
    free(in);
    return found;
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
    // A copy has the binary of another candidate; "judge" would call it a duplicate.
    bool clone = work == WORK_JUDGE && str_eq(c->op, "clone");
    json_put_str(o, "op", ops[clone ? WORK_REMEASURE : work]);
    json_put_str(o, "by",
                 from_model(en->state, id)      ? "model"
                 : str_eq(c->proposer, "human") ? "human"
                                                : "rule");
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
    const struct candidate *twin = propose_same_source(en, blob, id);
    prepare(&en->task, en->baseline, text, strlen(text), &p);
    bool clone = str_eq(c->op, "clone"); // its source is known, and meant to be judged once more
    if (twin && twin->id < id && !clone)
        verdict_reject(en, id, ST_DUPLICATE, "dedup", "the same source", twin->id);
    else if (p.result == PREPARE_REJECTED)
        verdict_reject(en, id, ST_REJECTED, "scan", str_c(&p.reason), -1);
    else if (p.result == PREPARE_FLAGGED && !(c->flags & CF_APPROVED))
        verdict_reject(en, id, ST_FLAGGED, "scan", str_c(&p.reason), -1);
    else
        search_judge(en, id, WORK_JUDGE);
    prepared_free(&p);
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

// A parent that the engineer ordered gave its child, or has none to give: the order is done.
static void bred(struct engine *en, const struct proposal *p, bool found)
{
    if (!en->breed.n)
        return;
    if (!found || p->parents[0] != en->breed.v[0])
        log_line("breed: nothing new comes from %lld", (long long)en->breed.v[0]);
    vec_remove(&en->breed, 0);
}

void search_judge_waiting(struct engine *en)
{
    if (take_over(en))
        return;
    snprintf(en->stage, sizeof en->stage, "nothing waits");
    if (server_clients(en->server) == 0)
        engine_stop(en, 0, "what was brought in is judged");
}

void search_next(struct engine *en)
{
    if (en->remeasure.n == 0)
        asking_next(en);
    if (take_over(en))
        return;
    struct draw d = {en->task.seed, (uint64_t)en->state->iterations};
    struct proposal p = {0};
    bool rules = asking_share(en, "rules") > 0, found = rules && propose_next(en, d, &p);
    bred(en, &p, found);
    if (!found) {
        if (asking_running(en)) { // an answer brings the search back
            snprintf(en->stage, sizeof en->stage, "waiting for models");
            proposal_free(&p);
            return;
        }
        engine_stop(en, 0,
                    rules ? "nothing new to try: every move from every parent is known"
                          : "nothing new to try: rules are off and no model can be asked");
    } else {
        int64_t id = search_propose(en, &p, NULL);
        if (id >= 0)
            scan_and_judge(en, id, str_c(&p.text));
    }
    proposal_free(&p);
}

int64_t search_propose(struct engine *en, const struct proposal *p, const char *author)
{
    // After a merge there is no list: the child is a text of its own, where later lists start.
    json *edits = p->edits.v.n ? edits_json(&p->edits) : NULL;
    bool tune = str_eq(p->op, "tune") || str_eq(p->op, "flags");
    struct new_candidate n = {.parents = {p->parents[0], p->parents[1]},
                              .op = p->op,
                              .proposer = tune                     ? "tune"
                                          : str_eq(p->op, "cross") ? "cross"
                                                                   : "rules",
                              .title = p->subject,
                              .text = str_c(&p->text),
                              .author = author,
                              .edits = edits};
    int64_t id = search_record(en, &n);
    json_free(edits);
    return id;
}
