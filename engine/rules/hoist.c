// Rule hoist: what has the same value in every iteration of a loop is computed once before it: arithmetic,
// functions of math.h, and loads that no store of the loop can change. Compilers hoist arithmetic by
// themselves, but not calls that may set errno, nor loads that a store might alias.
#include "rules/parts.h"

enum { FOUND_MAX = 12 };

struct found {
    const struct rule_source *s;
    const struct loop *l;
    const struct node *v[FOUND_MAX]; // in source order; equal ones are listed each
    size_t n;
};

struct hazards { // what may not be done where the loop would not have done it
    const struct rule_source *s;
    const struct loop *l;
    bool load, stop;
};

static bool look_for_hazards(void *user, struct node *n)
{
    struct hazards *h = user;
    if (n->kind == N_INDEX || n->kind == N_MEMBER || (n->kind == N_UNARY && n->op == OP_MUL)) {
        const struct access *x = parts_access(h->s, n);
        h->load = true;
        // Under a condition, or in a loop inside that may not run.
        h->stop |= !x || x->conditional || x->loop != h->l;
    }
    const struct var_info *v = n->kind == N_IDENT ? analysis_var(&h->s->a, n->name) : NULL;
    h->stop |= v && v->address_taken;
    // An integer division by zero ends the program.
    if (n->kind == N_BINARY && (n->op == OP_DIV || n->op == OP_MOD) && !parts_is_float(parts_type(h->s, n)))
        h->stop = true;
    return !h->stop;
}

static bool worth(const struct node *n)
{
    return n->kind == N_CALL || n->kind == N_BINARY || n->kind == N_COND || n->kind == N_INDEX;
}

static bool hoistable(const struct rule_source *s, const struct loop *l, const struct node *n)
{
    struct hazards h = {.s = s, .l = l};
    if (!worth(n) || !parts_is_float(parts_type(s, n)) || expr_invariant(&s->a, n, l).v != TRI_YES)
        return false;
    node_walk((struct node *)(uintptr_t)n, look_for_hazards, &h);
    return !h.stop;
}

// The largest expressions below n; a target of an assignment is a place, only its subscripts are values.
static void collect(struct found *f, const struct node *n)
{
    if (!n || f->n == FOUND_MAX)
        return;
    if (node_is_expr(n) && hoistable(f->s, f->l, n)) {
        f->v[f->n++] = n;
        return;
    }
    const struct node *place =
        n->kind == N_ASSIGN ? n->a
        : n->kind == N_POSTFIX || n->kind == N_SIZEOF ||
                (n->kind == N_UNARY && (n->op == OP_AND || n->op == OP_INC || n->op == OP_DEC))
            ? n->a
            : NULL;
    if (place && place->kind == N_INDEX)
        collect(f, place->b);
    const struct node *parts[] = {n->a, n->b, n->c, n->d};
    for (size_t i = 0; i < countof(parts); i++)
        if (parts[i] != place && !(n->kind == N_CALL && i == 0))
            collect(f, parts[i]);
    for (const struct node *k = n->kids; k; k = k->next)
        collect(f, k);
}

static bool fits(const struct rule_source *s, const struct loop *l, struct found *f, char why[240])
{
    *f = (struct found){.s = s, .l = l};
    if (!parts_header_ok(s, l, why) || !parts_only_math(s, l, why))
        return false;
    if (node_contains(l->body, N_OPAQUE)) {
        snprintf(why, 240, "it holds code that was not understood");
        return false;
    }
    collect(f, l->body);
    if (!f->n)
        snprintf(why, 240, "no number in it stays the same");
    return f->n > 0;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        struct found f;
        char why[240];
        if (!fits(s, l, &f, why)) {
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
            continue;
        }
        struct str text = {0};
        node_text(&s->t, f.v[0], &text);
        rewrite_site(s, out, l->stmt, true, NULL, "%.80s%s before the loop over %s", text.s,
                     f.n > 1 ? " and others" : "", l->var);
        str_free(&text);
    }
}

static bool loads(const struct rule_source *s, const struct loop *l, const struct node *n)
{
    struct hazards h = {.s = s, .l = l};
    node_walk((struct node *)(uintptr_t)n, look_for_hazards, &h);
    return h.load;
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    const struct loop *l = parts_loop(s, "hoist", where, e);
    struct found f;
    char why[240];
    (void)params;
    if (!l)
        return -1;
    if (!fits(s, l, &f, why))
        return err_set(e, ERR_FAIL, "", "hoist: %s", why);
    swaps w = {0};
    char *names[FOUND_MAX] = {0};
    struct str code = {0}, guard = {0};
    parts_runs(s, l, &guard);
    size_t made = 0;
    for (size_t i = 0; i < f.n; i++) {
        for (size_t k = 0; k < i && !names[i]; k++)
            if (node_same(f.v[i], f.v[k]))
                names[i] = xstrdup(names[k]);
        if (!names[i]) {
            char *suffix = made ? xasprintf("%zu", made + 1) : xstrdup("");
            made++;
            names[i] = parts_name(s, "same", suffix);
            struct str text = {0};
            node_text(&s->t, f.v[i], &text);
            str_addf(&code, "const %s %s = ", parts_type(s, f.v[i]), names[i]);
            str_addf(&code, loads(s, l, f.v[i]) ? "%s ? %s : 0;\n" : "%.0s%s;\n", guard.s, text.s);
            str_free(&text);
            free(suffix);
        }
        vec_push(&w, (struct swap){f.v[i], names[i]});
    }
    parts_swap(s, l->stmt, &w, &code);
    str_addc(&code, '\n');
    parts_replace(s, l->stmt, code.s, out);
    for (size_t i = 0; i < f.n; i++)
        free(names[i]);
    vec_free(&w);
    str_free(&code);
    str_free(&guard);
    return 0;
}

const struct rule rule_hoist = {
    .name = "hoist",
    .help = "compute once before a loop what is the same in every iteration",
    .risk = RISK_WORK,
    .sites = sites,
    .apply = apply,
};
