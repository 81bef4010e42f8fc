#include "base/str.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void str_free(struct str *b)
{
    free(b->s);
    *b = (struct str){0};
}

void str_clear(struct str *b)
{
    b->len = 0;
    if (b->s)
        b->s[0] = 0;
}

void str_reserve(struct str *b, size_t extra)
{
    size_t want = b->len + extra + 1;
    if (want <= b->cap)
        return;
    size_t cap = b->cap ? b->cap * 2 : 64;
    if (cap < want)
        cap = want;
    b->s = xrealloc(b->s, cap, 1);
    b->cap = cap;
}

void str_addn(struct str *b, const char *s, size_t n)
{
    str_reserve(b, n);
    if (n)
        memcpy(b->s + b->len, s, n);
    b->len += n;
    b->s[b->len] = 0;
}

void str_add(struct str *b, const char *s)
{
    str_addn(b, s, strlen(s));
}

void str_addc(struct str *b, char c)
{
    str_addn(b, &c, 1);
}

void str_addv(struct str *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        return;
    str_reserve(b, (size_t)n);
    vsnprintf(b->s + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
}

void str_addf(struct str *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    str_addv(b, fmt, ap);
    va_end(ap);
}

void str_splice(struct str *b, size_t at, size_t del, const char *s, size_t n)
{
    str_reserve(b, n);
    memmove(b->s + at + n, b->s + at + del, b->len - at - del);
    if (n)
        memcpy(b->s + at, s, n);
    b->len = b->len - del + n;
    b->s[b->len] = 0;
}

const char *str_c(const struct str *b)
{
    return b->s ? b->s : "";
}

char *str_steal(struct str *b)
{
    char *s = b->s ? b->s : xstrdup("");
    *b = (struct str){0};
    return s;
}

bool str_eq(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

char *str_trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1]))
        s[--n] = 0;
    return s;
}

// Copies one word of s to *out, advancing both; false where a quote is left open.
static bool word_copy(const char **s, char **out)
{
    char quote = 0;
    for (; **s && (quote || !isspace((unsigned char)**s)); (*s)++) {
        char c = **s;
        if (quote ? c == quote : c == '\'' || c == '"')
            quote = quote ? 0 : c;
        else
            *(*out)++ = c;
    }
    *(*out)++ = 0;
    return !quote;
}

char **str_words(const char *s, size_t *n)
{
    size_t len = strlen(s), most = len / 2 + 2;
    char **words = xmalloc(most * sizeof *words + len + 2);
    char *out = (char *)(words + most);
    size_t count = 0;
    for (;;) {
        while (isspace((unsigned char)*s))
            s++;
        if (!*s)
            break;
        words[count++] = out;
        if (!word_copy(&s, &out)) {
            free(words);
            return NULL;
        }
    }
    words[count] = NULL;
    if (n)
        *n = count;
    return words;
}

static size_t edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > 63 || m > 63)
        return 99;
    size_t row[64];
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t up = row[j];
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (up + 1 < best)
                best = up + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = up;
            row[j] = best;
        }
    }
    return row[m];
}

const char *str_nearest(const char *word, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    size_t limit = strlen(word) / 3 + 1, best_d = limit + 1;
    for (size_t i = 0; i < n; i++) {
        size_t d = edit_distance(word, candidates[i]);
        if (d < best_d) {
            best_d = d;
            best = candidates[i];
        }
    }
    return best;
}
