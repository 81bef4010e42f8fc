#include "evolve/asking.h"

#include "base/clock.h"
#include "base/log.h"
#include "evolve/context.h"
#include "evolve/engine_int.h"
#include "evolve/population.h"
#include "models/proposer.h"

#include <math.h>

// As many unjudged candidates as the worker should find waiting: more would be bred from parents that are out
// of date. How many requests run meanwhile is the engineer's word (`parallel`).
enum { QUEUE = 3, FRUITLESS = 24, TURN_NS = 4000000 };

struct asking {
    struct engine *en;
    struct proposers *p;
    int running;
    size_t replayed; // steps of the recording that were asked
    int more;        // a timer: the rest of what may be asked
    int fruitless;   // answers in a row that gave no candidate
    char said[200];  // why no more is asked, said once
};

struct question { // one request under way
    struct asking *a;
    int64_t parents[2];
    enum ask ask;
    char model[64], tag[24];
    struct str held; // of the streaming answer: its last word, which might be the beginning of a secret
};

int asking_open(struct engine *en, err_list *errors)
{
    struct asking *a = xcalloc(1, sizeof *a);
    a->en = en;
    en->asking = a;
    char *recording = en->o.replay ? xasprintf("%s/.ksmith", en->o.replay) : NULL;
    a->p = proposers_open(&(struct proposers_options){.loop = en->loop,
                                                      .session_dir = en->task.dir,
                                                      .state_dir = en->session->ksmith,
                                                      .sections = en->task.extra,
                                                      .path = "task.ini",
                                                      .seed = en->task.seed,
                                                      .replay = recording},
                          errors);
    free(recording);
    return a->p ? 0 : -1;
}

void asking_close(struct engine *en)
{
    if (!en->asking)
        return;
    if (en->asking->more)
        loop_cancel(en->loop, en->asking->more);
    proposers_close(en->asking->p);
    free(en->asking);
    en->asking = NULL;
}

int asking_running(const struct engine *en)
{
    return en->asking ? en->asking->running : 0;
}

static int unjudged(const struct state *s)
{
    int n = 0;
    for (size_t i = 1; i < s->c.n; i++)
        n += s->c.v[i].status == ST_PENDING && !(s->c.v[i].flags & CF_KILLED);
    return n;
}

// ---- who is asked

static double weight_of(const struct state *s, const char *kind, double otherwise)
{
    const char *steered = state_setting(s, "weight", kind);
    return steered && *steered ? strtod(steered, NULL) : otherwise;
}

double asking_share(const struct engine *en, const char *proposer)
{
    const char *set = json_str(json_get(en->task.extra, "proposers"), proposer);
    return weight_of(en->state, proposer, set ? strtod(set, NULL) : 1);
}

static int choose(struct asking *a, struct draw d)
{
    const struct state *s = a->en->state;
    VEC(struct arm) arms = {0};
    for (int i = 0; i < proposers_count(a->p); i++) {
        struct proposer_info info = proposers_info(a->p, i);
        double kind = info.exec ? 1 : asking_share(a->en, "llm");
        struct arm arm = {.name = info.name, .weight = info.weight * kind * asking_share(a->en, info.name)};
        for (size_t k = 0; k < s->models.n; k++) {
            const struct op_stats *m = &s->models.v[k];
            if (!str_eq(m->name, info.name))
                continue;
            arm.asked = (double)(m->asked > m->tried ? m->asked : m->tried);
            arm.judged = (double)m->judged;
            arm.gain = m->log_gain;
            arm.seconds = m->seconds;
            arm.usd = m->unpriced ? NAN : m->usd;
        }
        vec_push(&arms, arm);
    }
    int who = proposers_choose(a->p, arms.v, (int)arms.n, d);
    vec_free(&arms);
    return who;
}

static bool may_spend(struct asking *a, int who)
{
    const struct state *s = a->en->state;
    struct budget b = {.usd = population_budget(s, "usd", a->en->task.usd),
                       .tokens = population_budget(s, "tokens", 0),
                       .spent_usd = s->usd,
                       .spent_tokens = (double)(s->tokens_in + s->tokens_out)};
    for (size_t i = 0; i < s->models.n; i++)
        b.unpriced += (int)s->models.v[i].unpriced;
    struct flight f = proposers_flight(a->p);
    struct str why = {0};
    double usd, tokens;
    proposers_estimate(a->p, who, 16000, &usd, &tokens);
    bool yes = budget_allows(&b, &f, usd, tokens, &why);
    if (!yes && !str_eq(a->said, str_c(&why))) {
        snprintf(a->said, sizeof a->said, "%s", str_c(&why));
        log_line("no model is asked: %s", a->said);
    }
    str_free(&why);
    return yes;
}

// ---- what is asked

// A failed child of a model whose idea deserves a second look: the newest that nobody repaired yet.
static const struct candidate *to_repair(const struct state *s)
{
    for (size_t i = s->c.n; i-- > 1 && i + 24 > s->c.n;) {
        const struct candidate *c = &s->c.v[i];
        bool broken = c->status == ST_COMPILE_ERROR || c->status == ST_WRONG || c->status == ST_LAUNCH_ERROR;
        if (broken && c->model && c->first_child < 0 && !(c->flags & CF_KILLED))
            return c;
    }
    return NULL;
}

static void draw_question(struct asking *a, struct draw d, struct question *q)
{
    const struct state *s = a->en->state;
    int island = a->en->task.islands > 1 ? (int)(d.iteration % (uint64_t)a->en->task.islands) : 0;
    const struct candidate *parent = population_parent(s, island, d, 100), *broken = to_repair(s);
    double u = draw_unit(d, "ask", 0);
    q->ask = ASK_IMPROVE;
    q->parents[0] = parent ? parent->id : 0;
    q->parents[1] = -1;
    if (broken && u < 0.3) {
        q->ask = ASK_REPAIR;
        q->parents[0] = broken->id;
    } else if (u < 0.45) {
        q->ask = ASK_EXPLORE;
    } else if (u < 0.55 && s->cells.n > 1) {
        int64_t other = s->cells.v[draw_below(d, "second", 0, s->cells.n)].id;
        if (other != q->parents[0]) {
            q->ask = ASK_CROSS;
            q->parents[1] = other;
        }
    } else if (u < 0.6 && parent && parent->gen > 2) {
        q->ask = ASK_SIMPLIFY;
    }
}

// ---- answers

static void broadcast_text(const struct question *q, const char *text, bool restart)
{
    json *o = json_object();
    json_put_str(o, "ev", "text");
    json_put_str(o, "model", q->model);
    json_put_str(o, "tag", q->tag);
    json_put_str(o, "ask", ask_name(q->ask));
    json_put_int(o, "parent", q->parents[0]);
    json_put_bool(o, "restart", restart);
    json_put_str(o, "text", text);
    server_broadcast(q->a->en->server, o);
    json_free(o);
}

// Words are shown whole: a secret holds no white space, so it cannot pass in two halves.
static void on_text(void *user, const char *text, size_t n)
{
    struct question *q = user;
    if (!text)
        str_clear(&q->held);
    else
        str_addn(&q->held, text, n);
    size_t whole = q->held.len;
    while (whole && !strchr(" \n\t", q->held.s[whole - 1]))
        whole--;
    if (!q->a->en->server || !server_clients(q->a->en->server)) {
        str_splice(&q->held, 0, whole, "", 0);
        return;
    }
    if (text && !whole)
        return;
    struct str clean = {0};
    str_addn(&clean, str_c(&q->held), whole);
    str_splice(&q->held, 0, whole, "", 0);
    log_redact(&clean);
    broadcast_text(q, str_c(&clean), text == NULL);
    str_free(&clean);
}

static void tell(struct asking *a, const struct proposal *p, int64_t id)
{
    json *o = json_object();
    json_put_str(o, "ev", "answer");
    json_put_str(o, "tag", p->tag);
    json_put_str(o, "model", p->name);
    json_put_str(o, "end", proposal_end_name(p->end));
    json_put_str(o, "problem", p->problem);
    if (id >= 0)
        json_put_int(o, "id", id);
    json_put_num(o, "seconds", p->seconds);
    if (isfinite(p->usd))
        json_put_num(o, "usd", p->usd);
    if (p->end == PROPOSAL_TEXT)
        json_put_str(o, "text", p->reply);
    server_broadcast(a->en->server, o);
    json_free(o);
    log_line("%s answered request %s: %s%s%s", p->name, p->tag, proposal_end_name(p->end),
             p->problem ? ": " : "", p->problem ? p->problem : "");
}

static void question_free(struct question *q)
{
    str_free(&q->held);
    free(q);
}

static void on_answer(void *user, const struct proposal *p)
{
    struct question *q = user;
    struct asking *a = q->a;
    struct engine *en = a->en;
    a->running--;
    struct event_cost cost = {.usd = isfinite(p->usd) ? p->usd : 0,
                              .tokens_in = (int64_t)p->tokens_in,
                              .tokens_out = (int64_t)p->tokens_out,
                              .model = p->name,
                              .answer = proposal_end_name(p->end),
                              .seconds = p->seconds,
                              .unpriced = !isfinite(p->usd)};
    int64_t id = -1;
    if (en->phase < PHASE_STOPPING && engine_append(en, event_cost(&cost), false) == 0 &&
        p->end == PROPOSAL_SOURCE) {
        // Without a name the first words of what it says of it.
        size_t said = strcspn(p->description, "\n");
        char *title = *p->subject ? xstrdup(p->subject)
                      : said      ? xasprintf("%.*s", (int)(said < 72 ? said : 72), p->description)
                                  : xstrdup(ask_name(q->ask));
        id = search_record(en, &(struct new_candidate){.parents = {q->parents[0], q->parents[1]},
                                                       .op = ask_name(q->ask),
                                                       .proposer = "llm",
                                                       .model = p->name,
                                                       .title = title,
                                                       .text = p->source,
                                                       .seconds = p->seconds});
        free(title);
    }
    if (p->end == PROPOSAL_TEXT && en->phase < PHASE_STOPPING) {
        char *words =
            xasprintf("%s explained candidate %lld in request %s", p->name, (long long)q->parents[0], p->tag);
        engine_append(en, event_note(words, q->parents[0]), false);
        free(words);
    }
    if (q->ask != ASK_EXPLAIN)
        a->fruitless = id >= 0 ? 0 : a->fruitless + 1;
    if (a->fruitless == FRUITLESS)
        log_line("no model is asked any more: %d answers in a row gave no candidate", FRUITLESS);
    tell(a, p, id);
    question_free(q);
    if (en->phase == PHASE_SEARCH && en->work == WORK_NONE)
        engine_next(en);
}

static char *source_of(void *user, int64_t id)
{
    return engine_source(user, id);
}

// Asks q, which becomes the call's; -1 where it cannot.
static int ask(struct asking *a, struct question *q, int who, const char *tag, int64_t iteration,
               struct err *e)
{
    struct engine *en = a->en;
    struct context c = {0};
    json *note = json_object();
    json_put_int(note, "parent", q->parents[0]);
    json_put_int(note, "second", q->parents[1]);
    json_put_str(note, "ask", ask_name(q->ask));
    q->a = a;
    snprintf(q->model, sizeof q->model, "%s", proposers_info(a->p, who).name);
    if (tag)
        snprintf(q->tag, sizeof q->tag, "%s", tag);
    else
        snprintf(q->tag, sizeof q->tag, "%lld", (long long)iteration);
    struct proposer_call *call = NULL;
    if (context_fill(&c, en->session, &en->task, q->parents[0], q->parents[1], q->ask, source_of, en, e) == 0)
        call = proposers_ask(a->p,
                             &(struct proposer_request){.tag = tag,
                                                        .iteration = iteration,
                                                        .who = who,
                                                        .ctx = c.ctx,
                                                        .path = en->task.kernel_file,
                                                        .evolve = en->task.evolve,
                                                        .feedback = c.feedback,
                                                        .parent = q->parents[0],
                                                        .note = note,
                                                        .position = &en->state->c.n,
                                                        .on_text = on_text,
                                                        .on_done = on_answer,
                                                        .user = q},
                             e);
    context_free(&c);
    json_free(note);
    if (!call) {
        question_free(q);
        return -1;
    }
    a->running++;
    return 0;
}

static bool ask_one(struct asking *a)
{
    int64_t tag = proposers_next_tag(a->p);
    struct draw d = {a->en->task.seed ^ 0x6c6c6dU, (uint64_t)tag};
    int who = choose(a, d);
    if (who < 0 || !may_spend(a, who))
        return false;
    struct question *q = xcalloc(1, sizeof *q);
    struct err e = {0};
    draw_question(a, d, q);
    if (ask(a, q, who, NULL, tag, &e) == 0)
        return true;
    log_line("%s is not asked: %s", proposers_info(a->p, who).name, e.msg);
    return false;
}

// The next step of a recording, as soon as the search stands where it stood when the answer came.
static void repeat_one(struct asking *a)
{
    struct err e = {0};
    struct replay_step s = proposers_replay_step(a->p, a->replayed);
    bool idle = a->en->work == WORK_NONE && asking_share(a->en, "rules") <= 0;
    if (s.tag && (s.at <= (int64_t)a->en->state->c.n || idle)) {
        struct question *q = xcalloc(1, sizeof *q);
        q->parents[0] = json_int(s.note, "parent", 0);
        q->parents[1] = json_int(s.note, "second", -1);
        a->replayed++;
        if (s.who < 0 || ask_parse(json_str_or(s.note, "ask", "improve"), &q->ask, NULL) < 0 ||
            !state_candidate(a->en->state, q->parents[0])) {
            log_line("request %s of the recording cannot be repeated", s.tag);
            question_free(q);
        } else if (q->ask == ASK_EXPLAIN) { // changed nothing
            question_free(q);
        } else if (ask(a, q, s.who, s.tag, strtoll(s.tag, NULL, 10), &e) < 0) {
            log_line("request %s of the recording is not repeated: %s", s.tag, e.msg);
        }
    }
    replay_step_free(&s);
}

static void on_more(void *user)
{
    struct asking *a = user;
    a->more = 0;
    asking_next(a->en);
}

void asking_next(struct engine *en)
{
    struct asking *a = en->asking;
    if (!a || en->phase != PHASE_SEARCH || en->state->paused || proposers_count(a->p) == 0 ||
        a->fruitless >= FRUITLESS)
        return;
    if (en->o.replay) {
        if (a->running == 0)
            repeat_one(a);
        return;
    }
    // Each answer may become an iteration: no more are asked than the run may still have.
    double most = population_budget(en->state, "iterations", en->task.iterations);
    int64_t until = clock_ns() + TURN_NS;
    while (unjudged(en->state) < QUEUE &&
           (most <= 0 || (double)(en->state->iterations - 1 + a->running) < most) && ask_one(a))
        if (clock_ns() > until) { // a prompt takes milliseconds, and steering waits for the turn to end
            if (!a->more)
                a->more = loop_after(en->loop, 1, on_more, a);
            return;
        }
}

int asking_explain(struct engine *en, int64_t id, const char *model, char tag[24], struct err *e)
{
    struct asking *a = en->asking;
    int count = a ? proposers_count(a->p) : 0;
    struct draw d = {en->task.seed ^ 0x657870U, (uint64_t)(count ? proposers_next_tag(a->p) : 0)};
    if (en->o.replay)
        return err_set(e, ERR_FAIL, "", "a replay asks no model");
    if (count == 0)
        return err_set(e, ERR_USAGE, "`man ksmith-config` says how to add one.", "no model is configured");
    int who = model ? proposers_find(a->p, model) : choose(a, d);
    for (int i = 0; !model && who < 0 && i < count; i++) // the engineer asks whoever is there, off or busy
        who = proposers_info(a->p, i).wait_ms < 0 ? -1 : i;
    if (who < 0)
        return err_set(e, ERR_USAGE, "`ksmith models` lists them.",
                       model ? "no model or command is named %s" : "no model can be asked now",
                       model ? model : "");
    if (!may_spend(a, who))
        return err_set(e, ERR_FAIL, "", "%s", a->said);
    struct question *q = xcalloc(1, sizeof *q);
    *q = (struct question){.parents = {id, -1}, .ask = ASK_EXPLAIN};
    int64_t number = proposers_next_tag(a->p);
    snprintf(tag, 24, "%lld", (long long)number);
    proposers_forgive(a->p, who);
    return ask(a, q, who, NULL, number, e);
}
