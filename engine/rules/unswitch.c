// Rule unswitch: a condition that is the same in every iteration of a loop is asked once, before it: one loop
// for each answer, without the condition.
#include "rules/fold.h"

struct found {
    const struct rule_source *s;
    const struct loop *l;
    const struct node *cond;
    knowns all; // every expression equal to it
};

struct owned {
    const struct rule_source *s;
    bool foreign;
};

// A global, or a variable whose address is known, may be changed through a pointer.
static bool check_owned(void *user, struct node *n)
{
    struct owned *o = user;
    const struct var_info *v = n->kind == N_IDENT ? analysis_var(&o->s->a, n->name) : NULL;
    if (n->kind == N_IDENT && !ast_macro(&o->s->t, n->name))
        o->foreign |= !v || v->address_taken || v->shadowed;
    return !o->foreign;
}

static bool no_hazard(const struct rule_source *s, const struct node *n)
{
    struct owned o = {s, false};
    node_walk((struct node *)(uintptr_t)n, check_owned, &o);
    if (o.foreign)
        return false;
    // A load or division may not be done where the loop would not have done it.
    struct str text = {0};
    bool ok = !node_contains(n, N_INDEX) && !node_contains(n, N_MEMBER) && !node_contains(n, N_CALL);
    node_text(&s->t, n, &text);
    ok = ok && !strpbrk(str_c(&text), "/%");
    str_free(&text);
    return ok;
}

static bool look(void *user, struct node *n)
{
    struct found *f = user;
    const struct node *c = n->kind == N_IF || n->kind == N_COND ? n->a : NULL;
    int64_t value;
    if (c && !f->cond && !node_const(&f->s->t, c, &value) && no_hazard(f->s, c) &&
        !(c->kind == N_UNARY && c->op == OP_MUL) && expr_invariant(&f->s->a, c, f->l).v == TRI_YES)
        f->cond = c;
    if (c && f->cond && node_same(c, f->cond))
        vec_push(&f->all, (struct known){c, true});
    return true;
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
    node_walk(l->body, look, f);
    if (!f->cond)
        snprintf(why, 240, "no condition in it is the same in every iteration");
    return f->cond != NULL;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        struct found f;
        char why[240];
        if (!node_contains(l->body, N_IF) && !node_contains(l->body, N_COND))
            continue;
        struct str text = {0};
        bool ok = fits(s, l, &f, why);
        if (ok)
            node_text(&s->t, f.cond, &text);
        if (ok)
            rewrite_site(s, out, l->stmt, true, NULL, "ask %.80s once, before the loop over %s", text.s,
                         l->var);
        else
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
        str_free(&text);
        vec_free(&f.all);
    }
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    const struct loop *l = parts_loop(s, "unswitch", where, e);
    struct found f;
    char why[240];
    (void)params;
    if (!l)
        return -1;
    if (!fits(s, l, &f, why)) {
        vec_free(&f.all);
        return err_set(e, ERR_FAIL, "", "unswitch: %s", why);
    }
    struct str code = {0}, head = {0}, cond = {0};
    node_text(&s->t, f.cond, &cond);
    parts_header(s, l, &head);
    str_addc(&head, ' ');
    for (int truth = 1; truth >= 0; truth--) {
        struct str body = {0}, loop = {0};
        for (size_t i = 0; i < f.all.n; i++)
            f.all.v[i].value = truth;
        fold_body(s, l->body, &f.all, &body);
        parts_braces(&loop, head.s, str_c(&body));
        char *before = truth ? xasprintf("if (%s) ", cond.s) : xstrdup("else ");
        parts_braces(&code, before, loop.s);
        free(before);
        str_free(&body);
        str_free(&loop);
    }
    parts_replace(s, l->stmt, code.s, out);
    str_free(&code);
    str_free(&head);
    str_free(&cond);
    vec_free(&f.all);
    return 0;
}

const struct rule rule_unswitch = {
    .name = "unswitch",
    .help = "ask a condition that does not change in a loop once before it",
    .risk = RISK_WORK,
    .sites = sites,
    .apply = apply,
};
