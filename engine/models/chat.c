#include "models/chat.h"

#include "base/clock.h"
#include "base/draw.h"
#include "base/log.h"
#include "models/key.h"
#include "models/sse.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

enum { MAX_ERROR = 64 << 10, MAX_ANSWER = 16 << 20, MAX_LESSONS = 12, MAX_WAIT_MS = 60000 };

struct gate { // one per model
    int64_t not_before;
    int running, level, failures; // level: of backing off; failures: rejections in a row
    unsigned lessons;             // how often the model's learned settings changed
    bool denied;
    struct err why;
};

struct chat {
    struct loop *loop;
    struct http *http;
    struct keyring *keys;
    struct model *models;
    struct gate *gates;
    size_t n;
    char *learned_path;
    VEC(struct chat_call *) calls;
};

struct chat_call {
    struct chat *chat;
    struct model *m;
    struct gate *gate;
    struct chat_message *messages;
    size_t n;
    struct chat_params params;
    uint64_t seed;
    chat_text_fn *on_text;
    chat_done_fn *on_done;
    void *user;

    struct http_call *http;
    int timer;
    int64_t start, waiting_since;
    int attempts, lessons_here, backoffs;
    unsigned lessons_at_send, key_at_send;
    bool path_flipped, key_retried;
    bool sent[PARAM_COUNT];
    size_t body_bytes;

    int status;
    enum { UNKNOWN, EVENTS, WHOLE } mode;
    struct sse sse;
    struct str raw; // of an error or of an answer that is no stream
    struct wire_reply reply;
    struct err bad; // why the body is unusable
    struct chat_result result;
};

static const char *const end_names[CHAT_END_COUNT] = {"ok",       "cut",    "filtered",
                                                      "too long", "denied", "failed"};

const char *chat_end_name(enum chat_end end)
{
    return end_names[end];
}

static void attempt(void *user);

struct chat *chat_new(struct loop *loop, struct model *models, size_t n, const char *learned_path,
                      struct err *e)
{
    struct http *http = http_new(loop, e);
    if (!http)
        return NULL;
    struct chat *c = xcalloc(1, sizeof *c);
    *c = (struct chat){.loop = loop, .http = http, .models = models, .n = n};
    c->keys = keyring_new(loop, models, n);
    c->gates = xcalloc(n + 1, sizeof *c->gates);
    if (learned_path) {
        c->learned_path = xstrdup(learned_path);
        model_learned_load(models, n, learned_path);
    }
    return c;
}

static struct gate *gate_of(const struct chat *c, const struct model *m)
{
    return &c->gates[m - c->models];
}

int chat_running(const struct chat *c, const struct model *m)
{
    return gate_of(c, m)->running;
}

int chat_wait_ms(const struct chat *c, const struct model *m, const char **why)
{
    const struct gate *g = gate_of(c, m);
    int64_t left = g->not_before - clock_ns();
    if (why)
        *why = g->denied ? g->why.msg : NULL;
    return g->denied ? -1 : left <= 0 ? 0 : (int)(left / 1000000) + 1;
}

void chat_forgive(struct chat *c, const struct model *m)
{
    struct gate *g = gate_of(c, m);
    g->denied = false;
    keyring_forgive(c->keys, m);
    g->failures = g->level = 0;
    g->not_before = 0;
}

static void reset_answer(struct chat_call *c)
{
    sse_free(&c->sse);
    str_free(&c->raw);
    wire_reply_free(&c->reply);
    c->bad = (struct err){0};
    c->mode = UNKNOWN;
    c->status = 0;
}

// Out of the books: nothing of the loop or of libcurl knows it any more.
static void unlist(struct chat_call *c)
{
    struct chat *chat = c->chat;
    for (size_t i = 0; i < chat->calls.n; i++)
        if (chat->calls.v[i] == c) {
            vec_remove(&chat->calls, i);
            break;
        }
    c->gate->running--;
    if (c->http)
        http_cancel(c->http);
    if (c->timer)
        loop_cancel(chat->loop, c->timer);
}

static void dispose(struct chat_call *c)
{
    reset_answer(c);
    for (size_t i = 0; i < c->n; i++)
        free((char *)(uintptr_t)c->messages[i].text);
    free(c->messages);
    free(c);
}

static void call_free(struct chat_call *c)
{
    unlist(c);
    dispose(c);
}

void chat_cancel(struct chat_call *c)
{
    call_free(c);
}

void chat_free(struct chat *c)
{
    if (!c)
        return;
    while (c->calls.n)
        call_free(c->calls.v[c->calls.n - 1]);
    keyring_free(c->keys);
    vec_free(&c->calls);
    http_free(c->http);
    free(c->gates);
    free(c->learned_path);
    free(c);
}

// The call leaves the books before its callback runs, so that the callback sees a free place and may free
// everything.
static void finish(struct chat_call *c, enum chat_end end)
{
    c->result.end = end;
    c->result.reply = &c->reply;
    struct str words = {0};
    str_add(&words, c->result.err.msg);
    log_redact(&words);
    snprintf(c->result.err.msg, sizeof c->result.err.msg, "%s", str_c(&words));
    str_free(&words);
    if (end == CHAT_OK)
        c->result.err = (struct err){0};
    unlist(c);
    c->on_done(c->user, &c->result);
    dispose(c);
}

static void deny(struct chat_call *c)
{
    c->gate->denied = true;
    c->gate->why = c->result.err;
    log_line("model %s is out: %s", c->m->name, c->result.err.msg);
    finish(c, CHAT_DENIED);
}

static void later(struct chat_call *c, int ms)
{
    c->waiting_since = clock_ns();
    c->timer = loop_after(c->chat->loop, ms, attempt, c);
}

// Waits before the next attempt, or gives up. own_ms: what the server asked for, -1 where it said nothing.
static void try_again(struct chat_call *c, long own_ms, bool whole_model)
{
    // A wait that the server named is no reason to wait longer the next time.
    int level = own_ms >= 0 ? 0 : whole_model ? c->gate->level++ : c->backoffs++;
    double base = ldexp(500, level > 10 ? 10 : level);
    if (base > MAX_WAIT_MS)
        base = MAX_WAIT_MS;
    // Never less than what the server asked for, and spread out so that a crowd does not come back as one.
    double u = draw_unit((struct draw){c->seed, (uint64_t)c->attempts}, "patience", 0);
    double ms = own_ms >= 0 ? (double)own_ms + u * (500 + 0.1 * (double)own_ms) : base * (0.5 + u);
    double used = (double)(clock_ns() - c->start) * 1e-6;
    if (used + ms > c->m->patience_s * 1000.0) {
        struct err last = c->result.err;
        err_set(&c->result.err, ERR_FAIL, "Raise patience = in [model], or look at the server.",
                "given up after %d attempts in %.0f s: %s", c->attempts, used / 1000, last.msg);
        finish(c, CHAT_FAILED);
        return;
    }
    if (whole_model) {
        int64_t until = clock_ns() + (int64_t)((own_ms >= 0 ? (double)own_ms : ms / 2) * 1e6);
        if (until > c->gate->not_before)
            c->gate->not_before = until;
    }
    later(c, (int)ms);
}

// ---- the account

static void count_attempt(struct chat_call *c, double seconds)
{
    struct chat_result *r = &c->result;
    const struct wire_reply *w = &c->reply;
    r->seconds += seconds;
    if (c->status < 200 || c->status >= 300 || (w->error.message && !w->text.len && w->tokens_in < 0))
        return; // refused before anything was computed
    double in = w->tokens_in, out = w->tokens_out;
    if (in < 0) {
        in = ceil((double)c->body_bytes / 4);
        r->estimated = true;
    }
    if (out < 0) {
        out = ceil((double)(w->text.len + w->reasoning) / 4);
        r->estimated = true;
    }
    r->tokens_in += in;
    r->tokens_out += out;
    r->usd += isfinite(w->usd) ? w->usd : model_price(c->m, in, w->tokens_cached, out);
}

// ---- what an attempt ended with

static bool mentions(const struct wire_error *e, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((e->type && strcasestr(e->type, words[i])) || (e->message && strcasestr(e->message, words[i])))
            return true;
    return false;
}

// 404: the path is wrong (try with or without /v1 once) or the model is.
static void not_found(struct chat_call *c, const struct wire_error *e)
{
    static const char *const about_model[] = {"model"};
    struct model_learned *l = &c->m->learned;
    if (!mentions(e, about_model, countof(about_model)) && !c->path_flipped) {
        c->path_flipped = true;
        l->other_path = !l->other_path;
        later(c, 0);
        return;
    }
    if (c->path_flipped) // neither works: forget the guess
        l->other_path = !l->other_path;
    struct str at = {0};
    model_endpoint(c->m, &at);
    err_set(&c->result.err, ERR_FAIL, "Check url and model; `curl URL/v1/models` lists what a server has.",
            "model %s: status %d from %s: %s", c->m->name, e->status, str_c(&at), e->message);
    str_free(&at);
    deny(c);
}

static void refused_key(struct chat_call *c, const struct wire_error *e)
{
    static const char *const moderation[] = {"moderation", "flagged", "content_policy"};
    if (e->status == 403 && mentions(e, moderation, countof(moderation))) {
        finish(c, CHAT_FILTERED);
        return;
    }
    if (c->m->key_cmd && !c->key_retried) {
        c->key_retried = true;
        keyring_drop(c->chat->keys, c->m, c->key_at_send);
        later(c, 0);
        return;
    }
    err_set(&c->result.err, ERR_FAIL, "Check key_env or key_cmd in the model's section.",
            "model %s: the server refuses the key: %s", c->m->name, e->message);
    deny(c);
}

static bool learn(struct chat_call *c, const struct wire_error *e)
{
    struct str what = {0};
    if (++c->lessons_here > MAX_LESSONS)
        return false;
    if (c->lessons_at_send != c->gate->lessons) // another request learned meanwhile: send as it is now
        return true;
    bool learned = model_learn(c->m, c->sent, e->param, e->message, &what);
    if (learned) {
        c->gate->lessons++;
        log_line("model %s teaches: %s (%s)", c->m->name, str_c(&what), e->message);
        struct err save = {0};
        if (c->chat->learned_path &&
            model_learned_save(c->chat->models, c->chat->n, c->chat->learned_path, &save) < 0)
            log_line("what models taught cannot be kept: %s", save.msg);
    }
    str_free(&what);
    return learned;
}

static void rejected(struct chat_call *c, const struct wire_error *e)
{
    static const char *const long_words[] = {"context_length", "context length", "context size",
                                             "context window", "too long",       "maximum sequence",
                                             "exceed_context"};
    static const char *const filter[] = {"content_filter", "content management", "content_policy", "safety"};
    int context = model_context(c->m);
    bool again = e->status != 413 && learn(c, e);
    if (model_context(c->m) < context || (!again && mentions(e, long_words, countof(long_words))) ||
        e->status == 413)
        finish(c, CHAT_TOO_LONG);
    else if (again)
        later(c, 0);
    else if (mentions(e, filter, countof(filter)))
        finish(c, CHAT_FILTERED);
    else if (++c->gate->failures >= 5)
        deny(c);
    else
        finish(c, CHAT_FAILED);
}

static void server_error(struct chat_call *c, const struct wire_error *e, long retry_after_ms)
{
    static const char *const broke[] = {"insufficient_quota", "billing", "credit", "payment"};
    static const char *const unable[] = {"support", "unrecognized", "not permitted", "unknown"};
    int s = e->status ? e->status : 500;
    err_set(&c->result.err, ERR_FAIL, "", "model %s: status %d: %s", c->m->name, s, e->message);
    if (s == 401 || s == 403)
        refused_key(c, e);
    else if (s == 402 || (s == 429 && mentions(e, broke, countof(broke)))) {
        snprintf(c->result.err.hint, sizeof c->result.err.hint,
                 "The account at this service has no credit left.");
        deny(c);
    } else if (s == 404 || s == 405)
        not_found(c, e);
    else if (s == 408 || s == 409 || s == 425 || s == 429)
        try_again(c, retry_after_ms, s == 429);
    else if (s >= 500) {
        if (s <= 501 && mentions(e, unable, countof(unable)) && learn(c, e))
            later(c, 0);
        else
            try_again(c, retry_after_ms, s == 503 || s == 529);
    } else if (s >= 300 && s < 400) {
        snprintf(c->result.err.hint, sizeof c->result.err.hint,
                 "Redirects are not followed: name the final url.");
        deny(c);
    } else
        rejected(c, e);
}

static void answered(struct chat_call *c)
{
    const struct wire_reply *w = &c->reply;
    c->gate->level = c->gate->failures = 0;
    c->path_flipped = false; // this path works
    if (w->refused || (w->finish && str_eq(w->finish, "content_filter"))) {
        err_set(&c->result.err, ERR_FAIL, "", "model %s refuses to answer", c->m->name);
        finish(c, CHAT_FILTERED);
    } else if (w->finish && (str_eq(w->finish, "length") || str_eq(w->finish, "max_tokens"))) {
        err_set(&c->result.err, ERR_FAIL, "Raise max_tokens or max_limit in [model].",
                "model %s was cut off at its token limit", c->m->name);
        finish(c, CHAT_CUT);
    } else
        finish(c, CHAT_OK);
}

static void on_http_done(void *user, const struct http_result *h)
{
    struct chat_call *c = user;
    c->http = NULL;
    c->status = h->status;
    bool good = h->status >= 200 && h->status < 300;
    size_t at;
    if (good && h->end == HTTP_OK && c->mode == EVENTS && sse_end(&c->sse, &c->bad) < 0)
        c->mode = UNKNOWN;
    if (good && h->end == HTTP_OK && c->mode == WHOLE && !c->bad.msg[0])
        wire_take(&c->reply, str_c(&c->raw), c->raw.len, &at, &c->bad);
    count_attempt(c, h->seconds);
    if (h->end == HTTP_OK && !good)
        wire_read_error(&c->reply.error, h->status, str_c(&c->raw), c->raw.len);
    if (c->reply.error.message && (h->end == HTTP_OK || h->end == HTTP_REFUSED)) {
        struct wire_error e = c->reply.error;
        c->reply.error = (struct wire_error){0}; // later() may clear the reply while we still read
        server_error(c, &e, h->retry_after_ms);
        wire_error_free(&e);
        return;
    }
    // A stream counts as whole where the server said why it ended or that it did; all else is half an answer.
    if (good && h->end == HTTP_OK && !c->bad.msg[0] && (c->reply.finish || c->reply.done)) {
        answered(c);
        return;
    }
    if (h->end != HTTP_OK && h->end != HTTP_REFUSED)
        c->result.err = h->err;
    else
        err_set(&c->result.err, ERR_FAIL, "Is url that of an OpenAI-compatible server?", "model %s: %s%s",
                c->m->name, c->bad.msg[0] ? "the answer cannot be read: " : "the answer ended in the middle",
                c->bad.msg);
    if (h->end == HTTP_OK || h->end == HTTP_REFUSED || http_end_transient(h->end))
        try_again(c, -1, false);
    else if (h->end == HTTP_TLS || h->end == HTTP_BAD)
        deny(c);
    else
        finish(c, CHAT_FAILED);
}

// ---- what arrives

static bool on_event(void *user, const char *name, const char *data, size_t n)
{
    struct chat_call *c = user;
    size_t at;
    (void)name;
    if (c->reply.done)
        return true; // whatever follows [DONE]
    if (wire_take(&c->reply, data, n, &at, &c->bad) < 0)
        return false;
    if (c->reply.text.len > MAX_ANSWER) {
        err_set(&c->bad, ERR_FAIL, "", "more than %d bytes of text", MAX_ANSWER);
        return false;
    }
    if (c->on_text && c->reply.text.len > at)
        c->on_text(c->user, c->reply.text.s + at, c->reply.text.len - at);
    return !c->reply.error.message;
}

static void on_head(void *user, int status, const char *content_type)
{
    struct chat_call *c = user;
    c->status = status;
    if (strcasestr(content_type, "event-stream"))
        c->mode = EVENTS;
}

static bool on_body(void *user, const char *data, size_t n)
{
    struct chat_call *c = user;
    if (c->status < 200 || c->status >= 300) {
        if (c->raw.len < MAX_ERROR)
            str_addn(&c->raw, data, n);
        return true;
    }
    // What the body is, is seen from its first byte: servers mislabel both ways.
    for (size_t i = 0; i < n && c->mode != WHOLE && c->sse.events == 0 && !c->sse.any && !c->sse.line.len;
         i++)
        if (!isspace((unsigned char)data[i])) {
            c->mode = data[i] == '{' || data[i] == '[' ? WHOLE : EVENTS;
            break;
        }
    if (c->mode == WHOLE) {
        str_addn(&c->raw, data, n);
        if (c->raw.len <= MAX_ANSWER)
            return true;
        err_set(&c->bad, ERR_FAIL, "", "larger than %d bytes", MAX_ANSWER);
        return false;
    }
    return sse_feed(&c->sse, data, n, &c->bad) == 0 && !c->sse.stopped;
}

// ---- sending

// The key's places in extra headers. Free with free_headers.
static char **fill_headers(const struct model *m, bool *uses_key)
{
    char **out = xcalloc(MODEL_MAX_HEADERS + 1, sizeof *out);
    for (size_t i = 0; m->headers[i]; i++) {
        const char *at = strstr(m->headers[i], "{key}");
        *uses_key |= at != NULL;
        out[i] =
            at ? xasprintf("%.*s%s%s", (int)(at - m->headers[i]), m->headers[i], m->key ? m->key : "", at + 5)
               : xstrdup(m->headers[i]);
    }
    return out;
}

static void free_headers(char **h)
{
    for (char **x = h; *x; x++) {
        explicit_bzero(*x, strlen(*x));
        free(*x);
    }
    free(h);
}

static void send_now(struct chat_call *c)
{
    struct str url = {0}, body = {0};
    bool uses_key = false;
    char **headers = fill_headers(c->m, &uses_key);
    reset_answer(c);
    sse_init(&c->sse, on_event, c);
    model_endpoint(c->m, &url);
    wire_request(c->m, c->messages, c->n, &c->params, &body, c->sent);
    c->body_bytes = body.len;
    c->lessons_at_send = c->gate->lessons;
    c->key_at_send = keyring_age(c->chat->keys, c->m);
    c->attempts++;
    c->result.attempts = c->attempts;
    if (c->attempts > 1 && c->on_text)
        c->on_text(c->user, NULL, 0);
    c->http = http_start(c->chat->http, &(struct http_request){
                                            .url = url.s,
                                            .headers = (const char *const *)(uintptr_t)headers,
                                            .bearer = uses_key ? NULL : c->m->key,
                                            .body = body.s,
                                            .body_len = body.len,
                                            .proxy = c->m->proxy,
                                            .ca_file = c->m->ca,
                                            .stall_ms = c->m->stall_s * 1000,
                                            .total_ms = c->m->timeout_s * 1000,
                                            .on_head = on_head,
                                            .on_body = on_body,
                                            .on_done = on_http_done,
                                            .user = c,
                                        });
    free_headers(headers);
    str_free(&url);
    str_free(&body);
}

// Sends as soon as the model may be asked and its key is there.
static void attempt(void *user)
{
    struct chat_call *c = user;
    c->timer = 0;
    if (c->waiting_since)
        c->result.waited += (double)(clock_ns() - c->waiting_since) * 1e-9;
    c->waiting_since = 0;
    int wait = chat_wait_ms(c->chat, c->m, NULL);
    if (wait < 0) {
        c->result.err = c->gate->why;
        finish(c, CHAT_DENIED);
        return;
    }
    if (wait > 0) {
        // Those that wait for the same moment come one after the other.
        double u = draw_unit((struct draw){c->seed, (uint64_t)c->attempts}, "gate", 0);
        later(c, wait + (int)(u * 10 * c->gate->running));
        return;
    }
    enum key_state key = keyring_get(c->chat->keys, c->m, &c->result.err);
    if (key == KEY_PENDING)
        later(c, 20);
    else if (key == KEY_FAILED)
        deny(c);
    else
        send_now(c);
}

struct chat_call *chat_start(struct chat *chat, const struct chat_request *r)
{
    struct chat_call *c = xcalloc(1, sizeof *c);
    *c = (struct chat_call){.chat = chat,
                            .m = r->model,
                            .gate = gate_of(chat, r->model),
                            .messages = xcalloc(r->n, sizeof *c->messages),
                            .n = r->n,
                            .params = r->params,
                            .seed = r->seed,
                            .on_text = r->on_text,
                            .on_done = r->on_done,
                            .user = r->user,
                            .start = clock_ns()};
    for (size_t i = 0; i < r->n; i++)
        c->messages[i] = (struct chat_message){r->messages[i].role, xstrdup(r->messages[i].text)};
    wire_reply_init(&c->reply);
    c->gate->running++;
    vec_push(&chat->calls, c);
    later(c, 0);
    return c;
}
