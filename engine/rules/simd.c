// Rule simd: "#pragma omp simd", with reduction() for the scalars that the loop only accumulates. Without it
// gcc may not reorder a float sum at all (dot product: 8x).
#include "rules/parts.h"

#include "base/task.h"

static const char *red_sign(enum red_op op)
{
    static const char *const signs[] = {
        [RED_ADD] = "+",   [RED_SUB] = "-", [RED_MUL] = "*", [RED_MAX] = "max",
        [RED_MIN] = "min", [RED_AND] = "&", [RED_OR] = "|",  [RED_XOR] = "^"};
    return (size_t)op < countof(signs) ? signs[op] : NULL;
}

// What OpenMP has a reduction of: sums of numbers, bits of integers. A pointer that advances is neither.
static bool reducible(const struct rule_source *s, const struct reduction *r)
{
    const struct var_info *v = analysis_var(&s->a, r->var);
    const struct ctype *ty = v ? v->type : NULL;
    bool bits = r->op == RED_AND || r->op == RED_OR || r->op == RED_XOR;
    return ty && (ctype_is_int(ty) || (ctype_is_float(ty) && !bits)) && !ty->is_volatile && !ty->is_ref &&
           !v->shadowed;
}

// The loop's header as OpenMP wants it: the counter alone on one side of the condition.
static bool header_ok(const struct loop *l)
{
    const struct node *c = l->cond;
    return (c->a->kind == N_IDENT && str_eq(c->a->name, l->var)) ||
           (c->b->kind == N_IDENT && str_eq(c->b->name, l->var));
}

bool parts_reductions(const struct rule_source *s, const reductions *reds, struct str *out, char why[240])
{
    for (size_t i = 0; i < reds->n; i++) {
        const struct reduction *r = &reds->v[i];
        const char *sign = red_sign(r->op);
        if (!r->var || !sign) {
            snprintf(why, 240, "it accumulates into memory: scalar replacement has to come first");
            return false;
        }
        if (!reducible(s, r)) {
            snprintf(why, 240, "the type of %s has no reduction", r->var);
            return false;
        }
        struct str clause = {0};
        str_addf(&clause, " reduction(%s:%s)", sign, r->var);
        if (!out->s || !strstr(out->s, clause.s))
            str_add(out, clause.s);
        str_free(&clause);
    }
    return true;
}

static bool inner_loop(const struct rule_source *s, const struct loop *l)
{
    for (size_t i = 0; i < s->a.loops.n; i++)
        if (s->a.loops.v[i]->outer == l)
            return false;
    return true;
}

// At -O3 the compiler makes vector code of plain independent iterations by itself.
static bool compiler_does(const struct rule_source *s, const struct loop *l, const reductions *reds)
{
    bool o3 = false;
    for (size_t i = 0; s->task && i < s->task->cflags.n; i++)
        o3 |= str_eq(s->task->cflags.v[i], "-O3");
    return o3 && !reds->n && !node_contains(l->body, N_IF) && !node_contains(l->body, N_COND) &&
           !node_contains(l->body, N_CALL);
}

// Whether the loop can take the pragma: pragma receives it.
static bool fits(const struct rule_source *s, const struct loop *l, struct str *pragma, char why[240])
{
    if (l->is_while) {
        snprintf(why, 240, "OpenMP wants a for loop");
        return false;
    }
    if (rewrite_has_pragma(s, l->stmt)) {
        snprintf(why, 240, "it has a pragma already");
        return false;
    }
    if (l->has_break) {
        snprintf(why, 240, "it may leave early");
        return false;
    }
    if (!header_ok(l)) {
        snprintf(why, 240, "OpenMP wants %s alone on one side of the condition", l->var);
        return false;
    }
    if (node_contains(l->body, N_PRAGMA) || (l->stmt->up && parts_in_simd(s, l->stmt->up))) {
        snprintf(why, 240, "a pragma inside or around it allows no other");
        return false;
    }
    if (parts_made(s, l, why) || parts_short(s, l, 8, why) || !parts_along_memory(s, l, why))
        return false;
    if (s->f.is_global) {
        snprintf(why, 240, "a thread of a GPU has no vectors of its own");
        return false;
    }
    reductions reds = {0};
    struct answer a = loop_independent(&s->a, l, &reds);
    struct str list = {0};
    bool ok = a.v == TRI_YES;
    if (ok && compiler_does(s, l, &reds)) {
        snprintf(why, 240, "the compiler makes vector code of it at -O3: see ivdep");
        ok = false;
    } else if (!ok)
        snprintf(why, 240, "%s", a.why);
    else
        ok = parts_reductions(s, &reds, &list, why);
    if (ok) {
        str_addf(pragma, "#pragma omp simd%s", str_c(&list));
        snprintf(why, 240, "iterations are independent%s%s", reds.n ? " but for" : "", str_c(&list));
    }
    str_free(&list);
    vec_free(&reds);
    return ok;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        if (!inner_loop(s, l))
            continue;
        struct str pragma = {0};
        char why[240];
        bool ok = fits(s, l, &pragma, why);
        rewrite_site(s, out, l->stmt, ok, NULL, "%s", why);
        str_free(&pragma);
    }
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    (void)params;
    struct node *n = rewrite_find(s, where, e);
    const struct loop *l = n ? analysis_loop(&s->a, n) : NULL;
    if (!n)
        return -1;
    if (!l)
        return err_set(e, ERR_FAIL, "", "simd: %s is no counted loop", where);
    struct str pragma = {0};
    char why[240];
    int r = 0;
    if (!fits(s, l, &pragma, why)) {
        r = err_set(e, ERR_FAIL, "", "simd: %s", why);
    } else {
        rewrite_before(s, l->stmt, str_c(&pragma), out);
        r = rewrite_need_flag(s, out, "-fopenmp-simd", e);
    }
    str_free(&pragma);
    return r;
}

const struct rule rule_simd = {
    .name = "simd",
    .help = "vectorize a loop with omp simd, reductions included",
    .risk = RISK_ROUND,
    .promise = 2,
    .sites = sites,
    .apply = apply,
};
