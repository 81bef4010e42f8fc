#include "base/task_parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

bool task_word_next(const char *value, int *pos, struct task_word *w)
{
    while (isspace((unsigned char)value[*pos]))
        (*pos)++;
    *w = (struct task_word){value + *pos, *pos, 0};
    for (int depth = 0; value[*pos] && (depth > 0 || !isspace((unsigned char)value[*pos])); (*pos)++) {
        if (strchr("([", value[*pos]))
            depth++;
        else if (strchr(")]", value[*pos]))
            depth--;
    }
    w->len = *pos - w->at;
    return w->len > 0;
}

static const struct dist_row {
    const char *name;
    enum dist_kind kind;
    int numbers;
    bool floats, integers;
    const char *example;
} dists[] = {
    {"normal", DIST_NORMAL, 2, true, false, "normal(0,1)"},
    {"uniform", DIST_UNIFORM, 2, true, false, "uniform(0,1)"},
    {"int", DIST_INT, 2, true, true, "int(-8,8)"},
    {"zeros", DIST_ZEROS, 0, true, true, "zeros"},
    {"ones", DIST_ONES, 0, true, true, "ones"},
    {"arange", DIST_ARANGE, 0, true, true, "arange"},
    {"perm", DIST_PERM, 0, true, true, "perm"},
    {"sparse", DIST_SPARSE, 1, true, true, "sparse(0.1)"},
};

struct arg_parser {
    struct task_parser *p;
    const struct task_item *it;
    struct task_arg a;
    bool has_dist, has_align;
};

static const char *const dir_names[] = {"in", "out", "inout", "dim", "val", NULL};

static bool c_identifier(const char *s)
{
    static const char *const keywords[] = {"int",    "float",  "double", "long",  "short",  "char",
                                           "void",   "if",     "else",   "for",   "while",  "do",
                                           "return", "switch", "case",   "const", "break",  "static",
                                           "sizeof", "struct", "union",  "enum",  "extern", "goto"};
    if (!isalpha((unsigned char)s[0]) && s[0] != '_')
        return false;
    for (size_t i = 0; s[i]; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '_')
            return false;
    for (size_t i = 0; i < countof(keywords); i++)
        if (str_eq(s, keywords[i]))
            return false;
    return true;
}

static int parse_type(struct arg_parser *g, const struct task_word *w, int *name_len)
{
    int n = 0;
    while (n < w->len && w->s[n] != '[')
        n++;
    *name_len = n;
    char *name = xstrndup(w->s, (size_t)n);
    const char *known[DT_COUNT + 1] = {0};
    for (int i = 0; i < DT_COUNT; i++)
        known[i] = dtype_info((enum dtype)i)->name;
    int r = dtype_parse(name, &g->a.type);
    if (r < 0)
        task_error_nearest(g->p, g->it, w->at, name, known, "unknown type '%s'", name);
    free(name);
    return r;
}

// [M,N] after the type: expressions split at commas that stand in no bracket.
static int parse_shape_of(struct arg_parser *g, const struct task_word *w, int open)
{
    int end = w->len - 1;
    if (w->s[end] != ']')
        return task_error(g->p, g->it, w->at + w->len, "Close the shape: f32[M,N].", "expected ']'");
    int start = open + 1, depth = 0, r = 0;
    for (int i = open + 1; i <= end; i++) {
        char c = w->s[i];
        if (i == end || (c == ',' && depth == 0)) {
            if (g->a.rank == TASK_MAX_RANK)
                return task_error(g->p, g->it, w->at + start,
                                  "Give one extent as a product, such as f32[A*B,C].", "more than %d extents",
                                  TASK_MAX_RANK);
            if (task_parse_expr(g->p, g->it, w->at + start, w->s + start, i - start, &g->a.shape[g->a.rank]) <
                0)
                r = -1;
            else
                g->a.rank++;
            start = i + 1;
        }
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    return r;
}

static int parse_dist_numbers(struct arg_parser *g, const struct task_word *w, const struct dist_row *row,
                              int open)
{
    double x[2] = {0, 0};
    const char *s = w->s + open, *end = w->s + w->len;
    int n = 0;
    if (open < w->len) {
        for (s++; n < 2; n++) {
            char *after;
            x[n] = strtod(s, &after);
            if (after == s || after > end || !isfinite(x[n]))
                break;
            for (s = after; isspace((unsigned char)*s); s++)
                ;
            if (*s != ',') {
                n++;
                break;
            }
            s++;
        }
        if (*s != ')' || s + 1 != end)
            n = -1;
    }
    if (n != row->numbers)
        return task_error(g->p, g->it, w->at, "Write it as in the example.", "%s is written %s", row->name,
                          row->example);
    g->a.dist = (struct dist){row->kind, x[0], x[1]};
    return 0;
}

static const char *dist_wrong(const struct task_arg *a)
{
    const struct dtype_info *t = dtype_info(a->type);
    const struct dist *d = &a->dist;
    double low = t->is_signed ? -t->max - 1 : 0;
    if (d->kind == DIST_NORMAL && d->b < 0)
        return "a negative deviation";
    if (d->kind == DIST_UNIFORM && !(d->a < d->b))
        return "uniform(low,high) needs low < high";
    if (d->kind == DIST_INT && (d->a > d->b || d->a != floor(d->a) || d->b != floor(d->b)))
        return "int(low,high) needs whole numbers with low <= high";
    if (d->kind == DIST_INT &&
        (t->is_float ? fabs(d->a) > t->max || fabs(d->b) > t->max : d->a < low || d->b > t->max))
        return "int(low,high) leaves the range of the type";
    if (d->kind == DIST_SPARSE && !(d->a > 0 && d->a <= 1))
        return "sparse(density) needs a density over 0 and at most 1";
    return NULL;
}

static int parse_dist(struct arg_parser *g, const struct task_word *w)
{
    int n = 0;
    while (n < w->len && w->s[n] != '(')
        n++;
    char *name = xstrndup(w->s, (size_t)n);
    const char *known[countof(dists) + 2] = {0};
    const struct dist_row *row = NULL;
    for (size_t i = 0; i < countof(dists); i++) {
        known[i] = dists[i].name;
        if (str_eq(dists[i].name, name))
            row = &dists[i];
    }
    known[countof(dists)] = "align=N";
    int r = 0;
    if (!row)
        r = task_error_nearest(g->p, g->it, w->at, name, known, "neither a distribution nor align=N: '%s'",
                               name);
    else if (g->has_dist)
        r = task_error(g->p, g->it, w->at, "Keep one of them.", "a second distribution");
    else
        r = parse_dist_numbers(g, w, row, n);
    free(name);
    g->has_dist = true;
    if (r < 0)
        return -1;
    const struct dtype_info *t = dtype_info(g->a.type);
    if (!(t->is_float ? row->floats : row->integers))
        return task_error(g->p, g->it, w->at,
                          "Integers take int(low,high), zeros, ones, arange, perm or sparse.",
                          "%s gives fractions, and %s holds none", row->name, t->name);
    const char *wrong = dist_wrong(&g->a);
    return wrong ? task_error(g->p, g->it, w->at, "Correct the numbers.", "%s", wrong) : 0;
}

static int parse_align(struct arg_parser *g, const struct task_word *w)
{
    char *text = xstrndup(w->s + 6, (size_t)w->len - 6), *end;
    long n = strtol(text, &end, 10);
    bool good = end != text && !*end && n >= 1 && n <= 4096 && (n & (n - 1)) == 0;
    free(text);
    if (!good || g->has_align)
        return task_error(g->p, g->it, w->at + 6, "Write align=16 once: a power of two up to 4096.",
                          "an alignment that is no power of two, or given twice");
    g->a.align = (int)n;
    g->has_align = true;
    return 0;
}

static void default_dist(struct task_arg *a)
{
    const struct dtype_info *t = dtype_info(a->type);
    if (t->is_float)
        a->dist = (struct dist){DIST_NORMAL, 0, 1};
    else if (a->type == DT_BOOL)
        a->dist = (struct dist){DIST_INT, 0, 1};
    else
        a->dist = (struct dist){DIST_INT, t->is_signed ? -8 : 0, 8};
}

static int parse_buffer(struct arg_parser *g, int pos)
{
    struct task_word w;
    int r = 0;
    default_dist(&g->a);
    while (task_word_next(g->it->value, &pos, &w)) {
        if (w.len > 6 && str_starts(w.s, "align=")) {
            r |= parse_align(g, &w);
        } else if (g->a.dir == ARG_OUT) {
            r = task_error(g->p, g->it, w.at, "Only in and inout have a distribution.",
                           "'%.*s' behind an output, which starts poisoned", w.len, w.s);
        } else {
            r |= parse_dist(g, &w);
        }
    }
    if (g->a.rank == 0 && r == 0)
        r = task_error(g->p, g->it, 0, "Write its extents: f32[M,N]; a scalar is val f32 0.5.",
                       "a buffer without a shape");
    return r;
}

static int parse_value(struct arg_parser *g, int pos)
{
    struct task_word w, more;
    const struct dtype_info *t = dtype_info(g->a.type);
    if (!task_word_next(g->it->value, &pos, &w))
        return task_error(g->p, g->it, (int)strlen(g->it->value), "Write it at the end: val f32 1e-6.",
                          "a val without its value");
    char *text = xstrndup(w.s, (size_t)w.len), *end;
    double x = strtod(text, &end);
    bool good = end != text && !*end && isfinite(x) && fabs(x) <= t->max + (t->is_signed && !t->is_float);
    if (!t->is_float)
        good = good && x == floor(x) && (t->is_signed || x >= 0) && (x <= t->max);
    free(text);
    if (!good)
        return task_error(g->p, g->it, w.at, "Write a number that the type holds.",
                          "'%.*s' is no value of type %s", w.len, w.s, t->name);
    g->a.value = x;
    if (task_word_next(g->it->value, &pos, &more))
        return task_error(g->p, g->it, more.at, "Remove it.", "'%.*s' behind the value", more.len, more.s);
    return 0;
}

static int parse_arg(struct arg_parser *g)
{
    int pos = 0, name_len;
    struct task_word dir, type, more;
    if (!task_word_next(g->it->value, &pos, &dir))
        return task_error(g->p, g->it, 0, "Write for instance: in f32[N].",
                          "an argument without a direction and a type");
    int d = 0;
    while (dir_names[d] &&
           !((int)strlen(dir_names[d]) == dir.len && strncmp(dir_names[d], dir.s, (size_t)dir.len) == 0))
        d++;
    if (!dir_names[d]) {
        char *word = xstrndup(dir.s, (size_t)dir.len);
        task_error_nearest(g->p, g->it, dir.at, word, dir_names,
                           "an argument is in, out, inout, dim or val, not '%s'", word);
        free(word);
        return -1;
    }
    g->a.dir = (enum arg_dir)d;
    if (!task_word_next(g->it->value, &pos, &type))
        return task_error(g->p, g->it, dir.len, "Write for instance: in f32[N], dim i32, val f32 0.5.",
                          "an argument without a type");
    if (parse_type(g, &type, &name_len) < 0)
        return -1;
    bool scalar = g->a.dir == ARG_DIM || g->a.dir == ARG_VAL;
    if (scalar && name_len < type.len)
        return task_error(g->p, g->it, type.at + name_len, "Buffers are in, out or inout.",
                          "a %s with a shape", dir_names[d]);
    if (name_len < type.len && parse_shape_of(g, &type, name_len) < 0)
        return -1;
    if (g->a.dir == ARG_VAL)
        return parse_value(g, pos);
    if (g->a.dir != ARG_DIM)
        return parse_buffer(g, pos);
    enum dtype t = g->a.type;
    if (t != DT_I32 && t != DT_I64 && t != DT_U32 && t != DT_I16)
        return task_error(g->p, g->it, type.at, "Use i32, i64, u32 or i16.", "a dim of type %s",
                          dtype_info(t)->name);
    if (task_word_next(g->it->value, &pos, &more))
        return task_error(g->p, g->it, more.at, "Remove it: shapes give the values of dims.",
                          "'%.*s' behind a dim", more.len, more.s);
    return 0;
}

int task_set_arg(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    (void)k;
    struct arg_parser g = {.p = p, .it = it};
    if (!c_identifier(it->key))
        return task_error(p, it, -1, "Use the parameter's name as the C source has it.",
                          "'%s' is no C identifier", it->key);
    g.a.name = xstrdup(it->key);
    g.a.line = it->line;
    g.a.dim = -1;
    int r = parse_arg(&g);
    if (r == 0 && g.a.dir == ARG_DIM) {
        g.a.dim = (int)p->t->dims.n;
        vec_push(&p->t->dims, xstrdup(it->key));
    }
    // Also a wrong argument is kept, so that one mistake does not make its name unknown elsewhere.
    vec_push(&p->t->args, g.a);
    return r;
}
