#include "rules/rewrite.h"

#include "base/task.h"
#include "source/annot.h"
#include "source/edits.h"

#include <ctype.h>

static size_t line_start(const struct rule_source *s, size_t at)
{
    while (at && s->text[at - 1] != '\n')
        at--;
    return at;
}

char *rewrite_indent(const struct rule_source *s, const struct node *stmt)
{
    size_t at, len;
    node_bytes(&s->t, stmt, &at, &len);
    size_t start = line_start(s, at), end = start;
    while (end < at && (s->text[end] == ' ' || s->text[end] == '\t'))
        end++;
    return xstrndup(s->text + start, end - start);
}

void rewrite_replace(const struct rule_source *s, const struct node *n, const char *body, struct str *out)
{
    size_t at, len;
    node_bytes(&s->t, n, &at, &len);
    str_addn(out, s->text, at);
    str_add(out, body);
    str_addn(out, s->text + at + len, s->len - at - len);
}

void rewrite_before(const struct rule_source *s, const struct node *n, const char *line, struct str *out)
{
    size_t at, len;
    node_bytes(&s->t, n, &at, &len);
    char *indent = rewrite_indent(s, n);
    size_t start = line_start(s, at);
    bool alone = at - start == strlen(indent);
    str_addn(out, s->text, at);
    if (!alone)
        str_addf(out, "\n%s", indent);
    str_addf(out, "%s\n%s", line, indent);
    str_addn(out, s->text + at, s->len - at);
    free(indent);
}

void rewrite_lines(struct str *out, const char *indent, const char *code)
{
    while (*code) {
        size_t n = strcspn(code, "\n");
        // A preprocessor line may stand anywhere; an empty one needs no indentation.
        if (n)
            str_add(out, indent);
        str_addn(out, code, n);
        str_addc(out, '\n');
        code += n + (code[n] == '\n');
    }
}

// Byte offset just after the function's opening brace, in a text that may differ from s by earlier splices.
static int body_start(const struct rule_source *s, const struct str *text, size_t *at, struct err *e)
{
    struct tokens ts;
    tokens_read(&ts, str_c(text), text->len);
    struct func f;
    int r = func_find(&f, &ts, s->path, s->f.name, s->t.cxx, e);
    if (r == 0) {
        *at = ts.t.v[f.open].at + 1;
        func_free(&f);
    }
    tokens_free(&ts);
    return r;
}

static int insert_first(const struct rule_source *s, struct str *text, const char *line, struct err *e)
{
    size_t at = 0;
    if (body_start(s, text, &at, e) < 0)
        return -1;
    struct str ins = {0};
    str_addf(&ins, "\n%s", line);
    if (at < text->len && text->s[at] != '\n' && text->s[at] != '\r')
        str_addc(&ins, '\n');
    str_splice(text, at, 0, ins.s, ins.len);
    str_free(&ins);
    return 0;
}

int rewrite_at_start(const struct rule_source *s, struct str *text, const char *lines, struct err *e)
{
    struct str code = {0};
    rewrite_lines(&code, "    ", lines);
    if (code.len)
        code.s[--code.len] = 0;
    int r = insert_first(s, text, str_c(&code), e);
    str_free(&code);
    return r;
}

int rewrite_need_flag(const struct rule_source *s, struct str *text, const char *flag, struct err *e)
{
    for (size_t i = 0; s->task && i < s->task->cflags.n; i++)
        if (str_eq(s->task->cflags.v[i], flag))
            return 0;
    struct annots a;
    err_list errors = {0};
    annot_read(&a, str_c(text), text->len, s->path, &errors);
    vec_free(&errors);
    bool has = false;
    for (size_t i = 0; i < a.flags.n; i++)
        has |= str_eq(a.flags.v[i], flag);
    int r = 0;
    if (!has && a.flag_lines.n) {
        struct annot_text *line = &a.flag_lines.v[a.flag_lines.n - 1];
        struct str add = {0};
        str_addf(&add, " %s", flag);
        str_splice(text, line->at + line->len, 0, add.s, add.len);
        str_free(&add);
    } else if (!has) {
        char *line = xasprintf("    // flags: %s", flag);
        r = insert_first(s, text, line, e);
        free(line);
    }
    annot_free(&a);
    return r;
}

int rewrite_add_knob(const struct rule_source *s, struct str *text, const char *name, const char *value,
                     const char *const *values, struct err *e)
{
    struct str line = {0};
    size_t n = 0;
    while (values[n])
        n++;
    annot_knob_line(&line, name, value, values, n);
    if (line.len && line.s[line.len - 1] == '\n')
        line.s[--line.len] = 0;
    int r = insert_first(s, text, str_c(&line), e);
    str_free(&line);
    return r;
}

static bool word_occurs(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n) {
        bool left = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        bool right = !(isalnum((unsigned char)at[n]) || at[n] == '_');
        if (left && right)
            return true;
    }
    return false;
}

char *rewrite_name(const struct rule_source *s, const char *prefix)
{
    char *name = xstrdup(prefix);
    for (int i = 2; word_occurs(s->text, name); i++) {
        free(name);
        name = xasprintf("%s%d", prefix, i);
    }
    return name;
}

const char *rewrite_param(const json *params, const char *name, const char *otherwise)
{
    return json_str_or(params, name, otherwise);
}

void rewrite_site(const struct rule_source *s, rule_sites *out, const struct node *stmt, bool ok,
                  json *params, const char *why, ...)
{
    struct rule_site site = {
        .where = site_of(&s->a, stmt), .line = node_line(&s->t, stmt), .ok = ok, .params = params};
    va_list ap;
    va_start(ap, why);
    vsnprintf(site.why, sizeof site.why, why, ap);
    va_end(ap);
    vec_push(out, site);
}

bool rewrite_has_pragma(const struct rule_source *s, const struct node *stmt)
{
    (void)s;
    const struct node *before = NULL;
    for (const struct node *k = stmt->up ? stmt->up->kids : NULL; k && k != stmt; k = k->next)
        before = k;
    return before && before->kind == N_PRAGMA;
}

struct node *rewrite_find(const struct rule_source *s, const char *where, struct err *e)
{
    struct node *n = site_find(&s->a, where);
    if (!n)
        err_set(e, ERR_FAIL, "", "there is no place \"%s\" in this source", where);
    return n;
}
