// Steering that makes or judges candidates: breed, add, cross, clone, remeasure.
#include "evolve/population.h"
#include "evolve/propose.h"
#include "evolve/steer_int.h"

static int may_be_parent(const struct candidate *c, struct err *e)
{
    if (population_alive(c))
        return 0;
    const char *what = c->flags & CF_KILLED                        ? "killed"
                       : c->flags & (CF_QUARANTINED | CF_REJECTED) ? "not approved"
                       : c->status == ST_PENDING                   ? "not judged yet"
                                                                   : status_name(c->status);
    return err_set(e, ERR_USAGE, "Only a correct, living candidate can be a parent.", "%lld is %s",
                   (long long)c->id, what);
}

int steer_check_breed(struct engine *en, struct call *c, struct err *e)
{
    (void)en;
    char *end = NULL;
    long n = c->n ? strtol(c->words[0], &end, 10) : 1;
    if (n < 1 || n > 1000 || (end && *end))
        return err_set(e, ERR_USAGE, "", "breed takes a number from 1 to 1000");
    if (may_be_parent(c->cand, e) < 0)
        return -1;
    json_put_int(c->args, "times", n);
    return 0;
}

int steer_check_add(struct engine *en, struct call *c, struct err *e)
{
    // The text travels in the request: the client may be on another file system or have an unsaved buffer.
    const char *text = json_str(c->request, "text");
    const struct candidate *parent = c->n > 1 ? steer_candidate(en, c->words[1]) : state_champion(en->state);
    const struct candidate *second = c->n > 2 ? steer_candidate(en, c->words[2]) : NULL;
    if (!text || !*text)
        return err_set(e, ERR_USAGE, "", "add needs the text of a kernel file");
    if (!parent)
        return err_set(e, ERR_USAGE, "`ksmith ls` shows the numbers.", "%s is not a candidate", c->words[1]);
    if (c->n > 2 && !second)
        return err_set(e, ERR_USAGE, "`ksmith ls` shows the numbers.", "%s is not a candidate", c->words[2]);
    // "seed": from elsewhere; "salvage": a model's answer that an engineer repaired.
    const char *op = json_str_or(c->request, "op", second ? "cross" : "edit");
    if (!str_eq(op, "edit") && !str_eq(op, "cross") && !str_eq(op, "seed") && !str_eq(op, "salvage"))
        return err_set(e, ERR_USAGE, "", "no candidate is brought in by %s", op);
    struct new_candidate n = {.parents = {parent->id, second && second != parent ? second->id : -1},
                              .op = op,
                              .proposer = "human",
                              .text = text,
                              .title = json_str_or(c->request, "subject", "Edited by hand"),
                              .model = json_str(c->request, "model"),
                              .author = json_str(c->request, "author")};
    int64_t id = search_record(en, &n);
    if (id < 0)
        return err_set(e, ERR_FAIL, "", "the journal cannot be written");
    c->cand = state_candidate(en->state, id);
    str_addf(&c->reply, "it is candidate %lld", (long long)id);
    return 0;
}

int steer_check_cross(struct engine *en, struct call *c, struct err *e)
{
    const struct candidate *a = c->cand, *b = steer_candidate(en, c->words[0]);
    struct proposal p = {0};
    char blob[41];
    if (!b)
        return err_set(e, ERR_USAGE, "`ksmith ls` shows the numbers.", "%s is not a candidate", c->words[0]);
    if (may_be_parent(a, e) < 0 || may_be_parent(b, e) < 0)
        return -1;
    int64_t id = -1, first = a->id, second = b->id;
    int r = propose_cross(en, a, b, &p, e);
    if (r == 0)
        r = lineage_hash(str_c(&p.text), p.text.len, blob, e);
    const struct candidate *twin = r == 0 ? propose_same_source(en, blob, -1) : NULL;
    if (twin)
        r = err_set(e, ERR_FAIL, "", "their child is known: it is candidate %lld", (long long)twin->id);
    if (r == 0) {
        id = search_propose(en, &p, json_str(c->request, "author"));
        r = id < 0 ? err_set(e, ERR_FAIL, "", "the journal cannot be written") : 0;
    }
    c->cand = state_candidate(en->state, first); // the list of candidates grew
    if (r == 0) {
        json_put_int(c->args, "second", second);
        str_addf(&c->reply, "%s: it is candidate %lld", p.subject, (long long)id);
    }
    proposal_free(&p);
    return r;
}

// The same source again, judged by itself: to keep, tag or hint it apart, or to see what luck is worth.
int steer_check_clone(struct engine *en, struct call *c, struct err *e)
{
    if (may_be_parent(c->cand, e) < 0)
        return -1;
    char *text = engine_source(en, c->cand->id);
    if (!text)
        return err_set(e, ERR_FAIL, "", "the source of %lld is lost", (long long)c->cand->id);
    char title[64];
    snprintf(title, sizeof title, "A copy of %lld", (long long)c->cand->id);
    int64_t of = c->cand->id,
            id = search_record(en, &(struct new_candidate){.parents = {of, -1},
                                                           .op = "clone",
                                                           .proposer = "human",
                                                           .text = text,
                                                           .title = title,
                                                           .author = json_str(c->request, "author")});
    free(text);
    if (id < 0)
        return err_set(e, ERR_FAIL, "", "the journal cannot be written");
    c->cand = state_candidate(en->state, of); // the list of candidates grew
    str_addf(&c->reply, "it is candidate %lld", (long long)id);
    return 0;
}

int steer_check_remeasure(struct engine *en, struct call *c, struct err *e)
{
    const struct candidate *x = c->cand;
    (void)en;
    if (x->id == 0)
        return err_set(e, ERR_USAGE, "It is timed against each winner anyway.",
                       "the baseline is what others are measured against");
    if (x->status == ST_PENDING)
        return err_set(e, ERR_USAGE, "It is judged in its turn.", "%lld was not measured yet",
                       (long long)x->id);
    if (x->flags & (CF_KILLED | CF_REJECTED))
        return err_set(e, ERR_USAGE, "Revive or approve it first.", "%lld is %s", (long long)x->id,
                       x->flags & CF_KILLED ? "killed" : "rejected");
    if (str_eq(x->stage, "scan") || str_eq(x->stage, "dedup"))
        return err_set(e, ERR_USAGE, "", "%lld never reached the worker: %s (%s)", (long long)x->id,
                       status_name(x->status), x->reason ? x->reason : x->stage);
    return 0;
}

void steer_do_breed(struct engine *en, struct call *c)
{
    for (int64_t i = json_int(c->args, "times", 1); i > 0; i--)
        vec_push(&en->breed, c->cand->id);
}

void steer_do_remeasure(struct engine *en, struct call *c)
{
    vec_push(&en->remeasure, c->cand->id);
}
