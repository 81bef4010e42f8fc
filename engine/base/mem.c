#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *p)
{
    if (!p) {
        fputs("ksmith: out of memory; close other programs or lower the population size\n", stderr);
        abort();
    }
    return p;
}

void *xmalloc(size_t n)
{
    return must(malloc(n ? n : 1));
}

void *xcalloc(size_t n, size_t size)
{
    return must(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        must(NULL);
    size_t total = n * size;
    return must(realloc(p, total ? total : 1));
}

char *xstrdup(const char *s)
{
    return must(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
    char *copy = xmalloc(n + 1);
    memcpy(copy, s, n);
    copy[n] = 0;
    return copy;
}

char *xasprintf(const char *fmt, ...)
{
    char *out = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&out, fmt, ap);
    va_end(ap);
    return must(n < 0 ? NULL : out);
}
