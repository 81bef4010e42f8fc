#include "tui/canvas.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

void canvas_init(struct canvas *c, int rows, int cols, bool utf8)
{
    *c = (struct canvas){.rows = rows > 0 ? rows : 1, .cols = cols > 0 ? cols : 1, .utf8 = utf8};
    c->cells = xcalloc((size_t)c->rows * (size_t)c->cols, sizeof *c->cells);
    canvas_fill(c, canvas_all(c), SLOT_TEXT);
}

void canvas_free(struct canvas *c)
{
    free(c->cells);
    *c = (struct canvas){0};
}

struct rect canvas_all(const struct canvas *c)
{
    return (struct rect){0, 0, c->rows, c->cols};
}

// The cell at a place of r, or NULL where it is cut off.
static struct canvas_cell *at(struct canvas *c, struct rect r, int row, int col)
{
    if (row < 0 || col < 0 || row >= r.rows || col >= r.cols)
        return NULL;
    row += r.row;
    col += r.col;
    if (row < 0 || col < 0 || row >= c->rows || col >= c->cols)
        return NULL;
    return &c->cells[(size_t)row * (size_t)c->cols + (size_t)col];
}

static void set(struct canvas_cell *cell, const char *s, size_t n, int width, enum slot slot)
{
    memset(cell->ch, 0, sizeof cell->ch);
    memcpy(cell->ch, s, n < CELL_BYTES ? n : 0);
    cell->slot = (uint8_t)slot;
    cell->width = (uint8_t)width;
}

// What is written over one half of a wide character leaves no other half behind.
static void part(struct canvas *c, struct rect r, int row, int col)
{
    struct canvas_cell *here = at(c, r, row, col), *left = at(c, r, row, col - 1),
                       *right = at(c, r, row, col + 1);
    if (here && here->width == 0 && left)
        set(left, " ", 1, 1, left->slot);
    if (here && here->width == 2 && right)
        set(right, " ", 1, 1, right->slot);
}

void canvas_fill(struct canvas *c, struct rect r, enum slot slot)
{
    for (int row = 0; row < r.rows; row++)
        for (int col = 0; col < r.cols; col++) {
            struct canvas_cell *cell = at(c, r, row, col);
            if (!cell)
                continue;
            set(cell, " ", 1, 1, slot);
            cell->under = SLOT_NONE;
        }
}

struct pen {
    struct canvas *c;
    struct rect r;
    int row, col;
    enum slot slot;
    struct canvas_cell *last; // for combining marks
};

static void put_char(struct pen *p, const char *s, size_t n, uint32_t cp)
{
    int width = cp < 0x80 ? 1 : wcwidth((wchar_t)cp);
    if (width < 0) { // unknown to this C library: its bytes cannot be trusted to take one column
        s = "?";
        n = 1;
        width = 1;
    }
    if (cp >= 0x80 && !p->c->utf8) {
        s = "?";
        n = 1;
        width = width ? 1 : 0;
        if (!width)
            return;
    }
    if (width == 0) {
        size_t has = p->last ? strlen(p->last->ch) : CELL_BYTES;
        if (has + n < CELL_BYTES)
            memcpy(p->last->ch + has, s, n);
        return;
    }
    struct canvas_cell *cell = at(p->c, p->r, p->row, p->col), *next = at(p->c, p->r, p->row, p->col + 1);
    p->last = NULL;
    if (cell && (width == 1 || next)) {
        part(p->c, p->r, p->row, p->col);
        if (width == 2) {
            part(p->c, p->r, p->row, p->col + 1);
            set(next, "", 0, 0, p->slot);
        }
        set(cell, s, n, width, p->slot);
        p->last = cell;
    } else if (cell) {
        set(cell, " ", 1, 1, p->slot); // half of a wide one at the edge
    } else if (next && width == 2) {
        set(next, " ", 1, 1, p->slot);
    }
    p->col += width;
}

static bool plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || (unsigned char)s[i] >= 0x7f)
            return false;
    return true;
}

static void put_clean(struct pen *p, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        int len = text_decode(s + i, n - i, &cp);
        if (len <= 0) // text_clean() leaves none
            break;
        put_char(p, s + i, (size_t)len, cp);
        i += (size_t)len;
    }
}

int canvas_putn(struct canvas *c, struct rect r, int row, int col, enum slot slot, const char *s, size_t n)
{
    struct pen p = {c, r, row, col, slot, NULL};
    if (plain(s, n)) {
        put_clean(&p, s, n);
        return p.col;
    }
    struct str clean = {0};
    text_clean(&clean, s, n, TEXT_LINE);
    put_clean(&p, str_c(&clean), clean.len);
    str_free(&clean);
    return p.col;
}

int canvas_put(struct canvas *c, struct rect r, int row, int col, enum slot slot, const char *s)
{
    return canvas_putn(c, r, row, col, slot, s, strlen(s));
}

int canvas_putf(struct canvas *c, struct rect r, int row, int col, enum slot slot, const char *fmt, ...)
{
    char small[256];
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof small) {
        col = canvas_putn(c, r, row, col, slot, small, (size_t)n);
    } else if (n >= 0) {
        struct str s = {0};
        str_addv(&s, fmt, again);
        col = canvas_putn(c, r, row, col, slot, s.s, s.len);
        str_free(&s);
    }
    va_end(again);
    return col;
}

int canvas_width(const char *s, size_t n)
{
    // A canvas without columns: everything is clipped, the end is what is asked for.
    struct canvas none = {.utf8 = true};
    return canvas_putn(&none, (struct rect){0}, 0, 0, SLOT_TEXT, s, n);
}

int canvas_field(struct canvas *c, struct rect r, int row, int col, int width, bool right, enum slot slot,
                 const char *s)
{
    if (width <= 0)
        return col;
    size_t n = strlen(s);
    int has = canvas_width(s, n);
    int from = r.col + col, to = from + width, edge = r.col + r.cols;
    // A rectangle of its own, so that nothing leaves the field.
    struct rect field = {r.row, from > r.col ? from : r.col, r.rows,
                         (to < edge ? to : edge) - (from > r.col ? from : r.col)};
    int skew = from - field.col;
    if (has > width) {
        canvas_putn(c, field, row, skew, slot, s, n);
        part(c, field, row, skew + width - 1);
        canvas_put(c, field, row, skew + width - 1, SLOT_DIM, canvas_glyph(c, GLYPH_ELLIPSIS));
    } else {
        canvas_putn(c, field, row, skew + (right ? width - has : 0), slot, s, n);
    }
    return col + width;
}

void canvas_tint_part(struct canvas *c, struct rect r, int row, int col, int n, enum slot under)
{
    for (int i = 0; i < n; i++) {
        struct canvas_cell *cell = at(c, r, row, col + i);
        if (cell)
            cell->under = (uint8_t)under;
    }
}

void canvas_tint(struct canvas *c, struct rect r, int row, enum slot under)
{
    canvas_tint_part(c, r, row, 0, r.cols, under);
}

static const char *const glyphs[GLYPH_COUNT][2] = {
    [GLYPH_VLINE] = {"│", "|"},    [GLYPH_HLINE] = {"─", "-"},    [GLYPH_TEE] = {"├", "|"},
    [GLYPH_CORNER] = {"└", "`"},   [GLYPH_FULL] = {"█", "#"},     [GLYPH_HALF] = {"▌", "="},
    [GLYPH_EMPTY] = {"·", "."},    [GLYPH_ELLIPSIS] = {"…", ">"}, [GLYPH_OPEN] = {"▾", "-"},
    [GLYPH_SHUT] = {"▸", "+"},     [GLYPH_CHAMPION] = {"★", "*"}, [GLYPH_ACCEPTED] = {"●", "@"},
    [GLYPH_ARCHIVED] = {"○", "o"}, [GLYPH_OK] = {"·", "."},       [GLYPH_FAILED] = {"×", "x"},
    [GLYPH_PENDING] = {"◌", "?"},  [GLYPH_KILLED] = {"†", "K"},   [GLYPH_QUARANTINED] = {"‼", "!"},
    [GLYPH_PINNED] = {"◆", "P"},   [GLYPH_MARKED] = {"▪", "+"},   [GLYPH_UP] = {"▲", "^"},
    [GLYPH_DOWN] = {"▼", "v"},     [GLYPH_COMMIT] = {"●", "*"},   [GLYPH_MERGE] = {"◎", "M"},
};

const char *canvas_glyph(const struct canvas *c, enum glyph g)
{
    return glyphs[g][c->utf8 ? 0 : 1];
}

int canvas_bar(struct canvas *c, struct rect r, int row, int col, int width, double part_full, enum slot slot)
{
    static const char *const eighths[] = {"▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (!(part_full > 0))
        part_full = 0;
    if (part_full > 1)
        part_full = 1;
    int units = (int)(part_full * width * 8 + 0.5);
    for (int i = 0; i < width; i++) {
        int here = units - 8 * i;
        if (here >= 8 || (!c->utf8 && here >= 4))
            canvas_put(c, r, row, col + i, slot, canvas_glyph(c, GLYPH_FULL));
        else if (here > 0 && c->utf8)
            canvas_put(c, r, row, col + i, slot, eighths[here - 1]);
        else // blank: dots would cost a slow line more than they tell
            canvas_put(c, r, row, col + i, SLOT_TEXT, " ");
    }
    return col + width;
}

void canvas_text(const struct canvas *c, struct str *out)
{
    for (int row = 0; row < c->rows; row++) {
        size_t begin = out->len;
        for (int col = 0; col < c->cols; col++) {
            const struct canvas_cell *cell = &c->cells[(size_t)row * (size_t)c->cols + (size_t)col];
            if (cell->width)
                str_add(out, cell->ch);
        }
        while (out->len > begin && out->s[out->len - 1] == ' ')
            out->s[--out->len] = 0;
        str_addc(out, '\n');
    }
}
