#include "models/model.h"

#include "base/io.h"
#include "base/log.h"
#include "base/mem.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <strings.h>

enum kind { K_TEXT, K_INT, K_NUM, K_BOOL, K_SET, K_JSON, K_PRICE };

static const struct slot {
    const char *key;
    enum kind kind;
    size_t at;
    double low, high;
} slots[] = {
    {"url", K_TEXT, offsetof(struct model, url), 0, 0},
    {"model", K_TEXT, offsetof(struct model, id), 0, 0},
    {"key_env", K_TEXT, offsetof(struct model, key_env), 0, 0},
    {"key_cmd", K_TEXT, offsetof(struct model, key_cmd), 0, 0},
    {"proxy", K_TEXT, offsetof(struct model, proxy), 0, 0},
    {"ca", K_TEXT, offsetof(struct model, ca), 0, 0},
    {"effort", K_TEXT, offsetof(struct model, effort), 0, 0},
    {"weight", K_NUM, offsetof(struct model, weight), 0, 1e6},
    {"top_p", K_NUM, offsetof(struct model, top_p), 0, 1},
    {"price_in", K_PRICE, offsetof(struct model, price_in), 0, 1e5},
    {"price_out", K_PRICE, offsetof(struct model, price_out), 0, 1e5},
    {"price_cached", K_PRICE, offsetof(struct model, price_cached), 0, 1e5},
    {"seed", K_BOOL, offsetof(struct model, seed), 0, 0},
    {"stream", K_BOOL, offsetof(struct model, stream), 0, 0},
    {"max_tokens", K_INT, offsetof(struct model, max_tokens), 1, 1e7},
    {"max_limit", K_INT, offsetof(struct model, max_limit), 1, 1e7},
    {"context", K_INT, offsetof(struct model, context), 1024, 1e8},
    {"parallel", K_INT, offsetof(struct model, parallel), 1, 256},
    {"stall", K_INT, offsetof(struct model, stall_s), 1, 7200},
    {"timeout", K_INT, offsetof(struct model, timeout_s), 1, 86400},
    {"patience", K_INT, offsetof(struct model, patience_s), 0, 86400},
    {"temperature", K_SET, 0, 0, 2},
    {"body", K_JSON, 0, 0, 0},
};

struct reader {
    struct model *m;
    const char *path, *section;
    err_list *errors;
    size_t before;
};

#define BAD(r, hint, ...) err_list_add((r)->errors, (r)->path, 0, 0, (hint), __VA_ARGS__)

static bool number(struct reader *r, const char *key, const char *text, double low, double high, double *out)
{
    char *end;
    *out = strtod(text, &end);
    while (isspace((unsigned char)*end))
        end++;
    if (end == text || *end || !(*out >= low && *out <= high)) {
        BAD(r, "", "[%s] %s = %s: expected a number from %g to %g", r->section, key, text, low, high);
        return false;
    }
    return true;
}

static void read_set(struct reader *r, const struct slot *s, const char *value)
{
    size_t n;
    char **words = str_words(value, &n);
    if (!words || n == 0 || n > MODEL_MAX_TEMPERATURES)
        BAD(r, "Example: temperature = 0.3 0.7 1.0", "[%s] %s = %s: expected 1 to %d numbers", r->section,
            s->key, value, MODEL_MAX_TEMPERATURES);
    else
        for (size_t i = 0; i < n; i++)
            if (number(r, s->key, words[i], s->low, s->high, &r->m->temperature[i]))
                r->m->temperatures = (int)i + 1;
    free(words);
}

static void read_slot(struct reader *r, const struct slot *s, const char *value)
{
    void *at = (char *)r->m + s->at;
    double x;
    switch (s->kind) {
    case K_TEXT:
        free(*(char **)at);
        *(char **)at = xstrdup(value);
        break;
    case K_INT:
        if (number(r, s->key, value, s->low, s->high, &x))
            *(int *)at = (int)x;
        break;
    case K_NUM:
    case K_PRICE:
        if (number(r, s->key, value, s->low, s->high, &x))
            *(double *)at = x;
        break;
    case K_BOOL:
        if (!str_eq(value, "yes") && !str_eq(value, "no"))
            BAD(r, "", "[%s] %s = %s: expected yes or no", r->section, s->key, value);
        *(bool *)at = str_eq(value, "yes");
        break;
    case K_SET:
        read_set(r, s, value);
        break;
    case K_JSON: {
        struct err e = {0};
        json_free(r->m->body);
        r->m->body = json_parse(value, strlen(value), &e);
        if (!json_is_object(r->m->body))
            BAD(r, "Example: body = {\"chat_template_kwargs\":{\"enable_thinking\":false}}",
                "[%s] body: expected a JSON object%s%s", r->section, e.msg[0] ? ": " : "", e.msg);
        break;
    }
    }
}

static void read_header(struct reader *r, const char *key, const char *value)
{
    static const char *const secret[] = {"authorization:", "api-key:", "x-api-key:", "proxy-authorization:"};
    size_t n = 0;
    while (r->m->headers[n])
        n++;
    const char *colon = strchr(value, ':');
    for (size_t i = 0; i < countof(secret); i++)
        if (strncasecmp(value, secret[i], strlen(secret[i])) == 0 && !strstr(value, "{key}")) {
            BAD(r, "Write {key} in the header and name key_env or key_cmd.",
                "[%s] %s holds a key: keys never stand in a file", r->section, key);
            return;
        }
    if (!colon || colon == value || strpbrk(value, "\r\n") || n == MODEL_MAX_HEADERS)
        BAD(r, "Example: header = X-Title: ksmith", "[%s] %s = %s: expected Name: value (at most %d of them)",
            r->section, key, value, MODEL_MAX_HEADERS);
    else
        r->m->headers[n] = xstrdup(value);
}

static void read_key(struct reader *r, const char *key, const char *value)
{
    const char *names[countof(slots)];
    for (size_t i = 0; i < countof(slots); i++)
        if (str_eq(slots[i].key, key)) {
            read_slot(r, &slots[i], value);
            return;
        }
    if (str_starts(key, "header") && strspn(key + 6, "0123456789") == strlen(key + 6)) {
        read_header(r, key, value);
        return;
    }
    for (size_t i = 0; i < countof(slots); i++)
        names[i] = slots[i].key;
    const char *near = str_nearest(key, names, countof(slots));
    if (str_eq(key, "key") || str_eq(key, "api_key"))
        BAD(r, "Name the variable that holds it (key_env) or a command that prints it (key_cmd).",
            "[%s] %s: keys never stand in a file", r->section, key);
    else
        BAD(r, "", "[%s] unknown key %s%s%s%s", r->section, key, near ? "; did you mean " : "",
            near ? near : "", near ? "?" : "");
}

static void check_whole(struct reader *r)
{
    struct model *m = r->m;
    const char *rest = !m->url                                   ? NULL
                       : strncasecmp(m->url, "https://", 8) == 0 ? m->url + 8
                       : strncasecmp(m->url, "http://", 7) == 0  ? m->url + 7
                                                                 : NULL;
    if (!m->url)
        BAD(r, "Example: url = http://localhost:8080", "[%s] has no url", r->section);
    else if (!rest || !*rest || strpbrk(m->url, " \t\r\n#"))
        BAD(r, "Example: url = http://localhost:11434/v1",
            "[%s] url = %s: expected http:// or https:// and a host", r->section, m->url);
    else if (memchr(rest, '@', strcspn(rest, "/?")))
        BAD(r, "Name key_env or key_cmd instead.", "[%s] url holds a password: keys never stand in a file",
            r->section);
    if (!m->id)
        BAD(r, "`curl URL/v1/models` lists what a server has.", "[%s] has no model", r->section);
    if (m->key_env && m->key_cmd)
        BAD(r, "", "[%s] has both key_env and key_cmd: name one", r->section);
    bool uses_key = false;
    for (char **h = m->headers; *h; h++)
        uses_key |= strstr(*h, "{key}") != NULL;
    if (uses_key && !m->key_env && !m->key_cmd)
        BAD(r, "Name key_env or key_cmd.", "[%s] a header uses {key} but there is no key", r->section);
}

int model_load(struct model *m, const char *name, const json *section, const char *path, err_list *errors)
{
    *m = (struct model){.name = xstrdup(name),
                        .top_p = NAN,
                        .stream = true,
                        .parallel = 2,
                        .weight = 1,
                        .stall_s = 120,
                        .timeout_s = 1800,
                        .patience_s = 900,
                        .price_in = NAN,
                        .price_out = NAN,
                        .price_cached = NAN};
    char *title = xasprintf("model %s", name);
    struct reader r = {m, path, title, errors, errors->n};
    for (const json *x = json_first(section); x; x = json_next(x))
        if (json_string(x))
            read_key(&r, json_key(x), json_string(x));
    check_whole(&r);
    if (!m->max_limit)
        m->max_limit = m->max_tokens * 4;
    free(title);
    return errors->n > r.before ? -1 : 0;
}

void model_free(struct model *m)
{
    for (size_t i = 0; i < countof(slots); i++)
        if (slots[i].kind == K_TEXT)
            free(*(char **)((char *)m + slots[i].at));
    for (char **h = m->headers; *h; h++)
        free(*h);
    if (m->key)
        explicit_bzero(m->key, strlen(m->key));
    free(m->key);
    free(m->name);
    json_free(m->body);
    *m = (struct model){0};
}

int model_set_key(struct model *m, const char *key, struct err *e)
{
    char *copy = xstrdup(key ? key : ""), *text = str_trim(copy);
    const char *from = m->key_env ? m->key_env : "key_cmd";
    int r = 0;
    log_secret(text); // before anything can fail and say it
    if (!*text)
        r = err_set(e, ERR_FAIL,
                    "Export the variable before the engine starts, or correct key_env or key_cmd.",
                    "model %s: %s gives no key", m->name, from);
    else if (strlen(text) < 6 || strlen(text) > 16384)
        r = err_set(e, ERR_FAIL, "", "model %s: what %s gives is no key (%zu bytes)", m->name, from,
                    strlen(text));
    for (const char *c = text; r == 0 && *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            r = err_set(e, ERR_FAIL, "It must print the key and nothing else.",
                        "model %s: what %s gives holds white space or control characters", m->name, from);
    if (r == 0) {
        if (m->key)
            explicit_bzero(m->key, strlen(m->key));
        free(m->key);
        m->key = xstrdup(text);
    }
    explicit_bzero(copy, strlen(copy));
    free(copy);
    return r;
}

int model_context(const struct model *m)
{
    int set = m->context ? m->context : 32768;
    return m->learned.context && (!m->context || m->learned.context < set) ? m->learned.context : set;
}

int model_answer_tokens(const struct model *m)
{
    int want = m->max_tokens ? m->max_tokens : 8192, half = model_context(m) / 2;
    if (m->learned.max_cap && m->learned.max_cap < want)
        want = m->learned.max_cap;
    return want < half ? want : half;
}

double model_price(const struct model *m, double in, double cached, double out)
{
    if (in < 0 || out < 0 || !isfinite(in + out))
        return NAN;
    if (!(cached > 0))
        cached = 0;
    if (cached > in)
        cached = in;
    double rate = isnan(m->price_cached) ? m->price_in : m->price_cached;
    return ((in - cached) * m->price_in + (cached > 0 ? cached * rate : 0) + out * m->price_out) * 1e-6;
}
