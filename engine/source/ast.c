// The tree itself: memory, walking, text.
#include "source/ast_int.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    max_align_t bytes[];
};

void *ast_alloc(struct ast *t, size_t n)
{
    n = (n + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (!t->chunks || t->chunks->used + n > t->chunks->size) {
        size_t size = n > 16384 ? n : 16384;
        struct arena_chunk *c = xcalloc(1, sizeof *c + size);
        c->size = size;
        c->next = t->chunks;
        t->chunks = c;
    }
    void *p = (char *)t->chunks->bytes + t->chunks->used;
    t->chunks->used += n;
    return p;
}

const char *ast_strn(struct ast *t, const char *s, size_t n)
{
    char *copy = ast_alloc(t, n + 1);
    memcpy(copy, s, n);
    return copy;
}

const char *ast_join(struct ast *t, const char *a, const char *b)
{
    struct str s = {0};
    str_addf(&s, "%s %s", a, b);
    const char *joined = ast_strn(t, s.s, s.len);
    str_free(&s);
    return joined;
}

struct node *ast_node(struct parser *p, enum node_kind kind, uint32_t first)
{
    struct node *n = ast_alloc(p->t, sizeof *n);
    n->kind = kind;
    n->first = first;
    n->end = first;
    return n;
}

const char *ast_spelling(struct parser *p, uint32_t tok)
{
    const struct token *t = &p->t->ts->t.v[tok];
    return ast_strn(p->t, p->t->ts->src + t->at, t->len);
}

void ast_adopt(struct node *parent)
{
    struct node *four[] = {parent->a, parent->b, parent->c, parent->d};
    for (size_t i = 0; i < countof(four); i++)
        if (four[i])
            four[i]->up = parent;
    for (struct node *k = parent->kids; k; k = k->next)
        k->up = parent;
}

void ast_free(struct ast *t)
{
    while (t->chunks) {
        struct arena_chunk *next = t->chunks->next;
        free(t->chunks);
        t->chunks = next;
    }
    for (size_t i = 0; i < t->extra.n; i++) {
        tokens_free(t->extra.v[i]);
        free(t->extra.v[i]);
    }
    vec_free(&t->extra);
    vec_free(&t->macros);
    vec_free(&t->typedefs);
}

// All "#define NAME body" lines of the file.
static void read_macros(struct ast *t, const struct tokens *ts)
{
    int level = 0;
    for (uint32_t i = 0; i < ts->t.n; i++) {
        char word[32];
        const struct token *k = &ts->t.v[i];
        if (k->kind != TOK_PP)
            continue;
        const char *directive = token_pp_word(ts, i, word);
        level += str_starts(directive, "if") ? 1 : str_eq(directive, "endif") ? -1 : 0;
        bool undef = str_eq(directive, "undef");
        if (!undef && !str_eq(directive, "define"))
            continue;
        const char *s = strstr(ts->src + k->at, directive) + strlen(directive),
                   *end = ts->src + k->at + k->len;
        while (s < end && isspace((unsigned char)*s))
            s++;
        const char *name = s;
        while (s < end && (isalnum((unsigned char)*s) || *s == '_'))
            s++;
        struct macro m = {.name = ast_strn(t, name, (size_t)(s - name)), .token = i};
        // Function-like ones are not looked into; one whose value depends on a condition has none that is
        // known.
        m.function = s < end && *s == '(';
        m.opaque = m.function || level > 0 || undef || ast_macro(t, m.name);
        while (s < end && isspace((unsigned char)*s))
            s++;
        const char *comment = NULL;
        for (const char *c = s; c + 1 < end && !comment; c++)
            if (c[0] == '/' && (c[1] == '/' || c[1] == '*'))
                comment = c;
        m.body = ast_strn(t, s, (size_t)((comment ? comment : end) - s));
        vec_push(&t->macros, m);
    }
}

const struct macro *ast_macro(const struct ast *t, const char *name)
{
    for (size_t i = t->macros.n; i-- > 0;)
        if (str_eq(t->macros.v[i].name, name))
            return &t->macros.v[i];
    return NULL;
}

bool ast_macro_is_value(const struct ast *t, const char *name, int depth)
{
    const struct macro *m = ast_macro(t, name);
    if (!m || m->function)
        return true;
    for (const char *s = m->body; *s;) {
        size_t n = strspn(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.");
        if (isdigit((unsigned char)*s) || *s == '.') {
            s += n;
        } else if (n) {
            char word[64];
            snprintf(word, sizeof word, "%.*s", (int)(n < 63 ? n : 63), s);
            if (n > 63 || depth > 8 || !ast_macro(t, word) || !ast_macro_is_value(t, word, depth + 1))
                return false;
            s += n;
        } else if (strchr("+-*/%()<>&|^~ \t", *s)) {
            s++;
        } else {
            return false;
        }
    }
    return *m->body != 0;
}

void ast_parse(struct ast *t, const struct tokens *ts, size_t open, bool cxx)
{
    *t = (struct ast){.ts = ts, .cxx = cxx};
    read_macros(t, ts);
    struct parser p = {.t = t, .at = (uint32_t)open, .end = ts->t.v[open].match};
    t->root = ast_node(&p, N_BLOCK, p.at++);
    parse_block(&p, t->root);
    t->root->end = ts->t.v[open].match + 1;
}

struct node *ast_parse_range(struct ast *t, size_t first, size_t end)
{
    struct parser p = {.t = t, .at = (uint32_t)first, .end = (uint32_t)end};
    struct node *n = parse_expr(&p);
    return n && p.at == end ? n : NULL;
}

struct node *ast_parse_expr(struct ast *t, const char *text)
{
    struct tokens *ts = xcalloc(1, sizeof *ts);
    const char *copy = ast_strn(t, text, strlen(text));
    tokens_read(ts, copy, strlen(copy));
    vec_push(&t->extra, ts);
    const struct tokens *old = t->ts;
    t->ts = ts;
    struct node *n = ast_parse_range(t, 0, ts->t.n - 1);
    t->ts = old;
    return n;
}

void node_bytes(const struct ast *t, const struct node *n, size_t *at, size_t *len)
{
    const struct token *a = &t->ts->t.v[n->first],
                       *b = &t->ts->t.v[n->end > n->first ? n->end - 1 : n->first];
    *at = a->at;
    *len = b->at + b->len - a->at;
}

void node_text(const struct ast *t, const struct node *n, struct str *out)
{
    size_t at, len;
    node_bytes(t, n, &at, &len);
    str_addn(out, t->ts->src + at, len);
}

int node_line(const struct ast *t, const struct node *n)
{
    return (int)t->ts->t.v[n->first].line;
}

void node_walk(struct node *n, node_visit *visit, void *user)
{
    if (!n || !visit(user, n))
        return;
    node_walk(n->a, visit, user);
    node_walk(n->b, visit, user);
    node_walk(n->c, visit, user);
    node_walk(n->d, visit, user);
    for (struct node *k = n->kids; k; k = k->next)
        node_walk(k, visit, user);
}

struct seek {
    enum node_kind kind;
    const char *name;
    bool found;
};

static bool seek_kind(void *user, struct node *n)
{
    struct seek *s = user;
    s->found |= n->kind == s->kind;
    return !s->found;
}

bool node_contains(const struct node *n, enum node_kind kind)
{
    struct seek s = {.kind = kind};
    node_walk((struct node *)(uintptr_t)n, seek_kind, &s);
    return s.found;
}

static bool seek_name(void *user, struct node *n)
{
    struct seek *s = user;
    s->found |= (n->kind == N_IDENT && str_eq(n->name, s->name)) || n->kind == N_OPAQUE;
    return !s->found;
}

bool node_uses(const struct node *n, const char *name)
{
    struct seek s = {.name = name};
    node_walk((struct node *)(uintptr_t)n, seek_name, &s);
    return s.found;
}

bool node_same(const struct node *a, const struct node *b)
{
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->op != b->op || a->kind == N_OPAQUE ||
        !(a->name ? str_eq(a->name, b->name) : !b->name))
        return false;
    if (!node_same(a->a, b->a) || !node_same(a->b, b->b) || !node_same(a->c, b->c) || !node_same(a->d, b->d))
        return false;
    const struct node *x = a->kids, *y = b->kids;
    for (; x && y; x = x->next, y = y->next)
        if (!node_same(x, y))
            return false;
    return x == y;
}

const char *node_kind_name(enum node_kind k)
{
    static const char *const names[] = {"block",
                                        "declaration",
                                        "expression",
                                        "for",
                                        "while",
                                        "do",
                                        "if",
                                        "switch",
                                        "case",
                                        "return",
                                        "break",
                                        "continue",
                                        "goto",
                                        "label",
                                        "pragma",
                                        "preprocessor line",
                                        "empty",
                                        "code that was not understood",
                                        "variable",
                                        "name",
                                        "number",
                                        "string",
                                        "character",
                                        "unary",
                                        "postfix",
                                        "binary",
                                        "assignment",
                                        "?:",
                                        "comma",
                                        "call",
                                        "index",
                                        "member",
                                        "cast",
                                        "sizeof",
                                        "compound literal",
                                        "initialiser"};
    return (size_t)k < countof(names) ? names[k] : "?";
}

bool node_is_expr(const struct node *n)
{
    return n->kind >= N_IDENT && n->kind <= N_COMPOUND;
}

bool node_const(const struct ast *t, const struct node *n, int64_t *value)
{
    int64_t a, b;
    char *end;
    switch (n->kind) {
    case N_NUM:
        errno = 0;
        *value = strtoll(n->name, &end, 0);
        return errno == 0 && end != n->name && strspn(end, "uUlL") == strlen(end);
    case N_IDENT: {
        const struct macro *m = ast_macro(t, n->name);
        if (!m || m->opaque)
            return false;
        errno = 0;
        *value = strtoll(m->body, &end, 0);
        while (isspace((unsigned char)*end))
            end++;
        return errno == 0 && end != m->body && !*end;
    }
    case N_UNARY:
        if (n->op != OP_SUB || !node_const(t, n->a, &a))
            return false;
        return !__builtin_sub_overflow((int64_t)0, a, value);
    case N_BINARY:
        if (!node_const(t, n->a, &a) || !node_const(t, n->b, &b))
            return false;
        switch (n->op) {
        case OP_ADD:
            return !__builtin_add_overflow(a, b, value);
        case OP_SUB:
            return !__builtin_sub_overflow(a, b, value);
        case OP_MUL:
            return !__builtin_mul_overflow(a, b, value);
        case OP_DIV:
            return b > 0 && (*value = a / b, true);
        default:
            return false;
        }
    default:
        return false;
    }
}

static bool one_token(const char *s)
{
    if (*s == '(' || isalnum((unsigned char)*s) || *s == '_') {
        int depth = 0;
        for (const char *p = s; *p; p++) {
            depth += *p == '(' || *p == '[';
            depth -= *p == ')' || *p == ']';
            if (depth == 0 && !(isalnum((unsigned char)*p) || *p == '_' || *p == ')' || *p == ']'))
                return false;
        }
        return true;
    }
    return false;
}

// What to put for token i, or NULL: members, labels and what is called are no values.
static const char *replacement(const struct ast *t, uint32_t i, const struct subst *s, size_t ns)
{
    const struct tokens *ts = t->ts;
    bool member = i && (token_op(ts, i - 1, OP_DOT) || token_op(ts, i - 1, OP_ARROW));
    if (ts->t.v[i].kind != TOK_IDENT || member || token_op(ts, i + 1, OP_LPAREN))
        return NULL;
    for (size_t k = 0; k < ns; k++)
        if (token_is(ts, i, s[k].name))
            return s[k].text;
    return NULL;
}

// By tokens and not by nodes, so that code that was not understood is not left out.
void ast_clone(const struct ast *t, const struct node *n, const struct subst *s, size_t ns, struct str *out)
{
    size_t at, len;
    node_bytes(t, n, &at, &len);
    size_t end = at + len;
    for (uint32_t i = n->first; i < n->end; i++) {
        const struct token *k = &t->ts->t.v[i];
        const char *text = replacement(t, i, s, ns);
        if (!text)
            continue;
        str_addn(out, t->ts->src + at, k->at - at);
        str_addf(out, one_token(text) ? "%s" : "(%s)", text);
        at = k->at + k->len;
    }
    str_addn(out, t->ts->src + at, end - at);
}

bool ctype_is_int(const struct ctype *ty)
{
    static const char *const ints[] = {"int",
                                       "long",
                                       "long long",
                                       "unsigned",
                                       "unsigned int",
                                       "unsigned long",
                                       "unsigned long long",
                                       "short",
                                       "size_t",
                                       "ssize_t",
                                       "ptrdiff_t",
                                       "int32_t",
                                       "int64_t",
                                       "uint32_t",
                                       "uint64_t",
                                       "long int",
                                       "char",
                                       "unsigned char",
                                       "uint8_t",
                                       "int8_t",
                                       "uint16_t",
                                       "int16_t",
                                       "intptr_t"};
    for (size_t i = 0; i < countof(ints) && !ty->ptr && !ty->rank; i++)
        if (str_eq(ty->base, ints[i]))
            return true;
    return false;
}

bool ctype_is_float(const struct ctype *ty)
{
    return !ty->ptr && !ty->rank &&
           (str_eq(ty->base, "float") || str_eq(ty->base, "double") || str_eq(ty->base, "_Float16"));
}
