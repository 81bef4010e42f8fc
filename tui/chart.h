// Lines and points in a rectangle: braille dots in UTF-8, signs otherwise. Knows no session.
#pragma once
#include "tui/canvas.h"

struct chart_series {
    const double *x, *y;
    size_t n;
    enum slot slot;
    bool steps; // a value holds until the next; else single points
    char sign;  // in ASCII; capitals stand out of braille too: their places are marked
};
struct chart {
    double x0, x1, y0, y1;
    bool log_y;
};
// Draws axes with numbers and the series, later ones over earlier ones.
void chart_draw(const struct chart *ch, const struct chart_series *s, size_t n, struct canvas *c,
                struct rect r, const char *x_name);
