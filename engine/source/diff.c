#include "source/diff.h"

#include "base/hash.h"
#include "source/token.h"

enum { WORK_MAX = 4000000 };

static void split(const char *text, size_t len, struct diff_line **v, size_t *n, size_t *cap)
{
    struct {
        struct diff_line *v;
        size_t n, cap;
    } l = {0};
    for (size_t at = 0; at < len;) {
        const char *nl = memchr(text + at, '\n', len - at);
        size_t end = nl ? (size_t)(nl - text) : len;
        vec_push(&l, (struct diff_line){at, end - at});
        at = end + 1;
    }
    *v = l.v;
    *n = l.n;
    *cap = l.cap;
}

struct work {
    const uint64_t *a, *b;
    bool *del, *add; // lines that are not common
    int64_t *fwd, *bwd, left;
    bool coarse;
};

// The middle snake of Myers, 1986: where a shortest path from both ends meets.
static bool middle(struct work *w, int64_t a0, int64_t a1, int64_t b0, int64_t b1, int64_t *x, int64_t *y)
{
    int64_t n = a1 - a0, m = b1 - b0, delta = n - m, max = (n + m + 1) / 2;
    int64_t *f = w->fwd, *r = w->bwd, off = max + 1;
    for (int64_t i = 0; i <= 2 * max + 2; i++)
        f[i] = r[i] = -1;
    f[off + 1] = r[off + 1] = 0;
    for (int64_t d = 0; d <= max; d++) {
        for (int64_t k = -d; k <= d; k += 2) {
            int64_t p = k == -d || (k != d && f[off + k - 1] < f[off + k + 1]) ? f[off + k + 1]
                                                                               : f[off + k - 1] + 1,
                    q = p - k;
            if (p > n || q > m || q < 0) {
                f[off + k] = p > n ? n : p;
                continue;
            }
            while (p < n && q < m && w->a[a0 + p] == w->b[b0 + q])
                p++, q++;
            f[off + k] = p;
            int64_t c = delta - k;
            if ((delta & 1) && c >= -(d - 1) && c <= d - 1 && r[off + c] >= 0 && p + r[off + c] >= n) {
                *x = a0 + p;
                *y = b0 + q;
                return true;
            }
        }
        for (int64_t k = -d; k <= d; k += 2) {
            int64_t p = k == -d || (k != d && r[off + k - 1] < r[off + k + 1]) ? r[off + k + 1]
                                                                               : r[off + k - 1] + 1,
                    q = p - k;
            if (p > n || q > m || q < 0) {
                r[off + k] = p > n ? n : p;
                continue;
            }
            while (p < n && q < m && w->a[a1 - 1 - p] == w->b[b1 - 1 - q])
                p++, q++;
            r[off + k] = p;
            int64_t c = delta - k;
            if (!(delta & 1) && c >= -d && c <= d && f[off + c] >= 0 && p + f[off + c] >= n) {
                *x = a1 - p;
                *y = b1 - q;
                return true;
            }
        }
        w->left -= 2 * d + 1;
        if (w->left < 0)
            return false;
    }
    return false;
}

static void compare(struct work *w, int64_t a0, int64_t a1, int64_t b0, int64_t b1)
{
    while (a0 < a1 && b0 < b1 && w->a[a0] == w->b[b0])
        a0++, b0++;
    while (a0 < a1 && b0 < b1 && w->a[a1 - 1] == w->b[b1 - 1])
        a1--, b1--;
    int64_t x, y;
    bool found = a0 < a1 && b0 < b1 && w->left >= 0 && middle(w, a0, a1, b0, b1, &x, &y);
    w->coarse |= a0 < a1 && b0 < b1 && !found;
    bool progress = found && !((x == a0 && y == b0) || (x == a1 && y == b1));
    if (!progress) {
        for (int64_t i = a0; i < a1; i++)
            w->del[i] = true;
        for (int64_t i = b0; i < b1; i++)
            w->add[i] = true;
        return;
    }
    compare(w, a0, x, b0, y);
    compare(w, x, a1, y, b1);
}

static void push_span(struct diff *d, bool same, uint32_t a, uint32_t na, uint32_t b, uint32_t nb)
{
    if (na || nb)
        vec_push(&d->spans, (struct diff_span){same, a, na, b, nb});
}

static void build_spans(struct diff *d, const struct work *w)
{
    size_t i = 0, k = 0, n = d->la.n, m = d->lb.n;
    while (i < n || k < m) {
        size_t a = i, b = k;
        while (i < n && k < m && !w->del[i] && !w->add[k])
            i++, k++;
        push_span(d, true, (uint32_t)a, (uint32_t)(i - a), (uint32_t)b, (uint32_t)(k - b));
        a = i;
        b = k;
        while (i < n && w->del[i])
            i++;
        while (k < m && w->add[k])
            k++;
        push_span(d, false, (uint32_t)a, (uint32_t)(i - a), (uint32_t)b, (uint32_t)(k - b));
    }
}

void diff_read(struct diff *d, const char *a, size_t alen, const char *b, size_t blen)
{
    *d = (struct diff){.old_text = a, .new_text = b, .old_len = alen, .new_len = blen};
    split(a, alen, &d->la.v, &d->la.n, &d->la.cap);
    split(b, blen, &d->lb.v, &d->lb.n, &d->lb.cap);
    if (alen > DIFF_MAX_BYTES || blen > DIFF_MAX_BYTES) {
        d->too_big = true;
        push_span(d, false, 0, (uint32_t)d->la.n, 0, (uint32_t)d->lb.n);
        return;
    }
    size_t n = d->la.n, m = d->lb.n, size = n + m + 8;
    uint64_t *ha = xcalloc(n + 1, sizeof *ha), *hb = xcalloc(m + 1, sizeof *hb);
    struct work w = {.a = ha,
                     .b = hb,
                     .del = xcalloc(n + 1, 1),
                     .add = xcalloc(m + 1, 1),
                     .fwd = xcalloc(size, sizeof(int64_t)),
                     .bwd = xcalloc(size, sizeof(int64_t)),
                     .left = WORK_MAX};
    // The line break at the end is part of the last line: two texts that differ only there differ.
    for (size_t i = 0; i < n; i++)
        ha[i] = hash_bytes(a + d->la.v[i].at, d->la.v[i].len, d->la.v[i].at + d->la.v[i].len == alen);
    for (size_t i = 0; i < m; i++)
        hb[i] = hash_bytes(b + d->lb.v[i].at, d->lb.v[i].len, d->lb.v[i].at + d->lb.v[i].len == blen);
    compare(&w, 0, (int64_t)n, 0, (int64_t)m);
    d->coarse = w.coarse;
    build_spans(d, &w);
    free(ha);
    free(hb);
    free(w.del);
    free(w.add);
    free(w.fwd);
    free(w.bwd);
}

void diff_free(struct diff *d)
{
    vec_free(&d->la);
    vec_free(&d->lb);
    vec_free(&d->spans);
}

bool diff_equal(const struct diff *d)
{
    for (size_t i = 0; i < d->spans.n; i++)
        if (!d->spans.v[i].same)
            return false;
    return true;
}

void diff_stat(const struct diff *d, size_t *added, size_t *removed)
{
    *added = *removed = 0;
    for (size_t i = 0; i < d->spans.n; i++)
        if (!d->spans.v[i].same) {
            *added += d->spans.v[i].nb;
            *removed += d->spans.v[i].na;
        }
}

// One hunk: spans [first, last] with context lines around.
static void put_lines(const struct diff *d, char mark, bool old, uint32_t from, uint32_t n, struct str *out)
{
    for (uint32_t i = from; i < from + n; i++) {
        const struct diff_line *l = old ? &d->la.v[i] : &d->lb.v[i];
        const char *text = old ? d->old_text : d->new_text;
        size_t len = old ? d->old_len : d->new_len;
        str_addc(out, mark);
        str_addn(out, text + l->at, l->len);
        str_addc(out, '\n');
        if (l->at + l->len == len)
            str_add(out, "\\ No newline at end of file\n");
    }
}

static void put_range(uint32_t from, uint32_t n, struct str *out)
{
    if (n == 1)
        str_addf(out, "%u", from + 1);
    else
        str_addf(out, "%u,%u", n ? from + 1 : from, n);
}

static void put_hunk(const struct diff *d, size_t first, size_t last, uint32_t context, struct str *out)
{
    const struct diff_span *f = &d->spans.v[first], *l = &d->spans.v[last];
    uint32_t before = first > 0 ? d->spans.v[first - 1].na : 0,
             after = last + 1 < d->spans.n ? d->spans.v[last + 1].na : 0;
    before = before < context ? before : context;
    after = after < context ? after : context;
    uint32_t a = f->a - before, b = f->b - before, na = l->a + l->na + after - a,
             nb = l->b + l->nb + after - b;
    str_add(out, "@@ -");
    put_range(a, na, out);
    str_add(out, " +");
    put_range(b, nb, out);
    str_add(out, " @@\n");
    put_lines(d, ' ', true, a, before, out);
    for (size_t i = first; i <= last; i++) {
        const struct diff_span *s = &d->spans.v[i];
        if (s->same) {
            put_lines(d, ' ', true, s->a, s->na, out);
        } else {
            put_lines(d, '-', true, s->a, s->na, out);
            put_lines(d, '+', false, s->b, s->nb, out);
        }
    }
    put_lines(d, ' ', true, l->a + l->na, after, out);
}

// The last span of the hunk that begins at span i.
static size_t hunk_end(const struct diff *d, size_t i, uint32_t context)
{
    size_t last = i;
    while (last + 2 < d->spans.n && d->spans.v[last + 1].same && d->spans.v[last + 1].na <= 2 * context)
        last += 2;
    return last;
}

void diff_unified(const struct diff *d, const char *old_path, const char *new_path, int context,
                  struct str *out)
{
    if (diff_equal(d))
        return;
    str_addf(out, "--- a/%s\n+++ b/%s\n", old_path, new_path);
    for (size_t i = 0; i < d->spans.n; i++) {
        if (d->spans.v[i].same)
            continue;
        size_t last = hunk_end(d, i, (uint32_t)context);
        put_hunk(d, i, last, (uint32_t)context, out);
        i = last;
    }
}

// ---- side by side

static void push_row(diff_rows *out, const struct diff *d, enum diff_kind kind, int64_t a, int64_t b,
                     bool *gap)
{
    struct diff_row r = {.kind = kind, .gap = *gap};
    *gap = false;
    if (a >= 0) {
        r.left = (uint32_t)a + 1;
        r.l = d->la.v[a];
    }
    if (b >= 0) {
        r.right = (uint32_t)b + 1;
        r.r = d->lb.v[b];
    }
    vec_push(out, r);
}

static void push_same(diff_rows *out, const struct diff *d, const struct diff_span *s, uint32_t from,
                      uint32_t to, bool *gap)
{
    for (uint32_t i = from; i < to; i++)
        push_row(out, d, DIFF_SAME, s->a + i, s->b + i, gap);
}

static void push_change(diff_rows *out, const struct diff *d, const struct diff_span *s, bool *gap)
{
    uint32_t both = s->na < s->nb ? s->na : s->nb;
    for (uint32_t i = 0; i < both; i++)
        push_row(out, d, DIFF_CHANGE, s->a + i, s->b + i, gap);
    for (uint32_t i = both; i < s->na; i++)
        push_row(out, d, DIFF_DEL, s->a + i, -1, gap);
    for (uint32_t i = both; i < s->nb; i++)
        push_row(out, d, DIFF_ADD, -1, s->b + i, gap);
}

// Tokens of both lines, compared from both ends: what is left in the middle differs.
static void emphasise(const struct diff *d, struct diff_row *r)
{
    struct tokens x, y;
    tokens_read(&x, d->old_text + r->l.at, r->l.len);
    tokens_read(&y, d->new_text + r->r.at, r->r.len);
    size_t n = x.t.n - 1, m = y.t.n - 1, head = 0, tail = 0;
    if (n <= DIFF_MAX_TOKENS && m <= DIFF_MAX_TOKENS && n && m) {
        while (head < n && head < m && x.t.v[head].len == y.t.v[head].len &&
               memcmp(x.src + x.t.v[head].at, y.src + y.t.v[head].at, x.t.v[head].len) == 0)
            head++;
        while (tail < n - head && tail < m - head && x.t.v[n - 1 - tail].len == y.t.v[m - 1 - tail].len &&
               memcmp(x.src + x.t.v[n - 1 - tail].at, y.src + y.t.v[m - 1 - tail].at,
                      x.t.v[n - 1 - tail].len) == 0)
            tail++;
        if (head + tail < n)
            vec_push(&r->le,
                     (struct diff_emph){x.t.v[head].at, x.t.v[n - 1 - tail].at + x.t.v[n - 1 - tail].len});
        if (head + tail < m)
            vec_push(&r->re,
                     (struct diff_emph){y.t.v[head].at, y.t.v[m - 1 - tail].at + y.t.v[m - 1 - tail].len});
    }
    tokens_free(&x);
    tokens_free(&y);
}

void diff_side_by_side(const struct diff *d, int context, diff_rows *out)
{
    bool gap = false;
    for (size_t i = 0; i < d->spans.n; i++) {
        const struct diff_span *s = &d->spans.v[i];
        if (!s->same) {
            push_change(out, d, s, &gap);
            continue;
        }
        uint32_t head = i > 0 ? (uint32_t)context : 0, tail = i + 1 < d->spans.n ? (uint32_t)context : 0;
        if (context < 0 || head + tail >= s->na) {
            push_same(out, d, s, 0, s->na, &gap);
            continue;
        }
        push_same(out, d, s, 0, head, &gap);
        gap = true;
        push_same(out, d, s, s->na - tail, s->na, &gap);
    }
    for (size_t i = 0; i < out->n; i++)
        if (out->v[i].kind == DIFF_CHANGE)
            emphasise(d, &out->v[i]);
}

void diff_rows_free(diff_rows *r)
{
    for (size_t i = 0; i < r->n; i++) {
        vec_free(&r->v[i].le);
        vec_free(&r->v[i].re);
    }
    vec_free(r);
}
