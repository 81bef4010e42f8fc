// Rule reuse: an expensive value that two adjacent loops compute for the same index is computed in the first
// and kept in the output that the second one writes at that index (softmax: exp for the sum, and again for
// the quotient). The output's old contents must not be needed, and nothing in between may change the value.
#include "rules/parts.h"

struct pair {
    const struct loop *first, *second;
    const struct node *early, *late; // the value in each
    const struct node *store;        // statement of the second that writes the place
    const struct node *place;        // its target
    const struct node *stmt;         // statement of the first that holds the value
};

static bool within(const struct node *n, const struct node *top)
{
    return n->first >= top->first && n->end <= top->end;
}

// The statement of the body itself that holds n, or NULL.
static const struct node *direct(const struct loop *l, const struct node *n)
{
    for (const struct node *k = parts_first(l->body); k; k = parts_next(l->body, k))
        if (within(n, k))
            return k;
    return NULL;
}

// Text with the second loop's counter under the name of the first one's.
static void as_first(const struct rule_source *s, const struct pair *p, const struct node *n, struct str *out)
{
    struct subst counter = {p->second->var, p->first->var};
    parts_clone(s, n, &counter, str_eq(p->first->var, p->second->var) ? 0 : 1, out);
}

static bool same_value(const struct rule_source *s, const struct pair *p, const struct node *a,
                       const struct node *b)
{
    struct str x = {0}, y = {0};
    node_text(&s->t, a, &x);
    as_first(s, p, b, &y);
    // Written alike, white space aside.
    struct str u = {0}, v = {0};
    for (const char *c = str_c(&x); *c; c++)
        if (!strchr(" \t\r\n", *c))
            str_addc(&u, *c);
    for (const char *c = str_c(&y); *c; c++)
        if (!strchr(" \t\r\n", *c))
            str_addc(&v, *c);
    bool same = str_eq(str_c(&u), str_c(&v));
    str_free(&x);
    str_free(&y);
    str_free(&u);
    str_free(&v);
    return same;
}

static bool same_range(const struct loop *l, const struct loop *m)
{
    return poly_equal(&l->lo_p, &m->lo_p) && poly_equal(&l->hi_p, &m->hi_p) && l->step == m->step &&
           l->type && m->type && str_eq(l->type->base, m->type->base);
}

// Names in the value keep theirs from the first loop to the second, and what it reads is not written.
struct stays {
    const struct rule_source *s;
    const struct pair *p;
    const char *why;
};

static bool check_name(void *user, struct node *n)
{
    struct stays *c = user;
    const struct node *last = c->p->second->stmt;
    if (n->kind != N_IDENT || ast_macro(&c->s->t, n->name) || str_eq(n->name, c->p->first->var) ||
        str_eq(n->name, c->p->second->var) || (n->up->kind == N_CALL && n->up->a == n))
        return true;
    for (const struct node *k = c->p->first->stmt; k; k = k == last ? NULL : k->next)
        if (scalar_written(&c->s->a, n->name, k))
            c->why = n->name;
    return !c->why;
}

// Every function that is called from the first loop on is one of math.h.
static bool only_math(const struct rule_source *s, const struct pair *p)
{
    for (size_t i = 0; i < s->a.calls.n; i++) {
        const struct node *n = s->a.calls.v[i].node;
        if (!s->a.calls.v[i].pure && n->first >= p->first->stmt->first && n->end <= p->second->stmt->end)
            return false;
    }
    return true;
}

// No access between the start of the first loop and the end of the second touches `base`, but those in `but`.
static bool untouched(const struct rule_source *s, const struct pair *p, const char *base,
                      const struct node *but, bool writes_only)
{
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        if (x->node->first < p->first->stmt->first || x->node->end > p->second->stmt->end || x->node == but ||
            (writes_only && x->kind == ACC_READ))
            continue;
        if (analysis_may_alias(&s->a, x->base, base))
            return false;
    }
    return true;
}

static bool reads_stay(const struct rule_source *s, const struct pair *p)
{
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        if (within(x->node, p->early) && !untouched(s, p, x->base, NULL, true))
            return false;
    }
    return true;
}

// The place is written once for each index, whole, by a plain assignment directly in the second loop.
static bool place_ok(const struct rule_source *s, struct pair *p, char why[240])
{
    const struct node *set = p->store && p->store->kind == N_EXPR ? p->store->a : NULL;
    const struct access *x =
        set && set->kind == N_ASSIGN && set->op == OP_ASSIGN ? parts_access(s, set->a) : NULL;
    struct poly stride = {0};
    snprintf(why, 240, "the second loop does not store what it makes of the value");
    if (!x || !x->affine || set->a->kind != N_INDEX || !within(p->late, set->b))
        return false;
    p->place = set->a;
    bool moves = access_stride(x, p->second, &stride) && stride.t.n == 1;
    poly_free(&stride);
    struct answer apart = access_overlap(&s->a, x, x, p->second);
    if (!moves || apart.v != TRI_NO) {
        snprintf(why, 240, "the second loop does not store at another place each time");
        return false;
    }
    if (!str_eq(x->elem, parts_type(s, p->late))) {
        snprintf(why, 240, "the value would be rounded to %s", x->elem ? x->elem : "another type");
        return false;
    }
    if (!untouched(s, p, x->base, p->place, false)) {
        snprintf(why, 240, "%s is used in the two loops for other things", x->base);
        return false;
    }
    struct stays c = {s, p, NULL};
    node_walk((struct node *)(uintptr_t)p->place, check_name, &c);
    if (c.why)
        snprintf(why, 240, "%s changes between the two loops", c.why);
    return !c.why;
}

static bool pair_ok(const struct rule_source *s, struct pair *p, char why[240])
{
    struct stays c = {s, p, NULL};
    node_walk((struct node *)(uintptr_t)p->early, check_name, &c);
    if (c.why || !reads_stay(s, p)) {
        snprintf(why, 240, "%s changes between the two loops", c.why ? c.why : "what the value is made of");
        return false;
    }
    p->stmt = direct(p->first, p->early);
    p->store = direct(p->second, p->late);
    if (!p->stmt || (p->stmt->kind != N_EXPR && p->stmt->kind != N_DECL)) {
        snprintf(why, 240, "the first loop computes it under a condition or in a loop inside");
        return false;
    }
    return place_ok(s, p, why);
}

// Calls of math functions in both loops that are the same value.
static bool find_values(const struct rule_source *s, struct pair *p, char why[240])
{
    snprintf(why, 240, "the loops compute no function twice");
    for (size_t i = 0; i < s->a.calls.n; i++) {
        const struct call_use *a = &s->a.calls.v[i];
        for (size_t k = 0; k < s->a.calls.n; k++) {
            const struct call_use *b = &s->a.calls.v[k];
            if (!a->pure || !b->pure || a->loop != p->first || b->loop != p->second ||
                !same_value(s, p, a->node, b->node) || expr_pure(&s->a, a->node).v != TRI_YES)
                continue;
            p->early = a->node;
            p->late = b->node;
            if (pair_ok(s, p, why))
                return true;
        }
    }
    return false;
}

// A loop after l in the same block, over the same range; nothing in between may leave or call.
static bool fits(const struct rule_source *s, const struct loop *l, struct pair *p, char why[240])
{
    *why = 0;
    if (!l->stmt->up || l->stmt->up->kind != N_BLOCK || !l->lo)
        return false;
    for (const struct node *n = l->stmt->next; n; n = n->next) {
        const struct loop *m = n->kind == N_FOR ? analysis_loop(&s->a, n) : NULL;
        if (!m && n->kind != N_EXPR && n->kind != N_DECL && n->kind != N_EMPTY && n->kind != N_PRAGMA)
            return false;
        *p = (struct pair){.first = l, .second = m};
        if (m && same_range(l, m) && parts_start_fixed(s, l) && parts_start_fixed(s, m) && only_math(s, p) &&
            !parts_in_macro(s, l->var) && !parts_in_macro(s, m->var) && find_values(s, p, why))
            return true;
    }
    return false;
}

static bool calls_within(const struct rule_source *s, const struct loop *l)
{
    for (size_t i = 0; i < s->a.calls.n; i++)
        if (s->a.calls.v[i].loop == l && s->a.calls.v[i].pure)
            return true;
    return false;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        struct pair p;
        char why[240];
        if (!calls_within(s, l))
            continue;
        if (fits(s, l, &p, why)) {
            struct str place = {0};
            node_text(&s->t, p.place, &place);
            rewrite_site(s, out, l->stmt, true, NULL, "keep the value in %.80s for the loop after it",
                         place.s);
            str_free(&place);
        } else if (*why) {
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
        }
    }
}

static void write_both(const struct rule_source *s, const struct pair *p, struct str *out)
{
    struct str place = {0}, here = {0}, keep = {0}, body = {0}, head = {0}, code = {0};
    node_text(&s->t, p->place, &place);
    as_first(s, p, p->place, &here);
    str_addf(&keep, "%s = ", here.s);
    node_text(&s->t, p->early, &keep);
    str_add(&keep, ";\n");
    swaps early = {0}, late = {0};
    vec_push(&early, (struct swap){p->early, here.s});
    vec_push(&late, (struct swap){p->late, place.s});
    for (const struct node *k = parts_first(p->first->body); k; k = parts_next(p->first->body, k)) {
        if (k == p->stmt)
            str_add(&body, keep.s);
        parts_swap(s, k, &early, &body);
        str_addc(&body, '\n');
    }
    parts_header(s, p->first, &head);
    str_addc(&head, ' ');
    parts_braces(&code, head.s, body.s);
    for (const struct node *k = p->first->stmt->next; k; k = k == p->second->stmt ? NULL : k->next) {
        parts_swap(s, k, &late, &code);
        str_addc(&code, '\n');
    }
    parts_replace_two(s, p->first->stmt, p->second->stmt, code.s, out);
    struct str *all[] = {&place, &here, &keep, &body, &head, &code};
    for (size_t i = 0; i < countof(all); i++)
        str_free(all[i]);
    vec_free(&early);
    vec_free(&late);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    const struct loop *l = parts_loop(s, "reuse", where, e);
    struct pair p;
    char why[240];
    (void)params;
    if (!l)
        return -1;
    if (!fits(s, l, &p, why))
        return err_set(e, ERR_FAIL, "", "reuse: %s", *why ? why : "no loop over the same range follows");
    write_both(s, &p, out);
    return 0;
}

const struct rule rule_reuse = {
    .name = "reuse",
    .help = "compute a function once for two loops, kept in the output in between",
    .risk = RISK_WORK,
    .sites = sites,
    .apply = apply,
};
