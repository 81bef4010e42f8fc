#include "cpu/verdict.h"

#include <stdarg.h>
#include <stdio.h>

const char *const status_names[STATUS_COUNT] = {
    "ok",      "duplicate", "rejected", "compile_error", "launch_error", "wrong",
    "timeout", "crash",     "flagged",  "cancelled",     "trouble",
};

bool fault_set(struct fault *f, enum status s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    f->status = s;
    vsnprintf(f->reason, sizeof f->reason, fmt, ap);
    va_end(ap);
    return false;
}
