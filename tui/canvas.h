// The screen as a grid of cells: views draw into it, term.c shows what differs from the last time, tests and
// :save-display print it as text. Knows no terminal. Coordinates are relative to a rectangle and clipped to
// it. All text is foreign until proven otherwise: every put goes through text_clean(), so that no byte of a
// kernel, a model or a compiler can drive the terminal.
#pragma once
#include "base/str.h"
#include "tui/theme.h"

#include <stdint.h>

enum { CELL_BYTES = 12 };
struct canvas_cell {
    char ch[CELL_BYTES]; // UTF-8 of one character with its combining marks, NUL-terminated; "" right of a
                         // wide one
    uint8_t slot;        // foreground and attributes
    uint8_t under;       // whose background: SLOT_NONE, or a slot such as SLOT_CURSOR or SLOT_DIFF_ADD
    uint8_t width;       // columns: 1 or 2; 0 right of a wide one
    uint8_t spare;
};
struct canvas {
    int rows, cols;
    bool utf8; // else glyphs are ASCII and other characters become '?'
    struct canvas_cell *cells;
};
struct rect {
    int row, col, rows, cols;
};

void canvas_init(struct canvas *c, int rows, int cols, bool utf8);
void canvas_free(struct canvas *c);
struct rect canvas_all(const struct canvas *c);
void canvas_fill(struct canvas *c, struct rect r, enum slot slot);
// Puts text at a column of a row, which may be negative (then its left part is cut off); returns the column
// after its end, also where it was clipped. Newlines become visible marks: one put is one line.
int canvas_put(struct canvas *c, struct rect r, int row, int col, enum slot slot, const char *s);
int canvas_putn(struct canvas *c, struct rect r, int row, int col, enum slot slot, const char *s, size_t n);
__attribute__((format(printf, 6, 7))) int canvas_putf(struct canvas *c, struct rect r, int row, int col,
                                                      enum slot slot, const char *fmt, ...);
// At most `width` columns, cut with an ellipsis glyph, padded with blanks; returns col + width.
int canvas_field(struct canvas *c, struct rect r, int row, int col, int width, bool right, enum slot slot,
                 const char *s);
// Gives a whole row of r (or columns [col, col+n) of it) the background of a slot, keeping what stands there.
void canvas_tint(struct canvas *c, struct rect r, int row, enum slot under);
void canvas_tint_part(struct canvas *c, struct rect r, int row, int col, int n, enum slot under);
// Columns that a text takes once cleaned.
int canvas_width(const char *s, size_t n);

// What lines and marks are made of; each has an ASCII twin.
enum glyph {
    GLYPH_VLINE,
    GLYPH_HLINE,
    GLYPH_TEE,    // a child with siblings below
    GLYPH_CORNER, // the last child
    GLYPH_FULL,   // of bars
    GLYPH_HALF,
    GLYPH_EMPTY,
    GLYPH_ELLIPSIS,
    GLYPH_OPEN, // an unfolded branch
    GLYPH_SHUT,
    GLYPH_CHAMPION,
    GLYPH_ACCEPTED,
    GLYPH_ARCHIVED,
    GLYPH_OK,
    GLYPH_FAILED,
    GLYPH_PENDING,
    GLYPH_KILLED,
    GLYPH_QUARANTINED,
    GLYPH_PINNED,
    GLYPH_MARKED,
    GLYPH_UP,
    GLYPH_DOWN,
    GLYPH_COMMIT, // of the lineage graph
    GLYPH_MERGE,
    GLYPH_COUNT
};
const char *canvas_glyph(const struct canvas *c, enum glyph g);
// A bar of `width` columns filled to `part` (0..1) in eighths where UTF-8 holds; returns col + width.
int canvas_bar(struct canvas *c, struct rect r, int row, int col, int width, double part, enum slot slot);
// The grid as text, trailing blanks cut, one line a row.
void canvas_text(const struct canvas *c, struct str *out);
