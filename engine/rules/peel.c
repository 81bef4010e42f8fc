// Rule peel: index-set splitting. Comparisons of a loop's counter with what does not change in the loop (the
// border of a grid, the padding of a convolution) are false or true over one interval of the counter. The
// loop is split there: what comes before and after keeps the body as it is, the interior has no condition.
#include "rules/fold.h"

enum { BOUNDS_MAX = 6 };

struct interior {
    const struct rule_source *s;
    const struct loop *l;
    struct poly from[BOUNDS_MAX],
        to[BOUNDS_MAX]; // it begins at the greatest from and ends before the least to
    size_t nfrom, nto;
    knowns known;
};

static void interior_free(struct interior *x)
{
    for (size_t i = 0; i < x->nfrom; i++)
        poly_free(&x->from[i]);
    for (size_t i = 0; i < x->nto; i++)
        poly_free(&x->to[i]);
    vec_free(&x->known);
}

// Locals that the body declares and never sets again stand for their first value.
static void expand(const struct interior *x, struct poly *p)
{
    for (int guard = 0; guard < 4; guard++)
        for (size_t i = 0; i < x->s->a.vars.n; i++) {
            const struct var_info *v = &x->s->a.vars.v[i];
            struct poly by;
            bool ours = v->decl && v->decl->a && v->type && str_eq(v->type->base, x->l->type->base) &&
                        !v->shadowed && !v->address_taken && poly_uses(p, v->name) &&
                        v->decl->first >= x->l->body->first && v->decl->end <= x->l->body->end;
            for (size_t k = 0; k < x->s->a.scalars.n && ours; k++)
                ours = !(str_eq(x->s->a.scalars.v[k].name, v->name) &&
                         x->s->a.scalars.v[k].kind != ACC_READ && x->s->a.scalars.v[k].node != v->decl);
            if (ours && expr_poly(&x->s->a, v->decl->a, &by)) {
                poly_subst(p, v->name, &by);
                poly_free(&by);
            }
        }
}

// Every name in p has the counter's own type and one value while the loop runs.
static bool fixed(const struct interior *x, const struct poly *p)
{
    for (size_t i = 0; i < p->t.n; i++)
        for (int k = 0; k < p->t.v[i].n; k++) {
            const char *name = p->t.v[i].atom[k];
            const struct var_info *v = analysis_var(&x->s->a, name);
            if (!v || !v->type || v->shadowed || !str_eq(v->type->base, x->l->type->base) ||
                str_eq(name, x->l->var) || scalar_written(&x->s->a, name, x->l->stmt))
                return false;
        }
    return !p->bad;
}

static bool near_start(const struct interior *x, const struct poly *p, bool end)
{
    struct poly d;
    int64_t c;
    poly_copy(&d, p);
    poly_add(&d, end ? &x->l->hi_p : &x->l->lo_p, -1);
    bool near = poly_is_const(&d, &c) && c >= -64 && c <= 64;
    poly_free(&d);
    return near;
}

static bool add_bound(struct interior *x, bool from, const struct poly *p)
{
    struct poly *list = from ? x->from : x->to;
    size_t *n = from ? &x->nfrom : &x->nto;
    for (size_t i = 0; i < *n; i++)
        if (poly_equal(&list[i], p))
            return true;
    if (*n == BOUNDS_MAX)
        return false;
    poly_copy(&list[(*n)++], p);
    return true;
}

// The comparison is `counter op edge`: what it is in the interior, and where that begins or ends.
static void take(struct interior *x, const struct node *n, enum op_kind op, struct poly *edge)
{
    bool from, value, equal = op == OP_EQ || op == OP_NE;
    struct poly one, next;
    poly_const(&one, 1);
    poly_copy(&next, edge);
    poly_add(&next, &one, 1);
    if (equal) {
        // A single value, at the start or at the end of the range.
        from = near_start(x, edge, false);
        value = op == OP_NE;
        if ((from || near_start(x, edge, true)) && add_bound(x, from, from ? &next : edge))
            vec_push(&x->known, (struct known){n, value});
    } else {
        bool below = op == OP_LT || op == OP_LE; // true for the counters below `at`
        const struct poly *at = op == OP_LE || op == OP_GT ? &next : edge;
        from = near_start(x, at, false) || (!below && !near_start(x, at, true));
        value = from ? !below : below;
        if (add_bound(x, from, at))
            vec_push(&x->known, (struct known){n, value});
    }
    poly_free(&one);
    poly_free(&next);
}

static enum op_kind turned(enum op_kind op)
{
    return op == OP_LT ? OP_GT : op == OP_GT ? OP_LT : op == OP_LE ? OP_GE : op == OP_GE ? OP_LE : op;
}

static bool look(void *user, struct node *n)
{
    struct interior *x = user;
    struct poly a, b, stride, rest;
    int64_t by;
    bool compares = n->kind == N_BINARY && (n->op == OP_LT || n->op == OP_GT || n->op == OP_LE ||
                                            n->op == OP_GE || n->op == OP_EQ || n->op == OP_NE);
    // The condition of a loop inside is no condition to be rid of.
    // Nor is one between numbers of which one may be unsigned.
    if (!compares || (n->up && n->up->kind == N_FOR) || !parts_type(x->s, n->a) || !parts_type(x->s, n->b) ||
        !expr_poly(&x->s->a, n->a, &a))
        return true;
    if (expr_poly(&x->s->a, n->b, &b)) {
        poly_add(&a, &b, -1);
        poly_free(&b);
        expand(x, &a);
        if (poly_split(&a, x->l->var, &stride, &rest) && poly_is_const(&stride, &by) &&
            (by == 1 || by == -1) && fixed(x, &rest)) {
            struct poly edge = {0};
            poly_const(&edge, 0);
            poly_add(&edge, &rest, by == 1 ? -1 : 1);
            take(x, n, by == 1 ? n->op : turned(n->op), &edge);
            poly_free(&edge);
        }
        poly_free(&stride);
        poly_free(&rest);
    }
    poly_free(&a);
    return true;
}

static bool fits(const struct rule_source *s, const struct loop *l, struct interior *x, char why[240])
{
    *x = (struct interior){.s = s, .l = l};
    if (!parts_blocks_ok(s, l, why))
        return false;
    if (l->step != 1 || l->lo_p.bad || l->hi_p.bad || !fixed(x, &l->lo_p) || !fixed(x, &l->hi_p) ||
        strstr(l->type->base, "unsigned") || str_eq(l->type->base, "size_t") || l->type->base[0] == 'u') {
        snprintf(why, 240, "its range is not made of signed integers of one type, in steps of 1");
        return false;
    }
    if (node_contains(l->body, N_OPAQUE) ||
        (!l->declared_inside && scalar_live_out(&s->a, l->var, l->stmt).v != TRI_NO)) {
        snprintf(why, 240, "%s is used after the loop, or code was not understood", l->var);
        return false;
    }
    node_walk(l->body, look, x);
    if (!x->known.n)
        snprintf(why, 240, "no condition in it compares %s with a bound that stays the same", l->var);
    return x->known.n > 0;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        struct interior x;
        char why[240];
        if (!node_contains(l->body, N_IF) && !node_contains(l->body, N_COND))
            continue;
        if (fits(s, l, &x, why))
            rewrite_site(s, out, l->stmt, true, NULL, "an interior without %zu condition%s on %s", x.known.n,
                         x.known.n > 1 ? "s" : "", l->var);
        else
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
        interior_free(&x);
    }
}

static void write_bounds(const struct interior *x, const char *begin, const char *end, struct str *out)
{
    const char *type = parts_counter_type(x->l);
    struct str p = {0};
    poly_print(&x->l->lo_p, &p);
    str_addf(out, "%s %s = %s;\n", type, begin, p.s);
    for (size_t i = 0; i < x->nfrom; i++) {
        str_clear(&p);
        poly_print(&x->from[i], &p);
        str_addf(out, "if (%s < %s)\n    %s = %s;\n", begin, p.s, begin, p.s);
    }
    str_clear(&p);
    poly_print(&x->l->hi_p, &p);
    str_addf(out, "if (%s > %s)\n    %s = %s;\n", begin, p.s, begin, p.s);
    str_addf(out, "%s %s = %s;\n", type, end, p.s);
    for (size_t i = 0; i < x->nto; i++) {
        str_clear(&p);
        poly_print(&x->to[i], &p);
        str_addf(out, "if (%s > %s)\n    %s = %s;\n", end, p.s, end, p.s);
    }
    str_addf(out, "if (%s < %s)\n    %s = %s;\n", end, begin, end, begin);
    str_free(&p);
}

static void write_loop(const struct interior *x, const char *from, const char *to, const knowns *k,
                       struct str *out)
{
    struct str body = {0};
    static const knowns nothing;
    const struct loop *l = x->l;
    fold_body(x->s, l->body, k ? k : &nothing, &body);
    char *head =
        xasprintf("for (%s%s%s = %s; %s < %s; %s++) ", l->declared_inside ? parts_counter_type(l) : "",
                  l->declared_inside ? " " : "", l->var, from, l->var, to, l->var);
    if (!k)
        str_add(out, "#pragma GCC unroll 1\n");
    parts_braces(out, head, str_c(&body));
    free(head);
    str_free(&body);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    const struct loop *l = parts_loop(s, "peel", where, e);
    struct interior x;
    char why[240];
    (void)params;
    if (!l)
        return -1;
    if (!fits(s, l, &x, why)) {
        interior_free(&x);
        return err_set(e, ERR_FAIL, "", "peel: %s", why);
    }
    char *begin = parts_name(s, l->var, "_in"), *end = parts_name(s, l->var, "_out");
    struct str code = {0}, lo = {0}, hi = {0};
    poly_print(&l->lo_p, &lo);
    poly_print(&l->hi_p, &hi);
    write_bounds(&x, begin, end, &code);
    if (x.nfrom)
        write_loop(&x, lo.s, begin, NULL, &code);
    write_loop(&x, begin, end, &x.known, &code);
    if (x.nto)
        write_loop(&x, end, hi.s, NULL, &code);
    parts_replace(s, l->stmt, code.s, out);
    str_free(&code);
    str_free(&lo);
    str_free(&hi);
    free(begin);
    free(end);
    interior_free(&x);
    return 0;
}

const struct rule rule_peel = {
    .name = "peel",
    .help = "split a loop where conditions on its counter change, so that the interior has none",
    .risk = RISK_WORK,
    .sites = sites,
    .apply = apply,
};
