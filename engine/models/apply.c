#include "models/apply.h"

#include "base/log.h"
#include "base/text.h"
#include "models/forms.h"
#include "source/patch.h"
#include "source/region.h"
#include "source/token.h"

// The parent's kind of newline, and its last line ended or not as the parent's.
static void adopt_newlines(const struct apply_opts *o, const char *s, size_t n, struct str *out)
{
    bool crlf = memmem(o->parent, o->parent_len, "\r\n", 2) != NULL;
    bool ended = o->parent_len == 0 || o->parent[o->parent_len - 1] == '\n';
    while (n && s[n - 1] == '\n')
        n--;
    str_reserve(out, n + 2);
    str_add(out, "");
    for (size_t i = 0; i < n; i++) {
        if (crlf && s[i] == '\n')
            str_addc(out, '\r');
        str_addc(out, s[i]);
    }
    if (ended)
        str_add(out, crlf ? "\r\n" : "\n");
}

static int check(const struct apply_opts *o, const struct str *child, struct str *problem)
{
    err_list errors = {0};
    int r = region_check(o->parent, o->parent_len, str_c(child), child->len, o->path, o->func, o->evolve,
                         &errors);
    if (r < 0)
        str_add(problem, "The change reaches outside of what may change:\n");
    for (size_t i = 0; r < 0 && i < errors.n && i < 5; i++) {
        str_addf(problem, "- %s%s", errors.v[i].where, errors.v[i].where[0] ? ": " : "");
        text_clean(problem, errors.v[i].msg, strlen(errors.v[i].msg), TEXT_LINE);
        str_addc(problem, '\n');
    }
    vec_free(&errors);
    return r;
}

// Is there nothing in the text but the function, comments, white space and #include lines?
static bool only_function(const struct str *text, const struct span *body)
{
    struct str masked = {0};
    bool only = code_mask(str_c(text), text->len, &masked);
    // Before the body: one definition's head, so no other brace or semicolon.
    size_t n = masked.len;
    for (size_t at = 0; only && at < n; at = line_next(masked.s, n, at)) {
        size_t end = line_end(masked.s, n, at), i = at;
        while (i < end && (masked.s[i] == ' ' || masked.s[i] == '\t'))
            i++;
        bool outside = end <= body->at || at >= body->end;
        if (!outside ||
            (i < end && masked.s[i] == '#' && strstr(masked.s + i, "include") == masked.s + i + 1))
            continue;
        only = i == end || masked.s[i] != '#';
        for (; only && i < end; i++) {
            bool inside = i >= body->at && i < body->end;
            only = inside || masked.s[i] != ';';
        }
    }
    str_free(&masked);
    return only;
}

// Is a the same as b to the compiler?
static bool same_code(const struct str *a, const struct str *b)
{
    char x[65], y[65];
    source_norm_hash(str_c(a), a->len, x);
    source_norm_hash(str_c(b), b->len, y);
    return str_eq(x, y);
}

// An answer that is the function alone, or a whole file that differs outside of the body in white space and
// comments only: its body goes into the parent's place.
static int splice_body(const struct apply_opts *o, const struct str *text, struct str *child)
{
    struct region mine = {0}, theirs = {0};
    int r = region_find(&mine, o->parent, o->parent_len, o->path, o->func, EVOLVE_BODY, NULL);
    if (r == 0)
        r = region_find(&theirs, str_c(text), text->len, o->path, o->func, EVOLVE_BODY, NULL);
    if (r == 0 && mine.spans.n == 1 && theirs.spans.n == 1) {
        const struct span *a = &mine.spans.v[0], *b = &theirs.spans.v[0];
        str_clear(child);
        str_addn(child, o->parent, o->parent_len);
        str_splice(child, a->at, a->end - a->at, text->s + b->at, b->end - b->at);
        r = only_function(text, b) || same_code(child, text) ? 0 : -1;
    } else
        r = -1;
    region_free(&mine);
    region_free(&theirs);
    return r;
}

static int place_source(const struct reply *r, const struct apply_opts *o, struct str *child,
                        struct str *problem)
{
    struct str spliced = {0};
    adopt_newlines(o, r->body.s, r->body.len, child);
    // The function alone fits where a whole file would lose its includes, whatever may change.
    bool lost = memmem(o->parent, o->parent_len, "#include", 8) && !strstr(str_c(child), "#include");
    int ok = lost ? -1 : check(o, child, problem);
    if (ok < 0 && splice_body(o, child, &spliced) == 0) {
        struct str second = {0};
        if (check(o, &spliced, &second) == 0) {
            str_clear(problem);
            str_clear(child);
            str_addn(child, spliced.s, spliced.len);
            ok = 0;
        }
        str_free(&second);
    }
    if (ok < 0 && lost && !problem->len)
        ok = check(o, child, problem);
    str_free(&spliced);
    return ok;
}

static int place_patch(struct reply *r, const struct apply_opts *o, struct str *child, struct str *problem)
{
    struct region region = {0};
    struct patch_result result = {0};
    struct err e = {0};
    int ok = region_find(&region, o->parent, o->parent_len, o->path, o->func, o->evolve, &e);
    if (ok == 0)
        ok = patch_apply(o->parent, o->parent_len, r->body.s, r->body.len, &region, &result, &e);
    if (ok == 0) {
        str_addn(child, result.text.s, result.text.len);
        ok = check(o, child, problem);
    } else if (result.nothing) {
        r->kind = REPLY_SAME;
        str_add(problem, "The patch changes nothing. Change something that can matter for speed.");
    } else {
        str_addf(problem, "The patch does not apply: %s\n", e.msg);
        str_addn(problem, str_c(&result.diagnostic), result.diagnostic.len);
    }
    patch_result_free(&result);
    region_free(&region);
    return ok;
}

int reply_apply(struct reply *r, const struct apply_opts *o, struct str *child, struct str *problem)
{
    str_clear(child);
    str_clear(problem);
    if (r->kind != REPLY_PATCH && r->kind != REPLY_SOURCE) {
        str_addn(problem, str_c(&r->problem), r->problem.len);
        return -1;
    }
    int ok = r->kind == REPLY_PATCH ? place_patch(r, o, child, problem) : place_source(r, o, child, problem);
    if (ok == 0) {
        const struct str parent = {.s = (char *)(uintptr_t)o->parent, .len = o->parent_len};
        if (same_code(&parent, child)) {
            r->kind = REPLY_SAME;
            str_add(problem, "The change makes no difference to the compiler. Change something that can "
                             "matter for speed.");
            ok = -1;
        }
    }
    if (ok < 0)
        str_clear(child);
    return ok;
}
