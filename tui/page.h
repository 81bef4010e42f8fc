// A page of lines with slots, that scrolls and is searched: what the detail and help views are made of.
#pragma once
#include "tui/canvas.h"
#include "tui/list.h"

struct syntax;
struct page_line {
    enum slot slot;
    int label;    // columns of the text's start that are drawn dim, for "key   value"
    char *text;   // owned; NULL: a line of code
    size_t at, n; // of the code: bytes in page.code
};
struct page {
    VEC(struct page_line) v;
    struct list list;
    char *code; // owned
    struct syntax *syntax;
    char *match; // what was searched for, or NULL
};
void page_clear(struct page *p); // keeps the place
void page_free(struct page *p);
__attribute__((format(printf, 3, 4))) void page_add(struct page *p, enum slot slot, const char *fmt, ...);
// "key         value", the value cleaned and on one line; nothing where it is NULL or empty.
void page_field(struct page *p, const char *key, const char *value);
// Several lines of foreign text, indented.
void page_block(struct page *p, enum slot slot, const char *text, size_t n);
// A kernel's source, coloured; the page takes it over.
void page_code(struct page *p, char *code, size_t n);
void page_draw(struct page *p, struct canvas *c, struct rect r);
bool page_search(struct page *p, const char *text, bool back, bool again);
