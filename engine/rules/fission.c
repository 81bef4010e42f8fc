// Rule fission: a loop whose body falls into two parts that do not need each other iteration by iteration
// becomes two loops, so that each can be vectorized, split or fused by itself (a sum and a call that has no
// vector form). A value that the first part computes for the second is computed again, where that is the
// declaration of a local that only reads.
#include "rules/parts.h"

enum { STATEMENTS_MAX = 32 };

struct split {
    const struct node *all[STATEMENTS_MAX];
    size_t n, at;               // the first part is all[0..at)
    bool again[STATEMENTS_MAX]; // declarations of the first part that the second one needs as well
};

static bool list(const struct loop *l, struct split *p)
{
    *p = (struct split){0};
    for (const struct node *k = parts_first(l->body); k; k = parts_next(l->body, k)) {
        if (p->n == STATEMENTS_MAX)
            return false;
        if (k->kind != N_EMPTY)
            p->all[p->n++] = k;
    }
    return p->n >= 2;
}

static bool within(const struct node *n, const struct node *stmt)
{
    return n->first >= stmt->first && n->end <= stmt->end;
}

static bool in_part(const struct split *p, const struct node *n, bool second)
{
    for (size_t i = second ? p->at : 0; i < (second ? p->n : p->at); i++)
        if (within(n, p->all[i]))
            return true;
    return false;
}

static bool part_uses(const struct split *p, const char *name, bool second)
{
    for (size_t i = second ? p->at : 0; i < (second ? p->n : p->at); i++)
        if (node_uses(p->all[i], name))
            return true;
    return false;
}

struct names {
    const struct rule_source *s;
    const struct loop *l;
    const struct split *p;
    bool changes;
};

static bool declared_here(const struct split *p, const char *name)
{
    for (size_t i = 0; i < p->at; i++)
        for (const struct node *v = p->all[i]->kind == N_DECL ? p->all[i]->kids : NULL; v; v = v->next)
            if (str_eq(v->name, name))
                return true;
    return false;
}

// Other locals that are computed again may be used, and what the loop leaves alone.
static bool check_name(void *user, struct node *n)
{
    struct names *c = user;
    if (n->kind == N_IDENT && !declared_here(c->p, n->name))
        c->changes |= scalar_written(&c->s->a, n->name, c->l->body);
    return !c->changes;
}

// May the declaration be done again in the second loop: it is never set again, calls nothing and reads no
// memory that the loop writes?
static bool repeatable(const struct rule_source *s, const struct loop *l, const struct split *p,
                       const struct node *decl, char why[240])
{
    for (const struct node *v = decl->kids; v; v = v->next) {
        bool plain = v->a && !v->type->rank && !v->type->is_static && expr_pure(&s->a, v->a).v == TRI_YES &&
                     !node_contains(v->a, N_CALL);
        struct names c = {s, l, p, false};
        if (plain)
            node_walk(v->a, check_name, &c);
        plain = plain && !c.changes;
        for (size_t i = 0; i < s->a.scalars.n && plain; i++) {
            const struct scalar_use *u = &s->a.scalars.v[i];
            plain = !(str_eq(u->name, v->name) && u->kind != ACC_READ && u->node != v);
        }
        for (size_t i = 0; i < s->a.accesses.n && plain; i++) {
            const struct access *x = &s->a.accesses.v[i];
            for (size_t k = 0; k < s->a.accesses.n && plain && within(x->node, v); k++) {
                const struct access *w = &s->a.accesses.v[k];
                plain = !(w->kind != ACC_READ && w->loop && loop_inside(w->loop, l) &&
                          analysis_may_alias(&s->a, w->base, x->base));
            }
        }
        if (!plain) {
            snprintf(why, 240, "both parts need %s, which cannot simply be computed twice", v->name);
            return false;
        }
    }
    return true;
}

// Locals of the first part that the second uses, also through each other: from the last declaration back.
static bool find_again(const struct rule_source *s, const struct loop *l, struct split *p, char why[240])
{
    for (size_t i = p->at; i-- > 0;) {
        const struct node *decl = p->all[i];
        bool needed = false;
        for (const struct node *v = decl->kind == N_DECL ? decl->kids : NULL; v; v = v->next) {
            needed |= part_uses(p, v->name, true);
            for (size_t k = i + 1; k < p->at; k++)
                needed |= p->again[k] && node_uses(p->all[k], v->name);
        }
        if (!needed)
            continue;
        if (!repeatable(s, l, p, decl, why))
            return false;
        p->again[i] = true;
    }
    return true;
}

static bool scalars_apart(const struct rule_source *s, const struct loop *l, const struct split *p,
                          char why[240])
{
    for (size_t i = 0; i < s->a.scalars.n; i++) {
        const struct scalar_use *u = &s->a.scalars.v[i];
        if (u->kind == ACC_READ || !u->loop || !loop_inside(u->loop, l) || str_eq(u->name, l->var) ||
            declared_here(p, u->name))
            continue;
        bool first = in_part(p, u->node, false), second = in_part(p, u->node, true);
        const struct var_info *v = analysis_var(&s->a, u->name);
        bool inside =
            v && v->decl && !v->shadowed && (in_part(p, v->decl, false) || in_part(p, v->decl, true));
        if (!inside && ((first && part_uses(p, u->name, true)) || (second && part_uses(p, u->name, false)))) {
            snprintf(why, 240, "both parts use %s, which changes in between", u->name);
            return false;
        }
    }
    return true;
}

// No place may be touched by the first part in one iteration and by the second in another.
static bool memory_apart(const struct rule_source *s, const struct loop *l, const struct split *p,
                         char why[240])
{
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        if (!in_part(p, x->node, false))
            continue;
        for (size_t k = 0; k < s->a.accesses.n; k++) {
            const struct access *y = &s->a.accesses.v[k];
            if (!in_part(p, y->node, true) || (x->kind == ACC_READ && y->kind == ACC_READ))
                continue;
            struct answer a = access_overlap(&s->a, x, y, l);
            if (a.v != TRI_NO) {
                snprintf(why, 240, "%s", a.why);
                return false;
            }
        }
    }
    return true;
}

static bool loop_ok(const struct rule_source *s, const struct loop *l, struct split *p, char why[240])
{
    if (!list(l, p)) {
        snprintf(why, 240, "its body is one statement, or over %d", STATEMENTS_MAX);
        return false;
    }
    if (!parts_blocks_ok(s, l, why))
        return false;
    if (!parts_inner_loop(s, l)) {
        snprintf(why, 240, "there are loops inside it: each can be worked on where it is");
        return false;
    }
    reductions reds = {0};
    bool vectors =
        loop_independent(&s->a, l, &reds).v == TRI_YES && !reds.n && !node_contains(l->body, N_CALL);
    vec_free(&reds);
    if (vectors) {
        snprintf(why, 240, "nothing in it keeps the compiler from vector code");
        return false;
    }
    if (!parts_start_fixed(s, l)) {
        snprintf(why, 240, "its start may change while it runs");
        return false;
    }
    if (node_contains(l->body, N_OPAQUE) || node_contains(l->body, N_WHILE) || node_contains(l->body, N_DO)) {
        snprintf(why, 240, "it holds a loop or code that was not understood");
        return false;
    }
    for (size_t i = 0; i < s->a.calls.n; i++)
        if (within(s->a.calls.v[i].node, l->body) && !s->a.calls.v[i].pure) {
            snprintf(why, 240, "it calls a function that may do anything");
            return false;
        }
    return true;
}

static bool split_ok(const struct rule_source *s, const struct loop *l, struct split *p, size_t at,
                     char why[240])
{
    p->at = at;
    memset(p->again, 0, sizeof p->again);
    bool first = false, second = false; // a part of nothing but declarations does nothing
    for (size_t i = 0; i < p->n; i++)
        *(i < at ? &first : &second) |= p->all[i]->kind != N_DECL;
    if (!first || !second) {
        snprintf(why, 240, "one part would only declare things");
        return false;
    }
    return find_again(s, l, p, why) && scalars_apart(s, l, p, why) && memory_apart(s, l, p, why);
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        struct split p;
        char why[240];
        if (!loop_ok(s, l, &p, why)) {
            if (p.n >= 2)
                rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
            continue;
        }
        json *places = json_array();
        for (size_t at = 1; at < p.n; at++)
            if (split_ok(s, l, &p, at, why)) {
                char number[24];
                snprintf(number, sizeof number, "%zu", at);
                json_push(places, json_new_str(number));
            }
        if (json_count(places)) {
            json *params = json_object();
            json_put(params, "after", places);
            rewrite_site(s, out, l->stmt, true, params, "two loops over %s, each with a part of the body",
                         l->var);
        } else {
            json_free(places);
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
        }
    }
}

static void write_loop(const struct rule_source *s, const struct loop *l, const struct split *p, bool second,
                       struct str *out)
{
    struct str body = {0}, head = {0};
    for (size_t i = 0; i < p->n; i++)
        if (second ? i >= p->at || p->again[i] : i < p->at) {
            parts_clone(s, p->all[i], NULL, 0, &body);
            str_addc(&body, '\n');
        }
    parts_header(s, l, &head);
    str_addc(&head, ' ');
    parts_braces(out, head.s, body.s);
    str_free(&body);
    str_free(&head);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    const struct loop *l = parts_loop(s, "fission", where, e);
    struct split p;
    char why[240];
    if (!l)
        return -1;
    bool ok = loop_ok(s, l, &p, why);
    size_t at = ok ? (size_t)strtoul(rewrite_param(params, "after", "0"), NULL, 10) : 0;
    if (ok && at >= p.n)
        return err_set(e, ERR_FAIL, "", "fission: the body has %zu statements, none after %zu", p.n, at);
    if (ok && at)
        ok = split_ok(s, l, &p, at, why);
    // Not said where: the first place that can be.
    for (size_t k = 1; ok && !at && k < p.n; k++)
        if (split_ok(s, l, &p, k, why))
            at = k;
    if (!ok || !at)
        return err_set(e, ERR_FAIL, "", "fission: %s", why);
    struct str code = {0};
    write_loop(s, l, &p, false, &code);
    write_loop(s, l, &p, true, &code);
    parts_replace(s, l->stmt, code.s, out);
    str_free(&code);
    return 0;
}

const struct rule rule_fission = {
    .name = "fission",
    .help = "make two loops of one whose body falls into two parts",
    .risk = RISK_WORK,
    .sites = sites,
    .apply = apply,
};
