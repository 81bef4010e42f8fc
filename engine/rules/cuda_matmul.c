// Rule matmul: sums of products, one for each (i, j), in tiles. A block gathers BM x BN of them; tiles of
// both factors, BK steps at a time, go through shared memory, and a thread keeps TM x TN sums in registers.
// What the factors are (which is transposed, converted, offset), the bounds, and what becomes of each sum are
// the source's.
#include "rules/cuda_matmul.h"

#include "base/task.h"

static bool is_name(const struct node *n, const char *name)
{
    return n && n->kind == N_IDENT && str_eq(n->name, name);
}

// A local of the loop's body stands for its value.
static const struct node *follow(const struct rule_source *s, const struct mm *m, const struct node *n)
{
    const struct var_info *v = n->kind == N_IDENT ? analysis_var(&s->a, n->name) : NULL;
    const struct node *up = v ? v->decl : NULL;
    while (up && up != m->k->body)
        up = up->up;
    return up && cu_set_once(s, v->name) ? v->decl->a : n;
}

// The access in a factor: alone, cast, or converted by a function of it alone.
static const struct node *access_of(const struct rule_source *s, const struct node *n)
{
    if (n->kind == N_CAST && n->type && !n->type->ptr)
        return access_of(s, n->a);
    if (n->kind == N_CALL && n->a->kind == N_IDENT && cu_pure_call(s, n->a->name) && n->kids &&
        !n->kids->next)
        return access_of(s, n->kids);
    return n->kind == N_INDEX ? n : NULL;
}

static bool mentions(const struct poly *p, const char *var)
{
    return var && poly_uses(p, var);
}

// A factor as stride * (i or j) + kstride * k + rest.
static bool factor(const struct rule_source *s, const struct mm *m, const struct node *n, struct mm_factor *f,
                   char why[240])
{
    struct poly sub = {0}, rest = {0};
    const struct node *x = access_of(s, n);
    *f = (struct mm_factor){.value = n, .access = x};
    if (!x || !cu_plane_access(s, &m->p, x, &f->base, &sub)) {
        snprintf(why, 240, "a factor is not an element of an array");
        return false;
    }
    bool zero = mentions(&sub, m->p.axis[0].var), one = mentions(&sub, m->p.axis[1].var);
    f->axis = zero ? 0 : 1;
    bool ok = zero != one && cu_linear(&sub, m->p.axis[f->axis].var, &f->stride, &rest);
    if (ok) {
        ok = poly_split(&rest, m->k->var, &f->kstride, &f->rest) && !poly_uses(&f->stride, m->k->var) &&
             !poly_uses(&f->kstride, m->k->var) && !poly_uses(&f->rest, m->k->var);
        poly_free(&rest);
    }
    if (!ok)
        snprintf(why, 240, "the subscript of %.40s is not linear in one of %.40s and %.40s, and in %.40s",
                 f->base, m->p.axis[0].var, m->p.axis[1].var, m->k->var);
    f->type = cu_elem(s, f->base);
    const struct var_info *v = analysis_var(&s->a, f->base);
    if (ok && (!v->param || cu_written(s, f->base) || !cu_elem_size(f->type)))
        ok = (snprintf(why, 240, "%.40s is written, or no array of numbers", f->base), false);
    for (uint32_t i = x->first; i < x->end; i++)
        f->wide |=
            token_is(&s->ts, i, "size_t") || token_is(&s->ts, i, "long") || token_is(&s->ts, i, "int64_t");
    f->wide |= str_eq(m->p.axis[f->axis].type, "size_t") || strstr(m->p.axis[f->axis].type, "long") != NULL;
    poly_free(&sub);
    return ok;
}

// acc += a * b, acc = acc + a * b, acc = fmaf(a, b, acc).
static bool product(const struct node *e, const char **acc, const struct node **a, const struct node **b)
{
    if (e->kind != N_ASSIGN || e->a->kind != N_IDENT)
        return false;
    *acc = e->a->name;
    const struct node *v = e->b;
    if (e->op == OP_ASSIGN && v->kind == N_CALL && v->a->kind == N_IDENT &&
        (str_eq(v->a->name, "fmaf") || str_eq(v->a->name, "fma")) && v->kids && v->kids->next &&
        v->kids->next->next) {
        *a = v->kids;
        *b = v->kids->next;
        return is_name(v->kids->next->next, *acc);
    }
    if (e->op == OP_ASSIGN && v->kind == N_BINARY && v->op == OP_ADD)
        v = is_name(v->a, *acc) ? v->b : is_name(v->b, *acc) ? v->a : NULL;
    else if (e->op != OP_ADD_ASSIGN)
        return false;
    if (!v || v->kind != N_BINARY || v->op != OP_MUL)
        return false;
    *a = v->a;
    *b = v->b;
    return true;
}

static bool loop_ok(const struct rule_source *s, struct mm *m, char why[240])
{
    const struct node *sum = NULL, *a, *b;
    int64_t lo;
    const struct loop *l = m->k;
    if (l->is_while || l->has_break || l->inclusive || l->step != 1 || !l->lo ||
        !node_const(&s->t, l->lo, &lo) || lo != 0 || !l->declared_inside || !parts_counter_type(l)) {
        snprintf(why, 240, "the loop over %.40s does not count from 0 in steps of 1", l->var);
        return false;
    }
    for (const struct node *n = parts_first(l->body); n; n = parts_next(l->body, n)) {
        if (n->kind == N_EXPR && !sum)
            sum = n->a;
        else if (n->kind != N_DECL && n->kind != N_EMPTY && n->kind != N_PRAGMA) {
            snprintf(why, 240, "the loop over %.40s does more than one sum", l->var);
            return false;
        }
    }
    if (!sum || !product(sum, &m->acc, &a, &b)) {
        snprintf(why, 240, "the loop over %.40s is no sum of products of two", l->var);
        return false;
    }
    if (!factor(s, m, follow(s, m, a), &m->f[0], why) || !factor(s, m, follow(s, m, b), &m->f[1], why))
        return false;
    if (m->f[0].axis == m->f[1].axis) {
        snprintf(why, 240, "both factors belong to %.40s", m->p.axis[m->f[0].axis].var);
        return false;
    }
    const struct var_info *v = analysis_var(&s->a, m->acc);
    m->type = v && v->type && !v->shadowed && v->decl && v->decl->a ? v->type->base : NULL;
    if (!m->type || (!str_eq(m->type, "float") && !str_eq(m->type, "double") && !str_eq(m->type, "int"))) {
        snprintf(why, 240, "%.40s is no plain sum that begins with a value", m->acc);
        return false;
    }
    m->init = v->decl->a;
    m->decl = v->decl->up;
    return true;
}

// What stands before and after the loop: declarations before it, anything but jumps and other threads after.
static bool around_ok(const struct rule_source *s, const struct mm *m, char why[240])
{
    static const char *const words[] = {"threadIdx", "blockIdx",      "blockDim",
                                        "gridDim",   "__syncthreads", "return"};
    bool before = true, declared = false;
    for (const struct node *n = m->p.body; n; n = n->next) {
        if (n == m->k->stmt) {
            before = false;
            continue;
        }
        declared |= n == m->decl;
        bool ok = !before || n->kind == N_DECL || n->kind == N_EMPTY;
        for (uint32_t i = n->first; i < n->end && ok; i++)
            for (size_t k = 0; k < countof(words); k++)
                ok = ok && !token_is(&s->ts, i, words[k]);
        if (!ok || n->kind == N_OPAQUE || node_contains(n, N_OPAQUE)) {
            snprintf(why, 240, "what stands around the loop over %.40s is not understood", m->k->var);
            return false;
        }
        if (n->kind == N_DECL && n == m->decl && n->kids->next) {
            snprintf(why, 240, "%.40s is declared together with others", m->acc);
            return false;
        }
    }
    if (!declared || before || scalar_written(&s->a, m->k->var, s->t.root) == false)
        snprintf(why, 240, "%.40s is not declared beside the loop", m->acc);
    return declared && !before;
}

// The dimension along which the results lie next to each other: threads of a warp go along it.
static int result_axis(const struct rule_source *s, const struct mm *m)
{
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        const char *base;
        struct poly sub = {0}, stride = {0}, rest = {0};
        int64_t c;
        int found = -1;
        if ((x->kind & ACC_WRITE) && cu_plane_access(s, &m->p, x->node, &base, &sub))
            for (int d = 0; d < 2 && found < 0; d++)
                if (cu_linear(&sub, m->p.axis[d].var, &stride, &rest)) {
                    if (poly_is_const(&stride, &c) && c == 1)
                        found = d;
                    poly_free(&stride);
                    poly_free(&rest);
                }
        poly_free(&sub);
        if (found >= 0)
            return found;
    }
    return m->f[1].axis;
}

// Names inside the tile's text, which no name of the source may be.
static bool names_free(const struct rule_source *s, char why[240])
{
    static const char *const words[] = {"at_", "e_", "r_", "c_",  "i_",    "k_",    "u_",   "v_",
                                        "v4_", "a_", "b_", "kk_", "lane_", "warp_", "wide_"};
    for (size_t i = 0; i < countof(words); i++)
        if (cu_mentions(s->text, words[i])) {
            snprintf(why, 240, "the name %s is taken", words[i]);
            return false;
        }
    return true;
}

static bool find(const struct rule_source *s, struct mm *m, char why[240])
{
    *m = (struct mm){0};
    if (!names_free(s, why))
        return false;
    if (!cu_plane_find(s, &m->p, why))
        return false;
    for (const struct node *n = m->p.body; n; n = n->next)
        if (n->kind == N_FOR && analysis_loop(&s->a, n)) {
            if (m->k) {
                snprintf(why, 240, "more than one loop");
                return false;
            }
            m->k = analysis_loop(&s->a, n);
        }
    if (!m->k) {
        snprintf(why, 240, "no counted loop for each (%.40s, %.40s)", m->p.axis[0].var, m->p.axis[1].var);
        return false;
    }
    if (!loop_ok(s, m, why) || !around_ok(s, m, why))
        return false;
    struct str x = {0};
    bool ok = cu_launch_words(s, &m->p.l, m->p.axis[0].bound, &x) &&
              cu_launch_words(s, &m->p.l, m->p.axis[1].bound, &x);
    str_free(&x);
    if (!ok)
        snprintf(why, 240, "a bound is not made of arguments");
    // The second factor's dimension is the one along which results are next to each other.
    if (ok && result_axis(s, m) != m->f[1].axis) {
        struct mm_factor f = m->f[0];
        m->f[0] = m->f[1];
        m->f[1] = f;
    }
    return ok;
}

static void mm_free(struct mm *m)
{
    for (int i = 0; i < 2; i++) {
        poly_free(&m->f[i].stride);
        poly_free(&m->f[i].kstride);
        poly_free(&m->f[i].rest);
    }
    cu_plane_free(&m->p);
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    struct mm m;
    char why[240];
    if (find(s, &m, why))
        cu_site(s, out, true, NULL, "tiles of %s and %s through shared memory, sums in registers",
                m.f[0].base, m.f[1].base);
    else
        cu_site(s, out, false, NULL, "%s", why);
    mm_free(&m);
}

static const struct {
    const char *name, *value, *values[7];
} knobs[MM_KNOBS] = {
    {"TN", "8", {"4", "8", NULL}},
    {"TM", "8", {"4", "8", NULL}},
    {"BK", "16", {"8", "16", "32", NULL}},
    {"BN", "128", {"64", "128", "256", NULL}},
    {"BM", "128", {"64", "128", "256", NULL}},
};

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    struct mm m;
    char why[240];
    (void)where;
    (void)params;
    if (!find(s, &m, why)) {
        mm_free(&m);
        return err_set(e, ERR_FAIL, "", "matmul: %s", why);
    }
    struct str code = {0}, text = {0}, rows = {0}, cols = {0};
    char **n = m.names;
    for (int i = 0; i < MM_KNOBS; i++)
        n[i] = rewrite_name(s, knobs[i].name);
    mm_write(s, &m, &code);
    cu_plane_replace(s, &m.p, str_c(&code), &text);
    cu_launch_words(s, &m.p.l, m.p.axis[m.f[0].axis].bound, &rows);
    cu_launch_words(s, &m.p.l, m.p.axis[m.f[1].axis].bound, &cols);
    struct cu_launch l = {.ngrid = 2, .nblock = 1, .args = xstrdup(m.p.l.args)};
    l.grid[0] = xasprintf("ceildiv(%s, %s)", cols.s, n[MM_BN]);
    l.grid[1] = xasprintf("ceildiv(%s, %s)", rows.s, n[MM_BM]);
    l.block[0] = xasprintf("(%s / %s) * (%s / %s)", n[MM_BM], n[MM_TM], n[MM_BN], n[MM_TN]);
    int r = cu_launch_put(s, &text, &l, e);
    for (int i = 0; i < MM_KNOBS && r == 0; i++)
        r = rewrite_add_knob(s, &text, n[i], knobs[i].value, knobs[i].values, e);
    if (r == 0)
        str_addn(out, text.s, text.len);
    for (int i = 0; i < MM_KNOBS; i++)
        free(n[i]);
    str_free(&code);
    str_free(&text);
    str_free(&rows);
    str_free(&cols);
    cu_launch_free(&l);
    mm_free(&m);
    return r;
}

const struct rule rule_cuda_matmul = {
    .name = "matmul",
    .help = "sums of products of two arrays in tiles: shared memory, registers, 16-byte loads",
    .risk = RISK_SHAPE,
    .cuda = true,
    .sites = sites,
    .apply = apply,
};
