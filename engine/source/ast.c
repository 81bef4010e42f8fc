// The tree itself: memory, walking, text.
#include "source/ast_int.h"

#include <ctype.h>

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

// "#define NAME body" lines before the function, the last one of a name.
static void read_macros(struct ast *t, const struct tokens *ts, size_t open)
{
    for (uint32_t i = 0; i < ts->t.n; i++) {
        char word[32];
        const struct token *k = &ts->t.v[i];
        if (k->kind != TOK_PP || k->inactive || strcmp(token_pp_word(ts, i, word), "define") != 0)
            continue;
        (void)open;
        const char *s = strstr(ts->src + k->at, "define") + 6, *end = ts->src + k->at + k->len;
        while (s < end && isspace((unsigned char)*s))
            s++;
        const char *name = s;
        while (s < end && (isalnum((unsigned char)*s) || *s == '_'))
            s++;
        struct macro m = {.name = ast_strn(t, name, (size_t)(s - name)), .nparams = -1, .token = i};
        m.opaque = s < end && *s == '('; // function-like ones are not looked into
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

void ast_parse(struct ast *t, const struct tokens *ts, size_t open, bool cxx)
{
    *t = (struct ast){.ts = ts, .cxx = cxx};
    read_macros(t, ts, open);
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
        *value = strtoll(n->name, &end, 0);
        return end != n->name && strspn(end, "uUlL") == strlen(end);
    case N_IDENT: {
        const struct macro *m = ast_macro(t, n->name);
        if (!m || m->opaque || m->nparams >= 0)
            return false;
        *value = strtoll(m->body, &end, 0);
        while (isspace((unsigned char)*end))
            end++;
        return end != m->body && !*end;
    }
    case N_UNARY:
        if (n->op != OP_SUB || !node_const(t, n->a, &a))
            return false;
        *value = -a;
        return true;
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
            return b != 0 && (*value = a / b, true);
        default:
            return false;
        }
    default:
        return false;
    }
}

// Replacements by position, so that comments and layout stay.
struct place {
    size_t at, len;
    const char *text;
};
struct cloning {
    const struct ast *t;
    const struct subst *s;
    size_t ns;
    VEC(struct place) places;
};

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

static bool collect_places(void *user, struct node *n)
{
    struct cloning *c = user;
    if (n->kind != N_IDENT)
        return true;
    for (size_t i = 0; i < c->ns; i++)
        if (str_eq(c->s[i].name, n->name)) {
            const struct token *t = &c->t->ts->t.v[n->paren ? n->first + 1 : n->first];
            vec_push(&c->places, (struct place){t->at, t->len, c->s[i].text});
        }
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

void ast_clone(const struct ast *t, const struct node *n, const struct subst *s, size_t ns, struct str *out)
{
    struct cloning c = {t, s, ns, {0}};
    size_t at, len;
    node_bytes(t, n, &at, &len);
    node_walk((struct node *)(uintptr_t)n, collect_places, &c);
    if (c.places.n)
        qsort(c.places.v, c.places.n, sizeof *c.places.v, by_place);
    size_t end = at + len;
    for (size_t i = 0; i < c.places.n; i++) {
        bool bare = one_token(c.places.v[i].text);
        str_addn(out, t->ts->src + at, c.places.v[i].at - at);
        str_addf(out, bare ? "%s" : "(%s)", c.places.v[i].text);
        at = c.places.v[i].at + c.places.v[i].len;
    }
    str_addn(out, t->ts->src + at, end - at);
    vec_free(&c.places);
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
