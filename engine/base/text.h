// Text that is not ours (kernels, compilers, models, commit messages) made harmless for a terminal. Every
// sink that prints such text goes through here: facts are that ESC, C1 bytes, bidi overrides and embedded CR
// drive terminals.
#pragma once
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum text_mode {
    TEXT_LINE,  // newlines become \n in words: the result is one line
    TEXT_BLOCK, // newlines stay, tabs become spaces
};

// Appends s[0..n) to out: control characters as ^X, C1 and invalid bytes as \xNN, format characters (bidi,
// zero width, byte order mark) as <U+XXXX>.
void text_clean(struct str *out, const char *s, size_t n, enum text_mode mode);
// Decodes one UTF-8 code point; returns its length, 0 for invalid or overlong bytes and surrogates.
int text_decode(const char *s, size_t n, uint32_t *cp);
bool text_valid_utf8(const char *s, size_t n);
