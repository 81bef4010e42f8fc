#include "source/patch.h"

#include "source/patch_int.h"

// The text under way. Edits so far moved the region and left new text, in which a later block's lines may
// stand by chance.
struct work {
    struct str text;
    text_lines lines;
    bool everywhere, crlf;
    VEC(struct span) spans; // of the region, moved along
    VEC(struct span) fresh; // bytes that earlier blocks wrote; only at and end are used
    struct patch_result *result;
    size_t number; // of the block
};

void patch_result_free(struct patch_result *p)
{
    str_free(&p->text);
    str_free(&p->diagnostic);
    *p = (struct patch_result){0};
}

static void read_lines(struct work *w)
{
    w->lines.n = 0;
    text_lines_read(str_c(&w->text), w->text.len, &w->lines);
}

static bool allowed(const struct work *w, size_t at, size_t end)
{
    for (size_t i = 0; i < w->spans.n; i++)
        if (at >= w->spans.v[i].at && end <= w->spans.v[i].end)
            return true;
    return w->everywhere;
}

static void say_region(struct work *w)
{
    for (size_t i = 0; i < w->spans.n; i++) {
        uint32_t a, b, col;
        text_place(str_c(&w->text), w->text.len, w->spans.v[i].at, &a, &col);
        text_place(str_c(&w->text), w->text.len, w->spans.v[i].end, &b, &col);
        str_addf(&w->result->diagnostic, "%s %u-%u", i ? "," : "Only these lines may change:", a, b);
    }
    if (w->spans.n)
        str_add(&w->result->diagnostic, "\n");
}

// What stands in a place and what would stand there: the bytes that really change.
struct edit_at {
    size_t at, end; // of the text
    struct str with;
    bool same;
};

static void new_lines(const struct work *w, const struct block *b, size_t from, size_t to,
                      const struct place *p, struct str *out)
{
    for (size_t i = from; i < to; i++) {
        const struct text_line *l = &b->lines.v[i];
        size_t at = l->at, len = l->len, k = strlen(p->shift);
        bool blank = line_blank(b->s, l);
        if (p->shifted && p->cut && !blank) {
            // Take away what the SEARCH lines had too much; a line that has less of it begins at the margin.
            size_t have = 0;
            while (have < k && have < len && b->s[at + have] == p->shift[have])
                have++;
            at += have;
            len -= have;
        } else if (p->shifted && !blank)
            str_add(out, p->shift);
        if (!blank)
            str_addn(out, b->s + at, len);
        str_add(out, w->crlf ? "\r\n" : "\n");
    }
}

static bool same_line(const struct block *b, size_t i, size_t k)
{
    const struct text_line *x = &b->lines.v[i], *y = &b->lines.v[k];
    return x->len == y->len && memcmp(b->s + x->at, b->s + y->at, x->len) == 0;
}

static void edit_of(const struct work *w, const struct block *b, size_t split, const struct place *p,
                    struct edit_at *x)
{
    const char *s = str_c(&w->text), *newline = w->crlf ? "\r\n" : "\n";
    size_t from = split + 1, m = b->lines.n - from, n = p->n, a = 0, z = 0;
    *x = (struct edit_at){0};
    // Lines that stand on both sides stay as the text has them, with their own white space at the end.
    while (a < n && a < m && same_line(b, a, from + a))
        a++;
    while (z < n - a && z < m - a && same_line(b, n - 1 - z, from + m - 1 - z))
        z++;
    x->at = a < n ? w->lines.v[p->first + a].at : w->lines.v[p->first + n - 1].next;
    x->end = a + z < n ? w->lines.v[p->first + n - 1 - z].next : x->at;
    new_lines(w, b, from + a, from + m - z, p, &x->with);
    x->same = a + z == n && a + z == m;
    if (x->same)
        return;
    // A last line without its newline stays without.
    size_t len = w->text.len;
    if (x->end == len && len && s[len - 1] != '\n' && x->with.len) {
        x->with.len -= strlen(newline);
        x->with.s[x->with.len] = 0;
        if (x->at == len)
            str_splice(&x->with, 0, 0, newline, strlen(newline));
    }
    // Only the bytes that differ: a kept brace or signature on the same line is not touched.
    size_t most = x->end - x->at < x->with.len ? x->end - x->at : x->with.len;
    for (a = 0; a < most && s[x->at + a] == x->with.s[a];)
        a++;
    for (z = 0; z < most - a && s[x->end - 1 - z] == x->with.s[x->with.len - 1 - z];)
        z++;
    x->same = x->at + a == x->end && a == x->with.len;
    str_splice(&x->with, x->with.len - z, z, "", 0);
    str_splice(&x->with, 0, a, "", 0);
    x->at += a;
    x->end -= z;
}

static bool is_fresh(const struct work *w, size_t at, size_t end)
{
    for (size_t i = 0; i < w->fresh.n; i++)
        if (at < w->fresh.v[i].end && end > w->fresh.v[i].at)
            return true;
    return false;
}

static void move_along(struct span *s, const struct edit_at *x, size_t grown)
{
    // Bytes before stay, bytes behind move by the difference (as unsigned arithmetic, which wraps back).
    if (s->at > x->at || (s->at == x->at && x->at != x->end))
        s->at = s->at >= x->end ? s->at + grown : x->at;
    if (s->end >= x->end)
        s->end += grown;
}

static void apply_edit(struct work *w, const struct edit_at *x)
{
    size_t grown = x->with.len - (x->end - x->at);
    str_splice(&w->text, x->at, x->end - x->at, str_c(&x->with), x->with.len);
    for (size_t i = 0; i < w->spans.n; i++)
        if (w->spans.v[i].at <= x->at && w->spans.v[i].end >= x->end)
            w->spans.v[i].end += grown; // the region it stands in
        else if (w->spans.v[i].at >= x->end) {
            w->spans.v[i].at += grown;
            w->spans.v[i].end += grown;
        }
    for (size_t i = 0; i < w->fresh.n; i++)
        move_along(&w->fresh.v[i], x, grown);
    struct span mine = {.at = x->at, .end = x->at + x->with.len};
    vec_push(&w->fresh, mine);
    read_lines(w);
}

static int refuse(struct work *w, struct err *e, const char *what)
{
    say_region(w);
    return err_set(e, ERR_FAIL, "", "block %zu %s", w->number, what);
}

// An empty SEARCH part: fills an empty region, or goes before a line that is named.
static int insert(struct work *w, const struct block *b, size_t split, struct err *e)
{
    struct place p = {0};
    struct edit_at x = {0};
    const char *s = str_c(&w->text);
    bool empty = w->spans.n == 1;
    for (size_t i = empty ? w->spans.v[0].at : 0; empty && i < w->spans.v[0].end; i++)
        empty = s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n';
    if (b->anchor > 0 && (size_t)b->anchor <= w->lines.n + 1) {
        size_t line = (size_t)b->anchor - 1;
        x.at = x.end = line < w->lines.n ? w->lines.v[line].at : w->text.len;
        if (!allowed(w, x.at, x.end))
            return refuse(w, e, "inserts at a line that may not change");
    } else if (empty) {
        x.at = w->spans.v[0].at;
        x.end = w->spans.v[0].end;
        str_add(&x.with, w->crlf ? "\r\n" : "\n"); // the region may begin behind a brace
    } else
        return refuse(
            w, e,
            "has no SEARCH lines: copy the lines to replace, or name the line to insert before (SEARCH @12)");
    new_lines(w, b, split + 1, b->lines.n, &p, &x.with);
    apply_edit(w, &x);
    str_free(&x.with);
    return 0;
}

// The one place of those found that is meant: allowed, not written by an earlier block, and where it says @N
// on that line.
static int choose(struct work *w, const struct block *b, size_t split, const places *found, size_t *chosen,
                  struct err *e)
{
    size_t n = 0, inside = 0, old = 0, last_old = 0, outside_line = 0;
    for (size_t i = 0; i < found->n; i++) {
        struct edit_at x;
        edit_of(w, b, split, &found->v[i], &x);
        bool ok = x.same || allowed(w, x.at, x.end), fresh = is_fresh(w, x.at, x.end + (x.at == x.end));
        str_free(&x.with);
        if (!ok) {
            outside_line = found->v[i].first + 1;
            continue;
        }
        inside++;
        if (b->anchor > 0 && found->n > 1 && found->v[i].first + 1 != (size_t)b->anchor)
            continue;
        n++;
        *chosen = i;
        if (!fresh) {
            old++;
            last_old = i;
        }
    }
    if (n > 1 && old == 1) {
        *chosen = last_old;
        n = 1;
    }
    if (n == 1)
        return 0;
    if (inside == 0) {
        str_addf(&w->result->diagnostic, "Its lines stand at line %zu, which may not change.\n",
                 outside_line);
        return refuse(w, e, "changes lines that may not change");
    }
    str_add(&w->result->diagnostic, "Its SEARCH lines stand at lines");
    for (size_t i = 0; i < found->n; i++)
        str_addf(&w->result->diagnostic, "%s %zu", i ? "," : "", found->v[i].first + 1);
    str_addf(&w->result->diagnostic,
             ". Copy more lines around them, or write SEARCH @%zu for the one that is meant.\n",
             found->v[0].first + 1);
    return refuse(w, e, "matches several places");
}

static size_t count_search(const struct block *b, size_t split)
{
    for (size_t i = 0; i < split; i++)
        if (!line_blank(b->s, &b->lines.v[i]))
            return split;
    return 0; // nothing but blank lines is nothing
}

static int apply_block(struct work *w, const struct block *b, struct err *e)
{
    places found = {0};
    // The text itself may hold ======= lines: of the ways to split the block, the longest SEARCH part that is
    // there.
    size_t split = b->splits.v[0], chosen = 0;
    for (size_t i = b->splits.n; i-- > 0 && found.n == 0;) {
        split = b->splits.v[i];
        places_find(str_c(&w->text), &w->lines, b, count_search(b, split), &found);
    }
    int r = 0;
    if (found.n == 0 && count_search(b, split) == 0)
        r = insert(w, b, split, e);
    else if (found.n == 0) {
        patch_say_nearest(str_c(&w->text), &w->lines, b, split, &w->result->diagnostic);
        r = refuse(w, e, "matches nothing: its SEARCH lines are not in the source");
    } else if ((r = choose(w, b, split, &found, &chosen, e)) == 0) {
        struct edit_at x;
        edit_of(w, b, split, &found.v[chosen], &x);
        w->result->shifted += found.v[chosen].shifted;
        if (!x.same)
            apply_edit(w, &x);
        str_free(&x.with);
    }
    vec_free(&found);
    return r;
}

int patch_apply(const char *text, size_t len, const char *patch, size_t plen, const struct region *r,
                struct patch_result *out, struct err *e)
{
    blocks list = {0};
    struct work w = {.everywhere = r == NULL, .result = out};
    *out = (struct patch_result){0};
    int ok = memchr(patch, 0, plen) ? err_set(e, ERR_FAIL, "", "the patch holds a NUL byte") : 0;
    if (ok == 0)
        ok = blocks_read(patch, plen, &list, e);
    str_addn(&w.text, text, len);
    w.crlf = memmem(text, len, "\r\n", 2) != NULL;
    for (size_t i = 0; r && i < r->spans.n; i++)
        vec_push(&w.spans, r->spans.v[i]);
    read_lines(&w);
    out->blocks = list.n;
    for (size_t i = 0; i < list.n && ok == 0; i++) {
        w.number = i + 1;
        ok = apply_block(&w, &list.v[i], e);
    }
    out->nothing = ok == 0 && w.text.len == len && memcmp(w.text.s, text, len) == 0;
    if (out->nothing)
        ok = err_set(e, ERR_FAIL, "", "the patch changes nothing");
    if (ok == 0) {
        out->text = w.text;
        w.text = (struct str){0};
    }
    blocks_free(&list);
    str_free(&w.text);
    vec_free(&w.lines);
    vec_free(&w.spans);
    vec_free(&w.fresh);
    return ok;
}
