// Rule vector: a loop that threads share becomes one over groups of VEC neighbours, read and written 16 bytes
// at a time where the addresses allow it: the task's promise, or a test at run time. What groups do not
// cover, and everything where an address is not aligned, runs through the loop as it was. All loops of the
// kernel over the same range change together, so that a thread still finds what it wrote itself.
#include "rules/cuda.h"

#include "base/task.h"

enum { LOOPS_MAX = 8, ARRAYS_MAX = 8, ACCESSES_MAX = 24 };

struct array { // one element of an array that each iteration reads or writes, next to that of its neighbours
    const struct node *first; // an access, for its address
    const char *base, *type;
    struct poly sub;
    bool read, write, promised;
    char *local;
};
struct group { // one loop
    struct cu_loop l;
    struct array arrays[ARRAYS_MAX];
    int narrays;
    struct {
        const struct node *node;
        int array;
    } accesses[ACCESSES_MAX];
    int naccesses;
};
struct plan {
    struct cu_launch at;
    struct group g[LOOPS_MAX];
    int n, least, most; // size of the smallest and largest element
};

struct scan {
    const struct rule_source *s;
    struct plan *p;
    struct group *g;
    bool conditional;
    char *why;
    bool bad;
};

static void refuse(struct scan *x, const char *fmt, const char *name)
{
    if (!x->bad)
        snprintf(x->why, 240, fmt, name);
    x->bad = true;
}

// Is the address the same but for the loop's counter while the loop runs?
struct fixed {
    const struct rule_source *s;
    const struct group *g;
    bool bad;
};
static bool fixed_name(void *user, struct node *n)
{
    struct fixed *f = user;
    if (n->kind == N_IDENT && !str_eq(n->name, f->g->l.var) &&
        scalar_written(&f->s->a, n->name, f->g->l.body))
        f->bad = true;
    f->bad |= n->kind == N_CALL || n->kind == N_INDEX || n->kind == N_ASSIGN;
    return n->kind != N_MEMBER && !f->bad;
}

static bool address_fixed(const struct scan *x, const struct node *n)
{
    struct fixed f = {x->s, x->g, false};
    node_walk(n->a, fixed_name, &f);
    if (n->b)
        node_walk(n->b, fixed_name, &f);
    return !f.bad;
}

static void add_access(struct scan *x, const struct node *n, bool read, bool write)
{
    struct group *g = x->g;
    const char *base;
    struct poly sub, stride, rest;
    int64_t one;
    if (!cu_access(x->s, n, &base, &sub)) {
        poly_free(&sub);
        if (write)
            refuse(x, "%s", "it writes to a place that is not understood");
        return;
    }
    const struct var_info *v = analysis_var(&x->s->a, base);
    bool unit = v && v->param && poly_split(&sub, g->l.var, &stride, &rest);
    if (unit) {
        unit = poly_is_const(&stride, &one) && one == 1 && n->kind == N_INDEX;
        poly_free(&stride);
        poly_free(&rest);
    }
    unit = unit && cu_elem_size(cu_elem(x->s, base)) && address_fixed(x, n);
    if (!unit) {
        if (write)
            refuse(x, "what it writes to %s is not one element after the other", base);
        else if (v && v->param && cu_written(x->s, base))
            refuse(x, "it reads %s, which is written as well, elsewhere than at its own element", base);
        poly_free(&sub);
        return;
    }
    if (write && x->conditional)
        refuse(x, "it writes to %s under a condition", base);
    int k = 0;
    while (k < g->narrays && !(str_eq(g->arrays[k].base, base) && poly_equal(&g->arrays[k].sub, &sub)))
        k++;
    if (k == ARRAYS_MAX || g->naccesses == ACCESSES_MAX) {
        refuse(x, "%s", "it reads and writes too many places");
        poly_free(&sub);
        return;
    }
    if (k == g->narrays) {
        const struct task_arg *arg = cu_task_arg(x->s, base);
        struct poly own;
        poly_atom(&own, g->l.var);
        g->arrays[g->narrays++] =
            (struct array){.first = n,
                           .base = base,
                           .type = cu_elem(x->s, base),
                           .sub = sub,
                           .promised = arg && arg->align >= 16 && poly_equal(&sub, &own)};
        poly_free(&own);
    } else {
        poly_free(&sub);
    }
    g->arrays[k].read |= read;
    g->arrays[k].write |= write;
    g->accesses[g->naccesses].node = n;
    g->accesses[g->naccesses++].array = k;
}

static void walk(struct scan *x, const struct node *n);

static void walk_kids(struct scan *x, const struct node *n)
{
    for (const struct node *k = n->kids; k; k = k->next)
        walk(x, k);
    const struct node *four[] = {n->a, n->b, n->c, n->d};
    for (size_t i = 0; i < 4; i++)
        if (four[i])
            walk(x, four[i]);
}

// A scalar from outside the loop that changes in it must be one that only gathers.
static void scalar_change(struct scan *x, const struct node *target, const struct node *stmt)
{
    const struct var_info *v = analysis_var(&x->s->a, target->name);
    const struct node *up = v ? v->decl : NULL;
    while (up && up != x->g->l.body)
        up = up->up;
    struct reduction r;
    while (stmt && node_is_expr(stmt))
        stmt = stmt->up;
    if (up || (stmt && stmt_reduction(&x->s->a, stmt, &r) && str_eq(r.var, target->name)))
        return;
    const struct node *iff = stmt ? stmt->up : NULL;
    if (iff && iff->kind == N_BLOCK)
        iff = iff->up;
    if (!(iff && iff->kind == N_IF && stmt_reduction(&x->s->a, iff, &r) && str_eq(r.var, target->name)))
        refuse(x, "%s changes from one iteration to the next", target->name);
}

static bool call_ok(const struct scan *x, const struct node *n)
{
    return n->a->kind == N_IDENT && (cu_pure_call(x->s, n->a->name) || str_eq(n->a->name, "atomicAdd") ||
                                     str_eq(n->a->name, "atomicMax") || str_eq(n->a->name, "atomicMin"));
}

static void walk(struct scan *x, const struct node *n)
{
    bool was = x->conditional;
    switch (n->kind) {
    case N_INDEX:
        add_access(x, n, true, false);
        walk(x, n->b);
        return;
    case N_ASSIGN:
        walk(x, n->b);
        if (n->a->kind == N_INDEX) {
            add_access(x, n->a, n->op != OP_ASSIGN, true);
            walk(x, n->a->b);
        } else if (n->a->kind == N_IDENT) {
            scalar_change(x, n->a, n);
        } else {
            refuse(x, "%s", "it writes to a place that is not understood");
        }
        return;
    case N_UNARY:
    case N_POSTFIX:
        if (n->op == OP_INC || n->op == OP_DEC)
            n->a->kind == N_IDENT ? scalar_change(x, n->a, n)
                                  : refuse(x, "%s", "it changes a place with ++ or --");
        else if (n->op == OP_AND) // of an atomic: the place, not its value
            n->a->kind == N_INDEX ? walk(x, n->a->b) : refuse(x, "%s", "it takes an address");
        else if (n->op == OP_MUL)
            refuse(x, "%s", "it goes through a pointer");
        else
            walk(x, n->a);
        return;
    case N_IF:
    case N_COND:
        walk(x, n->a);
        x->conditional = true;
        walk(x, n->b);
        if (n->c)
            walk(x, n->c);
        x->conditional = was;
        return;
    case N_CALL:
        if (!call_ok(x, n))
            refuse(x, "it calls %s", n->a->kind == N_IDENT ? n->a->name : "something");
        for (const struct node *k = n->kids; k; k = k->next)
            walk(x, k);
        return;
    case N_FOR:
    case N_WHILE:
    case N_DO:
        x->conditional = true;
        walk_kids(x, n);
        x->conditional = was;
        return;
    case N_BREAK:
    case N_CONTINUE:
    case N_RETURN:
    case N_GOTO:
    case N_SWITCH:
    case N_OPAQUE:
    case N_PP:
    case N_PRAGMA:
        refuse(x, "%s", "its body is more than expressions, tests and loops");
        return;
    default:
        walk_kids(x, n);
    }
}

static void plan_free(struct plan *p)
{
    cu_launch_free(&p->at);
    for (int i = 0; i < p->n; i++) {
        for (int k = 0; k < p->g[i].narrays; k++) {
            poly_free(&p->g[i].arrays[k].sub);
            free(p->g[i].arrays[k].local);
        }
        cu_loop_free(&p->g[i].l);
    }
    p->n = 0;
}

// Is an array that one of the loops writes used outside of them? Then another thread might look for it.
struct outside {
    const struct rule_source *s;
    const struct plan *p;
    const char *found;
};
static bool find_outside(void *user, struct node *n)
{
    struct outside *o = user;
    for (int i = 0; i < o->p->n; i++)
        if (n == o->p->g[i].l.stmt)
            return false;
    // A pointer made of the array is followed where it is used.
    if (n->kind == N_VAR && n->type->ptr && n->a && cu_root(o->s, n->name))
        return false;
    const char *root = n->kind == N_IDENT ? cu_root(o->s, n->name) : NULL;
    for (int i = 0; root && i < o->p->n; i++)
        for (int k = 0; k < o->p->g[i].narrays; k++)
            if (o->p->g[i].arrays[k].write && str_eq(o->p->g[i].arrays[k].base, root))
                o->found = root;
    return !o->found;
}

// Two loops over one array must meet in the same elements.
static bool consistent(const struct plan *p, char why[240])
{
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->g[i].narrays; k++)
            for (int j = 0; j < p->n; j++)
                for (int m = 0; m < p->g[j].narrays; m++) {
                    const struct array *a = &p->g[i].arrays[k], *b = &p->g[j].arrays[m];
                    if ((a == b && i == j) || !a->write || !str_eq(a->base, b->base))
                        continue;
                    struct poly x = {0}, u = {0};
                    poly_copy(&x, &b->sub);
                    poly_atom(&u, p->g[i].l.var);
                    poly_subst(&x, p->g[j].l.var, &u);
                    bool same = poly_equal(&a->sub, &x);
                    poly_free(&x);
                    poly_free(&u);
                    if (!same) {
                        snprintf(why, 240, "%s is written at one element and used at another", a->base);
                        return false;
                    }
                }
    return true;
}

static bool same_range(const struct rule_source *s, const struct cu_loop *a, const struct cu_loop *b)
{
    struct poly x = {0}, y = {0};
    cu_poly(s, a->hi, &x);
    cu_poly(s, b->hi, &y);
    bool same = poly_equal(&a->lo_p, &b->lo_p) && poly_equal(&x, &y);
    poly_free(&x);
    poly_free(&y);
    return same;
}

static bool add_group(const struct rule_source *s, struct plan *p, struct cu_loop *l, char why[240])
{
    struct group *g = &p->g[p->n++];
    *g = (struct group){.l = *l};
    struct scan x = {s, p, g, false, why, false};
    if (cu_barrier(l->body))
        refuse(&x, "%s", "threads wait for each other inside it");
    walk(&x, l->body);
    for (int k = 0; k < g->narrays; k++) {
        int size = cu_elem_size(g->arrays[k].type);
        p->least = !p->least || size < p->least ? size : p->least;
        p->most = size > p->most ? size : p->most;
    }
    if (!x.bad && !g->narrays)
        refuse(&x, "%s", "it reads and writes nothing one element after the other");
    return !x.bad;
}

// The plan of the loop and of all others over its range. -1: not a loop that threads share.
static int make_plan(const struct rule_source *s, const struct node *stmt, struct plan *p, char why[240])
{
    struct cu_loop first, l;
    *p = (struct plan){0};
    if (!cu_loop_read(s, stmt, &first)) {
        cu_loop_free(&first);
        return -1;
    }
    if (cu_launch_read(s, &p->at, why) < 0 || cu_loop_split(s, &first, &p->at) == CU_NONE) {
        cu_loop_free(&first);
        return -1;
    }
    bool ok = true;
    if (!str_eq(first.type, "int") && !str_eq(first.type, "unsigned int") && !str_eq(first.type, "size_t") &&
        !str_eq(first.type, "long") && !str_eq(first.type, "unsigned") && !str_eq(first.type, "long long"))
        ok = (snprintf(why, 240, "its counter is %s", first.type), false);
    VEC(struct node *) all = {0};
    // Every for statement, canonical to the analysis or not.
    for (const struct node *n = s->t.root; n;) {
        if (n->kind == N_FOR)
            vec_push(&all, (struct node *)(uintptr_t)n);
        const struct node *down = n->kids ? n->kids : n->kind == N_FOR ? n->d : n->kind == N_IF ? n->b : NULL;
        if (down) {
            n = down;
            continue;
        }
        while (n && !n->next && !(n->up && n->up->kind == N_IF && n == n->up->b && n->up->c))
            n = n->up;
        if (n)
            n = n->next ? n->next : n->up->c;
    }
    for (size_t i = 0; i < all.n && ok; i++) {
        if (!cu_loop_read(s, all.v[i], &l) || !same_range(s, &first, &l) ||
            cu_loop_split(s, &l, &p->at) == CU_NONE) {
            cu_loop_free(&l);
            continue;
        }
        ok = p->n < LOOPS_MAX ? add_group(s, p, &l, why) : (cu_loop_free(&l), false);
    }
    vec_free(&all);
    cu_loop_free(&first);
    struct outside o = {s, p, NULL};
    if (ok)
        node_walk(s->t.root, find_outside, &o);
    if (o.found)
        ok = (snprintf(why, 240, "%s is used outside the loop too", o.found), false);
    if (ok && 16 % p->least)
        ok = (snprintf(why, 240, "elements of %d bytes", p->least), false);
    return ok && consistent(p, why) ? 1 : 0;
}

struct sites_of {
    const struct rule_source *s;
    rule_sites *out;
    VEC(const struct node *) done;
};

static bool add_site(void *user, struct node *n)
{
    struct sites_of *x = user;
    struct plan p;
    char why[240] = "";
    if (n->kind != N_FOR)
        return !node_is_expr(n);
    for (size_t i = 0; i < x->done.n; i++)
        if (x->done.v[i] == n)
            return true;
    int r = make_plan(x->s, n, &p, why);
    if (r > 0) {
        rewrite_site(x->s, x->out, n, true, NULL, "%d loop%s over %s in groups of 16 bytes", p.n,
                     p.n > 1 ? "s" : "", p.g[0].l.var);
        for (int i = 0; i < p.n; i++)
            vec_push(&x->done, p.g[i].l.stmt);
    } else if (r == 0) {
        rewrite_site(x->s, x->out, n, false, NULL, "%s", why);
    }
    plan_free(&p);
    return true;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    struct sites_of x = {s, out, {0}};
    node_walk(s->t.root, add_site, &x);
    vec_free(&x.done);
}

// ---- writing

// "&x[t * H + i]" with the counter replaced.
static void address(const struct rule_source *s, const struct array *a, const char *var, const char *by,
                    struct str *out)
{
    struct subst u = {var, by};
    str_addc(out, '&');
    parts_clone(s, a->first, &u, 1, out);
}

// "((size_t)&x[...] | (size_t)&y[...]) % 16 == 0" for what the task does not promise; empty: nothing to test.
static void alignment(const struct rule_source *s, const struct plan *p, struct str *out)
{
    VEC(char *) seen = {0};
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->g[i].narrays; k++) {
            struct str one = {0};
            address(s, &p->g[i].arrays[k], p->g[i].l.var, "0", &one);
            bool again = p->g[i].arrays[k].promised;
            for (size_t m = 0; m < seen.n; m++)
                again |= str_eq(seen.v[m], str_c(&one));
            if (again) {
                str_free(&one);
                continue;
            }
            str_addf(out, "%s(size_t)%s", out->len ? " | " : "", str_c(&one));
            vec_push(&seen, str_steal(&one));
        }
    for (size_t m = 0; m < seen.n; m++)
        free(seen.v[m]);
    vec_free(&seen);
}

static void move(const struct rule_source *s, const struct group *g, const struct array *a, const char *vec,
                 const char *h, bool store, struct str *out)
{
    struct str at = {0};
    char *first = xasprintf("%s_v * %s", g->l.var, vec);
    address(s, a, g->l.var, first, &at);
    bool cached = !store && !cu_written(s, a->base) && s->a.no_alias;
    str_addf(out, "#pragma unroll\nfor (int %s = 0; %s < %s * (int)sizeof(%s) / 16; %s++)\n", h, h, vec,
             a->type, h);
    if (store)
        str_addf(out, "    ((uint4 *)%s)[%s] = ((const uint4 *)%s)[%s];\n", str_c(&at), h, a->local, h);
    else if (cached)
        str_addf(out, "    ((uint4 *)%s)[%s] = __ldg((const uint4 *)%s + %s);\n", a->local, h, str_c(&at), h);
    else
        str_addf(out, "    ((uint4 *)%s)[%s] = ((const uint4 *)%s)[%s];\n", a->local, h, str_c(&at), h);
    free(first);
    str_free(&at);
}

static void write_group(const struct rule_source *s, struct group *g, const char *vec, const char *groups,
                        const char *u, struct str *out)
{
    struct str body = {0}, inner = {0}, head = {0}, step = {0}, lo = {0};
    swaps w = {0};
    VEC(char *) texts = {0};
    if (g->l.step)
        node_text(&s->t, g->l.step, &step);
    node_text(&s->t, g->l.lo, &lo);
    for (int k = 0; k < g->narrays; k++)
        str_addf(&body, "__align__(16) %s %s[%s];\n", g->arrays[k].type, g->arrays[k].local, vec);
    for (int k = 0; k < g->narrays; k++)
        if (g->arrays[k].read)
            move(s, g, &g->arrays[k], vec, u, false, &body);
    for (int k = 0; k < g->naccesses; k++) {
        char *cell = xasprintf("%s[%s]", g->arrays[g->accesses[k].array].local, u);
        vec_push(&texts, cell);
        vec_push(&w, ((struct swap){g->accesses[k].node, cell}));
    }
    struct str cells = {0};
    parts_body(s, g->l.body, &w, &cells);
    if (cu_mentions(str_c(&cells), g->l.var))
        str_addf(&inner, "const %s %s = %s_v * %s + %s;\n", g->l.type, g->l.var, g->l.var, vec, u);
    str_add(&inner, str_c(&cells));
    str_free(&cells);
    str_add(&body, "#pragma unroll\n");
    str_addf(&head, "for (int %s = 0; %s < %s; %s++) ", u, u, vec, u);
    parts_braces(&body, str_c(&head), str_c(&inner));
    for (int k = 0; k < g->narrays; k++)
        if (g->arrays[k].write)
            move(s, g, &g->arrays[k], vec, u, true, &body);
    str_clear(&head);
    str_addf(&head, "for (%s %s_v = %s; %s_v < %s; %s_v += %s) ", g->l.type, g->l.var, lo.s, g->l.var, groups,
             g->l.var, step.len ? step.s : "1");
    parts_braces(out, str_c(&head), str_c(&body));
    str_addf(out, "for (%s %s = %s * %s + (%s); %s < ", g->l.type, g->l.var, groups, vec, lo.s, g->l.var);
    node_text(&s->t, g->l.hi, out);
    str_addf(out, "; %s += %s) ", g->l.var, step.len ? step.s : "1");
    str_clear(&inner);
    parts_body(s, g->l.body, NULL, &inner);
    parts_braces(out, "", str_c(&inner));
    for (size_t i = 0; i < texts.n; i++)
        free(texts.v[i]);
    vec_free(&texts);
    vec_free(&w);
    str_free(&body);
    str_free(&inner);
    str_free(&head);
    str_free(&step);
    str_free(&lo);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    struct plan p;
    char why[240] = "no loop that threads share";
    struct node *stmt = rewrite_find(s, where, e);
    (void)params;
    if (!stmt)
        return -1;
    if (make_plan(s, stmt, &p, why) <= 0) {
        plan_free(&p);
        return err_set(e, ERR_FAIL, "", "vector: %s", why);
    }
    char *vec = rewrite_name(s, "VEC"), *groups = rewrite_name(s, "groups"), *u = rewrite_name(s, "u");
    struct str test = {0}, code[LOOPS_MAX] = {0}, text = {0};
    alignment(s, &p, &test);
    for (int i = 0; i < p.n; i++) {
        struct group *g = &p.g[i];
        for (int k = 0; k < g->narrays; k++) {
            char suffix[16];
            snprintf(suffix, sizeof suffix,
                     k && str_eq(g->arrays[k].base, g->arrays[k - 1].base) ? "_v%d" : "_v", k);
            g->arrays[k].local = parts_name(s, g->arrays[k].base, suffix);
        }
        str_addf(&code[i], "const %s %s = ", g->l.type, groups);
        if (test.len)
            str_addf(&code[i], "(%s) %% 16 == 0 ? ", test.s);
        bool plain = g->l.hi->kind == N_IDENT || g->l.hi->kind == N_NUM;
        str_add(&code[i], plain ? "" : "(");
        node_text(&s->t, g->l.hi, &code[i]);
        str_addf(&code[i], "%s / %s%s;\n", plain ? "" : ")", vec, test.len ? " : 0" : "");
        write_group(s, g, vec, groups, u, &code[i]);
    }
    // From the last to the first, so that places hold.
    str_addn(&text, s->text, s->len);
    for (int i = p.n; i-- > 0;) {
        size_t at, len;
        struct str placed = {0};
        node_bytes(&s->t, p.g[i].l.stmt, &at, &len);
        parts_place(s, p.g[i].l.stmt, str_c(&code[i]), &placed);
        size_t grown = placed.len - s->len + len;
        str_splice(&text, at, len, placed.s + at, grown);
        str_free(&placed);
        str_free(&code[i]);
    }
    char values[3][16];
    snprintf(values[0], 16, "%d", 16 / p.least);
    snprintf(values[1], 16, "%d", 32 / p.least);
    snprintf(values[2], 16, "%d", 64 / p.least);
    const char *const list[] = {values[0], values[1], values[2], NULL};
    int r = rewrite_add_knob(s, &text, vec, values[0], list, e);
    if (r == 0)
        str_addn(out, text.s, text.len);
    free(vec);
    free(groups);
    free(u);
    str_free(&test);
    str_free(&text);
    plan_free(&p);
    return r;
}

const struct rule rule_cuda_vector = {
    .name = "vector",
    .help = "loops that threads share read and write 16 bytes at a time",
    .risk = RISK_ROUND,
    .cuda = true,
    .sites = sites,
    .apply = apply,
};
