// A scrolling list's arithmetic: cursor, first row shown and sideways scroll, for lists with a cursor and for
// pages without one. Draws nothing.
#pragma once
#include "tui/action.h"

#include <stdint.h>

struct list {
    int64_t n;      // rows there are
    int64_t cursor; // -1 where n is 0
    int64_t top;    // first row shown
    int rows;       // shown at last
    int left;       // columns scrolled off sideways
    bool page;      // no cursor: movement scrolls
};
// Before drawing: how many rows there are and fit; keeps cursor and top inside and the cursor in view.
void list_fit(struct list *l, int64_t n, int rows);
// Movement; false where the action is none. count 0 means that none was given.
bool list_act(struct list *l, enum action a, int count);
