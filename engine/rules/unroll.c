// Rule unroll: blocks of several iterations of an innermost loop, in their order, with what is left after
// whole blocks in a loop of its own. Nothing is reordered, so any counted loop will do.
#include "rules/parts.h"

static bool fits(const struct rule_source *s, const struct loop *l, char why[240])
{
    if (!parts_blocks_ok(s, l, why))
        return false;
    int64_t trip;
    if (loop_trip_const(&s->a, l, &trip) && trip <= 8) {
        snprintf(why, 240, "the compiler unrolls %lld iterations by itself", (long long)trip);
        return false;
    }
    return true;
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
    struct str lo = {0}, inner = {0}, block = {0}, room = {0}, step = {0}, at = {0};
    node_text(&s->t, l->lo, &lo);
    parts_at(l, start, u, &at);
    str_addf(&inner, "const %s %s = %s;\n", parts_counter_type(l), l->var, at.s);
    parts_body(s, l->body, NULL, &inner);
    str_addf(&block, "#pragma GCC unroll %d\n", PARTS_UNROLL_MAX);
    char *lanes = xasprintf("for (int %s = 0; %s < %s; %s++) ", u, u, count, u);
    parts_braces(&block, lanes, inner.s);
    parts_room(s, l, start, count, &room);
    parts_advance(l, start, count, &step);
    char *head = xasprintf("for (; %s; %s) ", room.s, step.s);
    str_addf(out, "%s %s = %s;\n", parts_counter_type(l), start, lo.s);
    parts_braces(out, head, block.s);
    str_add(out, "#pragma GCC unroll 1\n");
    parts_rest(s, l, start, out);
    str_add(out, "\n    ");
    parts_clone(s, l->body, NULL, 0, out);
    str_addc(out, '\n');
    free(lanes);
    free(head);
    str_free(&lo);
    str_free(&inner);
    str_free(&block);
    str_free(&room);
    str_free(&step);
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
    parts_place(s, l->stmt, code.s, out);
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
