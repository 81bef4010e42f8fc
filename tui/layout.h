// Where everything stands on the screen: a pure function of its size and of what is open.
#pragma once
#include "tui/canvas.h"

struct layout {
    bool too_small;                                   // nothing but a sentence fits
    bool two;                                         // both panes are shown
    struct rect left_title, left, right_title, right; // empty where not shown
    int border;                                       // column between the panes, or -1
    struct rect status, bottom;
};
enum { LAYOUT_MIN_ROWS = 6, LAYOUT_MIN_COLS = 36, LAYOUT_TWO_COLS = 100 };
// right: something is open on the right; focus_right and zoom choose where only one fits.
struct layout layout_make(int rows, int cols, bool right, bool focus_right, bool zoom);
