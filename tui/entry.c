#include "tui/entry.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { HISTORY_MAX = 200, TEXT_MAX = 4000 };

static void forget_choices(struct entry *p)
{
    for (size_t i = 0; i < p->choices.n; i++)
        free(p->choices.v[i]);
    vec_free(&p->choices);
    p->completing = false;
}

void entry_begin(struct entry *p, enum entry_kind kind, const char *label, const char *text)
{
    entry_end(p);
    p->kind = kind;
    snprintf(p->label, sizeof p->label, "%s", label);
    str_add(&p->text, text ? text : "");
    p->cursor = p->text.len;
    p->at = p->history[kind].n;
}

void entry_end(struct entry *p)
{
    forget_choices(p);
    str_clear(&p->text);
    free(p->typed);
    p->typed = NULL;
    p->cursor = 0;
    p->kind = ENTRY_NONE;
}

void entry_free(struct entry *p)
{
    entry_end(p);
    str_free(&p->text);
    for (int k = 0; k < ENTRY_KINDS; k++) {
        for (size_t i = 0; i < p->history[k].n; i++)
            free(p->history[k].v[i]);
        vec_free(&p->history[k]);
    }
}

static void set_text(struct entry *p, const char *s)
{
    str_clear(&p->text);
    str_add(&p->text, s);
    p->cursor = p->text.len;
}

static size_t before(const struct entry *p, size_t at)
{
    const char *s = str_c(&p->text);
    while (at > 0 && ((unsigned char)s[--at] & 0xc0) == 0x80)
        ;
    return at;
}

static size_t after(const struct entry *p, size_t at)
{
    const char *s = str_c(&p->text);
    if (at < p->text.len)
        at++;
    while (at < p->text.len && ((unsigned char)s[at] & 0xc0) == 0x80)
        at++;
    return at;
}

static size_t word_before(const struct entry *p, size_t at)
{
    const char *s = str_c(&p->text);
    while (at > 0 && s[at - 1] == ' ')
        at--;
    while (at > 0 && s[at - 1] != ' ')
        at--;
    return at;
}

static void cut(struct entry *p, size_t from, size_t to)
{
    str_splice(&p->text, from, to - from, "", 0);
    p->cursor = from;
}

static void insert(struct entry *p, const char *s, size_t n)
{
    if (p->text.len + n > TEXT_MAX)
        return;
    str_splice(&p->text, p->cursor, 0, s, n);
    p->cursor += n;
}

static void look_back(struct entry *p, int by)
{
    size_t n = p->history[p->kind].n, to = p->at + (size_t)by;
    if ((by < 0 && p->at == 0) || to > n)
        return;
    if (p->at == n) {
        free(p->typed);
        p->typed = xstrdup(str_c(&p->text));
    }
    p->at = to;
    set_text(p, to == n ? (p->typed ? p->typed : "") : p->history[p->kind].v[to]);
}

static void remember(struct entry *p)
{
    const char *s = str_c(&p->text);
    size_t n = p->history[p->kind].n;
    if (!*s || (n && str_eq(p->history[p->kind].v[n - 1], s)))
        return;
    if (n >= HISTORY_MAX) {
        free(p->history[p->kind].v[0]);
        vec_remove(&p->history[p->kind], 0);
    }
    vec_push(&p->history[p->kind], xstrdup(s));
}

static void begin_completing(struct entry *p)
{
    p->word_at = p->cursor;
    while (p->word_at > 0 && str_c(&p->text)[p->word_at - 1] != ' ')
        p->word_at--;
    struct str left = {0}, word = {0};
    str_addn(&left, str_c(&p->text), p->word_at);
    str_addn(&word, str_c(&p->text) + p->word_at, p->cursor - p->word_at);
    p->complete(p->user, str_c(&left), str_c(&word), &p->choices);
    str_free(&left);
    str_free(&word);
    p->completing = true;
}

static void complete(struct entry *p, bool back)
{
    if (!p->complete)
        return;
    if (!p->completing) {
        begin_completing(p);
        p->choice = back && p->choices.n ? p->choices.n - 1 : 0;
    } else if (p->choices.n) {
        p->choice = (p->choice + (back ? p->choices.n - 1 : 1)) % p->choices.n;
    }
    if (!p->choices.n) {
        forget_choices(p);
        return;
    }
    cut(p, p->word_at, p->cursor);
    insert(p, p->choices.v[p->choice], strlen(p->choices.v[p->choice]));
    if (p->choices.n == 1) {
        insert(p, " ", 1);
        forget_choices(p);
    }
}

static bool edit_key(struct entry *p, uint32_t code)
{
    switch (code) {
    case K_LEFT:
    case 2:
        p->cursor = before(p, p->cursor);
        return true;
    case K_RIGHT:
    case 6:
        p->cursor = after(p, p->cursor);
        return true;
    case K_HOME:
    case 1:
        p->cursor = 0;
        return true;
    case K_END:
    case 5:
        p->cursor = p->text.len;
        return true;
    case K_BACKSPACE:
        cut(p, before(p, p->cursor), p->cursor);
        return true;
    case K_DELETE:
    case 4:
        cut(p, p->cursor, after(p, p->cursor));
        return true;
    case 21: // C-u
        cut(p, 0, p->cursor);
        return true;
    case 11: // C-k
        cut(p, p->cursor, p->text.len);
        return true;
    case 23: // C-w
        cut(p, word_before(p, p->cursor), p->cursor);
        return true;
    case K_UP:
    case 16:
        look_back(p, -1);
        return true;
    case K_DOWN:
    case 14:
        look_back(p, 1);
        return true;
    default:
        return false;
    }
}

static size_t encode(uint32_t c, char out[4])
{
    if (c < 0x80)
        return out[0] = (char)c, 1;
    int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xf0u) | c);
    return (size_t)n;
}

enum entry_result entry_key(struct entry *p, const struct key *k)
{
    char utf8[4];
    if (p->kind == ENTRY_CONFIRM) {
        str_clear(&p->text);
        if (k->code >= ' ' && k->code < 0x7f)
            str_addc(&p->text, (char)k->code);
        return k->code == 'y' || k->code == 'e' ? ENTRY_DONE : ENTRY_CANCELLED;
    }
    if (k->code == K_TAB || k->code == K_BACK_TAB) {
        complete(p, k->code == K_BACK_TAB);
        return ENTRY_GOES_ON;
    }
    if (p->completing)
        forget_choices(p);
    if (k->code == K_ESC || k->code == 3 || k->code == 7)
        return ENTRY_CANCELLED;
    if (k->code == K_ENTER) {
        remember(p);
        return ENTRY_DONE;
    }
    if (k->code == K_BACKSPACE && p->text.len == 0)
        return ENTRY_CANCELLED;
    if (!edit_key(p, k->code) && k->code >= ' ' && k->code < 0x110000)
        insert(p, utf8, encode(k->code, utf8));
    return ENTRY_GOES_ON;
}

void entry_paste(struct entry *p, const char *s, size_t n)
{
    for (size_t i = 0; i < n && p->kind != ENTRY_CONFIRM; i++) {
        char c = s[i] == '\n' || s[i] == '\r' || s[i] == '\t' ? ' ' : s[i];
        if ((unsigned char)c >= ' ' && c != 0x7f)
            insert(p, &c, 1);
    }
}

int entry_draw(const struct entry *p, struct canvas *c, struct rect r)
{
    int col = canvas_put(c, r, 0, 0, p->kind == ENTRY_CONFIRM ? SLOT_WARN : SLOT_PROMPT, p->label);
    // Long lines scroll so that the cursor stays in sight.
    int want = col + canvas_width(str_c(&p->text), p->cursor), shift = want >= r.cols ? want - r.cols + 1 : 0;
    canvas_fill(c, r, SLOT_TEXT);
    canvas_put(c, r, 0, -shift, p->kind == ENTRY_CONFIRM ? SLOT_WARN : SLOT_PROMPT, p->label);
    if (p->kind == ENTRY_CONFIRM)
        return want;
    int end = canvas_put(c, r, 0, col - shift, SLOT_TEXT, str_c(&p->text));
    if (p->completing && p->choices.n > 1)
        for (size_t i = 0; i < p->choices.n && end < r.cols; i++)
            end = canvas_put(c, r, 0, end + 2, i == p->choice ? SLOT_STRONG : SLOT_DIM, p->choices.v[i]);
    return want - shift;
}
