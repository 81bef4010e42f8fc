// Rule ivdep: tells the compiler that the iterations of a loop do not depend on each other, so that it makes
// vector code without comparing pointers first. It says about one loop what restrict says about parameters;
// gcc does not look at restrict on locals, and the parameters belong to the signature.
#include "rules/parts.h"

static bool fits(const struct rule_source *s, const struct loop *l, char why[240])
{
    if (!parts_inner_loop(s, l)) {
        snprintf(why, 240, "there is a loop inside it");
        return false;
    }
    if (!parts_blocks_ok(s, l, why))
        return false;
    reductions reds = {0};
    struct answer a = loop_independent(&s->a, l, &reds);
    bool plain = reds.n == 0;
    vec_free(&reds);
    if (a.v != TRI_YES || !plain) {
        snprintf(why, 240, "%s", a.v != TRI_YES ? a.why : "it accumulates: see simd");
        return false;
    }
    // One array alone, or restrict on every one: the compiler sees it by itself.
    const char *base = NULL;
    bool two = false, writes = false;
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        const struct var_info *v = analysis_var(&s->a, x->base);
        if (!x->loop || !loop_inside(x->loop, l))
            continue;
        writes |= x->kind != ACC_READ;
        two |= base && !str_eq(base, x->base) && v && v->param && !v->type->restrict_ptr;
        base = x->base;
    }
    if (!two || !writes)
        snprintf(why, 240, "nothing in it might overlap");
    return two && writes;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        char why[240];
        if (!parts_inner_loop(s, l))
            continue;
        bool ok = fits(s, l, why);
        rewrite_site(s, out, l->stmt, ok, NULL, "%s",
                     ok ? "no iteration depends on another: no check for overlap" : why);
    }
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    const struct loop *l = parts_loop(s, "ivdep", where, e);
    char why[240];
    (void)params;
    if (!l)
        return -1;
    if (!fits(s, l, why))
        return err_set(e, ERR_FAIL, "", "ivdep: %s", why);
    rewrite_before(s, l->stmt, "#pragma GCC ivdep", out);
    return 0;
}

const struct rule rule_ivdep = {
    .name = "ivdep",
    .help = "say that iterations do not depend on each other (what restrict would say)",
    .risk = RISK_NONE,
    .sites = sites,
    .apply = apply,
};
