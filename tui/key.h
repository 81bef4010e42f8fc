// Keys as numbers and names: "j", "C-x", "Up", "F1", "Space". Knows no terminal.
#pragma once
#include "tui/action.h"

#include <stdint.h>

enum key_code { // above every code point
    K_NONE = 0,
    K_UP = 0x110000,
    K_DOWN,
    K_LEFT,
    K_RIGHT,
    K_PAGE_UP,
    K_PAGE_DOWN,
    K_HOME,
    K_END,
    K_INSERT,
    K_DELETE,
    K_BACKSPACE,
    K_ENTER,
    K_TAB,
    K_BACK_TAB,
    K_ESC,
    K_F1,
    K_F12 = K_F1 + 11,
    K_PASTE_BEGIN, // the terminal's bracketed paste
    K_PASTE_END,
    K_MOUSE, // where is in struct key
    K_RESIZE,
};
struct key {
    uint32_t code; // a code point, 1..26 for control keys ("C-a" is 1), or enum key_code
    int row, col;  // K_MOUSE
    int wheel;     // K_MOUSE: -1 up, 1 down, 0: button 1 was pressed
};

// The number of a key's name; K_NONE where it is none.
uint32_t key_parse(const char *name);
// Its name, in buf.
const char *key_spell(uint32_t code, char buf[24]);

// What keys do: the defaults of the action table, changed by the user's [keys].
struct keymap;
struct keymap *keymap_new(void);
void keymap_free(struct keymap *m);
void keymap_bind(struct keymap *m, uint32_t code, enum action a);
enum action keymap_find(const struct keymap *m, uint32_t code);
// The keys of an action now, blank-separated, in buf; "" where it has none.
const char *keymap_keys(const struct keymap *m, enum action a, char *buf, size_t n);
