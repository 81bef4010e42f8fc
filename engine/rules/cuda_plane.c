// Kernels that do one element of a plane a thread: i and j are the thread's places in x and y, a test keeps
// both below their bounds, and what follows is done once for each (i, j).
#include "rules/cuda.h"

static bool is_name(const struct node *n, const char *name)
{
    return n && n->kind == N_IDENT && str_eq(n->name, name);
}

static struct cu_axis *axis_of(struct cu_plane *p, const struct node *n)
{
    for (int d = 0; d < 2; d++)
        if (p->axis[d].var && is_name(n, p->axis[d].var))
            return &p->axis[d];
    return NULL;
}

// One comparison, or several joined by && (with `not` by ||); every one must be a bound of i or j.
static bool bounds(struct cu_plane *p, const struct node *c, bool not )
{
    if (c->kind == N_UNARY && c->op == OP_NOT)
        return bounds(p, c->a, !not );
    if (c->kind != N_BINARY)
        return false;
    if (c->op == (not ? OP_LOR : OP_LAND))
        return bounds(p, c->a, not ) && bounds(p, c->b, not );
    struct cu_axis *left = axis_of(p, c->a), *right = axis_of(p, c->b);
    if (left && c->op == (not ? OP_GE : OP_LT) && !left->bound)
        left->bound = c->b;
    else if (right && c->op == (not ? OP_LE : OP_GT) && !right->bound)
        right->bound = c->a;
    else
        return false;
    return true;
}

static bool only_return(const struct node *n)
{
    if (n->kind == N_BLOCK)
        return n->kids && !n->kids->next && only_return(n->kids);
    return n->kind == N_RETURN && !n->a;
}

static bool place(const struct rule_source *s, struct cu_plane *p, const struct node *decl)
{
    bool any = false;
    for (const struct node *v = decl->kids; v; v = v->next)
        for (int d = 0; v->a && !v->type->ptr && d < 2; d++) {
            struct poly q;
            cu_poly(s, v->a, &q);
            if (cu_is_global_id(s, &q, &p->l, d) && !p->axis[d].var && cu_value(s, v->name)) {
                p->axis[d] = (struct cu_axis){v->name, v->type->base, NULL};
                any = true;
            }
            poly_free(&q);
        }
    return any;
}

// The statements of a block that is the whole rest, with the tests in it taken off.
static const struct node *inside(struct cu_plane *p, const struct node *n)
{
    while (n) {
        if (n->kind == N_IF && !n->c && only_return(n->b) && bounds(p, n->a, true))
            n = n->next;
        else if (n->kind == N_IF && !n->c && !n->next && bounds(p, n->a, false))
            n = parts_first(n->b);
        else
            return n;
    }
    return NULL;
}

bool cu_plane_find(const struct rule_source *s, struct cu_plane *p, char why[240])
{
    *p = (struct cu_plane){0};
    if (cu_launch_read(s, &p->l, why) < 0)
        return false;
    const struct node *n = s->t.root->kids;
    p->from = NULL;
    for (; n && (n->kind == N_DECL || n->kind == N_PP || n->kind == N_EMPTY); n = n->next)
        if (n->kind == N_DECL && place(s, p, n) && !p->from)
            p->from = n;
    if (!p->axis[0].var || !p->axis[1].var) {
        snprintf(why, 240, "no two variables are the thread's places in x and y");
        return false;
    }
    p->body = inside(p, n);
    if (!p->body || !p->axis[0].bound || !p->axis[1].bound) {
        snprintf(why, 240, "no test keeps %.40s and %.40s below their bounds", p->axis[0].var,
                 p->axis[1].var);
        return false;
    }
    return true;
}

void cu_plane_free(struct cu_plane *p)
{
    cu_launch_free(&p->l);
}

void cu_plane_replace(const struct rule_source *s, const struct cu_plane *p, const char *code,
                      struct str *out)
{
    const struct node *last = p->from;
    while (last->next)
        last = last->next;
    parts_replace_two(s, p->from, last, code, out);
}

static bool of_threads(const struct poly *p)
{
    static const char *const names[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z", "blockIdx.x",
                                        "blockIdx.y",  "blockIdx.z",  "blockDim.x",  "blockDim.y"};
    for (size_t i = 0; i < countof(names); i++)
        if (poly_uses(p, names[i]))
            return true;
    return false;
}

bool cu_linear(const struct poly *sub, const char *var, struct poly *stride, struct poly *rest)
{
    if (!poly_split(sub, var, stride, rest))
        return false;
    if (!of_threads(stride) && !of_threads(rest))
        return true;
    poly_free(rest);
    poly_free(stride);
    return false;
}

bool cu_plane_access(const struct rule_source *s, const struct cu_plane *p, const struct node *n,
                     const char **base, struct poly *sub)
{
    cu_keep(p->axis[0].var, p->axis[1].var);
    bool ok = cu_access(s, n, base, sub);
    cu_keep(NULL, NULL);
    return ok;
}
