// Brackets and #if branches. Only the first branch of an #if is followed (the second where the first is #if
// 0): kernels whose braces open in one branch and close in another would otherwise not balance.
#include "source/token_match.h"

#include <string.h>

const char *token_pp_word(const struct tokens *ts, size_t i, char buf[32])
{
    buf[0] = 0;
    if (i >= ts->t.n || ts->t.v[i].kind != TOK_PP)
        return buf;
    const char *p = ts->src + ts->t.v[i].at + 1, *end = p + ts->t.v[i].len - 1;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    size_t n = 0;
    while (p < end && n < 31 && ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_'))
        buf[n++] = *p++;
    buf[n] = 0;
    return buf;
}

// Is the directive "#if 0"?
static bool is_if_zero(const struct tokens *ts, size_t i)
{
    const char *p = ts->src + ts->t.v[i].at, *end = p + ts->t.v[i].len;
    p = memchr(p, 'f', (size_t)(end - p));
    if (!p)
        return false;
    for (p++; p < end && (*p == ' ' || *p == '\t');)
        p++;
    return p < end && *p == '0' &&
           (p + 1 == end || p[1] == ' ' || p[1] == '\t' || p[1] == '\r' || p[1] == '/');
}

struct cond {
    size_t last;    // the directive before, to be linked with the next
    bool outer_off; // the #if itself is inactive
    bool taken;     // a branch was followed
    bool off;       // the present branch is not followed
};

struct matcher {
    struct tokens *ts;
    VEC(struct cond) conds;
    VEC(size_t) open;
};

static bool match_directive(struct matcher *m, size_t i, bool off)
{
    char word[32];
    token_pp_word(m->ts, i, word);
    if (strcmp(word, "if") == 0 || strcmp(word, "ifdef") == 0 || strcmp(word, "ifndef") == 0) {
        bool zero = strcmp(word, "if") == 0 && is_if_zero(m->ts, i);
        struct cond c = {.last = i, .outer_off = off, .taken = !zero, .off = off || zero};
        vec_push(&m->conds, c);
        return c.off;
    }
    if (!m->conds.n)
        return off;
    struct cond *c = &m->conds.v[m->conds.n - 1];
    bool end = strcmp(word, "endif") == 0;
    if (!end && strncmp(word, "el", 2) != 0)
        return off;
    m->ts->t.v[c->last].match = (uint32_t)i;
    c->last = i;
    if (end) {
        off = c->outer_off;
        m->conds.n--;
        return off;
    }
    c->off = c->outer_off || c->taken;
    c->taken = true;
    return c->off;
}

static void bad_bracket(struct tokens *ts, size_t i)
{
    if (!ts->balanced)
        return;
    ts->balanced = false;
    ts->bad_line = ts->t.v[i].line;
    ts->bad_col = ts->t.v[i].col;
}

static void match_bracket(struct matcher *m, size_t i)
{
    struct token *t = m->ts->t.v;
    enum op_kind op = (enum op_kind)t[i].op;
    if (op == OP_LPAREN || op == OP_LBRACK || op == OP_LBRACE) {
        vec_push(&m->open, i);
        return;
    }
    // The closer's partner is the nearest opener of its kind; openers in between stay without one.
    size_t n = m->open.n;
    if (n && t[m->open.v[n - 1]].op == op - 1) {
        size_t o = m->open.v[n - 1];
        t[o].match = (uint32_t)i;
        t[i].match = (uint32_t)o;
        m->open.n--;
        return;
    }
    bad_bracket(m->ts, i);
    for (size_t k = n; k-- > 0 && n - k < 64;)
        if (t[m->open.v[k]].op == op - 1) {
            t[m->open.v[k]].match = (uint32_t)i;
            t[i].match = (uint32_t)m->open.v[k];
            m->open.n = k;
            return;
        }
}

void tokens_match(struct tokens *ts)
{
    struct matcher m = {.ts = ts};
    bool off = false;
    ts->balanced = true;
    for (size_t i = 0; i < ts->t.n; i++) {
        struct token *t = &ts->t.v[i];
        bool was_off = off;
        if (t->kind == TOK_PP)
            off = match_directive(&m, i, off);
        t->inactive =
            off && was_off; // the directives at both ends of an inactive branch are active themselves
        if (t->kind == TOK_PUNCT && !off && t->op >= OP_LPAREN && t->op <= OP_RBRACE)
            match_bracket(&m, i);
    }
    if (m.open.n)
        bad_bracket(ts, m.open.v[0]);
    vec_free(&m.conds);
    vec_free(&m.open);
}

void text_place(const char *src, size_t len, size_t at, uint32_t *line, uint32_t *col)
{
    uint32_t l = 1;
    const char *start = src, *end = src + (at < len ? at : len);
    for (const char *p = src; p < end && (p = memchr(p, '\n', (size_t)(end - p)));) {
        l++;
        start = ++p;
    }
    *line = l;
    *col = (uint32_t)(end - start) + 1;
}
