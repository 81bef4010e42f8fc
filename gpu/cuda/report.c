#include "cuda/report.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    const char *s;
    size_t n;
};

static bool next_line(const char **at, const char *end, struct line *l)
{
    if (*at >= end)
        return false;
    const char *nl = memchr(*at, '\n', (size_t)(end - *at));
    l->s = *at;
    l->n = (size_t)((nl ? nl : end) - *at);
    *at = nl ? nl + 1 : end;
    return true;
}

static const char *find_in(const struct line *l, const char *what)
{
    return memmem(l->s, l->n, what, strlen(what));
}

// The number that stands before `what` ("32 registers"), or -1.
static int number_before(const struct line *l, const char *what)
{
    const char *p = find_in(l, what);
    if (!p)
        return -1;
    while (p > l->s && p[-1] == ' ')
        p--;
    const char *end = p;
    while (p > l->s && isdigit((unsigned char)p[-1]))
        p--;
    if (p == end)
        return -1;
    long v = 0;
    for (; p < end && v < 100000000; p++)
        v = v * 10 + (*p - '0');
    return (int)v;
}

static void set_if(int *field, int v)
{
    if (v >= 0)
        *field = v;
}

static void quoted(const struct line *l, char *out, size_t size)
{
    const char *from = memchr(l->s, '\'', l->n);
    const char *to = from ? memchr(from + 1, '\'', (size_t)(l->s + l->n - from - 1)) : NULL;
    size_t n = to ? (size_t)(to - from - 1) : 0;
    if (n >= size)
        n = size - 1;
    memcpy(out, from ? from + 1 : "", n);
    out[n] = 0;
}

void report_parse(const char *log, size_t n, kernel_reports *out)
{
    const char *at = log, *end = log + n;
    struct line l;
    struct kernel_report *k = NULL;
    while (next_line(&at, end, &l)) {
        if (find_in(&l, "Compiling entry function")) {
            struct kernel_report r = {0};
            quoted(&l, r.name, sizeof r.name);
            vec_push(out, r);
            k = &out->v[out->n - 1];
        } else if (k && find_in(&l, "bytes stack frame")) {
            // The first such line after the entry's own is the entry's; device functions follow with theirs.
            set_if(&k->stack_bytes, number_before(&l, " bytes stack frame"));
            set_if(&k->spill_stores, number_before(&l, " bytes spill stores"));
            set_if(&k->spill_loads, number_before(&l, " bytes spill loads"));
        } else if (k && find_in(&l, "Used ") && find_in(&l, " registers")) {
            set_if(&k->registers, number_before(&l, " registers"));
            set_if(&k->barriers, number_before(&l, " barriers"));
            set_if(&k->shared_bytes, number_before(&l, " bytes smem"));
            k = NULL;
        }
    }
}

const struct kernel_report *report_find(const kernel_reports *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->v[i].name, name) == 0)
            return &r->v[i];
    return NULL;
}

enum class { NOTHING, CONTINUES, ERROR_LINE, WARNING_LINE };

static enum class classify(const struct line *l) {
    static const char *const errors[] = {": error", "error   :", "; error", "fatal   :", "catastrophic error",
                                         "nvrtc: error", "Unresolved extern"};
    if (find_in(l, "ptxas info") || find_in(l, "ptxas         .") || find_in(l, " in the compilation of ") ||
        find_in(l, "Compilation terminated") ||
        find_in(l, "Remark: The warnings can be suppressed")) return NOTHING;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) if (find_in(l, errors[i])) return ERROR_LINE;
    if (find_in(l, "warning")) return WARNING_LINE;
    return CONTINUES;
}

// One pass over the log for the blocks of one class; returns how many did not fit.
static int pass(const char *log, size_t n, size_t limit, enum class want, struct str *out)
{
    const char *at = log, *end = log + n;
    struct line l;
    bool inside = false;
    int left_out = 0;
    while (next_line(&at, end, &l)) {
        enum class c = classify(&l);
        bool blank = true;
        for (size_t i = 0; i < l.n; i++)
            blank &= isspace((unsigned char)l.s[i]) != 0;
        if (c == ERROR_LINE || c == WARNING_LINE) {
            inside = c == want && out->len + l.n + 1 <= limit;
            left_out += c == want && !inside;
        } else if (c == NOTHING || blank) {
            inside = false;
        }
        if (inside && out->len + l.n + 1 <= limit) {
            str_addn(out, l.s, l.n);
            str_addc(out, '\n');
        }
    }
    return left_out;
}

void report_distil(const char *log, size_t n, size_t limit, struct str *out)
{
    size_t room = limit > 64 ? limit - 32 : limit;
    struct str part = {0};
    int left = pass(log, n, room, ERROR_LINE, &part);
    left += pass(log, n, room, WARNING_LINE, &part);
    if (part.len == 0 && n &&
        !memmem(log, n, "ptxas", 5)) // a log of a form that we do not know: its beginning
        str_addn(&part, log, n < room ? n : room);
    str_addn(out, str_c(&part), part.len);
    if (left)
        str_addf(out, "[%d more]\n", left);
    str_free(&part);
}
