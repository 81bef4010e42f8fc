// The archive as a map: the best candidate of each cell of features. Colour is warmer the faster it is, and
// the number stands in the cell.
#include "tui/list.h"
#include "tui/look.h"
#include "tui/match.h"
#include "tui/view.h"

#include <math.h>
#include <string.h>

enum { AXES = 3, BINS_MAX = 6, LABEL = 10, CELL = 8, GAP = 2 };

struct axis {
    const char *name;
    int n;
    const char *bins[BINS_MAX];
};
// What the bins mean, by backend: columns, rows, groups. The features are measured from the binary.
static const struct {
    const char *backend;
    struct axis axis[AXES];
} maps[] = {
    {"cpu",
     {{"vector width", 4, {"scalar", "16 B", "32 B", "64 B"}},
      {"accumulators", 5, {"1", "2-3", "4-7", "8-15", "16+"}},
      {"loop depth", 4, {"1", "2", "3", "4+"}}}},
    {"cuda",
     {{"memory", 5, {"plain", "vector", "shared", "sh+vec", "async"}},
      {"compute", 5, {"plain", "unrolled", "reg tile", "half", "tensor"}},
      {"parallel", 4, {"thread", "warp", "block", "multi"}}}},
};

struct archive_view {
    struct view view;
    int at[AXES]; // cell under the cursor
    int island;   // -1: the best of all
    int top;      // first line shown
    int left;     // columns scrolled off
    bool placed;  // the cursor was put on the selection once
};

static struct archive_view *self(struct view *v)
{
    return (struct archive_view *)v;
}

static const struct axis *axes(const struct archive_view *a)
{
    for (size_t i = 0; i < countof(maps); i++)
        if (str_eq(maps[i].backend, a->view.host->model->st->backend))
            return maps[i].axis;
    return maps[0].axis;
}

static const struct candidate *best_of(const struct archive_view *a, const int at[AXES])
{
    const struct state *st = a->view.host->model->st;
    const struct candidate *best = NULL;
    for (size_t i = 0; i < st->cells.n; i++) {
        const struct cell *c = &st->cells.v[i];
        if ((a->island >= 0 && c->island != a->island) || memcmp(c->bins, at, sizeof c->bins) != 0)
            continue;
        const struct candidate *x = state_candidate(st, c->id);
        if (!best || x->speedup.value > best->speedup.value)
            best = x;
    }
    return best;
}

static void place(struct archive_view *a)
{
    const struct candidate *c = model_selected(a->view.host->model);
    if (c && c->cell[0] >= 0)
        memcpy(a->at, c->cell, sizeof a->at);
    a->placed = true;
}

static void changed(struct view *v, unsigned what)
{
    struct archive_view *a = self(v);
    const struct candidate *c = best_of(a, a->at);
    if ((what & MODEL_SELECTION) && (!c || c->id != v->host->model->selected))
        place(a);
}

static enum slot heat(double speedup, double best)
{
    double part = best > 1 ? log(fmax(speedup, 1)) / log(best) : 1;
    int step = (int)(part * 4.999);
    return (enum slot)(SLOT_HEAT_0 + (step < 0 ? 0 : step > 4 ? 4 : step));
}

struct drawing {
    struct archive_view *a;
    struct canvas *c;
    struct rect r;
    double best;
    bool focused;
};

static void draw_cell(const struct drawing *d, int line, int col, const int at[AXES])
{
    const struct candidate *x = best_of(d->a, at);
    char text[24] = "";
    if (x)
        look_speed(d->a->view.host->model->st, x, text, sizeof text);
    else
        snprintf(text, sizeof text, "%s", canvas_glyph(d->c, GLYPH_EMPTY));
    canvas_field(d->c, d->r, line, col, CELL - 1, true, x ? heat(x->speedup.value, d->best) : SLOT_DIM, text);
    if (memcmp(at, d->a->at, sizeof d->a->at) == 0)
        canvas_tint_part(d->c, d->r, line, col, CELL, d->focused ? SLOT_CURSOR : SLOT_CURSOR_BLUR);
}

static void draw_group(const struct drawing *d, int line, int col, int group)
{
    const struct axis *x = axes(d->a);
    canvas_putf(d->c, d->r, line, col, SLOT_STRONG, "%s %s", x[2].name, x[2].bins[group]);
    for (int i = 0; i < x[0].n; i++)
        canvas_field(d->c, d->r, line + 1, col + LABEL + i * CELL, CELL - 1, true, SLOT_DIM, x[0].bins[i]);
    for (int k = 0; k < x[1].n; k++) {
        canvas_field(d->c, d->r, line + 2 + k, col, LABEL - 1, true, SLOT_DIM, x[1].bins[k]);
        for (int i = 0; i < x[0].n; i++)
            draw_cell(d, line + 2 + k, col + LABEL + i * CELL, (int[AXES]){i, k, group});
    }
}

static void draw_cursor(const struct drawing *d)
{
    const struct axis *x = axes(d->a);
    const int *at = d->a->at;
    const struct candidate *c = best_of(d->a, at);
    int line = d->r.rows - 1;
    int col = 1;
    if (c) // first, so that narrow panes have it too
        col = canvas_putf(d->c, d->r, line, col, SLOT_TEXT, "%lld  ", (long long)c->id);
    col = canvas_putf(d->c, d->r, line, col, SLOT_DIM, "%s %s, %s %s, %s %s: ", x[0].name,
                      x[0].bins[at[0] % BINS_MAX], x[1].name, x[1].bins[at[1] % BINS_MAX], x[2].name,
                      x[2].bins[at[2] % BINS_MAX]);
    if (c)
        canvas_put(d->c, d->r, line, col, SLOT_TEXT, c->title ? c->title : "");
    else
        canvas_put(d->c, d->r, line, col, SLOT_DIM, "nothing of this kind yet");
}

// Keeps the group under the cursor in view, and where it does not fit, the cell.
static void scroll(struct archive_view *a, struct rect r, int line, int height, int col)
{
    int cell_line = line + 2 + a->at[1], cell_end = 1 + col + LABEL + (a->at[0] + 1) * CELL;
    if (line < a->top || line + height > a->top + r.rows)
        a->top = line + height > r.rows ? line : 0;
    if (cell_line >= a->top + r.rows)
        a->top = cell_line - r.rows + 1;
    a->left = cell_end > r.cols ? cell_end - r.cols : 0;
}

static void draw(struct view *v, struct canvas *c, struct rect r, bool focused)
{
    struct archive_view *a = self(v);
    const struct state *st = v->host->model->st;
    const struct axis *x = axes(a);
    struct drawing d = {a, c, r, 1, focused};
    if (!st->cells.n) {
        canvas_put(c, r, 1, 1, SLOT_DIM, "The archive is empty: the first correct candidate opens it.");
        return;
    }
    if (!a->placed)
        place(a);
    for (size_t i = 0; i < st->cells.n; i++)
        d.best = fmax(d.best, st->c.v[st->cells.v[i].id].speedup.value);
    int width = LABEL + x[0].n * CELL + GAP, height = x[1].n + 3, per_band = r.cols / width;
    per_band = per_band < 1 ? 1 : per_band > x[2].n ? x[2].n : per_band;
    d.r.rows--;
    scroll(a, d.r, a->at[2] / per_band * height, height, a->at[2] % per_band * width);
    for (int g = 0; g < x[2].n; g++)
        draw_group(&d, g / per_band * height - a->top, 1 + g % per_band * width - a->left, g);
    d.r.rows++;
    draw_cursor(&d);
}

static void move(struct archive_view *a, int axis, int by)
{
    const struct axis *x = axes(a);
    int to = a->at[axis] + by;
    if (axis == 1 && to < 0 && a->at[2] > 0) { // over the edge: the next group
        a->at[2]--;
        to = x[1].n - 1;
    } else if (axis == 1 && to >= x[1].n && a->at[2] + 1 < x[2].n) {
        a->at[2]++;
        to = 0;
    }
    a->at[axis] = to < 0 ? 0 : to >= x[axis].n ? x[axis].n - 1 : to;
    const struct candidate *c = best_of(a, a->at);
    if (c)
        a->view.host->select(a->view.host, c->id);
}

static bool act(struct view *v, enum action act, int count)
{
    struct archive_view *a = self(v);
    const struct state *st = v->host->model->st;
    int by = count > 0 ? count : 1;
    static const struct {
        enum action act;
        int axis, by;
    } moves[] = {{ACT_LEFT, 0, -1},    {ACT_RIGHT, 0, 1},     {ACT_UP, 1, -1},       {ACT_DOWN, 1, 1},
                 {ACT_PAGE_UP, 2, -1}, {ACT_PAGE_DOWN, 2, 1}, {ACT_PREVIOUS, 2, -1}, {ACT_NEXT, 2, 1}};
    for (size_t i = 0; i < countof(moves); i++)
        if (moves[i].act == act) {
            move(a, moves[i].axis, moves[i].by * by);
            return true;
        }
    if (act == ACT_LAYOUT) {
        a->island = a->island + 1 < st->islands ? a->island + 1 : -1;
        return true;
    }
    if (act == ACT_ENTER)
        return v->host->show(v->host, "detail"), true;
    return false;
}

// Elites by what changed, operator or model, in the order of the state's cells.
static bool search(struct view *v, const char *text, bool back, bool again)
{
    struct archive_view *a = self(v);
    const struct state *st = v->host->model->st;
    const struct candidate *here = best_of(a, a->at);
    int64_t n = (int64_t)st->cells.n, from = 0;
    for (int64_t i = 0; i < n && here; i++)
        if (st->cells.v[i].id == here->id)
            from = i;
    for (int64_t i = again ? 1 : 0; i < n + (again ? 1 : 0); i++) {
        const struct cell *cell = &st->cells.v[((back ? from - i : from + i) % n + n) % n];
        const struct candidate *c = state_candidate(st, cell->id);
        if (best_of(a, cell->bins) != c ||
            !(match_in(c->title, text) || match_in(c->op, text) || match_in(c->model, text)))
            continue;
        memcpy(a->at, cell->bins, sizeof a->at);
        v->host->select(v->host, c->id);
        return true;
    }
    return false;
}

static void heading(struct view *v, struct str *out)
{
    struct archive_view *a = self(v);
    const struct state *st = v->host->model->st;
    str_addf(out, "%zu elites  ", st->cells.n);
    if (st->islands > 1 && a->island < 0)
        str_add(out, "best of all islands (v: one)  ");
    else if (st->islands > 1)
        str_addf(out, "island %d  ", a->island);
}

static void open(struct view *v)
{
    self(v)->island = -1;
}

const struct view_ops view_archive = {
    .name = "archive",
    .title = "Archive",
    .help = "the best of each kind",
    .size = sizeof(struct archive_view),
    .key = ACT_VIEW_ARCHIVE,
    .open = open,
    .draw = draw,
    .act = act,
    .changed = changed,
    .heading = heading,
    .search = search,
};
