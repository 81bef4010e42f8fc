// How a search matches in every view: case counts where the searched text holds a capital.
#pragma once
#include <stddef.h>

// The first place of `text` in s[0..n), or NULL.
const char *match_find(const char *s, size_t n, const char *text);
// The same in a whole string, which may be NULL.
const char *match_in(const char *s, const char *text);
