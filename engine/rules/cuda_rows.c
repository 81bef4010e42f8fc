// Rule rows: a kernel in which each thread does a whole row becomes one in which a block or a warp does it.
// Loops whose iterations are independent, but for sums and the like, are shared out; what the lanes gathered
// is put together by shuffles; everything else is computed by all of them alike, and what it stores by one.
#include "rules/cuda.h"

#include "base/task.h"

enum { REDS_MAX = 8 };

struct work {
    struct cu_guard g;
    bool warp;
    char *part, *lane, *off; // names: shared array, "threadIdx.x" or the lane, the shuffles' offset
    int shared;              // loops that are shared out
    struct str code;
};

static bool writes_memory(const struct rule_source *s, const struct node *n)
{
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        if ((x->kind & ACC_WRITE) && x->node->first >= n->first && x->node->end <= n->end)
            return true;
    }
    for (size_t i = 0; i < s->a.calls.n; i++) {
        const struct call_use *c = &s->a.calls.v[i];
        if (c->node->first >= n->first && c->node->end <= n->end && !cu_pure_call(s, c->name))
            return true;
    }
    return false;
}

static bool type_ok(const struct rule_source *s, const char *var)
{
    static const char *const types[] = {"float", "double", "int", "unsigned int"};
    const struct var_info *v = analysis_var(&s->a, var);
    for (size_t i = 0; v && v->type && !v->shadowed && !v->type->ptr && !v->type->rank && i < countof(types);
         i++)
        if (str_eq(v->type->base, types[i]))
            return true;
    return false;
}

// Loops that are short and only compute stay as they are.
static bool stays(const struct rule_source *s, const struct loop *l)
{
    int64_t n;
    return loop_trip_const(&s->a, l, &n) && n < 32 && !writes_memory(s, l->stmt);
}

static bool loop_ok(const struct rule_source *s, const struct node *n, char why[240])
{
    const struct loop *l = analysis_loop(&s->a, n);
    if (!l || l->is_while || l->has_break || l->step != 1 || !l->lo || !parts_counter_type(l)) {
        struct answer a = loop_canonical(&s->a, n);
        snprintf(why, 240, "a loop that does not simply count: %.190s",
                 a.v == TRI_YES ? "its step is not 1" : a.why);
        return false;
    }
    if (stays(s, l))
        return true;
    reductions reds = {0};
    struct answer a = loop_independent(&s->a, l, &reds);
    bool ok = a.v == TRI_YES && reds.n <= REDS_MAX;
    if (!ok)
        snprintf(why, 240, "the loop over %.40s: %.170s", l->var, a.v == TRI_YES ? "too many sums" : a.why);
    for (size_t i = 0; i < reds.n && ok; i++) {
        const struct reduction *r = &reds.v[i];
        bool op = r->op == RED_ADD || r->op == RED_SUB || r->op == RED_MAX || r->op == RED_MIN;
        ok = r->var && op && type_ok(s, r->var);
        if (!ok)
            snprintf(why, 240, "the loop over %s gathers in a way that lanes cannot put together", l->var);
    }
    vec_free(&reds);
    if (ok && !l->declared_inside && scalar_live_out(&s->a, l->var, l->stmt).v != TRI_NO)
        ok = (snprintf(why, 240, "%s is used after its loop", l->var), false);
    return ok;
}

static bool statement_ok(const struct rule_source *s, const struct node *n, int *loops, char why[240])
{
    const struct loop *l;
    switch (n->kind) {
    case N_FOR:
        if (!loop_ok(s, n, why))
            return false;
        l = analysis_loop(&s->a, n);
        *loops += !stays(s, l);
        return true;
    case N_DECL:
        for (const struct node *v = n->kids; v; v = v->next)
            if (v->type->rank || v->type->is_static) {
                snprintf(why, 240, "each row has an array %s of its own", v->name);
                return false;
            }
        return true;
    case N_EXPR:
    case N_EMPTY:
    case N_PP:
        return true;
    case N_IF:
        if (!writes_memory(s, n) && !node_contains(n, N_RETURN))
            return true;
        snprintf(why, 240, "a row stores under a condition");
        return false;
    default:
        snprintf(why, 240, "a row is more than loops, expressions and tests");
        return false;
    }
}

static bool uses_threads(const struct rule_source *s, const struct node *n)
{
    static const char *const words[] = {"threadIdx", "blockIdx", "blockDim", "gridDim"};
    for (uint32_t i = n->first; i < n->end; i++)
        for (size_t k = 0; k < countof(words); k++)
            if (token_is(&s->ts, i, words[k]))
                return true;
    return false;
}

static bool find(const struct rule_source *s, struct work *w, char why[240])
{
    int loops = 0;
    struct str bound = {0};
    if (cu_launch_read(s, &w->g.l, why) < 0)
        return false;
    if (!cu_launch_flat(&w->g.l) || w->g.l.shared || cu_barrier(s->t.root)) {
        snprintf(why, 240, "threads work together already, or in two dimensions");
        return false;
    }
    if (!cu_guard_find(s, &w->g, why))
        return false;
    if ((!w->g.leaves && w->g.test->next) || w->g.test->c) {
        snprintf(why, 240, "the body is not all that follows the test");
        return false;
    }
    if (!cu_guard_bound(s, &w->g, &bound)) {
        snprintf(why, 240, "the number of rows is not made of arguments");
        return false;
    }
    str_free(&bound);
    for (const struct node *n = w->g.decl->next; n != w->g.test; n = n->next)
        if (n->kind != N_DECL && n->kind != N_EMPTY && n->kind != N_PP) {
            snprintf(why, 240, "something happens before the test");
            return false;
        }
    for (const struct node *n = cu_guard_first(&w->g); n; n = cu_guard_next(&w->g, n)) {
        if (uses_threads(s, n)) {
            snprintf(why, 240, "the body uses the thread's place for more than the row");
            return false;
        }
        if (!statement_ok(s, n, &loops, why))
            return false;
    }
    if (!loops)
        snprintf(why, 240, "no loop over the row to share out");
    return loops > 0;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    struct work w = {0};
    char why[240] = "";
    static const char *const teams[] = {"block", "warp", NULL};
    if (find(s, &w, why))
        cu_site(s, out, true, parts_choice("team", teams), "a block or warp for each %s instead of a thread",
                w.g.var);
    else
        cu_site(s, out, false, NULL, "%s", why);
    cu_launch_free(&w.g.l);
}

// ---- writing

// "a = a + b" in the way the source puts two values together.
static void put_together(const struct reduction *r, const char *a, const char *b, struct str *out)
{
    const struct node *e = r->stmt->kind == N_EXPR ? r->stmt->a : r->stmt;
    if (r->op == RED_ADD || r->op == RED_SUB)
        str_addf(out, "%s += %s;", a, b);
    else if (e->kind == N_ASSIGN && e->b->kind == N_CALL)
        str_addf(out, "%s = %s(%s, %s);", a, e->b->a->name, a, b);
    else
        str_addf(out, "%s = %s %c %s ? %s : %s;", a, b, r->op == RED_MAX ? '>' : '<', a, b, a);
}

static void shuffles(const struct work *w, const struct reduction *r, const char *v, struct str *out)
{
    struct str other = {0};
    str_addf(&other, "__shfl_xor_sync(0xffffffffu, %s, %s)", v, w->off);
    bool once = r->op == RED_ADD || r->op == RED_SUB ||
                (r->stmt->kind == N_EXPR && r->stmt->a->kind == N_ASSIGN && r->stmt->a->b->kind == N_CALL);
    str_addf(out, "for (int %s = 16; %s > 0; %s >>= 1) ", w->off, w->off, w->off);
    if (once) {
        str_add(out, "\n    ");
        put_together(r, v, str_c(&other), out);
        str_addc(out, '\n');
    } else {
        struct str body = {0};
        str_addf(&body, "auto other = %s;\n", str_c(&other));
        put_together(r, v, "other", &body);
        str_addc(&body, '\n');
        parts_braces(out, "", str_c(&body));
        str_free(&body);
    }
    str_free(&other);
}

// All lanes get what all of them gathered in v.
static void gather(const struct work *w, const struct reduction *r, const char *type, const char *v,
                   struct str *out)
{
    shuffles(w, r, v, out);
    if (w->warp)
        return;
    struct str in = {0};
    bool sum = r->op == RED_ADD || r->op == RED_SUB;
    str_addf(&in, "__shared__ %s %s[32];\n", type, w->part);
    str_addf(&in, "if (threadIdx.x %% 32 == 0)\n    %s[threadIdx.x / 32] = %s;\n__syncthreads();\n", w->part,
             v);
    str_addf(&in, "%s = threadIdx.x %% 32 < blockDim.x / 32 ? %s[threadIdx.x %% 32] : %s%s;\n", v, w->part,
             sum ? "0" : w->part, sum ? "" : "[0]");
    shuffles(w, r, v, &in);
    str_add(&in, "__syncthreads();\n");
    parts_braces(out, "", str_c(&in));
    str_free(&in);
}

// Was the value of a maximum before the loop that of the iteration before the first?
static bool starts_one_early(const struct rule_source *s, const struct loop *l, const reductions *reds)
{
    int64_t lo;
    if (!node_const(&s->t, l->lo, &lo) || lo != 1 || !reds->n || writes_memory(s, l->stmt))
        return false;
    for (size_t i = 0; i < reds->n; i++) {
        const struct reduction *r = &reds->v[i];
        const struct var_info *v = analysis_var(&s->a, r->var);
        const struct node *init = v && v->decl ? v->decl->a : NULL, *before = NULL;
        for (const struct node *k = l->stmt->up ? l->stmt->up->kids : NULL; k && k != l->stmt; k = k->next)
            before = k;
        if ((r->op != RED_MAX && r->op != RED_MIN) || !init || !before || v->decl->up != before || !r->value)
            return false;
        const char *a, *b;
        struct poly p = {0}, q = {0}, zero;
        poly_const(&zero, 0);
        bool same = cu_access(s, init, &a, &p) && cu_access(s, r->value, &b, &q) && str_eq(a, b);
        if (same)
            poly_subst(&q, l->var, &zero);
        same = same && poly_equal(&p, &q);
        poly_free(&p);
        poly_free(&q);
        poly_free(&zero);
        if (!same)
            return false;
    }
    return true;
}

static bool later_use(const struct rule_source *s, const struct node *loop)
{
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *x = &s->a.accesses.v[i];
        if (!(x->kind & ACC_WRITE) || x->node->first < loop->first || x->node->end > loop->end)
            continue;
        for (size_t k = 0; k < s->a.accesses.n; k++) {
            const struct access *y = &s->a.accesses.v[k];
            if (y->node->first >= loop->end && (!*x->base || !*y->base || str_eq(x->base, y->base)))
                return true;
        }
    }
    return false;
}

static void shared_loop(const struct rule_source *s, struct work *w, const struct loop *l)
{
    reductions reds = {0};
    struct str head = {0}, body = {0};
    struct subst names[REDS_MAX];
    char *parts[REDS_MAX] = {0};
    size_t n = 0;
    loop_independent(&s->a, l, &reds);
    for (size_t i = 0; i < reds.n; i++) {
        const struct reduction *r = &reds.v[i];
        if (r->op != RED_ADD && r->op != RED_SUB)
            continue;
        parts[i] = parts_name(s, r->var, "_lane");
        str_addf(&w->code, "%s %s = 0;\n", analysis_var(&s->a, r->var)->type->base, parts[i]);
        names[n++] = (struct subst){r->var, parts[i]};
    }
    int64_t lo = 1;
    bool zero = (node_const(&s->t, l->lo, &lo) && lo == 0) || starts_one_early(s, l, &reds);
    str_addf(&head, "for (%s %s = ", parts_counter_type(l), l->var);
    if (!zero) {
        node_text(&s->t, l->lo, &head);
        str_add(&head, " + ");
    }
    str_addf(&head, "%s; ", w->lane);
    node_text(&s->t, l->cond, &head);
    str_addf(&head, "; %s += %s) ", l->var, w->warp ? "32" : "blockDim.x");
    for (const struct node *b = parts_first(l->body); b; b = parts_next(l->body, b)) {
        parts_clone(s, b, names, n, &body);
        str_addc(&body, '\n');
    }
    parts_braces(&w->code, str_c(&head), str_c(&body));
    for (size_t i = 0; i < reds.n; i++) {
        const struct reduction *r = &reds.v[i];
        gather(w, r, analysis_var(&s->a, r->var)->type->base, parts[i] ? parts[i] : r->var, &w->code);
        if (parts[i])
            str_addf(&w->code, "%s += %s;\n", r->var, parts[i]);
        free(parts[i]);
    }
    if (later_use(s, l->stmt))
        str_add(&w->code, w->warp ? "__syncwarp();\n" : "__syncthreads();\n");
    vec_free(&reds);
    str_free(&head);
    str_free(&body);
}

static void statement(const struct rule_source *s, struct work *w, const struct node *n)
{
    const struct loop *l = n->kind == N_FOR ? analysis_loop(&s->a, n) : NULL;
    if (l && !stays(s, l)) {
        shared_loop(s, w, l);
        return;
    }
    struct str text = {0};
    parts_swap(s, n, NULL, &text);
    if (n->kind == N_EXPR && writes_memory(s, n)) {
        str_addf(&w->code, "if (%s == 0)\n", w->lane);
        rewrite_lines(&w->code, "    ", str_c(&text));
        if (later_use(s, n))
            str_add(&w->code, w->warp ? "__syncwarp();\n" : "__syncthreads();\n");
    } else {
        str_addf(&w->code, "%s\n", str_c(&text));
    }
    str_free(&text);
}

static void whole_body(const struct rule_source *s, struct work *w, struct str *out)
{
    struct str all = {0};
    const struct node *last = w->g.test;
    while (last->next)
        last = last->next;
    str_addf(&all,
             w->warp ? "%s %s = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;\n"
                     : "%s %s = blockIdx.x;\n",
             w->g.type, w->g.var);
    for (const struct node *n = w->g.decl->next; n != w->g.test; n = n->next) {
        parts_swap(s, n, NULL, &all);
        str_addc(&all, '\n');
    }
    if (w->g.leaves) {
        parts_swap(s, w->g.test, NULL, &all);
        str_addf(&all, "\n%s", str_c(&w->code));
    } else {
        struct str head = {0};
        str_add(&head, "if (");
        node_text(&s->t, w->g.test->a, &head);
        str_add(&head, ") ");
        parts_braces(&all, str_c(&head), str_c(&w->code));
        str_free(&head);
    }
    parts_replace_two(s, w->g.decl, last, str_c(&all), out);
    str_free(&all);
}

static int launch(const struct rule_source *s, struct work *w, struct str *text, struct err *e)
{
    static const char *const sizes[] = {"32", "64", "128", "256", "512", "1024", NULL};
    struct cu_launch *l = &w->g.l;
    struct str rows = {0};
    bool keep = cu_block_warps(s, l) && (l->block[0][0] < '0' || l->block[0][0] > '9');
    char *name = keep ? xstrdup(l->block[0]) : rewrite_name(s, "BLOCK");
    cu_guard_bound(s, &w->g, &rows);
    free(l->grid[0]);
    l->grid[0] = w->warp ? xasprintf("ceildiv(%s, %s / 32)", str_c(&rows), name) : xstrdup(str_c(&rows));
    free(l->block[0]);
    l->block[0] = xstrdup(name);
    int r = cu_launch_put(s, text, l, e);
    if (r == 0 && !keep)
        r = rewrite_add_knob(s, text, name, w->warp ? "128" : "256", sizes, e);
    str_free(&rows);
    free(name);
    return r;
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    struct work w = {0};
    char why[240] = "";
    (void)where;
    if (!find(s, &w, why)) {
        cu_launch_free(&w.g.l);
        return err_set(e, ERR_FAIL, "", "rows: %s", why);
    }
    struct str text = {0};
    w.warp = str_eq(rewrite_param(params, "team", "block"), "warp");
    w.part = rewrite_name(s, "part");
    w.off = rewrite_name(s, "o");
    w.lane = xstrdup(w.warp ? "threadIdx.x % 32" : "threadIdx.x");
    for (const struct node *n = cu_guard_first(&w.g); n; n = cu_guard_next(&w.g, n))
        statement(s, &w, n);
    whole_body(s, &w, &text);
    int r = launch(s, &w, &text, e);
    if (r == 0)
        str_addn(out, text.s, text.len);
    str_free(&text);
    str_free(&w.code);
    free(w.part);
    free(w.off);
    free(w.lane);
    cu_launch_free(&w.g.l);
    return r;
}

const struct rule rule_cuda_rows = {
    .name = "rows",
    .help = "a block or a warp does the row that a thread did, with shuffles for sums and maxima",
    .risk = RISK_ROUND,
    .cuda = true,
    .sites = sites,
    .apply = apply,
};
