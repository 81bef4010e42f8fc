#include "source/region.h"

#include "source/func.h"

#include <string.h>

void region_free(struct region *r)
{
    vec_free(&r->spans);
}

static void add_span(struct region *r, const char *text, size_t len, size_t at, size_t end)
{
    struct span s = {.at = at, .end = end};
    uint32_t col;
    text_place(text, len, at, &s.line, &col);
    text_place(text, len, end, &s.last_line, &col);
    vec_push(&r->spans, s);
}

static int find_body(struct region *r, const char *text, size_t len, const char *path, const char *func,
                     struct err *e)
{
    struct tokens ts;
    struct func f;
    tokens_read(&ts, text, len);
    int n = func_find(&f, &ts, path, func, func_is_cxx(path), e);
    if (n == 0) {
        add_span(r, text, len, ts.t.v[f.open].at + 1, ts.t.v[f.close].at);
        func_free(&f);
    }
    tokens_free(&ts);
    return n;
}

static int find_markers(struct region *r, const char *text, size_t len, const char *path, struct err *e)
{
    size_t open = 0;
    bool inside = false;
    uint32_t line = 1;
    for (size_t at = 0; at < len; line++) {
        const char *nl = memchr(text + at, '\n', len - at);
        size_t end = nl ? (size_t)(nl - text) : len, n = end - at;
        bool start = memmem(text + at, n, "EVOLVE-BLOCK-START", 18) != NULL,
             stop = memmem(text + at, n, "EVOLVE-BLOCK-END", 16) != NULL;
        if ((start && inside) || (stop && !inside)) {
            err_set(e, ERR_USAGE, "Each START needs its END, without nesting.", "%s",
                    start ? "a marker inside a marked block" : "an END without a START");
            err_at(e, path, (int)line, 1);
            return -1;
        }
        if (start) {
            open = end < len ? end + 1 : end;
            inside = true;
        } else if (stop) {
            add_span(r, text, len, open, at);
            inside = false;
        }
        at = end + 1;
    }
    if (inside || r->spans.n == 0) {
        err_set(e, ERR_USAGE, "Put // EVOLVE-BLOCK-START and // EVOLVE-BLOCK-END around what may change.",
                "%s", inside ? "a marked block without its END" : "no EVOLVE-BLOCK-START marker");
        err_at(e, path, 0, 0);
        return -1;
    }
    return 0;
}

int region_find(struct region *r, const char *text, size_t len, const char *path, const char *func,
                enum task_evolve how, struct err *e)
{
    *r = (struct region){0};
    if (how == EVOLVE_BODY)
        return find_body(r, text, len, path, func, e);
    if (how == EVOLVE_MARKERS)
        return find_markers(r, text, len, path, e);
    add_span(r, text, len, 0, len);
    return 0;
}

bool region_allows(const struct region *r, size_t at, size_t end)
{
    for (size_t i = 0; i < r->spans.n; i++)
        if (at >= r->spans.v[i].at && end <= r->spans.v[i].end)
            return true;
    return false;
}

static bool signature_of(const char *text, size_t len, const char *path, const char *func, struct str *out,
                         struct err *e)
{
    struct tokens ts;
    struct func f;
    tokens_read(&ts, text, len);
    bool ok = func_find(&f, &ts, path, func, func_is_cxx(path), e) == 0;
    if (ok) {
        func_signature(&f, out);
        func_free(&f);
    }
    tokens_free(&ts);
    return ok;
}

static void check_signature(const char *parent, size_t plen, const char *cand, size_t clen, const char *path,
                            const char *func, err_list *errors)
{
    struct str a = {0}, b = {0};
    struct err e = {0};
    if (!signature_of(cand, clen, path, func, &b, &e))
        vec_push(errors, e);
    else if (signature_of(parent, plen, path, func, &a, &e) && !str_eq(str_c(&a), str_c(&b)))
        err_list_add(errors, path, 0, 0, "", "the signature is %s, it must stay %s", str_c(&b), str_c(&a));
    str_free(&a);
    str_free(&b);
}

int region_check(const char *parent, size_t plen, const char *cand, size_t clen, const char *path,
                 const char *func, enum task_evolve how, err_list *errors)
{
    struct region a = {0}, b = {0};
    struct err e = {0};
    size_t before = errors->n;
    if (region_find(&a, parent, plen, path, func, how, &e) < 0 ||
        region_find(&b, cand, clen, path, func, how, &e) < 0) {
        vec_push(errors, e);
        region_free(&a);
        region_free(&b);
        return -1;
    }
    if (a.spans.n != b.spans.n) {
        err_list_add(errors, path, 0, 0, "", "%zu evolve regions, there must stay %zu", b.spans.n, a.spans.n);
    } else {
        size_t pa = 0, pb = 0;
        for (size_t i = 0; i <= a.spans.n; i++) {
            size_t ea = i < a.spans.n ? a.spans.v[i].at : plen, eb = i < b.spans.n ? b.spans.v[i].at : clen;
            size_t same = 0;
            while (pa + same < ea && pb + same < eb && parent[pa + same] == cand[pb + same])
                same++;
            if (pa + same != ea || pb + same != eb) {
                uint32_t line, col;
                text_place(cand, clen, pb + same, &line, &col);
                err_list_add(errors, path, (int)line, (int)col,
                             "Change only what is inside the evolve region.",
                             "changed outside the evolve region");
                break;
            }
            pa = i < a.spans.n ? a.spans.v[i].end : 0;
            pb = i < b.spans.n ? b.spans.v[i].end : 0;
        }
    }
    region_free(&a);
    region_free(&b);
    check_signature(parent, plen, cand, clen, path, func, errors);
    return errors->n > before ? -1 : 0;
}

void region_describe(const struct region *r, struct str *out)
{
    for (size_t i = 0; i < r->spans.n; i++)
        str_addf(out, "%slines %u-%u", i ? ", " : "", r->spans.v[i].line, r->spans.v[i].last_line);
}
