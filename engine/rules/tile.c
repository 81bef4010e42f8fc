// Rule tile: a register tile of two nested loops whose iterations are independent. A block of TI x TJ
// iterations runs together: each scalar that an iteration declares becomes a small array, each statement is
// done for the whole block before the next one, and loops inside (over k) run once for the block instead of
// once for each iteration, so what they load is used TI or TJ times (matrix product: 2 to 3x over the best
// loop order). The original loops stay as the remainder. Nothing of the body is known here but its
// statements.
#include "rules/parts.h"

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
    if (l->is_while || l->has_break || l->step != 1 || !l->lo || !parts_counter_type(l)) {
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
    bool hidden = parts_in_macro(s, i->var) || parts_in_macro(s, x->j->var);
    for (size_t k = 0; k < x->locals.n && !hidden; k++)
        hidden = parts_in_macro(s, x->locals.v[k]);
    if (hidden)
        snprintf(why, 240, "a macro names a variable that would be replaced");
    return !hidden;
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
    struct subst subst[LOCALS_MAX + 2]; // locals, then i and j
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
    line(w, depth, "for (int %s = 0; %s < %s; %s++) {", n->ii, n->ii, n->ti, n->ii);
    line(w, depth + 1, "#pragma omp simd");
    line(w, depth + 1, "for (int %s = 0; %s < %s; %s++) {", n->jj, n->jj, n->tj, n->jj);
    line(w, depth + 2, "%s", statement);
    line(w, depth + 1, "}");
    line(w, depth, "}");
}

static void write_statement(struct writer *w, int depth, const struct node *n)
{
    struct str text = {0};
    size_t ns = w->x->locals.n + 2;
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

// "for (int i = i_0; i < i_0 + TI; i++) "
static void head_of_block(const struct loop *l, const char *start, const char *size, struct str *out)
{
    str_addf(out, "for (%s %s = %s; %s < %s + %s; %s++) ", type_of(l), l->var, start, l->var, start, size,
             l->var);
}

// Blocks of the loop `in`, within a block of the loop `out`, and the rest of `in` there; then the rest of
// all.
struct side {
    const struct loop *l;
    const char *start, *size;
};

static void write_tile(struct writer *w, bool j_outside)
{
    const struct names *n = w->n;
    const struct side i = {w->x->i, n->i0, n->ti}, j = {w->x->j, n->j0, n->tj};
    const struct side *out = j_outside ? &j : &i, *in = j_outside ? &i : &j;
    const struct rule_source *s = w->s;
    struct str tile = {0}, row = {0}, body = {0}, head = {0}, inner = {0}, *all = w->out;
    w->out = &tile;
    for (const struct node *k = parts_first(j.l->body); k; k = parts_next(j.l->body, k))
        write_statement(w, 0, k);
    w->out = all;
    parts_body(s, j.l->body, NULL, &body);
    parts_block(s, in->l, in->start, in->size, tile.s, &row);
    // What is left of `in`, for the iterations of `out` in this block; j stays the inner loop.
    struct str in_rest = {0}, out_block = {0}, out_rest = {0};
    parts_rest_head(s, in->l, in->start, in->size, &in_rest);
    head_of_block(out->l, out->start, out->size, &out_block);
    parts_braces(&inner, j_outside ? out_block.s : in_rest.s, str_c(&body));
    parts_braces(&row, j_outside ? in_rest.s : out_block.s, inner.s);
    parts_block(s, out->l, out->start, out->size, row.s, all);
    // What is left of `out`, for all of `in`.
    parts_rest_head(s, out->l, out->start, out->size, &out_rest);
    parts_header(s, in->l, &head);
    str_addc(&head, ' ');
    str_clear(&inner);
    parts_braces(&inner, j_outside ? out_rest.s : head.s, str_c(&body));
    parts_braces(all, j_outside ? head.s : out_rest.s, inner.s);
    struct str *made[] = {&tile, &row, &body, &head, &inner, &in_rest, &out_block, &out_rest};
    for (size_t k = 0; k < countof(made); k++)
        str_free(made[k]);
}

// Which of the two loops steps outside the other from block to block. The outer one's data stay in the cache
// (matrix product: with columns outside a panel of B does).
static json *choices(const struct nest *x)
{
    return parts_choice("outer", (const char *const[]){x->j->var, x->i->var, NULL});
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
            rewrite_site(s, out, l->stmt, true, choices(&x), "a block of %s x %s iterations together", l->var,
                         x.j->var);
        else
            rewrite_site(s, out, l->stmt, false, NULL, "%s", why);
        vec_free(&x.locals);
    }
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
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
    char *i_at = xasprintf("%s + %s", n.i0, n.ii), *j_at = xasprintf("%s + %s", n.j0, n.jj);
    w.subst[x.locals.n] = (struct subst){x.i->var, i_at};
    w.subst[x.locals.n + 1] = (struct subst){x.j->var, j_at};
    write_tile(&w, str_eq(rewrite_param(params, "outer", x.j->var), x.j->var));
    parts_place(s, stmt, str_c(&code), &placed);
    static const char *const ti[] = {"1", "2", "3", "4", "6", "8", "12", NULL};
    static const char *const tj[] = {"8", "16", "24", "32", "48", "64", "96", "128", NULL};
    int r = rewrite_add_knob(s, &placed, n.tj, "64", tj, e);
    if (r == 0)
        r = rewrite_add_knob(s, &placed, n.ti, "4", ti, e);
    if (r == 0)
        r = rewrite_need_flag(s, &placed, "-fopenmp-simd", e);
    str_addn(out, placed.s, placed.len);
    names_close(&n);
    free(i_at);
    free(j_at);
    str_free(&code);
    str_free(&placed);
    vec_free(&x.locals);
    return r;
}

const struct rule rule_tile = {
    .name = "tile",
    .help = "run a block of iterations of two nested loops together, in registers",
    .risk = RISK_ROUND,
    .promise = 4,
    .sites = sites,
    .apply = apply,
};
