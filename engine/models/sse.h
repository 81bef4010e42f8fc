// Server-sent events, as the HTML standard defines them, for text that may be cut anywhere: a line or a UTF-8
// sequence that is not complete waits for the rest. Lines end with LF, CR or CRLF; a byte order mark at the
// start is dropped. Beyond the standard, because servers do it: an "error:" field is an event named "error",
// a bare line that begins with
// '{' is an event named "json", and the last event counts without its blank line.
#pragma once
#include "base/err.h"
#include "base/str.h"

enum { SSE_MAX_LINE = 4 << 20, SSE_MAX_EVENT = 8 << 20 };

// One event: its name ("message" where it has none) and its data lines joined by LF (NUL-terminated, may hold
// anything). false stops the parser.
typedef bool sse_fn(void *user, const char *name, const char *data, size_t n);

struct sse {
    sse_fn *fn;
    void *user;
    struct str line, data, name;
    size_t events;
    bool any, after_cr, has_data, stopped;
};

void sse_init(struct sse *s, sse_fn *fn, void *user);
// -1 and an error where a line or an event is over its limit; then, and after a stop, further calls do
// nothing.
int sse_feed(struct sse *s, const char *bytes, size_t n, struct err *e);
// The stream ended: delivers what stands.
int sse_end(struct sse *s, struct err *e);
void sse_free(struct sse *s);
