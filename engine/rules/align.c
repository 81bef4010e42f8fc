// Rule align: an outermost loop twice, once for buffers that lie on a cache line, with that said to the
// compiler, once as it was. The question is asked at run time, so nothing is assumed that may be false.
#include "rules/parts.h"

typedef VEC(const struct var_info *) pointers;

// The pointer parameters that the loop reads or writes through by their own names.
static void find_pointers(const struct rule_source *s, const struct loop *l, pointers *out)
{
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        const struct var_info *v = x->loop && loop_inside(x->loop, l) ? analysis_var(&s->a, x->base) : NULL;
        const struct node *root = x->node;
        while (root->kind == N_INDEX)
            root = root->a;
        bool fits = v && v->param && v->type && v->type->ptr == 1 && !v->type->rank &&
                    !v->type->is_volatile && !v->type->ptr_to_array && !v->type->is_func && !v->shadowed &&
                    !v->address_taken && root->kind == N_IDENT && str_eq(root->name, v->name) &&
                    !parts_in_macro(s, v->name) && !scalar_written(&s->a, v->name, s->t.root);
        for (size_t k = 0; fits && k < out->n; k++)
            fits = out->v[k] != v;
        if (fits)
            vec_push(out, v);
    }
}

static bool fits(const struct rule_source *s, const struct loop *l, pointers *p, char why[240])
{
    if (s->f.is_global || l->outer || l->is_while) {
        snprintf(why, 240, "it is no outermost for loop of a C kernel");
        return false;
    }
    if (rewrite_has_pragma(s, l->stmt) || strstr(s->text, "__builtin_assume_aligned")) {
        snprintf(why, 240, "a pragma stands before it, or alignment is asked for already");
        return false;
    }
    if (node_contains(l->body, N_LABEL) || node_contains(l->body, N_PP) || node_contains(l->body, N_OPAQUE)) {
        snprintf(why, 240, "it holds what cannot stand twice");
        return false;
    }
    find_pointers(s, l, p);
    if (!p->n)
        snprintf(why, 240, "no pointer parameter is used in it");
    return p->n > 0;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        pointers p = {0};
        char why[240];
        if (l->outer)
            continue;
        bool ok = fits(s, l, &p, why);
        json *params = ok ? parts_choice("bytes", (const char *const[]){"64", "32", NULL}) : NULL;
        if (ok)
            snprintf(why, sizeof why, "%zu buffers that lie on a boundary get a loop of their own", p.n);
        rewrite_site(s, out, l->stmt, ok, params, "%s", why);
        vec_free(&p);
    }
}

static void write_code(const struct rule_source *s, const struct loop *l, const pointers *p,
                       const char *bytes, struct str *out)
{
    struct str cond = {0}, inner = {0}, same = {0};
    VEC(struct subst) subst = {0};
    VEC(char *) names = {0};
    for (size_t i = 0; i < p->n; i++) {
        const struct ctype *ty = p->v[i]->type;
        char *name = parts_name(s, p->v[i]->name, "_on");
        str_addf(&cond, "%s(__UINTPTR_TYPE__)%s", i ? " | " : "", p->v[i]->name);
        str_addf(&inner, "%s%s *%s%s = __builtin_assume_aligned(%s, %s);\n", ty->const_base ? "const " : "",
                 ty->base, ty->restrict_ptr ? "restrict " : "", name, p->v[i]->name, bytes);
        vec_push(&names, name);
        vec_push(&subst, (struct subst){p->v[i]->name, name});
    }
    parts_clone(s, l->stmt, subst.v, subst.n, &inner);
    parts_clone(s, l->stmt, NULL, 0, &same);
    char *head = xasprintf("if ((%s) %% %s == 0) ", str_c(&cond), bytes);
    parts_braces(out, head, inner.s);
    parts_braces(out, "else ", same.s);
    for (size_t i = 0; i < names.n; i++)
        free(names.v[i]);
    free(head);
    vec_free(&names);
    vec_free(&subst);
    str_free(&cond), str_free(&inner), str_free(&same);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    const struct loop *l = parts_loop(s, "align", where, e);
    pointers p = {0};
    char why[240];
    if (!l)
        return -1;
    int r = fits(s, l, &p, why) ? 0 : err_set(e, ERR_FAIL, "", "align: %s", why);
    if (r == 0) {
        struct str code = {0};
        write_code(s, l, &p, rewrite_param(params, "bytes", "64"), &code);
        parts_replace(s, l->stmt, code.s, out);
        str_free(&code);
    }
    vec_free(&p);
    return r;
}

const struct rule rule_align = {
    .name = "align",
    .help = "a loop of its own for buffers that lie on a cache line, asked at run time",
    .risk = RISK_NONE,
    .sites = sites,
    .apply = apply,
};
