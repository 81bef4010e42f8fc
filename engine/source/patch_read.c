#include "source/patch_int.h"

#include <ctype.h>

void text_lines_read(const char *s, size_t n, text_lines *out)
{
    for (size_t at = 0; at < n;) {
        const char *nl = memchr(s + at, '\n', n - at);
        size_t end = nl ? (size_t)(nl - s) : n, stop = end;
        while (stop > at && (s[stop - 1] == ' ' || s[stop - 1] == '\t' || s[stop - 1] == '\r'))
            stop--;
        struct text_line l = {at, stop - at, nl ? end + 1 : n};
        vec_push(out, l);
        at = l.next;
    }
}

enum mark { M_NONE, M_SEARCH, M_DIVIDER, M_REPLACE };

static enum mark mark_of(const char *s, const struct text_line *l, long *anchor)
{
    static const struct {
        const char *text;
        enum mark mark;
    } marks[] = {{"<<<<<<< SEARCH", M_SEARCH}, {"=======", M_DIVIDER}, {">>>>>>> REPLACE", M_REPLACE}};
    for (size_t i = 0; i < countof(marks); i++) {
        size_t k = strlen(marks[i].text);
        if (l->len < k || memcmp(s + l->at, marks[i].text, k) != 0)
            continue;
        if (l->len == k)
            return marks[i].mark;
        const char *rest = s + l->at + k, *end = s + l->at + l->len;
        while (rest < end && *rest == ' ')
            rest++;
        if (marks[i].mark != M_SEARCH || *rest != '@' || end - rest < 2 || end - rest > 9)
            return M_NONE;
        *anchor = 0;
        for (rest++; rest < end; rest++) {
            if (!isdigit((unsigned char)*rest))
                return M_NONE;
            *anchor = *anchor * 10 + (*rest - '0');
        }
        return M_SEARCH;
    }
    return M_NONE;
}

void blocks_free(blocks *b)
{
    for (size_t i = 0; i < b->n; i++) {
        vec_free(&b->v[i].lines);
        vec_free(&b->v[i].splits);
    }
    vec_free(b);
}

static int out_of_order(struct err *e, size_t line, const char *what)
{
    return err_set(e, ERR_FAIL, "A block is <<<<<<< SEARCH, old lines, =======, new lines, >>>>>>> REPLACE.",
                   "line %zu of the patch: %s", line, what);
}

int blocks_read(const char *patch, size_t n, blocks *out, struct err *e)
{
    text_lines lines = {0};
    struct block *b = NULL; // the open one
    int r = 0;
    text_lines_read(patch, n, &lines);
    for (size_t i = 0; i < lines.n && r == 0; i++) {
        long anchor = 0;
        enum mark m = mark_of(patch, &lines.v[i], &anchor);
        if (m == M_SEARCH && b)
            r = out_of_order(e, i + 1, "a SEARCH marker inside of a block");
        else if (m == M_SEARCH) {
            struct block fresh = {.s = patch, .anchor = anchor, .line = i + 1};
            vec_push(out, fresh);
            b = &out->v[out->n - 1];
        } else if (m == M_REPLACE && (!b || !b->splits.n))
            r = out_of_order(
                e, i + 1, b ? "a REPLACE marker before any =======" : "a REPLACE marker without its SEARCH");
        else if (m == M_REPLACE)
            b = NULL;
        else if (b) {
            if (m == M_DIVIDER)
                vec_push(&b->splits, b->lines.n);
            vec_push(&b->lines, lines.v[i]);
        }
    }
    if (r == 0 && b)
        r = out_of_order(e, lines.n, "the last block has no REPLACE marker");
    if (r == 0 && out->n == 0)
        r = err_set(e, ERR_FAIL, "", "the patch holds no SEARCH/REPLACE block");
    vec_free(&lines);
    return r;
}

// ---- places

static size_t indent_of(const char *s, const struct text_line *l)
{
    size_t i = 0;
    while (i < l->len && (s[l->at + i] == ' ' || s[l->at + i] == '\t'))
        i++;
    return i;
}

static bool same(const char *a, const struct text_line *x, const char *b, const struct text_line *y)
{
    return x->len == y->len && memcmp(a + x->at, b + y->at, x->len) == 0;
}

static bool exact_at(const char *text, const text_lines *t, const struct block *b, size_t n, size_t first)
{
    for (size_t i = 0; i < n; i++)
        if (!same(text, &t->v[first + i], b->s, &b->lines.v[i]))
            return false;
    return true;
}

// The same but for one piece of white space that every line has more, or less.
static bool shifted_at(const char *text, const text_lines *t, const struct block *b, size_t n,
                       struct place *p)
{
    bool known = false;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        const struct text_line *x = &t->v[p->first + i], *y = &b->lines.v[i];
        bool blank = line_blank(text, x);
        if (blank != line_blank(b->s, y))
            return false;
        if (blank)
            continue;
        size_t ix = indent_of(text, x), iy = indent_of(b->s, y);
        if (x->len - ix != y->len - iy || memcmp(text + x->at + ix, b->s + y->at + iy, x->len - ix) != 0)
            return false;
        bool cut = iy > ix;
        const char *longer = cut ? b->s + y->at : text + x->at, *shorter = cut ? text + x->at : b->s + y->at;
        size_t d = cut ? iy - ix : ix - iy;
        if (d >= sizeof p->shift || memcmp(longer + d, shorter, cut ? ix : iy) != 0)
            return false;
        if (known && (d != k || (d && (cut != p->cut || memcmp(longer, p->shift, d) != 0))))
            return false;
        known = true;
        k = d;
        p->cut = cut;
        memcpy(p->shift, longer, d);
        p->shift[d] = 0;
    }
    p->shifted = true;
    return known;
}

void places_find(const char *text, const text_lines *t, const struct block *b, size_t n, places *out)
{
    for (int shift = 0; shift < 2 && out->n == 0; shift++)
        for (size_t first = 0; n && first + n <= t->n; first++) {
            struct place p = {.first = first, .n = n};
            if (shift ? shifted_at(text, t, b, n, &p) : exact_at(text, t, b, n, first))
                vec_push(out, p);
        }
}

// ---- the nearest text

// Which of 64 classes of letter pairs a line has: cheap to compare, so that a long file does not hold the
// caller up.
static uint64_t pairs_of(const char *s, const struct text_line *l)
{
    uint64_t set = 0;
    char last = ' ';
    for (size_t i = 0; i < l->len; i++) {
        char c = s[l->at + i];
        if (c == ' ' || c == '\t')
            continue;
        set |= (uint64_t)1 << (((unsigned char)last * 31u + (unsigned char)c * 7u) % 64);
        last = c;
    }
    return set;
}

static double alike(uint64_t a, uint64_t b)
{
    int all = __builtin_popcountll(a | b);
    return all ? (double)__builtin_popcountll(a & b) / all : 1;
}

void patch_say_nearest(const char *text, const text_lines *t, const struct block *b, size_t n,
                       struct str *out)
{
    enum { MOST = 60 };
    size_t m = n < MOST ? n : MOST, best = 0;
    double best_score = 0;
    VEC(uint64_t) theirs = {0};
    uint64_t mine[MOST];
    for (size_t i = 0; i < m; i++)
        mine[i] = pairs_of(b->s, &b->lines.v[i]);
    for (size_t i = 0; i < t->n; i++)
        vec_push(&theirs, pairs_of(text, &t->v[i]));
    for (size_t first = 0; m && first + m <= t->n; first++) {
        double score = 0;
        for (size_t i = 0; i < m; i++)
            score += alike(mine[i], theirs.v[first + i]) / (double)m;
        if (score > best_score) {
            best_score = score;
            best = first;
        }
    }
    vec_free(&theirs);
    if (best_score < 0.4) {
        str_add(out, "Nothing in the source is like these lines.\n");
        return;
    }
    str_addf(out,
             "The nearest text is lines %zu-%zu (%.0f %% alike). Copy it exactly; - is what you wrote, + "
             "what stands there:\n",
             best + 1, best + m, 100 * best_score);
    for (size_t i = 0; i < m; i++) {
        const struct text_line *x = &t->v[best + i], *y = &b->lines.v[i];
        if (same(text, x, b->s, y)) {
            str_addf(out, "  %.*s\n", (int)x->len, text + x->at);
            continue;
        }
        str_addf(out, "- %.*s\n", (int)y->len, b->s + y->at);
        str_addf(out, "+ %.*s\n", (int)x->len, text + x->at);
    }
}
