// Rule block: two nested loops in blocks of BI x BJ iterations (strip-mining and interchange), so that what a
// block touches is still in the cache when it is touched again. Whole blocks have constant sizes, which the
// compiler unrolls and vectorizes; what is left runs as before. The order within a block is a choice: a
// transposition wants the loop inside whose stores lie side by side.
#include "rules/parts.h"

struct pair {
    const struct loop *i, *j;
};

static bool loop_ok(const struct rule_source *s, const struct loop *l, const struct loop *nest, char why[240])
{
    if (!parts_blocks_ok(s, l, why))
        return false;
    if (!l->declared_inside && scalar_live_out(&s->a, l->var, nest->stmt).v != TRI_NO) {
        snprintf(why, 240, "%s is used after its loop", l->var);
        return false;
    }
    return true;
}

static bool find_pair(const struct rule_source *s, const struct loop *i, struct pair *p, char why[240])
{
    struct loop *two[2];
    bool reorders = false;
    *p = (struct pair){.i = i};
    if (s->f.is_global) {
        snprintf(why, 240, "a GPU blocks by its grid");
        return false;
    }
    if (loop_nest(&s->a, (struct loop *)(uintptr_t)i, two, 2) < 2) {
        snprintf(why, 240, "there is not exactly one loop inside it, and nothing else");
        return false;
    }
    p->j = two[1];
    if (!loop_ok(s, i, i, why) || !loop_ok(s, p->j, i, why))
        return false;
    if (poly_uses(&p->j->lo_p, i->var) || poly_uses(&p->j->hi_p, i->var)) {
        snprintf(why, 240, "the bounds of %s depend on %s", p->j->var, i->var);
        return false;
    }
    // Exchangeable: no dependence runs forward in one loop and back in the other, so blocks are in order too.
    struct answer a = loop_interchangeable(&s->a, i, p->j, &reorders);
    if (a.v != TRI_YES)
        snprintf(why, 240, "%s", a.why);
    return a.v == TRI_YES;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t k = 0; k < s->a.loops.n; k++) {
        const struct loop *l = s->a.loops.v[k];
        struct pair p;
        char why[240];
        if (!node_contains(l->body, N_FOR))
            continue;
        bool ok = find_pair(s, l, &p, why);
        json *params = ok ? parts_choice("inner", (const char *const[]){l->var, p.j->var, NULL}) : NULL;
        if (ok)
            snprintf(why, sizeof why, "blocks of %s x %s iterations", l->var, p.j->var);
        rewrite_site(s, out, l->stmt, ok, params, "%s", why);
    }
}

struct side { // one of the two loops
    const struct loop *l;
    char *at, *size; // i_0, BI
};

// "for (int i = i_0; i < i_0 + BI; i += step) "
static void inside(const struct side *x, struct str *out)
{
    str_addf(out, "for (%s %s = %s; %s < ", parts_counter_type(x->l), x->l->var, x->at, x->l->var);
    parts_at(x->l, x->at, x->size, out);
    str_addf(out, "; %s += %lld) ", x->l->var, (long long)x->l->step);
}

static void nested(struct str *out, const struct str *outer, const struct str *inner, const char *body)
{
    struct str deep = {0};
    parts_braces(&deep, inner->s, body);
    str_addf(out, "%s\n", outer->s);
    rewrite_lines(out, "    ", deep.s);
    str_free(&deep);
}

static void write_code(const struct rule_source *s, const struct side *i, const struct side *j, bool i_inside,
                       struct str *out)
{
    struct str hi = {0}, hj = {0}, rest = {0}, body = {0}, block = {0}, row = {0};
    parts_body(s, j->l->body, NULL, &body);
    inside(i, &hi);
    inside(j, &hj);
    nested(&block, i_inside ? &hj : &hi, i_inside ? &hi : &hj, str_c(&body));
    parts_block(s, j->l, j->at, j->size, block.s, &row);
    parts_rest(s, j->l, j->at, j->size, &rest);
    parts_braces(&row, hi.s, rest.s);
    parts_block(s, i->l, i->at, i->size, row.s, out);
    parts_rest(s, i->l, i->at, i->size, out);
    struct str *all[] = {&hi, &hj, &rest, &body, &block, &row};
    for (size_t k = 0; k < countof(all); k++)
        str_free(all[k]);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    static const char *const sizes[] = {"4", "8", "16", "32", "64", "128", NULL};
    const struct loop *l = parts_loop(s, "block", where, e);
    struct pair p;
    char why[240];
    if (!l)
        return -1;
    if (!find_pair(s, l, &p, why))
        return err_set(e, ERR_FAIL, "", "block: %s", why);
    struct str code = {0};
    struct side i = {p.i, parts_name(s, p.i->var, "_0"), rewrite_name(s, "BI")},
                j = {p.j, parts_name(s, p.j->var, "_0"), rewrite_name(s, "BJ")};
    write_code(s, &i, &j, str_eq(rewrite_param(params, "inner", p.i->var), p.i->var), &code);
    parts_replace(s, l->stmt, code.s, out);
    int r = rewrite_add_knob(s, out, j.size, "8", sizes, e);
    if (r == 0)
        r = rewrite_add_knob(s, out, i.size, "8", sizes, e);
    free(i.at), free(i.size), free(j.at), free(j.size);
    str_free(&code);
    return r;
}

const struct rule rule_block = {
    .name = "block",
    .help = "run two nested loops block by block, so that a block stays in the cache",
    .risk = RISK_ROUND,
    .promise = 2,
    .sites = sites,
    .apply = apply,
};
