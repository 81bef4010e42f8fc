// Whether iterations of a loop depend on each other. Conservative: yes only where it is proven.
#include "source/analysis_int.h"

#include "source/func.h"

// ---- reductions

static enum red_op op_of_assign(enum op_kind op)
{
    static const struct {
        enum op_kind op;
        enum red_op red;
    } map[] = {{OP_ADD_ASSIGN, RED_ADD}, {OP_SUB_ASSIGN, RED_SUB}, {OP_MUL_ASSIGN, RED_MUL},
               {OP_AND_ASSIGN, RED_AND}, {OP_OR_ASSIGN, RED_OR},   {OP_XOR_ASSIGN, RED_XOR}};
    for (size_t i = 0; i < countof(map); i++)
        if (map[i].op == op)
            return map[i].red;
    return RED_NONE;
}

static enum red_op op_of_binary(enum op_kind op)
{
    return op == OP_ADD ? RED_ADD : op == OP_SUB ? RED_SUB : op == OP_MUL ? RED_MUL : RED_NONE;
}

static bool float_target(const struct analysis *a, const struct node *target)
{
    const struct node *root = target;
    while (root->kind == N_INDEX)
        root = root->a;
    const struct var_info *v = root->kind == N_IDENT ? analysis_var(a, root->name) : NULL;
    return !v || !v->type || !v->type->base || strstr(v->type->base, "float") ||
           strstr(v->type->base, "double");
}

// s = s op e, s = e op s, s = fmax(s, e), s = e > s ? e : s
static bool from_plain(struct reduction *r, struct node *t, struct node *v)
{
    if (v->kind == N_BINARY && op_of_binary(v->op)) {
        r->op = op_of_binary(v->op);
        if (node_same(v->a, t))
            r->value = v->b;
        else if (node_same(v->b, t) && r->op != RED_SUB)
            r->value = v->a;
    } else if (v->kind == N_CALL && v->a->kind == N_IDENT && v->kids && v->kids->next &&
               !v->kids->next->next) {
        bool max = str_starts(v->a->name, "fmax"), min = str_starts(v->a->name, "fmin");
        r->op = max ? RED_MAX : min ? RED_MIN : RED_NONE;
        r->value = node_same(v->kids, t) ? v->kids->next : node_same(v->kids->next, t) ? v->kids : NULL;
    } else if (v->kind == N_COND && v->a->kind == N_BINARY) {
        struct node *c = v->a;
        bool greater = c->op == OP_GT || c->op == OP_GE, less = c->op == OP_LT || c->op == OP_LE;
        struct node *e = node_same(v->c, t) ? v->b : node_same(v->b, t) ? v->c : NULL;
        if (!e || (!greater && !less))
            return false;
        bool e_left = node_same(c->a, e) && node_same(c->b, t),
             t_left = node_same(c->a, t) && node_same(c->b, e);
        if (!e_left && !t_left)
            return false;
        // Taken where the condition holds: v->b; that is max where the taken side is the greater one.
        bool takes_left = node_same(v->b, c->a);
        r->op = greater == takes_left ? RED_MAX : RED_MIN;
        r->value = e;
    }
    return r->op != RED_NONE && r->value != NULL;
}

bool stmt_reduction(const struct analysis *a, const struct node *stmt, struct reduction *out)
{
    *out = (struct reduction){.stmt = (struct node *)(uintptr_t)stmt};
    const struct node *e = stmt->kind == N_EXPR ? stmt->a : stmt;
    // if (e > s) s = e;
    if (stmt->kind == N_IF && !stmt->c && stmt->a->kind == N_BINARY) {
        const struct node *set = stmt->b;
        while (set->kind == N_BLOCK && set->kids && !set->kids->next)
            set = set->kids;
        set = set->kind == N_EXPR ? set->a : NULL;
        const struct node *c = stmt->a;
        bool greater = c->op == OP_GT || c->op == OP_GE, less = c->op == OP_LT || c->op == OP_LE;
        if (!set || set->kind != N_ASSIGN || set->op != OP_ASSIGN || (!greater && !less))
            return false;
        bool new_left = node_same(c->a, set->b) && node_same(c->b, set->a),
             new_right = node_same(c->b, set->b) && node_same(c->a, set->a);
        if (!new_left && !new_right)
            return false;
        out->op = greater == new_left ? RED_MAX : RED_MIN;
        out->target = set->a;
        out->value = set->b;
    } else if (e->kind == N_ASSIGN) {
        out->target = e->a;
        out->op = op_of_assign(e->op);
        out->value = e->b;
        if (out->op == RED_NONE && (e->op != OP_ASSIGN || (out->value = NULL, !from_plain(out, e->a, e->b))))
            return false;
    } else if ((e->kind == N_UNARY || e->kind == N_POSTFIX) && e->op == OP_INC) {
        out->target = e->a;
        out->op = RED_ADD;
        out->value = NULL;
    } else {
        return false;
    }
    out->var = out->target->kind == N_IDENT ? out->target->name : NULL;
    out->is_float = float_target(a, out->target);
    return out->op != RED_NONE && (out->target->kind == N_IDENT || out->target->kind == N_INDEX);
}

// ---- independence

static bool declared_in(const struct analysis *a, const char *name, const struct loop *l)
{
    const struct var_info *v = analysis_var(a, name);
    for (const struct node *n = v && v->decl && !v->param ? v->decl : NULL; n; n = n->up)
        if (n == l->body || n == l->stmt)
            return true;
    return false;
}

static bool counter_inside(const struct analysis *a, const char *name, const struct loop *l)
{
    for (size_t i = 0; i < a->loops.n; i++)
        if (a->loops.v[i] != l && str_eq(a->loops.v[i]->var, name) && loop_inside(a->loops.v[i], l))
            return true;
    return false;
}

// All uses of a scalar inside l are one kind of reduction.
static bool reduces(const struct analysis *a, const char *name, const struct loop *l, reductions *red)
{
    struct reduction first = {0};
    for (size_t i = 0; i < a->scalars.n; i++) {
        const struct scalar_use *u = &a->scalars.v[i];
        struct reduction r;
        if (!str_eq(u->name, name) || !u->loop || !loop_inside(u->loop, l))
            continue;
        const struct node *stmt = u->stmt;
        // The statement as a whole: for `if (x > m) m = x;` the if.
        bool ok = stmt_reduction(a, stmt, &r);
        for (const struct node *up = stmt->up; !ok && up && up != l->stmt; up = up->up)
            ok = up->kind == N_IF && stmt_reduction(a, up, &r);
        if (!ok || !str_eq(r.var, name) || (r.value && node_uses(r.value, name)))
            return false;
        if (first.op && first.op != r.op)
            return false;
        if (!first.op) {
            first = r;
            if (red)
                vec_push(red, r);
        }
    }
    return first.op != RED_NONE;
}

static struct answer scalars_ok(const struct analysis *a, const struct loop *l, reductions *red)
{
    VEC(const char *) seen = {0};
    struct answer r = analysis_answer(TRI_YES, "nothing is carried");
    for (size_t i = 0; i < a->scalars.n && r.v == TRI_YES; i++) {
        const struct scalar_use *u = &a->scalars.v[i];
        bool known = false;
        for (size_t k = 0; k < seen.n; k++)
            known |= str_eq(seen.v[k], u->name);
        if (known || u->kind == ACC_READ || !u->loop || !loop_inside(u->loop, l) || str_eq(u->name, l->var))
            continue;
        vec_push(&seen, u->name);
        const struct var_info *v = analysis_var(a, u->name);
        if (declared_in(a, u->name, l) && !v->type->is_static)
            continue;
        if (v && (v->shadowed || v->address_taken))
            r = analysis_answer(TRI_UNKNOWN, "%s is declared twice or its address is taken", u->name);
        else if (counter_inside(a, u->name, l) && scalar_live_out(a, u->name, l->stmt).v == TRI_NO)
            continue;
        else if (!reduces(a, u->name, l, red))
            r = analysis_answer(TRI_NO, "%s is carried from one iteration of %s to the next", u->name,
                                l->var);
    }
    vec_free(&seen);
    return r;
}

static bool below(const struct node *n, const struct node *top)
{
    while (n && n != top)
        n = n->up;
    return top && n == top;
}

// A cell that every iteration of l only accumulates into; what is added does not read it.
static bool memory_reduction(const struct analysis *a, const struct access *x, const struct access *y,
                             reductions *red)
{
    struct reduction r, s;
    if (!stmt_reduction(a, x->stmt, &r) || !stmt_reduction(a, y->stmt, &s) || r.op != s.op || r.var || s.var)
        return false;
    if (below(x->node, r.value) || below(y->node, s.value))
        return false;
    if (!node_same(r.target, x->node) || !node_same(s.target, y->node) || !x->affine || !y->affine ||
        !poly_equal(&x->sub, &y->sub))
        return false;
    bool listed = false;
    for (size_t i = 0; red && i < red->n; i++)
        listed |= red->v[i].stmt == r.stmt;
    if (red && !listed)
        vec_push(red, r);
    return true;
}

struct answer loop_independent(const struct analysis *a, const struct loop *l, reductions *red)
{
    if (node_contains(l->body, N_OPAQUE) || node_contains(l->body, N_WHILE) || node_contains(l->body, N_DO))
        return analysis_answer(TRI_UNKNOWN, "it holds a loop or code that was not understood");
    for (size_t i = 0; i < a->calls.n; i++)
        if (a->calls.v[i].loop && loop_inside(a->calls.v[i].loop, l) && !a->calls.v[i].pure)
            return analysis_answer(TRI_UNKNOWN, "it calls %s, which may do anything",
                                   *a->calls.v[i].name ? a->calls.v[i].name : "a function");
    struct answer r = scalars_ok(a, l, red);
    for (size_t i = 0; i < a->accesses.n && r.v == TRI_YES; i++) {
        const struct access *x = &a->accesses.v[i];
        if (x->kind == ACC_READ || !x->loop || !loop_inside(x->loop, l))
            continue;
        for (size_t k = 0; k < a->accesses.n && r.v == TRI_YES; k++) {
            const struct access *y = &a->accesses.v[k];
            const struct var_info *v = analysis_var(a, x->base);
            if (!y->loop || !loop_inside(y->loop, l) || (v && v->decl && declared_in(a, x->base, l)))
                continue;
            struct answer meet = access_overlap(a, x, y, l);
            if (meet.v != TRI_NO && !memory_reduction(a, x, y, red))
                r = analysis_answer(meet.v == TRI_YES ? TRI_NO : TRI_UNKNOWN, "%s", meet.why);
        }
    }
    return r;
}

struct answer loop_interchangeable(const struct analysis *a, const struct loop *outer,
                                   const struct loop *inner, bool *reorders)
{
    reductions red = {0};
    *reorders = false;
    if (poly_uses(&inner->lo_p, outer->var) || poly_uses(&inner->hi_p, outer->var))
        return analysis_answer(TRI_NO, "the bounds of %s depend on %s", inner->var, outer->var);
    struct answer r = loop_independent(a, outer, &red);
    for (size_t i = 0; i < red.n; i++)
        *reorders |= red.v[i].is_float;
    vec_free(&red);
    return r;
}

// ---- invariance and liveness

struct varying {
    const struct analysis *a;
    const struct loop *l;
    const char *name;
};

static bool check_invariant(void *user, struct node *n)
{
    struct varying *v = user;
    if (n->kind == N_IDENT && (str_eq(n->name, v->l->var) || scalar_written(v->a, n->name, v->l->body)))
        v->name = n->name;
    if (n->kind == N_INDEX || n->kind == N_MEMBER || (n->kind == N_UNARY && n->op == OP_MUL))
        for (size_t i = 0; i < v->a->accesses.n && !v->name; i++) {
            const struct access *w = &v->a->accesses.v[i], *mine = NULL;
            for (size_t k = 0; k < v->a->accesses.n; k++)
                if (v->a->accesses.v[k].node == n)
                    mine = &v->a->accesses.v[k];
            if (w->kind != ACC_READ && w->loop && loop_inside(w->loop, v->l) &&
                (!mine || analysis_may_alias(v->a, w->base, mine->base)))
                v->name = *w->base ? w->base : "memory";
        }
    return !v->name;
}

struct answer expr_invariant(const struct analysis *a, const struct node *expr, const struct loop *l)
{
    struct varying v = {a, l, NULL};
    struct answer pure = expr_pure(a, expr);
    if (pure.v != TRI_YES)
        return pure;
    node_walk((struct node *)(uintptr_t)expr, check_invariant, &v);
    return v.name ? analysis_answer(TRI_NO, "%s changes in the loop over %s", v.name, l->var)
                  : analysis_answer(TRI_YES, "the same in every iteration");
}

struct answer scalar_live_out(const struct analysis *a, const char *name, const struct node *stmt)
{
    const struct var_info *v = analysis_var(a, name);
    if (!v || v->address_taken || v->shadowed || a->has_asm_or_opaque)
        return analysis_answer(TRI_UNKNOWN, "%s may be used elsewhere", name);
    bool in_loop = false;
    for (const struct node *up = stmt->up; up; up = up->up)
        in_loop |= up->kind == N_FOR || up->kind == N_WHILE || up->kind == N_DO;
    // A read after stmt in the text, or before it in a loop around it, unless a write of a whole new value
    // comes first there.
    for (size_t i = 0; i < a->scalars.n; i++) {
        const struct scalar_use *u = &a->scalars.v[i];
        if (!str_eq(u->name, name) || (u->node->first >= stmt->first && u->node->first < stmt->end))
            continue;
        if (u->node->first < stmt->first && !in_loop)
            continue;
        if (u->kind == ACC_WRITE && !u->conditional)
            continue;
        // Another loop's own counter: its header sets it before anything reads it.
        bool counter = false;
        for (size_t k = 0; k < a->loops.n; k++)
            counter |= str_eq(a->loops.v[k]->var, name) && u->node->first >= a->loops.v[k]->stmt->first &&
                       u->node->first < a->loops.v[k]->stmt->end;
        if (!counter)
            return analysis_answer(TRI_YES, "%s is read in line %d", name, node_line(a->t, u->node));
    }
    return analysis_answer(TRI_NO, "%s is not read afterwards", name);
}
