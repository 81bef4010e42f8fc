// A diff as lines to be drawn, side by side or unified, from two texts: pure, no screen. Lines name places in
// the texts, so that nothing is copied.
#pragma once
#include "source/diff.h"

struct diff_view_line {
    enum { DIFF_LINE_HEADER, DIFF_LINE_SAME, DIFF_LINE_DEL, DIFF_LINE_ADD, DIFF_LINE_CHANGE } kind;
    uint32_t row; // of rows; a header's is the row it stands before
};
struct diff_lines {
    const char *left, *right; // not owned
    size_t nleft, nright;
    struct diff diff;
    diff_rows rows;
    VEC(struct diff_view_line) v;
    VEC(uint32_t) hunks; // line where each change begins
    size_t added, removed;
    char *squeezed[2];              // the texts without white space differences, where that was asked for
    VEC(struct diff_line) lines[2]; // places of the lines in the real texts, where squeezed
};

// context < 0: whole texts. white: white space counts. unified: deletions before additions, one a line.
void diff_lines_make(struct diff_lines *d, const char *left, size_t nleft, const char *right, size_t nright,
                     int context, bool white, bool unified);
void diff_lines_free(struct diff_lines *d);
// The bytes of a row's line on a side (0 left, 1 right) in the real text; {0,0} where it has none.
struct diff_line diff_lines_text(const struct diff_lines *d, uint32_t row, int side);
