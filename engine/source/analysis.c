// What a function body holds: variables, counted loops, accesses to memory, uses of scalars, calls.
#include "source/analysis.h"

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

static struct answer yes(const char *why)
{
    struct answer a = {.v = TRI_YES};
    snprintf(a.why, sizeof a.why, "%s", why);
    return a;
}

__attribute__((format(printf, 2, 3))) static struct answer answer(enum tri v, const char *fmt, ...)
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
    return p.why ? answer(TRI_UNKNOWN, "%s", p.why) : yes("only reads");
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

// ---- counted loops

static bool leaves(const struct node *body)
{
    return node_contains(body, N_BREAK) || node_contains(body, N_GOTO) || node_contains(body, N_RETURN) ||
           node_contains(body, N_CONTINUE) || node_contains(body, N_OPAQUE) || node_contains(body, N_LABEL) ||
           node_contains(body, N_PP);
}

struct bound_check {
    const struct analysis *a;
    const struct node *body;
    bool changes;
};

static bool check_bound(void *user, struct node *n)
{
    struct bound_check *c = user;
    const struct var_info *v = n->kind == N_IDENT ? analysis_var(c->a, n->name) : NULL;
    if (n->kind == N_IDENT && (scalar_written(c->a, n->name, c->body) || (v && v->address_taken)))
        c->changes = true;
    // A global may be changed by whatever is called.
    if (n->kind == N_IDENT && !v && !ast_macro(c->a->t, n->name) && node_contains(c->body, N_CALL))
        c->changes = true;
    if (n->kind == N_INDEX || n->kind == N_CALL || n->kind == N_MEMBER || n->kind == N_ASSIGN ||
        n->kind == N_POSTFIX ||
        (n->kind == N_UNARY && (n->op == OP_MUL || n->op == OP_INC || n->op == OP_DEC)))
        c->changes = true;
    return !c->changes;
}

// A value that is no integer, as far as can be seen.
static bool check_integer(void *user, struct node *n)
{
    struct bound_check *c = user;
    const struct var_info *v = n->kind == N_IDENT ? analysis_var(c->a, n->name) : NULL;
    const struct macro *m = n->kind == N_IDENT && !v ? ast_macro(c->a->t, n->name) : NULL;
    const char *text = n->kind == N_NUM ? n->name : m ? m->body : "";
    c->changes |= (v && (!v->type || !ctype_is_int(v->type))) || strchr(text, '.') || n->kind == N_STR;
    return n->kind != N_CAST || !ctype_is_int(n->type);
}

static bool is_integer(const struct analysis *a, const struct node *n)
{
    struct bound_check c = {a, NULL, false};
    node_walk((struct node *)(uintptr_t)n, check_integer, &c);
    return !c.changes;
}

static bool bound_fixed(const struct analysis *a, const struct node *bound, const struct node *body)
{
    struct bound_check c = {a, body, false};
    node_walk((struct node *)(uintptr_t)bound, check_bound, &c);
    return !c.changes;
}

static bool read_init(struct loop *l, struct node *init)
{
    if (init && init->kind == N_DECL && init->kids && !init->kids->next && init->kids->a) {
        l->var = init->kids->name;
        l->type = init->kids->type;
        l->lo = init->kids->a;
        l->declared_inside = true;
        return true;
    }
    if (init && init->kind == N_ASSIGN && init->op == OP_ASSIGN && init->a->kind == N_IDENT) {
        l->var = init->a->name;
        l->lo = init->b;
        return true;
    }
    return false;
}

static bool read_cond(struct loop *l, struct node *cond)
{
    if (!cond || cond->kind != N_BINARY)
        return false;
    struct node *left = cond->a, *right = cond->b;
    enum op_kind op = cond->op;
    if (right->kind == N_IDENT && str_eq(right->name, l->var) && (op == OP_GT || op == OP_GE)) {
        struct node *swap = left;
        left = right;
        right = swap;
        op = op == OP_GT ? OP_LT : OP_LE;
    }
    while (left->kind == N_CAST)
        left = left->a;
    if (left->kind != N_IDENT || !str_eq(left->name, l->var) || (op != OP_LT && op != OP_LE && op != OP_NE))
        return false;
    l->hi_node = right;
    l->inclusive = op == OP_LE;
    return true;
}

static bool read_step(const struct analysis *a, struct loop *l, struct node *step)
{
    if (!step)
        return false;
    bool one = (step->kind == N_UNARY || step->kind == N_POSTFIX) && step->op == OP_INC;
    if (one && step->a->kind == N_IDENT && str_eq(step->a->name, l->var)) {
        l->step = 1;
        return true;
    }
    return step->kind == N_ASSIGN && step->op == OP_ADD_ASSIGN && step->a->kind == N_IDENT &&
           str_eq(step->a->name, l->var) && node_const(a->t, step->b, &l->step) && l->step > 0;
}

struct answer loop_canonical(const struct analysis *a, const struct node *stmt)
{
    struct loop l = {0};
    if (stmt->kind != N_FOR)
        return answer(TRI_NO, "it is no for loop");
    if (!read_init(&l, stmt->a))
        return answer(TRI_NO, "its start is not `VAR = VALUE`");
    const struct var_info *var = l.type ? NULL : analysis_var(a, l.var);
    const struct ctype *type = l.type ? l.type : var ? var->type : NULL;
    if (!type || !ctype_is_int(type) || (var && (var->shadowed || var->address_taken)))
        return answer(TRI_NO, "its counter %s is no plain integer", l.var);
    if (!read_cond(&l, stmt->b))
        return answer(TRI_NO, "its condition is not `%s < BOUND`", l.var);
    if (!read_step(a, &l, stmt->c))
        return answer(TRI_NO, "its step is not a constant added to %s", l.var);
    if (l.step != 1 && stmt->b->op == OP_NE)
        return answer(TRI_NO, "it ends at != with a step over 1");
    if (!stmt->d || leaves(stmt->d))
        return answer(TRI_NO,
                      "it may leave early, or holds preprocessor lines or code that was not understood");
    if (scalar_written(a, l.var, stmt->d))
        return answer(TRI_NO, "its body changes %s", l.var);
    if (!is_integer(a, l.hi_node) || node_uses(l.hi_node, l.var))
        return answer(TRI_NO, "its bound is no integer that stands apart from %s", l.var);
    if (!bound_fixed(a, l.hi_node, stmt->d))
        return answer(TRI_NO, "its bound may change while it runs");
    return yes("a counted loop");
}

static void finish_loop(struct analysis *a, struct loop *l)
{
    struct poly one;
    if (!l->lo || !expr_poly(a, l->lo, &l->lo_p))
        l->lo_p = (struct poly){.bad = true};
    if (!expr_poly(a, l->hi_node, &l->hi_p))
        l->hi_p = (struct poly){.bad = true};
    if (l->inclusive) {
        poly_const(&one, 1);
        poly_add(&l->hi_p, &one, 1);
        poly_free(&one);
    }
    if (!l->type) {
        const struct var_info *v = analysis_var(a, l->var);
        l->type = v ? v->type : NULL;
    }
}

static struct loop *add_loop(struct analysis *a, struct node *stmt, struct loop *outer)
{
    struct loop *l = ast_alloc(a->t, sizeof *l);
    if (stmt->kind != N_FOR || loop_canonical(a, stmt).v != TRI_YES)
        return NULL;
    read_init(l, stmt->a);
    read_cond(l, stmt->b);
    read_step(a, l, stmt->c);
    l->stmt = stmt;
    l->body = stmt->d;
    l->init = stmt->a;
    l->cond = stmt->b;
    l->inc = stmt->c;
    l->outer = outer;
    l->depth = outer ? outer->depth + 1 : 0;
    l->id = (uint32_t)a->loops.n;
    finish_loop(a, l);
    vec_push(&a->loops, l);
    return l;
}

static void find_loops(struct analysis *a, struct node *n, struct loop *outer)
{
    if (!n)
        return;
    struct loop *mine = n->kind == N_FOR ? add_loop(a, n, outer) : NULL;
    struct node *parts[] = {n->a, n->b, n->c, n->d};
    for (size_t i = 0; i < countof(parts); i++)
        find_loops(a, parts[i], mine ? mine : outer);
    for (struct node *k = n->kids; k; k = k->next)
        find_loops(a, k, mine ? mine : outer);
}

struct loop *analysis_loop(const struct analysis *a, const struct node *stmt)
{
    for (size_t i = 0; i < a->loops.n; i++)
        if (a->loops.v[i]->stmt == stmt)
            return a->loops.v[i];
    return NULL;
}

bool loop_inside(const struct loop *l, const struct loop *outer)
{
    for (; l; l = l->outer)
        if (l == outer)
            return true;
    return false;
}

static struct loop *only_loop_in(const struct analysis *a, const struct loop *l)
{
    const struct node *body = l->body, *only = NULL;
    for (const struct node *k = body->kind == N_BLOCK ? body->kids : body; k;
         k = body->kind == N_BLOCK ? k->next : NULL) {
        if (k->kind == N_EMPTY)
            continue;
        if (only)
            return NULL;
        only = k;
    }
    return only ? analysis_loop(a, only) : NULL;
}

size_t loop_nest(const struct analysis *a, struct loop *l, struct loop **out, size_t max)
{
    size_t n = 0;
    for (; l && n < max; l = only_loop_in(a, l))
        out[n++] = l;
    return n;
}

bool loop_trip_poly(const struct loop *l, struct poly *out)
{
    poly_copy(out, &l->hi_p);
    poly_add(out, &l->lo_p, -1);
    return l->step == 1 && !out->bad;
}

bool loop_trip(const struct analysis *a, const struct loop *l, struct str *out)
{
    struct poly p;
    (void)a;
    bool ok = loop_trip_poly(l, &p);
    if (ok)
        poly_print(&p, out);
    poly_free(&p);
    return ok;
}

bool loop_trip_const(const struct analysis *a, const struct loop *l, int64_t *n)
{
    struct poly p;
    (void)a;
    bool ok = loop_trip_poly(l, &p) && poly_is_const(&p, n);
    poly_free(&p);
    return ok;
}

// ---- accesses

// The variable that an lvalue begins with and its subscripts, outermost first.
static const struct node *root_of(const struct node *n, const struct node **subs, int *rank)
{
    *rank = 0;
    while (n->kind == N_INDEX) {
        if (*rank == TYPE_MAX_RANK)
            return NULL;
        memmove(subs + 1, subs, (size_t)*rank * sizeof *subs);
        subs[0] = n->b;
        ++*rank;
        n = n->a;
    }
    return n->kind == N_IDENT ? n : NULL;
}

// Is the variable set anywhere but in its declaration?
static bool set_again(const struct analysis *a, const struct var_info *v)
{
    for (size_t i = 0; i < a->scalars.n; i++)
        if (str_eq(a->scalars.v[i].name, v->name) && a->scalars.v[i].kind != ACC_READ &&
            a->scalars.v[i].node != v->decl)
            return true;
    return v->address_taken;
}

// Do the names of p have one value from the declaration on as long as what it declares lives? Counters of
// loops around it do, and what is never set again.
static bool stays(const struct analysis *a, const struct poly *p, const struct node *decl)
{
    for (size_t i = 0; i < p->t.n; i++)
        for (int n = 0; n < p->t.v[i].n; n++) {
            const struct var_info *v = analysis_var(a, p->t.v[i].atom[n]);
            bool counter = false;
            for (const struct node *up = decl; up && v && !counter; up = up->up) {
                const struct loop *l = up->kind == N_FOR ? analysis_loop(a, up) : NULL;
                counter = l && str_eq(l->var, v->name);
            }
            if (!v || (!counter && set_again(a, v)))
                return false;
        }
    return true;
}

// The array or parameter that a pointer leads to, "" where that is not known; what is added on the way goes
// to offset.
static const char *follow(const struct analysis *a, const struct var_info *v, struct poly *offset, int depth)
{
    if (v->shadowed || depth > 4 || v->type->is_static)
        return "";
    if (!v->type->ptr)
        return v->name;
    if (v->type->ptr != 1 || v->type->rank || set_again(a, v))
        return "";
    if (!v->decl)
        return v->name;
    const struct node *base = v->decl->a, *add = NULL;
    if (base && base->kind == N_BINARY && base->op == OP_ADD) {
        add = base->b;
        base = base->a;
    } else if (base && base->kind == N_UNARY && base->op == OP_AND && base->a->kind == N_INDEX) {
        add = base->a->b;
        base = base->a->a;
    }
    const struct var_info *b = base && base->kind == N_IDENT ? analysis_var(a, base->name) : NULL;
    struct poly p = {0};
    if (!b || !b->type || b->type->ptr + b->type->rank != 1 || !str_eq(b->type->base, v->type->base) ||
        (add && !expr_poly(a, add, &p)))
        return "";
    bool fixed = stays(a, &p, v->decl);
    poly_add(offset, &p, 1);
    poly_free(&p);
    return fixed ? follow(a, b, offset, depth + 1) : "";
}

// Adds the subscripts, linearised row by row; false where they are no polynomials.
static bool linear(const struct analysis *a, struct access *x, const struct node *const *subs, int rank,
                   const struct ctype *ty)
{
    struct poly sum, s, dim;
    poly_const(&sum, 0);
    bool ok = rank == ty->ptr + ty->rank && (ty->ptr == 0 || (ty->ptr == 1 && ty->rank == 0));
    for (int i = 0; i < rank && ok; i++) {
        if (i > 0 && (ok = ty->dim[i] && expr_poly(a, ty->dim[i], &dim))) {
            poly_mul(&sum, &dim);
            poly_free(&dim);
        }
        if (ok && (ok = expr_poly(a, subs[i], &s))) {
            poly_add(&sum, &s, 1);
            poly_free(&s);
        }
    }
    poly_add(&x->sub, &sum, 1);
    poly_free(&sum);
    return ok && !x->sub.bad;
}

static void subscript(const struct analysis *a, struct access *x, const struct node *const *subs, int rank,
                      const struct var_info *v)
{
    poly_const(&x->sub, 0);
    x->base = follow(a, v, &x->sub, 0);
    x->affine = linear(a, x, subs, rank, v->type) && *x->base;
}

struct walker {
    struct analysis *a;
    struct loop *loop;
    struct node *stmt;
    bool conditional;
};

static void walk(struct walker w, struct node *n, enum access_kind kind);

static void add_access(struct walker *w, struct node *n, enum access_kind kind)
{
    const struct node *subs[TYPE_MAX_RANK] = {0};
    struct access x = {
        .node = n, .kind = kind, .base = "", .conditional = w->conditional, .loop = w->loop, .stmt = w->stmt};
    int rank;
    const struct node *root = n->kind == N_INDEX ? root_of(n, subs, &rank) : NULL;
    const struct var_info *v = root ? analysis_var(w->a, root->name) : NULL;
    if (v && v->type && !v->shadowed) {
        x.elem = v->type->base;
        x.base = v->name;
        subscript(w->a, &x, subs, rank, v);
    }
    vec_push(&w->a->accesses, x);
    for (int i = 0; root && i < rank; i++)
        walk(*w, (struct node *)(uintptr_t)subs[i], ACC_READ);
    if (!root)
        walk(*w, n->a, ACC_READ);
}

static void walk_kids(struct walker w, struct node *n)
{
    for (struct node *k = n->kids; k; k = k->next)
        walk(w, k, ACC_READ);
}

static void walk(struct walker w, struct node *n, enum access_kind kind)
{
    if (!n)
        return;
    struct loop *l = n->kind == N_FOR ? analysis_loop(w.a, n) : NULL;
    if (l)
        w.loop = l;
    if (n->kind <= N_OPAQUE)
        w.stmt = n;
    struct walker inner = w;
    switch (n->kind) {
    case N_INDEX:
        add_access(&w, n, kind);
        return;
    case N_IDENT: // names that are not declared here too: they are globals
        if (!ast_macro(w.a->t, n->name))
            vec_push(&w.a->scalars, (struct scalar_use){n->name, n, kind, w.conditional, w.loop, w.stmt});
        return;
    case N_ASSIGN:
        walk(w, n->b, ACC_READ);
        walk(w, n->a, n->op == OP_ASSIGN ? ACC_WRITE : ACC_UPDATE);
        return;
    case N_UNARY:
    case N_POSTFIX:
        if (n->op == OP_INC || n->op == OP_DEC)
            walk(w, n->a, ACC_UPDATE);
        else if (n->kind == N_UNARY && n->op == OP_MUL)
            add_access(&w, n, kind);
        else
            walk(w, n->a, ACC_READ);
        return;
    case N_CALL:
        vec_push(&w.a->calls,
                 (struct call_use){n, n->a->kind == N_IDENT ? n->a->name : "",
                                   n->a->kind == N_IDENT && call_is_pure(w.a, n->a->name), w.loop, w.stmt});
        walk_kids(w, n);
        if (n->a->kind != N_IDENT)
            walk(w, n->a, ACC_READ);
        return;
    case N_MEMBER:
        // s.x is a use of s; behind a pointer it is memory that nothing is known of.
        if (n->op == OP_DOT && n->a->kind != N_INDEX && n->a->kind != N_UNARY)
            walk(w, n->a, kind == ACC_READ ? ACC_READ : ACC_UPDATE);
        else
            add_access(&w, n, kind);
        return;
    case N_BINARY:
        inner.conditional |= n->op == OP_LAND || n->op == OP_LOR;
        walk(w, n->a, ACC_READ);
        walk(inner, n->b, ACC_READ);
        return;
    case N_IF:
    case N_COND:
        walk(w, n->a, ACC_READ);
        inner.conditional = true;
        walk(inner, n->b, ACC_READ);
        walk(inner, n->c, ACC_READ);
        return;
    case N_VAR:
        if (n->a)
            vec_push(&w.a->scalars,
                     (struct scalar_use){n->name, n, ACC_WRITE, w.conditional, w.loop, w.stmt});
        walk(w, n->a, ACC_READ);
        return;
    default:
        walk(w, n->a, ACC_READ);
        walk(w, n->b, ACC_READ);
        walk(w, n->c, ACC_READ);
        walk(w, n->d, ACC_READ);
        walk_kids(w, n);
    }
}

// Pointers are followed once it is known which of them are ever set again.
static void follow_again(struct analysis *a)
{
    for (size_t i = 0; i < a->accesses.n; i++) {
        struct access *x = &a->accesses.v[i];
        const struct node *subs[TYPE_MAX_RANK] = {0};
        int rank;
        const struct node *root = x->node->kind == N_INDEX ? root_of(x->node, subs, &rank) : NULL;
        const struct var_info *v = root ? analysis_var(a, root->name) : NULL;
        if (v && v->type && !v->shadowed && v->type->ptr) {
            poly_free(&x->sub);
            subscript(a, x, subs, rank, v);
        }
    }
}

void analysis_run(struct analysis *a, struct ast *t, const struct func *f, bool no_alias)
{
    *a = (struct analysis){.t = t, .f = f, .no_alias = no_alias};
    for (size_t i = 0; f && i < f->params.n; i++)
        vec_push(&a->vars,
                 (struct var_info){.name = f->params.v[i].name, .type = f->params.v[i].type, .param = true});
    node_walk(t->root, collect_vars, a);
    find_loops(a, t->root, NULL);
    walk((struct walker){.a = a}, t->root, ACC_READ);
    follow_again(a);
    for (size_t i = 0; i < a->loops.n; i++) {
        struct loop *nest[2];
        a->loops.v[i]->perfect = loop_nest(a, a->loops.v[i], nest, 2) == 2;
    }
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
