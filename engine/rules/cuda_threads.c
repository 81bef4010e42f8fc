// Rule threads: makes the block's size a knob. A number in the launch becomes a constant in the source, and
// with it every place of the body that repeats the number: sizes of shared arrays, steps of loops over
// threads, products with blockIdx, the first step of a tree. Where the number occurs in any other way the
// rule refuses.
#include "rules/cuda.h"

#include "base/task.h"
#include "source/annot.h"

#include <ctype.h>

struct place {
    size_t at, len;
    bool half;
};
struct plan {
    struct cu_launch l;
    int dims;        // dimensions that become knobs
    int which[3];    // their numbers
    int64_t size[3]; // present values
    bool named[3];   // a constant of the source, only to be marked
    VEC(struct place) places;
};

static const char *const axis[] = {"x", "y", "z"};

static bool tok_number(const struct rule_source *s, size_t i, int64_t want)
{
    const struct token *t = &s->ts.t.v[i];
    char buf[24];
    if (t->kind != TOK_NUM || t->len >= sizeof buf)
        return false;
    memcpy(buf, s->text + t->at, t->len);
    buf[t->len] = 0;
    char *end;
    return strtoll(buf, &end, 10) == want && (!*end || str_eq(end, "u") || str_eq(end, "U"));
}

static bool tok_is_block_index(const struct rule_source *s, size_t i)
{
    return token_is(&s->ts, i, "blockIdx") || token_is(&s->ts, i, "gridDim");
}

// "= 512; k > 0; k >>= 1": the head of a loop that halves, i being its first value.
static bool halving(const struct rule_source *s, size_t i)
{
    const struct tokens *ts = &s->ts;
    if (!token_op(ts, i - 1, OP_ASSIGN) || !token_op(ts, i + 1, OP_SEMI))
        return false;
    for (size_t k = i + 2; k < i + 14 && k < ts->t.n; k++)
        if (token_op(ts, k, OP_SHR_ASSIGN) || token_op(ts, k, OP_DIV_ASSIGN) || token_op(ts, k, OP_SHR))
            return true;
    return false;
}

// How token i, the number, is used: a size, a step, a stride of blocks, a bound.
static bool understood(const struct rule_source *s, size_t i)
{
    const struct tokens *ts = &s->ts;
    if (token_op(ts, i - 1, OP_LBRACK) && token_op(ts, i + 1, OP_RBRACK)) {
        for (size_t k = i; k > s->f.open && !token_op(ts, k, OP_SEMI) && !token_op(ts, k, OP_LBRACE); k--)
            if (token_is(ts, k, "__shared__"))
                return true;
        return false;
    }
    if (token_op(ts, i - 1, OP_ADD_ASSIGN) && token_op(ts, i + 1, OP_RPAREN))
        return true;
    if (token_op(ts, i - 1, OP_MUL) && i > 4 && (tok_is_block_index(s, i - 4)))
        return true;
    if (token_op(ts, i + 1, OP_MUL) && tok_is_block_index(s, i + 2))
        return true;
    if (token_op(ts, i - 1, OP_LT) && token_op(ts, i + 1, OP_SEMI))
        return true;
    return token_op(ts, i - 1, OP_ASSIGN) && token_op(ts, i + 1, OP_DIV) && tok_number(s, i + 2, 2);
}

static bool find_places(const struct rule_source *s, struct plan *p, char why[240])
{
    int64_t size = p->size[0];
    bool alone = p->dims == 1, tree = false;
    for (size_t i = s->f.open; i < s->f.close; i++)
        tree |= token_is(&s->ts, i, "__shared__");
    for (size_t i = s->f.open + 1; i < s->f.close; i++) {
        const struct token *t = &s->ts.t.v[i];
        bool whole = false;
        for (int d = 0; d < p->dims; d++)
            whole |= !p->named[d] && tok_number(s, i, p->size[d]);
        bool half = alone && !p->named[0] && size > 2 && tok_number(s, i, size / 2);
        if (half && halving(s, i))
            vec_push(&p->places, ((struct place){t->at, t->len, true}));
        else if (whole && alone && understood(s, i))
            vec_push(&p->places, ((struct place){t->at, t->len, false}));
        else if (whole || (half && tree)) {
            snprintf(why, 240, "what the number in line %u has to do with the block is not understood",
                     t->line);
            return false;
        }
    }
    return true;
}

static bool uses(const struct rule_source *s, const char *what, int d)
{
    for (size_t i = s->f.open; i + 2 < s->f.close; i++)
        if (token_is(&s->ts, i, what) && token_op(&s->ts, i + 1, OP_DOT) && token_is(&s->ts, i + 2, axis[d]))
            return true;
    return false;
}

static bool number_in(const char *text, int64_t n)
{
    char buf[24];
    snprintf(buf, sizeof buf, "%lld", (long long)n);
    return cu_mentions(text, buf);
}

// A constant of the source that may be marked: its line is one that may change.
static bool can_mark(const struct rule_source *s, const char *name, char why[240])
{
    struct annots a;
    err_list errors = {0};
    annot_read(&a, s->text, s->len, s->path, &errors);
    vec_free(&errors);
    bool knob = annot_knob(&a, name) != NULL;
    annot_free(&a);
    const struct macro *m = ast_macro(&s->t, name);
    if (knob)
        snprintf(why, 240, "%s is a knob already", name);
    else if (!m || m->function || m->opaque)
        snprintf(why, 240, "%s is no number and no #define of this source", name);
    else if (s->task && s->task->evolve == EVOLVE_BODY && (m->token < s->f.open || m->token > s->f.close))
        snprintf(why, 240, "%s is defined outside the body, and only the body may change", name);
    else
        return true;
    return false;
}

static bool dimension(const struct rule_source *s, struct plan *p, int d, char why[240])
{
    const char *text = p->l.block[d];
    bool named = isalpha((unsigned char)*text) || *text == '_';
    int64_t size = cu_block_size(s, &p->l, d);
    if (str_eq(text, "1"))
        return true;
    if (named && !can_mark(s, text, why))
        return false;
    if (size < 1) {
        snprintf(why, 240, "the block's size %s is not a number", text);
        return false;
    }
    int k = p->dims++;
    p->which[k] = d;
    p->size[k] = size;
    p->named[k] = named;
    return true;
}

// Does the statement around token i use the block's place too?
static bool of_blocks(const struct rule_source *s, size_t i)
{
    size_t from = i, to = i;
    while (from > s->f.open && !token_op(&s->ts, from, OP_SEMI) && !token_op(&s->ts, from, OP_LBRACE))
        from--;
    while (to < s->f.close && !token_op(&s->ts, to, OP_SEMI))
        to++;
    for (; from < to; from++)
        if (token_is(&s->ts, from, "blockIdx"))
            return true;
    return false;
}

// Does the body stay right when the number of threads changes?
static bool sound(const struct rule_source *s, const struct plan *p, char why[240])
{
    for (int k = 0; k < p->dims; k++) {
        int d = p->which[k];
        const char *grid = d < p->l.ngrid ? p->l.grid[d] : "1";
        bool says = uses(s, "blockDim", d) || p->places.n || (p->named[k]);
        bool follows = number_in(grid, p->size[k]) || number_in(grid, p->size[k] - 1) ||
                       (p->named[k] && cu_mentions(grid, p->l.block[d]));
        if (!uses(s, "threadIdx", d))
            snprintf(why, 240, "the body does not use threadIdx.%s", axis[d]);
        else if (!says)
            snprintf(why, 240, "nothing in the body says how many threads there are in %s", axis[d]);
        else if (!follows && !uses(s, "gridDim", d) && strspn(grid, "0123456789") == strlen(grid) &&
                 !str_eq(grid, "1"))
            snprintf(why, 240, "the grid's size %s is a number that does not follow the block's", grid);
        else
            continue;
        return false;
    }
    // Rows are shared out among warps: the grid must say so.
    for (size_t i = s->f.open; i + 4 < s->f.close; i++) {
        bool warp = token_is(&s->ts, i, "threadIdx") &&
                    (token_op(&s->ts, i + 3, OP_DIV) || token_op(&s->ts, i + 3, OP_SHR));
        if (warp && of_blocks(s, i) && !p->named[0] && !number_in(p->l.grid[0], p->size[0])) {
            snprintf(why, 240, "warps have rows of their own, and the grid does not follow the block");
            return false;
        }
    }
    return true;
}

static void plan_free(struct plan *p)
{
    cu_launch_free(&p->l);
    vec_free(&p->places);
}

static bool make_plan(const struct rule_source *s, struct plan *p, char why[240])
{
    *p = (struct plan){0};
    if (cu_launch_read(s, &p->l, why) < 0)
        return false;
    for (int d = 0; d < p->l.nblock; d++)
        if (!dimension(s, p, d, why))
            return false;
    if (!p->dims || p->dims > 2) {
        snprintf(why, 240, p->dims ? "a block with three dimensions" : "there is one thread in a block");
        return false;
    }
    return find_places(s, p, why) && sound(s, p, why);
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    struct plan p;
    char why[240];
    if (!make_plan(s, &p, why))
        cu_site(s, out, false, NULL, "%s", why);
    else if (p.dims == 1)
        cu_site(s, out, true, NULL, "the block's size (%s) as a knob, in the launch and at %zu places",
                p.l.block[p.which[0]], p.places.n);
    else
        cu_site(s, out, true, NULL, "the block's sizes (%s by %s) as knobs", p.l.block[p.which[0]],
                p.l.block[p.which[1]]);
    plan_free(&p);
}

// The values offered: those of the table, and the present one where it is another.
static void values_of(const struct plan *p, int k, char *now, const char *out[16])
{
    static const char *const one[] = {"32", "64", "128", "256", "512", "1024", NULL};
    static const char *const x[] = {"4", "8", "16", "32", "64", "128", NULL};
    static const char *const y[] = {"1", "2", "4", "8", "16", "32", NULL};
    const char *const *from = p->dims == 1 ? one : p->which[k] == 0 ? x : y;
    size_t n = 0;
    bool there = false;
    for (; from[n]; n++) {
        out[n] = from[n];
        there |= str_eq(from[n], now);
    }
    if (!there)
        out[n++] = now;
    out[n] = NULL;
}

static void follow(char **text, int64_t size, const char *name)
{
    char number[24], less[24], minus[80];
    struct str a = {0}, b = {0};
    if (!*text)
        return;
    snprintf(number, sizeof number, "%lld", (long long)size);
    snprintf(less, sizeof less, "%lld", (long long)size - 1);
    snprintf(minus, sizeof minus, "%s - 1", name);
    cu_replace(*text, number, name, &a);
    // (N + 255) / 256
    if (size > 2 && cu_mentions(*text, number))
        cu_replace(str_c(&a), less, minus, &b);
    else
        str_add(&b, str_c(&a));
    free(*text);
    *text = str_steal(&b);
    str_free(&a);
}

static void mark(const struct rule_source *s, struct str *text, const char *name, const char *const *values)
{
    const struct token *t = &s->ts.t.v[ast_macro(&s->t, name)->token];
    struct str line = {0};
    size_t len = 0;
    // A comment that stands there already comes after the knob's.
    while (len < t->len &&
           !(s->text[t->at + len] == '/' && len + 1 < t->len && strchr("/*", s->text[t->at + len + 1])))
        len++;
    while (len && isspace((unsigned char)s->text[t->at + len - 1]))
        len--;
    str_add(&line, " // knob:");
    for (; *values; values++)
        str_addf(&line, " %s", *values);
    if (len < t->len)
        str_add(&line, "\n");
    str_splice(text, t->at + len, 0, line.s, line.len);
    str_free(&line);
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    struct plan p;
    char why[240];
    (void)where;
    (void)params;
    if (!make_plan(s, &p, why)) {
        plan_free(&p);
        return err_set(e, ERR_FAIL, "", "threads: %s", why);
    }
    char *names[2] = {0}, now[2][24];
    const char *values[2][16];
    struct str text = {0};
    str_addn(&text, s->text, s->len);
    for (int k = 0; k < p.dims; k++) {
        int d = p.which[k];
        char *want = p.dims == 1 ? xstrdup("BLOCK") : xasprintf("BLOCK_%c", "XYZ"[d]);
        names[k] = p.named[k] ? xstrdup(p.l.block[d]) : rewrite_name(s, want);
        free(want);
        snprintf(now[k], sizeof now[k], "%lld", (long long)p.size[k]);
        values_of(&p, k, now[k], values[k]);
    }
    for (size_t i = p.places.n; i-- > 0;) {
        struct place *x = &p.places.v[i];
        char *by = xasprintf(x->half ? "%s / 2" : "%s", names[0]);
        str_splice(&text, x->at, x->len, by, strlen(by));
        free(by);
    }
    int r = 0;
    for (int k = 0; k < p.dims; k++) {
        int d = p.which[k];
        if (p.named[k]) {
            mark(s, &text, names[k], values[k]);
            continue;
        }
        free(p.l.block[d]);
        p.l.block[d] = xstrdup(names[k]);
        if (d < p.l.ngrid)
            follow(&p.l.grid[d], p.size[k], names[k]);
        if (p.dims == 1)
            follow(&p.l.shared, p.size[k], names[k]);
    }
    r = cu_launch_put(s, &text, &p.l, e);
    for (int k = p.dims; r == 0 && k-- > 0;)
        if (!p.named[k])
            r = rewrite_add_knob(s, &text, names[k], now[k], values[k], e);
    if (r == 0)
        str_addn(out, text.s, text.len);
    str_free(&text);
    free(names[0]);
    free(names[1]);
    plan_free(&p);
    return r;
}

const struct rule rule_cuda_threads = {
    .name = "threads",
    .help = "make the number of threads in a block a knob",
    .risk = RISK_WORK,
    .cuda = true,
    .sites = sites,
    .apply = apply,
};
