#include "tui/diff_lines.h"

#include <string.h>

// ---- white space that does not count

static char *squeeze(const char *s, size_t n, size_t *out_n)
{
    struct str out = {0};
    bool blank = false, start = true;
    str_reserve(&out, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\n') {
            str_addc(&out, '\n');
            blank = false;
            start = true;
        } else if (s[i] == ' ' || s[i] == '\t' || s[i] == '\r') {
            blank = true;
        } else {
            if (blank && !start)
                str_addc(&out, ' ');
            blank = start = false;
            str_addc(&out, s[i]);
        }
    }
    *out_n = out.len;
    return out.s ? str_steal(&out) : xstrdup("");
}

static void find_lines(struct diff_lines *d, int side, const char *s, size_t n)
{
    for (size_t at = 0; at < n;) {
        const char *nl = memchr(s + at, '\n', n - at);
        size_t len = nl ? (size_t)(nl - (s + at)) : n - at;
        vec_push(&d->lines[side], ((struct diff_line){at, len}));
        at += len + 1;
    }
}

struct diff_line diff_lines_text(const struct diff_lines *d, uint32_t row, int side)
{
    const struct diff_row *r = &d->rows.v[row];
    uint32_t number = side ? r->right : r->left;
    if (!number)
        return (struct diff_line){0, 0};
    if (!d->squeezed[side])
        return side ? r->r : r->l;
    return number <= d->lines[side].n ? d->lines[side].v[number - 1] : (struct diff_line){0, 0};
}

// ---- lines

static void push(struct diff_lines *d, int kind, uint32_t row)
{
    vec_push(&d->v, ((struct diff_view_line){(__typeof__(d->v.v->kind))kind, row}));
}

static int side_kind(enum diff_kind k)
{
    return k == DIFF_SAME  ? DIFF_LINE_SAME
           : k == DIFF_DEL ? DIFF_LINE_DEL
           : k == DIFF_ADD ? DIFF_LINE_ADD
                           : DIFF_LINE_CHANGE;
}

// A run of changed rows from `first`: where it ends.
static uint32_t run_end(const struct diff_lines *d, uint32_t first)
{
    uint32_t end = first;
    while (end < d->rows.n && d->rows.v[end].kind != DIFF_SAME && (end == first || !d->rows.v[end].gap))
        end++;
    return end;
}

static void push_run(struct diff_lines *d, uint32_t first, uint32_t end, bool unified)
{
    vec_push(&d->hunks, (uint32_t)d->v.n);
    if (!unified) {
        for (uint32_t i = first; i < end; i++)
            push(d, side_kind(d->rows.v[i].kind), i);
        return;
    }
    for (uint32_t i = first; i < end; i++)
        if (d->rows.v[i].left)
            push(d, DIFF_LINE_DEL, i);
    for (uint32_t i = first; i < end; i++)
        if (d->rows.v[i].right)
            push(d, DIFF_LINE_ADD, i);
}

void diff_lines_make(struct diff_lines *d, const char *left, size_t nleft, const char *right, size_t nright,
                     int context, bool white, bool unified)
{
    *d = (struct diff_lines){.left = left, .right = right, .nleft = nleft, .nright = nright};
    if (white) {
        diff_read(&d->diff, left, nleft, right, nright);
    } else {
        size_t n[2];
        d->squeezed[0] = squeeze(left, nleft, &n[0]);
        d->squeezed[1] = squeeze(right, nright, &n[1]);
        find_lines(d, 0, left, nleft);
        find_lines(d, 1, right, nright);
        diff_read(&d->diff, d->squeezed[0], n[0], d->squeezed[1], n[1]);
    }
    diff_stat(&d->diff, &d->added, &d->removed);
    diff_side_by_side(&d->diff, context, &d->rows);
    for (uint32_t i = 0; i < d->rows.n;) {
        if (d->rows.v[i].gap || (i == 0 && context >= 0 && (d->rows.v[0].left > 1 || d->rows.v[0].right > 1)))
            push(d, DIFF_LINE_HEADER, i);
        if (d->rows.v[i].kind == DIFF_SAME) {
            push(d, DIFF_LINE_SAME, i++);
            continue;
        }
        uint32_t end = run_end(d, i);
        push_run(d, i, end, unified);
        i = end;
    }
}

void diff_lines_free(struct diff_lines *d)
{
    diff_rows_free(&d->rows);
    diff_free(&d->diff);
    vec_free(&d->v);
    vec_free(&d->hunks);
    for (int i = 0; i < 2; i++) {
        free(d->squeezed[i]);
        vec_free(&d->lines[i]);
    }
    *d = (struct diff_lines){0};
}
