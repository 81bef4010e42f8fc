// The forms code takes in an answer: fences, blocks, hunks. For reply.c.
#pragma once
#include "base/str.h"
#include "base/vec.h"

struct piece { // bytes [at, end) of a text
    size_t at, end;
};
struct fence {
    struct piece body;
    size_t open, close; // where its opening line begins and its closing one ends
    char info[24];      // the first word after the ```, lower case
    bool closed;
};
typedef VEC(struct fence) fences;

// The end of the line that begins at `at` (without its newline), and the start of the next.
size_t line_end(const char *s, size_t n, size_t at);
size_t line_next(const char *s, size_t n, size_t at);

// Fences of ` or ~ of any length, also opened at the end of a line of prose or closed at the end of a line of
// code.
void fences_find(const char *s, size_t n, fences *out);

enum blocks_state { BLOCKS_NONE, BLOCKS_OK, BLOCKS_OPEN, BLOCKS_BAD };
// SEARCH/REPLACE blocks anywhere in the text, written canonically one after the other. bad: in words.
enum blocks_state blocks_collect(const char *s, size_t n, struct str *out, struct str *bad);
// Hunks of a unified diff or of a "*** Begin Patch", as such blocks.
enum blocks_state hunks_collect(const char *s, size_t n, struct str *out);

// A copy with comments, strings and character constants blanked, so that what is left is code. Newlines stay.
// false: one of them does not end.
bool code_mask(const char *s, size_t n, struct str *out);
// Does masked code define the function: NAME ( ... ) {
bool code_defines(const struct str *masked, const char *func);
bool code_balanced(const struct str *masked);
// Does it leave parts out: "// ... rest of the code ...", "...existing code..."?
bool code_elided(const char *s, size_t n, const struct str *masked);
// The same apart from white space?
bool code_same(const char *a, size_t n, const char *b, size_t m);
