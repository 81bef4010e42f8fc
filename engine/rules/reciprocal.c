// Rule reciprocal: divisions by a value that stays the same in a loop become products with its reciprocal.
// It rounds twice, so only where the task allows fast-math.
#include "rules/parts.h"

enum { FOUND_MAX = 8 };

struct found {
    const struct rule_source *s;
    const struct loop *l;
    const struct node *v[FOUND_MAX]; // N_BINARY /, or N_ASSIGN /=
    size_t n;
};

static bool look(void *user, struct node *n)
{
    struct found *f = user;
    bool divides =
        (n->kind == N_BINARY && n->op == OP_DIV) || (n->kind == N_ASSIGN && n->op == OP_DIV_ASSIGN);
    int64_t c;
    if (divides && f->n < FOUND_MAX && parts_is_float(parts_type(f->s, n->a)) &&
        str_eq(parts_type(f->s, n->a), parts_type(f->s, n->b)) && n->b->kind != N_NUM &&
        !node_const(&f->s->t, n->b, &c) && !node_contains(n->b, N_INDEX) &&
        expr_invariant(&f->s->a, n->b, f->l).v == TRI_YES)
        f->v[f->n++] = n;
    return true;
}

static bool fits(const struct rule_source *s, const struct loop *l, struct found *f, char why[240])
{
    *f = (struct found){.s = s, .l = l};
    if (!s->fast_math) {
        snprintf(why, 240, "the task does not allow fast-math");
        return false;
    }
    if (!parts_header_ok(s, l, why) || !parts_only_math(s, l, why))
        return false;
    if (node_contains(l->body, N_OPAQUE)) {
        snprintf(why, 240, "it holds code that was not understood");
        return false;
    }
    node_walk(l->body, look, f);
    // One divisor at a time; what is divided may hold another division, which is left alone.
    size_t kept = f->n ? 1 : 0;
    for (size_t i = 1; i < f->n; i++) {
        bool inside = f->v[i]->first >= f->v[kept - 1]->first && f->v[i]->end <= f->v[kept - 1]->end;
        if (!inside && node_same(f->v[i]->b, f->v[0]->b) &&
            str_eq(parts_type(s, f->v[i]->a), parts_type(s, f->v[0]->a)))
            f->v[kept++] = f->v[i];
    }
    f->n = kept;
    if (!f->n)
        snprintf(why, 240, "it divides by nothing that stays the same");
    return f->n > 0;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        struct found f;
        char why[240];
        if (!node_contains(l->body, N_BINARY) && !node_contains(l->body, N_ASSIGN))
            continue;
        if (!fits(s, l, &f, why)) {
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
            continue;
        }
        struct str text = {0};
        node_text(&s->t, f.v[0]->b, &text);
        rewrite_site(s, out, l->stmt, true, NULL, "multiply by the reciprocal of %.80s", text.s);
        str_free(&text);
    }
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    const struct loop *l = parts_loop(s, "reciprocal", where, e);
    struct found f;
    char why[240];
    (void)params;
    if (!l)
        return -1;
    if (!fits(s, l, &f, why))
        return err_set(e, ERR_FAIL, "", "reciprocal: %s", why);
    char *name = rewrite_name(s, "inverse"), *texts[FOUND_MAX];
    struct str code = {0}, by = {0};
    swaps w = {0};
    const char *type = parts_type(s, f.v[0]->a);
    parts_operand(s, f.v[0]->b, &by);
    str_addf(&code, "const %s %s = %s / %s;\n", type, name, str_eq(type, "float") ? "1.0f" : "1.0", by.s);
    for (size_t i = 0; i < f.n; i++) {
        struct str text = {0};
        bool open = f.v[i]->paren;
        str_add(&text, open ? "(" : "");
        node_text(&s->t, f.v[i]->a, &text);
        str_addf(&text, " %s %s%s", f.v[i]->kind == N_ASSIGN ? "*=" : "*", name, open ? ")" : "");
        texts[i] = str_steal(&text);
        vec_push(&w, (struct swap){f.v[i], texts[i]});
    }
    parts_swap(s, l->stmt, &w, &code);
    str_addc(&code, '\n');
    parts_replace(s, l->stmt, code.s, out);
    for (size_t i = 0; i < f.n; i++)
        free(texts[i]);
    free(name);
    vec_free(&w);
    str_free(&code);
    str_free(&by);
    return 0;
}

const struct rule rule_reciprocal = {
    .name = "reciprocal",
    .help = "multiply by a reciprocal instead of dividing by the same value (fast-math)",
    .risk = RISK_ROUND,
    .sites = sites,
    .apply = apply,
};
