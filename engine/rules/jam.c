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
    struct subst subst[LOCALS_MAX];
    char *arrays[LOCALS_MAX];
    size_t n;
    char *count, *start, *u;
    bool simd;
};

static bool has_loop(const struct node *n)
{
    return node_contains(n, N_FOR);
}

// The statements from n on that can be done together: up to the next one with a loop in it.
static const struct node *group_end(const struct node *body, const struct node *n)
{
    while (n && !has_loop(n))
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
    if (v->type->rank || v->type->ptr > 1 || v->type->is_static || v->type->is_ref || v->type->is_volatile ||
        !info || info->shadowed || info->address_taken || (v->a && v->a->kind == N_INIT)) {
        snprintf(why, 240, "%s, which lives across a loop inside, is no plain scalar", v->name);
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
        const struct node *end = group_end(body, n);
        for (; n != end; n = parts_next(body, n))
            for (const struct node *v = n->kind == N_DECL ? n->kids : NULL; v; v = v->next)
                if (outlives(body, end, v->name) && !add_local(j, v, why))
                    return false;
        if (!n)
            break;
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

static bool fits(struct jam *j, const struct rule_source *s, const struct loop *l, char why[240])
{
    *j = (struct jam){.s = s, .l = l};
    if (!parts_blocks_ok(s, l, why))
        return false;
    struct answer a = loop_independent(&s->a, l, &j->reds);
    if (a.v != TRI_YES) {
        snprintf(why, 240, "%s", a.why);
        return false;
    }
    return level_ok(j, l->body, 0, why);
}

static bool vectors(const struct jam *j)
{
    return j->reds.n == 0 && !parts_in_simd(j->s, j->l->stmt) && !j->s->f.is_global;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    static const char *const ways[] = {"unrolled", "simd", NULL};
    static const char *const one[] = {"unrolled", NULL};
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        struct jam j;
        char why[240];
        if (parts_inner_loop(s, l))
            continue;
        if (fits(&j, s, l, why))
            rewrite_site(s, out, l->stmt, true, parts_choice("block", vectors(&j) ? ways : one),
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
}

static void names_close(struct jam *j)
{
    for (size_t i = 0; i < j->n; i++) {
        free(j->arrays[i]);
        free((char *)(uintptr_t)j->subst[i].text);
    }
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
            parts_clone(j->s, v->a, j->subst, j->n, out);
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
    struct str inner = {0}, at = {0};
    bool uses = false;
    for (const struct node *n = from; n != end; n = parts_next(body, n)) {
        uses |= node_uses(n, j->l->var);
        if (any_local(j, n)) {
            write_decl(j, n, &inner);
        } else if (n->kind != N_EMPTY) {
            parts_clone(j->s, n, j->subst, j->n, &inner);
            str_addc(&inner, '\n');
        }
    }
    if (inner.len) {
        struct str code = {0};
        parts_at(j->l, j->start, j->u, &at);
        if (uses)
            str_addf(&code, "const %s %s = %s;\n", parts_counter_type(j->l), j->l->var, at.s);
        str_add(&code, inner.s);
        if (j->simd)
            str_add(out, "#pragma omp simd\n");
        else
            str_addf(out, "#pragma GCC unroll %d\n", PARTS_UNROLL_MAX);
        char *head = xasprintf("for (int %s = 0; %s < %s; %s++) ", j->u, j->u, j->count, j->u);
        parts_braces(out, head, code.s);
        free(head);
        str_free(&code);
    }
    str_free(&inner);
    str_free(&at);
}

static void write_arrays(const struct jam *j, const struct node *decl, struct str *out)
{
    for (size_t i = 0; i < j->n; i++) {
        const struct ctype *ty = j->locals[i]->type;
        if (j->locals[i]->up == decl)
            str_addf(out, "%s%s %s%s[%s];\n", ty->ptr && ty->const_base ? "const " : "", ty->base,
                     ty->ptr ? "*" : "", j->arrays[i], j->count);
    }
}

static void write_level(const struct jam *j, const struct node *body, struct str *out)
{
    for (const struct node *n = parts_first(body); n; n = parts_next(body, n))
        if (n->kind == N_DECL)
            write_arrays(j, n, out);
    for (const struct node *n = parts_first(body); n;) {
        const struct node *end = group_end(body, n);
        write_group(j, body, n, end, out);
        if (!end)
            break;
        struct str head = {0}, inner = {0};
        const struct loop *k = analysis_loop(&j->s->a, end);
        parts_header(j->s, k, &head);
        str_addc(&head, ' ');
        write_level(j, k->body, &inner);
        parts_braces(out, head.s, str_c(&inner));
        str_free(&head);
        str_free(&inner);
        n = parts_next(body, end);
    }
}

static void write_all(const struct jam *j, struct str *out)
{
    struct str lo = {0}, block = {0}, room = {0}, step = {0};
    node_text(&j->s->t, j->l->lo, &lo);
    write_level(j, j->l->body, &block);
    parts_room(j->s, j->l, j->start, j->count, &room);
    parts_advance(j->l, j->start, j->count, &step);
    char *head = xasprintf("for (; %s; %s) ", room.s, step.s);
    str_addf(out, "%s %s = %s;\n", parts_counter_type(j->l), j->start, lo.s);
    parts_braces(out, head, str_c(&block));
    parts_rest(j->s, j->l, j->start, out);
    str_add(out, "\n    ");
    parts_clone(j->s, j->l->body, NULL, 0, out);
    str_addc(out, '\n');
    free(head);
    str_free(&lo);
    str_free(&block);
    str_free(&room);
    str_free(&step);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    static const char *const few[] = {"2", "3", "4", "6", "8", NULL};
    static const char *const many[] = {"8", "16", "32", "64", NULL};
    const struct loop *l = parts_loop(s, "jam", where, e);
    struct jam j;
    char why[240] = "there is no loop inside it: see unroll";
    if (!l)
        return -1;
    if (parts_inner_loop(s, l))
        return err_set(e, ERR_FAIL, "", "jam: %s", why);
    bool ok = fits(&j, s, l, why);
    j.simd = str_eq(rewrite_param(params, "block", "unrolled"), "simd");
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
    parts_place(s, l->stmt, code.s, out);
    int r = rewrite_add_knob(s, out, j.count, j.simd ? "16" : "4", j.simd ? many : few, e);
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
    .sites = sites,
    .apply = apply,
};
