#include "base/err.h"

#include "base/str.h"
#include "base/text.h"

#undef err_set
#undef err_sys

#include <errno.h>
#include <stdarg.h>

static void fill(struct err *e, enum err_kind kind, const char *hint, const char *fmt, va_list ap)
{
    e->kind = kind;
    e->where[0] = 0;
    snprintf(e->hint, sizeof e->hint, "%s", hint ? hint : "");
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
}

int err_set(struct err *e, enum err_kind kind, const char *hint, const char *fmt, ...)
{
    if (!e)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    fill(e, kind, hint, fmt, ap);
    va_end(ap);
    return -1;
}

int err_sys(struct err *e, const char *hint, const char *fmt, ...)
{
    int code = errno;
    if (!e)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    fill(e, ERR_FAIL, hint, fmt, ap);
    va_end(ap);
    size_t n = strlen(e->msg);
    snprintf(e->msg + n, sizeof e->msg - n, ": %s", strerror(code));
    if (!e->hint[0] && code == ENOSPC)
        snprintf(e->hint, sizeof e->hint,
                 "The disk is full: free some space and run the same command again.");
    return -1;
}

void err_at(struct err *e, const char *path, int line, int column)
{
    if (!e)
        return;
    if (line > 0)
        snprintf(e->where, sizeof e->where, "%s:%d:%d", path, line, column);
    else
        snprintf(e->where, sizeof e->where, "%s", path);
}

void err_print(const struct err *e, FILE *f)
{
    struct str line = {0};
    str_add(&line, "ksmith: ");
    if (e->where[0]) {
        text_clean(&line, e->where, strlen(e->where), TEXT_LINE);
        str_add(&line, ": ");
    }
    text_clean(&line, e->msg, strlen(e->msg), TEXT_LINE);
    if (e->hint[0]) {
        str_add(&line, "\n  ");
        text_clean(&line, e->hint, strlen(e->hint), TEXT_LINE);
    }
    fprintf(f, "%s\n", str_c(&line));
    str_free(&line);
}

void err_list_add(err_list *l, const char *path, int line, int column, const char *hint, const char *fmt, ...)
{
    struct err e = {0};
    va_list ap;
    va_start(ap, fmt);
    fill(&e, ERR_USAGE, hint, fmt, ap);
    va_end(ap);
    err_at(&e, path, line, column);
    vec_push(l, e);
}
