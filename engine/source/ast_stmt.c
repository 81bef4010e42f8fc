// Statements and declarations. What is not understood becomes N_OPAQUE up to its semicolon or closing brace.
#include "source/ast_int.h"

static const struct token *tok(const struct parser *p, uint32_t i)
{
    return &p->t->ts->t.v[i < p->end ? i : p->end];
}

static bool is_op(const struct parser *p, enum op_kind op)
{
    return p->at < p->end && tok(p, p->at)->kind == TOK_PUNCT && tok(p, p->at)->op == op;
}

static bool is_word(const struct parser *p, const char *w)
{
    return p->at < p->end && tok(p, p->at)->kind == TOK_IDENT && token_is(p->t->ts, p->at, w);
}

static bool in_list(const struct parser *p, uint32_t i, const char *const *words)
{
    for (; *words; words++)
        if (token_is(p->t->ts, i, *words))
            return true;
    return false;
}

static const char *const base_words[] = {"void",   "char",   "short",    "int",   "long", "float",
                                         "double", "signed", "unsigned", "_Bool", "bool", "_Float16",
                                         "__bf16", "__half", "half",     NULL};
static const char *const qualifier_words[] = {"const",        "volatile", "restrict",  "__restrict",
                                              "__restrict__", "register", "static",    "extern",
                                              "inline",       "auto",     "constexpr", NULL};
static const char *const type_names[] = {
    "size_t",  "ssize_t", "ptrdiff_t", "intptr_t",      "uintptr_t",   "int8_t",         "int16_t", "int32_t",
    "int64_t", "uint8_t", "uint16_t",  "uint32_t",      "uint64_t",    "struct",         "union",   "enum",
    "real",    "__m128",  "__m256",    "__m512",        "__m128d",     "__m256d",        "__m512d", "__m128i",
    "__m256i", "__m512i", "uint2",     "uint4",         "int2",        "int4",           "float2",  "float4",
    "double2", "__half2", "half2",     "__nv_bfloat16", "nv_bfloat16", "__nv_bfloat162", NULL};
// "__align__(16)", "alignas(16)": part of a declaration that says nothing about the type.
static const char *const align_words[] = {"__align__", "alignas", "_Alignas", NULL};
static const char *const statement_words[] = {"return", "if",   "for",     "while", "do",
                                              "switch", "case", "default", "break", "continue",
                                              "goto",   "else", "sizeof",  NULL};

bool ast_keyword(const struct parser *p, uint32_t i)
{
    static const char *const others[] = {"struct", "union",   "enum",  "typedef",
                                         "asm",    "__asm__", "__asm", NULL};
    return in_list(p, i, statement_words) || in_list(p, i, base_words) || in_list(p, i, qualifier_words) ||
           in_list(p, i, others);
}

bool starts_type(struct parser *p, uint32_t i)
{
    if (i >= p->end || tok(p, i)->kind != TOK_IDENT || in_list(p, i, statement_words))
        return false;
    if (in_list(p, i, base_words) || in_list(p, i, qualifier_words) || in_list(p, i, type_names) ||
        in_list(p, i, align_words))
        return true;
    // "name name", "name *name =", "name *name;", "name *name,": a typedef name of the file.
    const struct token *next = tok(p, i + 1);
    if (i + 1 < p->end && next->kind == TOK_IDENT && !in_list(p, i + 1, statement_words))
        return true;
    uint32_t k = i + 1;
    while (k < p->end && token_op(p->t->ts, k, OP_MUL))
        k++;
    return k > i + 1 && k + 1 < p->end && tok(p, k)->kind == TOK_IDENT &&
           (token_op(p->t->ts, k + 1, OP_ASSIGN) || token_op(p->t->ts, k + 1, OP_SEMI));
}

static void qualifier(struct parser *p, struct ctype *ty)
{
    const struct {
        const char *word;
        bool *flag;
    } flags[] = {{"const", &ty->const_base},      {"volatile", &ty->is_volatile}, {"static", &ty->is_static},
                 {"extern", &ty->is_extern},      {"register", &ty->is_register}, {"inline", &ty->is_inline},
                 {"constexpr", &ty->is_constexpr}};
    for (size_t i = 0; i < countof(flags); i++)
        if (is_word(p, flags[i].word))
            *flags[i].flag = true;
    p->at++;
}

bool parse_type(struct parser *p, struct ctype *ty)
{
    struct str base = {0};
    bool named = false;
    while (p->at < p->end && tok(p, p->at)->kind == TOK_IDENT) {
        if (in_list(p, p->at, qualifier_words)) {
            qualifier(p, ty);
            continue;
        }
        if (in_list(p, p->at, align_words) && token_op(p->t->ts, p->at + 1, OP_LPAREN)) {
            p->at = tok(p, p->at + 1)->match + 1;
            continue;
        }
        bool builtin = in_list(p, p->at, base_words);
        if (!builtin && named)
            break;
        if (is_word(p, "__shared__")) { // kept with the type: it is no private array
            str_addf(&base, "%s__shared__", base.len ? " " : "");
            p->at++;
            continue;
        }
        str_addf(&base, "%s%s", base.len ? " " : "", ast_spelling(p, p->at));
        bool tagged = is_word(p, "struct") || is_word(p, "union") || is_word(p, "enum");
        p->at++;
        if (tagged && p->at < p->end && tok(p, p->at)->kind == TOK_IDENT)
            str_addf(&base, " %s", ast_spelling(p, p->at++));
        named = true;
    }
    if (base.len)
        ty->base = ast_strn(p->t, base.s, base.len);
    str_free(&base);
    return named;
}

bool parse_declarator(struct parser *p, struct ctype *ty, const char **name)
{
    *name = NULL;
    while (is_op(p, OP_MUL)) {
        p->at++;
        unsigned bit = 1u << ty->ptr++;
        for (; p->at < p->end && tok(p, p->at)->kind == TOK_IDENT && in_list(p, p->at, qualifier_words);
             p->at++) {
            if (is_word(p, "const"))
                ty->const_ptr |= bit;
            else
                ty->restrict_ptr |= bit;
        }
    }
    if (p->at < p->end && tok(p, p->at)->kind == TOK_IDENT)
        *name = ast_spelling(p, p->at++);
    else if (is_op(p, OP_LPAREN))
        return false; // pointers to arrays and functions
    while (is_op(p, OP_LBRACK)) {
        if (ty->rank == TYPE_MAX_RANK)
            return false;
        p->at++;
        while (p->at < p->end && tok(p, p->at)->kind == TOK_IDENT && in_list(p, p->at, qualifier_words))
            p->at++;
        struct node *dim = NULL;
        if (!is_op(p, OP_RBRACK) && !(dim = parse_assign(p)))
            return false;
        ty->dim[ty->rank++] = dim;
        if (!is_op(p, OP_RBRACK))
            return false;
        p->at++;
    }
    return true;
}

static struct node *opaque(struct parser *p, uint32_t first, const char *why)
{
    struct node *n = ast_node(p, N_OPAQUE, first);
    p->at = first;
    bool is_do = is_word(p, "do");
    while (p->at < p->end) {
        const struct token *t = tok(p, p->at);
        if (t->kind == TOK_PUNCT && (t->op == OP_LBRACE || t->op == OP_LPAREN || t->op == OP_LBRACK) &&
            t->match > p->at) {
            bool block = t->op == OP_LBRACE;
            p->at = t->match + 1;
            if (block && !is_op(p, OP_SEMI) && !(is_do && is_word(p, "while")))
                break;
            continue;
        }
        p->at++;
        if (t->kind == TOK_PUNCT && t->op == OP_SEMI)
            break;
    }
    if (p->at == first)
        p->at++;
    n->end = p->at;
    n->why = why;
    return n;
}

static struct node *parse_decl(struct parser *p)
{
    uint32_t first = p->at;
    struct node *n = ast_node(p, N_DECL, first), **tail = &n->kids;
    struct ctype base = {0};
    if (!parse_type(p, &base))
        return NULL;
    for (;;) {
        struct node *v = ast_node(p, N_VAR, p->at);
        v->type = ast_alloc(p->t, sizeof *v->type);
        *v->type = base;
        if (!parse_declarator(p, v->type, &v->name) || !v->name)
            return NULL;
        if (is_op(p, OP_ASSIGN)) {
            p->at++;
            v->a = parse_init(p);
            if (!v->a)
                return NULL;
        }
        v->end = p->at;
        ast_adopt(v);
        *tail = v;
        tail = &v->next;
        if (is_op(p, OP_COMMA)) {
            p->at++;
            continue;
        }
        if (!is_op(p, OP_SEMI))
            return NULL;
        p->at++;
        n->end = p->at;
        ast_adopt(n);
        return n;
    }
}

static struct node *finish(struct parser *p, struct node *n)
{
    n->end = p->at;
    ast_adopt(n);
    return n;
}

static bool expect(struct parser *p, enum op_kind op)
{
    if (!is_op(p, op))
        return false;
    p->at++;
    return true;
}

static struct node *parse_pp(struct parser *p)
{
    char word[32];
    const char *w = token_pp_word(p->t->ts, p->at, word);
    struct node *n = ast_node(p, str_eq(w, "pragma") ? N_PRAGMA : N_PP, p->at);
    n->op = str_starts(w, "if") ? (enum op_kind)1 : OP_NONE;
    // From #else on everything to #endif is not parsed.
    uint32_t match = tok(p, p->at)->match;
    bool other = str_eq(w, "else") || str_starts(w, "elif");
    p->at++;
    for (; other && match > n->first && p->at <= match && p->at < p->end;)
        p->at++;
    // What #if 0 hides.
    while (p->at < p->end && tok(p, p->at)->inactive)
        p->at++;
    return finish(p, n);
}

// The statement that a for, while, do or if holds. Pragmas before it belong to it: both stand in a block
// without braces, so that nobody takes the statement for one that comes after.
static struct node *parse_body(struct parser *p)
{
    uint32_t first = p->at;
    char word[32];
    if (p->at >= p->end)
        return NULL;
    if (tok(p, first)->kind != TOK_PP)
        return token_op(p->t->ts, first + 1, OP_COLON) ? NULL : parse_statement(p);
    struct node *n = ast_node(p, N_BLOCK, first), **tail = &n->kids;
    while (p->at < p->end && tok(p, p->at)->kind == TOK_PP) {
        if (!str_eq(token_pp_word(p->t->ts, p->at, word), "pragma"))
            return NULL;
        *tail = parse_pp(p);
        tail = &(*tail)->next;
    }
    *tail = parse_body(p);
    return *tail ? finish(p, n) : NULL;
}

static struct node *parse_for(struct parser *p)
{
    struct node *n = ast_node(p, N_FOR, p->at++);
    if (!expect(p, OP_LPAREN))
        return NULL;
    if (starts_type(p, p->at)) {
        n->a = parse_decl(p);
        if (!n->a)
            return NULL;
    } else if (!is_op(p, OP_SEMI)) {
        if (!(n->a = parse_expr(p)) || !expect(p, OP_SEMI))
            return NULL;
    } else {
        p->at++;
    }
    if (!is_op(p, OP_SEMI) && !(n->b = parse_expr(p)))
        return NULL;
    if (!expect(p, OP_SEMI))
        return NULL;
    if (!is_op(p, OP_RPAREN) && !(n->c = parse_expr(p)))
        return NULL;
    if (!expect(p, OP_RPAREN))
        return NULL;
    n->d = parse_body(p);
    return n->d ? finish(p, n) : NULL;
}

static struct node *parse_while(struct parser *p, enum node_kind kind)
{
    struct node *n = ast_node(p, kind, p->at++);
    if (!expect(p, OP_LPAREN) || !(n->a = parse_expr(p)) || !expect(p, OP_RPAREN))
        return NULL;
    if (kind == N_IF) {
        if (!(n->b = parse_body(p)))
            return NULL;
        if (is_word(p, "else")) {
            p->at++;
            if (!(n->c = parse_body(p)))
                return NULL;
        }
    } else if (!(n->d = parse_body(p))) {
        return NULL;
    }
    return finish(p, n);
}

static struct node *parse_do(struct parser *p)
{
    struct node *n = ast_node(p, N_DO, p->at++);
    n->d = parse_body(p);
    if (!n->d || !is_word(p, "while"))
        return NULL;
    p->at++;
    if (!expect(p, OP_LPAREN) || !(n->a = parse_expr(p)) || !expect(p, OP_RPAREN) || !expect(p, OP_SEMI))
        return NULL;
    return finish(p, n);
}

static struct node *parse_jump(struct parser *p)
{
    static const struct {
        const char *word;
        enum node_kind kind;
    } jumps[] = {{"return", N_RETURN}, {"break", N_BREAK}, {"continue", N_CONTINUE}, {"goto", N_GOTO}};
    for (size_t i = 0; i < countof(jumps); i++) {
        if (!is_word(p, jumps[i].word))
            continue;
        struct node *n = ast_node(p, jumps[i].kind, p->at++);
        if (n->kind == N_GOTO && p->at < p->end)
            n->name = ast_spelling(p, p->at++);
        else if (n->kind == N_RETURN && !is_op(p, OP_SEMI) && !(n->a = parse_expr(p)))
            return NULL;
        return expect(p, OP_SEMI) ? finish(p, n) : NULL;
    }
    return NULL;
}

static struct node *parse_known(struct parser *p)
{
    uint32_t first = p->at;
    if (tok(p, first)->kind == TOK_PP)
        return parse_pp(p);
    if (is_op(p, OP_SEMI)) {
        struct node *n = ast_node(p, N_EMPTY, p->at++);
        return finish(p, n);
    }
    if (is_op(p, OP_LBRACE)) {
        struct node *n = ast_node(p, N_BLOCK, p->at);
        uint32_t close = tok(p, p->at)->match, end = p->end;
        if (close <= first)
            return NULL;
        p->at++;
        p->end = close;
        parse_block(p, n);
        p->end = end;
        p->at = close + 1;
        return finish(p, n);
    }
    if (is_word(p, "for"))
        return parse_for(p);
    if (is_word(p, "while"))
        return parse_while(p, N_WHILE);
    if (is_word(p, "if"))
        return parse_while(p, N_IF);
    if (is_word(p, "do"))
        return parse_do(p);
    struct node *jump = parse_jump(p);
    if (jump)
        return jump;
    if (is_word(p, "switch") || is_word(p, "case") || is_word(p, "default"))
        return NULL;
    if (is_word(p, "else"))
        return NULL;
    if (tok(p, p->at)->kind == TOK_IDENT && token_op(p->t->ts, p->at + 1, OP_COLON)) {
        struct node *n = ast_node(p, N_LABEL, p->at);
        n->name = ast_spelling(p, p->at);
        p->at += 2;
        return finish(p, n);
    }
    if (starts_type(p, p->at)) {
        struct node *n = parse_decl(p);
        if (n)
            return n;
        p->at = first;
    }
    struct node *n = ast_node(p, N_EXPR, first);
    n->a = parse_expr(p);
    return n->a && expect(p, OP_SEMI) ? finish(p, n) : NULL;
}

struct node *parse_statement(struct parser *p)
{
    uint32_t first = p->at;
    int depth = p->depth++, chain = p->chain;
    p->chain = 0;
    struct node *n = depth < PARSE_MAX_DEPTH ? parse_known(p) : NULL;
    p->depth = depth;
    p->chain = chain;
    if (n)
        return n;
    p->t->opaque++;
    return opaque(p, first, "a statement that the parser does not know");
}

void parse_block(struct parser *p, struct node *block)
{
    struct node **tail = &block->kids;
    while (p->at < p->end) {
        struct node *n = parse_statement(p);
        *tail = n;
        tail = &n->next;
    }
    ast_adopt(block);
}

void ctype_print(struct ast *t, const struct ctype *ty, const char *name, struct str *out)
{
    str_addf(out, "%s%s", ty->const_base ? "const " : "", ty->base ? ty->base : "int");
    if (ty->ptr || *name)
        str_addc(out, ' ');
    for (int i = 0; i < ty->ptr; i++) {
        str_addc(out, '*');
        if (ty->const_ptr & 1u << i)
            str_add(out, "const ");
        if (ty->restrict_ptr & 1u << i)
            str_add(out, "restrict ");
    }
    str_add(out, name);
    for (int i = 0; i < ty->rank; i++) {
        str_addc(out, '[');
        if (ty->dim[i])
            node_text(t, ty->dim[i], out);
        str_addc(out, ']');
    }
}
