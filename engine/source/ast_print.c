// Text of trees: expressions printed anew with the parentheses they need, statements as their own bytes with
// names replaced, types as declarations.
#include "source/ast.h"

#include <ctype.h>
#include <string.h>

enum {
    PREC_COMMA = 1,
    PREC_ASSIGN = 2,
    PREC_COND = 3,
    PREC_UNARY = 15,
    PREC_POSTFIX = 16,
    PREC_PRIMARY = 17
};

int node_prec(const struct node *n)
{
    static const unsigned char binary[OP_COUNT] = {
        [OP_MUL] = 13, [OP_DIV] = 13, [OP_MOD] = 13, [OP_ADD] = 12, [OP_SUB] = 12, [OP_SHL] = 11,
        [OP_SHR] = 11, [OP_LT] = 10,  [OP_GT] = 10,  [OP_LE] = 10,  [OP_GE] = 10,  [OP_EQ] = 9,
        [OP_NE] = 9,   [OP_AND] = 8,  [OP_XOR] = 7,  [OP_OR] = 6,   [OP_LAND] = 5, [OP_LOR] = 4};
    switch (n->kind) {
    case N_COMMA:
        return PREC_COMMA;
    case N_ASSIGN:
        return PREC_ASSIGN;
    case N_COND:
        return PREC_COND;
    case N_BINARY:
        return binary[n->op];
    case N_UNARY:
    case N_CAST:
    case N_SIZEOF:
        return PREC_UNARY;
    case N_POSTFIX:
    case N_CALL:
    case N_INDEX:
    case N_MEMBER:
    case N_COMPOUND:
        return PREC_POSTFIX;
    case N_OPAQUE:
        return n->paren ? PREC_PRIMARY : 0;
    default:
        return PREC_PRIMARY;
    }
}

struct printer {
    struct ast *t;
    const struct subst *s;
    size_t ns;
    struct str *out;
};

static const struct subst *lookup(const struct subst *s, size_t ns, const char *name, size_t n)
{
    for (size_t i = 0; i < ns; i++)
        if (strlen(s[i].name) == n && memcmp(s[i].name, name, n) == 0)
            return &s[i];
    return NULL;
}

// The precedence of a text: that of the expression it is, 0 where it is none.
static int text_prec(struct ast *t, const char *text)
{
    const struct node *n = ast_parse_expr(t, text);
    return !n ? 0 : n->paren ? PREC_PRIMARY : node_prec(n);
}

// Is the text one operand already: one token, or closed in one pair of parentheses?
static bool is_closed(const char *text)
{
    struct tokens ts;
    tokens_read(&ts, text, strlen(text));
    bool one = ts.t.n == 2 || (token_op(&ts, 0, OP_LPAREN) && ts.t.v[0].match == ts.t.n - 2);
    tokens_free(&ts);
    return one;
}

static void clone_range(const struct tokens *ts, size_t first, size_t end, const struct subst *s, size_t ns,
                        struct str *out)
{
    for (size_t i = first; i < end; i++) {
        const struct token *t = &ts->t.v[i];
        if (i > first)
            str_addn(out, ts->src + t->lead, t->at - t->lead);
        const struct subst *x = NULL;
        if (t->kind == TOK_IDENT &&
            !(i > 0 && (token_op(ts, i - 1, OP_DOT) || token_op(ts, i - 1, OP_ARROW))))
            x = lookup(s, ns, ts->src + t->at, t->len);
        if (!x)
            str_addn(out, ts->src + t->at, t->len);
        else
            str_addf(out, is_closed(x->text) ? "%s" : "(%s)", x->text);
    }
}

static void print(struct printer *p, const struct node *n, int least);

static void print_list(struct printer *p, const struct node *k)
{
    for (; k; k = k->next) {
        print(p, k, PREC_ASSIGN);
        if (k->next)
            str_add(p->out, ", ");
    }
}

static void print_unary(struct printer *p, const struct node *n)
{
    str_add(p->out, op_text(n->op));
    // "- -x" and "-(-x)" must not become "--x", nor "& &" "&&"
    bool clash = n->a->kind == N_UNARY && op_text(n->a->op)[0] == op_text(n->op)[0];
    size_t at = p->out->len;
    print(p, n->a, clash ? PREC_PRIMARY : PREC_UNARY);
    char c = p->out->len > at ? p->out->s[at] : 0;
    if (!clash && c == op_text(n->op)[0])
        str_splice(p->out, at, 0, " ", 1);
}

static void print_ident(struct printer *p, const struct node *n, int least)
{
    const struct subst *x = lookup(p->s, p->ns, n->name, strlen(n->name));
    if (!x)
        str_add(p->out, n->name);
    else
        str_addf(p->out, text_prec(p->t, x->text) >= (least > 1 ? least : 1) ? "%s" : "(%s)", x->text);
}

static void print_type(struct printer *p, const struct ctype *ty)
{
    str_addc(p->out, '(');
    ctype_print(p->t, ty, "", p->out);
    str_addc(p->out, ')');
}

static void print_opaque(struct printer *p, const struct node *n)
{
    struct tokens ts;
    tokens_read(&ts, n->name, strlen(n->name));
    bool closed = n->paren;
    str_add(p->out, closed ? "" : "(");
    clone_range(&ts, 0, ts.t.n, p->s, p->ns, p->out);
    str_add(p->out, closed ? "" : ")");
    tokens_free(&ts);
}

static void print_bare(struct printer *p, const struct node *n, int prec, int least)
{
    struct str *o = p->out;
    switch (n->kind) {
    case N_IDENT:
        print_ident(p, n, least);
        break;
    case N_UNARY:
        print_unary(p, n);
        break;
    case N_POSTFIX:
        print(p, n->a, PREC_POSTFIX);
        str_add(o, op_text(n->op));
        break;
    case N_BINARY:
    case N_ASSIGN:
        print(p, n->a, n->kind == N_ASSIGN ? PREC_UNARY : prec);
        str_addf(o, " %s ", op_text(n->op));
        print(p, n->b, n->kind == N_ASSIGN ? prec : prec + 1);
        break;
    case N_COMMA:
        print(p, n->a, prec);
        str_add(o, ", ");
        print(p, n->b, PREC_ASSIGN);
        break;
    case N_COND:
        print(p, n->a, PREC_COND + 1);
        str_add(o, " ? ");
        print(p, n->b, PREC_COMMA);
        str_add(o, " : ");
        print(p, n->c, PREC_COND);
        break;
    case N_CALL:
        print(p, n->a, PREC_POSTFIX);
        str_addc(o, '(');
        print_list(p, n->kids);
        str_addc(o, ')');
        break;
    case N_INDEX:
        print(p, n->a, PREC_POSTFIX);
        str_addc(o, '[');
        print(p, n->b, PREC_COMMA);
        str_addc(o, ']');
        break;
    case N_MEMBER:
        print(p, n->a, PREC_POSTFIX);
        str_addf(o, "%s%s", op_text(n->op), n->name);
        break;
    case N_CAST:
    case N_COMPOUND:
        print_type(p, n->type);
        print(p, n->a, n->kind == N_CAST ? PREC_UNARY : PREC_PRIMARY);
        break;
    case N_SIZEOF:
        str_add(o, n->name);
        if (n->a) {
            str_addc(o, ' ');
            print(p, n->a, PREC_UNARY);
        } else {
            print_type(p, n->type);
        }
        break;
    case N_INIT:
        str_addc(o, '{');
        print_list(p, n->kids);
        str_addc(o, '}');
        break;
    case N_OPAQUE:
        print_opaque(p, n);
        break;
    default:
        str_add(o, n->name ? n->name : "");
    }
}

static void print(struct printer *p, const struct node *n, int least)
{
    int prec = node_prec(n);
    bool wrap = prec < least && n->kind != N_OPAQUE;
    if (wrap)
        str_addc(p->out, '(');
    print_bare(p, n, prec, wrap ? 1 : least);
    if (wrap)
        str_addc(p->out, ')');
}

void ast_print(struct ast *t, const struct node *n, const struct subst *s, size_t ns, struct str *out)
{
    struct printer p = {t, s, ns, out};
    if (n)
        print(&p, n, PREC_COMMA);
}
