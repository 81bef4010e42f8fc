#include "models/sse.h"

#include <string.h>

void sse_init(struct sse *s, sse_fn *fn, void *user)
{
    *s = (struct sse){.fn = fn, .user = user};
}

void sse_free(struct sse *s)
{
    str_free(&s->line);
    str_free(&s->data);
    str_free(&s->name);
}

static void deliver(struct sse *s, const char *name, const char *data, size_t n)
{
    s->events++;
    if (!s->fn(s->user, name, data, n))
        s->stopped = true;
}

static void dispatch(struct sse *s)
{
    if (s->has_data)
        deliver(s, s->name.len ? s->name.s : "message", str_c(&s->data), s->data.len);
    s->has_data = false;
    str_clear(&s->data);
    str_clear(&s->name);
}

static int add_data(struct sse *s, const char *v, size_t n, struct err *e)
{
    if (s->data.len + n > SSE_MAX_EVENT) {
        s->stopped = true;
        return err_set(e, ERR_FAIL, "", "an event is larger than %d bytes", SSE_MAX_EVENT);
    }
    if (s->has_data)
        str_addc(&s->data, '\n');
    str_addn(&s->data, v, n);
    s->has_data = true;
    return 0;
}

// One line without its end.
static int take_line(struct sse *s, const char *line, size_t n, struct err *e)
{
    if (!s->any && n >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        n -= 3;
    }
    s->any = true;
    if (n == 0) {
        dispatch(s);
        return 0;
    }
    if (line[0] == '{') {
        dispatch(s);
        deliver(s, "json", line, n);
        return 0;
    }
    const char *colon = memchr(line, ':', n);
    if (colon == line)
        return 0; // a comment, the usual sign of life
    size_t field = colon ? (size_t)(colon - line) : n;
    const char *value = colon ? colon + 1 : line + n;
    size_t vlen = colon ? n - field - 1 : 0;
    if (vlen && *value == ' ')
        value++, vlen--;
    if (field == 4 && memcmp(line, "data", 4) == 0)
        return add_data(s, value, vlen, e);
    if (field == 5 && memcmp(line, "error", 5) == 0) {
        dispatch(s);
        str_addn(&s->data, value, vlen);
        deliver(s, "error", str_c(&s->data), vlen);
        str_clear(&s->data);
    } else if (field == 5 && memcmp(line, "event", 5) == 0) {
        str_clear(&s->name);
        str_addn(&s->name, value, vlen);
    }
    return 0; // id, retry and what nobody knows
}

static int end_line(struct sse *s, struct err *e)
{
    str_addc(&s->line, 0); // so that data handed out is terminated
    size_t n = s->line.len - 1;
    int r = take_line(s, s->line.s, n, e);
    str_clear(&s->line);
    return r;
}

int sse_feed(struct sse *s, const char *bytes, size_t n, struct err *e)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0 && !s->stopped;) {
        if (s->after_cr && bytes[i] == '\n') {
            s->after_cr = false;
            i++;
            continue;
        }
        s->after_cr = false;
        size_t k = i;
        while (k < n && bytes[k] != '\n' && bytes[k] != '\r')
            k++;
        str_addn(&s->line, bytes + i, k - i);
        if (s->line.len > SSE_MAX_LINE) {
            s->stopped = true;
            return err_set(e, ERR_FAIL, "", "a line of the stream is longer than %d bytes", SSE_MAX_LINE);
        }
        if (k < n) {
            s->after_cr = bytes[k] == '\r';
            r = end_line(s, e);
            k++;
        }
        i = k;
    }
    return r;
}

int sse_end(struct sse *s, struct err *e)
{
    int r = 0;
    if (!s->stopped && s->line.len)
        r = end_line(s, e);
    if (!s->stopped && r == 0)
        dispatch(s);
    return r;
}
