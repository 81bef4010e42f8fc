// What becomes of a judged candidate: accepted and committed, archived, quarantined, or left as a record. A
// winner is first timed against the baseline itself (the anchor), so that its commit says a measured number.
#include "evolve/engine_int.h"

#include "base/clock.h"
#include "base/log.h"
#include "evolve/population.h"

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

void verdict_reject(struct engine *en, int64_t id, enum status status, const char *stage, const char *reason,
                    int64_t of)
{
    if (engine_append(en, event_verdict(id, status, stage, reason, of), false) == 0)
        done(en);
}

static void trailers_and_author(struct engine *en, const struct candidate *c, struct lineage_text *text,
                                char author[200])
{
    json *line = session_line(en->session, c->at_candidate, NULL);
    snprintf(author, 200, "%s", json_str_or(line, "author", ""));
    char *open = strrchr(author, '<');
    if (open && open > author && str_ends(author, ">")) {
        author[strlen(author) - 1] = 0;
        open[-1] = 0;
        text->name = author;
        text->mail = open + 1;
    }
    json_free(line);
}

struct describing {
    struct engine *en;
    char author[200];
};

static void describe(void *user, int64_t id, struct lineage_text *text)
{
    struct describing *d = user;
    const struct candidate *c = state_candidate(d->en->state, id);
    *text = (struct lineage_text){.subject = c->title ? c->title : "A step"};
    trailers_and_author(d->en, c, text, d->author);
}

// Objects, then the accept line, then refs: lineage_accept keeps the order.
void verdict_accept(struct engine *en, int64_t id)
{
    const struct candidate *c = state_candidate(en->state, id), *champion = state_champion(en->state);
    struct describing d = {.en = en};
    struct err e = {0};
    bool title =
        c->island == champion->island || champion->id == 0 || c->speedup.value > champion->speedup.value;
    struct lineage_accept a = {.id = id,
                               .over = c->incumbent,
                               .gain = c->gain.value,
                               .low = c->gain.low,
                               .high = c->gain.high,
                               .champion = title,
                               .describe = describe,
                               .user = &d};
    int r = lineage_accept(en->session, &a, &e);
    if (r < 0) {
        engine_stop(en, ERR_FAIL, "%s %s", e.msg, e.hint);
        return;
    }
    if (r > 0)
        log_line("refs: %s (they are set again at the next start)", e.msg);
    engine_status(en);
    done(en);
}

static void archive(struct engine *en, int64_t id)
{
    const struct candidate *c = state_candidate(en->state, id), *over = NULL;
    if ((c->flags & CF_ARCHIVED) || !population_archives(en->state, c, &over))
        return;
    engine_append(en, event_archive(id, c->island, c->cell, over ? over->id : -1), false);
}

// Approved by the engineer: what made the referee suspicious is known and accepted.
static json *approved(const json *ev)
{
    json *ok = json_object();
    for (const json *x = json_first(ev); x; x = json_next(x))
        json_put(ok, json_key(x), str_eq(json_key(x), "status") ? json_new_str("ok") : json_copy(x));
    return ok;
}

static void on_verdict(struct engine *en, const json *ev)
{
    int64_t id = json_int(ev, "id", -1);
    const struct candidate *c = state_candidate(en->state, id);
    char blob[41];
    candidate_blob(c, blob);
    bool raced = json_num(ev, "gain", 0) > 0,
         lift = (c->flags & CF_APPROVED) && str_eq(json_str(ev, "status"), "flagged") && raced;
    json *use = lift ? approved(ev) : json_copy(ev);
    bool faster = json_bool(use, "faster", false) && str_eq(json_str(use, "status"), "ok");
    json *line = event_verdict_of(use, raced ? en->rival : -1, blob,
                                  (double)(clock_ns() - en->work_started) * 1e-9, en->work == WORK_REMEASURE);
    json_free(use);
    json *shown = json_copy(line);
    int r = engine_append(en, line, faster);
    if (r == 0)
        server_broadcast(en->server, shown);
    json_free(shown);
    if (r < 0)
        return;
    // Too good to be true: measured once more before a human is asked.
    if (str_eq(json_str(ev, "status"), "flagged") && raced && !lift && en->work == WORK_JUDGE)
        vec_push(&en->remeasure, id);
    archive(en, id);
    c = state_candidate(en->state, id);
    if (!faster || (c->flags & CF_ACCEPTED))
        done(en);
    else if (en->rival == 0)
        verdict_accept(en, id);
    else
        search_judge(en, id, WORK_ANCHOR);
}

static void on_anchor(struct engine *en, const json *ev)
{
    if (json_num(ev, "speedup", 0) > 0 && engine_append(en, event_anchor(ev), false) < 0)
        return;
    verdict_accept(en, en->work_id);
}

void verdict_event(struct engine *en, const json *ev)
{
    const char *name = json_str_or(ev, "ev", "");
    bool broken = str_eq(name, "error") || str_eq(name, "cancelled");
    if (str_eq(name, "verdict") && json_int(ev, "id", -1) == en->work_id)
        on_verdict(en, ev);
    else if (str_eq(name, "anchor"))
        on_anchor(en, ev);
    else if (broken && en->work == WORK_ANCHOR)
        verdict_accept(en, en->work_id); // it won its race; the baseline is only the published number
    else if (broken && en->work == WORK_JUDGE)
        verdict_reject(en, en->work_id, ST_CRASH, *en->stage ? en->stage : "compile",
                       json_str_or(ev, "msg", "the judgement was broken off"), -1);
    else if (broken)
        done(en);
    else
        log_line("an unexpected event %s of the worker", name);
}
