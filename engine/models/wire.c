#include "models/wire.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <ctype.h>
#include <math.h>

// ---- requests

static void put_messages(json *o, const struct model *m, const struct chat_message *messages, size_t n,
                         bool sent[PARAM_COUNT])
{
    json *list = json_array();
    struct str system = {0};
    for (size_t i = 0; i < n; i++) {
        bool is_system = str_eq(messages[i].role, "system");
        if (is_system && m->learned.drop[PARAM_SYSTEM]) {
            str_addf(&system, "%s\n\n", messages[i].text);
            continue;
        }
        sent[PARAM_SYSTEM] |= is_system;
        json *x = json_object();
        json_put_str(x, "role", messages[i].role);
        str_add(&system, messages[i].text);
        json_put_str(x, "content", str_c(&system));
        str_clear(&system);
        json_push(list, x);
    }
    str_free(&system);
    json_put(o, "messages", list);
}

static bool sends(const struct model *m, enum model_param p, bool wanted, bool sent[PARAM_COUNT])
{
    sent[p] = wanted && !m->learned.drop[p];
    return sent[p];
}

void wire_request(const struct model *m, const struct chat_message *messages, size_t n,
                  const struct chat_params *p, struct str *out, bool sent[PARAM_COUNT])
{
    json *o = json_object();
    for (int i = 0; i < PARAM_COUNT; i++)
        sent[i] = false;
    json_put_str(o, "model", m->id);
    put_messages(o, m, messages, n, sent);
    if (sends(m, PARAM_STREAM, m->stream, sent)) {
        json_put_bool(o, "stream", true);
        if (sends(m, PARAM_STREAM_OPTIONS, true, sent)) {
            json *options = json_object();
            json_put_bool(options, "include_usage", true);
            json_put(o, "stream_options", options);
        }
    }
    if (sends(m, PARAM_TEMPERATURE, isfinite(p->temperature), sent))
        json_put_num(o, "temperature", p->temperature);
    if (sends(m, PARAM_TOP_P, isfinite(m->top_p), sent))
        json_put_num(o, "top_p", m->top_p);
    if (sends(m, PARAM_SEED, m->seed, sent))
        json_put_int(o, "seed", p->seed & 0x7fffffff);
    if (sends(m, PARAM_EFFORT, m->effort != NULL, sent))
        json_put_str(o, "reasoning_effort", m->effort);
    int max = p->max_tokens ? p->max_tokens : m->max_tokens;
    if (m->learned.max_cap && max > m->learned.max_cap)
        max = m->learned.max_cap;
    if (sends(m, PARAM_MAX_TOKENS, max > 0, sent))
        json_put_int(o, model_param_name(m, PARAM_MAX_TOKENS), max);
    for (const json *x = json_first(m->body); x; x = json_next(x))
        if (!json_has(o, json_key(x)))
            json_put(o, json_key(x), json_copy(x));
    json_print(o, out);
    json_free(o);
}

// ---- answers

void wire_error_free(struct wire_error *e)
{
    free(e->type);
    free(e->param);
    free(e->message);
    *e = (struct wire_error){0};
}

void wire_reply_init(struct wire_reply *r)
{
    *r = (struct wire_reply){
        .tokens_in = -1, .tokens_out = -1, .tokens_cached = -1, .tokens_reasoning = -1, .usd = NAN};
}

void wire_reply_free(struct wire_reply *r)
{
    str_free(&r->text);
    free(r->finish);
    free(r->model);
    wire_error_free(&r->error);
    wire_reply_init(r);
}

static void set(char **at, const char *s)
{
    if (!s || !*s)
        return;
    free(*at);
    *at = xstrdup(s);
}

static bool hex4(const char *s, const char *end, unsigned *x)
{
    char t[5] = {0}, *stop;
    if (end - s < 4)
        return false;
    memcpy(t, s, 4);
    *x = (unsigned)strtoul(t, &stop, 16);
    return stop == t + 4;
}

// Servers cut text between tokens, so a chunk may hold half a character or half a surrogate pair, and some
// pass control characters on: such bytes become U+FFFD, so that the rest can be read. The text is still JSON
// or not as before.
static void repair(const char *s, size_t n, struct str *out)
{
    static const char replacement[] = "\\ufffd";
    const char *end = s + n;
    bool in_string = false;
    while (s < end) {
        unsigned char c = (unsigned char)*s;
        uint32_t cp;
        int k = c < 0x80 ? 1 : text_decode(s, (size_t)(end - s), &cp);
        unsigned u, low;
        if (k == 0 || (in_string && c < 0x20) || c == 0) {
            str_add(out, c == '\t' ? "\\t" : c == '\n' ? "\\n" : in_string ? replacement : " ");
            s++;
            continue;
        }
        if (in_string && c == '\\' && s + 1 < end) {
            bool escape = s[1] == 'u' && hex4(s + 2, end, &u);
            bool pair = escape && u >= 0xd800 && u < 0xdc00 && end - s >= 12 && s[6] == '\\' && s[7] == 'u' &&
                        hex4(s + 8, end, &low) && low >= 0xdc00 && low < 0xe000;
            size_t take = pair ? 12 : escape ? 6 : 2;
            if (escape && !pair && (u == 0 || (u >= 0xd800 && u < 0xe000)))
                str_add(out, replacement);
            else
                str_addn(out, s, take);
            s += take;
            continue;
        }
        in_string ^= c == '"';
        str_addn(out, s, (size_t)k);
        s += k;
    }
}

static json *parse(const char *data, size_t n, struct err *e)
{
    json *j = json_parse(data, n, NULL);
    if (j)
        return j;
    struct str fixed = {0};
    repair(data, n, &fixed);
    j = json_parse(str_c(&fixed), fixed.len, e);
    str_free(&fixed);
    return j;
}

static void take_usage(struct wire_reply *r, const json *u)
{
    if (!json_is_object(u))
        return;
    const json *in = json_get(u, "prompt_tokens_details"), *out = json_get(u, "completion_tokens_details");
    r->tokens_in = json_num(u, "prompt_tokens", json_num(u, "input_tokens", r->tokens_in));
    r->tokens_out = json_num(u, "completion_tokens", json_num(u, "output_tokens", r->tokens_out));
    r->tokens_cached =
        json_num(in, "cached_tokens", json_num(u, "prompt_cache_hit_tokens", r->tokens_cached));
    r->tokens_reasoning = json_num(out, "reasoning_tokens", r->tokens_reasoning);
    r->usd = json_num(u, "cost", r->usd);
}

// "content" is a string, or a list of parts of which only the text ones are the answer.
static void take_content(struct wire_reply *r, const json *c)
{
    if (json_string(c))
        str_add(&r->text, json_string(c));
    else if (json_is_array(c))
        for (const json *x = json_first(c); x; x = json_next(x)) {
            const char *type = json_str_or(x, "type", "text");
            if (str_eq(type, "text") || str_eq(type, "output_text"))
                str_add(&r->text, json_str_or(x, "text", ""));
            else
                r->reasoning += 1;
        }
}

static void take_message(struct wire_reply *r, const json *m)
{
    static const char *const dropped[] = {"reasoning_content", "reasoning", "thinking", "reasoning_text"};
    for (size_t i = 0; i < countof(dropped); i++) {
        const char *s = json_str(m, dropped[i]);
        r->reasoning += s ? strlen(s) : json_has(m, dropped[i]) && json_count(json_get(m, dropped[i]));
    }
    take_content(r, json_get(m, "content"));
    const char *no = json_str(m, "refusal");
    r->refused |= no && *no;
}

// Errors come as {"error":{...}}, {"error":"words"}, {"message":"words"}, {"detail":...},
// {"object":"error",...}.
static bool take_error(struct wire_error *out, const json *j)
{
    const json *e = json_get(j, "error");
    bool plain = json_str(j, "object") && str_eq(json_str(j, "object"), "error");
    if (!json_is_object(e) && !json_string(e)) {
        if (!plain && !(json_str(j, "message") && !json_has(j, "choices")) && !json_has(j, "detail"))
            return false;
        e = j;
    }
    struct str words = {0};
    if (json_string(e)) {
        str_add(&words, json_string(e));
    } else if (json_str(e, "message")) {
        str_add(&words, json_str(e, "message"));
    } else if (json_has(e, "detail") && json_str(e, "detail")) {
        str_add(&words, json_str(e, "detail"));
    } else {
        json_print(e, &words);
    }
    // Routers put the real server's words here.
    const char *raw = json_str(json_get(e, "metadata"), "raw");
    if (raw)
        str_addf(&words, ": %s", raw);
    set(&out->message, words.len ? words.s : "an error without words");
    set(&out->type, json_str(e, "code") ? json_str(e, "code") : json_str(e, "type"));
    set(&out->param, json_str(e, "param"));
    double code = json_num(e, "code", json_num(e, "status", json_num(j, "code", 0)));
    if (code >= 400 && code < 600)
        out->status = (int)code;
    str_free(&words);
    return true;
}

int wire_take(struct wire_reply *r, const char *data, size_t n, size_t *delta_at, struct err *e)
{
    *delta_at = r->text.len;
    while (n && isspace((unsigned char)*data))
        data++, n--;
    while (n && isspace((unsigned char)data[n - 1]))
        n--;
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) {
        r->done = true;
        return 0;
    }
    if (n == 0)
        return 0;
    json *j = parse(data, n, e);
    if (!j)
        return -1;
    if (take_error(&r->error, j)) {
        json_free(j);
        return 0;
    }
    set(&r->model, json_str(j, "model"));
    take_usage(r, json_get(j, "usage"));
    take_usage(r, json_get(json_get(j, "x_groq"), "usage"));
    for (const json *c = json_first(json_get(j, "choices")); c; c = json_next(c)) {
        if (json_num(c, "index", 0) != 0)
            continue;
        const json *message = json_get(c, "message"), *delta = json_get(c, "delta");
        take_message(r, delta ? delta : message);
        if (!delta && !message && json_str(c, "text"))
            str_add(&r->text, json_str(c, "text"));
        if (!delta && message)
            r->done = true;
        set(&r->finish, json_str(c, "finish_reason"));
        take_error(&r->error, c);
    }
    int ok = json_is_object(j) ? 0 : err_set(e, ERR_FAIL, "", "not an answer of the chat protocol");
    json_free(j);
    return ok;
}

void wire_read_error(struct wire_error *e, int status, const char *body, size_t n)
{
    struct str clean = {0};
    json *j = parse(body, n, NULL);
    if (json_is_array(j)) { // Google wraps it in a list
        json *first = json_first(j) ? json_copy(json_first(j)) : NULL;
        json_free(j);
        j = first;
    }
    e->status = status;
    if (!j || !take_error(e, j)) {
        text_clean(&clean, body, n < 300 ? n : 300, TEXT_LINE);
        free(e->message);
        e->message = clean.len ? xstrdup(clean.s) : xasprintf("status %d without words", status);
    }
    if (status >= 400)
        e->status = status; // what HTTP says goes before what the body says
    str_clear(&clean);
    str_add(&clean, e->message);
    log_redact(&clean);
    set(&e->message, str_c(&clean));
    str_free(&clean);
    json_free(j);
}
