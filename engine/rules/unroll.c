// Rule unroll: blocks of several iterations of an innermost loop, in their order, with what is left after
// whole blocks in a loop of its own. Nothing is reordered, so any counted loop will do; it is offered where
// iterations depend on each other, since the compiler makes vector code of the others.
#include "rules/parts.h"

static bool fits(const struct rule_source *s, const struct loop *l, char why[240])
{
    if (!parts_blocks_ok(s, l, why) || parts_short(s, l, 8, why))
        return false;
    int64_t trip;
    if (loop_trip_const(&s->a, l, &trip) && trip <= 16) {
        snprintf(why, 240, "the compiler unrolls %lld iterations by itself", (long long)trip);
        return false;
    }
    reductions reds = {0};
    bool apart = loop_independent(&s->a, l, &reds).v == TRI_YES;
    vec_free(&reds);
    if (apart)
        snprintf(why, 240, "its iterations are independent: vector code and accumulators gain more");
    return !apart;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        char why[240];
        if (!parts_inner_loop(s, l))
            continue;
        if (fits(s, l, why))
            rewrite_site(s, out, l->stmt, true, NULL, "blocks of several iterations, and a remainder");
        else
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
    }
}

static void write_code(const struct rule_source *s, const struct loop *l, const char *count,
                       const char *start, const char *u, struct str *out)
{
    struct str inner = {0}, block = {0}, at = {0};
    parts_at(l, start, u, &at);
    struct subst counter = {l->var, at.s};
    for (const struct node *k = parts_first(l->body); k; k = parts_next(l->body, k)) {
        parts_clone(s, k, &counter, 1, &inner);
        str_addc(&inner, '\n');
    }
    parts_lanes(u, count, false, inner.s, &block);
    parts_block(s, l, start, count, block.s, out);
    parts_rest(s, l, start, count, out);
    str_free(&inner);
    str_free(&block);
    str_free(&at);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    static const char *const values[] = {"2", "4", "8", "16", NULL};
    const struct loop *l = parts_loop(s, "unroll", where, e);
    char why[240] = "there is a loop inside it: see jam";
    (void)params;
    if (!l)
        return -1;
    if (!parts_inner_loop(s, l) || !fits(s, l, why))
        return err_set(e, ERR_FAIL, "", "unroll: %s", why);
    char *count = rewrite_name(s, "UNROLL"), *start = parts_name(s, l->var, "_0"), *u = rewrite_name(s, "u");
    struct str code = {0};
    write_code(s, l, count, start, u, &code);
    parts_replace(s, l->stmt, code.s, out);
    int r = rewrite_add_knob(s, out, count, "4", values, e);
    str_free(&code);
    free(count);
    free(start);
    free(u);
    return r;
}

const struct rule rule_unroll = {
    .name = "unroll",
    .help = "unroll an innermost loop, with a remainder",
    .risk = RISK_NONE,
    .sites = sites,
    .apply = apply,
};
