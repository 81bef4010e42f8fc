// Steering: requests from the socket, checked against the state, journaled (that is the acknowledgement), then obeyed.
#include "evolve/steer.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "evolve/engine_int.h"

#include <unistd.h>

const struct steer_verb steer_verbs[] = {
    {"pin", "ID", "keep a candidate as a parent whatever happens", STEER_ID, 0, 0},
    {"unpin", "ID", "let the archive decide again", STEER_ID, 0, 0},
    {"kill", "ID [--descendants]", "no longer a parent or champion; with all that came from it", STEER_ID, 0, 1},
    {"revive", "ID [--descendants]", "take a kill back", STEER_ID, 0, 1},
    {"approve", "ID", "a quarantined candidate is right: judge it on", STEER_ID, 0, 0},
    {"reject", "ID", "a quarantined candidate is wrong: kill it", STEER_ID, 0, 0},
    {"pause", "", "finish what is running, start nothing new", STEER_NONE, 0, 0},
    {"resume", "", "go on", STEER_NONE, 0, 0},
    {"step", "[N]", "while paused: N iterations, one by default", STEER_NONE, 0, 1},
    {"stop", "", "end the engine; `ksmith run` goes on later", STEER_NONE, 0, 0},
    {"hint", "[ID] TEXT", "words for models, for all or for one candidate's children", STEER_OPT_ID, 1, -1},
    {"note", "ID TEXT", "a remark that stays with the candidate", STEER_ID, 1, -1},
    {"tag", "ID WORD...", "words to filter by", STEER_ID, 1, -1},
    {"budget", "KEY=VALUE", "wall=SECONDS, evaluations=N or iterations=N; 0 lifts the session's own change", STEER_NONE, 1, 3},
    {"focus", "[ID]", "parents only from this candidate's subtree; without ID from everywhere", STEER_OPT_ID, 0, 0},
    {"breed", "ID [N]", "it is the next parent, N times", STEER_ID, 0, 1},
    {"weight", "OPERATOR=W", "times its share of the iterations; 0 turns an operator off", STEER_NONE, 1, 1},
    {"remeasure", "ID", "race it again", STEER_ID, 0, 0},
    {"add", "FILE [PARENT]", "bring in a kernel by hand (a whole file)", STEER_NONE, 1, 2},
    {"undo", "", "take the last steering action back", STEER_NONE, 0, 0},
    {"redo", "", "do again what undo took back", STEER_NONE, 0, 0},
};
const size_t steer_verbs_n = countof(steer_verbs);

const struct steer_verb *steer_find(const char *name)
{
    for (size_t i = 0; i < steer_verbs_n; i++)
        if (str_eq(steer_verbs[i].name, name))
            return &steer_verbs[i];
    return NULL;
}

struct call {
    const struct steer_verb *verb;
    struct cand *cand; // NULL: none
    char **words;      // after the candidate
    size_t n;
    json *event;
    const json *request;
    struct str reply;
};

static struct cand *cand_of(struct engine *en, const char *word)
{
    char *end;
    const struct cand *champion = state_champion(en->state);
    if (str_eq(word, "champion") && champion)
        return state_cand(en->state, champion->id);
    if (str_eq(word, "baseline"))
        return state_cand(en->state, 0);
    long id = strtol(word + (*word == '#'), &end, 10);
    return *end || end == word ? NULL : state_cand(en->state, id);
}

// ---- what needs more than the line in the journal

static int check_kill(struct engine *en, struct call *c, struct err *e)
{
    bool all = c->n && (str_eq(c->words[0], "--descendants") || str_eq(c->words[0], "-d"));
    if (c->n && !all)
        return err_set(e, ERR_USAGE, "", "%s takes --descendants, not %s", c->verb->name, c->words[0]);
    if (c->cand->id == 0 && str_eq(c->verb->name, "kill"))
        return err_set(e, ERR_USAGE, "Stop the run instead.", "the baseline cannot be killed");
    size_t count = 0;
    for (size_t i = 0; all && i < en->state->cands.n; i++)
        count += state_descends(en->state, &en->state->cands.v[i], c->cand->id);
    json_put_bool(c->event, "descendants", all);
    str_addf(&c->reply, "%s %lld", str_eq(c->verb->name, "kill") ? "killed" : "revived", (long long)c->cand->id);
    if (all)
        str_addf(&c->reply, " and %zu descendants", count - 1);
    return 0;
}

static int check_quarantine(struct engine *en, struct call *c, struct err *e)
{
    (void)en;
    if (!c->cand->quarantined)
        return err_set(e, ERR_USAGE, "`ksmith ls --filter state=quarantined` lists those that are.",
                       "%lld is not in quarantine", (long long)c->cand->id);
    return 0;
}

static int check_budget(struct engine *en, struct call *c, struct err *e)
{
    static const char *const keys[] = {"wall", "evaluations", "iterations"};
    (void)en;
    for (size_t i = 0; i < c->n; i++) {
        char *eq = strchr(c->words[i], '='), *end = NULL;
        double value = eq ? strtod(eq + 1, &end) : -1;
        if (eq && (str_eq(end, "m") || str_eq(end, "h") || str_eq(end, "s")))
            value *= *end == 'm' ? 60 : *end == 'h' ? 3600 : 1;
        else if (!eq || *end || end == eq + 1)
            value = -1;
        bool known = false;
        for (size_t k = 0; eq && k < countof(keys); k++)
            known |= strlen(keys[k]) == (size_t)(eq - c->words[i]) && str_starts(c->words[i], keys[k]);
        if (!known || !(value >= 0))
            return err_set(e, ERR_USAGE, "As in budget wall=10m iterations=500.", "cannot read the budget %s", c->words[i]);
        char *key = xstrndup(c->words[i], (size_t)(eq - c->words[i]));
        json_put_num(c->event, key, value);
        free(key);
    }
    return 0;
}

static int check_breed(struct engine *en, struct call *c, struct err *e)
{
    (void)en;
    char *end = NULL;
    long n = c->n ? strtol(c->words[0], &end, 10) : 1;
    if (n < 1 || n > 1000 || (end && *end))
        return err_set(e, ERR_USAGE, "", "breed takes a number from 1 to 1000");
    if (c->cand->status != CAND_OK || c->cand->killed)
        return err_set(e, ERR_USAGE, "Only a correct, living candidate can be a parent.", "%lld is %s", (long long)c->cand->id,
                       state_word(en->state, c->cand));
    json_put_int(c->event, "times", n);
    return 0;
}

static int check_weight(struct engine *en, struct call *c, struct err *e)
{
    (void)en;
    const char *eq = strchr(c->words[0], '=');
    char *end = NULL;
    double w = eq ? strtod(eq + 1, &end) : -1;
    if (!eq || eq == c->words[0] || *end || end == eq + 1 || !(w >= 0 && w <= 1e6))
        return err_set(e, ERR_USAGE, "As in weight tune=2.", "cannot read the weight %s", c->words[0]);
    return 0;
}

static int check_step(struct engine *en, struct call *c, struct err *e)
{
    char *end = NULL;
    long n = c->n ? strtol(c->words[0], &end, 10) : 1;
    if (n < 1 || n > 100000 || (end && *end))
        return err_set(e, ERR_USAGE, "", "step takes a number of iterations");
    if (!en->state->paused)
        return err_set(e, ERR_USAGE, "Pause it first.", "the search is running; step works while it is paused");
    json_put_int(c->event, "times", n);
    return 0;
}

static int check_add(struct engine *en, struct call *c, struct err *e)
{
    // The text travels in the request: the client may be on another file system or have an unsaved buffer.
    const char *text = json_str(c->request, "text");
    struct cand *parent = c->n > 1 ? cand_of(en, c->words[1]) : state_cand(en->state, state_champion(en->state)->id);
    if (!text || !*text)
        return err_set(e, ERR_USAGE, "", "add needs the text of a kernel file");
    if (!parent)
        return err_set(e, ERR_USAGE, "`ksmith ls` shows the numbers.", "%s is not a candidate", c->words[1]);
    int64_t id = search_record(en, parent, NULL, "edit", "human", json_str_or(c->request, "subject", "Edited by hand"),
                               json_str(c->request, "author"), text, NULL);
    if (id < 0)
        return err_set(e, ERR_FAIL, "", "the journal cannot be written");
    json_put_int(c->event, "id", id);
    str_addf(&c->reply, "it is candidate %lld", (long long)id);
    return 0;
}

static int check_undo(struct engine *en, struct call *c, struct err *e)
{
    bool undo = str_eq(c->verb->name, "undo");
    static const char *const final[] = {"undo", "redo", "stop", "step", "add", "remeasure", "budget", "weight"};
    for (size_t i = en->state->steers.n; i-- > 0;) {
        const struct steer_line *l = &en->state->steers.v[i];
        bool can = l->undone != undo;
        for (size_t k = 0; k < countof(final); k++)
            can &= !str_eq(l->verb, final[k]);
        if (!can)
            continue;
        json *line = journal_line_at(en->session->journal_path, l->offset, NULL);
        if (!line)
            break;
        json_put_int(c->event, "undo", (int64_t)l->n);
        json_put(c->event, "line", line);
        str_addf(&c->reply, "%s: %s %s", undo ? "took back" : "did again", l->verb, l->args);
        return 0;
    }
    return err_set(e, ERR_USAGE, "", "there is nothing to %s", c->verb->name);
}

static void do_stop(struct engine *en, struct call *c)
{
    (void)c;
    engine_stop(en, 0, "stopped by %s", json_str_or(c->request, "who", "the engineer"));
}

static void do_resume(struct engine *en, struct call *c)
{
    (void)c;
    en->steps_left = -1;
}

static void do_step(struct engine *en, struct call *c)
{
    en->steps_left = (int)json_int(c->event, "times", 1);
}

static void do_remeasure(struct engine *en, struct call *c)
{
    vec_push(&en->remeasure, c->cand->id);
}

static const struct {
    const char *verb;
    int (*check)(struct engine *en, struct call *c, struct err *e);
    void (*after)(struct engine *en, struct call *c);
} hooks[] = {
    {"kill", check_kill, NULL},        {"revive", check_kill, NULL},     {"approve", check_quarantine, NULL},
    {"reject", check_quarantine, NULL}, {"budget", check_budget, NULL},  {"breed", check_breed, NULL},
    {"weight", check_weight, NULL},    {"step", check_step, do_step},    {"add", check_add, NULL},
    {"undo", check_undo, NULL},        {"redo", check_undo, NULL},       {"stop", NULL, do_stop},
    {"resume", NULL, do_resume},       {"remeasure", NULL, do_remeasure},
};

// ---- one request

static int take_cand(struct engine *en, struct call *c, char **words, size_t n, size_t *used, struct err *e)
{
    *used = 0;
    if (c->verb->what == STEER_NONE)
        return 0;
    c->cand = n ? cand_of(en, words[0]) : NULL;
    if (c->cand) {
        *used = 1;
        return 0;
    }
    if (c->verb->what == STEER_OPT_ID)
        return 0;
    return err_set(e, ERR_USAGE, "`ksmith ls` shows the numbers; champion and baseline are names too.",
                   n ? "%s: %s is not a candidate" : "%s needs a candidate", c->verb->name, n ? words[0] : "");
}

static int prepare_call(struct engine *en, struct call *c, char **words, size_t n, struct err *e)
{
    size_t used;
    c->verb = steer_find(words[0]);
    if (!c->verb) {
        VEC(const char *) names = {0};
        for (size_t i = 0; i < steer_verbs_n; i++)
            vec_push(&names, steer_verbs[i].name);
        const char *near = str_nearest(words[0], names.v, names.n);
        char *hint = near ? xasprintf("Did you mean %s?", near) : xstrdup("`ksmith ctl --verbs` lists them.");
        err_set(e, ERR_USAGE, hint, "%s is not a steering command", words[0]);
        free(hint);
        vec_free(&names);
        return -1;
    }
    if (take_cand(en, c, words + 1, n - 1, &used, e) < 0)
        return -1;
    c->words = words + 1 + used;
    c->n = n - 1 - used;
    if ((int)c->n < c->verb->min || (c->verb->max >= 0 && (int)c->n > c->verb->max)) {
        char *hint = xasprintf("Usage: %s %s", c->verb->name, c->verb->args);
        err_set(e, ERR_USAGE, hint, "%s: %s arguments", c->verb->name, (int)c->n < c->verb->min ? "too few" : "too many");
        free(hint);
        return -1;
    }
    return 0;
}

static int run_call(struct engine *en, struct call *c, const json *request, struct err *e)
{
    c->event = event_new("steer");
    c->request = request;
    json_put_str(c->event, "verb", c->verb->name);
    json *args = json_array();
    if (c->cand)
        json_push(args, json_new_int(c->cand->id));
    for (size_t i = 0; i < c->n; i++)
        json_push(args, json_new_str(c->words[i]));
    json_put(c->event, "args", args);
    if (c->cand && !str_eq(c->verb->name, "add"))
        json_put_int(c->event, "id", c->cand->id);
    json_put_str(c->event, "who", json_str_or(request, "who", "unknown"));
    size_t hook = 0;
    while (hook < countof(hooks) && !str_eq(hooks[hook].verb, c->verb->name))
        hook++;
    if (hook < countof(hooks) && hooks[hook].check && hooks[hook].check(en, c, e) < 0) {
        json_free(c->event);
        return -1;
    }
    json *shown = json_copy(c->event);
    int r = engine_append(en, c->event, true);
    c->event = shown;
    if (r == 0 && hook < countof(hooks) && hooks[hook].after)
        hooks[hook].after(en, c);
    if (r == 0)
        server_broadcast(en->server, shown);
    json_free(shown);
    return r < 0 ? err_set(e, ERR_FAIL, "", "the journal cannot be written: %s", en->stop_reason) : 0;
}

static json *verbs(void)
{
    json *reply = json_object(), *list = json_array();
    for (size_t i = 0; i < steer_verbs_n; i++) {
        json *o = json_object();
        json_put_str(o, "name", steer_verbs[i].name);
        json_put_str(o, "args", steer_verbs[i].args);
        json_put_str(o, "help", steer_verbs[i].help);
        json_push(list, o);
    }
    json_put_bool(reply, "ok", true);
    json_put(reply, "verbs", list);
    return reply;
}

static json *hello(struct engine *en)
{
    const struct cand *champion = state_champion(en->state);
    json *reply = json_object();
    json_put_bool(reply, "ok", true);
    json_put_int(reply, "pid", getpid());
    json_put_str(reply, "dir", en->session->dir);
    json_put_str(reply, "name", en->task.name);
    json_put_str(reply, "doing", en->stage);
    json_put_bool(reply, "paused", en->state->paused);
    json_put_int(reply, "iterations", en->state->iterations);
    json_put_num(reply, "speedup", champion ? champion->speedup : 0);
    json_put_num(reply, "turn_ms", loop_longest_turn_ms(en->loop));
    json_put_num(reply, "cpu_s", clock_cpu());
    json_put_num(reply, "wall_s", clock_wall() - en->started_wall);
    return reply;
}

static void go_on(void *user)
{
    engine_next(user);
}

json *steer_request(void *user, const json *request)
{
    struct engine *en = user;
    const char *line = json_str_or(request, "cmd", "");
    if (str_eq(line, "subscribe") || str_eq(line, "hello"))
        return hello(en);
    if (str_eq(line, "verbs"))
        return verbs();
    struct call c = {0};
    struct err e = {0};
    size_t n = 0;
    char **words = str_words(line, &n);
    int r = !words ? err_set(&e, ERR_USAGE, "Close the quotation mark.", "an open quotation mark")
            : !n   ? err_set(&e, ERR_USAGE, "`ksmith ctl --verbs` lists the commands.", "an empty command")
                   : prepare_call(en, &c, words, n, &e);
    if (r == 0)
        r = run_call(en, &c, request, &e);
    json *reply = json_object();
    json_put_bool(reply, "ok", r == 0);
    json_put_str(reply, "msg", r == 0 ? (c.reply.len ? str_c(&c.reply) : "done") : e.msg);
    if (r < 0)
        json_put_str(reply, "hint", e.hint);
    json_put_int(reply, "status", r == 0 ? 0 : err_status(&e));
    if (r == 0)
        loop_after(en->loop, 0, go_on, en);
    str_free(&c.reply);
    free(words);
    return reply;
}
