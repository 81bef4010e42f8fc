// Rule counters: counters that all threads of the grid add to in global memory are first gathered in the
// shared memory of each block, and added to the global ones once at the end. The number of counters is the
// array's size in the task, which must be a number.
#include "rules/cuda.h"

#include "base/task.h"

struct counters {
    struct cu_launch l;
    struct {
        const struct node *call, *index; // and the subscript of its place
    } adds[8];
    int nadds;
    const char *base, *type;
    int64_t n;
};

struct search {
    const struct rule_source *s;
    struct counters *c;
    int adds, others;
};

// atomicAdd(&h[x], v) or atomicAdd(h + x, v)
static bool find_add(void *user, struct node *n)
{
    struct search *f = user;
    if (n->kind != N_CALL || n->a->kind != N_IDENT || !str_starts(n->a->name, "atomic"))
        return true;
    const struct node *place = n->kids;
    const struct node *root = NULL, *index = NULL;
    if (place && place->kind == N_UNARY && place->op == OP_AND && place->a->kind == N_INDEX) {
        root = place->a->a;
        index = place->a->b;
    } else if (place && place->kind == N_BINARY && place->op == OP_ADD) {
        root = place->a;
        index = place->b;
    }
    const struct var_info *v = root && root->kind == N_IDENT ? analysis_var(&f->s->a, root->name) : NULL;
    bool ok = str_eq(n->a->name, "atomicAdd") && v && v->param && n->up->kind == N_EXPR && f->adds < 8 &&
              (!f->c->base || str_eq(f->c->base, v->name));
    if (!ok)
        f->others++;
    else {
        f->c->adds[f->adds].call = n;
        f->c->adds[f->adds].index = index;
        f->c->nadds = ++f->adds;
        f->c->base = v->name;
        f->c->type = cu_elem(f->s, v->name);
    }
    return true;
}

static bool uses_elsewhere(const struct rule_source *s, const struct counters *c)
{
    int uses = 0;
    for (uint32_t i = s->f.open; i < s->f.close; i++)
        uses += token_is(&s->ts, i, c->base);
    return uses != c->nadds;
}

static bool leaves(const struct node *n)
{
    return node_contains(n, N_RETURN) || node_contains(n, N_GOTO);
}

static bool find(const struct rule_source *s, struct counters *c, char why[240])
{
    struct search f = {s, c, 0, 0};
    *c = (struct counters){0};
    node_walk(s->t.root, find_add, &f);
    const struct task_arg *arg = f.adds ? cu_task_arg(s, c->base) : NULL;
    struct err e = {0};
    snprintf(why, 240, "no atomic sums");
    if (!f.adds && !f.others)
        return false;
    if (f.others)
        snprintf(why, 240, "atomic operations other than sums into one array");
    else if (!c->type || (!str_eq(c->type, "int") && !str_eq(c->type, "unsigned int")))
        snprintf(why, 240, "sums of %.40s depend on their order", c->type ? c->type : "an unknown type");
    else if (!arg || arg->rank != 1 || expr_eval(arg->shape[0], NULL, NULL, &c->n, &e) < 0)
        snprintf(why, 240, "how many counters %.40s has is not a number in the task", c->base);
    else if (c->n * 4 > 48 << 10)
        snprintf(why, 240, "%lld counters are more than shared memory takes", (long long)c->n);
    else if (uses_elsewhere(s, c))
        snprintf(why, 240, "%.40s is used in other ways too", c->base);
    else if (leaves(s->t.root) || cu_barrier(s->t.root))
        snprintf(why, 240, "threads leave early or wait for each other");
    else if (cu_launch_read(s, &c->l, why) == 0 && cu_launch_flat(&c->l))
        return true;
    else if (c->l.args)
        snprintf(why, 240, "the launch has more than one dimension");
    return false;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    struct counters c;
    char why[240];
    if (find(s, &c, why))
        cu_site(s, out, true, NULL, "%lld counters of %s in shared memory first", (long long)c.n, c.base);
    else if (c.nadds)
        cu_site(s, out, false, NULL, "%s", why);
    cu_launch_free(&c.l);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    struct counters c;
    char why[240];
    (void)where;
    (void)params;
    if (!find(s, &c, why)) {
        cu_launch_free(&c.l);
        return err_set(e, ERR_FAIL, "", "counters: %s", why);
    }
    char *own = parts_name(s, c.base, "_block"), *b = rewrite_name(s, "b");
    struct str code = {0}, end = {0}, text = {0};
    size_t at, len;
    str_addn(&text, s->text, s->len);
    // The end first: places before it hold.
    str_addf(&end,
             "    __syncthreads();\n    for (int %s = threadIdx.x; %s < %lld; %s += blockDim.x)\n        if "
             "(%s[%s] != 0)\n"
             "            atomicAdd(&%s[%s], %s[%s]);\n",
             b, b, (long long)c.n, b, own, b, c.base, b, own, b);
    str_splice(&text, s->ts.t.v[s->f.close].at, 0, end.s, end.len);
    for (int k = c.nadds; k-- > 0;) {
        struct str place = {0};
        node_bytes(&s->t, c.adds[k].call->kids, &at, &len);
        str_addf(&place, "&%s[", own);
        node_text(&s->t, c.adds[k].index, &place);
        str_addc(&place, ']');
        str_splice(&text, at, len, place.s, place.len);
        str_free(&place);
    }
    str_addf(&code,
             "__shared__ %s %s[%lld];\nfor (int %s = threadIdx.x; %s < %lld; %s += blockDim.x)\n    %s[%s] = "
             "0;\n__syncthreads();\n",
             c.type, own, (long long)c.n, b, b, (long long)c.n, b, own, b);
    int r = rewrite_at_start(s, &text, str_c(&code), e);
    if (r == 0)
        str_addn(out, text.s, text.len);
    str_free(&code);
    str_free(&end);
    str_free(&text);
    free(own);
    free(b);
    cu_launch_free(&c.l);
    return r;
}

const struct rule rule_cuda_counters = {
    .name = "counters",
    .help = "counters that all blocks add to are gathered in each block's shared memory first",
    .risk = RISK_SHAPE,
    .cuda = true,
    .sites = sites,
    .apply = apply,
};
