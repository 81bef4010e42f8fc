// One question to one proposer: the prompt, the answer, at most one diagnostic sent back, what is recorded
// and what it cost.
#include "base/hash.h"
#include "base/log.h"
#include "models/apply.h"
#include "models/proposer_int.h"

#include <math.h>

enum { MAX_RAISES = 2, MAX_CONTINUES = 2, MAX_REPLY = 2 << 20 };

struct proposer_call {
    struct proposers *p;
    int who;
    char *tag, *func, *path, *parent;
    enum ask ask;
    enum task_evolve evolve;
    int64_t parent_id;
    json *note;
    const size_t *position;
    proposal_text_fn *on_text;
    proposal_fn *on_done;
    void *user;

    struct chat_call *chat;
    struct exec_call *exec;
    int timer;
    struct prompt prompt,
        shorter; // shorter: where the first turns out too long; empty where it would not help
    VEC(struct chat_message) talk; // texts are owned
    struct chat_params params;
    uint64_t jitter;
    int turn, raises, continues;
    bool corrected;
    struct str partial; // an answer that was cut off and is being continued
    struct str child, problem;
    struct reply reply;
    struct proposal out;
};

static void say(struct proposer_call *c, const char *role, const char *text)
{
    struct chat_message m = {role, xstrdup(text)};
    vec_push(&c->talk, m);
}

static void stop_work(struct proposer_call *c)
{
    if (c->chat)
        chat_cancel(c->chat);
    if (c->exec)
        exec_cancel(c->exec);
    if (is_exec(c->p, c->who) && !c->p->replay)
        c->p->exec_running.v[c->who - (int)c->p->models.n]--;
    if (c->timer)
        loop_cancel(c->p->loop, c->timer);
    c->chat = NULL;
    c->exec = NULL;
    c->timer = 0;
    for (size_t i = 0; i < c->p->calls.n; i++)
        if (c->p->calls.v[i] == c) {
            vec_remove(&c->p->calls, i);
            return;
        }
}

static void dispose(struct proposer_call *c)
{
    for (size_t i = 0; i < c->talk.n; i++)
        free((char *)(uintptr_t)c->talk.v[i].text);
    vec_free(&c->talk);
    prompt_free(&c->prompt);
    prompt_free(&c->shorter);
    reply_free(&c->reply);
    str_free(&c->partial);
    str_free(&c->child);
    str_free(&c->problem);
    free(c->tag);
    free(c->func);
    free(c->path);
    free(c->parent);
    json_free(c->note);
    free(c);
}

void call_free(struct proposer_call *c)
{
    stop_work(c);
    dispose(c);
}

void proposers_cancel(struct proposer_call *c)
{
    call_free(c);
}

double call_estimate(const struct proposer_call *c, double *tokens)
{
    double usd;
    size_t bytes = 0;
    for (size_t i = 0; i < c->talk.n; i++)
        bytes += strlen(c->talk.v[i].text);
    proposers_estimate(c->p, c->who, bytes, &usd, tokens);
    // What earlier turns of it cost is certain and not yet in anybody's account.
    *tokens += c->out.tokens_in + c->out.tokens_out;
    return usd + c->out.usd;
}

// The call leaves the books before its callback, which may ask again or close everything.
static void finish(struct proposer_call *c, enum proposal_end end, const char *reply)
{
    struct str shown = {0};
    str_add(&shown, reply ? reply : "");
    log_redact(&shown);
    log_redact(&c->problem);
    struct proposal *o = &c->out;
    o->end = end;
    o->who = c->who;
    o->tag = c->tag;
    o->name = name_of(c->p, c->who);
    o->source = end == PROPOSAL_SOURCE ? str_c(&c->child) : NULL;
    o->source_len = end == PROPOSAL_SOURCE ? c->child.len : 0;
    o->subject = str_c(&c->reply.name);
    o->description = str_c(&c->reply.description);
    o->reply = str_c(&shown);
    o->problem = end == PROPOSAL_SOURCE || end == PROPOSAL_TEXT ? NULL : str_c(&c->problem);
    o->temperature = c->params.temperature;
    o->turns = c->turn;
    o->cut = str_c(&c->prompt.cut);
    stop_work(c);
    c->on_done(c->user, o);
    str_free(&shown);
    dispose(c);
}

__attribute__((format(printf, 2, 3))) static void set_problem(struct proposer_call *c, const char *fmt, ...)
{
    va_list ap;
    str_clear(&c->problem);
    va_start(ap, fmt);
    str_addv(&c->problem, fmt, ap);
    va_end(ap);
}

// ---- an answer, from wherever it came

struct answer {
    enum chat_end end;
    const char *text, *finish, *error;
    int attempts;
    double seconds, waited, tokens_in, tokens_out, usd;
    bool estimated;
};

static void keep(struct proposer_call *c, const struct answer *a)
{
    struct err e = {0};
    struct proposal *o = &c->out;
    o->attempts += a->attempts;
    o->seconds += a->seconds;
    o->waited += a->waited;
    o->tokens_in += a->tokens_in;
    o->tokens_out += a->tokens_out;
    o->usd += a->usd;
    o->estimated |= a->estimated;
    if (!is_exec(c->p, c->who) && a->end == CHAT_OK) {
        c->p->answers.v[c->who]++;
        c->p->answer_tokens.v[c->who] += a->tokens_out;
    }
    if (c->p->replay)
        return;
    struct exchange x = {
        .tag = c->tag,
        .turn = c->turn,
        .kind = is_exec(c->p, c->who) ? "exec" : "llm",
        .who = name_of(c->p, c->who),
        .system = c->turn ? NULL : str_c(&c->prompt.system),
        .prompt = c->turn && c->talk.n ? c->talk.v[c->talk.n - 1].text : str_c(&c->prompt.user),
        .temperature = c->params.temperature,
        .end = chat_end_name(a->end),
        .reply = a->text,
        .finish = a->finish,
        .error = a->error,
        .attempts = a->attempts,
        .seconds = a->seconds,
        .waited = a->waited,
        .tokens_in = a->tokens_in,
        .tokens_out = a->tokens_out,
        .usd = a->usd,
        .estimated = a->estimated,
        .note = c->note,
        .at = c->position ? (int64_t)*c->position : 0,
    };
    if (record_add(c->p->record, &x, &e) < 0)
        log_line("an exchange is not recorded: %s", e.msg);
}

static void salvage(struct proposer_call *c, const char *text)
{
    struct err e = {0};
    json *o = json_object();
    json_put_str(o, "tag", c->tag);
    json_put_int(o, "parent", c->parent_id);
    json_put_str(o, "who", name_of(c->p, c->who));
    json_put_str(o, "name", str_c(&c->reply.name));
    json_put_str(o, "description", str_c(&c->reply.description));
    json_put_str(o, "kind", reply_kind_name(c->reply.kind));
    json_put_str(o, "body", str_c(&c->reply.body));
    json_put_str(o, "problem", str_c(&c->problem));
    json_put_str(o, "reply", text);
    if (!c->p->replay && salvage_put(c->p->state_dir, c->tag, o, &e) < 0)
        log_line("an answer is not kept for repair: %s", e.msg);
    json_free(o);
}

static void ask_again(struct proposer_call *c);
static bool ask_shorter(struct proposer_call *c);

static size_t talk_bytes(const struct proposer_call *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->talk.n; i++)
        n += strlen(c->talk.v[i].text);
    return n;
}

// Sends the diagnostic back, once, where it fits; false where it does not.
static bool correct(struct proposer_call *c, const char *text)
{
    size_t room = prompt_budget(c->p, c->who);
    if (c->corrected || is_exec(c->p, c->who) || talk_bytes(c) + strlen(text) + c->problem.len + 400 > room)
        return false;
    c->corrected = true;
    struct str words = {0};
    str_addf(&words,
             "This answer could not be used:\n\n%s\n\nAnswer once more, complete and in the form that was "
             "asked for: "
             "<name>, <description>, then <patch> with SEARCH/REPLACE blocks whose SEARCH lines stand "
             "exactly so in the "
             "source, or the whole file in <source>.",
             str_c(&c->problem));
    say(c, "assistant", text);
    say(c, "user", str_c(&words));
    str_free(&words);
    c->turn++;
    ask_again(c);
    return true;
}

static void judge(struct proposer_call *c, const char *text, bool cut)
{
    if (c->ask == ASK_EXPLAIN) {
        c->turn++;
        finish(c, PROPOSAL_TEXT, text);
        return;
    }
    struct reply_opts o = {.func = c->func, .parent = c->parent, .parent_len = strlen(c->parent), .cut = cut};
    struct apply_opts a = {.parent = c->parent,
                           .parent_len = strlen(c->parent),
                           .path = c->path,
                           .func = c->func,
                           .evolve = c->evolve};
    reply_free(&c->reply);
    reply_read(text, strlen(text), &o, &c->reply);
    bool had = c->reply.kind == REPLY_PATCH || c->reply.kind == REPLY_SOURCE;
    if (reply_apply(&c->reply, &a, &c->child, &c->problem) == 0) {
        c->turn++;
        finish(c, PROPOSAL_SOURCE, text);
        return;
    }
    if (correct(c, text))
        return;
    c->turn++;
    if (c->reply.kind == REPLY_SAME)
        finish(c, PROPOSAL_SAME, text);
    else if (had || c->reply.kind == REPLY_ELIDED || c->reply.kind == REPLY_BROKEN ||
             c->reply.kind == REPLY_CUT) {
        salvage(c, text);
        finish(c, PROPOSAL_SALVAGE, text);
    } else
        finish(c, PROPOSAL_NONE, text);
}

// The longest end of a that b begins with: models repeat some of it when they go on.
static size_t overlap(const char *a, size_t n, const char *b, size_t m)
{
    size_t most = n < m ? n : m;
    if (most > 400)
        most = 400;
    for (size_t k = most; k >= 12; k--)
        if (memcmp(a + n - k, b, k) == 0)
            return k;
    return 0;
}

static void join(struct proposer_call *c, const char *text)
{
    size_t n = strlen(text);
    // "```c" first thing, although the fence is still open.
    if (c->partial.len && strncmp(text, "```", 3) == 0 && strchr(text, '\n')) {
        const char *next = strchr(text, '\n') + 1;
        n -= (size_t)(next - text);
        text = next;
    }
    size_t k = overlap(str_c(&c->partial), c->partial.len, text, n);
    if (c->partial.len + n < MAX_REPLY)
        str_addn(&c->partial, text + k, n - k);
}

// A cut answer: more room first, then "go on". false: neither is left.
static bool go_on(struct proposer_call *c, const struct answer *a)
{
    const struct model *m = &c->p->models.v[c->who];
    int now = c->params.max_tokens ? c->params.max_tokens : m->max_tokens;
    int limit = m->max_limit ? m->max_limit : model_context(m) / 2;
    if (m->learned.max_cap && m->learned.max_cap < limit)
        limit = m->learned.max_cap;
    int next = now ? now * 2 : (int)fmin(fmax(a->tokens_out * 2, 8192), 1e6);
    if (next > limit)
        next = limit;
    if (c->raises < MAX_RAISES && c->continues == 0 && next > now && next > a->tokens_out) {
        c->raises++;
        c->params.max_tokens = next;
        c->turn++;
        ask_again(c);
        return true;
    }
    if (c->continues >= MAX_CONTINUES || !*a->text ||
        talk_bytes(c) + strlen(a->text) > prompt_budget(c->p, c->who))
        return false;
    c->continues++;
    join(c, a->text);
    say(c, "assistant", a->text);
    say(c, "user",
        "Your answer was cut off. Go on exactly where it ended: do not repeat anything, do not open the code "
        "block again, add no remark.");
    c->turn++;
    ask_again(c);
    return true;
}

static void take_clean(struct proposer_call *c, const struct answer *a)
{
    keep(c, a);
    bool cut = a->end == CHAT_CUT;
    if (cut && !is_exec(c->p, c->who) && go_on(c, a))
        return;
    if (a->end == CHAT_OK || cut) {
        struct str whole = {0};
        if (c->partial.len) {
            join(c, a->text);
            str_addn(&whole, c->partial.s, c->partial.len);
            str_clear(&c->partial);
        }
        judge(c, whole.len ? whole.s : a->text, cut);
        str_free(&whole);
        return;
    }
    if (a->end == CHAT_TOO_LONG && ask_shorter(c))
        return;
    c->turn++;
    set_problem(c, "%s", a->error ? a->error : chat_end_name(a->end));
    finish(c,
           a->end == CHAT_FILTERED ? PROPOSAL_REFUSED
           : a->end == CHAT_DENIED ? PROPOSAL_DENIED
                                   : PROPOSAL_FAILED,
           a->text);
}

// Whatever gave a key away, it goes no further than here: neither into a source nor back into a prompt.
static void take(struct proposer_call *c, const struct answer *a)
{
    struct answer clean = *a;
    struct str text = {0};
    str_add(&text, a->text);
    log_redact(&text);
    clean.text = str_c(&text);
    take_clean(c, &clean);
    str_free(&text);
}

// ---- where answers come from

static void on_chat(void *user, const struct chat_result *r)
{
    struct proposer_call *c = user;
    const struct model *m = &c->p->models.v[c->who];
    int max = c->params.max_tokens ? c->params.max_tokens : m->max_tokens;
    c->chat = NULL;
    struct str words = {0};
    if (r->err.msg[0])
        str_addf(&words, "%s%s%s", r->err.msg, r->err.hint[0] ? ". " : "", r->err.hint);
    struct answer a = {.end = r->end,
                       .text = str_c(&r->reply->text),
                       .finish = r->reply->finish,
                       .error = words.len ? words.s : NULL,
                       .attempts = r->attempts,
                       .seconds = r->seconds,
                       .waited = r->waited,
                       .tokens_in = r->tokens_in,
                       .tokens_out = r->tokens_out,
                       .usd = r->usd,
                       .estimated = r->estimated};
    // Some servers say "stop" when the limit ended it.
    if (a.end == CHAT_OK && max > 0 && r->reply->tokens_out >= max)
        a.end = CHAT_CUT;
    take(c, &a);
    str_free(&words);
}

static void on_exec(void *user, const struct exec_result *r)
{
    struct proposer_call *c = user;
    c->exec = NULL;
    struct answer a = {.end = r->ok ? CHAT_OK : CHAT_FAILED,
                       .text = str_c(&r->answer),
                       .error = r->ok ? NULL : r->err.msg,
                       .attempts = 1,
                       .seconds = r->seconds,
                       .usd = c->p->execs.v[c->who - (int)c->p->models.n].usd};
    take(c, &a);
}

static enum chat_end end_of(const char *name)
{
    for (int i = 0; i < CHAT_END_COUNT; i++)
        if (str_eq(name, chat_end_name((enum chat_end)i)))
            return (enum chat_end)i;
    return CHAT_FAILED;
}

static void on_replay(void *user)
{
    struct proposer_call *c = user;
    c->timer = 0;
    json *j = record_find(c->p->record, c->tag, c->turn);
    const char *who = json_str(j, "who");
    struct answer a = {
        .end = CHAT_FAILED, .text = "", .error = "this exchange is not in the recording", .usd = NAN};
    if (j && str_eq(who, name_of(c->p, c->who)))
        a = (struct answer){.end = end_of(json_str(j, "end")),
                            .text = json_str_or(j, "reply", ""),
                            .finish = json_str(j, "finish"),
                            .error = json_str(j, "error"),
                            .attempts = (int)json_int(j, "attempts", 1),
                            .seconds = json_num(j, "seconds", 0),
                            .waited = json_num(j, "waited", 0),
                            .tokens_in = json_num(j, "tokens_in", 0),
                            .tokens_out = json_num(j, "tokens_out", 0),
                            .usd = json_num(j, "usd", NAN),
                            .estimated = json_bool(j, "estimated", false)};
    else if (j)
        a.error = "the recording has another proposer's answer for this one";
    c->params.temperature = json_num(j, "temperature", c->params.temperature);
    take(c, &a);
    json_free(j);
}

static void on_text(void *user, const char *text, size_t n)
{
    struct proposer_call *c = user;
    if (c->on_text)
        c->on_text(c->user, text, n);
}

static void ask_again(struct proposer_call *c)
{
    if (c->p->replay)
        c->timer = loop_after(c->p->loop, 0, on_replay, c);
    else
        c->chat = chat_start(c->p->chat, &(struct chat_request){.model = &c->p->models.v[c->who],
                                                                .messages = c->talk.v,
                                                                .n = c->talk.n,
                                                                .params = c->params,
                                                                .seed = c->jitter + (uint64_t)c->turn,
                                                                .on_text = on_text,
                                                                .on_done = on_chat,
                                                                .user = c});
}

// ---- asking

static void clear_talk(struct proposer_call *c)
{
    for (size_t i = 0; i < c->talk.n; i++)
        free((char *)(uintptr_t)c->talk.v[i].text);
    c->talk.n = 0;
}

static bool ask_shorter(struct proposer_call *c)
{
    if (!c->shorter.user.len || c->turn)
        return false;
    prompt_free(&c->prompt);
    c->prompt = c->shorter;
    c->shorter = (struct prompt){0};
    clear_talk(c);
    say(c, "system", str_c(&c->prompt.system));
    say(c, "user", str_c(&c->prompt.user));
    c->turn++;
    ask_again(c);
    return true;
}

static int start_exec(struct proposer_call *c, const struct proposer_request *r, struct err *e)
{
    struct exec_texts t;
    exec_texts_fill(&t, r, &c->prompt);
    c->exec = exec_start(c->p->loop, &c->p->execs.v[c->who - (int)c->p->models.n], &t.files, on_exec, c, e);
    exec_texts_free(&t);
    return c->exec ? 0 : -1;
}

struct proposer_call *proposers_ask(struct proposers *p, const struct proposer_request *r, struct err *e)
{
    struct prompt prompt;
    struct draw d = {p->seed, (uint64_t)r->iteration};
    if (proposers_prompt(p, r, &prompt, e) < 0)
        return NULL;
    struct proposer_call *c = xcalloc(1, sizeof *c);
    *c = (struct proposer_call){.p = p,
                                .who = r->who,
                                .tag = r->tag ? xstrdup(r->tag) : xasprintf("%lld", (long long)p->next_tag++),
                                .func = xstrdup(r->ctx.func),
                                .path = xstrdup(r->path ? r->path : "kernel"),
                                .parent = xstrdup(r->ctx.source),
                                .ask = r->ctx.ask,
                                .evolve = r->evolve,
                                .parent_id = r->parent,
                                .note = r->note ? json_copy(r->note) : NULL,
                                .position = r->position,
                                .on_text = r->on_text,
                                .on_done = r->on_done,
                                .user = r->user,
                                .prompt = prompt,
                                .jitter = draw_bits(d, "jitter", 0)};
    c->params = draw_params(p, r->who, d);
    say(c, "system", str_c(&c->prompt.system));
    say(c, "user", str_c(&c->prompt.user));
    size_t half = talk_bytes(c) / 2, budget = prompt_budget(p, r->who) / 2;
    if (!is_exec(p, r->who) && half * 2 > budget)
        prompt_build(p->prompts, &r->ctx, half < budget ? half : budget, &c->shorter, NULL);
    vec_push(&p->calls, c);
    if (is_exec(p, r->who) && !p->replay)
        p->exec_running.v[r->who - (int)p->models.n]++;
    int ok = 0;
    if (is_exec(p, r->who) && !p->replay)
        ok = start_exec(c, r, e);
    else
        ask_again(c);
    if (ok < 0) {
        call_free(c);
        return NULL;
    }
    return c;
}
