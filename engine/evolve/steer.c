// Steering: requests from the socket, checked against the state, journaled (that is the acknowledgement),
// then obeyed.
#include "evolve/steer.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "evolve/steer_int.h"

#include <unistd.h>

const struct steer_verb steer_verbs[] = {
    {"pin", "ID", "keep a candidate as a parent whatever happens", STEER_ID, 0, 0},
    {"unpin", "ID", "let the archive decide again", STEER_ID, 0, 0},
    {"kill", "ID [--descendants]", "no longer a parent or champion; with all that came from it", STEER_ID, 0,
     1},
    {"revive", "ID [--descendants]", "take a kill back", STEER_ID, 0, 1},
    {"approve", "ID", "a quarantined candidate is right: judge it on", STEER_ID, 0, 0},
    {"reject", "ID", "a quarantined candidate is wrong: kill it", STEER_ID, 0, 0},
    {"pause", "", "finish what is running, start nothing new", STEER_NONE, 0, 0},
    {"resume", "", "go on", STEER_NONE, 0, 0},
    {"step", "[N]", "while paused: N iterations, one by default", STEER_NONE, 0, 1},
    {"stop", "", "end the engine; `ksmith run` goes on later", STEER_NONE, 0, 0},
    {"hint", "[ID] TEXT", "words for models, for all or for one candidate's children", STEER_OPT_ID, 1, -1},
    {"note", "ID TEXT", "a remark that stays with the candidate", STEER_ID, 1, -1},
    {"tag", "ID WORD", "a word to filter by", STEER_ID, 1, 1},
    {"untag", "ID WORD", "take it off again", STEER_ID, 1, 1},
    {"budget", "KEY=VALUE",
     "wall=SECONDS, evaluations=N, iterations=N, usd=N or tokens=N; 0: as the task says", STEER_NONE, 1, 1},
    {"focus", "ID", "parents only from this candidate's subtree", STEER_ID, 0, 0},
    {"unfocus", "", "parents from everywhere again", STEER_NONE, 0, 0},
    {"breed", "ID [N]", "it is the next parent, N times", STEER_ID, 0, 1},
    {"weight", "OPERATOR=W", "times its share of the iterations; 0 turns an operator off", STEER_NONE, 1, 1},
    {"remeasure", "ID", "race it again", STEER_ID, 0, 0},
    {"cross", "A B", "judge a child of two: B's edits on A, A's on B, or their texts merged", STEER_ID, 1, 1},
    {"clone", "ID", "judge a copy as a candidate of its own", STEER_ID, 0, 0},
    {"add", "FILE [PARENT [SECOND]]", "bring in a kernel by hand (a whole file)", STEER_NONE, 1, 3},
    {"explain", "ID [MODEL]", "ask a model where its time goes and what to try next", STEER_ID, 0, 1},
    {"undo", "", "take the last steering action back", STEER_NONE, 0, 0},
    {"redo", "", "do again what undo took back", STEER_NONE, 0, 0},
    {"move", "ID ISLAND", "to another island", STEER_ID, 1, 1},
};
const size_t steer_verbs_n = countof(steer_verbs);

const struct steer_verb *steer_find(const char *name)
{
    for (size_t i = 0; i < steer_verbs_n; i++)
        if (str_eq(steer_verbs[i].name, name))
            return &steer_verbs[i];
    return NULL;
}

const struct candidate *steer_candidate(struct engine *en, const char *word)
{
    char *end;
    if (str_eq(word, "champion"))
        return state_champion(en->state);
    if (str_eq(word, "baseline"))
        return state_candidate(en->state, 0);
    const char *digits = word + (*word == '#');
    long id = strtol(digits, &end, 10);
    return *end || end == digits ? NULL : state_candidate(en->state, id);
}

// ---- what needs more than the line in the journal

// Along first parents, as kill counts descendants.
static bool below(const struct state *s, const struct candidate *c, int64_t root)
{
    while (c && c->id > root && c->nparents)
        c = state_candidate(s, c->parents[0]);
    return c && c->id == root;
}

static int check_kill(struct engine *en, struct call *c, struct err *e)
{
    bool all = c->n && (str_eq(c->words[0], "--descendants") || str_eq(c->words[0], "-d"));
    if (c->n && !all)
        return err_set(e, ERR_USAGE, "", "%s takes --descendants, not %s", c->verb->name, c->words[0]);
    if (c->cand->id == 0 && str_eq(c->verb->name, "kill"))
        return err_set(e, ERR_USAGE, "Stop the run instead.", "the baseline cannot be killed");
    size_t count = 0;
    for (size_t i = 0; all && i < en->state->c.n; i++)
        count += below(en->state, &en->state->c.v[i], c->cand->id);
    if (all)
        json_put_bool(c->args, "tree", true);
    str_addf(&c->reply, "%s %lld", str_eq(c->verb->name, "kill") ? "killed" : "revived",
             (long long)c->cand->id);
    if (all)
        str_addf(&c->reply, " and %zu descendants", count - 1);
    return 0;
}

static int check_quarantine(struct engine *en, struct call *c, struct err *e)
{
    (void)en;
    if (!(c->cand->flags & CF_QUARANTINED))
        return err_set(e, ERR_USAGE, "`ksmith ls --filter state=quarantined` lists those that are.",
                       "%lld is not in quarantine", (long long)c->cand->id);
    return 0;
}

static int check_budget(struct engine *en, struct call *c, struct err *e)
{
    static const char *const keys[] = {"wall", "evaluations", "iterations", "usd", "tokens"};
    const char *word = c->words[0], *eq = strchr(word, '=');
    char *end = NULL;
    double value = eq ? strtod(eq + 1, &end) : -1;
    (void)en;
    if (eq && end > eq + 1 && (str_eq(end, "m") || str_eq(end, "h") || str_eq(end, "s")))
        value *= *end == 'm' ? 60 : *end == 'h' ? 3600 : 1;
    else if (!eq || *end || end == eq + 1)
        value = -1;
    for (size_t k = 0; eq && value >= 0 && k < countof(keys); k++)
        if (strlen(keys[k]) == (size_t)(eq - word) && str_starts(word, keys[k])) {
            json_put_str(c->args, "what", keys[k]);
            json_put_num(c->args, "value", value);
            return 0;
        }
    return err_set(e, ERR_USAGE, "As in budget wall=10m or budget iterations=500.",
                   "cannot read the budget %s", word);
}

// The words after the candidate as one text.
static void text_of(const struct call *c, struct str *out)
{
    for (size_t i = 0; i < c->n; i++)
        str_addf(out, "%s%s", i ? " " : "", c->words[i]);
}

static int check_text(struct engine *en, struct call *c, struct err *e)
{
    struct str text = {0};
    (void)en;
    (void)e;
    text_of(c, &text);
    json_put_str(c->args, "text", str_c(&text));
    str_free(&text);
    return 0;
}

static int check_tag(struct engine *en, struct call *c, struct err *e)
{
    (void)en;
    (void)e;
    json_put_str(c->args, "tag", c->words[0]);
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
    json_put_strn(c->args, "of", c->words[0], (size_t)(eq - c->words[0]));
    json_put_num(c->args, "value", w);
    return 0;
}

static int check_step(struct engine *en, struct call *c, struct err *e)
{
    char *end = NULL;
    long n = c->n ? strtol(c->words[0], &end, 10) : 1;
    if (n < 1 || n > 100000 || (end && *end))
        return err_set(e, ERR_USAGE, "", "step takes a number of iterations");
    if (!en->state->paused)
        return err_set(e, ERR_USAGE, "Pause it first.",
                       "the search is running; step works while it is paused");
    json_put_int(c->args, "times", n);
    return 0;
}

static int check_move(struct engine *en, struct call *c, struct err *e)
{
    char *end = NULL;
    long island = strtol(c->words[0], &end, 10);
    if (*end || end == c->words[0] || island < 0 || island >= en->state->islands)
        return err_set(e, ERR_USAGE,
                       "`[evolve] islands` of the task says how many there are, counted from 0.",
                       "there is no island %s", c->words[0]);
    json_put_int(c->args, "island", island);
    return 0;
}

static int redo_line(struct engine *en, struct call *c, int64_t line, struct err *e)
{
    for (size_t i = 0; i < en->state->steers.n; i++) {
        const struct steer *l = &en->state->steers.v[i];
        json *args = l->n == line ? json_parse_own(l->args, strlen(l->args), NULL) : NULL;
        if (!args)
            continue;
        json_free(c->args);
        c->args = args;
        json_put_bool(c->args, "redo", true);
        c->journal = l->cmd;
        str_addf(&c->reply, "did again: %s %s", l->cmd, l->args);
        return 0;
    }
    return err_set(e, ERR_FAIL, "", "what was undone is not in the history");
}

// The undo that was not done again yet: each redo answers the youngest undo before it; anything else ends it.
static int check_redo(struct engine *en, struct call *c, struct err *e)
{
    int answered = 0;
    for (size_t i = en->state->steers.n; i-- > 0;) {
        const struct steer *l = &en->state->steers.v[i];
        json *args = json_parse_own(l->args, strlen(l->args), NULL);
        bool undo = str_eq(l->cmd, "undo"), redo = json_has(args, "redo");
        int64_t line = json_int(args, "line", -1);
        json_free(args);
        if (redo)
            answered++;
        else if (undo && answered > 0)
            answered--;
        else if (undo)
            return redo_line(en, c, line, e);
        else
            break;
    }
    return err_set(e, ERR_USAGE, "", "there is nothing to do again");
}

static int check_explain(struct engine *en, struct call *c, struct err *e)
{
    if (worker_trust(&en->task, en->o.trust, e) < 0 ||
        asking_explain(en, c->cand->id, c->n ? c->words[0] : NULL, c->tag, e) < 0)
        return -1;
    str_addf(&c->reply, "asked about candidate %lld: request %s", (long long)c->cand->id, c->tag);
    return 0;
}

static int check_undo(struct engine *en, struct call *c, struct err *e)
{
    const struct steer *l = state_last_undoable(en->state, NULL);
    if (!l)
        return err_set(e, ERR_USAGE, "", "there is nothing to undo");
    json_put_int(c->args, "line", l->n);
    str_addf(&c->reply, "took back: %s %s", l->cmd, l->args);
    return 0;
}

static void do_stop(struct engine *en, struct call *c)
{
    (void)c;
    engine_stop(en, 0, "stopped by %s", json_str_or(c->request, "who", "the engineer"));
}

static void do_resume(struct engine *en, struct call *c)
{
    en->steps_left = -1;
    if (en->state->paused)
        engine_append(en, event_resume(json_str(c->request, "who")), true);
}

static void do_pause(struct engine *en, struct call *c)
{
    if (!en->state->paused)
        engine_append(en, event_pause(json_str(c->request, "who")), true);
}

static void do_step(struct engine *en, struct call *c)
{
    en->steps_left = (int)json_int(c->args, "times", 1);
}

static const struct {
    const char *verb;
    int (*check)(struct engine *en, struct call *c, struct err *e);
    void (*after)(struct engine *en, struct call *c);
} hooks[] = {
    {"kill", check_kill, NULL},
    {"revive", check_kill, NULL},
    {"approve", check_quarantine, NULL},
    {"reject", check_quarantine, NULL},
    {"budget", check_budget, NULL},
    {"breed", steer_check_breed, steer_do_breed},
    {"weight", check_weight, NULL},
    {"step", check_step, do_step},
    {"add", steer_check_add, NULL},
    {"cross", steer_check_cross, NULL},
    {"clone", steer_check_clone, NULL},
    {"undo", check_undo, NULL},
    {"redo", check_redo, NULL},
    {"move", check_move, NULL},

    {"explain", check_explain, NULL},
    {"stop", NULL, do_stop},
    {"resume", NULL, do_resume},
    {"pause", NULL, do_pause},
    {"remeasure", steer_check_remeasure, steer_do_remeasure},
    {"note", check_text, NULL},
    {"hint", check_text, NULL},
    {"tag", check_tag, NULL},
    {"untag", check_tag, NULL},
};

// ---- one request

static int take_cand(struct engine *en, struct call *c, char **words, size_t n, size_t *used, struct err *e)
{
    *used = 0;
    if (c->verb->what == STEER_NONE)
        return 0;
    c->cand = n ? steer_candidate(en, words[0]) : NULL;
    if (c->cand) {
        *used = 1;
        return 0;
    }
    if (c->verb->what == STEER_OPT_ID)
        return 0;
    return err_set(e, ERR_USAGE, "`ksmith ls` shows the numbers; champion and baseline are names too.",
                   n ? "%s: %s is not a candidate" : "%s needs a candidate", c->verb->name,
                   n ? words[0] : "");
}

bool steer_searches(const char *verb)
{
    static const char *const verbs[] = {"step", "stop", "pause", "resume", "remeasure", "breed"};
    for (size_t i = 0; i < countof(verbs); i++)
        if (str_eq(verbs[i], verb))
            return true;
    return false;
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
    if (en->o.serve && steer_searches(c->verb->name))
        return err_set(e, ERR_FAIL, "`ksmith run --detach` starts it.", "no engine searches in this session");
    if (take_cand(en, c, words + 1, n - 1, &used, e) < 0)
        return -1;
    c->words = words + 1 + used;
    c->n = n - 1 - used;
    if ((int)c->n < c->verb->min || (c->verb->max >= 0 && (int)c->n > c->verb->max)) {
        char *hint = xasprintf("Usage: %s %s", c->verb->name, c->verb->args);
        err_set(e, ERR_USAGE, hint, "%s: %s arguments", c->verb->name,
                (int)c->n < c->verb->min ? "too few" : "too many");
        free(hint);
        return -1;
    }
    return 0;
}

// The line that the journal keeps; `add` is kept as the fold's own word `edit`.
static json *steer_line(const struct call *c)
{
    bool add = str_eq(c->verb->name, "add");
    return event_steer(json_str_or(c->request, "who", "unknown"),
                       c->journal ? c->journal
                       : add      ? "edit"
                                  : c->verb->name,
                       json_copy(c->args));
}

static int run_call(struct engine *en, struct call *c, const json *request, struct err *e)
{
    size_t hook = 0;
    c->args = json_object();
    c->request = request;
    while (hook < countof(hooks) && !str_eq(hooks[hook].verb, c->verb->name))
        hook++;
    if (hook < countof(hooks) && hooks[hook].check && hooks[hook].check(en, c, e) < 0) {
        json_free(c->args);
        return -1;
    }
    if (c->cand)
        json_put_int(c->args, "id", c->cand->id);
    json *line = steer_line(c), *shown = json_copy(line);
    int r = engine_append(en, line, true);
    if (r == 0 && hook < countof(hooks) && hooks[hook].after)
        hooks[hook].after(en, c);
    if (r == 0)
        server_broadcast(en->server, shown);
    json_free(shown);
    json_free(c->args);
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
    const struct candidate *champion = state_champion(en->state);
    json *reply = json_object();
    json_put_bool(reply, "ok", true);
    json_put_int(reply, "pid", getpid());
    json_put_str(reply, "dir", en->session->dir);
    json_put_str(reply, "name", en->task.name);
    json_put_bool(reply, "serving", en->o.serve);
    json_put_str(reply, "doing", en->stage);
    json_put_bool(reply, "paused", en->state->paused);
    json_put_int(reply, "iterations", en->state->iterations - 1);
    json_put_num(reply, "speedup", champion ? champion->speedup.value : 0);
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
    if (r == 0 && c.cand)
        json_put_int(reply, "id", c.cand->id);
    if (c.tag[0])
        json_put_str(reply, "tag", c.tag);
    if (r == 0)
        loop_after(en->loop, 0, go_on, en);
    str_free(&c.reply);
    free(words);
    return reply;
}
