#include "tui/page.h"

#include "base/text.h"
#include "base/vec.h"
#include "tui/match.h"
#include "tui/syntax.h"

#include <stdarg.h>
#include <string.h>

enum { TAB = 4, LABEL = 12 };

void page_clear(struct page *p)
{
    for (size_t i = 0; i < p->v.n; i++)
        free(p->v.v[i].text);
    p->v.n = 0;
    syntax_free(p->syntax);
    p->syntax = NULL;
    free(p->code);
    p->code = NULL;
}

void page_free(struct page *p)
{
    page_clear(p);
    vec_free(&p->v);
    free(p->match);
    p->match = NULL;
}

void page_add(struct page *p, enum slot slot, const char *fmt, ...)
{
    struct str s = {0};
    va_list ap;
    va_start(ap, fmt);
    str_addv(&s, fmt, ap);
    va_end(ap);
    vec_push(&p->v, ((struct page_line){.slot = slot, .text = s.s ? str_steal(&s) : xstrdup("")}));
}

void page_field(struct page *p, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    page_add(p, SLOT_TEXT, "%-*s%s", LABEL, key, value);
    p->v.v[p->v.n - 1].label = LABEL;
}

void page_block(struct page *p, enum slot slot, const char *text, size_t n)
{
    struct str clean = {0};
    text_clean(&clean, text, n, TEXT_BLOCK);
    for (const char *line = str_c(&clean); *line;) {
        size_t len = strcspn(line, "\n");
        page_add(p, slot, "  %.*s", (int)len, line);
        line += len + (line[len] == '\n');
    }
    str_free(&clean);
}

void page_code(struct page *p, char *code, size_t n)
{
    p->code = code;
    p->syntax = syntax_read(code, n);
    for (size_t at = 0; at < n;) {
        const char *nl = memchr(code + at, '\n', n - at);
        size_t len = nl ? (size_t)(nl - (code + at)) : n - at;
        vec_push(&p->v, ((struct page_line){.slot = SLOT_CODE, .at = at, .n = len}));
        at += len + 1;
    }
}

// A line of code: runs of one slot are put at once, tabs become blanks.
static void draw_code(struct page *p, struct canvas *c, struct rect r, int row, const struct page_line *l,
                      int col)
{
    int column = 0;
    for (size_t i = 0; i < l->n;) {
        enum slot slot = syntax_at(p->syntax, l->at + i);
        size_t end = i;
        while (end < l->n && p->code[l->at + end] != '\t' && syntax_at(p->syntax, l->at + end) == slot)
            end++;
        if (end > i) {
            int next = canvas_putn(c, r, row, col + column, slot, p->code + l->at + i, end - i);
            column = next - col;
        }
        i = end;
        for (; i < l->n && p->code[l->at + i] == '\t'; i++)
            column += TAB - column % TAB;
    }
}

static const char *line_text(const struct page *p, const struct page_line *l, size_t *n)
{
    *n = l->text ? strlen(l->text) : l->n;
    return l->text ? l->text : p->code + l->at;
}

static void tint_matches(const struct page *p, struct canvas *c, struct rect r, int row,
                         const struct page_line *l, int col)
{
    size_t n, len = p->match ? strlen(p->match) : 0;
    const char *s = line_text(p, l, &n), *hit = len ? match_find(s, n, p->match) : NULL;
    while (hit) {
        size_t before = (size_t)(hit - s);
        canvas_tint_part(c, r, row, col + canvas_width(s, before), canvas_width(hit, len), SLOT_MATCH);
        hit = match_find(hit + len, n - before - len, p->match);
    }
}

void page_draw(struct page *p, struct canvas *c, struct rect r)
{
    p->list.page = true;
    list_fit(&p->list, (int64_t)p->v.n, r.rows);
    for (int i = 0; i < r.rows && p->list.top + i < (int64_t)p->v.n; i++) {
        const struct page_line *l = &p->v.v[p->list.top + i];
        int col = 1 - p->list.left;
        if (!l->text) {
            draw_code(p, c, r, i, l, col + 2);
            tint_matches(p, c, r, i, l, col + 2);
            continue;
        }
        size_t n = strlen(l->text), label = (size_t)l->label < n ? (size_t)l->label : n;
        int end = canvas_putn(c, r, i, col, SLOT_DIM, l->text, label);
        canvas_putn(c, r, i, end, l->slot, l->text + label, n - label);
        tint_matches(p, c, r, i, l, col);
    }
}

bool page_search(struct page *p, const char *text, bool back, bool again)
{
    free(p->match);
    p->match = xstrdup(text);
    int64_t n = (int64_t)p->v.n;
    for (int64_t i = again ? 1 : 0; i < n + (again ? 1 : 0); i++) {
        int64_t at = ((back ? p->list.top - i : p->list.top + i) % n + n) % n;
        size_t len;
        const char *s = line_text(p, &p->v.v[at], &len);
        if (!match_find(s, len, text))
            continue;
        p->list.top = at;
        return true;
    }
    return false;
}
