// Rule turn: a kernel that reads along one dimension and writes along the other goes through a tile in shared
// memory, so that both sides are contiguous. The subscripts, the bounds and what happens to the element on
// its way are the source's.
#include "rules/cuda.h"

#include "base/task.h"

struct turn {
    struct cu_plane p;
    const struct node *store, *read; // the statement's assignment, and the access in its value
    const char *type;
    int along; // the dimension along which it reads; it writes along the other
};

static bool unit(const struct turn *t, const struct poly *sub, int d)
{
    struct poly stride = {0}, rest = {0};
    int64_t c;
    if (!cu_linear(sub, t->p.axis[d].var, &stride, &rest))
        return false;
    bool one = poly_is_const(&stride, &c) && c == 1;
    poly_free(&stride);
    poly_free(&rest);
    return one;
}

struct reads {
    const struct node *one;
    int n;
    bool bad;
    const struct rule_source *s;
};
static bool count_reads(void *user, struct node *n)
{
    struct reads *r = user;
    if (n->kind == N_INDEX) {
        r->one = n;
        r->n++;
        return false;
    }
    r->bad |= n->kind == N_ASSIGN || n->kind == N_POSTFIX || n->kind == N_OPAQUE ||
              (n->kind == N_CALL && !(n->a->kind == N_IDENT && cu_pure_call(r->s, n->a->name)));
    return !r->bad;
}

// The value that is stored, and the one place that it is read from: perhaps through "float v = in[...];".
static bool store_of(const struct rule_source *s, struct turn *t, char why[240])
{
    const struct node *n = t->p.body;
    const struct node *e = n->kind == N_EXPR && !n->next ? n->a : NULL;
    struct reads r = {.s = s};
    if (e && e->kind == N_ASSIGN && e->op == OP_ASSIGN && e->a->kind == N_INDEX)
        node_walk(e->b, count_reads, &r);
    if (r.n != 1 || r.bad) {
        snprintf(why, 240, "the body is not one store of one element that is read");
        return false;
    }
    t->store = e;
    t->read = r.one;
    return true;
}

static bool find(const struct rule_source *s, struct turn *t, char why[240])
{
    *t = (struct turn){0};
    if (!cu_plane_find(s, &t->p, why) || !store_of(s, t, why))
        return false;
    const char *to, *from;
    struct poly a = {0}, b = {0};
    bool ok =
        cu_plane_access(s, &t->p, t->store->a, &to, &a) && cu_plane_access(s, &t->p, t->read, &from, &b);
    bool wx = ok && unit(t, &a, 0), wy = ok && unit(t, &a, 1), rx = ok && unit(t, &b, 0),
         ry = ok && unit(t, &b, 1);
    if (!ok)
        snprintf(why, 240, "a subscript is not understood");
    else if (!((rx && wy && !ry && !wx) || (ry && wx && !rx && !wy)))
        ok = (snprintf(why, 240, "it does not read along one dimension and write along the other"), false);
    else if (str_eq(to, from) || cu_written(s, from))
        ok = (snprintf(why, 240, "%.40s is read and written", from), false);
    t->along = rx ? 0 : 1;
    t->type = ok ? cu_elem(s, from) : NULL;
    if (ok && !cu_elem_size(t->type))
        ok = (snprintf(why, 240, "elements of an unknown size"), false);
    struct str x = {0};
    for (int d = 0; d < 2 && ok; d++)
        if (!cu_launch_words(s, &t->p.l, t->p.axis[d].bound, &x))
            ok = (snprintf(why, 240, "a bound is not made of arguments"), false);
    str_free(&x);
    poly_free(&a);
    poly_free(&b);
    return ok;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    struct turn t;
    char why[240];
    if (find(s, &t, why))
        cu_site(s, out, true, NULL, "reads along %s and writes along %s: through a tile in shared memory",
                t.p.axis[t.along].var, t.p.axis[!t.along].var);
    else
        cu_site(s, out, false, NULL, "%s", why);
    cu_plane_free(&t.p);
}

struct words {
    char *tile, *rows, *buf, *k, *r0, *w0;
};

// One pass over the tile. row: "k" counts along it (reading) or across it (writing).
static void pass(const struct rule_source *s, const struct turn *t, const struct words *w, bool reading,
                 struct str *out)
{
    const struct cu_axis *r = &t->p.axis[t->along], *o = &t->p.axis[!t->along];
    struct str head = {0}, in = {0}, act = {0};
    str_addf(&in, "const int row = %s + threadIdx.y;\n", w->k);
    str_addf(&in, "const %s %s = %s + %s;\n", r->type, r->var, w->r0, reading ? "threadIdx.x" : "row");
    str_addf(&in, "const %s %s = %s + %s;\n", o->type, o->var, w->w0, reading ? "row" : "threadIdx.x");
    str_addf(&in, "if (%s < ", r->var);
    node_text(&s->t, r->bound, &in);
    str_addf(&in, " && %s < ", o->var);
    node_text(&s->t, o->bound, &in);
    str_add(&in, ")\n");
    if (reading) {
        str_addf(&act, "%s[row][threadIdx.x] = ", w->buf);
        node_text(&s->t, t->read, &act);
    } else {
        char *cell = xasprintf("%s[threadIdx.x][row]", w->buf);
        swaps x = {0};
        vec_push(&x, ((struct swap){t->read, cell}));
        parts_swap(s, t->store, &x, &act);
        vec_free(&x);
        free(cell);
    }
    str_add(&act, ";\n");
    rewrite_lines(&in, "    ", str_c(&act));
    str_addf(&head, "for (int %s = 0; %s < %s; %s += %s) ", w->k, w->k, w->tile, w->k, w->rows);
    str_add(out, "#pragma unroll\n");
    parts_braces(out, str_c(&head), str_c(&in));
    str_free(&head);
    str_free(&in);
    str_free(&act);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    static const char *const tiles[] = {"16", "32", "64", NULL}, *const rows[] = {"2", "4", "8", "16", NULL};
    struct turn t;
    char why[240];
    (void)where;
    (void)params;
    if (!find(s, &t, why)) {
        cu_plane_free(&t.p);
        return err_set(e, ERR_FAIL, "", "turn: %s", why);
    }
    const struct cu_axis *r = &t.p.axis[t.along], *o = &t.p.axis[!t.along];
    struct words w = {rewrite_name(s, "TILE"), rewrite_name(s, "ROWS"),     rewrite_name(s, "tile"),
                      rewrite_name(s, "k"),    parts_name(s, r->var, "_0"), parts_name(s, o->var, "_0")};
    struct str code = {0}, text = {0};
    str_addf(&code, "__shared__ %s %s[%s][%s + 1];\n", t.type, w.buf, w.tile, w.tile);
    str_addf(&code, "const %s %s = blockIdx.x * %s;\nconst %s %s = blockIdx.y * %s;\n", r->type, w.r0, w.tile,
             o->type, w.w0, w.tile);
    pass(s, &t, &w, true, &code);
    str_add(&code, "__syncthreads();\n");
    pass(s, &t, &w, false, &code);
    cu_plane_replace(s, &t.p, str_c(&code), &text);
    struct cu_launch l = {.ngrid = 2, .nblock = 2, .args = xstrdup(t.p.l.args)};
    struct str rw = {0}, ow = {0};
    cu_launch_words(s, &t.p.l, r->bound, &rw);
    cu_launch_words(s, &t.p.l, o->bound, &ow);
    l.grid[0] = xasprintf("ceildiv(%s, %s)", rw.s, w.tile);
    l.grid[1] = xasprintf("ceildiv(%s, %s)", ow.s, w.tile);
    l.block[0] = xstrdup(w.tile);
    l.block[1] = xstrdup(w.rows);
    int ret = cu_launch_put(s, &text, &l, e);
    if (ret == 0)
        ret = rewrite_add_knob(s, &text, w.rows, "8", rows, e);
    if (ret == 0)
        ret = rewrite_add_knob(s, &text, w.tile, "32", tiles, e);
    if (ret == 0)
        str_addn(out, text.s, text.len);
    char *all[] = {w.tile, w.rows, w.buf, w.k, w.r0, w.w0};
    for (size_t i = 0; i < countof(all); i++)
        free(all[i]);
    str_free(&code);
    str_free(&text);
    str_free(&rw);
    str_free(&ow);
    cu_launch_free(&l);
    cu_plane_free(&t.p);
    return ret;
}

const struct rule rule_cuda_turn = {
    .name = "turn",
    .help = "read along one dimension, write along the other: through a tile in shared memory",
    .risk = RISK_SHAPE,
    .cuda = true,
    .sites = sites,
    .apply = apply,
};
