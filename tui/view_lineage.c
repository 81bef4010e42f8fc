// The lineage: the commits as git would draw them, newest first. Enter shows the whole commit; the last line
// says what to type for the same in plain git.
#include "cmd/show_text.h"
#include "tui/graph.h"
#include "tui/look.h"
#include "tui/match.h"
#include "tui/page.h"
#include "tui/view.h"

#include <string.h>

struct lineage_view {
    struct view view;
    struct graph graph;
    struct list list;
    struct page page; // the commit that Enter opened
    bool opened;
    unsigned version;
};

static struct lineage_view *self(struct view *v)
{
    return (struct lineage_view *)v;
}

static const struct commit *at(const struct lineage_view *l, int64_t row)
{
    return row >= 0 && row < (int64_t)l->graph.v.n
               ? &l->view.host->model->st->commits.v[l->graph.v.v[row].commit]
               : NULL;
}

// The cursor goes to the commit of a candidate, where it has one.
static void go(struct lineage_view *l, int64_t id)
{
    for (size_t i = 0; i < l->graph.v.n; i++)
        if (at(l, (int64_t)i)->id == id && !at(l, (int64_t)i)->main) {
            l->list.cursor = (int64_t)i;
            l->opened = false;
            return;
        }
}

static void update(struct lineage_view *l)
{
    const struct model *m = l->view.host->model;
    const struct commit *here = at(l, l->list.cursor);
    if (l->version == m->version)
        return;
    const char *hex = here ? here->hex : NULL;
    graph_make(&l->graph, m->st);
    l->version = m->version;
    for (size_t i = 0; hex && i < l->graph.v.n; i++) // the cursor stays on its commit
        if (str_eq(at(l, (int64_t)i)->hex, hex))
            l->list.cursor = (int64_t)i;
    if (!here) // opened now: begin where everything else is
        go(l, m->selected);
}

static void changed(struct view *v, unsigned what)
{
    struct lineage_view *l = self(v);
    const struct commit *here = at(l, l->list.cursor);
    int64_t id = v->host->model->selected;
    if ((what & MODEL_SELECTION) && !(here && here->id == id))
        go(l, id);
}

static void follow(struct lineage_view *l)
{
    const struct commit *c = at(l, l->list.cursor);
    if (c)
        l->view.host->select(l->view.host, c->id);
}

// ---- drawing

static int draw_lanes(struct canvas *c, struct rect r, int row, const struct graph_row *g)
{
    static const char *const shapes[][2] = {
        [LANE_EMPTY] = {" ", " "}, [LANE_PASS] = {"│", "|"},   [LANE_COMMIT] = {"●", "*"},
        [LANE_MERGE] = {"◎", "M"}, [LANE_OPENS] = {"╮", "\\"}, [LANE_JOINS] = {"╯", "/"}};
    for (int i = 0; i < g->lanes; i++) {
        enum lane_kind k = (enum lane_kind)g->kind[i];
        canvas_put(c, r, row, 1 + 2 * i, k == LANE_COMMIT || k == LANE_MERGE ? SLOT_STRONG : SLOT_GRAPH,
                   shapes[k][c->utf8 ? 0 : 1]);
        // Lines from the commit to what opens or joins on its right.
        for (int j = i + 1; j < g->lanes && i >= g->own; j++)
            if (g->kind[j] == LANE_OPENS || g->kind[j] == LANE_JOINS) {
                canvas_put(c, r, row, 2 + 2 * i, SLOT_GRAPH, canvas_glyph(c, GLYPH_HLINE));
                break;
            }
    }
    return 2 + 2 * g->lanes + (g->more ? 1 : 0);
}

static void draw_row(struct lineage_view *l, struct canvas *c, struct rect r, int row,
                     const struct graph_row *g)
{
    const struct state *st = l->view.host->model->st;
    const struct commit *x = &st->commits.v[g->commit], *head = state_main(st);
    const struct candidate *k = state_candidate(st, x->id);
    char speed[32] = "", subject[200];
    int col = draw_lanes(c, r, row, g);
    if (col < 6)
        col = 6;
    canvas_putn(c, r, row, col, SLOT_HASH, x->hex, 8);
    col += 9;
    snprintf(subject, sizeof subject, "%.*s", (int)strcspn(x->message, "\n"), x->message);
    if (x == head)
        col = canvas_put(c, r, row, col, SLOT_REF, "[main]") + 1;
    else if (x->main)
        col = canvas_put(c, r, row, col, SLOT_DIM, "main") + 1;
    if (k && !x->main) {
        struct look look = look_of(st, k);
        look_speed(st, k, speed, sizeof speed);
        col = canvas_putf(c, r, row, col, look.slot, "%lld %s", (long long)k->id, speed) + 1;
        if (x->stone)
            col = canvas_put(c, r, row, col, SLOT_DIM, "stepping stone") + 1;
    }
    canvas_put(c, r, row, col, x->main ? SLOT_DIM : SLOT_TEXT, subject);
}

static void make_page(struct lineage_view *l, const struct commit *c)
{
    struct page *p = &l->page;
    page_clear(p);
    p->list.top = 0;
    page_field(p, "commit", c->hex);
    for (int i = 0; i < c->nparents; i++)
        page_field(p, "parent", c->parents[i]);
    struct str who = {0};
    str_addf(&who, "%s <%s>", c->author ? c->author : "ksmith", c->mail ? c->mail : "");
    page_field(p, "author", str_c(&who));
    str_free(&who);
    page_add(p, SLOT_TEXT, "%s", "");
    page_block(p, SLOT_TEXT, c->message, strlen(c->message));
}

static void draw_hint(struct lineage_view *l, struct canvas *c, struct rect r)
{
    const struct commit *x = at(l, l->list.cursor);
    const char *path = l->view.host->model->session.lineage_path;
    const char *verb = x && x->main ? "log --first-parent" : "show";
    if (!x)
        return;
    if (canvas_width(path, strlen(path)) + (int)strlen(verb) + 21 > r.cols)
        path = ".ksmith/lineage.git"; // from the session's folder: better than half a command
    canvas_putf(c, r, r.rows - 1, 1, SLOT_DIM, "git -C %s %s %.10s", path, verb, x->hex);
}

static void draw(struct view *v, struct canvas *c, struct rect r, bool focused)
{
    struct lineage_view *l = self(v);
    struct rect body = {r.row, r.col, r.rows - 1, r.cols};
    update(l);
    list_fit(&l->list, (int64_t)l->graph.v.n, body.rows);
    if (!l->graph.v.n) {
        canvas_put(c, r, 1, 1, SLOT_DIM, "No commit yet: the first accepted candidate becomes one.");
        return;
    }
    draw_hint(l, c, r);
    if (l->opened) {
        page_draw(&l->page, c, body);
        return;
    }
    for (int i = 0; i < body.rows && l->list.top + i < (int64_t)l->graph.v.n; i++) {
        draw_row(l, c, body, i, &l->graph.v.v[l->list.top + i]);
        if (l->list.top + i == l->list.cursor)
            canvas_tint(c, body, i, focused ? SLOT_CURSOR : SLOT_CURSOR_BLUR);
    }
}

static void heading(struct view *v, struct str *out)
{
    str_addf(out, "%zu commits  ", self(v)->graph.v.n);
}

// ---- keys

static bool act(struct view *v, enum action a, int count)
{
    struct lineage_view *l = self(v);
    const struct commit *c = at(l, l->list.cursor);
    if (a == ACT_YANK && c)
        return v->host->yank(v->host, "the commit's hash", c->hex), true;
    if (l->opened && (a == ACT_BACK || a == ACT_CLOSE || a == ACT_ENTER || a == ACT_LEFT)) {
        l->opened = false;
        return true;
    }
    if (l->opened)
        return list_act(&l->page.list, a, count);
    if (a == ACT_ENTER && c) {
        make_page(l, c);
        l->opened = true;
        return true;
    }
    if (!list_act(&l->list, a, count))
        return false;
    follow(l);
    return true;
}

static bool search(struct view *v, const char *text, bool back, bool again)
{
    struct lineage_view *l = self(v);
    int64_t n = (int64_t)l->graph.v.n;
    if (l->opened)
        return page_search(&l->page, text, back, again);
    for (int64_t i = again ? 1 : 0; i < n + (again ? 1 : 0); i++) {
        int64_t row = ((back ? l->list.cursor - i : l->list.cursor + i) % n + n) % n;
        const struct commit *c = at(l, row);
        if (!match_in(c->message, text) && !str_starts(c->hex, text))
            continue;
        l->list.cursor = row;
        follow(l);
        return true;
    }
    return false;
}

static void point(struct view *v, int row, int col)
{
    struct lineage_view *l = self(v);
    (void)col;
    if (!l->opened && at(l, l->list.top + row)) {
        l->list.cursor = l->list.top + row;
        follow(l);
    }
}

static void close_view(struct view *v)
{
    graph_free(&self(v)->graph);
    page_free(&self(v)->page);
}

const struct view_ops view_lineage = {
    .name = "lineage",
    .title = "Lineage",
    .help = "the commits",
    .size = sizeof(struct lineage_view),
    .key = ACT_VIEW_LINEAGE,
    .close = close_view,
    .draw = draw,
    .act = act,
    .changed = changed,
    .heading = heading,
    .search = search,
    .point = point,
};
