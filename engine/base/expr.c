#include "base/expr.h"

#include "base/dtype.h"
#include "base/str.h"

#include <ctype.h>

enum { TEXT_MAX = 4096, DEPTH_MAX = 100, ARGS_MAX = 16 };

// Binary operators by precedence, loosest first, as in C.
enum op {
    OP_NUM,
    OP_NAME,
    OP_NEG,
    OP_NOT,
    OP_COMPL,
    OP_COND,
    OP_OR,
    OP_AND,
    OP_BOR,
    OP_XOR,
    OP_BAND,
    OP_EQ,
    OP_NE,
    OP_LE,
    OP_GE,
    OP_LT,
    OP_GT,
    OP_SHL,
    OP_SHR,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_MIN,
    OP_MAX,
    OP_CEILDIV,
    OP_ALIGN,
};

static const struct binary {
    char text[3];
    unsigned char level;
    enum op op;
} binaries[] = { // two-character operators stand before their prefixes
    {"||", 1, OP_OR},  {"&&", 2, OP_AND}, {"==", 6, OP_EQ},  {"!=", 6, OP_NE}, {"<=", 7, OP_LE},
    {">=", 7, OP_GE},  {"<<", 8, OP_SHL}, {">>", 8, OP_SHR}, {"|", 3, OP_BOR}, {"^", 4, OP_XOR},
    {"&", 5, OP_BAND}, {"<", 7, OP_LT},   {">", 7, OP_GT},   {"+", 9, OP_ADD}, {"-", 9, OP_SUB},
    {"*", 10, OP_MUL}, {"/", 10, OP_DIV}, {"%", 10, OP_MOD}};

static const struct function {
    const char *name;
    enum op op;
    int least, most;
} functions[] = {{"min", OP_MIN, 2, ARGS_MAX},
                 {"max", OP_MAX, 2, ARGS_MAX},
                 {"ceildiv", OP_CEILDIV, 2, 2},
                 {"align", OP_ALIGN, 2, 2}};

struct node {
    enum op op;
    int a, b, c; // operands: indices of nodes
    int64_t num;
    char *name;
};

struct expr {
    char *text;
    VEC(struct node) nodes;
    int root;
};

struct parser {
    struct expr *x;
    const char *start, *at;
    int depth;
    int column; // of the error
    struct err *e;
};

static int fail(struct parser *p, const char *at, const char *hint, const char *msg)
{
    p->column = (int)(at - p->start) + 1;
    err_set(p->e, ERR_USAGE, hint, "%s", msg);
    if (p->e)
        snprintf(p->e->where, sizeof p->e->where, ":0:%d", p->column);
    return -1;
}

static int node_add(struct parser *p, enum op op, int a, int b)
{
    struct node n = {.op = op, .a = a, .b = b};
    vec_push(&p->x->nodes, n);
    return (int)p->x->nodes.n - 1;
}

static void blanks(struct parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool take(struct parser *p, char c)
{
    blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static int parse_cond(struct parser *p);

static int parse_number(struct parser *p)
{
    const char *start = p->at;
    int base = 10;
    if (start[0] == '0' && (start[1] == 'x' || start[1] == 'X')) {
        base = 16;
        p->at += 2;
    }
    int64_t v = 0;
    const char *digits = p->at;
    for (; base == 16 ? isxdigit((unsigned char)*p->at) : isdigit((unsigned char)*p->at); p->at++) {
        int c = tolower((unsigned char)*p->at), d = c <= '9' ? c - '0' : c - 'a' + 10;
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
            return fail(p, start, "Use a number below 2^63.", "a number that is too large");
    }
    while (p->at > digits && strchr("uUlL", *p->at) && *p->at)
        p->at++;
    if (p->at == digits || isalnum((unsigned char)*p->at) || *p->at == '_' || *p->at == '.')
        return fail(p, start, "Only whole numbers have a place here.", "not an integer");
    int n = node_add(p, OP_NUM, 0, 0);
    p->x->nodes.v[n].num = v;
    return n;
}

static size_t word_length(const char *s)
{
    size_t n = 0;
    if (isalpha((unsigned char)s[0]) || s[0] == '_')
        while (isalnum((unsigned char)s[n]) || s[n] == '_')
            n++;
    return n;
}

// sizeof(float), sizeof(unsigned int), sizeof(f16): what launches of shared memory say.
static int parse_sizeof(struct parser *p)
{
    if (!take(p, '('))
        return fail(p, p->at, "Write sizeof(float).", "expected '(' after sizeof");
    blanks(p);
    const char *at = p->at;
    struct str type = {0};
    for (size_t n; (n = word_length(p->at)) > 0;) {
        if (type.len)
            str_addc(&type, ' ');
        str_addn(&type, p->at, n);
        p->at += n;
        blanks(p);
    }
    int64_t size = 0;
    for (int t = 0; t < DT_COUNT && !size; t++) {
        const struct dtype_info *d = dtype_info((enum dtype)t);
        if (str_eq(d->name, str_c(&type)))
            size = (int64_t)d->size;
        for (int i = 0; d->c_names[i] && !size; i++)
            if (str_eq(d->c_names[i], str_c(&type)))
                size = (int64_t)d->size;
    }
    str_free(&type);
    if (!size)
        return fail(p, at, "Use a type such as float, double, int or f16.", "sizeof of an unknown type");
    if (!take(p, ')'))
        return fail(p, p->at, "Close the bracket.", "expected ')'");
    int n = node_add(p, OP_NUM, 0, 0);
    p->x->nodes.v[n].num = size;
    return n;
}

static int parse_call(struct parser *p, const char *name, size_t len)
{
    const struct function *f = NULL;
    for (size_t i = 0; i < countof(functions); i++)
        if (strlen(functions[i].name) == len && strncmp(functions[i].name, name, len) == 0)
            f = &functions[i];
    if (!f)
        return fail(p, name, "The functions are min, max, ceildiv and align.", "an unknown function");
    int acc = -1, count = 0;
    do {
        int arg = parse_cond(p);
        if (arg < 0)
            return -1;
        acc = count++ ? node_add(p, f->op, acc, arg) : arg;
    } while (count < ARGS_MAX && take(p, ','));
    if (!take(p, ')'))
        return fail(p, p->at, "Close the bracket.", "expected ')' or ','");
    if (count < f->least || count > f->most)
        return fail(p, name, "min and max take two or more, ceildiv and align exactly two.",
                    "a wrong number of arguments");
    return acc;
}

static int parse_primary(struct parser *p)
{
    blanks(p);
    const char *at = p->at;
    if (*at == '(') {
        p->at++;
        int n = parse_cond(p);
        if (n >= 0 && !take(p, ')'))
            return fail(p, p->at, "Close the bracket.", "expected ')'");
        return n;
    }
    if (isdigit((unsigned char)*at))
        return parse_number(p);
    size_t len = word_length(at);
    if (!len)
        return fail(p, at, "Write a number, a name, or an expression in brackets.",
                    *at ? "expected a number or a name" : "the expression ends too early");
    p->at += len;
    if (len == 6 && strncmp(at, "sizeof", 6) == 0)
        return parse_sizeof(p);
    if (take(p, '('))
        return parse_call(p, at, len);
    int n = node_add(p, OP_NAME, 0, 0);
    p->x->nodes.v[n].name = xstrndup(at, len);
    return n;
}

static int parse_unary(struct parser *p)
{
    blanks(p);
    static const struct {
        char c;
        enum op op;
    } unary[] = {{'-', OP_NEG}, {'!', OP_NOT}, {'~', OP_COMPL}};
    if (++p->depth > DEPTH_MAX)
        return fail(p, p->at, "Write it more simply.", "brackets or signs nested too deeply");
    int r = -2;
    for (size_t i = 0; i < countof(unary); i++)
        if (*p->at == unary[i].c) {
            p->at++;
            int a = parse_unary(p);
            r = a < 0 ? -1 : node_add(p, unary[i].op, a, 0);
            break;
        }
    if (r == -2 && *p->at == '+') {
        p->at++;
        r = parse_unary(p);
    }
    if (r == -2)
        r = parse_primary(p);
    p->depth--;
    return r;
}

static const struct binary *peek_binary(struct parser *p)
{
    blanks(p);
    for (size_t i = 0; i < countof(binaries); i++)
        if (str_starts(p->at, binaries[i].text))
            return &binaries[i];
    return NULL;
}

static int parse_binary(struct parser *p, int level)
{
    int left = parse_unary(p);
    for (const struct binary *b; left >= 0 && (b = peek_binary(p)) && b->level >= level;) {
        p->at += strlen(b->text);
        int right = parse_binary(p, b->level + 1);
        left = right < 0 ? -1 : node_add(p, b->op, left, right);
    }
    return left;
}

static int parse_cond(struct parser *p)
{
    if (++p->depth > DEPTH_MAX)
        return fail(p, p->at, "Write it more simply.", "brackets or signs nested too deeply");
    int test = parse_binary(p, 1), r = test;
    if (test >= 0 && take(p, '?')) {
        int yes = parse_cond(p), no = -1;
        if (yes >= 0 && !take(p, ':'))
            return fail(p, p->at, "Write condition ? a : b.", "expected ':'");
        if (yes >= 0)
            no = parse_cond(p);
        r = -1;
        if (no >= 0) {
            r = node_add(p, OP_COND, test, yes);
            p->x->nodes.v[r].c = no;
        }
    }
    p->depth--;
    return r;
}

int expr_parse(const char *text, struct expr **out, int *column, struct err *e)
{
    struct expr *x = xcalloc(1, sizeof *x);
    struct parser p = {.x = x, .start = text, .at = text, .e = e};
    x->text = xstrdup(text);
    if (strlen(text) > TEXT_MAX)
        x->root = fail(&p, text, "Write it more simply.", "an expression of over 4096 bytes");
    else
        x->root = parse_cond(&p);
    blanks(&p);
    if (x->root >= 0 && *p.at)
        x->root = fail(&p, p.at, "Put an operator here, or remove the rest.",
                       "expected an operator or the end of the expression");
    if (column)
        *column = p.column;
    *out = x;
    if (x->root >= 0)
        return 0;
    expr_free(x);
    *out = NULL;
    return -1;
}

void expr_free(struct expr *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->nodes.n; i++)
        free(x->nodes.v[i].name);
    vec_free(&x->nodes);
    free(x->text);
    free(x);
}

const char *expr_text(const struct expr *x)
{
    return x->text;
}

void expr_names(const struct expr *x, void (*visit)(void *user, const char *name), void *user)
{
    for (size_t i = 0; i < x->nodes.n; i++)
        if (x->nodes.v[i].op == OP_NAME)
            visit(user, x->nodes.v[i].name);
}

struct eval {
    const struct expr *x;
    expr_lookup *lookup;
    void *user;
    struct err *e;
};

static int eval_fail(const struct eval *v, const char *msg)
{
    return err_set(v->e, ERR_USAGE, "Correct the expression or the values it is given.", "%s in '%s'", msg,
                   v->x->text);
}

static int eval_divide(const struct eval *v, enum op op, int64_t a, int64_t b, int64_t *r)
{
    if (b == 0)
        return eval_fail(v, "a division by zero");
    if (a == INT64_MIN && b == -1)
        return eval_fail(v, "an overflow");
    if (op == OP_DIV || op == OP_MOD) {
        *r = op == OP_DIV ? a / b : a % b;
        return 0;
    }
    if (b <= 0) // a zero was refused above
        return eval_fail(v, "ceildiv or align by a negative number");
    int64_t up = a / b + (a % b > 0);
    if (op == OP_CEILDIV)
        *r = up;
    else if (__builtin_mul_overflow(up, b, r))
        return eval_fail(v, "an overflow");
    return 0;
}

static int eval_shift(const struct eval *v, enum op op, int64_t a, int64_t b, int64_t *r)
{
    if (b < 0 || b > 62)
        return eval_fail(v, "a shift by less than 0 or more than 62");
    if (op == OP_SHR)
        *r = a >> b;
    else if (__builtin_mul_overflow(a, (int64_t)1 << b, r))
        return eval_fail(v, "an overflow");
    return 0;
}

static int eval_binary(const struct eval *v, enum op op, int64_t a, int64_t b, int64_t *r)
{
    switch (op) {
    case OP_ADD:
        return __builtin_add_overflow(a, b, r) ? eval_fail(v, "an overflow") : 0;
    case OP_SUB:
        return __builtin_sub_overflow(a, b, r) ? eval_fail(v, "an overflow") : 0;
    case OP_MUL:
        return __builtin_mul_overflow(a, b, r) ? eval_fail(v, "an overflow") : 0;
    case OP_SHL:
    case OP_SHR:
        return eval_shift(v, op, a, b, r);
    case OP_DIV:
    case OP_MOD:
    case OP_CEILDIV:
    case OP_ALIGN:
        return eval_divide(v, op, a, b, r);
    default:
        *r = op == OP_BOR    ? (a | b)
             : op == OP_XOR  ? (a ^ b)
             : op == OP_BAND ? (a & b)
             : op == OP_EQ   ? a == b
             : op == OP_NE   ? a != b
             : op == OP_LE   ? a <= b
             : op == OP_GE   ? a >= b
             : op == OP_LT   ? a < b
             : op == OP_GT   ? a > b
             : op == OP_MIN  ? (a < b ? a : b)
                             : (a > b ? a : b);
        return 0;
    }
}

static int eval_node(const struct eval *v, int i, int64_t *r)
{
    const struct node *n = &v->x->nodes.v[i];
    int64_t a = 0, b = 0;
    if (n->op == OP_NUM) {
        *r = n->num;
        return 0;
    }
    if (n->op == OP_NAME) {
        if (v->lookup && v->lookup(v->user, n->name, r))
            return 0;
        return err_set(v->e, ERR_USAGE, "Use a name that is declared as a dim.", "unknown name '%s' in '%s'",
                       n->name, v->x->text);
    }
    if (eval_node(v, n->a, &a) < 0)
        return -1;
    switch (n->op) {
    case OP_NEG:
        return eval_binary(v, OP_SUB, 0, a, r);
    case OP_NOT:
        *r = !a;
        return 0;
    case OP_COMPL:
        *r = ~a;
        return 0;
    case OP_COND:
        return eval_node(v, a ? n->b : n->c, r);
    case OP_OR:
    case OP_AND: // the right side is not looked at where the left decides
        *r = n->op == OP_OR;
        if ((a != 0) == (n->op == OP_OR))
            return 0;
        if (eval_node(v, n->b, &b) < 0)
            return -1;
        *r = b != 0;
        return 0;
    default:
        if (eval_node(v, n->b, &b) < 0)
            return -1;
        return eval_binary(v, n->op, a, b, r);
    }
}

int expr_eval(const struct expr *x, expr_lookup *lookup, void *user, int64_t *value, struct err *e)
{
    struct eval v = {x, lookup, user, e};
    return eval_node(&v, x->root, value);
}
