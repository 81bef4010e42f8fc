#include "rules/fold.h"

struct folder {
    const struct rule_source *s;
    const knowns *k;
    VEC(char *) texts; // of the swaps
};

// 1, 0, or -1 where it is not known.
static int value_of(const struct folder *f, const struct node *n)
{
    for (size_t i = 0; i < f->k->n; i++)
        if (f->k->v[i].node == n)
            return f->k->v[i].value;
    if (n->kind == N_UNARY && n->op == OP_NOT) {
        int v = value_of(f, n->a);
        return v < 0 ? v : !v;
    }
    if (n->kind != N_BINARY || (n->op != OP_LAND && n->op != OP_LOR))
        return -1;
    int a = value_of(f, n->a), b = value_of(f, n->b), decides = n->op == OP_LOR;
    // What would have been evaluated and no longer is must only read.
    if (a == decides || (b == decides && expr_pure(&f->s->a, n->a).v == TRI_YES))
        return decides;
    return a >= 0 && b >= 0 ? !decides : -1;
}

static bool is_truth(const struct node *n)
{
    switch (n->kind == N_BINARY || n->kind == N_UNARY ? n->op : OP_NONE) {
    case OP_LT:
    case OP_GT:
    case OP_LE:
    case OP_GE:
    case OP_EQ:
    case OP_NE:
    case OP_LAND:
    case OP_LOR:
    case OP_NOT:
        return true;
    default:
        return false;
    }
}

static void collect(struct folder *f, const struct node *n, swaps *w);

static void text_of(struct folder *f, const struct node *n, struct str *out)
{
    swaps w = {0};
    collect(f, n, &w);
    parts_swap(f->s, n, &w, out);
    vec_free(&w);
}

static void operand_of(struct folder *f, const struct node *n, struct str *out)
{
    str_add(out, n->paren ? "" : "(");
    text_of(f, n, out);
    str_add(out, n->paren ? "" : ")");
}

static bool declares(const struct node *block)
{
    for (const struct node *k = block->kids; k; k = k->next)
        if (k->kind == N_DECL)
            return true;
    return false;
}

// What is left of an if whose condition is known; a block without declarations loses its braces.
static void branch(struct folder *f, const struct node *n, const struct node *taken, struct str *out)
{
    struct str lines = {0};
    bool alone = n->up && n->up->kind != N_BLOCK;
    if (!taken) {
        str_add(out, alone ? ";" : "");
        return;
    }
    if (taken->kind == N_BLOCK && !alone && !declares(taken)) {
        for (const struct node *k = taken->kids; k; k = k->next) {
            text_of(f, k, &lines);
            str_add(&lines, k->next ? "\n" : "");
        }
    } else {
        text_of(f, taken, &lines);
    }
    // The lines take the place of the if: indented like it, but for the first.
    char *indent = rewrite_indent(f->s, n);
    for (const char *at = str_c(&lines); *at; at++) {
        str_addc(out, *at);
        if (*at == '\n')
            str_add(out, indent);
    }
    free(indent);
    str_free(&lines);
}

// The replacement of n, where something is known at n itself.
static bool replaced(struct folder *f, const struct node *n, struct str *out)
{
    if ((n->kind == N_IF || n->kind == N_COND) && value_of(f, n->a) >= 0) {
        const struct node *taken = value_of(f, n->a) ? n->b : n->c;
        if (n->kind == N_IF)
            branch(f, n, taken, out);
        else
            operand_of(f, taken, out);
        return true;
    }
    int v = node_is_expr(n) ? value_of(f, n) : -1;
    if (v >= 0) {
        str_add(out, v ? "1" : "0");
        return true;
    }
    if (n->kind == N_BINARY && (n->op == OP_LAND || n->op == OP_LOR)) {
        int a = value_of(f, n->a), b = value_of(f, n->b);
        const struct node *rest = a >= 0 ? n->b : b >= 0 ? n->a : NULL;
        // A known side that decides nothing goes; the other one as a truth value.
        if (!rest || (a >= 0 ? a : b) == (n->op == OP_LOR))
            return false;
        operand_of(f, rest, out);
        if (!is_truth(rest)) {
            struct str truth = {0};
            str_addf(&truth, "(%s != 0)", out->s);
            str_clear(out);
            str_add(out, truth.s);
            str_free(&truth);
        }
        return true;
    }
    return false;
}

static void collect(struct folder *f, const struct node *n, swaps *w)
{
    struct str text = {0};
    if (!n)
        return;
    if (replaced(f, n, &text)) {
        char *kept = xstrdup(str_c(&text));
        str_free(&text);
        vec_push(&f->texts, kept);
        vec_push(w, (struct swap){n, kept});
        return;
    }
    const struct node *parts[] = {n->a, n->b, n->c, n->d};
    for (size_t i = 0; i < countof(parts); i++)
        collect(f, parts[i], w);
    for (const struct node *k = n->kids; k; k = k->next)
        collect(f, k, w);
}

void fold_body(const struct rule_source *s, const struct node *body, const knowns *k, struct str *out)
{
    struct folder f = {.s = s, .k = k};
    swaps w = {0};
    for (const struct node *n = parts_first(body); n; n = parts_next(body, n))
        collect(&f, n, &w);
    parts_body(s, body, &w, out);
    for (size_t i = 0; i < f.texts.n; i++)
        free(f.texts.v[i]);
    vec_free(&f.texts);
    vec_free(&w);
}
