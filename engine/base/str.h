// A growable byte string. A zeroed struct is the empty string; .s is NUL-terminated after any call that adds,
// and may be NULL before: use str_c() where a C string is wanted.
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct str {
    char *s;
    size_t len, cap;
};

void str_free(struct str *b);
// Empties it and keeps the memory.
void str_clear(struct str *b);
void str_reserve(struct str *b, size_t extra);
void str_add(struct str *b, const char *s);
void str_addn(struct str *b, const char *s, size_t n);
void str_addc(struct str *b, char c);
__attribute__((format(printf, 2, 3))) void str_addf(struct str *b, const char *fmt, ...);
void str_addv(struct str *b, const char *fmt, va_list ap);
// Replaces bytes [at, at+del) by s[0..n).
void str_splice(struct str *b, size_t at, size_t del, const char *s, size_t n);
// The contents as a C string, never NULL; owned by b.
const char *str_c(const struct str *b);
// Gives the contents to the caller, who frees them; b is empty afterwards.
char *str_steal(struct str *b);

bool str_eq(const char *a, const char *b); // NULL equals only NULL
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
// Cuts white space off both ends in place; returns the new start inside s.
char *str_trim(char *s);
// Splits s at white space, honouring 'single' and "double" quotes; returns a malloc'ed NULL-terminated array
// that one free() releases. NULL where a quote is left open.
char **str_words(const char *s, size_t *n);
// The candidate nearest to word by edit distance, for "did you mean"; NULL where nothing is near.
const char *str_nearest(const char *word, const char *const *candidates, size_t n);
