// Counted loops: which statements are, their bounds, how they nest.
#include "source/analysis_int.h"

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
        return analysis_answer(TRI_NO, "it is no for loop");
    if (!read_init(&l, stmt->a))
        return analysis_answer(TRI_NO, "its start is not `VAR = VALUE`");
    const struct var_info *var = l.type ? NULL : analysis_var(a, l.var);
    const struct ctype *type = l.type ? l.type : var ? var->type : NULL;
    if (!type || !ctype_is_int(type) || (var && (var->shadowed || var->address_taken)))
        return analysis_answer(TRI_NO, "its counter %s is no plain integer", l.var);
    if (!read_cond(&l, stmt->b))
        return analysis_answer(TRI_NO, "its condition is not `%s < BOUND`", l.var);
    if (!read_step(a, &l, stmt->c))
        return analysis_answer(TRI_NO, "its step is not a constant added to %s", l.var);
    if (l.step != 1 && stmt->b->op == OP_NE)
        return analysis_answer(TRI_NO, "it ends at != with a step over 1");
    if (!stmt->d || leaves(stmt->d))
        return analysis_answer(
            TRI_NO, "it may leave early, or holds preprocessor lines or code that was not understood");
    if (scalar_written(a, l.var, stmt->d))
        return analysis_answer(TRI_NO, "its body changes %s", l.var);
    if (!is_integer(a, l.hi_node) || node_uses(l.hi_node, l.var))
        return analysis_answer(TRI_NO, "its bound is no integer that stands apart from %s", l.var);
    if (!bound_fixed(a, l.hi_node, stmt->d))
        return analysis_answer(TRI_NO, "its bound may change while it runs");
    return analysis_yes("a counted loop");
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

void analysis_find_loops(struct analysis *a)
{
    find_loops(a, a->t->root, NULL);
    for (size_t i = 0; i < a->loops.n; i++) {
        struct loop *nest[2];
        a->loops.v[i]->perfect = loop_nest(a, a->loops.v[i], nest, 2) == 2;
    }
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
