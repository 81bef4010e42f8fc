// Rule jam: unroll-and-jam. A block of iterations of an outer loop runs together: the loops inside run once
// for the block, and each statement is done for all iterations of the block before the next. What an inner
// loop loads that does not move with the outer one is then used several times. Locals that have to live
// across a loop inside become small arrays. The inner block loop is unrolled, or vector code: then the outer
// loop is the one that is vectorized.
#include "rules/parts.h"

enum { LOCALS_MAX = 12, DEPTH_MAX = 6 };

struct jam {
    const struct rule_source *s;
    const struct loop *l;
    reductions reds;
    const struct node *locals[LOCALS_MAX]; // N_VAR of those that become arrays
    struct subst subst[LOCALS_MAX + 1];    // and of the counter, the last
    char *arrays[LOCALS_MAX];
    size_t n;
    char *count, *start, *u;
    bool simd;
    bool simd_inside, odd_pragma, loop_inside, reuse, unit;
};

static bool has_loop(const struct rule_source *s, const struct node *n)
{
    return node_contains(n, N_FOR) && !parts_is_lanes(s, n);
}

// The statements from n on that can be done together: up to the next one with a loop in it.
static const struct node *group_end(const struct rule_source *s, const struct node *body,
                                    const struct node *n)
{
    while (n && !has_loop(s, n))
        n = parts_next(body, n);
    return n;
}

// Is the local, declared in a group that ends before `end`, needed behind it?
static bool outlives(const struct node *body, const struct node *end, const char *name)
{
    for (const struct node *n = end; n; n = parts_next(body, n))
        if (node_uses(n, name))
            return true;
    return false;
}

static bool add_local(struct jam *j, const struct node *v, char why[240])
{
    const struct var_info *info = analysis_var(&j->s->a, v->name);
    int64_t size;
    if (v->type->rank > 1 || (v->type->rank && (v->type->ptr || !v->type->dim[0])) || v->type->ptr > 1 ||
        v->type->is_static || v->type->is_ref || v->type->is_volatile || !info || info->shadowed ||
        info->address_taken || (v->a && v->a->kind == N_INIT) ||
        (v->type->rank && !node_const(&j->s->t, v->type->dim[0], &size)) || parts_in_macro(j->s, v->name)) {
        snprintf(why, 240, "%s, which lives across a loop inside, is no plain scalar or row", v->name);
        return false;
    }
    if (j->n == LOCALS_MAX) {
        snprintf(why, 240, "too many locals live across the loops inside");
        return false;
    }
    j->locals[j->n++] = v;
    return true;
}

static bool header_free(const struct jam *j, const struct loop *k, char why[240])
{
    const struct node *parts[] = {k->lo, k->hi_node};
    for (size_t i = 0; i < countof(parts); i++) {
        const char *name = parts[i] && node_uses(parts[i], j->l->var) ? j->l->var : NULL;
        for (size_t n = 0; n < j->n && parts[i] && !name; n++)
            name = node_uses(parts[i], j->locals[n]->name) ? j->locals[n]->name : NULL;
        if (name || !parts_start_fixed(j->s, k)) {
            snprintf(why, 240, "the bounds of %s depend on %s", k->var, name ? name : "what the loop does");
            return false;
        }
    }
    return true;
}

// A counter that is declared outside has, between the loops, the value of the last one that ran.
static bool counter_private(const struct jam *j, const struct loop *k, char why[240])
{
    const struct analysis *a = &j->s->a;
    for (size_t i = 0; i < a->scalars.n && !k->declared_inside; i++) {
        const struct scalar_use *u = &a->scalars.v[i];
        bool counts = false;
        if (!str_eq(u->name, k->var) || !u->loop || !loop_inside(u->loop, j->l))
            continue;
        for (const struct loop *up = u->loop; up && up != j->l; up = up->outer)
            counts |= str_eq(up->var, k->var);
        if (!counts) {
            snprintf(why, 240, "%s is used outside its loop", k->var);
            return false;
        }
    }
    return true;
}

static bool level_ok(struct jam *j, const struct node *body, int depth, char why[240])
{
    if (depth > DEPTH_MAX) {
        snprintf(why, 240, "the loops inside are too deep");
        return false;
    }
    for (const struct node *n = parts_first(body); n;) {
        const struct node *end = group_end(j->s, body, n);
        for (; n != end; n = parts_next(body, n))
            for (const struct node *v = n->kind == N_DECL ? n->kids : NULL; v; v = v->next)
                if (outlives(body, end, v->name) && !add_local(j, v, why))
                    return false;
        if (!n)
            break;
        if (n->kind == N_BLOCK) {
            if (!level_ok(j, n, depth + 1, why))
                return false;
            n = parts_next(body, n);
            continue;
        }
        const struct loop *k = n->kind == N_FOR ? analysis_loop(&j->s->a, n) : NULL;
        if (!k || k->is_while || k->has_break) {
            snprintf(why, 240, "a loop inside is not counted, or stands under a condition");
            return false;
        }
        if (!header_free(j, k, why) || !counter_private(j, k, why) || !level_ok(j, k->body, depth + 1, why))
            return false;
        n = parts_next(body, n);
    }
    return true;
}

// Pragmas inside stand before loops over blocks, where they stay; clauses name variables that may be arrays.
static bool check_pragma(void *user, struct node *n)
{
    struct jam *j = user;
    if (n->kind != N_PRAGMA)
        return true;
    struct str text = {0};
    node_text(&j->s->t, n, &text);
    bool simd = strstr(str_c(&text), "omp simd") != NULL;
    bool known = (simd && !strchr(text.s, '(')) || strstr(text.s, "GCC unroll");
    j->simd_inside |= simd;
    j->odd_pragma |= !known || !n->next || !parts_is_lanes(j->s, n->next);
    str_free(&text);
    return true;
}

// Does a block gain: is something loaded that does not move with the loop (a block loads it once), or, for
// vector code, does all that moves with it move by one element?
static void find_gain(struct jam *j)
{
    j->reuse = false;
    j->unit = false;
    bool all = true;
    for (size_t i = 0; i < j->s->a.accesses.n; i++) {
        const struct access *x = &j->s->a.accesses.v[i];
        struct poly stride;
        int64_t by;
        const struct var_info *v = analysis_var(&j->s->a, x->base);
        // A local array is in the nearest cache, or in registers, anyway.
        if (!x->loop || !loop_inside(x->loop, j->l) || (v && !v->param && v->type && v->type->rank))
            continue;
        if (!access_stride(x, j->l, &stride)) {
            all = false;
        } else if (poly_is_const(&stride, &by) && by == 0) {
            j->reuse |= x->loop != j->l;
        } else if (poly_is_const(&stride, &by) && by == 1 && j->l->step == 1) {
            j->unit = true;
        } else {
            all = false;
        }
        poly_free(&stride);
    }
    j->unit &= all;
}

// A loop inside that is not only one over a block.
static bool find_loop(void *user, struct node *n)
{
    struct jam *j = user;
    j->loop_inside |= n->kind == N_FOR && !parts_is_lanes(j->s, n);
    return !j->loop_inside;
}

static bool fits(struct jam *j, const struct rule_source *s, const struct loop *l, char why[240])
{
    *j = (struct jam){.s = s, .l = l};
    if (!parts_header_ok(s, l, why))
        return false;
    node_walk(l->body, check_pragma, j);
    if (j->odd_pragma) {
        snprintf(why, 240, "there is a pragma inside it");
        return false;
    }
    node_walk(l->body, find_loop, j);
    if (!j->loop_inside) {
        snprintf(why, 240, "the only loop inside it is one over a block");
        return false;
    }
    struct answer a = loop_independent(&s->a, l, &j->reds);
    if (a.v != TRI_YES) {
        snprintf(why, 240, "%s", a.why);
        return false;
    }
    find_gain(j);
    if (!j->reuse && !j->unit) {
        snprintf(why, 240, "nothing that is loaded would be used twice, and no vector runs along %s", l->var);
        return false;
    }
    return level_ok(j, l->body, 0, why);
}

static bool vectors(const struct jam *j)
{
    return j->unit && j->reds.n == 0 && !j->simd_inside && !parts_in_simd(j->s, j->l->stmt) &&
           !j->s->f.is_global;
}

// A loop of the nest, l or one inside it, that a vector could run along: that comes first, since the blocks
// of the others are then made around whole vectors.
static const struct loop *vector_loop(const struct rule_source *s, const struct loop *l)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *m = s->a.loops.v[i];
        struct jam j;
        char why[240];
        if (!loop_inside(m, l) || parts_inner_loop(s, m))
            continue;
        bool ok = fits(&j, s, m, why) && vectors(&j);
        vec_free(&j.reds);
        if (ok)
            return m;
    }
    return NULL;
}

// An innermost loop inside l that the compiler makes vector code of as it is: a block in it would break that.
static const struct loop *vector_code(const struct rule_source *s, const struct loop *l)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *m = s->a.loops.v[i];
        reductions reds = {0};
        char why[240];
        if (m == l || !loop_inside(m, l) || !parts_inner_loop(s, m) || parts_is_lanes(s, m->stmt) ||
            parts_made(s, m, why) || !parts_along_memory(s, m, why))
            continue;
        bool apart = loop_independent(&s->a, m, &reds).v == TRI_YES && !reds.n;
        vec_free(&reds);
        if (apart)
            return m;
    }
    return NULL;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    static const char *const simd[] = {"simd", NULL}, *const unrolled[] = {"unrolled", NULL};
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i], *first;
        struct jam j;
        char why[240];
        if (parts_inner_loop(s, l))
            continue;
        bool ok = fits(&j, s, l, why);
        const char *const *choice = ok && vectors(&j) ? simd : unrolled;
        if (ok && choice == unrolled && !j.reuse) {
            snprintf(why, sizeof why, "vector code stands inside or around it");
            ok = false;
        } else if (ok && choice == unrolled && (first = vector_loop(s, l))) {
            snprintf(why, sizeof why, "vectors along %s have to come first", first->var);
            ok = false;
        } else if (ok && choice == unrolled && (first = vector_code(s, l))) {
            snprintf(why, sizeof why, "blocks would break the vectors along %s", first->var);
            ok = false;
        }
        if (ok)
            rewrite_site(s, out, l->stmt, true, parts_choice("block", choice),
                         "several iterations of %s together, inside the loops in it", l->var);
        else
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
        vec_free(&j.reds);
    }
}

// ---- writing

static void names_open(struct jam *j)
{
    j->count = rewrite_name(j->s, j->simd ? "LANES" : "JAM");
    j->start = parts_name(j->s, j->l->var, "_0");
    j->u = rewrite_name(j->s, "u");
    for (size_t i = 0; i < j->n; i++) {
        j->arrays[i] = parts_name(j->s, j->locals[i]->name, "_u");
        j->subst[i] = (struct subst){j->locals[i]->name, xasprintf("%s[%s]", j->arrays[i], j->u)};
    }
    struct str at = {0};
    parts_at(j->l, j->start, j->u, &at);
    j->subst[j->n] = (struct subst){j->l->var, str_steal(&at)};
}

static void names_close(struct jam *j)
{
    for (size_t i = 0; i < j->n; i++)
        free(j->arrays[i]);
    for (size_t i = 0; i <= j->n; i++)
        free((char *)(uintptr_t)j->subst[i].text);
    free(j->count);
    free(j->start);
    free(j->u);
    vec_free(&j->reds);
}

static const char *element_of(const struct jam *j, const struct node *v)
{
    for (size_t i = 0; i < j->n; i++)
        if (j->locals[i] == v)
            return j->subst[i].text;
    return NULL;
}

// A declaration of which some variables are arrays by now: those are only set.
static void write_decl(const struct jam *j, const struct node *decl, struct str *out)
{
    for (const struct node *v = decl->kids; v; v = v->next) {
        const char *element = element_of(j, v);
        if (element && !v->a)
            continue;
        if (element)
            str_add(out, element);
        else
            ctype_print((struct ast *)(uintptr_t)&j->s->t, v->type, v->name, out);
        if (v->a) {
            str_add(out, " = ");
            parts_clone(j->s, v->a, j->subst, j->n + 1, out);
        }
        str_add(out, ";\n");
    }
}

static bool any_local(const struct jam *j, const struct node *decl)
{
    for (const struct node *v = decl->kind == N_DECL ? decl->kids : NULL; v; v = v->next)
        if (element_of(j, v))
            return true;
    return false;
}

static void write_group(const struct jam *j, const struct node *body, const struct node *from,
                        const struct node *end, struct str *out)
{
    struct str inner = {0};
    for (const struct node *n = from; n != end; n = parts_next(body, n)) {
        if (any_local(j, n)) {
            write_decl(j, n, &inner);
        } else if (n->kind != N_EMPTY) {
            parts_clone(j->s, n, j->subst, j->n + 1, &inner);
            str_addc(&inner, '\n');
        }
    }
    if (inner.len)
        parts_lanes(j->u, j->count, j->simd, inner.s, out);
    str_free(&inner);
}

static void write_arrays(const struct jam *j, const struct node *decl, struct str *out)
{
    for (size_t i = 0; i < j->n; i++) {
        const struct ctype *ty = j->locals[i]->type;
        if (j->locals[i]->up != decl)
            continue;
        str_addf(out, "%s%s %s%s[%s]", ty->ptr && ty->const_base ? "const " : "", ty->base,
                 ty->ptr ? "*" : "", j->arrays[i], j->count);
        if (ty->rank) {
            str_addc(out, '[');
            node_text(&j->s->t, ty->dim[0], out);
            str_addc(out, ']');
        }
        str_add(out, ";\n");
    }
}

static void write_level(const struct jam *j, const struct node *body, struct str *out)
{
    for (const struct node *n = parts_first(body); n; n = parts_next(body, n))
        if (n->kind == N_DECL)
            write_arrays(j, n, out);
    for (const struct node *n = parts_first(body); n;) {
        const struct node *end = group_end(j->s, body, n);
        write_group(j, body, n, end, out);
        if (!end)
            break;
        struct str head = {0}, inner = {0};
        const struct loop *k = analysis_loop(&j->s->a, end);
        if (k) {
            parts_header(j->s, k, &head);
            str_addc(&head, ' ');
        }
        write_level(j, k ? k->body : end, &inner);
        parts_braces(out, str_c(&head), str_c(&inner));
        str_free(&head);
        str_free(&inner);
        n = parts_next(body, end);
    }
}

static void write_all(const struct jam *j, struct str *out)
{
    struct str block = {0};
    write_level(j, j->l->body, &block);
    parts_block(j->s, j->l, j->start, j->count, str_c(&block), out);
    parts_rest(j->s, j->l, j->start, j->count, out);
    str_free(&block);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    static const char *const few[] = {"2", "3", "4", "6", "8", NULL};
    static const char *const many[] = {"4", "8", "16", "32", "64", NULL};
    const struct loop *l = parts_loop(s, "jam", where, e);
    struct jam j;
    char why[240] = "there is no loop inside it: see unroll";
    if (!l)
        return -1;
    if (parts_inner_loop(s, l))
        return err_set(e, ERR_FAIL, "", "jam: %s", why);
    bool ok = fits(&j, s, l, why);
    j.simd = ok && str_eq(rewrite_param(params, "block", vectors(&j) ? "simd" : "unrolled"), "simd");
    if (ok && j.simd && !vectors(&j)) {
        snprintf(why, sizeof why, "its iterations add into one place, or vector code stands around it");
        ok = false;
    }
    if (!ok) {
        vec_free(&j.reds);
        return err_set(e, ERR_FAIL, "", "jam: %s", why);
    }
    struct str code = {0};
    names_open(&j);
    write_all(&j, &code);
    parts_replace(s, l->stmt, code.s, out);
    int r = rewrite_add_knob(s, out, j.count, j.simd ? "8" : "4", j.simd ? many : few, e);
    if (r == 0 && j.simd)
        r = rewrite_need_flag(s, out, "-fopenmp-simd", e);
    names_close(&j);
    str_free(&code);
    return r;
}

const struct rule rule_jam = {
    .name = "jam",
    .help = "unroll an outer loop and run its iterations together inside the inner ones",
    .risk = RISK_ROUND,
    .promise = 1,
    .sites = sites,
    .apply = apply,
};
