// The funnel: where candidates died and why, and what operators, proposers and models brought. Enter lists
// the candidates of a row in the population.
#include "tui/list.h"
#include "tui/match.h"
#include "tui/view.h"

#include <math.h>
#include <string.h>

struct funnel_row {
    enum { FUNNEL_HEAD, FUNNEL_STAGE, FUNNEL_STATS } kind;
    const char *group, *name; // a stage, operator, proposer or model; a heading has no name
    int status;               // of a stage's row
    int64_t n, of;
    const struct op_stats *stats;
};
struct funnel_view {
    struct view view;
    VEC(struct funnel_row) rows;
    struct list list;
    unsigned version;
};

static struct funnel_view *self(struct view *v)
{
    return (struct funnel_view *)v;
}

static void add_stages(struct funnel_view *f, const struct state *st)
{
    for (size_t i = 0; i < st->funnel.n; i++)
        for (int s = 0; s < ST_COUNT; s++)
            if (st->funnel.v[i].by_status[s])
                vec_push(&f->rows,
                         ((struct funnel_row){FUNNEL_STAGE, "stage", st->funnel.v[i].stage, s,
                                              st->funnel.v[i].by_status[s], (int64_t)st->c.n, NULL}));
}

static void add_stats(struct funnel_view *f, const char *group, const struct op_stats *v, size_t n)
{
    if (n && f->rows.n)
        vec_push(&f->rows, ((struct funnel_row){.kind = FUNNEL_HEAD, .group = group}));
    for (size_t i = 0; i < n; i++)
        vec_push(&f->rows,
                 ((struct funnel_row){FUNNEL_STATS, group, v[i].name, -1, v[i].tried, v[i].tried, &v[i]}));
}

static void update(struct funnel_view *f)
{
    const struct model *m = f->view.host->model;
    if (f->version == m->version)
        return;
    f->version = m->version;
    f->rows.n = 0;
    add_stages(f, m->st);
    add_stats(f, "op", m->st->ops.v, m->st->ops.n);
    add_stats(f, "proposer", m->st->proposers.v, m->st->proposers.n);
    add_stats(f, "model", m->st->models.v, m->st->models.n);
}

static void draw_stage(struct canvas *c, struct rect r, int line, const struct funnel_row *x)
{
    bool good = x->status == ST_OK;
    int col = canvas_field(c, r, line, 2, 12, false, SLOT_TEXT, x->name ? x->name : "-");
    col = canvas_field(c, r, line, col, 14, false, good ? SLOT_UP : SLOT_FAILED,
                       status_name((enum status)x->status));
    col = canvas_putf(c, r, line, col, SLOT_TEXT, "%7lld %4.0f %%  ", (long long)x->n,
                      x->of ? 100.0 * (double)x->n / (double)x->of : 0);
    canvas_bar(c, r, line, col, r.cols - col - 2 < 30 ? r.cols - col - 2 : 30,
               x->of ? (double)x->n / (double)x->of : 0, good ? SLOT_UP : SLOT_DOWN);
}

static void draw_stats(struct canvas *c, struct rect r, int line, const struct funnel_row *x)
{
    const struct op_stats *s = x->stats;
    int col = canvas_field(c, r, line, 2, 16, false, SLOT_OP, s->name ? s->name : "-");
    col = canvas_putf(c, r, line, col, SLOT_TEXT, "%6lld %7lld %3.0f%% %6lld %8lld ", (long long)s->tried,
                      (long long)s->ok, s->tried ? 100.0 * (double)s->ok / (double)s->tried : 0,
                      (long long)s->faster, (long long)s->accepted);
    col = canvas_putf(c, r, line, col, s->log_gain > 0 ? SLOT_UP : SLOT_DIM, "%7.2fx", exp(s->log_gain));
    col = canvas_putf(c, r, line, col, SLOT_DIM, " %8.0f s", s->seconds);
    if (s->usd > 0)
        canvas_putf(c, r, line, col, SLOT_DIM, " $%.2f", s->usd);
}

static void draw_head(struct canvas *c, struct rect r, int line, const char *group)
{
    if (str_eq(group, "stage"))
        canvas_put(c, r, line, 2, SLOT_DIM, "decided at  verdict         count  share");
    else
        canvas_putf(c, r, line, 2, SLOT_DIM, "%-16s %5s %7s %4s %6s %8s %8s %10s",
                    str_eq(group, "op") ? "operator" : group, "tried", "correct", "", "faster", "accepted",
                    "together", "cost");
}

static void draw(struct view *v, struct canvas *c, struct rect r, bool focused)
{
    struct funnel_view *f = self(v);
    update(f);
    if (!f->rows.n) {
        canvas_put(c, r, 1, 1, SLOT_DIM, "No verdict yet: `:run` starts the search.");
        return;
    }
    struct rect body = {r.row + 1, r.col, r.rows - 1, r.cols};
    list_fit(&f->list, (int64_t)f->rows.n, body.rows);
    draw_head(c, r, 0, f->rows.v[f->list.top].group); // also where its own heading was scrolled off
    for (int i = 0; i < body.rows && f->list.top + i < (int64_t)f->rows.n; i++) {
        const struct funnel_row *x = &f->rows.v[f->list.top + i];
        if (x->kind == FUNNEL_STATS)
            draw_stats(c, body, i, x);
        else if (x->kind == FUNNEL_STAGE)
            draw_stage(c, body, i, x);
        else if (i > 0)
            draw_head(c, body, i, x->group);
        if (f->list.top + i == f->list.cursor)
            canvas_tint(c, body, i, focused ? SLOT_CURSOR : SLOT_CURSOR_BLUR);
    }
}

static bool act(struct view *v, enum action a, int count)
{
    struct funnel_view *f = self(v);
    if (a != ACT_ENTER || f->list.cursor < 0 || f->list.cursor >= (int64_t)f->rows.n)
        return list_act(&f->list, a, count);
    const struct funnel_row *x = &f->rows.v[f->list.cursor];
    if (x->kind == FUNNEL_HEAD)
        return true;
    char *cmd = x->stats ? xasprintf("filter %s=%s", x->group, x->name ? x->name : "")
                         : xasprintf("filter stage=%s status=%s", x->name ? x->name : "",
                                     status_name((enum status)x->status));
    v->host->command(v->host, cmd);
    v->host->show(v->host, "tree");
    free(cmd);
    return true;
}

static void heading(struct view *v, struct str *out)
{
    const struct state *st = v->host->model->st;
    str_addf(out, "%zu candidates, %lld verdicts by a worker  ", st->c.n, (long long)st->evals);
}

static bool search(struct view *v, const char *text, bool back, bool again)
{
    struct funnel_view *f = self(v);
    int64_t n = (int64_t)f->rows.n;
    for (int64_t i = again ? 1 : 0; i < n + (again ? 1 : 0); i++) {
        int64_t at = ((back ? f->list.cursor - i : f->list.cursor + i) % n + n) % n;
        const struct funnel_row *x = &f->rows.v[at];
        if (match_in(x->name, text) ||
            (x->kind == FUNNEL_STAGE && match_in(status_name((enum status)x->status), text))) {
            f->list.cursor = at;
            return true;
        }
    }
    return false;
}

static void close_view(struct view *v)
{
    vec_free(&self(v)->rows);
}

const struct view_ops view_funnel = {
    .name = "funnel",
    .title = "Funnel",
    .help = "where candidates died and why; what operators brought",
    .size = sizeof(struct funnel_view),
    .key = ACT_VIEW_FUNNEL,
    .close = close_view,
    .draw = draw,
    .act = act,
    .heading = heading,
    .search = search,
};
