// What a body reads and writes: memory, through pointers that are followed to where they lead, and scalars.
#include "source/analysis_int.h"

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

void analysis_find_accesses(struct analysis *a)
{
    walk((struct walker){.a = a}, a->t->root, ACC_READ);
    follow_again(a);
}
