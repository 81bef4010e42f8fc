// Rule fusion: two adjacent loops over the same range become one, so that what both touch is loaded once.
// Legal where nothing that the first loop touches is touched by the second one in another iteration with a
// write. The question is put to the analysis of the fused text, where it is one loop.
#include "rules/parts.h"
#include "source/edits.h"

// The loop directly after l in the same block, or NULL.
static const struct loop *next_loop(const struct rule_source *s, const struct loop *l)
{
    const struct node *n = l->stmt->up && l->stmt->up->kind == N_BLOCK ? l->stmt->next : NULL;
    while (n && n->kind == N_EMPTY)
        n = n->next;
    return n && n->kind == N_FOR ? analysis_loop(&s->a, n) : NULL;
}

static bool same_range(const struct loop *l, const struct loop *m)
{
    bool lo = poly_equal(&l->lo_p, &m->lo_p) || node_same(l->lo, m->lo);
    bool hi =
        poly_equal(&l->hi_p, &m->hi_p) || (l->inclusive == m->inclusive && node_same(l->hi_node, m->hi_node));
    return lo && hi && l->step == m->step && l->type && m->type && str_eq(l->type->base, m->type->base);
}

static bool written_in(const struct rule_source *s, const struct loop *l, const char *name)
{
    return scalar_written(&s->a, name, l->body);
}

static bool in_own_scope(const struct node *n, const char *name)
{
    for (; n; n = n->next)
        if (n->kind == N_DECL)
            for (const struct node *v = n->kids; v; v = v->next)
                if (str_eq(v->name, name))
                    return true;
    return false;
}

// Is the name the body's own, a local that it declares?
static bool own_local(const struct loop *l, const char *name)
{
    return l->body->kind == N_BLOCK && in_own_scope(l->body->kids, name);
}

static bool scalars_apart(const struct rule_source *s, const struct loop *l, const struct loop *m,
                          char why[240])
{
    for (size_t i = 0; i < s->a.scalars.n; i++) {
        const struct scalar_use *u = &s->a.scalars.v[i];
        if (!u->loop || str_eq(u->name, l->var) || str_eq(u->name, m->var))
            continue;
        bool first = loop_inside(u->loop, l), second = loop_inside(u->loop, m);
        if (own_local(first ? l : m, u->name))
            continue;
        if ((first && written_in(s, m, u->name)) || (second && written_in(s, l, u->name))) {
            snprintf(why, 240, "both use %s", u->name);
            return false;
        }
    }
    return true;
}

static bool pure_calls(const struct rule_source *s, const struct loop *l)
{
    for (size_t i = 0; i < s->a.calls.n; i++)
        if (s->a.calls.v[i].loop && loop_inside(s->a.calls.v[i].loop, l) && !s->a.calls.v[i].pure)
            return false;
    return !node_contains(l->body, N_OPAQUE) && !node_contains(l->body, N_WHILE) &&
           !node_contains(l->body, N_DO);
}

// All that is said before the two are put together.
static bool pair_ok(const struct rule_source *s, const struct loop *l, const struct loop *m, char why[240])
{
    if (!parts_blocks_ok(s, l, why) || !parts_blocks_ok(s, m, why))
        return false;
    if (!parts_start_fixed(s, l) || !parts_start_fixed(s, m)) {
        snprintf(why, 240, "the start of one of the two may change while it runs");
        return false;
    }
    if (!same_range(l, m)) {
        snprintf(why, 240, "the loop after it runs over another range");
        return false;
    }
    if (!pure_calls(s, l) || !pure_calls(s, m)) {
        snprintf(why, 240, "one of the two calls a function, or holds a loop, that may do anything");
        return false;
    }
    bool same = str_eq(l->var, m->var);
    if (!same && (node_uses(m->body, l->var) || node_uses(l->body, m->var))) {
        snprintf(why, 240, "one loop uses the other's counter");
        return false;
    }
    if ((!same || l->declared_inside != m->declared_inside) &&
        ((!l->declared_inside && scalar_live_out(&s->a, l->var, m->stmt).v != TRI_NO) ||
         (!m->declared_inside && scalar_live_out(&s->a, m->var, m->stmt).v != TRI_NO))) {
        snprintf(why, 240, "a counter is used after the loops");
        return false;
    }
    return scalars_apart(s, l, m, why);
}

// Does the body declare something that the other one uses under the same name?
static bool names_meet(const struct node *body, const struct node *other)
{
    for (const struct node *n = parts_first(body); n; n = parts_next(body, n))
        for (const struct node *v = n->kind == N_DECL ? n->kids : NULL; v; v = v->next)
            if (node_uses(other, v->name))
                return true;
    return false;
}

static bool declares_alike(const struct node *a, const struct node *b)
{
    for (const struct node *n = a->kind == N_BLOCK ? a->kids : NULL; n; n = n->next)
        for (const struct node *v = n->kind == N_DECL ? n->kids : NULL; v; v = v->next)
            if (b->kind == N_BLOCK && in_own_scope(b->kids, v->name))
                return true;
    return false;
}

// Each part in its own braces, where names of one are names of the other too.
static bool own_braces(const struct loop *l, const struct loop *m)
{
    return names_meet(l->body, m->body) || names_meet(m->body, l->body) || declares_alike(l->body, m->body);
}

static void write_part(const struct rule_source *s, const struct loop *l, const struct subst *subst,
                       size_t ns, bool braces, struct str *out)
{
    struct str body = {0};
    for (const struct node *n = parts_first(l->body); n; n = parts_next(l->body, n)) {
        parts_clone(s, n, subst, ns, &body);
        str_addc(&body, '\n');
    }
    if (braces)
        parts_braces(out, "", str_c(&body));
    else
        str_add(out, str_c(&body));
    str_free(&body);
}

// The text with the two loops made one.
static void fuse(const struct rule_source *s, const struct loop *l, const struct loop *m, struct str *out)
{
    struct str body = {0}, head = {0}, code = {0};
    struct subst counter = {m->var, l->var};
    bool braces = own_braces(l, m);
    write_part(s, l, NULL, 0, braces, &body);
    write_part(s, m, &counter, str_eq(m->var, l->var) ? 0 : 1, braces, &body);
    parts_header(s, l, &head);
    str_addc(&head, ' ');
    parts_braces(&code, head.s, str_c(&body));
    parts_replace_two(s, l->stmt, m->stmt, code.s, out);
    str_free(&body);
    str_free(&head);
    str_free(&code);
}

// In the fused text: what came from the first body and what from the second never meet but in one iteration.
static bool memory_apart(const struct rule_source *s, const struct loop *l, uint32_t second, char why[240])
{
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        if (!x->loop || !loop_inside(x->loop, l) || x->node->first >= second)
            continue;
        for (size_t k = 0; k < s->a.accesses.n; k++) {
            const struct access *y = &s->a.accesses.v[k];
            if (!y->loop || !loop_inside(y->loop, l) || y->node->first < second ||
                (x->kind == ACC_READ && y->kind == ACC_READ))
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

// The first token of the second body: as many statements in as the first body had.
static uint32_t second_part(const struct loop *fused, const struct loop *first, bool braces)
{
    size_t n = 0;
    for (const struct node *k = parts_first(first->body); k && !braces; k = parts_next(first->body, k))
        n++;
    const struct node *k = fused->body->kids;
    for (n = braces ? 1 : n; n && k; n--)
        k = k->next;
    return k ? k->first : UINT32_MAX;
}

static bool fits(const struct rule_source *s, const struct loop *l, const struct loop *m, struct str *text,
                 char why[240])
{
    if (!pair_ok(s, l, m, why))
        return false;
    char *where = site_of(&s->a, l->stmt);
    struct rule_source f;
    struct err e = {0};
    bool ok = false;
    fuse(s, l, m, text);
    bool braces = own_braces(l, m);
    snprintf(why, 240, "the two together are no counted loop");
    if (rule_source_open(&f, text->s, text->len, s->path, s->f.name, s->task, &e) == 0) {
        struct node *n = site_find(&f.a, where);
        const struct loop *one = n ? analysis_loop(&f.a, n) : NULL;
        ok = one && one->body->kind == N_BLOCK && memory_apart(&f, one, second_part(one, l, braces), why);
        rule_source_close(&f);
    }
    free(where);
    return ok;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i], *m = next_loop(s, l);
        struct str text = {0};
        char why[240];
        if (!m)
            continue;
        if (fits(s, l, m, &text, why))
            rewrite_site(s, out, l->stmt, true, NULL, "one loop with the one after it");
        else
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
        str_free(&text);
    }
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    (void)params;
    const struct loop *l = parts_loop(s, "fusion", where, e), *m = l ? next_loop(s, l) : NULL;
    struct str text = {0};
    char why[240] = "no counted loop stands directly after it";
    if (!l)
        return -1;
    if (!m || !fits(s, l, m, &text, why)) {
        str_free(&text);
        return err_set(e, ERR_FAIL, "", "fusion: %s", why);
    }
    str_addn(out, text.s, text.len);
    str_free(&text);
    return 0;
}

const struct rule rule_fusion = {
    .name = "fusion",
    .help = "make one loop of two adjacent ones over the same range",
    .risk = RISK_WORK,
    .sites = sites,
    .apply = apply,
};
