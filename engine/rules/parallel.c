// Rule parallel: an outermost loop whose iterations are independent runs on several threads (omp parallel
// for), sums and maxima of scalars included; only where the task allows threads. How iterations are shared
// out is a choice.
#include "rules/parts.h"

#include "base/task.h"

// Is the variable declared inside the loop, so that each thread has its own?
static bool declared_in(const struct var_info *v, const struct loop *l)
{
    for (const struct node *n = v ? v->decl : NULL; n; n = n->up)
        if (n == l->stmt)
            return true;
    return false;
}

static bool is_reduction(const reductions *reds, const char *name)
{
    for (size_t i = 0; i < reds->n; i++)
        if (reds->v[i].var && str_eq(reds->v[i].var, name))
            return true;
    return false;
}

// A scalar from outside that the loop writes is one for all threads, unless it is a reduction.
static bool scalars_ok(const struct rule_source *s, const struct loop *l, const reductions *reds,
                       char why[240])
{
    for (size_t i = 0; i < s->a.scalars.n; i++) {
        const struct scalar_use *u = &s->a.scalars.v[i];
        bool inside = u->node->first >= l->stmt->first && u->node->end <= l->stmt->end;
        if (!inside || !(u->kind & ACC_WRITE) || str_eq(u->name, l->var) || is_reduction(reds, u->name))
            continue;
        if (!declared_in(analysis_var(&s->a, u->name), l)) {
            snprintf(why, 240, "%s is declared before the loop, so threads would share it", u->name);
            return false;
        }
    }
    // An array from outside that each iteration fills for itself would be shared too: loop_independent()
    // says no to it.
    return true;
}

static bool fits(const struct rule_source *s, const struct loop *l, struct str *clauses, char why[240])
{
    reductions reds = {0};
    if (!s->threads) {
        snprintf(why, 240, "the task does not allow threads ([build] allow = threads)");
        return false;
    }
    if (s->f.is_global || l->outer || !parts_header_ok(s, l, why)) {
        if (s->f.is_global || l->outer)
            snprintf(why, 240, "%s", l->outer ? "there is a loop around it" : "a GPU has its own threads");
        return false;
    }
    if (!l->declared_inside) {
        snprintf(why, 240, "%s is declared before the loop", l->var);
        return false;
    }
    struct answer a = loop_independent(&s->a, l, &reds);
    bool ok = a.v == TRI_YES;
    if (!ok)
        snprintf(why, 240, "%s", a.why);
    ok = ok && scalars_ok(s, l, &reds, why) && parts_reductions(s, &reds, clauses, why);
    vec_free(&reds);
    return ok;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        const struct loop *l = s->a.loops.v[i];
        struct str clauses = {0};
        char why[240];
        if (l->outer)
            continue;
        bool ok = fits(s, l, &clauses, why);
        json *params = ok ? parts_choice("schedule", (const char *const[]){"static", "dynamic", "guided",
                                                                           "dynamic, 16", NULL})
                          : NULL;
        if (ok)
            snprintf(why, sizeof why, "iterations of %s on %d threads%s", l->var, s->task->threads,
                     str_c(&clauses));
        rewrite_site(s, out, l->stmt, ok, params, "%s", why);
        str_free(&clauses);
    }
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    const struct loop *l = parts_loop(s, "parallel", where, e);
    struct str clauses = {0};
    char why[240];
    if (!l)
        return -1;
    int r = fits(s, l, &clauses, why) ? 0 : err_set(e, ERR_FAIL, "", "parallel: %s", why);
    if (r == 0) {
        char *line =
            xasprintf("#pragma omp parallel for schedule(%s) num_threads(%d)%s",
                      rewrite_param(params, "schedule", "static"), s->task->threads, str_c(&clauses));
        rewrite_before(s, l->stmt, line, out);
        free(line);
        r = rewrite_need_flag(s, out, "-fopenmp", e);
    }
    str_free(&clauses);
    return r;
}

const struct rule rule_parallel = {
    .name = "parallel",
    .help = "run an outermost loop on several threads (where the task allows threads)",
    .risk = RISK_ROUND,
    .promise = 4,
    .sites = sites,
    .apply = apply,
};
