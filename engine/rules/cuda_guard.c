// The guard around a body that each thread does once.
#include "rules/cuda.h"

static bool is_name(const struct node *n, const char *name)
{
    return n && n->kind == N_IDENT && str_eq(n->name, name);
}

// i < n, n > i; or with `not`: i >= n, n <= i, !(i < n).
static const struct node *bound_of(const struct node *c, const char *var, bool not )
{
    if (not &&c->kind == N_UNARY && c->op == OP_NOT)
        return bound_of(c->a, var, false);
    if (c->kind != N_BINARY)
        return NULL;
    if (c->op == (not ? OP_GE : OP_LT) && is_name(c->a, var))
        return c->b;
    if (c->op == (not ? OP_LE : OP_GT) && is_name(c->b, var))
        return c->a;
    return NULL;
}

static bool only_return(const struct node *n)
{
    if (n->kind == N_BLOCK)
        return n->kids && !n->kids->next && only_return(n->kids);
    return n->kind == N_RETURN && !n->a;
}

bool cu_guard_find(const struct rule_source *s, struct cu_guard *g, char why[240])
{
    const struct node *n = s->t.root->kids;
    for (; n && !g->test; n = n->next) {
        if (n->kind == N_DECL && !g->decl) {
            for (const struct node *v = n->kids; v; v = v->next) {
                struct poly p = {0};
                if (v->a && !v->type->ptr)
                    cu_poly(s, v->a, &p);
                if (v->a && cu_is_global_id(s, &p, &g->l, 0) && !v->next && v == n->kids)
                    g->decl = n, g->var = v->name, g->type = v->type->base;
                poly_free(&p);
            }
        }
        if (n->kind == N_IF && g->decl) {
            g->bound = bound_of(n->a, g->var, false);
            if (!g->bound && !n->c && only_return(n->b))
                g->leaves = (g->bound = bound_of(n->a, g->var, true)) != NULL;
            if (g->bound)
                g->test = n;
            break;
        }
        if (n != g->decl && n->kind != N_PP && n->kind != N_DECL && n->kind != N_EMPTY)
            break;
    }
    if (!g->decl)
        snprintf(why, 240, "no variable is the thread's place in the grid");
    else if (!g->test)
        snprintf(why, 240, "no test \"%s < bound\" guards the body", g->var);
    else
        return true;
    return false;
}

const struct node *cu_guard_first(const struct cu_guard *g)
{
    return g->leaves ? g->test->next : parts_first(g->test->b);
}

const struct node *cu_guard_next(const struct cu_guard *g, const struct node *n)
{
    return g->leaves ? n->next : parts_next(g->test->b, n);
}

struct names {
    const struct rule_source *s;
    bool other;
};

static bool find_other(void *user, struct node *n)
{
    struct names *x = user;
    const struct var_info *v = n->kind == N_IDENT ? analysis_var(&x->s->a, n->name) : NULL;
    x->other |= (n->kind == N_IDENT && !(v && v->param)) || n->kind == N_MEMBER || n->kind == N_CALL ||
                n->kind == N_INDEX;
    return !x->other;
}

// Item k of a list of arguments.
static char *argument(const char *args, size_t k)
{
    for (; k; k--) {
        int depth = 0;
        for (; *args && (depth || *args != ','); args++)
            depth += *args == '(' ? 1 : *args == ')' ? -1 : 0;
        if (!*args)
            return NULL;
        args++;
    }
    size_t n = 0;
    for (int depth = 0; args[n] && (depth || args[n] != ','); n++)
        depth += args[n] == '(' ? 1 : args[n] == ')' ? -1 : 0;
    while (n && *args == ' ')
        args++, n--;
    return xstrndup(args, n);
}

bool cu_guard_bound(const struct rule_source *s, const struct cu_guard *g, struct str *out)
{
    return cu_launch_words(s, &g->l, g->bound, out);
}

bool cu_launch_words(const struct rule_source *s, const struct cu_launch *l, const struct node *n,
                     struct str *out)
{
    struct names x = {s, false};
    node_walk((struct node *)(uintptr_t)n, find_other, &x);
    struct str now = {0};
    node_text(&s->t, n, &now);
    // Names of parameters are not names of arguments: they are marked first, so that none is replaced twice.
    for (int round = 0; round < 2 && !x.other; round++)
        for (size_t i = 0; i < s->f.params.n && !x.other; i++) {
            struct str next = {0};
            char *mark = xasprintf("param_%zu_", i), *arg = argument(l->args, i);
            if (!cu_mentions(str_c(&now), round ? mark : s->f.params.v[i].name)) {
                free(mark);
                free(arg);
                continue;
            }
            x.other |= !arg;
            cu_replace(str_c(&now), round ? mark : s->f.params.v[i].name, round ? (arg ? arg : "") : mark,
                       &next);
            str_free(&now);
            now = next;
            free(mark);
            free(arg);
        }
    if (!x.other)
        str_add(out, str_c(&now));
    str_free(&now);
    return !x.other;
}
