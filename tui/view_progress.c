// Progress: the best speedup, the median of recent correct candidates and every accepted one, over iterations
// or over time.
#include "base/clock.h"
#include "tui/chart.h"
#include "tui/view.h"

#include <math.h>
#include <string.h>

enum { RECENT = 20 };

typedef VEC(double) numbers;
struct line {
    numbers x, y;
};
struct progress_view {
    struct view view;
    struct line best, median, accepted, tried;
    bool by_time;
    unsigned version;
    double low, high, last_x;
};

static struct progress_view *self(struct view *v)
{
    return (struct progress_view *)v;
}

static void add(struct line *l, double x, double y)
{
    vec_push(&l->x, x);
    vec_push(&l->y, y);
}

static void clear(struct line *l)
{
    l->x.n = l->y.n = 0;
}

// The last values in the order they came and by size, so that a median costs no sort.
struct recent {
    double ring[RECENT], sorted[RECENT];
    size_t n, next;
};

static double median(struct recent *r, double y)
{
    size_t at = 0;
    if (r->n == RECENT) { // the oldest leaves
        while (r->sorted[at] < r->ring[r->next])
            at++;
        memmove(r->sorted + at, r->sorted + at + 1, (RECENT - 1 - at) * sizeof *r->sorted);
        r->n--;
    }
    for (at = r->n; at > 0 && r->sorted[at - 1] > y; at--)
        r->sorted[at] = r->sorted[at - 1];
    r->sorted[at] = y;
    r->n++;
    r->ring[r->next] = y;
    r->next = (r->next + 1) % RECENT;
    return r->sorted[r->n / 2];
}

static void make(struct progress_view *p)
{
    const struct state *st = p->view.host->model->st;
    struct recent recent = {0};
    double best = 0;
    struct line *all[] = {&p->best, &p->median, &p->accepted, &p->tried};
    for (size_t i = 0; i < countof(all); i++)
        clear(all[i]);
    p->low = 1;
    p->high = 1.1;
    p->last_x = 1;
    for (size_t i = 0; i < st->c.n; i++) {
        const struct candidate *c = &st->c.v[i];
        double x = p->by_time ? c->born - st->started : (double)i, y = c->speedup.value;
        p->last_x = fmax(p->last_x, x);
        if ((c->status != ST_OK && c->id > 0) || !(y > 0))
            continue;
        p->low = fmin(p->low, y);
        p->high = fmax(p->high, y);
        add(&p->median, x, median(&recent, y));
        add(&p->tried, x, y);
        if (c->id == 0 || ((c->flags & CF_ACCEPTED) && !(c->flags & CF_KILLED))) {
            add(&p->accepted, x, y);
            if (y > best)
                add(&p->best, x, best = y);
        }
    }
}

static void draw(struct view *v, struct canvas *c, struct rect r, bool focused)
{
    struct progress_view *p = self(v);
    (void)focused;
    if (p->version != v->host->model->version)
        make(p);
    p->version = v->host->model->version;
    if (p->best.x.n == 0) {
        canvas_put(c, r, 1, 1, SLOT_DIM, "Nothing was measured yet: the baseline is the first point.");
        return;
    }
    struct chart ch = {0, p->last_x, p->low, p->high * 1.02, p->high / p->low > 3};
    struct chart_series s[] = {
        {p->tried.x.v, p->tried.y.v, p->tried.x.n, SLOT_DIM, false, '.'},
        {p->median.x.v, p->median.y.v, p->median.x.n, SLOT_LINE_MEDIAN, true, '-'},
        {p->best.x.v, p->best.y.v, p->best.x.n, SLOT_LINE_BEST, true, '#'},
        {p->accepted.x.v, p->accepted.y.v, p->accepted.x.n, SLOT_ACCEPTED, false, 'A'},
    };
    struct rect plot = {r.row + 1, r.col, r.rows - 1, r.cols};
    int col = canvas_put(c, r, 0, 8, SLOT_LINE_BEST,
                         c->utf8 ? "● accepted, and the best so far" : "A accepted, # the best so far");
    col = canvas_put(c, r, 0, col + 2, SLOT_LINE_MEDIAN,
                     c->utf8 ? "median of the last 20" : "- median of the last 20");
    canvas_put(c, r, 0, col + 2, SLOT_DIM, c->utf8 ? "each correct one" : ". each correct one");
    chart_draw(&ch, s, countof(s), c, plot, p->by_time ? "s" : "candidates");
}

static bool act(struct view *v, enum action a, int count)
{
    (void)count;
    if (a != ACT_LAYOUT)
        return false;
    self(v)->by_time = !self(v)->by_time;
    self(v)->version = 0;
    return true;
}

static void heading(struct view *v, struct str *out)
{
    str_add(out, self(v)->by_time ? "over time (v: over candidates)  " : "over candidates (v: over time)  ");
}

static void close_view(struct view *v)
{
    struct progress_view *p = self(v);
    struct line *all[] = {&p->best, &p->median, &p->accepted, &p->tried};
    for (size_t i = 0; i < countof(all); i++) {
        vec_free(&all[i]->x);
        vec_free(&all[i]->y);
    }
}

const struct view_ops view_progress = {
    .name = "progress",
    .title = "Progress",
    .help = "speedup over the run",
    .size = sizeof(struct progress_view),
    .key = ACT_VIEW_PROGRESS,
    .close = close_view,
    .draw = draw,
    .act = act,
    .heading = heading,
};
