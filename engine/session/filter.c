#include "session/filter.h"

#include "base/str.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

enum op { OP_THERE, OP_EQ, OP_NE, OP_LE, OP_GE, OP_LT, OP_GT, OP_HAS };

struct cond {
    int field;
    enum op op;
    double number;
    char *text;
};

struct filter {
    const struct filter_field *fields;
    VEC(struct cond) conds;
};

// Longest spelling first.
static const struct {
    const char *sign;
    enum op op;
    bool text, number;
} signs[] = {{"!=", OP_NE, true, true}, {"<=", OP_LE, false, true}, {">=", OP_GE, false, true},
             {"==", OP_EQ, true, true}, {"=", OP_EQ, true, true},   {"<", OP_LT, false, true},
             {">", OP_GT, false, true}, {"~", OP_HAS, true, false}};

static int unknown_field(const char *name, const struct filter_field *fields, int n, struct err *e)
{
    struct str hint = {0};
    str_add(&hint, "Fields:");
    for (int i = 0; i < n; i++)
        str_addf(&hint, " %s", fields[i].name);
    err_set(e, ERR_USAGE, str_c(&hint), "%s is not a field to filter by", name);
    str_free(&hint);
    return -1;
}

static int parse_number(const char *text, double *out, struct err *e)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"", 1}, {"%", 0.01}, {"x", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
    char *end;
    *out = strtod(text, &end);
    for (size_t i = 0; end != text && i < countof(units); i++)
        if (str_eq(end, units[i].unit)) {
            *out *= units[i].factor;
            return 0;
        }
    return err_set(e, ERR_USAGE, "Write a number, as in speedup>1.5.", "%s is not a number", text);
}

static int parse_cond(struct filter *f, const char *word, int n, struct err *e)
{
    size_t name_len = 0;
    while (isalnum((unsigned char)word[name_len]) || word[name_len] == '_')
        name_len++;
    char *name = xstrndup(word, name_len);
    struct cond c = {.field = -1, .op = OP_THERE};
    for (int i = 0; i < n; i++)
        if (str_eq(f->fields[i].name, name))
            c.field = i;
    int r = c.field < 0 ? unknown_field(name, f->fields, n, e) : 0;
    free(name);
    const char *rest = word + name_len;
    if (r < 0 || !*rest) {
        if (r == 0)
            vec_push(&f->conds, c);
        return r;
    }
    bool is_text = f->fields[c.field].is_text;
    for (size_t i = 0; i < countof(signs); i++) {
        if (!str_starts(rest, signs[i].sign))
            continue;
        if (is_text ? !signs[i].text : !signs[i].number)
            return err_set(e, ERR_USAGE, is_text ? "Use =, != or ~ (contains)." : "Use = != < <= > >=.",
                           "%s cannot be compared with %s", f->fields[c.field].name, signs[i].sign);
        c.op = signs[i].op;
        rest += strlen(signs[i].sign);
        if (!is_text && parse_number(rest, &c.number, e) < 0)
            return -1;
        c.text = is_text ? xstrdup(rest) : NULL;
        vec_push(&f->conds, c);
        return 0;
    }
    return err_set(e, ERR_USAGE, "Write FIELD>VALUE, as in speedup>1.5 op=tune.",
                   "cannot read the condition %s", word);
}

int filter_parse(const char *text, const struct filter_field *fields, int n, struct filter **out,
                 struct err *e)
{
    char **words = str_words(text, NULL);
    if (!words)
        return err_set(e, ERR_USAGE, "Close the quotation mark.", "an open quotation mark in %s", text);
    struct filter *f = xcalloc(1, sizeof *f);
    f->fields = fields;
    int r = 0;
    for (char **w = words; *w && r == 0; w++)
        r = parse_cond(f, *w, n, e);
    free(words);
    if (r < 0)
        filter_free(f);
    else
        *out = f;
    return r;
}

void filter_free(struct filter *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->conds.n; i++)
        free(f->conds.v[i].text);
    vec_free(&f->conds);
    free(f);
}

static bool holds(const struct cond *c, bool is_text, struct filter_value v)
{
    if (c->op == OP_THERE)
        return is_text ? v.text && *v.text : !isnan(v.number) && v.number != 0;
    if (is_text) {
        const char *text = v.text ? v.text : "";
        return c->op == OP_HAS ? strcasestr(text, c->text) != NULL
                               : str_eq(text, c->text) == (c->op == OP_EQ);
    }
    if (isnan(v.number))
        return false;
    switch (c->op) {
    case OP_EQ:
        return v.number == c->number;
    case OP_NE:
        return v.number != c->number;
    case OP_LT:
        return v.number < c->number;
    case OP_LE:
        return v.number <= c->number;
    case OP_GT:
        return v.number > c->number;
    default:
        return v.number >= c->number;
    }
}

bool filter_match(const struct filter *f, filter_get *get, const void *thing)
{
    for (size_t i = 0; i < f->conds.n; i++) {
        const struct cond *c = &f->conds.v[i];
        if (!holds(c, f->fields[c->field].is_text, get(thing, c->field)))
            return false;
    }
    return true;
}
