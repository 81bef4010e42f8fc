// Errors are values: what failed, where, and what the user does next. Functions that can fail return 0 or -1
// and fill a caller's struct err; the caller decides whether to print, journal or recover.
#pragma once
#include "base/vec.h"

#include <stdbool.h>
#include <stdio.h>

enum err_kind {
    ERR_NONE = 0,
    ERR_FAIL = 1,  // the work failed: exit status 1
    ERR_USAGE = 2, // the caller's words or files are wrong: exit status 2
};

struct err {
    enum err_kind kind;
    char where[160]; // "task.ini:12:9", or empty
    char msg[512];   // what is wrong, in words
    char hint[320];  // what to do next, or empty
};

// Fills e (which may be NULL) and returns -1, so that `return err_set(...)` reads well.
__attribute__((format(printf, 4, 5))) int err_set(struct err *e, enum err_kind kind, const char *hint,
                                                  const char *fmt, ...);
// The same with the text of errno appended.
__attribute__((format(printf, 3, 4))) int err_sys(struct err *e, const char *hint, const char *fmt, ...);
// Checkers see through these that an error is never 0; they cannot see into err.c.
static inline int err_negative(int r)
{
    return r < 0 ? r : -1;
}
#define err_set(...) err_negative(err_set(__VA_ARGS__))
#define err_sys(...) err_negative(err_sys(__VA_ARGS__))
// Adds the place to an error: "path:line:column"; line 0 leaves line and column out.
void err_at(struct err *e, const char *path, int line, int column);
// "ksmith: WHERE: MSG\n  HINT\n" on f, with control characters made harmless.
void err_print(const struct err *e, FILE *f);
static inline int err_status(const struct err *e)
{
    return e->kind == ERR_NONE ? ERR_FAIL : (int)e->kind;
}

// Every error of a file, not only the first.
typedef VEC(struct err) err_list;
__attribute__((format(printf, 6, 7))) void err_list_add(err_list *l, const char *path, int line, int column,
                                                        const char *hint, const char *fmt, ...);
