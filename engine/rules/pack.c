// Rule pack: a panel that every iteration of a loop reads again, with gaps, is copied once into a local
// buffer where it lies in the order in which the inner loops want it. Needed are: the panel does not depend
// on that loop, nothing in the loop writes it, and each iteration reads all of it. One extent of the panel
// may be known at run time only: the buffer has a capacity (a knob), and without room the loop runs as it
// was.
#include "rules/parts.h"

// Elements of a buffer whose extents are constants, and of a row of one that has a capacity: with the largest
// capacity it is still far below the stack's limit.
enum { DIMS_MAX = 3, ELEMENTS_MAX = 1 << 16, ROW_MAX = 512 };

struct panel {
    const struct access *x;
    const struct loop *dims[DIMS_MAX]; // the loops that walk it, outermost first
    int n;
    int open;      // index of the dim whose extent is not a constant, or -1
    int64_t fixed; // product of the constant extents
};

// From the read up to the loop only loops and plain expressions: it is reached in every iteration.
static bool always_reached(const struct node *n, const struct loop *l)
{
    static const enum node_kind plain[] = {N_FOR,  N_BLOCK, N_EXPR, N_ASSIGN, N_BINARY, N_INDEX,
                                           N_DECL, N_VAR,   N_CAST, N_CALL,   N_UNARY};
    for (const struct node *up = n->up; up && up != l->stmt; up = up->up) {
        bool ok = false;
        for (size_t i = 0; i < countof(plain); i++)
            ok |= up->kind == plain[i];
        if (!ok || (up->kind == N_BINARY && (up->op == OP_LAND || up->op == OP_LOR)))
            return false;
    }
    return true;
}

static bool leaves(const struct loop *l)
{
    static const enum node_kind kinds[] = {N_BREAK, N_CONTINUE, N_GOTO,   N_RETURN, N_LABEL,
                                           N_WHILE, N_DO,       N_SWITCH, N_OPAQUE, N_PP};
    for (size_t i = 0; i < countof(kinds); i++)
        if (node_contains(l->body, kinds[i]))
            return true;
    return l->has_break || l->is_while;
}

// The loops around the read, inside l, that its subscript counts with.
static bool find_dims(const struct rule_source *s, const struct loop *l, struct panel *p, char why[240])
{
    const struct loop *up[8];
    int n = 0;
    for (const struct loop *k = p->x->loop; k && k != l; k = k->outer) {
        if (n == (int)countof(up)) {
            snprintf(why, 240, "too many loops are in it");
            return false;
        }
        up[n++] = k;
    }
    p->open = -1;
    p->fixed = 1;
    while (n-- > 0) {
        const struct loop *k = up[n];
        int64_t trip = 0;
        bool known = loop_trip_const(&s->a, k, &trip), walks = poly_uses(&p->x->sub, k->var);
        if (k->is_while || k->has_break || k->step != 1 || !k->lo || !parts_counter_type(k) ||
            expr_invariant(&s->a, k->lo, l).v != TRI_YES ||
            expr_invariant(&s->a, k->hi_node, l).v != TRI_YES) {
            snprintf(why, 240, "the loop over %s is not the same in every iteration", k->var);
            return false;
        }
        struct str text = {0};
        bool said = known || loop_trip(&s->a, k, &text);
        str_free(&text);
        if (!said) {
            snprintf(why, 240, "how often the loop over %s runs cannot be said", k->var);
            return false;
        }
        if ((known && trip < 1) || (!known && !walks)) {
            snprintf(why, 240, "whether the loop over %s runs is not known", k->var);
            return false;
        }
        if (!walks)
            continue;
        if (p->n == DIMS_MAX || (!known && p->open >= 0)) {
            snprintf(why, 240, "two extents of the panel are known at run time only");
            return false;
        }
        if (!known)
            p->open = p->n;
        else
            p->fixed *= trip;
        p->dims[p->n++] = k;
    }
    return true;
}

// Is there a gap between what is read one after the other? Without one a copy gains nothing.
static bool has_gaps(const struct panel *p)
{
    struct poly stride = {0};
    int64_t step;
    bool gaps = p->n > 1;
    if (p->n == 1)
        gaps = access_stride(p->x, p->dims[0], &stride) && !(poly_is_const(&stride, &step) && step == 1);
    poly_free(&stride);
    return gaps;
}

// Names of the subscript that are no counters of dims stay the same in l; nothing in l writes the panel.
static bool stays(const struct rule_source *s, const struct loop *l, const struct panel *p, char why[240])
{
    const struct poly *sub = &p->x->sub;
    for (size_t i = 0; i < sub->t.n; i++)
        for (int k = 0; k < sub->t.v[i].n; k++) {
            const char *name = sub->t.v[i].atom[k];
            bool dim = false;
            for (int d = 0; d < p->n; d++)
                dim |= str_eq(name, p->dims[d]->var);
            if (!dim && (str_eq(name, l->var) || scalar_written(&s->a, name, l->stmt))) {
                snprintf(why, 240, "%s depends on %s", p->x->base, name);
                return false;
            }
        }
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *y = &s->a.accesses.v[i];
        if (y->loop && loop_inside(y->loop, l) && (y->kind & ACC_WRITE) &&
            (!y->base[0] || analysis_may_alias(&s->a, y->base, p->x->base))) {
            snprintf(why, 240, "%s may be written in the loop", p->x->base);
            return false;
        }
    }
    return true;
}

// The panel that x is a read of, with l as the loop that reads it again and again.
static bool find_panel(const struct rule_source *s, const struct loop *l, const struct access *x,
                       struct panel *p, char why[240])
{
    *p = (struct panel){.x = x};
    if (!x->affine || x->kind != ACC_READ || !x->base[0] || !x->elem || x->node->kind != N_INDEX ||
        !always_reached(x->node, l)) {
        snprintf(why, 240, "%s is not read in every iteration at a known place",
                 x->base[0] ? x->base : "a pointer");
        return false;
    }
    if (poly_uses(&x->sub, l->var)) {
        snprintf(why, 240, "what is read of %s is different in every iteration of %s", x->base, l->var);
        return false;
    }
    if (!find_dims(s, l, p, why) || !stays(s, l, p, why))
        return false;
    bool large = p->fixed > (p->open < 0 ? ELEMENTS_MAX : ROW_MAX);
    if (p->n == 0 || large || !has_gaps(p)) {
        snprintf(why, 240, "%s",
                 p->n == 0 ? "one number needs no buffer"
                 : large   ? "the panel is too large"
                           : "what is read again lies together already");
        return false;
    }
    return true;
}

static bool loop_ok(const struct rule_source *s, const struct loop *l, char why[240])
{
    bool ok = !s->f.is_global && !leaves(l) && !node_contains(l->body, N_IF) && l->lo &&
              l->stmt->kind == N_FOR && l->step >= 1;
    if (!ok)
        snprintf(why, 240, "it is no plain nest of for loops");
    else if (rewrite_has_pragma(s, l->stmt) || parts_in_simd(s, l->stmt))
        snprintf(why, 240, "a pragma stands before it");
    else
        return true;
    return false;
}

typedef VEC(struct panel) panels;

// Every panel of the loop, one an array; why there is none.
static void find_all(const struct rule_source *s, const struct loop *l, panels *out, char why[240])
{
    char said[240];
    snprintf(why, 240, "no loop in it reads anything again");
    if (!loop_ok(s, l, why))
        return;
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        struct panel p;
        bool known = x->kind != ACC_READ || !x->loop || x->loop == l || !loop_inside(x->loop, l);
        for (size_t k = 0; k < out->n; k++)
            known |= str_eq(out->v[k].x->base, x->base);
        if (known)
            continue;
        if (find_panel(s, l, x, &p, said))
            vec_push(out, p);
        else
            snprintf(why, 240, "%s", said);
    }
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        panels all = {0};
        char why[240];
        if (!node_contains(l->body, N_FOR))
            continue;
        find_all(s, l, &all, why);
        VEC(const char *) names = {0};
        for (size_t k = 0; k < all.n; k++)
            vec_push(&names, all.v[k].x->base);
        vec_push(&names, (const char *)NULL);
        if (all.n)
            rewrite_site(s, out, l->stmt, true, parts_choice("array", names.v),
                         "a panel of %s, read again for each %s, in a buffer", names.v[0], l->var);
        else
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
        vec_free(&names);
        vec_free(&all);
    }
}

// ---- code

// An extent as text: the bound as written where it is a constant, so that a knob in it still counts.
static void extent(const struct rule_source *s, const struct loop *k, struct str *out)
{
    int64_t lo, hi, trip = 0;
    if (node_const(&s->t, k->lo, &lo) && lo == 0 && node_const(&s->t, k->hi_node, &hi) && !k->inclusive)
        parts_operand(s, k->hi_node, out);
    else if (loop_trip_const(&s->a, k, &trip))
        str_addf(out, "%lld", (long long)trip);
    else
        loop_trip(&s->a, k, out);
}

// "k * TJ + jj"
static void place(const struct rule_source *s, const struct panel *p, struct str *out)
{
    for (int d = 0; d < p->n; d++) {
        const struct loop *k = p->dims[d];
        int64_t lo;
        if (d) {
            struct str more = {0};
            str_addf(&more, d > 1 ? "(%s) * " : "%s * ", str_c(out));
            extent(s, k, &more);
            str_addf(&more, " + ");
            str_free(out);
            *out = more;
        }
        if (node_const(&s->t, k->lo, &lo) && lo == 0) {
            str_add(out, k->var);
        } else {
            str_addf(out, "(%s - ", k->var);
            parts_operand(s, k->lo, out);
            str_addc(out, ')');
        }
    }
}

static void copy_loops(const struct rule_source *s, const struct panel *p, const char *buffer, const char *at,
                       struct str *out)
{
    struct str code = {0};
    str_addf(&code, "%s[%s] = ", buffer, at);
    node_text(&s->t, p->x->node, &code);
    str_add(&code, ";\n");
    for (int d = p->n; d-- > 0;) {
        struct str head = {0}, all = {0};
        const struct loop *k = p->dims[d];
        str_addf(&head, "for (%s %s = ", parts_counter_type(k), k->var);
        node_text(&s->t, k->lo, &head);
        str_addf(&head, "; %s %s ", k->var, k->inclusive ? "<=" : "<");
        parts_operand(s, k->hi_node, &head);
        str_addf(&head, "; %s++) ", k->var);
        parts_braces(&all, head.s, code.s);
        str_free(&head);
        str_free(&code);
        code = all;
    }
    str_add(out, code.s);
    str_free(&code);
}

static void write_code(const struct rule_source *s, const struct loop *l, const struct panel *p,
                       const char *room, struct str *out)
{
    char *buffer = parts_name(s, p->x->base, "_pack"), *row = parts_name(s, p->x->base, "_row"), *use;
    struct str at = {0}, size = {0}, inner = {0}, head = {0}, same = {0};
    place(s, p, &at);
    for (int d = 0; d < p->n; d++) {
        str_add(&size, d ? " * " : "");
        if (d == p->open)
            str_add(&size, room);
        else
            extent(s, p->dims[d], &size);
    }
    str_addf(&inner, "_Alignas(64) %s %s[%s];\n", p->x->elem, buffer, size.s);
    copy_loops(s, p, buffer, at.s, &inner);
    // By a pointer of its own: gcc keeps accumulators in registers then, and not where it sees two arrays.
    str_addf(&inner, "const %s *restrict %s = %s;\n", p->x->elem, row, buffer);
    use = xasprintf("%s[%s]", row, at.s);
    swaps w = {0};
    vec_push(&w, (struct swap){p->x->node, use});
    parts_swap(s, l->stmt, &w, &inner);
    str_add(&head, "if (");
    parts_runs(s, l, &head);
    if (p->open >= 0) {
        str_add(&head, " && ");
        extent(s, p->dims[p->open], &head);
        str_addf(&head, " <= %s", room);
    }
    str_add(&head, ") ");
    parts_braces(out, head.s, inner.s);
    parts_clone(s, l->stmt, NULL, 0, &same);
    parts_braces(out, "else ", same.s);
    free(buffer), free(row), free(use);
    vec_free(&w);
    struct str *all[] = {&at, &size, &inner, &head, &same};
    for (size_t k = 0; k < countof(all); k++)
        str_free(all[k]);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    const struct loop *l = parts_loop(s, "pack", where, e);
    const char *array = rewrite_param(params, "array", NULL);
    const struct panel *p = NULL;
    panels all = {0};
    char why[240];
    if (!l)
        return -1;
    find_all(s, l, &all, why);
    for (size_t i = 0; i < all.n && !p; i++)
        p = !array || str_eq(array, all.v[i].x->base) ? &all.v[i] : NULL;
    if (!p) {
        vec_free(&all);
        return err_set(e, ERR_FAIL, "", "pack: %s", array && all.n ? "that array has no panel here" : why);
    }
    struct str code = {0};
    char *room = rewrite_name(s, "ROOM");
    bool open = p->open >= 0;
    write_code(s, l, p, room, &code);
    parts_replace(s, l->stmt, code.s, out);
    vec_free(&all);
    int r = open ? rewrite_add_knob(s, out, room, "1024",
                                    (const char *const[]){"256", "512", "1024", "2048", NULL}, e)
                 : 0;
    free(room);
    str_free(&code);
    return r;
}

const struct rule rule_pack = {
    .name = "pack",
    .help = "copy a panel that a loop reads again and again into a buffer in reading order",
    .risk = RISK_WORK,
    .promise = 1,
    .sites = sites,
    .apply = apply,
};
