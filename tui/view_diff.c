// What a candidate changed: side by side or unified, with the tokens that differ marked and the code
// coloured; below it the numbers of both. Follows the selection.
#include "base/clock.h"
#include "cmd/show_text.h"
#include "tui/diff_lines.h"
#include "tui/list.h"
#include "tui/look.h"
#include "tui/match.h"
#include "tui/syntax.h"
#include "tui/view.h"

#include <ctype.h>
#include <string.h>

enum against {
    AGAINST_PARENT,
    AGAINST_SECOND,
    AGAINST_BASELINE,
    AGAINST_CHAMPION,
    AGAINST_MARKED,
    AGAINSTS,
    AGAINST_ID
};
enum { CONTEXT = 3, CONTEXT_MAX = 200, SIDE_COLS = 100, TAB = 4, NUMBER_COLS = 5, SHAPES_MAX = 6 };
static const char *const against_names[AGAINSTS] = {"parent", "second", "baseline", "champion", "marked"};

struct side {
    int64_t id;
    char *text;
    size_t n;
    struct syntax *syntax;
};
struct view_diff {
    struct view view;
    enum against against;
    int64_t chosen; // AGAINST_ID
    int context;    // -1: everything
    bool ignore_white, force_unified, unified, made;
    struct side s[2]; // left: what it is compared with
    struct diff_lines lines;
    struct list list;
    char *match;
    struct err e;
    unsigned version;
};

static struct view_diff *self(struct view *v)
{
    return (struct view_diff *)v;
}

// ---- what with what

static int64_t other_of(const struct view_diff *d, const struct candidate *c)
{
    const struct model *m = d->view.host->model;
    const struct candidate *champion = state_champion(m->st);
    switch (d->against) {
    case AGAINST_PARENT:
        return c->nparents ? c->parents[0] : 0;
    case AGAINST_SECOND:
        return c->nparents > 1 ? c->parents[1] : c->nparents ? c->parents[0] : 0;
    case AGAINST_CHAMPION:
        return champion ? champion->id : 0;
    case AGAINST_MARKED:
        for (size_t i = m->marks.n; i-- > 0;)
            if (m->marks.v[i] != c->id)
                return m->marks.v[i];
        return c->nparents ? c->parents[0] : 0;
    case AGAINST_ID:
        return d->chosen;
    default:
        return 0;
    }
}

static void drop(struct view_diff *d)
{
    diff_lines_free(&d->lines);
    for (int i = 0; i < 2; i++) {
        syntax_free(d->s[i].syntax);
        free(d->s[i].text);
        d->s[i] = (struct side){.id = -1};
    }
    d->made = false;
}

static bool load(struct view_diff *d, int i, int64_t id)
{
    struct side *s = &d->s[i];
    s->id = id;
    s->text = model_source(d->view.host->model, id, &s->n, &d->e);
    if (!s->text)
        return false;
    s->syntax = syntax_read(s->text, s->n);
    return true;
}

static void make(struct view_diff *d, bool unified)
{
    const struct candidate *c = model_selected(d->view.host->model);
    int64_t right = c ? c->id : -1, left = c ? other_of(d, c) : -1;
    if (d->made && d->s[0].id == left && d->s[1].id == right && d->unified == unified)
        return;
    bool same = d->s[0].id == left && d->s[1].id == right;
    drop(d);
    d->e = (struct err){0};
    d->made = true;
    d->unified = unified;
    d->s[0].id = left;
    d->s[1].id = right;
    if (!same) {
        d->list.top = 0;
        d->list.left = 0;
    }
    if (c && load(d, 0, left) && load(d, 1, right))
        diff_lines_make(&d->lines, d->s[0].text, d->s[0].n, d->s[1].text, d->s[1].n, d->context,
                        !d->ignore_white, unified);
}

// ---- drawing

// Columns of the first n bytes of a line whose tabs are expanded.
static int column_of(const char *s, size_t n)
{
    int col = 0;
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && s[end] != '\t')
            end++;
        if (end > i)
            col += canvas_width(s + i, end - i);
        for (i = end; i < n && s[i] == '\t'; i++)
            col += TAB - col % TAB;
    }
    return col;
}

static void put_code(struct view_diff *d, struct canvas *c, struct rect r, int row, int side,
                     struct diff_line l)
{
    const struct side *s = &d->s[side];
    const char *text = s->text + l.at;
    int col = 0, shift = -d->list.left;
    for (size_t i = 0; i < l.len;) {
        enum slot slot = syntax_at(s->syntax, l.at + i);
        size_t end = i;
        while (end < l.len && text[end] != '\t' && syntax_at(s->syntax, l.at + end) == slot)
            end++;
        if (end > i)
            col = canvas_putn(c, r, row, col + shift, slot, text + i, end - i) - shift;
        for (i = end; i < l.len && text[i] == '\t'; i++)
            col += TAB - col % TAB;
    }
}

static void put_emphasis(struct view_diff *d, struct canvas *c, struct rect r, int row, int side, uint32_t at)
{
    const struct diff_row *x = &d->lines.rows.v[at];
    struct diff_line l = side ? x->r : x->l;
    enum slot slot = side ? SLOT_DIFF_ADD_WORD : SLOT_DIFF_DEL_WORD;
    if (x->kind != DIFF_CHANGE || d->ignore_white)
        return;
    const char *text = d->s[side].text + l.at;
    size_t n = side ? x->re.n : x->le.n;
    for (size_t i = 0; i < n; i++) {
        struct diff_emph e = side ? x->re.v[i] : x->le.v[i];
        int from = column_of(text, e.at), to = column_of(text, e.end);
        canvas_tint_part(c, r, row, from - d->list.left, to - from, slot);
    }
}

static void put_match(struct view_diff *d, struct canvas *c, struct rect r, int row, int side,
                      struct diff_line l)
{
    const char *s = d->s[side].text + l.at, *hit = d->match ? match_find(s, l.len, d->match) : NULL;
    size_t len = d->match ? strlen(d->match) : 0;
    while (hit && len) {
        size_t before = (size_t)(hit - s);
        canvas_tint_part(c, r, row, column_of(s, before) - d->list.left, canvas_width(hit, len), SLOT_MATCH);
        hit = match_find(hit + len, l.len - before - len, d->match);
    }
}

// One line of one side, with its number and sign, into r.
static void put_side(struct view_diff *d, struct canvas *c, struct rect r, int row, int side, uint32_t at,
                     bool changed)
{
    const struct diff_row *x = &d->lines.rows.v[at];
    uint32_t number = side ? x->right : x->left;
    enum slot tint = side ? SLOT_DIFF_ADD : SLOT_DIFF_DEL;
    if (!number)
        return;
    struct diff_line l = diff_lines_text(&d->lines, at, side);
    struct rect code = {r.row, r.col + NUMBER_COLS + 2, r.rows, r.cols - NUMBER_COLS - 2};
    canvas_putf(c, r, row, 0, SLOT_LINE_NUMBER, "%*u", NUMBER_COLS, number);
    put_code(d, c, code, row, side, l);
    if (changed) {
        canvas_put(c, r, row, NUMBER_COLS + 1, tint, side ? "+" : "-");
        canvas_tint_part(c, r, row, NUMBER_COLS + 1, r.cols - NUMBER_COLS - 1, tint);
        put_emphasis(d, c, code, row, side, at);
    }
    put_match(d, c, code, row, side, l);
}

static void put_header(struct view_diff *d, struct canvas *c, struct rect r, int row, uint32_t at)
{
    const struct diff_row *x = &d->lines.rows.v[at];
    for (int k = 0; k < r.cols; k++)
        canvas_put(c, r, row, k, SLOT_BORDER, canvas_glyph(c, GLYPH_HLINE));
    canvas_putf(c, r, row, NUMBER_COLS + 2, SLOT_DIFF_HUNK, " line %u ", x->right ? x->right : x->left);
}

static void put_line(struct view_diff *d, struct canvas *c, struct rect r, int row,
                     const struct diff_view_line *l)
{
    int half = (r.cols - 1) / 2;
    struct rect left = {r.row, r.col, r.rows, d->unified ? r.cols : half},
                right = {r.row, r.col + half + 1, r.rows, r.cols - half - 1};
    bool changed = l->kind != DIFF_LINE_SAME;
    if (l->kind == DIFF_LINE_HEADER) {
        put_header(d, c, r, row, l->row);
        return;
    }
    if (d->unified) {
        put_side(d, c, left, row, l->kind == DIFF_LINE_DEL ? 0 : 1, l->row, changed);
        return;
    }
    put_side(d, c, left, row, 0, l->row, changed);
    canvas_put(c, r, row, half, SLOT_BORDER, canvas_glyph(c, GLYPH_VLINE));
    put_side(d, c, right, row, 1, l->row, changed);
}

static const struct shape_time *time_of(const struct candidate *c, int shape)
{
    for (int i = 0; c && i < c->ntimes; i++)
        if (c->times[i].shape == shape)
            return &c->times[i];
    return NULL;
}

// The numbers of both sides; the ratio that a race proved where there was one, else that of two medians.
static void put_numbers(struct view_diff *d, struct canvas *c, struct rect r)
{
    const struct state *st = d->view.host->model->st;
    const struct candidate *a = state_candidate(st, d->s[0].id), *b = state_candidate(st, d->s[1].id);
    int row = 1;
    for (int k = 0; k < r.cols; k++)
        canvas_put(c, r, 0, k, SLOT_BORDER, canvas_glyph(c, GLYPH_HLINE));
    canvas_putf(c, r, 0, 1, SLOT_DIM, " shape %14lld %10lld   ratio ", (long long)d->s[0].id,
                (long long)d->s[1].id);
    for (size_t i = 0; i < st->shapes.n && row < r.rows; i++) {
        const struct shape_time *x = time_of(a, (int)i), *y = time_of(b, (int)i);
        char left[32] = "-", right[32] = "-", ratio[64] = "-";
        if (!st->shapes.v[i].bench)
            continue;
        bool raced = y && b->incumbent == d->s[0].id && y->inc_ns > 0;
        double before = raced ? y->inc_ns : x ? x->time_ns : 0;
        if (before > 0)
            show_time(left, sizeof left, before);
        if (y)
            show_time(right, sizeof right, y->time_ns);
        double value = raced ? (double)y->gain : before > 0 && y ? before / y->time_ns : 0;
        if (raced)
            show_speedup(ratio, sizeof ratio, (struct ratio){value, (double)y->low, (double)y->high});
        else if (value > 0)
            snprintf(ratio, sizeof ratio, "%.3fx (two races)", value);
        int col = canvas_field(c, r, row, 2, 12, false, SLOT_TEXT, st->shapes.v[i].name);
        col = canvas_field(c, r, row, col, 11, true, SLOT_TEXT, left);
        col = canvas_field(c, r, row, col, 11, true, SLOT_TEXT, right);
        enum slot slot = value > 1.001 ? SLOT_UP : value > 0 && value < 0.999 ? SLOT_DOWN : SLOT_TEXT;
        canvas_put(c, r, row, col + 1, slot,
                   value > 1.001                ? canvas_glyph(c, GLYPH_UP)
                   : value > 0 && value < 0.999 ? canvas_glyph(c, GLYPH_DOWN)
                                                : " ");
        canvas_put(c, r, row++, col + 3, slot, ratio);
    }
}

static int numbers_rows(const struct view_diff *d, int rows)
{
    const struct state *st = d->view.host->model->st;
    int n = 0;
    for (size_t i = 0; i < st->shapes.n; i++)
        n += st->shapes.v[i].bench;
    n = n > SHAPES_MAX ? SHAPES_MAX : n;
    return n && rows > 12 ? n + 1 : 0;
}

static void draw_message(struct view_diff *d, struct canvas *c, struct rect r)
{
    const struct candidate *x = model_selected(d->view.host->model);
    if (!x)
        canvas_put(c, r, 1, 1, SLOT_DIM, "No candidate is selected.");
    else if (d->e.kind) {
        canvas_put(c, r, 1, 1, SLOT_ERROR, d->e.msg);
        canvas_put(c, r, 2, 1, SLOT_DIM, d->e.hint);
    } else if (d->s[0].id == d->s[1].id) {
        canvas_putf(c, r, 1, 1, SLOT_DIM,
                    "%lld is what it would be compared with; b compares with something else.",
                    (long long)x->id);
    } else {
        canvas_put(c, r, 1, 1, SLOT_DIM,
                   d->ignore_white ? "They differ in white space at most; w shows it."
                                   : "The same text. Flags or an edit that was taken back may differ.");
    }
}

static void draw(struct view *v, struct canvas *c, struct rect r, bool focused)
{
    struct view_diff *d = self(v);
    (void)focused;
    make(d, d->force_unified || r.cols < SIDE_COLS);
    if (!d->lines.hunks.n) {
        list_fit(&d->list, 0, r.rows);
        draw_message(d, c, r);
        return;
    }
    int below = numbers_rows(d, r.rows);
    struct rect body = {r.row, r.col, r.rows - below, r.cols};
    d->list.page = true;
    list_fit(&d->list, (int64_t)d->lines.v.n, body.rows);
    for (int i = 0; i < body.rows && d->list.top + i < (int64_t)d->lines.v.n; i++)
        put_line(d, c, body, i, &d->lines.v.v[d->list.top + i]);
    if (below)
        put_numbers(d, c, (struct rect){r.row + body.rows, r.col, below, r.cols});
}

static void heading(struct view *v, struct str *out)
{
    struct view_diff *d = self(v);
    if (d->s[1].id < 0)
        return;
    str_addf(out, "%lld against %lld", (long long)d->s[1].id, (long long)d->s[0].id);
    if (d->against < AGAINSTS)
        str_addf(out, " (%s)", against_names[d->against]);
    str_addf(out, "  +%zu -%zu  ", d->lines.added, d->lines.removed);
    if (d->ignore_white)
        str_add(out, "white space ignored  ");
    if (d->lines.diff.too_big)
        str_add(out, "too big to compare line by line  ");
    else if (d->lines.diff.coarse)
        str_add(out, "coarse  ");
}

// ---- keys

static void go_hunk(struct view_diff *d, int by)
{
    const uint32_t *h = d->lines.hunks.v;
    size_t n = d->lines.hunks.n;
    int64_t lead = 2; // lines of context above it
    if (by > 0) {
        for (size_t i = 0; i < n; i++)
            if ((int64_t)h[i] - lead > d->list.top) {
                d->list.top = h[i] - lead;
                return;
            }
        d->view.host->say(d->view.host, SLOT_INFO, "that was the last change");
        return;
    }
    for (size_t i = n; i-- > 0;)
        if ((int64_t)h[i] - lead < d->list.top) {
            d->list.top = h[i] > lead ? h[i] - lead : 0;
            return;
        }
}

static void set_context(struct view_diff *d, int by)
{
    if (by > 0)
        d->context = d->context < 0 || d->context > CONTEXT_MAX ? -1
                     : d->context < 3                           ? d->context + 1
                                                                : d->context * 2;
    else
        d->context = d->context < 0 ? CONTEXT_MAX / 2 : d->context / 2;
    drop(d);
}

static bool act(struct view *v, enum action a, int count)
{
    struct view_diff *d = self(v);
    struct str text = {0};
    switch (a) {
    case ACT_NEXT:
        return go_hunk(d, 1), true;
    case ACT_PREVIOUS:
        return go_hunk(d, -1), true;
    case ACT_AGAINST:
        d->against = d->against >= AGAINSTS ? AGAINST_PARENT : (enum against)((d->against + 1) % AGAINSTS);
        return drop(d), true;
    case ACT_SIDE:
        d->force_unified = !d->force_unified;
        return true;
    case ACT_WHITE:
        d->ignore_white = !d->ignore_white;
        return drop(d), true;
    case ACT_MORE_CONTEXT:
        return set_context(d, 1), true;
    case ACT_LESS_CONTEXT:
        return set_context(d, -1), true;
    case ACT_YANK:
        if (d->s[0].text && d->s[1].text)
            diff_unified(&d->lines.diff, "kernel", "kernel", 3, &text);
        v->host->yank(v->host, "the diff", str_c(&text));
        str_free(&text);
        return true;
    default:
        return list_act(&d->list, a, count);
    }
}

static bool line_has(const struct view_diff *d, const struct diff_view_line *l, const char *text)
{
    for (int side = 0; side < 2 && l->kind != DIFF_LINE_HEADER; side++) {
        struct diff_line x = diff_lines_text(&d->lines, l->row, side);
        if (x.len && match_find(d->s[side].text + x.at, x.len, text))
            return true;
    }
    return false;
}

static bool search(struct view *v, const char *text, bool back, bool again)
{
    struct view_diff *d = self(v);
    int64_t n = (int64_t)d->lines.v.n;
    free(d->match);
    d->match = xstrdup(text);
    for (int64_t i = again ? 1 : 0; i < n + (again ? 1 : 0); i++) {
        int64_t at = ((back ? d->list.top - i : d->list.top + i) % n + n) % n;
        if (!line_has(d, &d->lines.v.v[at], text))
            continue;
        d->list.top = at;
        return true;
    }
    return false;
}

static bool command(struct view *v, const char *word, const char *rest, struct err *e)
{
    struct view_diff *d = self(v);
    if (!str_eq(word, "against"))
        return false;
    for (int i = 0; i < AGAINSTS; i++)
        if (str_eq(against_names[i], rest)) {
            d->against = (enum against)i;
            return drop(d), true;
        }
    const struct candidate *c = show_find(v->host->model->st, rest, e);
    if (!c)
        return true;
    d->against = AGAINST_ID;
    d->chosen = c->id;
    drop(d);
    return true;
}

static void changed(struct view *v, unsigned what)
{
    struct view_diff *d = self(v);
    if ((what & MODEL_MARKS) && d->against == AGAINST_MARKED)
        d->made = false;
}

static void open(struct view *v)
{
    self(v)->context = CONTEXT;
    self(v)->s[0].id = self(v)->s[1].id = -1;
}

static void close_view(struct view *v)
{
    drop(self(v));
    free(self(v)->match);
}

const struct view_ops view_diff = {
    .name = "diff",
    .title = "Diff",
    .help = "what a candidate changed",
    .size = sizeof(struct view_diff),
    .key = ACT_VIEW_DIFF,
    .open = open,
    .close = close_view,
    .draw = draw,
    .act = act,
    .changed = changed,
    .heading = heading,
    .search = search,
    .command = command,
};
