// What a function body holds: variables, counted loops, accesses to memory, uses of scalars, calls.
#include "source/analysis_int.h"

#include "source/func.h"

const struct var_info *analysis_var(const struct analysis *a, const char *name)
{
    for (size_t i = 0; i < a->vars.n; i++)
        if (str_eq(a->vars.v[i].name, name))
            return &a->vars.v[i];
    return NULL;
}

static struct var_info *var_of(struct analysis *a, const char *name)
{
    return (struct var_info *)(uintptr_t)analysis_var(a, name);
}

// ---- variables

// Loops one after the other may each declare their counter: that is no shadowing that matters.
static bool own_counters(const struct node *old, const struct node *n)
{
    const struct node *loop = old ? old->up->up : NULL, *other = n->up->up;
    if (!loop || loop->kind != N_FOR || loop->a != old->up || other->kind != N_FOR || other->a != n->up)
        return false;
    for (const struct node *up = other; up; up = up->up)
        if (up == loop)
            return false;
    return old->type->ptr == n->type->ptr && str_eq(old->type->base, n->type->base);
}

static bool collect_vars(void *user, struct node *n)
{
    struct analysis *a = user;
    // Jumps and conditional lines: what runs after a statement is not what stands after it.
    a->has_asm_or_opaque |= n->kind == N_OPAQUE || n->kind == N_GOTO || (n->kind == N_PP && n->op);
    if (n->kind == N_VAR) {
        struct var_info *old = var_of(a, n->name);
        if (old)
            old->shadowed |= !own_counters(old->decl, n);
        else
            vec_push(&a->vars, (struct var_info){.name = n->name, .type = n->type, .decl = n});
    }
    if (n->kind == N_UNARY && n->op == OP_AND) {
        const struct node *of = n->a;
        while (of->kind == N_MEMBER && of->op == OP_DOT)
            of = of->a;
        if (of->kind == N_IDENT && var_of(a, of->name))
            var_of(a, of->name)->address_taken = true;
    }
    return true;
}

// ---- expressions

// A cast to one of these drops bits: (unsigned char)(i * 16) is no polynomial.
static bool is_narrow(const struct ctype *ty)
{
    static const char *const names[] = {"char",
                                        "signed char",
                                        "unsigned char",
                                        "short",
                                        "unsigned short",
                                        "bool",
                                        "_Bool",
                                        "int8_t",
                                        "uint8_t",
                                        "int16_t",
                                        "uint16_t",
                                        "short int",
                                        "unsigned short int"};
    for (size_t i = 0; i < countof(names); i++)
        if (str_eq(ty->base, names[i]))
            return true;
    return false;
}

bool expr_poly(const struct analysis *a, const struct node *n, struct poly *out)
{
    int64_t c;
    struct poly b;
    *out = (struct poly){0};
    if (node_const(a->t, n, &c)) {
        poly_const(out, c);
        return true;
    }
    switch (n->kind) {
    case N_IDENT: {
        const struct macro *m = ast_macro(a->t, n->name);
        const struct var_info *v = analysis_var(a, n->name);
        if (m || !v || !v->type || !ctype_is_int(v->type) || v->shadowed)
            return false;
        poly_atom(out, n->name);
        return true;
    }
    case N_CAST:
        return n->type && ctype_is_int(n->type) && !is_narrow(n->type) && expr_poly(a, n->a, out);
    case N_UNARY:
        if ((n->op != OP_SUB && n->op != OP_ADD) || !expr_poly(a, n->a, &b))
            return false;
        poly_add(out, &b, n->op == OP_SUB ? -1 : 1);
        poly_free(&b);
        return !out->bad;
    case N_BINARY:
        if ((n->op != OP_ADD && n->op != OP_SUB && n->op != OP_MUL) || !expr_poly(a, n->a, out))
            return false;
        if (!expr_poly(a, n->b, &b)) {
            poly_free(out);
            return false;
        }
        if (n->op == OP_MUL)
            poly_mul(out, &b);
        else
            poly_add(out, &b, n->op == OP_SUB ? -1 : 1);
        poly_free(&b);
        return !out->bad;
    default:
        return false;
    }
}

bool call_is_pure(const struct analysis *a, const char *name)
{
    static const char *const pure[] = {"sqrt", "exp",   "exp2",  "log",   "log2",  "log10", "sin",   "cos",
                                       "tan",  "tanh",  "fabs",  "fma",   "pow",   "fmax",  "fmin",  "floor",
                                       "ceil", "round", "trunc", "erf",   "expm1", "log1p", "rsqrt", "abs",
                                       "cbrt", "hypot", "atan",  "atan2", "sinh",  "cosh",  "asin",  "acos"};
    (void)a;
    size_t n = strlen(name);
    for (size_t i = 0; i < countof(pure); i++) {
        size_t m = strlen(pure[i]);
        if (strncmp(name, pure[i], m) == 0 && (n == m || (n == m + 1 && (name[m] == 'f' || name[m] == 'l'))))
            return true;
    }
    return false;
}

struct purity {
    const struct analysis *a;
    const char *why;
    char text[160];
};

static bool check_pure(void *user, struct node *n)
{
    struct purity *p = user;
    bool steps = (n->kind == N_UNARY || n->kind == N_POSTFIX) && (n->op == OP_INC || n->op == OP_DEC);
    if (n->kind == N_ASSIGN || steps)
        p->why = "it writes";
    if (n->kind == N_OPAQUE)
        p->why = "it holds code that was not understood";
    if (n->kind == N_CALL && !(n->a->kind == N_IDENT && call_is_pure(p->a, n->a->name))) {
        snprintf(p->text, sizeof p->text, "it calls %s", n->a->kind == N_IDENT ? n->a->name : "a function");
        p->why = p->text;
    }
    return !p->why;
}

struct answer analysis_yes(const char *why)
{
    struct answer a = {.v = TRI_YES};
    snprintf(a.why, sizeof a.why, "%s", why);
    return a;
}

struct answer analysis_answer(enum tri v, const char *fmt, ...)
{
    struct answer a = {.v = v};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a.why, sizeof a.why, fmt, ap);
    va_end(ap);
    return a;
}

struct answer expr_pure(const struct analysis *a, const struct node *expr)
{
    struct purity p = {.a = a};
    node_walk((struct node *)(uintptr_t)expr, check_pure, &p);
    return p.why ? analysis_answer(TRI_UNKNOWN, "%s", p.why) : analysis_yes("only reads");
}

// ---- what a statement writes

struct writing {
    const char *name;
    bool found;
};

static bool check_write(void *user, struct node *n)
{
    struct writing *w = user;
    const struct node *target = NULL;
    if (n->kind == N_ASSIGN)
        target = n->a;
    else if ((n->kind == N_UNARY || n->kind == N_POSTFIX) && (n->op == OP_INC || n->op == OP_DEC))
        target = n->a;
    else if (n->kind == N_VAR)
        w->found |= str_eq(n->name, w->name);
    else if (n->kind == N_OPAQUE)
        w->found = true;
    else if (n->kind == N_UNARY && n->op == OP_AND && n->a->kind == N_IDENT)
        w->found |= str_eq(n->a->name, w->name);
    while (target && target->kind == N_MEMBER && target->op == OP_DOT)
        target = target->a;
    w->found |= target && target->kind == N_IDENT && str_eq(target->name, w->name);
    return !w->found;
}

bool scalar_written(const struct analysis *a, const char *name, const struct node *stmt)
{
    struct writing w = {name, false};
    (void)a;
    node_walk((struct node *)(uintptr_t)stmt, check_write, &w);
    return w.found;
}

void analysis_run(struct analysis *a, struct ast *t, const struct func *f, bool no_alias)
{
    *a = (struct analysis){.t = t, .f = f, .no_alias = no_alias};
    for (size_t i = 0; f && i < f->params.n; i++)
        vec_push(&a->vars,
                 (struct var_info){.name = f->params.v[i].name, .type = f->params.v[i].type, .param = true});
    node_walk(t->root, collect_vars, a);
    analysis_find_loops(a);
    analysis_find_accesses(a);
}

void analysis_free(struct analysis *a)
{
    for (size_t i = 0; i < a->accesses.n; i++)
        poly_free(&a->accesses.v[i].sub);
    for (size_t i = 0; i < a->loops.n; i++) {
        poly_free(&a->loops.v[i]->lo_p);
        poly_free(&a->loops.v[i]->hi_p);
    }
    vec_free(&a->loops);
    vec_free(&a->accesses);
    vec_free(&a->scalars);
    vec_free(&a->calls);
    vec_free(&a->vars);
    vec_free(&a->positive);
}

char *analysis_fresh(const struct analysis *a, const char *prefix)
{
    char *name = xstrdup(prefix);
    for (int i = 2; memmem(a->t->ts->src, a->t->ts->len, name, strlen(name)); i++) {
        free(name);
        name = xasprintf("%s%d", prefix, i);
    }
    return name;
}
