// Expressions, by precedence.
#include "source/ast_int.h"

static const struct token *tok(const struct parser *p, uint32_t i)
{
    return &p->t->ts->t.v[i < p->end ? i : p->end];
}

static bool is_op(const struct parser *p, enum op_kind op)
{
    return p->at < p->end && tok(p, p->at)->kind == TOK_PUNCT && tok(p, p->at)->op == op;
}

static struct node *close_node(struct parser *p, struct node *n)
{
    n->end = p->at;
    ast_adopt(n);
    return n;
}

static int binary_prec(enum op_kind op)
{
    switch (op) {
    case OP_LOR:
        return 4;
    case OP_LAND:
        return 5;
    case OP_OR:
        return 6;
    case OP_XOR:
        return 7;
    case OP_AND:
        return 8;
    case OP_EQ:
    case OP_NE:
        return 9;
    case OP_LT:
    case OP_GT:
    case OP_LE:
    case OP_GE:
        return 10;
    case OP_SHL:
    case OP_SHR:
        return 11;
    case OP_ADD:
    case OP_SUB:
        return 12;
    case OP_MUL:
    case OP_DIV:
    case OP_MOD:
        return 13;
    default:
        return 0;
    }
}

static bool is_assign(enum op_kind op)
{
    return op >= OP_ASSIGN && op <= OP_SHR_ASSIGN;
}

static struct node *parse_unary(struct parser *p);

static struct node *parse_primary(struct parser *p)
{
    const struct token *t = tok(p, p->at);
    uint32_t first = p->at;
    if (p->at >= p->end)
        return NULL;
    if (t->kind == TOK_IDENT &&
        (ast_keyword(p, first) || !ast_macro_is_value(p->t, ast_spelling(p, first), 0)))
        return NULL;
    if (t->kind == TOK_IDENT || t->kind == TOK_NUM || t->kind == TOK_CHAR || t->kind == TOK_STR) {
        static const enum node_kind kinds[] = {
            [TOK_IDENT] = N_IDENT, [TOK_NUM] = N_NUM, [TOK_STR] = N_STR, [TOK_CHAR] = N_CHAR};
        struct node *n = ast_node(p, kinds[t->kind], first);
        n->name = ast_spelling(p, first);
        p->at++;
        if (t->kind != TOK_STR)
            return close_node(p, n);
        while (p->at < p->end && tok(p, p->at)->kind == TOK_STR) // adjacent strings are one
            n->name = ast_join(p->t, n->name, ast_spelling(p, p->at++));
        return close_node(p, n);
    }
    if (!is_op(p, OP_LPAREN))
        return NULL;
    p->at++;
    struct node *n = parse_expr(p);
    if (!n || !is_op(p, OP_RPAREN))
        return NULL;
    p->at++;
    n->first = first;
    n->end = p->at;
    n->paren = true;
    return n;
}

static struct node *parse_args(struct parser *p, struct node *call)
{
    struct node **tail = &call->kids;
    while (!is_op(p, OP_RPAREN)) {
        struct node *a = parse_assign(p);
        if (!a)
            return NULL;
        *tail = a;
        tail = &a->next;
        if (is_op(p, OP_COMMA))
            p->at++;
        else if (!is_op(p, OP_RPAREN))
            return NULL;
    }
    p->at++;
    return close_node(p, call);
}

static struct node *parse_postfix(struct parser *p)
{
    struct node *n = parse_primary(p);
    while (n && p->at < p->end) {
        struct node *outer = NULL;
        if (++p->chain > PARSE_MAX_CHAIN)
            return NULL;
        if (is_op(p, OP_LBRACK)) {
            outer = ast_node(p, N_INDEX, n->first);
            p->at++;
            outer->a = n;
            outer->b = parse_expr(p);
            if (!outer->b || !is_op(p, OP_RBRACK))
                return NULL;
            p->at++;
        } else if (is_op(p, OP_LPAREN)) {
            outer = ast_node(p, N_CALL, n->first);
            p->at++;
            outer->a = n;
            if (!parse_args(p, outer))
                return NULL;
        } else if (is_op(p, OP_DOT) || is_op(p, OP_ARROW)) {
            outer = ast_node(p, N_MEMBER, n->first);
            outer->op = tok(p, p->at++)->op;
            outer->a = n;
            if (tok(p, p->at)->kind != TOK_IDENT)
                return NULL;
            outer->name = ast_spelling(p, p->at++);
        } else if (is_op(p, OP_INC) || is_op(p, OP_DEC)) {
            outer = ast_node(p, N_POSTFIX, n->first);
            outer->op = tok(p, p->at++)->op;
            outer->a = n;
        } else {
            break;
        }
        n = close_node(p, outer);
    }
    return n;
}

// (type) operand. *is_cast says whether it was one: then NULL means that the operand could not be read, and
// nothing else is tried (that would double the work with every cast in a row).
static struct node *parse_cast(struct parser *p, bool *is_cast)
{
    uint32_t first = p->at;
    struct ctype *ty = ast_alloc(p->t, sizeof *ty);
    const char *name = NULL;
    p->at++;
    bool ok = starts_type(p, p->at) && parse_type(p, ty) && parse_declarator(p, ty, &name) && !name &&
              is_op(p, OP_RPAREN);
    *is_cast = ok;
    if (ok) {
        p->at++;
        bool literal = is_op(p, OP_LBRACE);
        struct node *n = ast_node(p, literal ? N_COMPOUND : N_CAST, first);
        n->type = ty;
        n->a = literal ? parse_init(p) : parse_unary(p);
        return n->a ? close_node(p, n) : NULL;
    }
    p->at = first;
    return NULL;
}

static struct node *parse_sizeof(struct parser *p)
{
    struct node *n = ast_node(p, N_SIZEOF, p->at);
    n->name = ast_spelling(p, p->at++);
    if (is_op(p, OP_LPAREN) && starts_type(p, p->at + 1)) {
        const char *name = NULL;
        n->type = ast_alloc(p->t, sizeof *n->type);
        p->at++;
        if (!parse_type(p, n->type) || !parse_declarator(p, n->type, &name) || !is_op(p, OP_RPAREN))
            return NULL;
        p->at++;
    } else if (!(n->a = parse_unary(p))) {
        return NULL;
    }
    return close_node(p, n);
}

static struct node *unary(struct parser *p)
{
    const struct token *t = tok(p, p->at);
    if (p->at >= p->end)
        return NULL;
    if (token_is(p->t->ts, p->at, "sizeof") || token_is(p->t->ts, p->at, "_Alignof"))
        return parse_sizeof(p);
    if (is_op(p, OP_LPAREN)) {
        bool is_cast;
        struct node *cast = parse_cast(p, &is_cast);
        return is_cast ? cast : parse_postfix(p);
    }
    static const enum op_kind ops[] = {OP_ADD, OP_SUB, OP_NOT, OP_COMPL, OP_MUL, OP_AND, OP_INC, OP_DEC};
    for (size_t i = 0; i < countof(ops); i++)
        if (t->kind == TOK_PUNCT && t->op == ops[i]) {
            struct node *n = ast_node(p, N_UNARY, p->at++);
            n->op = ops[i];
            n->a = parse_unary(p);
            return n->a ? close_node(p, n) : NULL;
        }
    return parse_postfix(p);
}

static struct node *parse_unary(struct parser *p)
{
    if (p->depth >= PARSE_MAX_DEPTH)
        return NULL;
    p->depth++;
    struct node *n = unary(p);
    p->depth--;
    return n;
}

static struct node *parse_binary(struct parser *p, int least)
{
    struct node *left = parse_unary(p);
    while (left && p->at < p->end && tok(p, p->at)->kind == TOK_PUNCT) {
        enum op_kind op = tok(p, p->at)->op;
        int prec = binary_prec(op);
        if (prec == 0 || prec < least)
            break;
        if (++p->chain > PARSE_MAX_CHAIN)
            return NULL;
        struct node *n = ast_node(p, N_BINARY, left->first);
        p->at++;
        n->op = op;
        n->a = left;
        n->b = parse_binary(p, prec + 1);
        if (!n->b)
            return NULL;
        left = close_node(p, n);
    }
    return left;
}

static struct node *assign(struct parser *p)
{
    struct node *left = parse_binary(p, 1);
    if (!left || p->at >= p->end || tok(p, p->at)->kind != TOK_PUNCT)
        return left;
    enum op_kind op = tok(p, p->at)->op;
    if (op == OP_QUEST) {
        struct node *n = ast_node(p, N_COND, left->first);
        p->at++;
        n->a = left;
        n->b = parse_expr(p);
        if (!n->b || !is_op(p, OP_COLON))
            return NULL;
        p->at++;
        n->c = parse_assign(p);
        return n->c ? close_node(p, n) : NULL;
    }
    if (!is_assign(op))
        return left;
    struct node *n = ast_node(p, N_ASSIGN, left->first);
    p->at++;
    n->op = op;
    n->a = left;
    n->b = parse_assign(p);
    return n->b ? close_node(p, n) : NULL;
}

struct node *parse_assign(struct parser *p)
{
    if (p->depth >= PARSE_MAX_DEPTH)
        return NULL;
    p->depth++;
    struct node *n = assign(p);
    p->depth--;
    return n;
}

struct node *parse_expr(struct parser *p)
{
    struct node *left = parse_assign(p);
    while (left && is_op(p, OP_COMMA)) {
        if (++p->chain > PARSE_MAX_CHAIN)
            return NULL;
        struct node *n = ast_node(p, N_COMMA, left->first);
        p->at++;
        n->a = left;
        n->b = parse_assign(p);
        if (!n->b)
            return NULL;
        left = close_node(p, n);
    }
    return left;
}

static struct node *init_list(struct parser *p)
{
    struct node *n = ast_node(p, N_INIT, p->at++);
    struct node **tail = &n->kids;
    while (!is_op(p, OP_RBRACE)) {
        struct node *a = parse_init(p);
        if (!a)
            return NULL;
        *tail = a;
        tail = &a->next;
        if (is_op(p, OP_COMMA))
            p->at++;
        else if (!is_op(p, OP_RBRACE))
            return NULL;
    }
    p->at++;
    return close_node(p, n);
}

struct node *parse_init(struct parser *p)
{
    if (!is_op(p, OP_LBRACE))
        return parse_assign(p);
    if (p->depth >= PARSE_MAX_DEPTH)
        return NULL;
    p->depth++;
    struct node *n = init_list(p);
    p->depth--;
    return n;
}
