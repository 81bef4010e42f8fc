// Rule privatize: a loop that counts into a table (H[x[i]]++, H[f(i)] += w) gets several tables of its own
// that it fills in turn, added up at the end. Neighbours that hit the same entry then no longer wait for each
// other's load and store (a histogram of a grey picture: 3 to 5x).
#include "rules/parts.h"

#include "base/task.h"

enum { ENTRIES_MAX = 4096 };

struct table {
    const struct reduction *red;
    struct reduction held;
    const struct access *x; // of the target
    const char *elem;
    int64_t entries;
    bool promised; // the task says that all entries exist
};

static bool whole_number(const char *type)
{
    static const char *const types[] = {"int",     "unsigned",      "unsigned int", "long",
                                        "int32_t", "unsigned long", "long long",    "unsigned long long",
                                        "int64_t", "uint32_t",      "uint64_t",     "size_t"};
    for (size_t i = 0; i < countof(types); i++)
        if (str_eq(types[i], type))
            return true;
    return false;
}

static bool is_unsigned(const char *type)
{
    return strncmp(type, "u", 1) == 0 || str_eq(type, "size_t");
}

// The extent of a buffer that the task gives as a number; 0 where it does not.
static int64_t task_extent(const struct rule_source *s, const char *base)
{
    for (size_t i = 0; s->task && i < s->task->args.n; i++) {
        const struct task_arg *a = &s->task->args.v[i];
        int64_t all = 1, one;
        if (!str_eq(a->name, base) || a->rank < 1)
            continue;
        for (int k = 0; k < a->rank; k++) {
            if (strspn(expr_text(a->shape[k]), "0123456789") != strlen(expr_text(a->shape[k])) ||
                expr_eval(a->shape[k], NULL, NULL, &one, NULL) < 0 || one < 1 || one > ENTRIES_MAX)
                return 0;
            all *= one;
        }
        return all;
    }
    return 0;
}

// How many values the index can have, by its type: a byte, or masked; 0 where nothing is known.
static int64_t index_range(const struct rule_source *s, const struct node *n)
{
    const struct access *x = n->kind == N_INDEX ? parts_access(s, n) : NULL;
    const struct var_info *v = n->kind == N_IDENT ? analysis_var(&s->a, n->name) : NULL;
    const char *type = x                                                                 ? x->elem
                       : v && v->type && !v->shadowed && !v->type->ptr && !v->type->rank ? v->type->base
                                                                                         : NULL;
    int64_t mask;
    if (str_eq(type, "unsigned char") || str_eq(type, "uint8_t"))
        return 256;
    if (n->kind == N_BINARY && n->op == OP_AND &&
        (node_const(&s->t, n->a, &mask) || node_const(&s->t, n->b, &mask)) && mask > 0 && mask < ENTRIES_MAX)
        return mask + 1;
    return 0;
}

// The loop's one statement that accumulates; before it may stand declarations of plain values.
static bool find_statement(const struct rule_source *s, const struct loop *l, struct table *t, char why[240])
{
    const struct node *last = NULL;
    for (const struct node *n = parts_first(l->body); n; n = parts_next(l->body, n)) {
        const struct node *v = n->kind == N_DECL ? n->kids : NULL;
        for (; v && !v->type->ptr && !v->type->rank && !v->type->is_static && v->a &&
               expr_pure(&s->a, v->a).v == TRI_YES;
             v = v->next)
            ;
        bool plain = n->kind == N_DECL && !v;
        if (last || (!plain && n->kind != N_EXPR)) {
            snprintf(why, 240, "its body is more than one count into a table");
            return false;
        }
        if (!plain)
            last = n;
    }
    if (!last || !stmt_reduction(&s->a, last, &t->held) || t->held.var || !t->held.target ||
        t->held.target->kind != N_INDEX || t->held.target->a->kind != N_IDENT ||
        (t->held.op != RED_ADD && t->held.op != RED_SUB) || t->held.fma_a) {
        snprintf(why, 240, "it adds to no entry of a table");
        return false;
    }
    t->red = &t->held;
    return true;
}

static bool value_ok(const struct rule_source *s, const struct table *t, char why[240])
{
    const struct node *v = t->red->value;
    int64_t c;
    bool any = parts_is_float(t->elem) || is_unsigned(t->elem);
    if (!parts_is_float(t->elem) && !whole_number(t->elem)) {
        snprintf(why, 240, "entries of type %s are not added up", t->elem);
        return false;
    }
    if (v && expr_pure(&s->a, v).v != TRI_YES) {
        snprintf(why, 240, "what is added has effects of its own");
        return false;
    }
    // A signed sum in another order may overflow where the original did not, unless all terms are one
    // constant.
    if (v && !any && !node_const(&s->t, v, &c)) {
        snprintf(why, 240, "sums of %s in another order may overflow", t->elem);
        return false;
    }
    return true;
}

static bool find_table(const struct rule_source *s, const struct loop *l, struct table *t, char why[240])
{
    struct poly stride = {0};
    if (s->f.is_global) {
        snprintf(why, 240, "a thread of a GPU has no room for tables of its own");
        return false;
    }
    if (!find_statement(s, l, t, why) || !parts_blocks_ok(s, l, why))
        return false;
    const struct node *target = t->red->target;
    t->x = parts_access(s, target);
    t->elem = t->x ? t->x->elem : NULL;
    if (!t->elem || !t->x->base[0] || !str_eq(t->x->base, target->a->name)) {
        snprintf(why, 240, "the type of the table's entries is not known");
        return false;
    }
    bool walks = t->x->affine && access_stride(t->x, l, &stride);
    poly_free(&stride);
    if (walks) {
        snprintf(why, 240, "which entry of %s is hit does not depend on data", t->x->base);
        return false;
    }
    if (expr_pure(&s->a, target->b).v != TRI_YES || !value_ok(s, t, why)) {
        if (!*why)
            snprintf(why, 240, "the index has effects of its own");
        return false;
    }
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const struct access *y = &s->a.accesses.v[i];
        bool here = y->loop && loop_inside(y->loop, l) && y->node != target;
        if (here &&
            ((y->kind & ACC_WRITE) || !y->base[0] || analysis_may_alias(&s->a, y->base, t->x->base))) {
            snprintf(why, 240, "%s may overlap %s", y->base[0] ? y->base : "a pointer", t->x->base);
            return false;
        }
    }
    t->entries = task_extent(s, t->x->base);
    t->promised = t->entries > 0;
    if (!t->promised)
        t->entries = index_range(s, target->b);
    if (t->entries < 2 || t->entries > ENTRIES_MAX) {
        snprintf(why, 240, "how many entries %s has is not known, or over %d", t->x->base, ENTRIES_MAX);
        return false;
    }
    return true;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        struct table t = {0};
        char why[240] = "";
        if (!parts_inner_loop(s, l))
            continue;
        bool ok = find_table(s, l, &t, why);
        if (ok)
            snprintf(why, sizeof why, "several tables for %s, added up at the end", t.x->base);
        rewrite_site(s, out, l->stmt, ok, NULL, "%s", why);
    }
}

// The blocks, the rest as it was, and the sum of the tables.
static void write_code(const struct rule_source *s, const struct loop *l, const struct table *t,
                       const char *tables, const char *own, struct str *out)
{
    char *at = parts_name(s, l->var, "_0"), *u = rewrite_name(s, "u"), *e = rewrite_name(s, "e"),
         *sum = rewrite_name(s, "sum"), *row = xasprintf("%s[%s]", own, u);
    struct str block = {0}, inner = {0}, body = {0};
    swaps w = {0};
    vec_push(&w, (struct swap){t->red->target->a, row});
    str_addf(out, "%s %s[%s][%lld] = {0};\n", t->elem, own, tables, (long long)t->entries);
    parts_body(s, l->body, &w, &body);
    str_addf(&inner, "const %s %s = ", parts_counter_type(l), l->var);
    parts_at(l, at, u, &inner);
    str_addf(&inner, ";\n%s", body.s);
    parts_lanes(u, tables, false, inner.s, &block);
    parts_block(s, l, at, tables, block.s, out);
    parts_rest(s, l, at, tables, out);
    str_addf(out, "for (int %s = 0; %s < %lld; %s++) {\n    %s %s = 0;\n", e, e, (long long)t->entries, e,
             t->elem, sum);
    str_addf(out, "    for (int %s = 0; %s < %s; %s++)\n        %s += %s[%s][%s];\n", u, u, tables, u, sum,
             own, u, e);
    // An entry that was never hit may not exist, unless the task says that it does.
    if (!t->promised)
        str_addf(out, "    if (%s)\n    ", sum);
    str_addf(out, "    %s[%s] += %s;\n}\n", t->x->base, e, sum);
    free(at), free(u), free(e), free(sum), free(row);
    str_free(&block), str_free(&inner), str_free(&body);
    vec_free(&w);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    (void)params;
    const struct loop *l = parts_loop(s, "privatize", where, e);
    struct table t = {0};
    char why[240] = "";
    if (!l)
        return -1;
    if (!find_table(s, l, &t, why))
        return err_set(e, ERR_FAIL, "", "privatize: %s", why);
    struct str code = {0};
    char *tables = rewrite_name(s, "TABLES"), *own = parts_name(s, t.x->base, "_own");
    write_code(s, l, &t, tables, own, &code);
    parts_place(s, l->stmt, code.s, out);
    int r = rewrite_add_knob(s, out, tables, "4", (const char *const[]){"2", "4", "8", "16", NULL}, e);
    free(tables);
    free(own);
    str_free(&code);
    return r;
}

const struct rule rule_privatize = {
    .name = "privatize",
    .help = "count into several tables in turn, and add them up at the end (histograms)",
    .risk = RISK_ROUND,
    .promise = 4,
    .sites = sites,
    .apply = apply,
};
