// Rule tile: a register tile of two nested loops whose iterations are independent. A block of TI x TJ
// iterations runs together: each scalar that an iteration declares becomes a small array, each statement is
// done for the whole block before the next one, and loops inside (over k) run once for the block instead of
// once for each iteration, so what they load is used TI or TJ times (matrix product: 2 to 3x over the best
// loop order). The original loops stay as the remainder. Nothing of the body is known here but its
// statements.
#include "rules/rewrite.h"

struct nest {
    const struct loop *i, *j;
    VEC(const char *) locals; // scalars declared directly in j's body: they become arrays
};

enum { LOCALS_MAX = 6, STATEMENTS_MAX = 24 };

static bool straight(const struct node *n)
{
    return n->kind == N_EXPR || n->kind == N_EMPTY;
}

// A statement of the block body: an expression, a scalar declaration, or a counted loop over such
// expressions.
static bool statement_ok(const struct rule_source *s, struct nest *x, const struct node *n, char why[240])
{
    if (straight(n))
        return true;
    if (n->kind == N_DECL) {
        for (const struct node *v = n->kids; v; v = v->next) {
            if (v->type->ptr || v->type->rank || v->type->is_static || x->locals.n >= LOCALS_MAX) {
                snprintf(why, 240, "it declares %s, which is no plain scalar", v->name);
                return false;
            }
            vec_push(&x->locals, v->name);
        }
        return true;
    }
    const struct loop *k = n->kind == N_FOR ? analysis_loop(&s->a, n) : NULL;
    if (!k || k->has_break) {
        snprintf(why, 240, "its body holds more than expressions, scalars and counted loops");
        return false;
    }
    if (poly_uses(&k->lo_p, x->i->var) || poly_uses(&k->hi_p, x->i->var) || poly_uses(&k->lo_p, x->j->var) ||
        poly_uses(&k->hi_p, x->j->var)) {
        snprintf(why, 240, "the bounds of %s depend on the tile", k->var);
        return false;
    }
    for (size_t i = 0; i < x->locals.n; i++)
        if (poly_uses(&k->hi_p, x->locals.v[i]) || poly_uses(&k->lo_p, x->locals.v[i])) {
            snprintf(why, 240, "the bounds of %s depend on %s", k->var, x->locals.v[i]);
            return false;
        }
    const struct node *body = k->body->kind == N_BLOCK ? k->body->kids : k->body;
    for (const struct node *b = body; b; b = k->body->kind == N_BLOCK ? b->next : NULL) {
        const struct loop *deeper = b->kind == N_FOR ? analysis_loop(&s->a, b) : NULL;
        if (!straight(b) && !(deeper && statement_ok(s, x, b, why))) {
            snprintf(why, 240, "the loop over %s holds more than expressions", k->var);
            return false;
        }
    }
    return true;
}

static bool loop_plain(const struct rule_source *s, const struct loop *l, char why[240])
{
    if (l->is_while || l->has_break || l->step != 1) {
        snprintf(why, 240, "the loop over %s is not a for loop with step 1", l->var);
        return false;
    }
    if (rewrite_has_pragma(s, l->stmt)) {
        snprintf(why, 240, "it has a pragma already");
        return false;
    }
    if (!l->declared_inside && scalar_live_out(&s->a, l->var, l->stmt).v != TRI_NO) {
        snprintf(why, 240, "%s is used after its loop", l->var);
        return false;
    }
    reductions reds = {0};
    struct answer a = loop_independent(&s->a, l, &reds);
    bool ok = a.v == TRI_YES && reds.n == 0;
    if (!ok)
        snprintf(why, 240, "%s", a.v == TRI_YES ? "its iterations add into one place" : a.why);
    vec_free(&reds);
    return ok;
}

static bool find_nest(const struct rule_source *s, const struct loop *i, struct nest *x, char why[240])
{
    struct loop *two[2];
    *x = (struct nest){.i = i};
    if (loop_nest(&s->a, (struct loop *)(uintptr_t)i, two, 2) < 2) {
        snprintf(why, 240, "there is not exactly one loop inside it");
        return false;
    }
    x->j = two[1];
    if (!loop_plain(s, x->i, why) || !loop_plain(s, x->j, why))
        return false;
    if (poly_uses(&x->j->lo_p, i->var) || poly_uses(&x->j->hi_p, i->var)) {
        snprintf(why, 240, "the bounds of %s depend on %s", x->j->var, i->var);
        return false;
    }
    int count = 0;
    const struct node *body = x->j->body;
    for (const struct node *n = body->kind == N_BLOCK ? body->kids : body; n;
         n = body->kind == N_BLOCK ? n->next : NULL)
        if (++count > STATEMENTS_MAX || !statement_ok(s, x, n, why)) {
            if (count > STATEMENTS_MAX)
                snprintf(why, 240, "its body is too long for a register tile");
            return false;
        }
    return true;
}

// Names that the rewrite introduces.
struct names {
    char *ti, *tj, *i0, *j0, *ii, *jj;
    char *arrays[LOCALS_MAX], *cells[LOCALS_MAX]; // acc_t and acc_t[ii][jj]
};

static void names_open(const struct rule_source *s, const struct nest *x, struct names *n)
{
    *n = (struct names){rewrite_name(s, "TI"), rewrite_name(s, "TJ"), NULL, NULL,
                        rewrite_name(s, "ii"), rewrite_name(s, "jj"), {0},  {0}};
    char *i0 = xasprintf("%s_0", x->i->var), *j0 = xasprintf("%s_0", x->j->var);
    n->i0 = rewrite_name(s, i0);
    n->j0 = rewrite_name(s, j0);
    free(i0);
    free(j0);
    for (size_t k = 0; k < x->locals.n; k++) {
        char *base = xasprintf("%s_t", x->locals.v[k]);
        n->arrays[k] = rewrite_name(s, base);
        n->cells[k] = xasprintf("%s[%s][%s]", n->arrays[k], n->ii, n->jj);
        free(base);
    }
}

static void names_close(struct names *n)
{
    char *all[] = {n->ti, n->tj, n->i0, n->j0, n->ii, n->jj};
    for (size_t k = 0; k < countof(all); k++)
        free(all[k]);
    for (size_t k = 0; k < LOCALS_MAX; k++) {
        free(n->arrays[k]);
        free(n->cells[k]);
    }
}

struct writer {
    const struct rule_source *s;
    const struct nest *x;
    const struct names *n;
    struct subst subst[LOCALS_MAX];
    struct str *out;
};

static const char *type_of(const struct loop *l)
{
    return l->type ? l->type->base : "long";
}

__attribute__((format(printf, 3, 4))) static void line(struct writer *w, int depth, const char *fmt, ...)
{
    for (int k = 0; k < depth; k++)
        str_add(w->out, "    ");
    va_list ap;
    va_start(ap, fmt);
    str_addv(w->out, fmt, ap);
    va_end(ap);
    str_addc(w->out, '\n');
}

// One statement for every cell of the tile. The inner loop is asked to be vector code, the outer to be
// unrolled.
static void write_cells(struct writer *w, int depth, const char *statement)
{
    const struct names *n = w->n;
    bool uses_i = strstr(statement, w->x->i->var) != NULL, uses_j = strstr(statement, w->x->j->var) != NULL;
    line(w, depth, "for (int %s = 0; %s < %s; %s++) {", n->ii, n->ii, n->ti, n->ii);
    if (uses_i)
        line(w, depth + 1, "const %s %s = %s + %s;", type_of(w->x->i), w->x->i->var, n->i0, n->ii);
    line(w, depth + 1, "#pragma omp simd");
    line(w, depth + 1, "for (int %s = 0; %s < %s; %s++) {", n->jj, n->jj, n->tj, n->jj);
    if (uses_j)
        line(w, depth + 2, "const %s %s = %s + %s;", type_of(w->x->j), w->x->j->var, n->j0, n->jj);
    line(w, depth + 2, "%s", statement);
    line(w, depth + 1, "}");
    line(w, depth, "}");
}

static void write_statement(struct writer *w, int depth, const struct node *n)
{
    struct str text = {0};
    size_t ns = w->x->locals.n;
    if (n->kind == N_EXPR) {
        ast_clone(&w->s->t, n, w->subst, ns, &text);
        write_cells(w, depth, str_c(&text));
    } else if (n->kind == N_DECL) {
        for (const struct node *v = n->kids; v; v = v->next) {
            size_t k = 0;
            while (!str_eq(w->x->locals.v[k], v->name))
                k++;
            line(w, depth, "%s %s[%s][%s];", v->type->base, w->n->arrays[k], w->n->ti, w->n->tj);
            if (!v->a)
                continue;
            str_clear(&text);
            str_addf(&text, "%s = ", w->n->cells[k]);
            ast_clone(&w->s->t, v->a, w->subst, ns, &text);
            str_addc(&text, ';');
            write_cells(w, depth, str_c(&text));
        }
    } else if (n->kind == N_FOR) {
        const struct loop *k = analysis_loop(&w->s->a, n);
        size_t at, len, body_at, body_len;
        node_bytes(&w->s->t, n, &at, &len);
        node_bytes(&w->s->t, k->body, &body_at, &body_len);
        str_addn(&text, w->s->text + at, body_at - at);
        char *head = str_steal(&text), *trimmed = str_trim(head);
        line(w, depth, "%s {", trimmed);
        free(head);
        const struct node *body = k->body->kind == N_BLOCK ? k->body->kids : k->body;
        for (const struct node *b = body; b; b = k->body->kind == N_BLOCK ? b->next : NULL)
            write_statement(w, depth + 1, b);
        line(w, depth, "}");
    }
    str_free(&text);
}

static void bound_text(const struct rule_source *s, const struct loop *l, bool low, struct str *out)
{
    (void)s;
    poly_print(low ? &l->lo_p : &l->hi_p, out);
}

static void write_tile(struct writer *w)
{
    const struct names *n = w->n;
    const struct loop *i = w->x->i, *j = w->x->j;
    struct str ilo = {0}, ihi = {0}, jlo = {0}, jhi = {0}, body = {0};
    bound_text(w->s, i, true, &ilo);
    bound_text(w->s, i, false, &ihi);
    bound_text(w->s, j, true, &jlo);
    bound_text(w->s, j, false, &jhi);
    node_text(&w->s->t, j->body, &body);
    line(w, 0, "%s %s = %s;", type_of(i), n->i0, ilo.s);
    line(w, 0, "for (; %s < %s && %s - %s >= %s; %s += %s) {", n->i0, ihi.s, ihi.s, n->i0, n->ti, n->i0,
         n->ti);
    line(w, 1, "%s %s = %s;", type_of(j), n->j0, jlo.s);
    line(w, 1, "for (; %s < %s && %s - %s >= %s; %s += %s) {", n->j0, jhi.s, jhi.s, n->j0, n->tj, n->j0,
         n->tj);
    const struct node *b = j->body;
    for (const struct node *k = b->kind == N_BLOCK ? b->kids : b; k; k = b->kind == N_BLOCK ? k->next : NULL)
        write_statement(w, 2, k);
    line(w, 1, "}");
    line(w, 1, "for (%s %s = %s; %s < %s + %s; %s++)", type_of(i), i->var, n->i0, i->var, n->i0, n->ti,
         i->var);
    line(w, 2, "for (%s %s = %s; %s < %s; %s++)", type_of(j), j->var, n->j0, j->var, jhi.s, j->var);
    line(w, 3, "%s", body.s);
    line(w, 0, "}");
    line(w, 0, "for (%s %s = %s; %s < %s; %s++)", type_of(i), i->var, n->i0, i->var, ihi.s, i->var);
    line(w, 1, "for (%s %s = %s; %s < %s; %s++)", type_of(j), j->var, jlo.s, j->var, jhi.s, j->var);
    line(w, 2, "%s", body.s);
    str_free(&ilo);
    str_free(&ihi);
    str_free(&jlo);
    str_free(&jhi);
    str_free(&body);
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t k = 0; k < s->a.loops.n; k++) {
        const struct loop *l = s->a.loops.v[k];
        struct nest x = {0};
        char why[240];
        if (!node_contains(l->body, N_FOR))
            continue;
        if (find_nest(s, l, &x, why))
            rewrite_site(s, out, l->stmt, true, NULL, "a block of %s x %s iterations together", l->var,
                         x.j->var);
        else
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
        vec_free(&x.locals);
    }
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    (void)params;
    struct node *stmt = rewrite_find(s, where, e);
    const struct loop *l = stmt ? analysis_loop(&s->a, stmt) : NULL;
    struct nest x = {0};
    char why[240];
    if (!stmt)
        return -1;
    if (!l || !find_nest(s, l, &x, why)) {
        vec_free(&x.locals);
        return err_set(e, ERR_FAIL, "", "tile: %s", l ? why : "no counted loop");
    }
    struct names n;
    struct str code = {0}, placed = {0};
    names_open(s, &x, &n);
    struct writer w = {.s = s, .x = &x, .n = &n, .out = &code};
    for (size_t k = 0; k < x.locals.n; k++)
        w.subst[k] = (struct subst){x.locals.v[k], n.cells[k]};
    write_tile(&w);
    char *indent = rewrite_indent(s, stmt);
    struct str block = {0};
    str_addf(&block, "{\n");
    char *deeper = xasprintf("%s    ", indent);
    rewrite_lines(&block, deeper, code.s);
    str_addf(&block, "%s}", indent);
    rewrite_replace(s, stmt, block.s, &placed);
    static const char *const ti[] = {"1", "2", "3", "4", "6", "8", "12", NULL};
    static const char *const tj[] = {"8", "16", "24", "32", "48", "64", "96", "128", NULL};
    int r = rewrite_add_knob(s, &placed, n.tj, "64", tj, e);
    if (r == 0)
        r = rewrite_add_knob(s, &placed, n.ti, "4", ti, e);
    if (r == 0)
        r = rewrite_need_flag(s, &placed, "-fopenmp-simd", e);
    str_addn(out, placed.s, placed.len);
    names_close(&n);
    free(indent);
    free(deeper);
    str_free(&code);
    str_free(&placed);
    str_free(&block);
    vec_free(&x.locals);
    return r;
}

const struct rule rule_tile = {
    .name = "tile",
    .help = "run a block of iterations of two nested loops together, in registers",
    .risk = RISK_ROUND,
    .sites = sites,
    .apply = apply,
};
