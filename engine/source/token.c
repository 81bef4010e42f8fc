// The scanner. One pass over the bytes with a class table; brackets and #if branches are matched in a second
// pass over the tokens (token_match.c).
#include "source/token.h"
#include "source/token_match.h"

#include <string.h>

// clang-format off
enum { O, S, N, I, D, Q, P }; // other, space, newline, name, digit, quote, punctuation
static const unsigned char ascii_class[128] = {
    O, O, O, O, O, O, O, O, O, S, N, S, S, S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O,
    S, P, Q, P, I, P, P, Q, P, P, P, P, P, P, P, P, D, D, D, D, D, D, D, D, D, D, P, P, P, P, P, P,
    O, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, P, O, P, P, I,
    O, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, P, P, P, P, O,
};
// clang-format on
enum { C_OTHER = O, C_SPACE = S, C_NL = N, C_ID = I, C_DIGIT = D, C_QUOTE = Q, C_PUNCT = P };

// Bytes over 127 are UTF-8 in names: one token, never looked into.
static inline unsigned class_at(char c)
{
    unsigned char u = (unsigned char)c;
    return u < 128 ? ascii_class[u] : C_ID;
}

static const char *const op_names[OP_COUNT] = {
    [OP_NONE] = "",
    [OP_LPAREN] = "(",
    [OP_RPAREN] = ")",
    [OP_LBRACK] = "[",
    [OP_RBRACK] = "]",
    [OP_LBRACE] = "{",
    [OP_RBRACE] = "}",
    [OP_SEMI] = ";",
    [OP_COMMA] = ",",
    [OP_DOT] = ".",
    [OP_ARROW] = "->",
    [OP_ELLIPSIS] = "...",
    [OP_SCOPE] = "::",
    [OP_COLON] = ":",
    [OP_QUEST] = "?",
    [OP_ASSIGN] = "=",
    [OP_ADD_ASSIGN] = "+=",
    [OP_SUB_ASSIGN] = "-=",
    [OP_MUL_ASSIGN] = "*=",
    [OP_DIV_ASSIGN] = "/=",
    [OP_MOD_ASSIGN] = "%=",
    [OP_AND_ASSIGN] = "&=",
    [OP_OR_ASSIGN] = "|=",
    [OP_XOR_ASSIGN] = "^=",
    [OP_SHL_ASSIGN] = "<<=",
    [OP_SHR_ASSIGN] = ">>=",
    [OP_INC] = "++",
    [OP_DEC] = "--",
    [OP_ADD] = "+",
    [OP_SUB] = "-",
    [OP_MUL] = "*",
    [OP_DIV] = "/",
    [OP_MOD] = "%",
    [OP_AND] = "&",
    [OP_OR] = "|",
    [OP_XOR] = "^",
    [OP_NOT] = "!",
    [OP_COMPL] = "~",
    [OP_SHL] = "<<",
    [OP_SHR] = ">>",
    [OP_LT] = "<",
    [OP_GT] = ">",
    [OP_LE] = "<=",
    [OP_GE] = ">=",
    [OP_EQ] = "==",
    [OP_NE] = "!=",
    [OP_LAND] = "&&",
    [OP_LOR] = "||",
    [OP_HASH] = "#",
    [OP_HASHHASH] = "##",
    [OP_LAUNCH_OPEN] = "<<<",
    [OP_LAUNCH_CLOSE] = ">>>",
};

const char *op_text(enum op_kind op)
{
    return (unsigned)op < OP_COUNT ? op_names[op] : "";
}

struct scan {
    struct tokens *ts;
    const char *p, *end, *src;
    const char *lead;       // where the trivia before the next token began
    const char *line_start; // of the line p is on
    uint32_t line;
    bool fresh_line; // nothing but trivia stood on this line so far: '#' begins a directive
};

// Bytes of a line splice at p (backslash, newline), 0 where there is none.
static size_t splice_len(const char *p, const char *end)
{
    if (p >= end || *p != '\\')
        return 0;
    if (p + 1 < end && p[1] == '\n')
        return 2;
    return p + 2 < end && p[1] == '\r' && p[2] == '\n' ? 3 : 0;
}

// Moves over n bytes that may hold newlines, keeping the line count.
static void advance_to(struct scan *s, const char *to)
{
    for (const char *nl = s->p; nl < to && (nl = memchr(nl, '\n', (size_t)(to - nl)));) {
        s->line++;
        s->line_start = ++nl;
    }
    s->p = to;
}

static const char *end_of_block_comment(const char *p, const char *end)
{
    for (const char *q = p + 2; q + 1 < end; q++) {
        q = memchr(q, '*', (size_t)(end - q - 1));
        if (!q)
            return NULL;
        if (q[1] == '/')
            return q + 2;
    }
    return NULL;
}

static const char *end_of_line_comment(const char *p, const char *end)
{
    for (;;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            return end;
        bool cr = nl > p && nl[-1] == '\r';
        const char *last = nl - (cr ? 1 : 0);
        if (last > p && last[-1] == '\\') {
            p = nl + 1;
            continue;
        }
        return last;
    }
}

static void add_comment(struct scan *s, const char *to)
{
    struct comment c = {.at = (uint32_t)(s->p - s->src),
                        .len = (uint32_t)(to - s->p),
                        .line = s->line,
                        .col = (uint32_t)(s->p - s->line_start) + 1};
    vec_push(&s->ts->comments, c);
    advance_to(s, to);
}

// Skips white space, comments and splices.
static void skip_trivia(struct scan *s)
{
    while (s->p < s->end) {
        unsigned char c = (unsigned char)*s->p;
        if (class_at((char)c) == C_SPACE) {
            s->p++;
        } else if (c == '\n') {
            s->line++;
            s->line_start = ++s->p;
            s->fresh_line = true;
        } else if (c == '/' && s->p + 1 < s->end && s->p[1] == '/') {
            add_comment(s, end_of_line_comment(s->p, s->end));
        } else if (c == '/' && s->p + 1 < s->end && s->p[1] == '*') {
            const char *to = end_of_block_comment(s->p, s->end);
            if (!to)
                return; // unfinished: a TOK_OTHER to the end
            add_comment(s, to);
        } else {
            size_t n = splice_len(s->p, s->end);
            if (!n)
                return;
            advance_to(s, s->p + n);
        }
    }
}

static const char *end_of_ident(const char *p, const char *end)
{
    while (p < end) {
        unsigned char k = class_at(*p);
        if (k == C_ID || k == C_DIGIT) {
            p++;
            continue;
        }
        size_t n = splice_len(p, end);
        if (!n || p + n >= end)
            break;
        k = class_at(p[n]);
        if (k != C_ID && k != C_DIGIT)
            break;
        p += n;
    }
    return p;
}

// A preprocessing number: digits, letters, '.', exponents with sign, digit separators between digits.
static const char *end_of_number(const char *p, const char *end)
{
    while (p < end) {
        char c = *p;
        unsigned char k = class_at(c);
        if ((c == 'e' || c == 'E' || c == 'p' || c == 'P') && p + 1 < end && (p[1] == '+' || p[1] == '-')) {
            p += 2;
        } else if (k == C_DIGIT || k == C_ID || c == '.') {
            p++;
        } else if (c == '\'' && p + 1 < end && p[-1] != '\'') {
            unsigned char next = class_at(p[1]);
            if (next != C_DIGIT && next != C_ID)
                break;
            p += 2;
        } else {
            break;
        }
    }
    return p;
}

// A string or character constant from its quote; NULL where the line ends first.
static const char *end_of_quoted(const char *p, const char *end)
{
    char quote = *p++;
    while (p < end && *p != quote && *p != '\n') {
        size_t n = splice_len(p, end);
        if (n)
            p += n;
        else
            p += *p == '\\' && p + 1 < end ? 2 : 1;
    }
    return p < end && *p == quote ? p + 1 : NULL;
}

// R"delim( ... )delim" from its quote; NULL where it never ends or the delimiter is none.
static const char *end_of_raw(const char *p, const char *end)
{
    const char *d = ++p;
    while (p < end && p - d <= 16 && *p != '(' && *p != ')' && *p != '\\' && *p != '"' && *p != '\n')
        p++;
    size_t n = (size_t)(p - d);
    if (p >= end || *p != '(' || n > 16)
        return NULL;
    for (p++; p < end && (p = memchr(p, ')', (size_t)(end - p))); p++)
        if ((size_t)(end - p) > n + 1 && memcmp(p + 1, d, n) == 0 && p[1 + n] == '"')
            return p + n + 2;
    return NULL;
}

// Is [p, q) a string prefix? raw: it ends in R.
static bool is_prefix(const char *p, const char *q, bool *raw)
{
    static const char *const prefixes[] = {"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"};
    size_t n = (size_t)(q - p);
    for (size_t i = 0; i < countof(prefixes); i++)
        if (strlen(prefixes[i]) == n && memcmp(p, prefixes[i], n) == 0) {
            *raw = q[-1] == 'R';
            return true;
        }
    return false;
}

static size_t run_of(const char *p, const char *end, char c)
{
    size_t n = 0;
    while (n < 4 && p + n < end && p[n] == c)
        n++;
    return n;
}

// The longest operator at p. <<< and >>> are CUDA launches; ">>>" is only taken where it is not ">>>=".
static enum op_kind read_op(const char *p, const char *end, size_t *len)
{
    static const char order[] = "()[]{};,.:?=+-*/%&|^!~<>#"; // of the table
    static const struct {
        enum op_kind one, twice, with_eq;
    } table[] = {
        {OP_LPAREN, 0, 0},
        {OP_RPAREN, 0, 0},
        {OP_LBRACK, 0, 0},
        {OP_RBRACK, 0, 0},
        {OP_LBRACE, 0, 0},
        {OP_RBRACE, 0, 0},
        {OP_SEMI, 0, 0},
        {OP_COMMA, 0, 0},
        {OP_DOT, 0, 0},
        {OP_COLON, OP_SCOPE, 0},
        {OP_QUEST, 0, 0},
        {OP_ASSIGN, 0, OP_EQ},
        {OP_ADD, OP_INC, OP_ADD_ASSIGN},
        {OP_SUB, OP_DEC, OP_SUB_ASSIGN},
        {OP_MUL, 0, OP_MUL_ASSIGN},
        {OP_DIV, 0, OP_DIV_ASSIGN},
        {OP_MOD, 0, OP_MOD_ASSIGN},
        {OP_AND, OP_LAND, OP_AND_ASSIGN},
        {OP_OR, OP_LOR, OP_OR_ASSIGN},
        {OP_XOR, 0, OP_XOR_ASSIGN},
        {OP_NOT, 0, OP_NE},
        {OP_COMPL, 0, 0},
        {OP_LT, OP_SHL, OP_LE},
        {OP_GT, OP_SHR, OP_GE},
        {OP_HASH, OP_HASHHASH, 0},
    };
    *len = 1;
    const char *at = strchr(order, *p);
    if (!at || !*at)
        return OP_NONE;
    size_t row = (size_t)(at - order);
    char next = p + 1 < end ? p[1] : 0, third = p + 2 < end ? p[2] : 0;
    if ((*p == '<' || *p == '>') && next == *p) {
        size_t n = run_of(p, end, *p);
        char after = p + n < end ? p[n] : 0;
        *len = n == 3 && after != '=' ? 3 : third == '=' ? 3 : 2;
        if (*len == 3)
            return third == '=' ? (*p == '<' ? OP_SHL_ASSIGN : OP_SHR_ASSIGN)
                                : (*p == '<' ? OP_LAUNCH_OPEN : OP_LAUNCH_CLOSE);
        return table[row].twice;
    }
    if (*p == '.' && next == '.' && third == '.')
        return *len = 3, OP_ELLIPSIS;
    if (*p == '-' && next == '>')
        return *len = 2, OP_ARROW;
    if (next == *p && table[row].twice)
        return *len = 2, table[row].twice;
    if (next == '=' && table[row].with_eq)
        return *len = 2, table[row].with_eq;
    return table[row].one;
}

// The end of a directive: its newline, over splices, comments, strings.
static const char *end_of_directive(struct scan *s)
{
    const char *p = s->p + 1, *end = s->end;
    while (p < end && *p != '\n') {
        size_t n = splice_len(p, end);
        if (n) {
            p += n;
        } else if (*p == '/' && p + 1 < end && p[1] == '/') {
            break; // it belongs to the next token's lead, which is where it is recorded
        } else if (*p == '/' && p + 1 < end && p[1] == '*') {
            const char *to = end_of_block_comment(p, end);
            if (!to)
                break;
            struct scan at = *s; // the comment is recorded where it stands; s itself does not move
            advance_to(&at, p);
            add_comment(&at, to);
            p = to;
        } else if (*p == '"' || *p == '\'') {
            const char *q = end_of_quoted(p, end);
            p = q ? q : p + 1;
        } else {
            p++;
        }
    }
    while (p > s->p + 1 && class_at(p[-1]) == C_SPACE)
        p--;
    return p;
}

static void add_token(struct scan *s, enum tok_kind kind, enum op_kind op, const char *to)
{
    struct token t = {.kind = kind,
                      .at = (uint32_t)(s->p - s->src),
                      .len = (uint32_t)(to - s->p),
                      .lead = (uint32_t)(s->lead - s->src),
                      .line = s->line,
                      .col = (uint32_t)(s->p - s->line_start) + 1,
                      .op = (uint16_t)op};
    vec_push(&s->ts->t, t);
    if (kind == TOK_IDENT || kind == TOK_NUM || kind == TOK_PUNCT)
        s->p = to;
    else
        advance_to(s, to);
    // Identifiers and numbers may hold splices: rare enough to look only where a backslash occurs.
    if (kind == TOK_IDENT && memchr(s->src + t.at, '\n', t.len)) {
        s->p = s->src + t.at;
        advance_to(s, to);
    }
    s->lead = to;
    s->fresh_line = false;
}

static void read_ident(struct scan *s)
{
    const char *q = end_of_ident(s->p, s->end);
    bool raw = false;
    if (q < s->end && class_at(*q) == C_QUOTE && q - s->p <= 3 && is_prefix(s->p, q, &raw) &&
        !(raw && *q == '\'')) {
        const char *to = raw ? end_of_raw(q, s->end) : end_of_quoted(q, s->end);
        if (to) {
            add_token(s, *q == '"' ? TOK_STR : TOK_CHAR, OP_NONE, to);
            return;
        }
    }
    add_token(s, TOK_IDENT, OP_NONE, q);
}

static void read_token(struct scan *s)
{
    unsigned char c = (unsigned char)*s->p;
    const char *to;
    size_t n;
    switch (class_at((char)c)) {
    case C_ID:
        read_ident(s);
        return;
    case C_DIGIT:
        add_token(s, TOK_NUM, OP_NONE, end_of_number(s->p, s->end));
        return;
    case C_QUOTE:
        to = end_of_quoted(s->p, s->end);
        add_token(s, !to ? TOK_OTHER : c == '"' ? TOK_STR : TOK_CHAR, OP_NONE, to ? to : s->p + 1);
        return;
    case C_PUNCT:
        if (c == '#' && s->fresh_line) {
            add_token(s, TOK_PP, OP_NONE, end_of_directive(s));
            return;
        }
        if (c == '.' && s->p + 1 < s->end && class_at(s->p[1]) == C_DIGIT) {
            add_token(s, TOK_NUM, OP_NONE, end_of_number(s->p, s->end));
            return;
        }
        if (c == '/' && s->p + 1 < s->end && s->p[1] == '*') { // never ends
            add_token(s, TOK_OTHER, OP_NONE, s->end);
            return;
        }
        enum op_kind op = read_op(s->p, s->end, &n);
        add_token(s, TOK_PUNCT, op, s->p + n);
        return;
    default:
        add_token(s, TOK_OTHER, OP_NONE, s->p + 1);
    }
}

void tokens_read(struct tokens *ts, const char *src, size_t len)
{
    *ts = (struct tokens){.src = src, .len = len};
    if (len > INT32_MAX)
        ts->len = 0;
    struct scan s = {
        .ts = ts, .p = src, .src = src, .line_start = src, .lead = src, .line = 1, .fresh_line = true};
    s.end = src + ts->len;
    vec_reserve(&ts->t, ts->len / 4 + 8);
    while (skip_trivia(&s), s.p < s.end)
        read_token(&s);
    add_token(&s, TOK_EOF, OP_NONE, s.p);
    tokens_match(ts);
}

void tokens_free(struct tokens *ts)
{
    vec_free(&ts->t);
    vec_free(&ts->comments);
}

void tokens_emit(const struct tokens *ts, size_t first, size_t end, bool lead, struct str *out)
{
    if (first >= end || end > ts->t.n)
        return;
    const struct token *a = &ts->t.v[first], *b = &ts->t.v[end - 1];
    uint32_t from = lead ? a->lead : a->at;
    str_addn(out, ts->src + from, b->at + b->len - from);
}

bool token_is(const struct tokens *ts, size_t i, const char *spelling)
{
    if (i >= ts->t.n)
        return false;
    const struct token *t = &ts->t.v[i];
    return t->len == strlen(spelling) && memcmp(ts->src + t->at, spelling, t->len) == 0;
}
