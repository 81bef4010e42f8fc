// Small rules on CUDA kernels. unroll: "#pragma unroll N" before a counted loop. cached: reads of arrays that
// are never written go through __ldg, which the compiler may then move past stores.
#include "rules/cuda.h"

#include "base/task.h"

// ---- unroll

static bool can_unroll(const struct rule_source *s, const struct node *n, char why[240])
{
    int64_t trips;
    const struct loop *l = analysis_loop(&s->a, n);
    if (rewrite_has_pragma(s, n))
        snprintf(why, 240, "it has a pragma already");
    else if (node_contains(n->d, N_FOR) || node_contains(n->d, N_WHILE) || node_contains(n->d, N_DO))
        snprintf(why, 240, "there is a loop inside it");
    else if (l && loop_trip_const(&s->a, l, &trips))
        snprintf(why, 240, "it has a fixed number of iterations: the compiler unrolls it as it sees fit");
    else if (!n->b || !n->c)
        snprintf(why, 240, "it does not count");
    else
        return true;
    return false;
}

struct listing {
    const struct rule_source *s;
    rule_sites *out;
};

static bool list_loop(void *user, struct node *n)
{
    static const char *const times[] = {"4", "2", "8", "16", NULL};
    struct listing *x = user;
    char why[240];
    if (n->kind != N_FOR)
        return !node_is_expr(n);
    bool ok = can_unroll(x->s, n, why);
    if (ok)
        rewrite_site(x->s, x->out, n, true, parts_choice("times", times), "several iterations at a time");
    else
        rewrite_site(x->s, x->out, n, false, NULL, "%s", why);
    return true;
}

static void unroll_sites(const struct rule_source *s, rule_sites *out)
{
    struct listing x = {s, out};
    node_walk(s->t.root, list_loop, &x);
}

static int unroll_apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                        struct err *e)
{
    char why[240];
    struct node *n = rewrite_find(s, where, e);
    if (!n)
        return -1;
    if (n->kind != N_FOR || !can_unroll(s, n, why))
        return err_set(e, ERR_FAIL, "", "unroll-loop: %s", n->kind == N_FOR ? why : "no loop");
    const char *times = rewrite_param(params, "times", "4");
    if (strspn(times, "0123456789") != strlen(times) || !*times)
        return err_set(e, ERR_FAIL, "", "unroll-loop: %s is no number of iterations", times);
    char *line = xasprintf("#pragma unroll %s", times);
    // A single statement under if or else needs braces around the two lines.
    bool block = n->up->kind == N_BLOCK;
    struct str code = {0};
    if (block)
        rewrite_before(s, n, line, out);
    else {
        str_addf(&code, "%s\n", line);
        parts_swap(s, n, NULL, &code);
        str_addc(&code, '\n');
        parts_place(s, n, str_c(&code), out);
    }
    str_free(&code);
    free(line);
    return 0;
}

const struct rule rule_cuda_unroll = {
    .name = "unroll-loop",
    .help = "#pragma unroll before a loop whose number of iterations is not fixed",
    .risk = RISK_NONE,
    .cuda = true,
    .sites = unroll_sites,
    .apply = unroll_apply,
};

// ---- cached

struct reads {
    const struct rule_source *s;
    const char *base;
    const struct node *place; // whose address is taken: no read
    VEC(const struct node *) found;
};

static bool find_reads(void *user, struct node *n)
{
    struct reads *r = user;
    const char *base;
    struct poly sub = {0};
    if (n->kind == N_UNARY && n->op == OP_AND)
        r->place = n->a;
    if (n == r->place)
        return true;
    if (n->kind == N_CALL && n->a->kind == N_IDENT && str_eq(n->a->name, "__ldg"))
        return false;
    if (n->kind == N_INDEX && cu_access(r->s, n, &base, &sub) && str_eq(base, r->base)) {
        poly_free(&sub);
        vec_push(&r->found, n);
        return false;
    }
    poly_free(&sub);
    return true;
}

static bool can_cache(const struct rule_source *s, const struct func_param *p, struct reads *r, char why[240])
{
    *r = (struct reads){.s = s, .base = p->name};
    if (!p->type->const_base)
        snprintf(why, 240, "%.40s is not const", p->name);
    else if (!s->a.no_alias)
        snprintf(why, 240, "%.40s may overlap what is written: no task says otherwise", p->name);
    else if (cu_written(s, p->name))
        snprintf(why, 240, "%.40s is written", p->name);
    else if (!cu_elem_size(p->type->base))
        snprintf(why, 240, "elements of %.40s are of a type that __ldg may not know", p->name);
    else {
        node_walk(s->t.root, find_reads, r);
        if (r->found.n)
            return true;
        snprintf(why, 240, "%.40s is not read element by element", p->name);
    }
    return false;
}

static void cached_sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->f.params.n; i++) {
        const struct func_param *p = &s->f.params.v[i];
        struct reads r;
        char why[240];
        if (p->type->ptr != 1 || p->type->rank)
            continue;
        bool ok = can_cache(s, p, &r, why);
        struct rule_site site = {
            .where = xasprintf("reads of %s", p->name), .line = (int)s->ts.t.v[p->first].line, .ok = ok};
        if (ok)
            snprintf(site.why, sizeof site.why, "%zu reads of %.40s through __ldg", r.found.n, p->name);
        else
            snprintf(site.why, sizeof site.why, "%s", why);
        vec_push(out, site);
        vec_free(&r.found);
    }
}

static int cached_apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                        struct err *e)
{
    (void)params;
    for (size_t i = 0; i < s->f.params.n; i++) {
        const struct func_param *p = &s->f.params.v[i];
        struct reads r = {0};
        char why[240];
        if (!str_starts(where, "reads of ") || !str_eq(where + strlen("reads of "), p->name))
            continue;
        if (!can_cache(s, p, &r, why)) {
            vec_free(&r.found);
            return err_set(e, ERR_FAIL, "", "cached: %s", why);
        }
        struct str text = {0};
        str_addn(&text, s->text, s->len);
        for (size_t k = r.found.n; k-- > 0;) {
            size_t at, len;
            node_bytes(&s->t, r.found.v[k], &at, &len);
            str_splice(&text, at + len, 0, ")", 1);
            str_splice(&text, at, 0, "__ldg(&", 7);
        }
        str_addn(out, text.s, text.len);
        str_free(&text);
        vec_free(&r.found);
        return 0;
    }
    return err_set(e, ERR_FAIL, "", "cached: no place \"%s\"", where);
}

const struct rule rule_cuda_cached = {
    .name = "cached",
    .help = "reads of arrays that are never written go through __ldg",
    .risk = RISK_NONE,
    .cuda = true,
    .sites = cached_sites,
    .apply = cached_apply,
};
