// What indices and loops of CUDA kernels are made of.
#include "rules/cuda.h"

#include "base/task.h"

#include <ctype.h>

static struct ast *tree(const struct rule_source *s)
{
    return (struct ast *)(uintptr_t)&s->t;
}

const char *cu_builtin(const struct node *n)
{
    static const char *const names[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z", "blockIdx.x",
                                        "blockIdx.y",  "blockIdx.z",  "blockDim.x",  "blockDim.y",
                                        "blockDim.z",  "gridDim.x",   "gridDim.y",   "gridDim.z"};
    if (n->kind != N_MEMBER || n->op != OP_DOT || n->a->kind != N_IDENT)
        return NULL;
    for (size_t i = 0; i < countof(names); i++) {
        size_t k = strlen(n->a->name);
        if (strncmp(names[i], n->a->name, k) == 0 && names[i][k] == '.' && str_eq(names[i] + k + 1, n->name))
            return names[i];
    }
    return NULL;
}

// ---- values

// Does a name stand for one value wherever the local that was made of it is read? Counters of loops around
// the definition do, and what is never set again.
struct stable {
    const struct rule_source *s;
    const struct node *decl;
    bool bad;
};

static bool counts_around(const struct node *decl, const char *name)
{
    for (const struct node *n = decl->up; n; n = n->up)
        if (n->kind == N_FOR && n->a && (node_uses(n->a, name) || (n->c && node_uses(n->c, name))))
            return true;
    return false;
}

static bool set_again(const struct rule_source *s, const char *name, const struct node *decl)
{
    for (size_t i = 0; i < s->a.scalars.n; i++) {
        const struct scalar_use *u = &s->a.scalars.v[i];
        if (str_eq(u->name, name) && (u->kind & ACC_WRITE) && u->node != decl)
            return true;
    }
    return false;
}

bool cu_set_once(const struct rule_source *s, const char *name)
{
    const struct var_info *v = analysis_var(&s->a, name);
    return v && v->decl && v->decl->a && !v->shadowed && !v->address_taken && !set_again(s, name, v->decl);
}

static bool check_name(void *user, struct node *n)
{
    struct stable *c = user;
    if (n->kind == N_MEMBER)
        return false;
    if (n->kind == N_IDENT) {
        const struct var_info *v = analysis_var(&c->s->a, n->name);
        if (v && !v->global &&
            (v->address_taken || (set_again(c->s, n->name, v->decl) && !counts_around(c->decl, n->name))))
            c->bad = true;
    }
    c->bad |= n->kind == N_CALL || n->kind == N_ASSIGN || n->kind == N_POSTFIX || n->kind == N_INDEX ||
              n->kind == N_OPAQUE ||
              (n->kind == N_UNARY && (n->op == OP_INC || n->op == OP_DEC || n->op == OP_MUL));
    return !c->bad;
}

const struct node *cu_value(const struct rule_source *s, const char *name)
{
    const struct var_info *v = analysis_var(&s->a, name);
    if (!v || v->param || v->global || v->shadowed || v->address_taken || !v->decl || !v->decl->a ||
        v->type->is_volatile || v->type->rank || set_again(s, name, v->decl))
        return NULL;
    struct stable c = {s, v->decl, false};
    node_walk(v->decl->a, check_name, &c);
    return c.bad ? NULL : v->decl->a;
}

static bool wide_int(const struct ctype *ty)
{
    static const char *const names[] = {"int",           "unsigned int",
                                        "long",          "unsigned long",
                                        "long int",      "unsigned long int",
                                        "long long",     "unsigned long long",
                                        "long long int", "unsigned long long int",
                                        "size_t",        "int64_t",
                                        "uint64_t",      "int32_t",
                                        "uint32_t",      "unsigned",
                                        "ptrdiff_t"};
    for (size_t i = 0; ty && !ty->ptr && !ty->rank && i < countof(names); i++)
        if (str_eq(ty->base, names[i]))
            return true;
    return false;
}

static void opaque_atom(const struct rule_source *s, const struct node *n, struct poly *out)
{
    struct str text = {0};
    ast_print(tree(s), n, NULL, 0, &text);
    poly_atom(out, ast_strn(tree(s), str_c(&text), text.len));
    str_free(&text);
}

static void of_name(const struct rule_source *s, const struct node *n, struct poly *out, int depth);

static void of_node(const struct rule_source *s, const struct node *n, struct poly *out, int depth)
{
    int64_t c;
    struct poly b;
    *out = (struct poly){0};
    if (cu_builtin(n)) {
        poly_atom(out, cu_builtin(n));
    } else if (n->kind == N_NUM && node_const(&s->t, n, &c)) {
        poly_const(out, c);
    } else if (n->kind == N_IDENT) {
        of_name(s, n, out, depth);
    } else if (n->kind == N_CAST && wide_int(n->type)) {
        of_node(s, n->a, out, depth);
    } else if (n->kind == N_UNARY && (n->op == OP_SUB || n->op == OP_ADD)) {
        of_node(s, n->a, &b, depth);
        poly_add(out, &b, n->op == OP_SUB ? -1 : 1);
        poly_free(&b);
    } else if (n->kind == N_BINARY && (n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL)) {
        of_node(s, n->a, out, depth);
        of_node(s, n->b, &b, depth);
        if (n->op == OP_MUL)
            poly_mul(out, &b);
        else
            poly_add(out, &b, n->op == OP_SUB ? -1 : 1);
        poly_free(&b);
    } else if (n->kind == N_BINARY && n->op == OP_SHL && node_const(&s->t, n->b, &c) && c >= 0 && c < 31) {
        of_node(s, n->a, out, depth);
        poly_const(&b, (int64_t)1 << c);
        poly_mul(out, &b);
        poly_free(&b);
    } else {
        opaque_atom(s, n, out);
    }
    if (out->bad) {
        poly_free(out);
        opaque_atom(s, n, out);
    }
}

// Locals that are not followed at present.
static _Thread_local const char *kept[2];

void cu_keep(const char *a, const char *b)
{
    kept[0] = a;
    kept[1] = b;
}

static bool is_kept(const char *name)
{
    return (kept[0] && str_eq(name, kept[0])) || (kept[1] && str_eq(name, kept[1]));
}

static void of_name(const struct rule_source *s, const struct node *n, struct poly *out, int depth)
{
    const struct node *v = ast_macro(&s->t, n->name) || is_kept(n->name) ? NULL : cu_value(s, n->name);
    const struct var_info *info = analysis_var(&s->a, n->name);
    if (v && depth < 16 && wide_int(info->type))
        of_node(s, v, out, depth + 1);
    else
        poly_atom(out, ast_strn(tree(s), n->name, strlen(n->name)));
}

void cu_poly(const struct rule_source *s, const struct node *n, struct poly *out)
{
    of_node(s, n, out, 0);
}

// ---- accesses

static bool of_pointer(const struct rule_source *s, const struct node *n, const char **base, struct poly *sub,
                       int depth)
{
    struct poly b;
    if (depth > 8)
        return false;
    if (n->kind == N_BINARY && (n->op == OP_ADD || n->op == OP_SUB)) {
        if (!of_pointer(s, n->a, base, sub, depth + 1))
            return false;
        of_node(s, n->b, &b, 0);
        poly_add(sub, &b, n->op == OP_SUB ? -1 : 1);
        poly_free(&b);
        return !sub->bad;
    }
    if (n->kind == N_UNARY && n->op == OP_AND && n->a->kind == N_INDEX)
        return cu_access(s, n->a, base, sub);
    if (n->kind != N_IDENT)
        return false;
    const struct var_info *v = analysis_var(&s->a, n->name);
    if (!v || !v->type || v->shadowed || v->address_taken || v->type->ptr_to_array)
        return false;
    if (v->type->ptr + v->type->rank != 1 || (v->type->ptr && set_again(s, n->name, v->decl)))
        return false;
    if (v->param || v->type->rank) {
        *base = v->name;
        *sub = (struct poly){0};
        return true;
    }
    // A pointer set once: "const float *row = x + t * n;". Nothing but sums of pointers is followed.
    return v->decl && v->decl->a && of_pointer(s, v->decl->a, base, sub, depth + 1);
}

bool cu_access(const struct rule_source *s, const struct node *n, const char **base, struct poly *sub)
{
    struct poly b;
    *sub = (struct poly){0};
    if (n->kind == N_UNARY && n->op == OP_MUL)
        return of_pointer(s, n->a, base, sub, 0);
    if (n->kind != N_INDEX || !of_pointer(s, n->a, base, sub, 0))
        return false;
    of_node(s, n->b, &b, 0);
    poly_add(sub, &b, 1);
    poly_free(&b);
    return !sub->bad;
}

const char *cu_root(const struct rule_source *s, const char *name)
{
    for (int depth = 0; depth < 8; depth++) {
        const struct var_info *v = analysis_var(&s->a, name);
        if (!v || !v->type || v->shadowed || (!v->type->ptr && !v->type->rank))
            return NULL;
        if (v->param || v->type->rank)
            return v->name;
        const struct node *n = v->decl ? v->decl->a : NULL;
        while (n && n->kind != N_IDENT)
            n = n->kind == N_BINARY || n->kind == N_INDEX || n->kind == N_UNARY || n->kind == N_CAST ? n->a
                                                                                                     : NULL;
        if (!n)
            return NULL;
        name = n->name;
    }
    return NULL;
}

struct writes {
    const struct rule_source *s;
    const char *base;
    bool found;
};

// Pointers that leave the parser's sight: as arguments of calls that are not known, stored, cast.
static bool find_write(void *user, struct node *n)
{
    struct writes *w = user;
    const struct node *target =
        n->kind == N_ASSIGN                                                                    ? n->a
        : (n->kind == N_UNARY || n->kind == N_POSTFIX) && (n->op == OP_INC || n->op == OP_DEC) ? n->a
                                                                                               : NULL;
    const char *base;
    struct poly sub;
    if (target && target->kind != N_IDENT) {
        while (target->kind == N_MEMBER && target->op == OP_DOT)
            target = target->a;
        const struct node *root = target;
        while (root->kind == N_INDEX)
            root = root->a;
        const struct var_info *v = root->kind == N_IDENT ? analysis_var(&w->s->a, root->name) : NULL;
        if (v && v->type && v->type->rank && v->decl)
            w->found |= str_eq(v->name, w->base);
        else if (target->kind != N_IDENT) {
            w->found |= !cu_access(w->s, target, &base, &sub) || str_eq(base, w->base);
            poly_free(&sub);
        }
    }
    // Of an atomic operation only the place is written, not what its subscript and value read.
    if (n->kind == N_CALL && n->a->kind == N_IDENT && str_starts(n->a->name, "atomic") && n->kids &&
        n->kids->kind == N_UNARY && n->kids->op == OP_AND) {
        const struct node *root = n->kids->a;
        while (root->kind == N_INDEX)
            root = root->a;
        const char *name = root->kind == N_IDENT ? cu_root(w->s, root->name) : NULL;
        w->found |= !name || str_eq(name, w->base);
    } else if (n->kind == N_CALL && !(n->a->kind == N_IDENT && cu_pure_call(w->s, n->a->name))) {
        w->found |= node_uses(n, w->base);
    }
    w->found |= n->kind == N_OPAQUE;
    return !w->found;
}

bool cu_written(const struct rule_source *s, const char *base)
{
    struct writes w = {s, base, false};
    node_walk(s->t.root, find_write, &w);
    return w.found;
}

const char *cu_elem(const struct rule_source *s, const char *base)
{
    const struct var_info *v = analysis_var(&s->a, base);
    const char *type = v && v->type && v->type->ptr + v->type->rank == 1 ? v->type->base : NULL;
    // The parser keeps "__shared__" with the type.
    return type && str_starts(type, "__shared__ ") ? type + strlen("__shared__ ") : type;
}

int cu_elem_size(const char *type)
{
    static const struct {
        const char *name;
        int size;
    } sizes[] = {{"float", 4},          {"double", 8},        {"int", 4},
                 {"unsigned int", 4},   {"unsigned", 4},      {"__half", 2},
                 {"half", 2},           {"__nv_bfloat16", 2}, {"nv_bfloat16", 2},
                 {"unsigned char", 1},  {"signed char", 1},   {"char", 1},
                 {"uint8_t", 1},        {"int8_t", 1},        {"short", 2},
                 {"unsigned short", 2}, {"short int", 2},     {"int32_t", 4},
                 {"uint32_t", 4},       {"int64_t", 8},       {"unsigned short int", 2},
                 {"long long", 8},      {"long long int", 8}};
    for (size_t i = 0; type && i < countof(sizes); i++)
        if (str_eq(type, sizes[i].name))
            return sizes[i].size;
    return 0;
}

bool cu_pure_call(const struct rule_source *s, const char *name)
{
    static const char *const known[] = {"__expf",
                                        "__logf",
                                        "__sinf",
                                        "__cosf",
                                        "__fdividef",
                                        "__frcp_rn",
                                        "__fsqrt_rn",
                                        "rsqrtf",
                                        "rsqrt",
                                        "max",
                                        "min",
                                        "fminf",
                                        "fmaxf",
                                        "__float2bfloat16",
                                        "__bfloat162float",
                                        "__float2half",
                                        "__half2float",
                                        "__float2bfloat16_rn",
                                        "__float2half_rn",
                                        "__ldg",
                                        "float",
                                        "int",
                                        "isnan",
                                        "isinf",
                                        "erff",
                                        "tanhf",
                                        "normcdff",
                                        "__fmaf_rn",
                                        "__hadd",
                                        "__hmul",
                                        "__hfma",
                                        "powf",
                                        "copysignf",
                                        "abs",
                                        "__popc",
                                        "__clz"};
    for (size_t i = 0; i < countof(known); i++)
        if (str_eq(name, known[i]))
            return true;
    return call_is_pure(&s->a, name);
}

const struct task_arg *cu_task_arg(const struct rule_source *s, const char *name)
{
    for (size_t i = 0; s->task && i < s->task->args.n;
         i++) // in parameter order, whatever the kernel calls them
        if (i < s->f.params.n && str_eq(s->f.params.v[i].name, name))
            return &s->task->args.v[i];
    return NULL;
}

static bool find_barrier(void *user, struct node *n)
{
    static const char *const parts[] = {"sync",  "__shfl",   "__ballot", "__any",
                                        "__all", "__reduce", "__match"};
    bool *found = user;
    for (size_t i = 0; n->kind == N_CALL && n->a->kind == N_IDENT && i < countof(parts); i++)
        *found |= strstr(n->a->name, parts[i]) != NULL;
    *found |= n->kind == N_OPAQUE;
    return !*found;
}

bool cu_barrier(const struct node *n)
{
    bool found = false;
    node_walk((struct node *)(uintptr_t)n, find_barrier, &found);
    return found;
}

// ---- loops

static bool step_of(const struct cu_loop *l, const struct node *inc, const struct node **step)
{
    *step = NULL;
    if ((inc->kind == N_UNARY || inc->kind == N_POSTFIX) && inc->op == OP_INC)
        return inc->a->kind == N_IDENT && str_eq(inc->a->name, l->var);
    if (inc->kind != N_ASSIGN || inc->a->kind != N_IDENT || !str_eq(inc->a->name, l->var))
        return false;
    if (inc->op == OP_ADD_ASSIGN) {
        *step = inc->b;
        return true;
    }
    const struct node *sum =
        inc->op == OP_ASSIGN && inc->b->kind == N_BINARY && inc->b->op == OP_ADD ? inc->b : NULL;
    if (!sum)
        return false;
    bool left = sum->a->kind == N_IDENT && str_eq(sum->a->name, l->var);
    *step = left ? sum->b : sum->a;
    return left || (sum->b->kind == N_IDENT && str_eq(sum->b->name, l->var));
}

struct changes {
    const struct rule_source *s;
    const struct node *body;
    bool found;
};

static bool changes_in(void *user, struct node *n)
{
    struct changes *c = user;
    if (n->kind == N_IDENT)
        c->found |= scalar_written(&c->s->a, n->name, c->body);
    c->found |= n->kind == N_CALL || n->kind == N_INDEX || n->kind == N_ASSIGN || n->kind == N_OPAQUE;
    return n->kind != N_MEMBER && !c->found;
}

static bool fixed_in(const struct rule_source *s, const struct node *n, const struct node *body)
{
    struct changes c = {s, body, false};
    node_walk((struct node *)(uintptr_t)n, changes_in, &c);
    return !c.found;
}

bool cu_loop_read(const struct rule_source *s, const struct node *stmt, struct cu_loop *l)
{
    *l = (struct cu_loop){.stmt = stmt, .body = stmt->d};
    if (stmt->kind != N_FOR || !stmt->a || !stmt->b || !stmt->c || !stmt->d ||
        node_contains(stmt->d, N_OPAQUE))
        return false;
    const struct node *v = stmt->a->kind == N_DECL ? stmt->a->kids : NULL;
    if (!v || v->next || !v->a || !wide_int(v->type))
        return false;
    l->var = v->name;
    l->type = v->type->base;
    l->lo = v->a;
    const struct node *cond = stmt->b;
    if (cond->kind != N_BINARY || cond->op != OP_LT || cond->a->kind != N_IDENT ||
        !str_eq(cond->a->name, l->var))
        return false;
    l->hi = cond->b;
    if (!step_of(l, stmt->c, &l->step) || scalar_written(&s->a, l->var, stmt->d) ||
        !fixed_in(s, l->hi, stmt->d) || node_uses(l->hi, l->var) || !fixed_in(s, l->lo, stmt->d) ||
        (l->step && !fixed_in(s, l->step, stmt->d)))
        return false;
    cu_poly(s, l->lo, &l->lo_p);
    if (l->step)
        cu_poly(s, l->step, &l->step_p);
    else
        poly_const(&l->step_p, 1);
    return true;
}

void cu_loop_free(struct cu_loop *l)
{
    poly_free(&l->lo_p);
    poly_free(&l->step_p);
}

// a + b * c as a polynomial of atoms; b NULL: only a.
static bool is_sum(const struct poly *p, const char *a, const char *b, const char *c)
{
    struct poly want, x, y;
    poly_atom(&want, a);
    if (b) {
        poly_atom(&x, b);
        poly_atom(&y, c);
        poly_mul(&x, &y);
        poly_add(&want, &x, 1);
        poly_free(&x);
        poly_free(&y);
    }
    bool same = poly_equal(p, &want);
    poly_free(&want);
    return same;
}

static bool is_product(const struct poly *p, const char *a, const char *b)
{
    struct poly want, x;
    poly_atom(&want, a);
    poly_atom(&x, b);
    poly_mul(&want, &x);
    bool same = poly_equal(p, &want);
    poly_free(&want);
    poly_free(&x);
    return same;
}

// The polynomial with the block's size, however it is written, as blockDim.
static void with_dim(const struct rule_source *s, const struct poly *p, const struct cu_launch *l, int d,
                     struct poly *out)
{
    static const char *const dims[] = {"blockDim.x", "blockDim.y", "blockDim.z"};
    struct poly dim;
    poly_atom(&dim, dims[d]);
    poly_copy(out, p);
    int64_t c, size = l ? cu_block_size(s, l, d) : 0;
    if (l && d < l->nblock && (isalpha((unsigned char)l->block[d][0]) || l->block[d][0] == '_'))
        poly_subst(out, ast_strn(tree(s), l->block[d], strlen(l->block[d])), &dim);
    else if (size > 1) {
        if (poly_is_const(out, &c) && c == size) {
            poly_free(out);
            poly_copy(out, &dim);
        }
        // A term blockIdx * 256 becomes blockIdx * blockDim.
        struct poly more = {0};
        for (size_t i = 0; i < out->t.n; i++) {
            struct poly_term *t = &out->t.v[i];
            if (t->coef == size && t->n == 1 &&
                (str_starts(t->atom[0], "blockIdx") || str_starts(t->atom[0], "gridDim"))) {
                struct poly x;
                poly_atom(&x, t->atom[0]);
                poly_mul(&x, &dim);
                poly_add(&more, &x, 1);
                poly_free(&x);
                poly_atom(&x, t->atom[0]);
                poly_add(&more, &x, -size);
                poly_free(&x);
            }
        }
        poly_add(out, &more, 1);
        poly_free(&more);
    }
    poly_free(&dim);
}

bool cu_is_global_id(const struct rule_source *s, const struct poly *p, const struct cu_launch *l, int d)
{
    static const char *const names[3][3] = {{"threadIdx.x", "blockIdx.x", "blockDim.x"},
                                            {"threadIdx.y", "blockIdx.y", "blockDim.y"},
                                            {"threadIdx.z", "blockIdx.z", "blockDim.z"}};
    struct poly q;
    with_dim(s, p, l, d, &q);
    bool same = is_sum(&q, names[d][0], names[d][1], names[d][2]);
    poly_free(&q);
    return same;
}

bool cu_is_block(const struct rule_source *s, const struct node *n, const struct cu_launch *l)
{
    struct poly p, q;
    cu_poly(s, n, &p);
    with_dim(s, &p, l, 0, &q);
    bool is = is_sum(&q, "blockDim.x", NULL, NULL);
    poly_free(&p);
    poly_free(&q);
    return is;
}

enum cu_split cu_loop_split(const struct rule_source *s, const struct cu_loop *l, const struct cu_launch *at)
{
    struct poly step;
    int64_t c;
    enum cu_split is = CU_NONE;
    with_dim(s, &l->step_p, at, 0, &step);
    bool threads = is_sum(&step, "blockDim.x", NULL, NULL);
    if (threads && is_sum(&l->lo_p, "threadIdx.x", NULL, NULL))
        is = CU_THREADS;
    else if (is_product(&step, "blockDim.x", "gridDim.x") && cu_is_global_id(s, &l->lo_p, at, 0))
        is = CU_GRID;
    else if (((poly_is_const(&l->step_p, &c) && c == 32) || is_sum(&step, "warpSize", NULL, NULL)) &&
             (is_sum(&l->lo_p, "threadIdx.x % 32", NULL, NULL) ||
              is_sum(&l->lo_p, "threadIdx.x & 31", NULL, NULL) ||
              is_sum(&l->lo_p, "threadIdx.x % warpSize", NULL, NULL)))
        is = CU_LANES;
    poly_free(&step);
    return is;
}
