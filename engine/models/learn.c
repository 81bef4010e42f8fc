// Where a model is reached and what its server taught: URL rules, rejected parameters, limits.
#include "models/model.h"

#include "base/io.h"
#include "base/mem.h"

#include <ctype.h>
#include <limits.h>
#include <strings.h>

static const char *const names[PARAM_COUNT] = {
    [PARAM_TEMPERATURE] = "temperature",
    [PARAM_TOP_P] = "top_p",
    [PARAM_SEED] = "seed",
    [PARAM_STREAM_OPTIONS] = "stream_options",
    [PARAM_EFFORT] = "reasoning_effort",
    [PARAM_MAX_TOKENS] = "max_tokens",
    [PARAM_STREAM] = "stream",
    [PARAM_SYSTEM] = "system",
};

const char *model_param_name(const struct model *m, enum model_param p)
{
    return p == PARAM_MAX_TOKENS && m->learned.completion_name ? "max_completion_tokens" : names[p];
}

// Does the path have a segment like v1, v4 or v1beta?
static bool names_version(const char *path, size_t n)
{
    for (size_t i = 0; i + 2 < n; i++) {
        if (path[i] != '/' || tolower((unsigned char)path[i + 1]) != 'v' ||
            !isdigit((unsigned char)path[i + 2]))
            continue;
        size_t k = i + 2;
        while (k < n && isalnum((unsigned char)path[k]))
            k++;
        if (k == n || path[k] == '/')
            return true;
    }
    return false;
}

void model_endpoint(const struct model *m, struct str *out)
{
    static const char tail[] = "/chat/completions";
    const char *rest = strstr(m->url, "://") + 3;
    size_t host = strcspn(rest, "/?"), path = strcspn(rest + host, "?");
    const char *query = rest + host + path;
    while (path && rest[host + path - 1] == '/')
        path--;
    const char *p = rest + host;
    size_t t = sizeof tail - 1;
    if (path >= t && strncasecmp(p + path - t, tail, t) == 0)
        path -= t; // the whole endpoint was given
    else if (path >= 5 && strncasecmp(p + path - 5, "/chat", 5) == 0)
        path -= 5;
    bool versioned = names_version(p, path);
    // Learned: this server wants it the other way.
    bool cut = m->learned.other_path && path >= 3 && strncasecmp(p + path - 3, "/v1", 3) == 0;
    if (cut)
        path -= 3;
    str_addn(out, m->url, (size_t)(p - m->url) + path);
    bool given_whole = path + t <= strcspn(p, "?") && strncasecmp(p + path, tail, t) == 0;
    if (!cut && (versioned || given_whole) == m->learned.other_path)
        str_add(out, "/v1");
    str_add(out, tail);
    str_add(out, query);
}

bool model_is_local(const struct model *m)
{
    static const char *const local[] = {"localhost", "127.", "[::1]"};
    const char *rest = strstr(m->url, "://") + 3;
    for (size_t i = 0; i < countof(local); i++)
        if (strncasecmp(rest, local[i], strlen(local[i])) == 0)
            return true;
    return false;
}

// Does text hold word, not as a part of a longer name?
static const char *find_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strcasestr(at, word)); at += n) {
        bool left = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        bool right = !(isalnum((unsigned char)at[n]) || at[n] == '_');
        if (left && right)
            return at;
    }
    return NULL;
}

static bool any_of(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasestr(text, words[i]))
            return true;
    return false;
}

// The first whole number of at least `least` after a phrase; 0 where there is none.
static int number_after(const char *text, const char *phrase, int least)
{
    const char *at = strcasestr(text, phrase);
    while (at && *at) {
        while (*at && !isdigit((unsigned char)*at))
            at++;
        char *end = NULL;
        long x = *at ? strtol(at, &end, 10) : 0;
        while (end && *end == ',' && isdigit((unsigned char)end[1]) && x < INT_MAX / 1000) // 16,384
            x = x * 1000 + strtol(end + 1, &end, 10);
        if (x >= least)
            return x > INT_MAX ? INT_MAX : (int)x;
        at = end;
    }
    return 0;
}

// The prompt and the answer do not fit: its context is learned, what to cut is the caller's matter.
static bool learn_context(struct model *m, const char *message, struct str *what)
{
    static const char *const phrases[] = {
        "maximum context length", "context length", "context size",
        "context window",         "n_ctx",          "maximum sequence length"};
    for (size_t i = 0; i < countof(phrases); i++) {
        int n = number_after(message, phrases[i], 256);
        if (n && n != m->learned.context) {
            m->learned.context = n;
            str_addf(what, "context of %d tokens", n);
            return true;
        }
    }
    return false;
}

static bool learn_max(struct model *m, const char *message, struct str *what)
{
    static const char *const unknown[] = {"not support",   "unsupported", "unrecognized", "unknown",
                                          "not permitted", "not allowed", "extra",        "instead",
                                          "unexpected",    "deprecated"};
    static const char *const limits[] = {"at most",      "maximum", "less than or equal to",
                                         "<=",           "up to",   "must be between",
                                         "no more than", "exceed",  "limit"};
    int sent = m->learned.max_cap             ? m->learned.max_cap
               : m->max_limit > m->max_tokens ? m->max_limit
                                              : m->max_tokens;
    bool rename =
        find_word(message, m->learned.completion_name ? "max_tokens" : "max_completion_tokens") != NULL;
    if (!any_of(message, unknown, countof(unknown)) || !rename)
        for (size_t i = 0; i < countof(limits); i++) {
            int n = number_after(message, limits[i], 16);
            if (n && (!sent || n < sent)) {
                m->learned.max_cap = n;
                str_addf(what, "at most %d output tokens", n);
                return true;
            }
        }
    if (!m->learned.completion_name && (rename || any_of(message, unknown, countof(unknown)))) {
        m->learned.completion_name = true;
        str_add(what, "max_completion_tokens instead of max_tokens");
        return true;
    }
    m->learned.drop[PARAM_MAX_TOKENS] = true;
    str_add(what, "no limit of output tokens");
    return true;
}

static bool learn_param(struct model *m, enum model_param p, const char *message, struct str *what)
{
    if (p == PARAM_MAX_TOKENS)
        return learn_max(m, message, what);
    if (m->learned.drop[p])
        return false;
    m->learned.drop[p] = true;
    str_addf(what, "no %s", names[p]);
    return true;
}

bool model_learn(struct model *m, const bool sent[PARAM_COUNT], const char *param, const char *message,
                 struct str *what)
{
    static const char *const roles[] = {"system role",         "system message", "role 'system'",
                                        "role \"system\"",     "system prompt",  "Developer instruction",
                                        "roles must alternate"};
    message = message ? message : "";
    for (int p = 0; param && p < PARAM_COUNT; p++)
        if (sent[p] && str_eq(param, model_param_name(m, p)))
            return learn_param(m, p, message, what);
    if (strcasestr(message, "context") && learn_context(m, message, what))
        return true;
    if (sent[PARAM_SYSTEM] && any_of(message, roles, countof(roles)))
        return learn_param(m, PARAM_SYSTEM, message, what);
    // "temperature and top_p cannot both be specified" costs top_p, which matters less: later ones first.
    static const enum model_param order[] = {PARAM_STREAM_OPTIONS, PARAM_TOP_P,       PARAM_SEED,
                                             PARAM_EFFORT,         PARAM_TEMPERATURE, PARAM_MAX_TOKENS,
                                             PARAM_STREAM};
    for (size_t i = 0; i < countof(order); i++)
        if (sent[order[i]] && (find_word(message, model_param_name(m, order[i])) ||
                               (order[i] == PARAM_STREAM && strcasestr(message, "streaming"))))
            return learn_param(m, order[i], message, what);
    return false;
}

json *model_learned_json(const struct model *m)
{
    const struct model_learned *l = &m->learned;
    json *o = json_object(), *drop = json_array();
    for (int p = 0; p < PARAM_COUNT; p++)
        if (l->drop[p])
            json_push(drop, json_new_str(names[p]));
    json_put(o, "drop", drop);
    json_put_bool(o, "completion_name", l->completion_name);
    json_put_bool(o, "other_path", l->other_path);
    json_put_int(o, "max_cap", l->max_cap);
    json_put_int(o, "context", l->context);
    return o;
}

static int positive(const json *j, const char *key)
{
    int64_t x = json_int(j, key, 0);
    return x > 0 && x < INT_MAX ? (int)x : 0;
}

void model_learned_read(struct model *m, const json *j)
{
    m->learned = (struct model_learned){.completion_name = json_bool(j, "completion_name", false),
                                        .other_path = json_bool(j, "other_path", false),
                                        .max_cap = positive(j, "max_cap"),
                                        .context = positive(j, "context")};
    for (const json *x = json_first(json_get(j, "drop")); x; x = json_next(x))
        for (int p = 0; p < PARAM_COUNT; p++)
            if (str_eq(json_string(x), names[p]))
                m->learned.drop[p] = true;
}

static char *identity(const struct model *m)
{
    return xasprintf("%s %s %s", m->name, m->url, m->id);
}

void model_learned_load(struct model *models, size_t n, const char *path)
{
    struct str text = {0};
    json *all = io_exists(path) && io_read_file(path, 1 << 20, &text, NULL) == 0
                    ? json_parse(str_c(&text), text.len, NULL)
                    : NULL;
    for (size_t i = 0; all && i < n; i++) {
        char *id = identity(&models[i]);
        if (json_is_object(json_get(all, id)))
            model_learned_read(&models[i], json_get(all, id));
        free(id);
    }
    json_free(all);
    str_free(&text);
}

int model_learned_save(const struct model *models, size_t n, const char *path, struct err *e)
{
    json *all = json_object();
    struct str text = {0};
    for (size_t i = 0; i < n; i++) {
        char *id = identity(&models[i]);
        if (!json_has(all, id))
            json_put(all, id, model_learned_json(&models[i]));
        free(id);
    }
    json_print(all, &text);
    str_addc(&text, '\n');
    int r = io_write_file(path, text.s, text.len, 0600, e);
    str_free(&text);
    json_free(all);
    return r;
}
