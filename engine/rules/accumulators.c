// Rule accumulators: a reduction loop over several independent accumulators, so that one addition need not
// wait for the one before. Each accumulated scalar becomes a small array; a block of iterations adds to one
// element each, and the elements are put together after the loop. The block's loop is unrolled (scalar
// chains) or vector code. All reductions of the loop are split together.
#include "rules/parts.h"

static const char *type_of_var(const struct rule_source *s, const char *name)
{
    const struct var_info *v = analysis_var(&s->a, name);
    bool plain = v && v->type && !v->shadowed && !v->address_taken && !v->type->ptr && !v->type->rank &&
                 !v->type->is_volatile && !v->type->is_static && !v->type->is_ref && !v->type->const_base &&
                 (ctype_is_int(v->type) || ctype_is_float(v->type));
    return plain ? v->type->base : NULL;
}

// What an accumulator holds before its first iteration: 0 or 1, or the scalar itself where taking it more
// than once changes nothing.
static const char *neutral(const struct reduction *r)
{
    switch (r->op) {
    case RED_ADD:
    case RED_SUB:
    case RED_XOR:
        return "0";
    case RED_MUL:
        return "1";
    default:
        return r->var;
    }
}

// The statement that takes accumulator `from` into the scalar, in the way the loop does it: fmaxf and a
// comparison differ where one is NaN.
static void combine(const struct reduction *r, const char *from, struct str *out)
{
    static const char *const signs[] = {[RED_ADD] = "+=", [RED_SUB] = "+=", [RED_MUL] = "*=",
                                        [RED_AND] = "&=", [RED_OR] = "|=",  [RED_XOR] = "^="};
    const struct node *e = r->stmt->kind == N_EXPR ? r->stmt->a : r->stmt;
    if (r->op != RED_MAX && r->op != RED_MIN)
        str_addf(out, "%s %s %s;", r->var, signs[r->op], from);
    else if (e->kind == N_ASSIGN && e->b->kind == N_CALL)
        str_addf(out, "%s = %s(%s, %s);", r->var, e->b->a->name, r->var, from);
    else
        str_addf(out, "%s = %s %c %s ? %s : %s;", r->var, from, r->op == RED_MAX ? '>' : '<', r->var, from,
                 r->var);
}

static bool fits(const struct rule_source *s, const struct loop *l, reductions *reds, char why[240])
{
    if (!parts_blocks_ok(s, l, why))
        return false;
    if (!parts_inner_loop(s, l)) {
        snprintf(why, 240, "there is a loop inside it");
        return false;
    }
    if (!parts_along_memory(s, l, why) || parts_short(s, l, 16, why))
        return false;
    struct answer a = loop_independent(&s->a, l, reds);
    if (a.v != TRI_YES) {
        snprintf(why, 240, "%s", a.why);
        return false;
    }
    if (!reds->n) {
        snprintf(why, 240, "it accumulates nothing");
        return false;
    }
    for (size_t i = 0; i < reds->n; i++) {
        const struct reduction *r = &reds->v[i];
        if (!r->var) {
            snprintf(why, 240, "it accumulates into memory: scalar replacement has to come first");
            return false;
        }
        if (!type_of_var(s, r->var) || parts_in_macro(s, r->var)) {
            snprintf(why, 240, "%s is no plain local number", r->var);
            return false;
        }
    }
    return true;
}

static bool can_be_vectors(const struct rule_source *s, const struct loop *l)
{
    return !parts_in_simd(s, l->stmt) && !s->f.is_global;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    static const char *const ways[] = {"simd", "unrolled", NULL};
    static const char *const scalar[] = {"unrolled", NULL};
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        reductions reds = {0};
        char why[240];
        if (!parts_inner_loop(s, l))
            continue;
        if (!fits(s, l, &reds, why)) {
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
        } else {
            bool vectors = can_be_vectors(s, l);
            rewrite_site(s, out, l->stmt, true, parts_choice("lanes", vectors ? ways : scalar),
                         "several accumulators for %s%s", reds.v[0].var, reds.n > 1 ? " and others" : "");
        }
        vec_free(&reds);
    }
}

struct names {
    char *count, *start, *lane;
    VEC(char *) arrays;
    VEC(struct subst) subst;
};

static void names_open(const struct rule_source *s, const struct loop *l, const reductions *reds,
                       struct names *n)
{
    *n = (struct names){
        rewrite_name(s, "ACC"), parts_name(s, l->var, "_0"), rewrite_name(s, "lane"), {0}, {0}};
    for (size_t i = 0; i < reds->n; i++) {
        char *array = parts_name(s, reds->v[i].var, "_p");
        vec_push(&n->arrays, array);
        vec_push(&n->subst, (struct subst){reds->v[i].var, xasprintf("%s[%s]", array, n->lane)});
    }
    struct str at = {0};
    parts_at(l, n->start, n->lane, &at);
    vec_push(&n->subst, (struct subst){l->var, str_steal(&at)});
}

static void names_close(struct names *n)
{
    for (size_t i = 0; i < n->arrays.n; i++)
        free(n->arrays.v[i]);
    for (size_t i = 0; i < n->subst.n; i++)
        free((char *)(uintptr_t)n->subst.v[i].text);
    vec_free(&n->arrays);
    vec_free(&n->subst);
    free(n->count);
    free(n->start);
    free(n->lane);
}

static void write_all(const struct rule_source *s, const struct loop *l, const reductions *reds,
                      const struct names *n, bool simd, struct str *out)
{
    struct str inner = {0}, block = {0};
    for (size_t i = 0; i < reds->n; i++) {
        str_addf(out, "%s %s[%s];\n", type_of_var(s, reds->v[i].var), n->arrays.v[i], n->count);
        str_addf(&inner, "%s = %s;\n", n->subst.v[i].text, neutral(&reds->v[i]));
    }
    char *lanes = xasprintf("for (int %s = 0; %s < %s; %s++) ", n->lane, n->lane, n->count, n->lane);
    parts_braces(out, lanes, inner.s);
    str_clear(&inner);
    for (const struct node *k = parts_first(l->body); k; k = parts_next(l->body, k)) {
        parts_clone(s, k, n->subst.v, n->subst.n, &inner);
        str_addc(&inner, '\n');
    }
    parts_lanes(n->lane, n->count, simd, inner.s, &block);
    parts_block(s, l, n->start, n->count, block.s, out);
    str_clear(&inner);
    for (size_t i = 0; i < reds->n; i++) {
        combine(&reds->v[i], n->subst.v[i].text, &inner);
        str_addc(&inner, '\n');
    }
    parts_braces(out, lanes, inner.s);
    parts_rest(s, l, n->start, n->count, out);
    free(lanes);
    str_free(&inner);
    str_free(&block);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    static const char *const few[] = {"2", "4", "8", "16", NULL};
    static const char *const many[] = {"8", "16", "32", "64", "128", NULL};
    const struct loop *l = parts_loop(s, "accumulators", where, e);
    reductions reds = {0};
    char why[240];
    if (!l)
        return -1;
    if (!fits(s, l, &reds, why)) {
        vec_free(&reds);
        return err_set(e, ERR_FAIL, "", "accumulators: %s", why);
    }
    bool vectors = can_be_vectors(s, l);
    bool simd = str_eq(rewrite_param(params, "lanes", vectors ? "simd" : "unrolled"), "simd");
    if (simd && !vectors) {
        vec_free(&reds);
        return err_set(e, ERR_FAIL, "", "accumulators: its lanes cannot be vector code");
    }
    struct names n;
    struct str code = {0};
    names_open(s, l, &reds, &n);
    write_all(s, l, &reds, &n, simd, &code);
    parts_replace(s, l->stmt, code.s, out);
    int r = rewrite_add_knob(s, out, n.count, simd ? "64" : "4", simd ? many : few, e);
    if (r == 0 && simd)
        r = rewrite_need_flag(s, out, "-fopenmp-simd", e);
    names_close(&n);
    str_free(&code);
    vec_free(&reds);
    return r;
}

const struct rule rule_accumulators = {
    .name = "accumulators",
    .help = "split a reduction over several independent accumulators",
    .risk = RISK_ROUND,
    .promise = 2,
    .sites = sites,
    .apply = apply,
};
