#include "tui/layout.h"

struct layout layout_make(int rows, int cols, bool right, bool focus_right, bool zoom)
{
    struct layout l = {.border = -1};
    if (rows < LAYOUT_MIN_ROWS || cols < LAYOUT_MIN_COLS) {
        l.too_small = true;
        return l;
    }
    int body = rows - 3;
    l.two = right && !zoom && cols >= LAYOUT_TWO_COLS;
    l.status = (struct rect){rows - 2, 0, 1, cols};
    l.bottom = (struct rect){rows - 1, 0, 1, cols};
    struct rect all = {1, 0, body, cols}, title = {0, 0, 1, cols};
    if (!l.two) {
        if (right && focus_right) {
            l.right = all;
            l.right_title = title;
        } else {
            l.left = all;
            l.left_title = title;
        }
        return l;
    }
    int half = (cols - 1) * 9 / 20;
    l.border = half;
    l.left = (struct rect){1, 0, body, half};
    l.left_title = (struct rect){0, 0, 1, half};
    l.right = (struct rect){1, half + 1, body, cols - half - 1};
    l.right_title = (struct rect){0, half + 1, 1, cols - half - 1};
    return l;
}
