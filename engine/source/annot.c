#include "source/annot.h"

#include <ctype.h>
#include <string.h>

enum annot_kind { ANNOT_NONE, ANNOT_KNOB, ANNOT_LAUNCH, ANNOT_SCRATCH, ANNOT_FLAGS };
static const char *const annot_words[] = {[ANNOT_KNOB] = "knob:",
                                          [ANNOT_LAUNCH] = "launch:",
                                          [ANNOT_SCRATCH] = "scratch:",
                                          [ANNOT_FLAGS] = "flags:"};

// The kind of a comment; *text and *n receive what stands behind the word, trimmed.
static enum annot_kind annot_parse(const char *c, size_t len, const char **text, size_t *n)
{
    if (len < 2)
        return ANNOT_NONE;
    const char *p = c + 2, *end = c + len;
    if (c[1] == '*' && len >= 4)
        end -= 2;
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    for (size_t k = ANNOT_KNOB; k < countof(annot_words); k++) {
        size_t w = strlen(annot_words[k]);
        if ((size_t)(end - p) >= w && memcmp(p, annot_words[k], w) == 0) {
            for (p += w; p < end && isspace((unsigned char)*p);)
                p++;
            *text = p;
            *n = (size_t)(end - p);
            return (enum annot_kind)k;
        }
    }
    return ANNOT_NONE;
}

bool annot_is(const char *comment, size_t len)
{
    const char *text;
    size_t n;
    return annot_parse(comment, len, &text, &n) != ANNOT_NONE;
}

static bool is_name(const char *p, const char *end)
{
    if (p == end || isdigit((unsigned char)*p))
        return false;
    for (; p < end; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    return true;
}

// "#define NAME value": where name and value stand. Function-like macros have no value to tune.
static bool define_parts(const struct tokens *ts, const struct token *t, const char **name, size_t *nn,
                         size_t *at, size_t *vn)
{
    char word[32];
    if (strcmp(token_pp_word(ts, (size_t)(t - ts->t.v), word), "define") != 0)
        return false;
    const char *p = ts->src + t->at, *end = p + t->len;
    p = strstr(p, "define") + 6;
    while (p < end && isspace((unsigned char)*p))
        p++;
    const char *q = p;
    while (q < end && (isalnum((unsigned char)*q) || *q == '_'))
        q++;
    *name = p;
    *nn = (size_t)(q - p);
    if (q == p || q == end || *q == '(')
        return false;
    while (q < end && isspace((unsigned char)*q))
        q++;
    *at = (size_t)(q - ts->src);
    *vn = (size_t)(end - q);
    return *vn > 0;
}

// "const int NAME = value;" on the comment's line: the last `=` before the comment.
static bool decl_parts(const struct tokens *ts, size_t last, const char **name, size_t *nn, size_t *at,
                       size_t *vn)
{
    uint32_t line = ts->t.v[last].line;
    if (!token_op(ts, last, OP_SEMI))
        return false;
    for (size_t i = last; i > 1 && ts->t.v[i - 1].line == line; i--)
        if (token_op(ts, i - 1, OP_ASSIGN) && ts->t.v[i - 2].kind == TOK_IDENT && i < last) {
            const struct token *id = &ts->t.v[i - 2];
            *name = ts->src + id->at;
            *nn = id->len;
            *at = ts->t.v[i].at;
            *vn = ts->t.v[last - 1].at + ts->t.v[last - 1].len - *at;
            return true;
        }
    return false;
}

// Reads a knob comment; tok is the last token before it.
static int read_knob(struct annots *a, const struct tokens *ts, size_t tok, const struct comment *c,
                     const char *list, size_t n, const char *path, err_list *errors)
{
    const char *name = NULL;
    size_t nn = 0, at = 0, vn = 0;
    bool found = false;
    if (tok < ts->t.n && ts->t.v[tok].kind == TOK_PP)
        found = define_parts(ts, &ts->t.v[tok], &name, &nn, &at, &vn);
    else if (tok < ts->t.n && ts->t.v[tok].line == c->line)
        found = decl_parts(ts, tok, &name, &nn, &at, &vn);
    if (!found || !is_name(name, name + nn)) {
        err_list_add(errors, path, (int)c->line, (int)c->col,
                     "write it behind the constant: #define BM 4 // knob: 2 4 8",
                     "a knob comment without a constant before it on its line");
        return -1;
    }
    struct knob k = {.line = c->line, .value_at = at, .value_len = vn};
    char *text = xstrndup(list, n);
    for (char *p = text; *p; p++)
        if (*p == ',')
            *p = ' ';
    char **words = str_words(text, &k.n);
    free(text);
    k.name = xstrndup(name, nn);
    const char *problem = !words                  ? "the list of values has an open quote"
                          : k.n == 0              ? "the list of values is empty"
                          : annot_knob(a, k.name) ? "this knob is there twice"
                                                  : NULL;
    if (problem) {
        err_list_add(errors, path, (int)c->line, (int)c->col, "write: #define BM 4 // knob: 2 4 8",
                     "knob %s: %s", k.name, problem);
        free(k.name);
        free(words);
        return -1;
    }
    k.value = xstrndup(ts->src + at, vn);
    k.values = words;
    vec_push(&a->knobs, k);
    return 0;
}

static int read_flags(struct annots *a, const char *text, const struct comment *c, const char *path,
                      err_list *errors)
{
    size_t n = 0;
    char **w = str_words(text, &n);
    if (!w || n == 0) {
        err_list_add(errors, path, (int)c->line, (int)c->col, "write: // flags: -funroll-loops",
                     w ? "a flags comment without a flag" : "a flags comment with an open quote");
        free(w);
        return -1;
    }
    for (size_t i = 0; i < n; i++)
        vec_push(&a->flags, xstrdup(w[i]));
    free(w);
    return 0;
}

static int read_comment(struct annots *a, const struct tokens *ts, size_t tok, const struct comment *c,
                        const char *path, err_list *errors)
{
    const char *text;
    size_t n;
    enum annot_kind kind = annot_parse(ts->src + c->at, c->len, &text, &n);
    if (kind == ANNOT_NONE)
        return 0;
    if (kind == ANNOT_KNOB)
        return read_knob(a, ts, tok, c, text, n, path, errors);
    struct annot_text x = {
        .line = c->line, .col = c->col, .at = c->at, .len = c->len, .text = xstrndup(text, n)};
    int rc = 0;
    if (kind == ANNOT_FLAGS) {
        rc = read_flags(a, x.text, c, path, errors);
    } else if (n == 0) {
        err_list_add(errors, path, (int)c->line, (int)c->col,
                     "say what is launched or which buffer is wanted", "an empty %s comment",
                     annot_words[kind]);
        rc = -1;
    }
    if (kind == ANNOT_FLAGS)
        vec_push(&a->flag_lines, x);
    else if (kind == ANNOT_LAUNCH)
        vec_push(&a->launches, x);
    else
        vec_push(&a->scratch, x);
    return rc;
}

// Calls back for each comment with the index of the last token before it (SIZE_MAX: none).
typedef int comment_fn(void *user, const struct tokens *ts, size_t tok, const struct comment *c);
static int each_comment(const struct tokens *ts, comment_fn *fn, void *user)
{
    int rc = 0;
    size_t tok = 0;
    for (size_t i = 0; i < ts->comments.n; i++) {
        const struct comment *c = &ts->comments.v[i];
        while (tok < ts->t.n && ts->t.v[tok].at < c->at)
            tok++;
        bool off = tok < ts->t.n && ts->t.v[tok].inactive && tok > 0 && ts->t.v[tok - 1].inactive;
        if (!off && fn(user, ts, tok ? tok - 1 : SIZE_MAX, c) != 0)
            rc = -1;
    }
    return rc;
}

struct reader {
    struct annots *a;
    const char *path;
    err_list *errors;
};
static int read_one(void *user, const struct tokens *ts, size_t tok, const struct comment *c)
{
    struct reader *r = user;
    return read_comment(r->a, ts, tok, c, r->path, r->errors);
}

int annot_read(struct annots *a, const char *text, size_t len, const char *path, err_list *errors)
{
    *a = (struct annots){0};
    struct tokens ts;
    tokens_read(&ts, text, len);
    err_list own = {0};
    struct reader r = {a, path, errors ? errors : &own};
    int rc = each_comment(&ts, read_one, &r);
    vec_free(&own);
    tokens_free(&ts);
    return rc;
}

static void texts_free(struct annot_text *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(v[i].text);
}

void annot_free(struct annots *a)
{
    for (size_t i = 0; i < a->knobs.n; i++) {
        free(a->knobs.v[i].name);
        free(a->knobs.v[i].value);
        free(a->knobs.v[i].values);
    }
    texts_free(a->launches.v, a->launches.n);
    texts_free(a->scratch.v, a->scratch.n);
    texts_free(a->flag_lines.v, a->flag_lines.n);
    for (size_t i = 0; i < a->flags.n; i++)
        free(a->flags.v[i]);
    vec_free(&a->knobs);
    vec_free(&a->launches);
    vec_free(&a->scratch);
    vec_free(&a->flag_lines);
    vec_free(&a->flags);
}

const struct knob *annot_knob(const struct annots *a, const char *name)
{
    for (size_t i = 0; i < a->knobs.n; i++)
        if (strcmp(a->knobs.v[i].name, name) == 0)
            return &a->knobs.v[i];
    return NULL;
}

int annot_set_knob(const char *text, size_t len, const char *name, const char *value, struct str *out,
                   struct err *e)
{
    struct annots a;
    annot_read(&a, text, len, "kernel", NULL);
    const struct knob *k = annot_knob(&a, name);
    int rc = 0;
    if (!k) {
        rc = err_set(e, ERR_FAIL, "knobs are constants with a comment: #define BM 4 // knob: 2 4 8",
                     "the source has no knob '%s'", name);
    } else if (!*value || strpbrk(value, "\n\r;\\\"'") || strstr(value, "/*") || strstr(value, "//")) {
        rc = err_set(e, ERR_USAGE, "give a number or a name", "'%s' cannot be a knob's value", value);
    } else {
        str_addn(out, text, k->value_at);
        str_add(out, value);
        str_addn(out, text + k->value_at + k->value_len, len - k->value_at - k->value_len);
    }
    annot_free(&a);
    return rc;
}

struct stripper {
    struct str *out, *said;
    size_t from; // bytes up to here are written
    const struct annots *a;
};

static void say(struct stripper *s, enum annot_kind kind, const char *text, size_t n, uint32_t line)
{
    if (!s->said)
        return;
    if (kind == ANNOT_KNOB) {
        for (size_t i = 0; i < s->a->knobs.n; i++)
            if (s->a->knobs.v[i].line == line)
                str_addf(s->said, "knob %s = %s (tried %.*s)\n", s->a->knobs.v[i].name,
                         s->a->knobs.v[i].value, (int)n, text);
        return;
    }
    size_t w = strlen(annot_words[kind]) - 1;
    str_addf(s->said, "%.*s %.*s\n", (int)w, annot_words[kind], (int)n, text);
}

static int strip_one(void *user, const struct tokens *ts, size_t tok, const struct comment *c)
{
    struct stripper *s = user;
    const char *text;
    size_t n, at = c->at, end = c->at + c->len;
    enum annot_kind kind = annot_parse(ts->src + c->at, c->len, &text, &n);
    (void)tok;
    if (kind == ANNOT_NONE)
        return 0;
    say(s, kind, text, n, c->line);
    while (at > s->from && (ts->src[at - 1] == ' ' || ts->src[at - 1] == '\t'))
        at--;
    bool alone_before = at == 0 || ts->src[at - 1] == '\n';
    size_t after = end;
    while (after < ts->len && (ts->src[after] == ' ' || ts->src[after] == '\t' || ts->src[after] == '\r'))
        after++;
    bool alone = alone_before && (after >= ts->len || ts->src[after] == '\n');
    if (alone)
        end = after < ts->len ? after + 1 : after;
    else if (after < ts->len && ts->src[after] != '\n')
        at = c->at; // code follows: keep what separated the two
    str_addn(s->out, ts->src + s->from, at - s->from);
    s->from = end;
    return 0;
}

void annot_strip(const char *text, size_t len, struct str *out, struct str *said)
{
    struct annots a;
    annot_read(&a, text, len, "kernel", NULL);
    struct tokens ts;
    tokens_read(&ts, text, len);
    struct stripper s = {.out = out, .said = said, .a = &a};
    each_comment(&ts, strip_one, &s);
    str_addn(out, text + s.from, len - s.from);
    tokens_free(&ts);
    annot_free(&a);
}

void annot_knob_line(struct str *out, const char *name, const char *value, const char *const *values,
                     size_t n)
{
    str_addf(out, "#define %s %s // knob:", name, value);
    for (size_t i = 0; i < n; i++)
        str_addf(out, " %s", values[i]);
    str_addc(out, '\n');
}
