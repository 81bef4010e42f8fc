// Allocation that cannot fail: out of memory ends the process with a message, because no caller could do
// better.
#pragma once
#include <stddef.h>

void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
// Like reallocarray: the product is checked for overflow.
void *xrealloc(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
__attribute__((format(printf, 1, 2))) char *xasprintf(const char *fmt, ...);
