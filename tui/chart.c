#include "tui/chart.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { AXIS = 8, DOT_ROWS = 4, DOT_COLS = 2 };

struct grid {
    const struct chart *ch;
    struct canvas *c;
    struct rect r;  // the plot's own
    int rows, cols; // dots
    uint8_t *dots;  // of each cell of r, braille bits
    uint8_t *slots; // whose colour
    char sign;
};

static double scale(const struct chart *ch, double y)
{
    return ch->log_y ? log(fmax(y, 1e-9)) : y;
}

static int dot_row(const struct grid *g, double y)
{
    double low = scale(g->ch, g->ch->y0), high = scale(g->ch, g->ch->y1), v = scale(g->ch, y);
    double part = high > low ? (v - low) / (high - low) : 0;
    int row = (int)lround((1 - part) * (g->rows - 1));
    return row < 0 ? 0 : row >= g->rows ? g->rows - 1 : row;
}

static int dot_col(const struct grid *g, double x)
{
    double part = g->ch->x1 > g->ch->x0 ? (x - g->ch->x0) / (g->ch->x1 - g->ch->x0) : 0;
    int col = (int)lround(part * (g->cols - 1));
    return col < 0 ? 0 : col >= g->cols ? g->cols - 1 : col;
}

static void dot(struct grid *g, int row, int col, enum slot slot)
{
    static const uint8_t bits[DOT_ROWS][DOT_COLS] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int cell = row / DOT_ROWS * g->r.cols + col / DOT_COLS;
    g->dots[cell] |= bits[row % DOT_ROWS][col % DOT_COLS];
    g->slots[cell] = (uint8_t)slot;
    if (!g->c->utf8)
        g->dots[cell] = (uint8_t)g->sign;
}

static void draw_series(struct grid *g, const struct chart_series *s)
{
    int last_col = -1, last_row = -1;
    g->sign = s->sign;
    for (size_t i = 0; i < s->n; i++) {
        int col = dot_col(g, s->x[i]), row = dot_row(g, s->y[i]);
        if (s->steps && last_col >= 0) {
            for (int k = last_col; k <= col; k++)
                dot(g, last_row, k, s->slot);
            for (int k = row < last_row ? row : last_row; k <= (row < last_row ? last_row : row); k++)
                dot(g, k, col, s->slot);
        }
        dot(g, row, col, s->slot);
        last_col = col;
        last_row = row;
    }
    for (int k = last_col; s->steps && last_col >= 0 && k < g->cols; k++)
        dot(g, last_row, k, s->slot);
}

static void show(const struct grid *g)
{
    for (int row = 0; row < g->r.rows; row++)
        for (int col = 0; col < g->r.cols; col++) {
            uint8_t d = g->dots[row * g->r.cols + col];
            char text[4] = {(char)d, 0};
            if (!d)
                continue;
            if (g->c->utf8) { // U+2800 and its dots
                text[0] = (char)0xe2;
                text[1] = (char)(0xa0 | d >> 6);
                text[2] = (char)(0x80 | (d & 0x3f));
            }
            canvas_put(g->c, g->r, row, col, (enum slot)g->slots[row * g->r.cols + col], text);
        }
}

// Points that must be seen in any colour.
static void marks(struct grid *g, const struct chart_series *s)
{
    for (size_t i = 0; i < s->n && g->c->utf8 && s->sign >= 'A' && s->sign <= 'Z'; i++)
        canvas_put(g->c, g->r, dot_row(g, s->y[i]) / DOT_ROWS, dot_col(g, s->x[i]) / DOT_COLS, s->slot,
                   canvas_glyph(g->c, GLYPH_ACCEPTED));
}

static void axes(const struct chart *ch, struct canvas *c, struct rect r, const char *x_name)
{
    int rows = r.rows - 2;
    for (int i = 0; i <= 4 && rows > 1; i++) {
        int row = i * (rows - 1) / 4;
        double part = 1 - (double)row / (rows - 1), low = scale(ch, ch->y0), high = scale(ch, ch->y1);
        double y = low + part * (high - low);
        if (ch->log_y)
            y = exp(y);
        canvas_putf(c, r, row, 0, SLOT_DIM, "%6.*fx", y < 10 ? 2 : y < 100 ? 1 : 0, y);
    }
    for (int row = 0; row < rows; row++)
        canvas_put(c, r, row, AXIS - 1, SLOT_BORDER, canvas_glyph(c, GLYPH_VLINE));
    for (int col = AXIS; col < r.cols; col++)
        canvas_put(c, r, rows, col, SLOT_BORDER, canvas_glyph(c, GLYPH_HLINE));
    char text[32];
    snprintf(text, sizeof text, "%.0f", ch->x0);
    canvas_put(c, r, rows + 1, AXIS, SLOT_DIM, text);
    snprintf(text, sizeof text, "%.0f %s", ch->x1, x_name);
    canvas_field(c, r, rows + 1, AXIS + 6, r.cols - AXIS - 6, true, SLOT_DIM, text);
}

void chart_draw(const struct chart *ch, const struct chart_series *s, size_t n, struct canvas *c,
                struct rect r, const char *x_name)
{
    if (r.rows < 5 || r.cols < AXIS + 10)
        return;
    struct grid g = {.ch = ch, .c = c, .r = {r.row, r.col + AXIS, r.rows - 2, r.cols - AXIS}};
    g.rows = g.r.rows * DOT_ROWS;
    g.cols = g.r.cols * DOT_COLS;
    g.dots = xcalloc((size_t)g.r.rows * (size_t)g.r.cols, 1);
    g.slots = xcalloc((size_t)g.r.rows * (size_t)g.r.cols, 1);
    axes(ch, c, r, x_name);
    for (size_t i = 0; i < n; i++)
        draw_series(&g, &s[i]);
    show(&g);
    for (size_t i = 0; i < n; i++)
        marks(&g, &s[i]);
    free(g.dots);
    free(g.slots);
}
