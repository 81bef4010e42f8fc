// Rule scalar: scalar replacement. A place in memory that a loop reads and writes in every iteration is kept
// in a local and stored after the loop: the sum stays in a register, and other rules see a reduction.
#include "rules/parts.h"

struct cell {
    const struct access *x; // the first write
    swaps uses;             // all accesses to it in the loop
};

struct names_check {
    const struct rule_source *s;
    const struct loop *l;
    const char *name;
};

static bool check_name(void *user, struct node *n)
{
    struct names_check *c = user;
    if (n->kind == N_IDENT && (str_eq(n->name, c->l->var) || scalar_written(&c->s->a, n->name, c->l->stmt)))
        c->name = n->name;
    return !c->name;
}

// Is it one place for the whole loop, and named by what is known before it?
static bool stays(const struct rule_source *s, const struct loop *l, const struct access *x)
{
    struct names_check c = {s, l, NULL};
    if (!x->affine || !x->elem || x->node->kind != N_INDEX)
        return false;
    node_walk(x->node, check_name, &c);
    return !c.name && expr_pure(&s->a, x->node).v == TRI_YES;
}

static bool in_loop(const struct access *x, const struct loop *l)
{
    return x->loop && loop_inside(x->loop, l);
}

// All other accesses of the loop are the same place or never this one.
static bool find_uses(const struct rule_source *s, const struct loop *l, struct cell *c, const char *name,
                      char why[240])
{
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *y = &s->a.accesses.v[i];
        if (!in_loop(y, l) || !analysis_may_alias(&s->a, c->x->base, y->base))
            continue;
        if (!str_eq(c->x->base, y->base) || !y->affine || !poly_equal(&y->sub, &c->x->sub) ||
            !str_eq(y->elem, c->x->elem)) {
            snprintf(why, 240, "%s may be touched at another place too", c->x->base);
            return false;
        }
        vec_push(&c->uses, (struct swap){y->node, name});
    }
    return true;
}

static bool find_cell(const struct rule_source *s, const struct loop *l, struct cell *c, const char *name,
                      char why[240])
{
    *c = (struct cell){0};
    snprintf(why, 240, "no place in memory is written in every iteration");
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        if (x->kind == ACC_READ || x->loop != l || x->conditional || !stays(s, l, x))
            continue;
        c->x = x;
        if (find_uses(s, l, c, name, why))
            return true;
        c->uses.n = 0;
    }
    return false;
}

static bool fits(const struct rule_source *s, const struct loop *l, struct cell *c, const char *name,
                 char why[240])
{
    *c = (struct cell){0};
    if (!parts_blocks_ok(s, l, why))
        return false;
    for (size_t i = 0; i < s->a.calls.n; i++)
        if (s->a.calls.v[i].loop && loop_inside(s->a.calls.v[i].loop, l) && !s->a.calls.v[i].pure) {
            snprintf(why, 240, "it calls a function that may do anything");
            return false;
        }
    if (node_contains(l->body, N_OPAQUE) || node_contains(l->body, N_WHILE) || node_contains(l->body, N_DO)) {
        snprintf(why, 240, "it holds a loop or code that was not understood");
        return false;
    }
    if (!l->declared_inside && scalar_live_out(&s->a, l->var, l->stmt).v != TRI_NO) {
        snprintf(why, 240, "%s is used after the loop", l->var);
        return false;
    }
    if (!parts_start_fixed(s, l)) {
        snprintf(why, 240, "its start may change while it runs");
        return false;
    }
    return find_cell(s, l, c, name, why);
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        struct cell c;
        char why[240];
        bool ok = fits(s, l, &c, "", why);
        struct str text = {0};
        if (ok)
            node_text(&s->t, c.x->node, &text);
        if (ok)
            rewrite_site(s, out, l->stmt, true, NULL, "%.80s in a local while %s runs", text.s, l->var);
        else
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
        str_free(&text);
        vec_free(&c.uses);
    }
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    const struct loop *l = parts_loop(s, "scalar", where, e);
    struct cell c;
    char why[240];
    (void)params;
    if (!l)
        return -1;
    char *name = rewrite_name(s, "cell");
    if (!fits(s, l, &c, name, why)) {
        free(name);
        vec_free(&c.uses);
        return err_set(e, ERR_FAIL, "", "scalar: %s", why);
    }
    struct str place = {0}, guard = {0}, code = {0}, inner = {0};
    node_text(&s->t, c.x->node, &place);
    parts_runs(s, l, &guard);
    str_addf(&inner, "%s %s = %s;\n", c.x->elem, name, place.s);
    parts_swap(s, l->stmt, &c.uses, &inner);
    str_addf(&inner, "\n%s = %s;\n", place.s, name);
    // Where the loop does not run the place may not exist.
    char *head = xasprintf("if (%s) ", guard.s);
    parts_braces(&code, head, inner.s);
    parts_replace(s, l->stmt, code.s, out);
    free(head);
    free(name);
    str_free(&place);
    str_free(&guard);
    str_free(&code);
    str_free(&inner);
    vec_free(&c.uses);
    return 0;
}

const struct rule rule_scalar = {
    .name = "scalar",
    .help = "keep a place in memory in a local while a loop works on it",
    .risk = RISK_WORK,
    .sites = sites,
    .apply = apply,
};
