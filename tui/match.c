#include "tui/match.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

const char *match_find(const char *s, size_t n, const char *text)
{
    size_t len = strlen(text);
    bool exact = false;
    for (const char *t = text; *t; t++)
        exact = exact || isupper((unsigned char)*t);
    for (size_t i = 0; i + len <= n; i++)
        if (exact ? memcmp(s + i, text, len) == 0 : strncasecmp(s + i, text, len) == 0)
            return s + i;
    return NULL;
}

const char *match_in(const char *s, const char *text)
{
    return s ? match_find(s, strlen(s), text) : NULL;
}
