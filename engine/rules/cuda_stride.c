// Rule stride: "if (i < n)" around a body, i being the thread's place in the grid, becomes a loop over the
// grid, so that a thread may do several elements: how many is a knob, and the launch's grid is divided by it.
// The loop is right for any grid.
#include "rules/cuda.h"

static bool leaves_early(const struct node *first)
{
    for (; first; first = first->next)
        if (node_contains(first, N_RETURN) || node_contains(first, N_GOTO))
            return true;
    return false;
}

static bool find(const struct rule_source *s, struct cu_guard *g, char why[240])
{
    *g = (struct cu_guard){0};
    if (cu_launch_read(s, &g->l, why) < 0)
        return false;
    if (!cu_launch_flat(&g->l)) {
        snprintf(why, 240, "the launch has more than one dimension");
        return false;
    }
    if (!cu_guard_find(s, g, why))
        return false;
    const struct node *body = g->leaves ? g->test->next : g->test->b;
    if (g->test->c || (!g->leaves && g->test->next))
        snprintf(why, 240, "the body is not all that follows the test");
    else if (!body || cu_barrier(s->t.root))
        snprintf(why, 240, "threads wait for each other");
    else if (leaves_early(body))
        snprintf(why, 240, "the body leaves early");
    else if (scalar_written(&s->a, g->var, s->t.root) && !cu_value(s, g->var))
        snprintf(why, 240, "%s changes in the body", g->var);
    else
        return true;
    return false;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    struct cu_guard g;
    char why[240];
    bool ok = find(s, &g, why);
    if (ok)
        cu_site(s, out, true, NULL, "a loop over %s: several elements a thread", g.var);
    else
        cu_site(s, out, false, NULL, "%s", why);
    cu_launch_free(&g.l);
}

// The statements from first to the end of the body, as written.
static void rest_of_body(const struct rule_source *s, const struct node *first, struct str *out)
{
    for (const struct node *n = first; n; n = n->next) {
        parts_swap(s, n, NULL, out);
        str_addc(out, '\n');
    }
}

static void write_loop(const struct rule_source *s, const struct cu_guard *g, struct str *out)
{
    struct str code = {0}, body = {0}, head = {0};
    struct node *v = g->decl->kids;
    str_addf(&head, "for (%s %s = ", v->type->base, g->var);
    node_text(&s->t, v->a, &head);
    str_addf(&head, "; %s < ", g->var);
    node_text(&s->t, g->bound, &head);
    str_addf(&head, "; %s += blockDim.x * gridDim.x) ", g->var);
    if (g->leaves)
        rest_of_body(s, g->test->next, &body);
    else
        parts_body(s, g->test->b, NULL, &body);
    parts_braces(&code, str_c(&head), str_c(&body));
    const struct node *last = g->test;
    while (last->next)
        last = last->next;
    struct str between = {0}, all = {0};
    // What stands between the declaration and the test stays before the loop.
    for (const struct node *n = g->decl->next; n != g->test; n = n->next) {
        parts_swap(s, n, NULL, &between);
        str_addc(&between, '\n');
    }
    str_addf(&all, "%s%s", str_c(&between), str_c(&code));
    parts_replace_two(s, g->decl, last, str_c(&all), out);
    str_free(&between);
    str_free(&all);
    str_free(&code);
    str_free(&body);
    str_free(&head);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    struct cu_guard g;
    char why[240];
    (void)where;
    (void)params;
    if (!find(s, &g, why)) {
        cu_launch_free(&g.l);
        return err_set(e, ERR_FAIL, "", "stride: %s", why);
    }
    // A name between the declaration and the loop that is made of i would be out of its reach.
    for (const struct node *n = g.decl->next; n != g.test; n = n->next)
        if (node_uses(n, g.var)) {
            cu_launch_free(&g.l);
            return err_set(e, ERR_FAIL, "", "stride: %s is used before the test", g.var);
        }
    struct str text = {0};
    static const char *const items[] = {"1", "2", "4", "8", "16", "32", NULL};
    char *name = rewrite_name(s, "ITEMS");
    write_loop(s, &g, &text);
    char *grid = xasprintf("ceildiv(%s, %s)", g.l.grid[0], name);
    free(g.l.grid[0]);
    g.l.grid[0] = grid;
    int r = cu_launch_put(s, &text, &g.l, e);
    if (r == 0)
        r = rewrite_add_knob(s, &text, name, "4", items, e);
    if (r == 0)
        str_addn(out, text.s, text.len);
    str_free(&text);
    free(name);
    cu_launch_free(&g.l);
    return r;
}

const struct rule rule_cuda_stride = {
    .name = "stride",
    .help = "a guarded element a thread becomes a loop over the grid, so that a thread does several",
    .risk = RISK_WORK,
    .cuda = true,
    .sites = sites,
    .apply = apply,
};
