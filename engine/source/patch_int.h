// The parts of patch.c: blocks (read), places (match), words about failures (say).
#pragma once
#include "source/patch.h"

struct text_line { // [at, at+len) without its newline and without white space at its end; next: where the
                   // next begins
    size_t at, len, next;
};
typedef VEC(struct text_line) text_lines;
void text_lines_read(const char *s, size_t n, text_lines *out);
static inline bool line_blank(const char *s, const struct text_line *l)
{
    size_t i = 0;
    while (i < l->len && (s[l->at + i] == ' ' || s[l->at + i] == '\t'))
        i++;
    return i == l->len;
}

struct block {
    const char *s;      // the patch
    long anchor;        // @N, 0: none
    text_lines lines;   // all between the markers, dividers included
    VEC(size_t) splits; // indices of the divider lines: the text itself may hold some
    size_t line;        // of the patch, 1-based
};
typedef VEC(struct block) blocks;
// -1 where the markers are out of order.
int blocks_read(const char *patch, size_t n, blocks *out, struct err *e);
void blocks_free(blocks *b);

// A place where the first n lines of a block stand in the text: lines [first, first+n).
struct place {
    size_t first, n;
    char shift[64]; // white space to put before the new lines, or to take away where cut
    bool cut, shifted;
};
typedef VEC(struct place) places;
// Exactly, or where that finds nothing with the whole block's indentation shifted.
void places_find(const char *text, const text_lines *t, const struct block *b, size_t n, places *out);

// "The nearest text is lines 40-44 (82 % alike):" with what differs; appends.
void patch_say_nearest(const char *text, const text_lines *t, const struct block *b, size_t n,
                       struct str *out);
