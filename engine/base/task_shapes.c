#include "base/task_parse.h"

#include <ctype.h>
#include <math.h>

enum { SHAPE_BYTES_BITS = 40 };

bool task_lookup_dim(void *user, const char *name, int64_t *value)
{
    const struct task_dims *d = user;
    for (size_t i = 0; i < d->t->dims.n; i++)
        if (str_eq(d->t->dims.v[i], name)) {
            *value = d->dims[i];
            return true;
        }
    return false;
}

int task_elements(const struct task *t, const struct task_arg *a, const int64_t *dims, int64_t *out,
                  struct err *e)
{
    struct task_dims user = {t, dims};
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++) {
        int64_t extent;
        if (expr_eval(a->shape[i], task_lookup_dim, &user, &extent, e) < 0)
            return -1;
        if (extent < 0)
            return err_set(e, ERR_USAGE,
                           "Correct the shape of the argument, or require what makes it positive.",
                           "extent %d of '%s' is %lld", i + 1, a->name, (long long)extent);
        if (__builtin_mul_overflow(n, extent, &n) ||
            n > ((int64_t)1 << SHAPE_BYTES_BITS) / (int64_t)dtype_info(a->type)->size)
            return err_set(e, ERR_USAGE, "Choose smaller sizes.", "'%s' would be over 2^%d bytes", a->name,
                           SHAPE_BYTES_BITS);
    }
    *out = n;
    return 0;
}

bool task_allows(const struct task *t, const int64_t *dims)
{
    struct task_dims user = {t, dims};
    for (size_t i = 0; i < t->require.n; i++) {
        int64_t v;
        if (expr_eval(t->require.v[i], task_lookup_dim, &user, &v, NULL) < 0 || v == 0)
            return false;
    }
    return true;
}

bool task_eval(const struct task *t, const struct expr *x, const int64_t *dims, int64_t *out)
{
    struct task_dims user = {t, dims};
    return x && expr_eval(x, task_lookup_dim, &user, out, NULL) == 0;
}

void task_shape_free(struct task_shape *s)
{
    free(s->name);
    free(s->dims);
    *s = (struct task_shape){0};
}

static int dim_index(const struct task *t, const char *name)
{
    for (size_t i = 0; i < t->dims.n; i++)
        if (str_eq(t->dims.v[i], name))
            return (int)i;
    return -1;
}

// The largest value that a dim's type holds.
static double dim_max(const struct task *t, int dim)
{
    for (size_t i = 0; i < t->args.n; i++)
        if (t->args.v[i].dir == ARG_DIM && t->args.v[i].dim == dim)
            return dtype_info(t->args.v[i].type)->max;
    return 0;
}

struct shape_parser {
    struct task_parser *p;
    const struct task_item *it;
    struct task_shape *s;
    bool weighed;
};

static int parse_weight(struct shape_parser *g, const struct task_word *w)
{
    char *text = xstrndup(w->s + 7, (size_t)w->len - 7), *end;
    double x = strtod(text, &end);
    bool good = end != text && !*end && isfinite(x) && x > 0;
    free(text);
    if (!good || g->weighed)
        return task_error(g->p, g->it, w->at + 7, "Write weight=2 once: a number over 0.",
                          "a weight that is no number over 0, or given twice");
    g->s->weight = x;
    g->weighed = true;
    return 0;
}

static int parse_dim(struct shape_parser *g, const struct task_word *w, int eq)
{
    struct task *t = g->p->t;
    char *name = xstrndup(w->s, (size_t)eq);
    int d = dim_index(t, name), r = -1;
    struct expr *x = NULL;
    int64_t v = 0;
    struct err e = {0};
    if (d < 0) {
        vec_push(&t->dims, NULL); // a NULL behind the names ends the list of what is known
        t->dims.n--;
        task_error_nearest(g->p, g->it, w->at, name, (const char *const *)t->dims.v,
                           "'%s' is no dim of this task", name);
    } else if (g->s->dims[d]) {
        task_error(g->p, g->it, w->at, "Keep one of them.", "'%s' is given twice", name);
    } else if (task_parse_expr(g->p, g->it, w->at + eq + 1, w->s + eq + 1, w->len - eq - 1, &x) == 0) {
        if (expr_eval(x, NULL, NULL, &v, &e) < 0)
            task_error(g->p, g->it, w->at + eq + 1, "Write a number, such as 4096 or 16*1024.", "%s", e.msg);
        else if (v < 1 || (double)v > dim_max(t, d))
            task_error(g->p, g->it, w->at + eq + 1, "Choose a size from 1 up that the type of the dim holds.",
                       "'%s' cannot be %lld", name, (long long)v);
        else
            r = 0;
    }
    if (d >= 0 && !g->s->dims[d])
        g->s->dims[d] = r == 0 ? v : -1; // -1: given, and already complained about
    expr_free(x);
    free(name);
    return r;
}

static int parse_mark(struct shape_parser *g, const struct task_word *w)
{
    static const char *const known[] = {"test", "bench", "weight=N", NULL};
    char *word = xstrndup(w->s, (size_t)w->len);
    int r = 0;
    if (str_eq(word, "test"))
        g->s->test = true;
    else if (str_eq(word, "bench"))
        g->s->bench = true;
    else
        r = task_error_nearest(g->p, g->it, w->at, word, known,
                               "expected DIM=SIZE, test, bench or weight=N, not '%s'", word);
    free(word);
    return r;
}

static int parse_shape(struct shape_parser *g)
{
    struct task_word w;
    int r = 0;
    for (int pos = 0; task_word_next(g->it->value, &pos, &w);) {
        const char *eq = memchr(w.s, '=', (size_t)w.len);
        if (w.len >= 7 && str_starts(w.s, "weight="))
            r |= parse_weight(g, &w);
        else if (eq)
            r |= parse_dim(g, &w, (int)(eq - w.s));
        else
            r |= parse_mark(g, &w);
    }
    for (size_t i = 0; i < g->p->t->dims.n; i++)
        if (g->s->dims[i] == 0)
            r = task_error(g->p, g->it, (int)strlen(g->it->value), "Give every dim of [args] a size.",
                           "the shape '%s' gives no '%s'", g->s->name, g->p->t->dims.v[i]);
    if (r == 0 && !g->s->test && !g->s->bench)
        r = task_error(g->p, g->it, (int)strlen(g->it->value), "Add test, bench or both.",
                       "the shape '%s' is neither tested nor timed", g->s->name);
    if (g->weighed && !g->s->bench)
        r = task_error(g->p, g->it, 0, "Add bench, or remove the weight.",
                       "a weight on a shape that is not timed");
    return r;
}

static void check_require(struct task_parser *p, const struct task_item *it, const struct task_shape *s)
{
    struct task_dims user = {p->t, s->dims};
    for (size_t i = 0; i < p->t->require.n; i++) {
        int64_t v;
        struct err e = {0};
        if (expr_eval(p->t->require.v[i], task_lookup_dim, &user, &v, &e) < 0)
            task_error(p, it, 0, e.hint, "require cannot be computed: %s", e.msg);
        else if (!v)
            task_error(p, it, 0, "Change the sizes, or the requirement.",
                       "the shape '%s' breaks require = %s", s->name, expr_text(p->t->require.v[i]));
    }
}

void task_check_shape(struct task_parser *p, const struct task_item *it, const struct task_shape *s)
{
    struct task *t = p->t;
    check_require(p, it, s);
    for (size_t i = 0; i < t->args.n; i++) {
        int64_t n;
        struct err e = {0};
        if (t->args.v[i].dir > ARG_INOUT || task_elements(t, &t->args.v[i], s->dims, &n, &e) == 0)
            continue;
        task_error(p, it, 0, e.hint, "%s", e.msg);
        return; // the other buffers have the same sizes
    }
    const struct expr *metrics[] = {t->metric_bytes, t->metric_flops};
    for (size_t i = 0; i < countof(metrics); i++) {
        int64_t v;
        if (metrics[i] && s->bench && (!task_eval(t, metrics[i], s->dims, &v) || v < 1))
            task_error(p, it, 0, "A metric counts bytes or operations: over 0 at each bench shape.",
                       "the metric %s cannot be computed, or is not positive, at '%s'", expr_text(metrics[i]),
                       s->name);
    }
}

int task_set_shape(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    (void)k;
    for (int i = 0; it->key[i]; i++)
        if (!isalnum((unsigned char)it->key[i]) && !strchr("._-", it->key[i]))
            return task_error(p, it, -1, "Use letters, digits, '.', '_' and '-'.",
                              "'%s' cannot be the name of a shape", it->key);
    struct task_shape s = {.name = xstrdup(it->key), .weight = 1};
    s.dims = xcalloc(p->t->dims.n + 1, sizeof *s.dims);
    struct shape_parser g = {p, it, &s, false};
    int r = parse_shape(&g);
    vec_push(&p->t->shapes, s);
    return r;
}
