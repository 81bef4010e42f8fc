#include "tui/list.h"

#include "base/mem.h"

enum { SIDE_STEP = 8 };

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x > high ? (high < low ? low : high) : x < low ? low : x;
}

void list_fit(struct list *l, int64_t n, int rows)
{
    l->n = n;
    l->rows = rows > 0 ? rows : 1;
    int64_t last = n - l->rows;
    if (l->page) {
        l->cursor = -1;
    } else {
        l->cursor = n ? clamp(l->cursor, 0, n - 1) : -1;
        if (l->cursor >= 0 && l->cursor < l->top)
            l->top = l->cursor;
        if (l->cursor >= l->top + l->rows)
            l->top = l->cursor - l->rows + 1;
    }
    l->top = clamp(l->top, 0, last > 0 ? last : 0);
}

static void move(struct list *l, int64_t by)
{
    if (l->page)
        l->top += by;
    else
        l->cursor += by;
    list_fit(l, l->n, l->rows);
}

// A page moves what is shown, and the cursor with it.
static void scroll(struct list *l, int64_t by)
{
    l->top += by;
    move(l, l->page ? 0 : by);
}

static void go(struct list *l, int64_t row)
{
    if (l->page)
        l->top = row;
    else
        l->cursor = row;
    list_fit(l, l->n, l->rows);
}

bool list_act(struct list *l, enum action a, int count)
{
    int64_t times = count > 0 ? count : 1, half = l->rows > 1 ? l->rows / 2 : 1;
    switch (a) {
    case ACT_UP:
        return move(l, -times), true;
    case ACT_DOWN:
        return move(l, times), true;
    case ACT_PAGE_UP:
        return scroll(l, -times * l->rows), true;
    case ACT_PAGE_DOWN:
        return scroll(l, times * l->rows), true;
    case ACT_HALF_UP:
        return scroll(l, -times * half), true;
    case ACT_HALF_DOWN:
        return scroll(l, times * half), true;
    case ACT_TOP:
        return go(l, count > 0 ? count - 1 : 0), true;
    case ACT_BOTTOM:
        return go(l, count > 0 ? count - 1 : l->n - 1), true;
    case ACT_LEFT:
        l->left = l->left > SIDE_STEP * times ? l->left - SIDE_STEP * (int)times : 0;
        return true;
    case ACT_RIGHT:
        l->left += SIDE_STEP * (int)times;
        return true;
    default:
        return false;
    }
}
