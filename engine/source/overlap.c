// Whether two accesses may meet: aliases, and subscripts as numbers whose digits are the counters.
#include "source/analysis_int.h"
#include "source/func.h"

bool analysis_may_alias(const struct analysis *a, const char *x, const char *y)
{
    if (!*x || !*y || str_eq(x, y))
        return true;
    const struct var_info *u = analysis_var(a, x), *v = analysis_var(a, y);
    // Bases are parameters that are never set, and arrays (see follow()).
    if (!u || !v || !u->type || !v->type)
        return true;
    bool local_u = !u->param && u->type->rank > 0 && !u->type->ptr,
         local_v = !v->param && v->type->rank > 0 && !v->type->ptr;
    if (local_u || local_v)
        return u->address_taken && v->address_taken;
    // What is written through a restrict parameter is reached through no other one.
    bool apart = a->no_alias || u->type->restrict_ptr || v->type->restrict_ptr;
    return !(apart && u->param && v->param);
}

bool access_stride(const struct access *x, const struct loop *l, struct poly *stride)
{
    struct poly rest;
    if (!x->affine) {
        *stride = (struct poly){0};
        return false;
    }
    bool ok = poly_split(&x->sub, l->var, stride, &rest);
    poly_free(&rest);
    return ok;
}

// The loop inside l (or deeper) whose counter is name, among those around access x.
static const struct loop *inner_of(const struct access *x, const struct loop *l, const char *name)
{
    for (const struct loop *k = x->loop; k && k != l; k = k->outer)
        if (str_eq(k->var, name))
            return k;
    return NULL;
}

// "H / N * N" where H is the loop's own bound: the rest after whole blocks of N. Where H is negative it is
// not below H, so the loop does not run: while it runs its counter is not negative.
static bool is_rest_of(const struct analysis *a, const struct node *n, const struct node *h)
{
    int64_t c;
    return n->kind == N_BINARY && n->op == OP_MUL && n->a->kind == N_BINARY && n->a->op == OP_DIV &&
           node_same(n->a->b, n->b) && node_const(a->t, n->b, &c) && c > 0 && node_same(n->a->a, h);
}

// The least value of the counter that is known, where it is not negative.
static bool least_value(const struct analysis *a, const struct loop *k, int64_t *lo)
{
    const struct node *n = k->lo;
    if (poly_is_const(&k->lo_p, lo))
        return *lo >= 0;
    *lo = 0;
    if (!n || k->inclusive)
        return false;
    if (is_rest_of(a, n, k->hi_node))
        return true;
    // "L + (H - L) / N * N": the same counted from L.
    if (n->kind != N_BINARY || n->op != OP_ADD || !node_const(a->t, n->a, lo) || n->b->kind != N_BINARY ||
        n->b->op != OP_MUL || n->b->a->kind != N_BINARY)
        return false;
    const struct node *diff = n->b->a->a;
    return *lo >= 0 && diff->kind == N_BINARY && diff->op == OP_SUB && node_same(diff->a, k->hi_node) &&
           node_same(diff->b, n->a) && is_rest_of(a, n->b, diff);
}

// Is the bound NAME, or NAME less a constant? Then NAME is positive where the loop runs.
static bool bounded_by(const struct poly *hi, const char *name)
{
    struct poly stride = {0}, rest = {0};
    int64_t by, more;
    bool ok = !hi->bad && poly_split(hi, name, &stride, &rest);
    if (ok)
        ok = poly_is_const(&stride, &by) && by == 1 && poly_is_const(&rest, &more) && more <= 0;
    poly_free(&stride);
    poly_free(&rest);
    return ok;
}

// Is the name at least 1 wherever x is reached? A bound of a loop around x that counts up from 0 is.
static bool is_positive(const struct analysis *a, const struct access *x, const char *name)
{
    for (size_t i = 0; i < a->positive.n; i++)
        if (str_eq(a->positive.v[i], name))
            return true;
    for (const struct loop *k = x->loop; k; k = k->outer) {
        int64_t lo;
        if (least_value(a, k, &lo) && bounded_by(&k->hi_p, name))
            return true;
    }
    return false;
}

// A stride that may be 0 (incx of BLAS) keeps nothing apart.
static bool never_zero(const struct analysis *a, const struct access *x, const struct poly *stride)
{
    if (stride->bad || stride->t.n != 1)
        return false;
    for (int i = 0; i < stride->t.v[0].n; i++)
        if (!is_positive(a, x, stride->t.v[0].atom[i]))
            return false;
    return true;
}

// range >= coef*(values of k, and a step more): lo is a constant >= 0 and range - coef*(hi - 1 + step) is a
// constant >= 0. What is left over the counters inside k may then take a step of k.
static bool fits_in(const struct analysis *a, const struct access *x, const struct loop *k,
                    const struct poly *coef, const struct poly *range)
{
    int64_t lo, room;
    struct poly reach, left;
    if (!least_value(a, k, &lo) || k->hi_p.bad || k->step < 1 || !never_zero(a, x, coef) ||
        coef->t.v[0].coef < 0)
        return false;
    struct poly top, more;
    poly_copy(&top, &k->hi_p);
    poly_const(&more, k->step - 1);
    poly_add(&top, &more, 1);
    poly_copy(&reach, coef);
    poly_mul(&reach, &top);
    poly_free(&top);
    poly_free(&more);
    poly_copy(&left, range);
    poly_add(&left, &reach, -1);
    bool ok = poly_is_const(&left, &room) && room >= 0;
    poly_free(&reach);
    poly_free(&left);
    return ok;
}

// Whether what is left of a subscript (over the counters inside l) stays within one step of l, so that two
// iterations never meet.
static bool rest_within(const struct analysis *a, const struct access *x, const struct loop *l,
                        struct poly *rest, struct poly *range)
{
    for (int guard = 0; guard < 8; guard++) {
        const struct loop *k = NULL;
        struct poly coef = {0}, less = {0};
        for (size_t i = 0; i < rest->t.n && !k; i++)
            for (int n = 0; n < rest->t.v[i].n && !k; n++) {
                const struct loop *inner = inner_of(x, l, rest->t.v[i].atom[n]);
                if (!inner)
                    continue;
                poly_free(&coef);
                poly_free(&less);
                if (poly_split(rest, inner->var, &coef, &less) && fits_in(a, x, inner, &coef, range))
                    k = inner;
            }
        if (!k) {
            // Nothing that varies inside l may be left.
            bool varies = false;
            for (size_t i = 0; i < rest->t.n; i++)
                for (int n = 0; n < rest->t.v[i].n; n++)
                    varies |= inner_of(x, l, rest->t.v[i].atom[n]) != NULL;
            poly_free(&coef);
            poly_free(&less);
            return !varies;
        }
        poly_free(rest);
        poly_copy(rest, &less);
        struct poly step;
        poly_free(range);
        poly_copy(range, &coef);
        poly_const(&step, k->step);
        poly_mul(range, &step);
        poly_free(&step);
        poly_free(&coef);
        poly_free(&less);
    }
    return false;
}

// Takes from rest the counters inside l whose steps are at least what all of l covers (y[j * n + i] for i in
// 0..n: the iterations of i lie between two of j), as the higher digits of a number.
static void drop_higher_digits(const struct analysis *a, const struct access *x, const struct loop *l,
                               const struct poly *stride, struct poly *rest)
{
    const struct loop *below = l;
    struct poly step;
    poly_copy(&step, stride);
    for (bool found = true; found;) {
        found = false;
        for (const struct loop *k = x->loop; k && k != l && !found; k = k->outer) {
            struct poly coef = {0}, less = {0};
            found = poly_split(rest, k->var, &coef, &less) && coef.t.n && inner_of(x, l, k->var) == k &&
                    fits_in(a, x, below, &step, &coef);
            if (found) {
                poly_free(rest);
                poly_copy(rest, &less);
                poly_free(&step);
                poly_copy(&step, &coef);
                below = k;
            }
            poly_free(&coef);
            poly_free(&less);
        }
    }
    poly_free(&step);
}

// Does a subscript hold a name, other than a loop's counter, that changes inside l? Then equal text is not
// equal value.
static bool subscript_changes(const struct analysis *a, const struct access *x, const struct loop *l)
{
    for (size_t i = 0; i < x->sub.t.n; i++)
        for (int n = 0; n < x->sub.t.v[i].n; n++) {
            const char *name = x->sub.t.v[i].atom[n];
            if (!str_eq(name, l->var) && !inner_of(x, l, name) && scalar_written(a, name, l->stmt))
                return true;
        }
    return false;
}

// May x and y meet in different iterations of l?
struct answer access_overlap(const struct analysis *a, const struct access *x, const struct access *y,
                             const struct loop *l)
{
    if (!analysis_may_alias(a, x->base, y->base))
        return analysis_answer(TRI_NO, "%s and %s never overlap", x->base, y->base);
    if (!str_eq(x->base, y->base) || !*x->base)
        return analysis_answer(TRI_UNKNOWN, "%s and %s may overlap", *x->base ? x->base : "a pointer",
                               *y->base ? y->base : "a pointer");
    if (!x->affine || !y->affine || !l || subscript_changes(a, x, l) || subscript_changes(a, y, l))
        return analysis_answer(TRI_UNKNOWN, "a subscript of %s is not a known function of the counters",
                               x->base);
    struct poly sx, rx, sy, ry, range, range_y, diff;
    bool split = poly_split(&x->sub, l->var, &sx, &rx);
    split = poly_split(&y->sub, l->var, &sy, &ry) && split;
    struct answer r = analysis_answer(
        TRI_UNKNOWN, "%s is touched at places that may meet in different iterations of %s", x->base, l->var);
    if (split && sx.t.n == 0 && sy.t.n == 0)
        r = analysis_answer(TRI_YES, "every iteration of %s touches the same place of %s", l->var, x->base);
    else if (split && poly_equal(&sx, &sy) && sx.t.n) {
        poly_copy(&diff, &rx);
        poly_add(&diff, &ry, -1);
        poly_copy(&range, &sx);
        poly_copy(&range_y, &sy);
        bool same = diff.t.n == 0 && !diff.bad; // rx and ry shrink to what does not vary inside l
        if (same) {
            drop_higher_digits(a, x, l, &sx, &rx);
            drop_higher_digits(a, y, l, &sy, &ry);
        }
        // With a step over 1 the distance between two iterations is larger: one step is enough.
        // Both are looked at: loops of the same counter may have other bounds.
        if (rest_within(a, x, l, &rx, &range) && never_zero(a, x, &range) &&
            rest_within(a, y, l, &ry, &range_y) && never_zero(a, y, &range_y) && poly_equal(&rx, &ry))
            r = analysis_answer(TRI_NO, "each iteration of %s has its own part of %s", l->var, x->base);
        else if (!same)
            r = analysis_answer(TRI_UNKNOWN, "%s is read and written at different places", x->base);
        poly_free(&range);
        poly_free(&range_y);
        poly_free(&diff);
    }
    poly_free(&sx);
    poly_free(&rx);
    poly_free(&sy);
    poly_free(&ry);
    return r;
}
