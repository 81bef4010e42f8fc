// Rule prefetch: asks for what an innermost loop reads some iterations later, where the processor cannot
// guess it: a gather (A[B[i]]) or a stride of more than a cache line. How far ahead is a knob. Near the end
// nothing is asked for, so no index is read that the loop itself would not read.
#include "rules/parts.h"

enum { LINE_ELEMENTS = 16 };

struct names_check {
    const struct rule_source *s;
    const struct loop *l;
    const char *bad;
};

// Every name in it, but the counter, is the same in all iterations.
static bool check_name(void *user, struct node *n)
{
    struct names_check *c = user;
    const struct var_info *v = n->kind == N_IDENT ? analysis_var(&c->s->a, n->name) : NULL;
    bool mine = v && str_eq(n->name, c->l->var);
    for (const struct node *up = v ? v->decl : NULL; up && !mine; up = up->up)
        if (up == c->l->stmt)
            c->bad = n->name;
    if (n->kind == N_IDENT && !mine && (!v || v->shadowed || scalar_written(&c->s->a, n->name, c->l->stmt)))
        c->bad = n->name;
    return !c->bad;
}

// Is what stands inside the subscript (the B of A[B[i]]) left alone by the loop?
static bool index_stays(const struct rule_source *s, const struct loop *l, const struct access *x)
{
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *in = &s->a.accesses.v[i];
        bool inside = in != x && in->node->first >= x->node->first && in->node->end <= x->node->end;
        for (size_t k = 0; inside && k < s->a.accesses.n; k++) {
            const struct access *w = &s->a.accesses.v[k];
            if (w->loop && loop_inside(w->loop, l) && (w->kind & ACC_WRITE) &&
                (!w->base[0] || !in->base[0] || analysis_may_alias(&s->a, w->base, in->base)))
                return false;
        }
    }
    return true;
}

static bool far_apart(const struct access *x, const struct loop *l)
{
    struct poly stride = {0};
    int64_t step;
    bool linear = access_stride(x, l, &stride), far = !linear;
    if (linear && stride.t.n)
        far = !poly_is_const(&stride, &step) || step >= LINE_ELEMENTS || step <= -LINE_ELEMENTS;
    poly_free(&stride);
    return far;
}

static const struct access *find_read(const struct rule_source *s, const struct loop *l, char why[240])
{
    snprintf(why, 240, "it reads nothing in places that the processor cannot guess");
    if (s->f.is_global || !parts_blocks_ok(s, l, why))
        return NULL;
    if (node_contains(l->body, N_CONTINUE) || strstr(s->text, "__builtin_prefetch")) {
        snprintf(why, 240, "it prefetches already, or skips part of its body");
        return NULL;
    }
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        struct names_check c = {s, l, NULL};
        if (x->loop != l || !(x->kind & ACC_READ) || x->conditional || x->node->kind != N_INDEX ||
            !node_uses(x->node, l->var) || !far_apart(x, l) || expr_pure(&s->a, x->node).v != TRI_YES)
            continue;
        node_walk(x->node, check_name, &c);
        if (!c.bad && index_stays(s, l, x))
            return x;
        if (c.bad)
            snprintf(why, 240, "%s, which the place depends on, changes in the loop", c.bad);
        else
            snprintf(why, 240, "the index may be written in the loop");
    }
    return NULL;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        char why[240];
        if (!parts_inner_loop(s, l))
            continue;
        const struct access *x = find_read(s, l, why);
        rewrite_site(s, out, l->stmt, x != NULL, NULL, "%s%s", x ? "ask ahead for " : why,
                     x ? x->base[0] ? x->base : "a place" : "");
    }
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    static const char *const values[] = {"2", "4", "8", "16", "32", "64", NULL};
    const struct loop *l = parts_loop(s, "prefetch", where, e);
    char why[240] = "there is a loop inside it";
    (void)params;
    if (!l)
        return -1;
    const struct access *x = parts_inner_loop(s, l) ? find_read(s, l, why) : NULL;
    if (!x)
        return err_set(e, ERR_FAIL, "", "prefetch: %s", why);
    struct str at = {0}, body = {0}, code = {0}, head = {0};
    char *ahead = rewrite_name(s, "AHEAD");
    parts_at(l, l->var, ahead, &at);
    struct subst later = {l->var, at.s};
    str_add(&body, "if (");
    parts_operand(s, l->hi_node, &body);
    str_addf(&body, " - %s %s %s", l->var, l->inclusive ? ">=" : ">", ahead);
    if (l->step != 1)
        str_addf(&body, " * %lld", (long long)l->step);
    str_add(&body, ")\n    __builtin_prefetch(&");
    parts_clone(s, x->node, &later, 1, &body);
    str_add(&body, ");\n");
    parts_body(s, l->body, NULL, &body);
    parts_header(s, l, &head);
    str_addc(&head, ' ');
    parts_braces(&code, head.s, body.s);
    parts_replace(s, l->stmt, code.s, out);
    int r = rewrite_add_knob(s, out, ahead, "16", values, e);
    free(ahead);
    str_free(&at), str_free(&body), str_free(&code), str_free(&head);
    return r;
}

const struct rule rule_prefetch = {
    .name = "prefetch",
    .help = "ask ahead for what a gather or a long stride reads some iterations later",
    .risk = RISK_NONE,
    .sites = sites,
    .apply = apply,
};
