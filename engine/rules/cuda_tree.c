// Rules on sums over a block. tree: a tree in shared memory (interleaved, strided or halving) becomes
// shuffles within warps and one exchange between them. coarsen: where each thread brings one element to such
// a sum, it brings several, and fewer blocks are launched; whatever names the number of blocks follows.
#include "rules/cuda.h"

#include "base/task.h"
#include "source/annot.h"

struct tree {
    struct cu_launch l;
    const struct node *stmt, *test, *decl; // the loop, its if, "int index = 2 * k * t"
    const struct node *gather;             // the assignment
    const char *array, *type, *k;
    enum op_kind op; // OP_ADD, OP_MUL, or OP_NONE: call
    const char *call;
};

static bool is_name(const struct node *n, const char *name)
{
    return n && n->kind == N_IDENT && str_eq(n->name, name);
}

static bool is_number(const struct rule_source *s, const struct node *n, int64_t want)
{
    int64_t c;
    return n && node_const(&s->t, n, &c) && c == want;
}

static bool same_poly(const struct rule_source *s, const struct node *n, const struct poly *want)
{
    struct poly p;
    cu_poly(s, n, &p);
    bool same = poly_equal(&p, want);
    poly_free(&p);
    return same;
}

static bool halves(const struct rule_source *s, const struct node *n, const char *k)
{
    if (n->kind != N_ASSIGN || !is_name(n->a, k))
        return false;
    if ((n->op == OP_SHR_ASSIGN && is_number(s, n->b, 1)) ||
        (n->op == OP_DIV_ASSIGN && is_number(s, n->b, 2)))
        return true;
    const struct node *b = n->op == OP_ASSIGN ? n->b : NULL;
    return b && b->kind == N_BINARY && is_name(b->a, k) &&
           ((b->op == OP_DIV && is_number(s, b->b, 2)) || (b->op == OP_SHR && is_number(s, b->b, 1)));
}

static bool doubles(const struct rule_source *s, const struct node *n, const char *k)
{
    if (n->kind != N_ASSIGN || !is_name(n->a, k))
        return false;
    if ((n->op == OP_MUL_ASSIGN && is_number(s, n->b, 2)) ||
        (n->op == OP_SHL_ASSIGN && is_number(s, n->b, 1)) || (n->op == OP_ADD_ASSIGN && is_name(n->b, k)))
        return true;
    const struct node *b = n->op == OP_ASSIGN ? n->b : NULL;
    return b && b->kind == N_BINARY &&
           ((b->op == OP_MUL && is_name(b->a, k) && is_number(s, b->b, 2)) ||
            (b->op == OP_MUL && is_name(b->b, k) && is_number(s, b->a, 2)) ||
            (b->op == OP_SHL && is_name(b->a, k) && is_number(s, b->b, 1)));
}

// blockDim.x, however it is written; half: divided by two.
static bool is_block(const struct rule_source *s, const struct node *n, const struct cu_launch *l, bool half)
{
    int64_t size = cu_block_size(s, l, 0), c;
    if (half) {
        if (n->kind == N_BINARY &&
            ((n->op == OP_DIV && is_number(s, n->b, 2)) || (n->op == OP_SHR && is_number(s, n->b, 1))))
            return is_block(s, n->a, l, false);
        return n->kind == N_NUM && node_const(&s->t, n, &c) && size > 1 && c * 2 == size;
    }
    return cu_is_block(s, n, l);
}

static bool header(const struct rule_source *s, struct tree *t, bool *down)
{
    const struct node *f = t->stmt, *init = f->a;
    const struct node *first = NULL;
    if (!init || !f->b || !f->c)
        return false;
    if (init->kind == N_DECL && init->kids && !init->kids->next) {
        t->k = init->kids->name;
        first = init->kids->a;
    } else if (init->kind == N_ASSIGN && init->op == OP_ASSIGN && init->a->kind == N_IDENT) {
        t->k = init->a->name;
        first = init->b;
    }
    const struct node *c = f->b;
    if (!first)
        return false;
    *down = halves(s, f->c, t->k);
    if (*down) {
        bool ends = is_name(c, t->k) || (c->kind == N_BINARY && is_name(c->a, t->k) &&
                                         (((c->op == OP_GT || c->op == OP_NE) && is_number(s, c->b, 0)) ||
                                          (c->op == OP_GE && is_number(s, c->b, 1))));
        return ends && is_block(s, first, &t->l, true);
    }
    return doubles(s, f->c, t->k) && is_number(s, first, 1) && c->kind == N_BINARY && c->op == OP_LT &&
           is_name(c->a, t->k) && is_block(s, c->b, &t->l, false);
}

static bool is_sync(const struct node *n)
{
    return n->kind == N_EXPR && n->a && n->a->kind == N_CALL && is_name(n->a->a, "__syncthreads");
}

// a[x] op= a[x + k] in its spellings; the index x as a polynomial.
static bool update(const struct rule_source *s, struct tree *t, const struct node *n, struct poly *at)
{
    const struct node *e = n->kind == N_EXPR ? n->a : NULL, *from = NULL;
    if (!e || e->kind != N_ASSIGN || e->a->kind != N_INDEX)
        return false;
    t->op = OP_NONE;
    if (e->op == OP_ADD_ASSIGN || e->op == OP_MUL_ASSIGN) {
        t->op = e->op == OP_ADD_ASSIGN ? OP_ADD : OP_MUL;
        from = e->b;
    } else if (e->op == OP_ASSIGN && e->b->kind == N_BINARY && (e->b->op == OP_ADD || e->b->op == OP_MUL)) {
        t->op = e->b->op;
        from = node_same(e->b->a, e->a) ? e->b->b : node_same(e->b->b, e->a) ? e->b->a : NULL;
    } else if (e->op == OP_ASSIGN && e->b->kind == N_CALL && e->b->a->kind == N_IDENT && e->b->kids &&
               e->b->kids->next && !e->b->kids->next->next) {
        static const char *const calls[] = {"fmaxf", "fminf", "fmax", "fmin", "max", "min"};
        for (size_t i = 0; i < countof(calls); i++)
            if (str_eq(calls[i], e->b->a->name))
                t->call = calls[i];
        const struct node *x = e->b->kids, *y = x->next;
        from = !t->call ? NULL : node_same(x, e->a) ? y : node_same(y, e->a) ? x : NULL;
    }
    const char *base;
    struct poly sub, k;
    if (!from || from->kind != N_INDEX || !cu_access(s, e->a, &t->array, at))
        return false;
    bool ok = cu_access(s, from, &base, &sub) && str_eq(base, t->array);
    poly_atom(&k, t->k);
    poly_add(&sub, at, -1);
    ok = ok && poly_equal(&sub, &k);
    poly_free(&sub);
    poly_free(&k);
    t->gather = n;
    return ok;
}

static void thread_times(const char *k, struct poly *out) // 2 * k * threadIdx.x
{
    struct poly x, two;
    poly_atom(out, "threadIdx.x");
    poly_atom(&x, k);
    poly_const(&two, 2);
    poly_mul(out, &x);
    poly_mul(out, &two);
    poly_free(&x);
    poly_free(&two);
}

// Does the test let exactly the threads of the tree through?
static bool test_ok(const struct rule_source *s, const struct tree *t, bool down, const struct poly *at)
{
    struct poly thread, strided, k;
    const struct node *c = t->test->a;
    poly_atom(&thread, "threadIdx.x");
    thread_times(t->k, &strided);
    poly_atom(&k, t->k);
    bool own = poly_equal(at, &thread), far = poly_equal(at, &strided), ok = false;
    if (down)
        ok = own && c->kind == N_BINARY && c->op == OP_LT && same_poly(s, c->a, &thread) &&
             same_poly(s, c->b, &k);
    else if (own && c->kind == N_BINARY && c->op == OP_EQ && is_number(s, c->b, 0) &&
             c->a->kind == N_BINARY && c->a->op == OP_MOD) {
        struct poly two;
        poly_const(&two, 2);
        poly_mul(&k, &two);
        ok = same_poly(s, c->a->a, &thread) && same_poly(s, c->a->b, &k);
        poly_free(&two);
    } else if (far)
        ok = c->kind == N_BINARY && c->op == OP_LT && same_poly(s, c->a, &strided) &&
             is_block(s, c->b, &t->l, false);
    poly_free(&thread);
    poly_free(&strided);
    poly_free(&k);
    return ok;
}

static bool body_ok(const struct rule_source *s, struct tree *t, bool down)
{
    int syncs = 0;
    if (t->stmt->d->kind != N_BLOCK)
        return false;
    for (const struct node *n = t->stmt->d->kids; n; n = n->next) {
        if (is_sync(n))
            syncs++;
        else if (n->kind == N_IF && !n->c && !t->test)
            t->test = n;
        else if (n->kind == N_DECL && !t->decl && !t->test && n->kids && !n->kids->next)
            t->decl = n;
        else if (n->kind != N_EMPTY)
            return false;
    }
    struct poly at = {0};
    const struct node *only = t->test ? parts_first(t->test->b) : NULL;
    bool ok = syncs == 1 && only && !parts_next(t->test->b, only) && update(s, t, only, &at) &&
              test_ok(s, t, down, &at);
    poly_free(&at);
    return ok;
}

// After the tree only element 0 may be read, until each thread writes its own again.
static bool rest_ok(const struct rule_source *s, const struct tree *t, char why[240])
{
    struct poly thread;
    poly_atom(&thread, "threadIdx.x");
    bool ok = true;
    for (size_t i = 0; i < s->a.accesses.n && ok; i++) {
        const struct access *x = &s->a.accesses.v[i];
        const char *base;
        struct poly at = {0};
        int64_t c;
        bool mine =
            x->node->first >= t->stmt->end && cu_access(s, x->node, &base, &at) && str_eq(base, t->array);
        bool renewed = mine && x->kind == ACC_WRITE && poly_equal(&at, &thread);
        if (mine && !renewed)
            ok = x->kind == ACC_READ && poly_is_const(&at, &c) && c == 0;
        poly_free(&at);
        if (renewed)
            break;
    }
    if (!ok)
        snprintf(why, 240, "more than %.40s[0] is used after the tree", t->array);
    poly_free(&thread);
    return ok;
}

// 1: a tree; 0: one that cannot be changed, and why; -1: none.
static int find_tree(const struct rule_source *s, const struct node *stmt, struct tree *t, char why[240])
{
    bool down = false;
    *t = (struct tree){.stmt = stmt};
    if (stmt->kind != N_FOR || !stmt->d || !cu_barrier(stmt->d) || cu_launch_read(s, &t->l, why) < 0)
        return -1;
    if (!header(s, t, &down) || !body_ok(s, t, down)) {
        snprintf(why, 240, "a loop with a barrier that is no tree of a sum or maximum over the block");
        return 0;
    }
    t->type = cu_elem(s, t->array);
    for (const struct node *n = stmt->up; n; n = n->up)
        if (n->kind == N_FOR || n->kind == N_WHILE || n->kind == N_DO || n->kind == N_IF) {
            snprintf(why, 240, "it stands in another loop or under a test");
            return 0;
        }
    static const char *const types[] = {"float", "double", "int", "unsigned int"};
    bool known = false;
    for (size_t i = 0; t->type && i < countof(types); i++)
        known |= str_eq(t->type, types[i]);
    if (!known)
        snprintf(why, 240, "shuffles of %.40s", t->type ? t->type : "an unknown type");
    else if (!cu_launch_flat(&t->l))
        snprintf(why, 240, "the block has more than one dimension");
    else if (!cu_block_warps(s, &t->l))
        snprintf(why, 240, "the block's size is not known to be a multiple of 32");
    else
        return rest_ok(s, t, why);
    return 0;
}

struct listing {
    const struct rule_source *s;
    rule_sites *out;
};
static bool list_tree(void *user, struct node *n)
{
    struct listing *x = user;
    struct tree t;
    char why[240];
    if (n->kind != N_FOR)
        return !node_is_expr(n);
    int r = find_tree(x->s, n, &t, why);
    if (r > 0)
        rewrite_site(x->s, x->out, n, true, NULL, "the tree over %s as shuffles within warps", t.array);
    else if (r == 0)
        rewrite_site(x->s, x->out, n, false, NULL, "%s", why);
    cu_launch_free(&t.l);
    return true;
}

static void tree_sites(const struct rule_source *s, rule_sites *out)
{
    struct listing x = {s, out};
    node_walk(s->t.root, list_tree, &x);
}

static void shuffles(const struct tree *t, const char *v, const char *o, struct str *out)
{
    str_addf(out, "for (int %s = 16; %s > 0; %s >>= 1)\n    ", o, o, o);
    if (t->call)
        str_addf(out, "%s = %s(%s, __shfl_xor_sync(0xffffffffu, %s, %s));\n", v, t->call, v, v, o);
    else
        str_addf(out, "%s %s= __shfl_xor_sync(0xffffffffu, %s, %s);\n", v, op_text(t->op), v, o);
}

static int tree_apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                      struct err *e)
{
    struct tree t;
    char why[240] = "no tree";
    struct node *stmt = rewrite_find(s, where, e);
    (void)params;
    if (!stmt)
        return -1;
    if (find_tree(s, stmt, &t, why) <= 0) {
        cu_launch_free(&t.l);
        return err_set(e, ERR_FAIL, "", "tree: %s", why);
    }
    char *v = rewrite_name(s, "v"), *part = rewrite_name(s, "part"), *o = rewrite_name(s, "o");
    struct str code = {0}, first = {0};
    str_addf(&code, "__shared__ %s %s[32];\n%s %s = %s[threadIdx.x];\n", t.type, part, t.type, v, t.array);
    shuffles(&t, v, o, &code);
    str_addf(&code, "if (threadIdx.x %% 32 == 0)\n    %s[threadIdx.x / 32] = %s;\n__syncthreads();\n", part,
             v);
    str_addf(&first, "%s = %s[threadIdx.x < blockDim.x / 32 ? threadIdx.x : 0];\n", v, part);
    if (!t.call)
        str_addf(&first, "if (threadIdx.x >= blockDim.x / 32)\n    %s = %s;\n", v,
                 t.op == OP_ADD ? "0" : "1");
    shuffles(&t, v, o, &first);
    str_addf(&first, "if (threadIdx.x == 0)\n    %s[0] = %s;\n", t.array, v);
    parts_braces(&code, "if (threadIdx.x < 32) ", str_c(&first));
    str_add(&code, "__syncthreads();\n");
    parts_place(s, stmt, str_c(&code), out);
    str_free(&code);
    str_free(&first);
    free(v);
    free(part);
    free(o);
    cu_launch_free(&t.l);
    return 0;
}

const struct rule rule_cuda_tree = {
    .name = "tree",
    .help = "a tree in shared memory becomes shuffles within warps",
    .risk = RISK_ROUND,
    .cuda = true,
    .sites = tree_sites,
    .apply = tree_apply,
};

// ---- coarsen

struct coarse {
    struct tree t;
    const struct node *value, *bound; // i < n ? E : 0
    const char *var;
};

struct finding {
    const struct rule_source *s;
    struct coarse *c;
    bool trees;
    int uses;
};

static bool find_parts(void *user, struct node *n)
{
    struct finding *f = user;
    char why[240];
    if (n->kind == N_FOR && !f->trees) {
        struct tree t;
        if (find_tree(f->s, n, &t, why) > 0 && t.op == OP_ADD) {
            f->trees = true;
            f->c->t = t;
            return true;
        }
        cu_launch_free(&t.l);
    }
    const struct node *c = n->kind == N_COND ? n->a : NULL;
    if (!c || c->kind != N_BINARY || c->op != OP_LT || c->a->kind != N_IDENT || f->c->value)
        return true;
    f->c->value = n;
    f->c->var = c->a->name;
    f->c->bound = c->b;
    return true;
}

static bool count_uses(void *user, struct node *n)
{
    struct finding *f = user;
    if (n == f->c->value)
        return false;
    f->uses += n->kind == N_IDENT && str_eq(n->name, f->c->var);
    return true;
}

static bool is_zero(const struct rule_source *s, const struct node *n)
{
    return is_number(s, n, 0) || (n->kind == N_NUM && strtod(n->name, NULL) == 0);
}

// What the block leaves: p[blockIdx.x] of a scratch buffer, or an atomic sum.
static bool leaves_sums(const struct rule_source *s, char why[240])
{
    struct annots a;
    err_list errors = {0};
    int sums = 0;
    bool ok = true;
    annot_read(&a, s->text, s->len, s->path, &errors);
    vec_free(&errors);
    for (size_t i = 0; i < s->a.calls.n; i++)
        sums += str_eq(s->a.calls.v[i].name, "atomicAdd");
    for (size_t i = 0; i < s->a.accesses.n && ok; i++) {
        const struct access *x = &s->a.accesses.v[i];
        const char *base;
        struct poly at = {0}, block;
        poly_atom(&block, "blockIdx.x");
        if (x->kind & ACC_WRITE) {
            ok = cu_access(s, x->node, &base, &at);
            const struct var_info *v = ok ? analysis_var(&s->a, base) : NULL;
            if (ok && v->param) {
                ok = x->kind == ACC_WRITE && poly_equal(&at, &block) && a.scratch.n > 0;
                sums++;
            }
        }
        poly_free(&at);
        poly_free(&block);
    }
    annot_free(&a);
    if (!ok || !sums)
        snprintf(why, 240, "what the blocks leave is not a sum each, in a scratch buffer or by atomicAdd");
    return ok && sums;
}

static bool find_coarse(const struct rule_source *s, struct coarse *c, char why[240])
{
    struct finding f = {s, c, false, 0};
    *c = (struct coarse){0};
    snprintf(why, 240, "no sum over the block");
    node_walk(s->t.root, find_parts, &f);
    if (!f.trees)
        return false;
    const struct node *up = c->value ? c->value->up : NULL;
    struct poly i = {0};
    const struct node *v = c->var ? cu_value(s, c->var) : NULL;
    if (v)
        cu_poly(s, v, &i);
    bool ok = false;
    if (!c->value || !v || !cu_is_global_id(s, &i, &c->t.l, 0) || !is_zero(s, c->value->c))
        snprintf(why, 240, "no thread brings \"i < n ? an element : 0\"");
    else if (!up || up->kind != N_ASSIGN || up->op != OP_ASSIGN || up->b != c->value ||
             up->up->kind != N_EXPR || up->end > c->t.stmt->first)
        snprintf(why, 240, "the element is not assigned before the tree");
    else if (!node_contains(c->value->b, N_INDEX))
        snprintf(why, 240, "the element is not read from memory");
    else
        ok = true;
    const char *base;
    struct poly at = {0}, thread;
    poly_atom(&thread, "threadIdx.x");
    if (ok && !(cu_access(s, up->a, &base, &at) && str_eq(base, c->t.array) && poly_equal(&at, &thread)))
        ok = (snprintf(why, 240, "the element does not go into the tree"), false);
    poly_free(&at);
    poly_free(&thread);
    poly_free(&i);
    if (ok)
        node_walk(s->t.root, count_uses, &f);
    if (ok && f.uses)
        ok = (snprintf(why, 240, "%.40s is used elsewhere too", c->var), false);
    return ok && leaves_sums(s, why);
}

static void coarsen_sites(const struct rule_source *s, rule_sites *out)
{
    struct coarse c;
    char why[240];
    bool ok = find_coarse(s, &c, why);
    if (ok)
        cu_site(s, out, true, NULL, "each thread brings several elements to the sum over %s", c.t.array);
    else if (c.t.stmt)
        cu_site(s, out, false, NULL, "%s", why);
    cu_launch_free(&c.t.l);
}

static int coarsen_apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                         struct err *e)
{
    static const char *const items[] = {"2", "4", "8", "16", "32", "64", "128", "256", "512", NULL};
    struct coarse c;
    char why[240];
    (void)where;
    (void)params;
    if (!find_coarse(s, &c, why)) {
        cu_launch_free(&c.t.l);
        return err_set(e, ERR_FAIL, "", "coarsen: %s", why);
    }
    char *name = rewrite_name(s, "ITEMS"), *sum = rewrite_name(s, "mine"), *j = rewrite_name(s, "j");
    struct str code = {0}, text = {0};
    struct subst u = {c.var, j};
    str_addf(&code, "%s %s = 0;\nfor (int %s = ", c.t.type, sum, j);
    node_text(&s->t, cu_value(s, c.var), &code);
    str_addf(&code, "; %s < ", j);
    node_text(&s->t, c.bound, &code);
    str_addf(&code, "; %s += blockDim.x * gridDim.x)\n    %s += ", j, sum);
    parts_clone(s, c.value->b, &u, 1, &code);
    str_add(&code, ";\n");
    node_text(&s->t, c.value->up->a, &code);
    str_addf(&code, " = %s;\n", sum);
    parts_replace(s, c.value->up->up, str_c(&code), &text);
    char *grid = xasprintf("ceildiv(%s, %s)", c.t.l.grid[0], name);
    free(c.t.l.grid[0]);
    c.t.l.grid[0] = grid;
    int r = cu_launch_put(s, &text, &c.t.l, e);
    if (r == 0)
        r = rewrite_add_knob(s, &text, name, "16", items, e);
    if (r == 0)
        str_addn(out, text.s, text.len);
    str_free(&code);
    str_free(&text);
    free(name);
    free(sum);
    free(j);
    cu_launch_free(&c.t.l);
    return r;
}

const struct rule rule_cuda_coarsen = {
    .name = "coarsen",
    .help = "each thread brings several elements to a sum over the block; fewer blocks",
    .risk = RISK_SHAPE,
    .cuda = true,
    .sites = coarsen_sites,
    .apply = coarsen_apply,
};
