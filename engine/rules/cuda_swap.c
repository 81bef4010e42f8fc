// Rule swap: exchanges the x and y of threads and blocks everywhere in the kernel and in its launch. The same
// work is done by other threads, so it is always right; it is offered where neighbouring threads in x are far
// apart in memory and neighbours in y are not.
#include "rules/cuda.h"

#include "base/task.h"

static bool is_builtin(const struct rule_source *s, size_t i)
{
    static const char *const words[] = {"threadIdx", "blockIdx", "blockDim", "gridDim"};
    for (size_t k = 0; k < countof(words); k++)
        if (token_is(&s->ts, i, words[k]))
            return token_op(&s->ts, i + 1, OP_DOT);
    return false;
}

// Does the access step by one element from a thread to the next in x (or y)?
static bool steps_by_one(const struct poly *sub, const char *atom)
{
    struct poly stride = {0}, rest = {0};
    int64_t c;
    bool one = poly_split(sub, atom, &stride, &rest) && poly_is_const(&stride, &c) && c == 1;
    poly_free(&stride);
    poly_free(&rest);
    return one;
}

static bool worth_it(const struct rule_source *s, int *better, int *worse)
{
    *better = *worse = 0;
    for (size_t i = 0; i < s->a.accesses.n; i++) {
        const char *base;
        struct poly sub = {0};
        if (cu_access(s, s->a.accesses.v[i].node, &base, &sub)) {
            const struct var_info *v = analysis_var(&s->a, base);
            bool x = steps_by_one(&sub, "threadIdx.x"), y = steps_by_one(&sub, "threadIdx.y");
            *better += v && v->param && y && !x;
            *worse += v && v->param && x && !y;
        }
        poly_free(&sub);
    }
    return *better > *worse;
}

static bool find(const struct rule_source *s, struct cu_launch *l, int *better, char why[240])
{
    int worse;
    if (cu_launch_read(s, l, why) < 0)
        return false;
    if (l->nblock < 2 && l->ngrid < 2)
        snprintf(why, 240, "the launch has one dimension");
    else if (s->a.has_asm_or_opaque)
        snprintf(why, 240, "there is code that is not understood");
    else if (!worth_it(s, better, &worse))
        snprintf(why, 240, "neighbours in x are next to each other at %d places, in y at %d", worse, *better);
    else
        return true;
    return false;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    struct cu_launch l;
    char why[240];
    int better = 0;
    if (find(s, &l, &better, why))
        cu_site(s, out, true, NULL, "x and y exchanged: neighbours next to each other at %d places", better);
    else
        cu_site(s, out, false, NULL, "%s", why);
    cu_launch_free(&l);
}

static void exchange(char **v, int *n)
{
    if (*n < 2) {
        v[1] = v[0];
        v[0] = xstrdup("1");
        *n = 2;
        return;
    }
    char *x = v[0];
    v[0] = v[1];
    v[1] = x;
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    struct cu_launch l;
    char why[240];
    int better;
    (void)where;
    (void)params;
    if (!find(s, &l, &better, why)) {
        cu_launch_free(&l);
        return err_set(e, ERR_FAIL, "", "swap: %s", why);
    }
    struct str text = {0};
    str_addn(&text, s->text, s->len);
    for (size_t i = s->f.close; i-- > s->f.open;)
        if (is_builtin(s, i) && i + 2 < s->f.close) {
            const struct token *t = &s->ts.t.v[i + 2];
            if (t->len == 1 && (s->text[t->at] == 'x' || s->text[t->at] == 'y'))
                text.s[t->at] = s->text[t->at] == 'x' ? 'y' : 'x';
        }
    exchange(l.grid, &l.ngrid);
    exchange(l.block, &l.nblock);
    int r = cu_launch_put(s, &text, &l, e);
    if (r == 0)
        str_addn(out, text.s, text.len);
    str_free(&text);
    cu_launch_free(&l);
    return r;
}

const struct rule rule_cuda_swap = {
    .name = "swap",
    .help = "exchange x and y of threads and blocks, so that neighbours read next to each other",
    .risk = RISK_WORK,
    .cuda = true,
    .sites = sites,
    .apply = apply,
};
