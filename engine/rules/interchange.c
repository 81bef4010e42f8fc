// Rule interchange: exchanges two nested loops, so that the inner one runs along memory. Where the outer loop
// keeps a scalar accumulator (acc = init; for k acc += e; X[..] = acc;) the accumulation moves into X first:
// the loop over k goes outside and the stores become the accumulators (naive matrix product: 22x with wide
// vectors).
#include "rules/parts.h"

struct shape { // acc = init; for k: acc op= value; target = acc
    const char *acc;
    const struct node *init;   // expression
    const struct node *target; // lvalue of the store
    const struct loop *k;
    struct reduction red;
};

static const struct node *only_statement(const struct node *body)
{
    if (body->kind != N_BLOCK)
        return body;
    return body->kids && !body->kids->next ? body->kids : NULL;
}

// The accumulator's declaration with its first value.
static bool is_acc_decl(const struct node *n, struct shape *sh, char why[240])
{
    if (n->kind != N_DECL || !n->kids || n->kids->next || !n->kids->a || n->kids->type->ptr ||
        n->kids->type->rank) {
        snprintf(why, 240, "its body does not begin with one scalar accumulator");
        return false;
    }
    sh->acc = n->kids->name;
    sh->init = n->kids->a;
    return true;
}

static const struct access *access_of(const struct rule_source *s, const struct node *lvalue)
{
    for (size_t i = 0; i < s->a.accesses.n; i++)
        if (s->a.accesses.v[i].node == lvalue)
            return &s->a.accesses.v[i];
    return NULL;
}

// The store may become the accumulator: same type, moves with the loop, and is not read by what is added.
static bool target_ok(const struct rule_source *s, const struct loop *j, const struct node *decl,
                      const struct shape *sh, char why[240])
{
    const struct access *x = access_of(s, sh->target);
    struct poly stride = {0};
    bool moves = x && x->affine && access_stride(x, j, &stride) && stride.t.n > 0;
    poly_free(&stride);
    if (!moves) {
        snprintf(why, 240, "the place where %s is stored does not move with %s", sh->acc, j->var);
        return false;
    }
    if (!x->elem || !str_eq(x->elem, decl->kids->type->base)) {
        snprintf(why, 240, "%s is %s and is stored as %s: rounding would change", sh->acc,
                 decl->kids->type->base, x->elem ? x->elem : "another type");
        return false;
    }
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *y = &s->a.accesses.v[i];
        if (y != x && y->loop && loop_inside(y->loop, j) &&
            (!y->base[0] || analysis_may_alias(&s->a, y->base, x->base))) {
            snprintf(why, 240, "%s may overlap %s", y->base[0] ? y->base : "a pointer", x->base);
            return false;
        }
    }
    return true;
}

static bool find_shape(const struct rule_source *s, const struct loop *j, struct shape *sh, char why[240])
{
    const struct node *decl = j->body->kind == N_BLOCK ? j->body->kids : NULL;
    const struct node *mid = decl ? decl->next : NULL, *store = mid ? mid->next : NULL;
    if (!store || store->next) {
        snprintf(why, 240, "its body is not an accumulator, a loop and a store");
        return false;
    }
    if (!is_acc_decl(decl, sh, why))
        return false;
    sh->k = analysis_loop(&s->a, mid);
    const struct node *only =
        sh->k && !sh->k->is_while && !sh->k->has_break ? only_statement(sh->k->body) : NULL;
    if (!only || !stmt_reduction(&s->a, only, &sh->red) || !str_eq(sh->red.var, sh->acc) || !sh->red.value ||
        (sh->red.op != RED_ADD && sh->red.op != RED_SUB && sh->red.op != RED_MUL)) {
        snprintf(why, 240, "the inner loop does more than add to %s", sh->acc);
        return false;
    }
    if (node_uses(sh->red.value, sh->acc)) {
        snprintf(why, 240, "what is added depends on %s itself", sh->acc);
        return false;
    }
    const struct node *set = store->kind == N_EXPR ? store->a : NULL;
    if (!set || set->kind != N_ASSIGN || set->op != OP_ASSIGN || set->b->kind != N_IDENT ||
        !str_eq(set->b->name, sh->acc)) {
        snprintf(why, 240, "%s is not stored as it is", sh->acc);
        return false;
    }
    sh->target = set->a;
    if (poly_uses(&sh->k->lo_p, j->var) || poly_uses(&sh->k->hi_p, j->var)) {
        snprintf(why, 240, "the bounds of %s depend on %s", sh->k->var, j->var);
        return false;
    }
    if ((!sh->k->declared_inside && scalar_live_out(&s->a, sh->k->var, j->stmt).v != TRI_NO) ||
        (!j->declared_inside && scalar_live_out(&s->a, j->var, j->stmt).v != TRI_NO)) {
        snprintf(why, 240, "a loop counter is used after the loop");
        return false;
    }
    return target_ok(s, j, decl, sh, why);
}

// "for (...)" without the body.
static void header_text(const struct rule_source *s, const struct loop *l, struct str *out)
{
    size_t at, len, body_at, body_len;
    node_bytes(&s->t, l->stmt, &at, &len);
    node_bytes(&s->t, l->body, &body_at, &body_len);
    while (body_at > at && strchr(" \t\r\n", s->text[body_at - 1]))
        body_at--;
    str_addn(out, s->text + at, body_at - at);
}

static void accumulate_in_place(const struct rule_source *s, const struct loop *j, const struct shape *sh,
                                struct str *out)
{
    static const char *const signs[] = {[RED_ADD] = "+=", [RED_SUB] = "-=", [RED_MUL] = "*="};
    struct str hj = {0}, hk = {0}, target = {0}, init = {0}, value = {0}, body = {0};
    header_text(s, j, &hj);
    header_text(s, sh->k, &hk);
    node_text(&s->t, sh->target, &target);
    node_text(&s->t, sh->init, &init);
    node_text(&s->t, sh->red.value, &value);
    char *indent = rewrite_indent(s, j->stmt);
    // Two loops take the place of one: braces where only one statement may stand.
    bool alone = j->stmt->up && j->stmt->up->kind != N_BLOCK;
    str_addf(&body, "%s%s\n%s    %s = %s;\n", alone ? "{ " : "", hj.s, indent, target.s, init.s);
    str_addf(&body, "%s%s\n%s    %s\n%s        %s %s %s;%s", indent, hk.s, indent, hj.s, indent, target.s,
             signs[sh->red.op], value.s, alone ? " }" : "");
    rewrite_replace(s, j->stmt, body.s, out);
    free(indent);
    str_free(&hj);
    str_free(&hk);
    str_free(&target);
    str_free(&init);
    str_free(&value);
    str_free(&body);
}

// The loop directly inside l in a perfect nest, or NULL.
static const struct loop *perfect_inner(const struct rule_source *s, const struct loop *l)
{
    struct loop *nest[2];
    return loop_nest(&s->a, (struct loop *)(uintptr_t)l, nest, 2) >= 2 ? nest[1] : NULL;
}

static bool can_swap(const struct rule_source *s, const struct loop *outer, const struct loop *inner,
                     char why[240])
{
    bool reorders = false;
    if (parts_made(s, outer, why) || parts_made(s, inner, why))
        return false;
    if (outer->is_while || inner->is_while) {
        snprintf(why, 240, "one of them is a while loop");
        return false;
    }
    if (rewrite_has_pragma(s, outer->stmt) || rewrite_has_pragma(s, inner->stmt)) {
        snprintf(why, 240, "a pragma stands before one of them");
        return false;
    }
    struct answer a = loop_interchangeable(&s->a, outer, inner, &reorders);
    snprintf(why, 240, "%s", a.v == TRI_YES ? "both orders give the same" : a.why);
    return a.v == TRI_YES;
}

static void swap_headers(const struct rule_source *s, const struct loop *outer, const struct loop *inner,
                         struct str *out)
{
    size_t outer_at, inner_at, len;
    struct str ho = {0}, hi = {0};
    header_text(s, outer, &ho);
    header_text(s, inner, &hi);
    node_bytes(&s->t, outer->stmt, &outer_at, &len);
    node_bytes(&s->t, inner->stmt, &inner_at, &len);
    str_addn(out, s->text, outer_at);
    str_addn(out, hi.s, hi.len);
    str_addn(out, s->text + outer_at + ho.len, inner_at - outer_at - ho.len);
    str_addn(out, ho.s, ho.len);
    str_addn(out, s->text + inner_at + hi.len, s->len - inner_at - hi.len);
    str_free(&ho);
    str_free(&hi);
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i], *inner = perfect_inner(s, l);
        char why[240];
        struct shape sh = {0};
        if (inner) {
            bool ok = can_swap(s, l, inner, why);
            rewrite_site(s, out, l->stmt, ok, NULL, "exchange %s and %s: %s", l->var, inner->var, why);
        } else if (!l->is_while && node_contains(l->body, N_FOR)) {
            bool ok = !rewrite_has_pragma(s, l->stmt) && find_shape(s, l, &sh, why);
            if (ok)
                rewrite_site(s, out, l->stmt, true, NULL, "%s outside %s, accumulating in place", sh.k->var,
                             l->var);
            else
                rewrite_site(s, out, l->stmt, false, NULL, "%s",
                             rewrite_has_pragma(s, l->stmt) ? "it has a pragma already" : why);
        }
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
        return err_set(e, ERR_FAIL, "", "interchange: %s is no counted loop", where);
    const struct loop *inner = perfect_inner(s, l);
    struct shape sh = {0};
    char why[240];
    if (inner ? !can_swap(s, l, inner, why) : !find_shape(s, l, &sh, why))
        return err_set(e, ERR_FAIL, "", "interchange: %s", why);
    if (inner)
        swap_headers(s, l, inner, out);
    else
        accumulate_in_place(s, l, &sh, out);
    return 0;
}

const struct rule rule_interchange = {
    .name = "interchange",
    .help = "exchange two nested loops; a scalar accumulator moves into memory first",
    .risk = RISK_ROUND,
    .promise = 3,
    .sites = sites,
    .apply = apply,
};
