// The population: every candidate, as a tree by first parent or flat by rank, island or generation. The
// cursor is a candidate, not a row: the list changes around it.
#include "base/clock.h"
#include "cmd/fields.h"
#include "cmd/show_text.h"
#include "tui/list.h"
#include "tui/look.h"
#include "tui/match.h"
#include "tui/rows.h"
#include "tui/view.h"

#include <math.h>
#include <string.h>

enum { REMAKE_MS = 1000, MANY = 20000, INDENT_MAX = 6, BAR = 6 };

struct tree {
    struct view view;
    struct rows rows;
    struct list list;
    unsigned made; // the model's version that the rows show
    int64_t made_ns;
    bool stale, frozen, follow;
    char *filter, *match;
    double best; // speedup that fills a bar
    double now;  // wall clock of this frame
};

static struct tree *self(struct view *v)
{
    return (struct tree *)v;
}

static void remake(struct tree *t)
{
    const struct model *m = t->view.host->model;
    rows_make(&t->rows, m->st);
    t->made = m->version;
    t->made_ns = clock_ns();
    t->stale = false;
    t->best = 1;
    for (size_t i = 0; i < m->st->c.n; i++)
        if (look_counts(&m->st->c.v[i]) && m->st->c.v[i].speedup.value > t->best)
            t->best = m->st->c.v[i].speedup.value;
}

// The rows as they should be now; with very many they are not made anew more than once a second.
static void update(struct tree *t)
{
    const struct model *m = t->view.host->model;
    bool young = t->rows.v.n > MANY && clock_ns() - t->made_ns < (int64_t)REMAKE_MS * 1000000;
    if (t->stale || t->made == 0 || (t->made != m->version && !t->frozen && !young))
        remake(t);
}

// Puts the cursor where the selected candidate is.
static void find_cursor(struct tree *t)
{
    const struct model *m = t->view.host->model;
    int64_t row = rows_find(&t->rows, m->st, m->selected);
    if (row >= 0)
        t->list.cursor = row;
}

static void select_cursor(struct tree *t)
{
    struct host *h = t->view.host;
    if (t->list.cursor >= 0 && t->list.cursor < (int64_t)t->rows.v.n)
        h->select(h, t->rows.v.v[t->list.cursor].id);
}

static void open(struct view *v)
{
    self(v)->stale = true;
}

static void close_view(struct view *v)
{
    rows_free(&self(v)->rows);
    free(self(v)->filter);
    free(self(v)->match);
}

static void changed(struct view *v, unsigned what)
{
    struct tree *t = self(v);
    const struct model *m = v->host->model;
    if ((what & MODEL_JOURNAL) && t->follow && m->st->c.n)
        v->host->select(v->host, (int64_t)m->st->c.n - 1);
}

// ---- drawing

struct columns { // first column of each; 0: not shown
    int id, speed, bar, interval, time, op, proposer, island, age, title;
};

static struct columns columns_of(int width, int islands)
{
    struct columns c = {.id = 3};
    int at = width >= 90 ? 18 : 14;
    c.speed = at;
    at += 9;
    if (width >= 70)
        c.bar = at, at += BAR + 1;
    if (width >= 110)
        c.interval = at, at += 16;
    if (width >= 84)
        c.time = at, at += 10;
    if (width >= 48)
        c.op = at, at += 12;
    if (width >= 100)
        c.proposer = at, at += 7;
    if (width >= 100 && islands > 1)
        c.island = at, at += 3;
    if (width >= 62)
        c.age = at, at += 5;
    c.title = at;
    return c;
}

static bool doing_now(const struct model *m, int64_t id)
{
    return m->connected && m->status && json_int(m->status, "id", -1) == id;
}

static void draw_branch(struct canvas *c, struct rect r, int line, int col, const struct row *row)
{
    int depth = row->depth > INDENT_MAX ? INDENT_MAX : row->depth;
    for (int i = 0; i + 1 < depth; i++)
        canvas_put(c, r, line, col + i, SLOT_TEXT, canvas_glyph(c, GLYPH_VLINE));
    if (row->branch && depth)
        canvas_put(c, r, line, col + depth - 1, SLOT_DIM,
                   canvas_glyph(c, row->last ? GLYPH_CORNER : GLYPH_TEE));
    else if (depth)
        canvas_put(c, r, line, col + depth - 1, SLOT_TEXT, row->last ? " " : canvas_glyph(c, GLYPH_VLINE));
    int end = canvas_putf(c, r, line, col + depth, SLOT_TEXT, "%lld", (long long)row->id);
    if (row->folded && row->children)
        canvas_putf(c, r, line, end, SLOT_DIM, "%s%d", canvas_glyph(c, GLYPH_SHUT), row->children);
}

static const char *words_of(const struct candidate *c)
{
    bool failed = c->status != ST_OK && c->status != ST_PENDING && c->reason && *c->reason;
    return failed ? c->reason : c->title ? c->title : "";
}

static void draw_numbers(struct tree *t, struct canvas *c, struct rect r, int line, const struct columns *k,
                         const struct candidate *x)
{
    const struct state *st = t->view.host->model->st;
    char text[64];
    struct look look = look_of(st, x);
    look_speed(st, x, text, sizeof text);
    bool number = look_counts(x);
    canvas_field(c, r, line, k->speed, number ? 8 : 8 + (k->bar ? BAR + 1 : 0), number, look.slot, text);
    if (k->bar && number) // a logarithm: from the baseline to the best
        canvas_bar(c, r, line, k->bar, BAR,
                   t->best > 1.001 ? log(fmax(x->speedup.value, 1)) / log(t->best) : 0, look.slot);
    if (k->interval && number && x->speedup.low > 0) {
        int d = x->speedup.value < 10 ? 2 : 1;
        snprintf(text, sizeof text, "[%.*f, %.*f]", d, x->speedup.low, d, x->speedup.high);
        canvas_field(c, r, line, k->interval, 15, false, SLOT_DIM, text);
    }
    if (k->time && x->ntimes) {
        show_time(text, sizeof text, x->times[0].time_ns);
        canvas_field(c, r, line, k->time, 9, true, SLOT_TEXT, text);
    }
}

static void draw_row(struct tree *t, struct canvas *c, struct rect r, int line, const struct row *row,
                     const struct columns *k)
{
    const struct model *m = t->view.host->model;
    const struct candidate *x = &m->st->c.v[row->id];
    struct look look = look_of(m->st, x);
    canvas_put(c, r, line, 0, look.slot, canvas_glyph(c, look.glyph));
    if (model_marked(m, row->id))
        canvas_put(c, r, line, 1, SLOT_MARK, canvas_glyph(c, GLYPH_MARKED));
    else if (x->flags & CF_PINNED)
        canvas_put(c, r, line, 1, SLOT_PINNED, canvas_glyph(c, GLYPH_PINNED));
    draw_branch(c, r, line, k->id, row);
    draw_numbers(t, c, r, line, k, x);
    if (k->op)
        canvas_field(c, r, line, k->op, 11, false, SLOT_TEXT, x->op ? x->op : "");
    if (k->proposer)
        canvas_field(c, r, line, k->proposer, 6, false, SLOT_TEXT, x->proposer ? x->proposer : "");
    if (k->island) {
        char text[16];
        snprintf(text, sizeof text, "%d", x->island);
        canvas_field(c, r, line, k->island, 2, true, SLOT_DIM, text);
    }
    if (k->age) {
        char text[16];
        look_age(t->now - x->born, text, sizeof text);
        canvas_field(c, r, line, k->age, 4, true, SLOT_TEXT, text);
    }
    int end = k->title;
    if (doing_now(m, row->id))
        end = canvas_putf(c, r, line, end, SLOT_PENDING, "%s ", json_str_or(m->status, "doing", "")) + 1;
    if (x->nparents > 1)
        end = canvas_putf(c, r, line, end, SLOT_OP, "x%lld ", (long long)x->parents[1]);
    canvas_put(c, r, line, end, look.slot == SLOT_FAILED ? SLOT_DIM : SLOT_TEXT, words_of(x));
}

static void draw_head(const struct tree *t, struct canvas *c, struct rect r, const struct columns *k)
{
    canvas_put(c, r, 0, k->id, SLOT_DIM, "id");
    canvas_field(c, r, 0, k->speed, 8, true, SLOT_DIM, "speedup");
    const struct {
        int col, width;
        bool right;
        const char *name;
    } rows[] = {{k->interval, 15, false, "95 % interval"},
                {k->time, 9, true, "time"},
                {k->op, 11, false, "operator"},
                {k->proposer, 6, false, "by"},
                {k->island, 2, true, "i"},
                {k->age, 4, true, "age"},
                {k->title, r.cols - k->title, false, "what changed, or why it failed"}};
    for (size_t i = 0; i < countof(rows); i++)
        if (rows[i].col)
            canvas_field(c, r, 0, rows[i].col, rows[i].width, rows[i].right, SLOT_DIM, rows[i].name);
    (void)t;
}

static void draw_empty(struct tree *t, struct canvas *c, struct rect r)
{
    const struct model *m = t->view.host->model;
    if (!m->st->c.n)
        canvas_put(c, r, 1, 1, SLOT_DIM,
                   m->connected ? "The engine checks the task first; the baseline comes next."
                                : "Nothing was tried yet. :run starts the search.");
    else
        canvas_put(c, r, 1, 1, SLOT_DIM, "No candidate passes the filter; \\ and Enter shows all again.");
}

static void draw(struct view *v, struct canvas *c, struct rect r, bool focused)
{
    struct tree *t = self(v);
    const struct model *m = v->host->model;
    struct columns k = columns_of(r.cols, m->st->islands);
    t->now = clock_wall();
    update(t);
    find_cursor(t);
    struct rect body = {r.row + 1, r.col, r.rows - 1, r.cols};
    list_fit(&t->list, (int64_t)t->rows.v.n, body.rows);
    if (t->list.cursor >= 0 && t->rows.v.v[t->list.cursor].id != m->selected &&
        rows_find(&t->rows, m->st, m->selected) < 0)
        select_cursor(t); // what was selected is not shown any more
    if (!t->rows.v.n) {
        draw_empty(t, c, r);
        return;
    }
    draw_head(t, c, r, &k);
    for (int i = 0; i < body.rows && t->list.top + i < (int64_t)t->rows.v.n; i++) {
        draw_row(t, c, body, i, &t->rows.v.v[t->list.top + i], &k);
        if (t->list.top + i == t->list.cursor)
            canvas_tint(c, body, i, focused ? SLOT_CURSOR : SLOT_CURSOR_BLUR);
    }
}

static void heading(struct view *v, struct str *out)
{
    struct tree *t = self(v);
    const struct state *st = v->host->model->st;
    if (t->rows.filter)
        str_addf(out, "%lld of %zu with %s  ", (long long)t->rows.matched, st->c.n, t->filter);
    else
        str_addf(out, "%zu candidates, %zu accepted  ", st->c.n, st->accepted.n ? st->accepted.n - 1 : 0);
    if (t->rows.layout != ROWS_TREE)
        str_addf(out, "by %s  ", rows_layout_names[t->rows.layout]);
    if (t->rows.sort != SORT_ID || t->rows.reverse)
        str_addf(out, "sorted by %s%s  ", rows_sort_names[t->rows.sort], t->rows.reverse ? ", reversed" : "");
    if (t->follow)
        str_add(out, "following  ");
    if (t->frozen)
        str_addf(out, "frozen%s  ", t->made != v->host->model->version ? ", newer ones wait" : "");
}

// ---- keys

static void go_parent(struct tree *t)
{
    const struct candidate *c = model_selected(t->view.host->model);
    if (c && t->rows.layout == ROWS_TREE && !rows_is_folded(&t->rows, c->id) && c->first_child >= 0 &&
        c->nparents == 0)
        return;
    if (c && c->nparents)
        t->view.host->select(t->view.host, c->parents[0]);
}

static void go_child(struct tree *t)
{
    const struct candidate *c = model_selected(t->view.host->model);
    if (!c || c->first_child < 0)
        return;
    if (rows_is_folded(&t->rows, c->id)) {
        rows_fold(&t->rows, c->id, false);
        t->stale = true;
        return;
    }
    if (t->rows.layout == ROWS_TREE && t->list.cursor + 1 < (int64_t)t->rows.v.n &&
        t->rows.v.v[t->list.cursor].children)
        t->view.host->select(t->view.host, t->rows.v.v[t->list.cursor + 1].id);
    else
        t->view.host->select(t->view.host, c->first_child);
}

static void fold(struct tree *t)
{
    const struct candidate *c = model_selected(t->view.host->model);
    if (!c || t->rows.layout != ROWS_TREE)
        return;
    int64_t id = c->first_child >= 0 || !c->nparents ? c->id : c->parents[0];
    rows_fold(&t->rows, id, !rows_is_folded(&t->rows, id));
    t->view.host->select(t->view.host, id);
    t->stale = true;
}

static void fold_all(struct tree *t)
{
    const struct state *st = t->view.host->model->st;
    bool any = false;
    for (size_t i = 0; i < t->rows.folded.n; i++)
        any = any || t->rows.folded.v[i];
    for (size_t i = 1; i < st->c.n; i++)
        if (st->c.v[i].first_child >= 0)
            rows_fold(&t->rows, (int64_t)i, !any);
    t->stale = true;
}

// Along candidates of the same parent, or of the same rank where flat.
static void go_sibling(struct tree *t, int by)
{
    if (t->list.cursor < 0)
        return;
    uint16_t depth = t->rows.v.v[t->list.cursor].depth;
    for (int64_t i = t->list.cursor + by; i >= 0 && i < (int64_t)t->rows.v.n; i += by)
        if (t->rows.v.v[i].depth <= depth) {
            t->list.cursor = i;
            select_cursor(t);
            return;
        }
}

static void set_follow(struct tree *t)
{
    t->follow = !t->follow;
    t->frozen = t->frozen && !t->follow;
    changed(&t->view, MODEL_JOURNAL);
}

static void set_frozen(struct tree *t)
{
    t->frozen = !t->frozen;
    t->follow = t->follow && !t->frozen;
    t->stale = !t->frozen;
}

static bool act(struct view *v, enum action a, int count)
{
    struct tree *t = self(v);
    const struct candidate *c = model_selected(v->host->model);
    switch (a) {
    case ACT_LEFT:
        return go_parent(t), true;
    case ACT_RIGHT:
        return go_child(t), true;
    case ACT_NEXT:
        return go_sibling(t, 1), true;
    case ACT_PREVIOUS:
        return go_sibling(t, -1), true;
    case ACT_ENTER:
        return v->host->show(v->host, "detail"), true;
    case ACT_FOLD:
        return fold(t), true;
    case ACT_FOLD_ALL:
        return fold_all(t), true;
    case ACT_SORT:
        t->rows.sort = (enum rows_sort)((t->rows.sort + 1) % SORTS);
        t->stale = true;
        return true;
    case ACT_REVERSE:
        t->rows.reverse = !t->rows.reverse;
        t->stale = true;
        return true;
    case ACT_LAYOUT:
        t->rows.layout = (enum rows_layout)((t->rows.layout + 1) % ROWS_LAYOUTS);
        if (t->rows.layout == ROWS_RANK)
            t->rows.sort = SORT_SPEEDUP;
        else if (t->rows.layout == ROWS_TREE)
            t->rows.sort = SORT_ID;
        t->stale = true;
        return true;
    case ACT_FOLLOW:
        return set_follow(t), true;
    case ACT_FREEZE:
        return set_frozen(t), true;
    case ACT_YANK:
        if (c) {
            char id[24];
            snprintf(id, sizeof id, "%lld", (long long)c->id);
            v->host->yank(v->host, c->commit ? "its commit" : "its number", c->commit ? c->commit : id);
        }
        return true;
    default:
        if (!list_act(&t->list, a, count))
            return false;
        t->follow = false;
        select_cursor(t);
        return true;
    }
}

static bool matches(const struct candidate *c, const char *text)
{
    char id[24];
    snprintf(id, sizeof id, "%lld", (long long)c->id);
    const char *all[] = {c->title, c->op, c->proposer, c->model, c->reason, c->note, status_name(c->status),
                         c->commit};
    if (str_eq(id, text))
        return true;
    for (size_t i = 0; i < countof(all); i++)
        if (match_in(all[i], text))
            return true;
    for (size_t i = 0; i < c->tags.n; i++)
        if (match_in(c->tags.v[i], text))
            return true;
    return false;
}

static bool search(struct view *v, const char *text, bool back, bool again)
{
    struct tree *t = self(v);
    const struct state *st = v->host->model->st;
    update(t);
    int64_t n = (int64_t)t->rows.v.n, at = t->list.cursor < 0 ? 0 : t->list.cursor;
    for (int64_t i = again ? 1 : 0; i < n + (again ? 1 : 0); i++) {
        int64_t row = ((back ? at - i : at + i) % n + n) % n;
        if (!matches(&st->c.v[t->rows.v.v[row].id], text))
            continue;
        t->list.cursor = row;
        select_cursor(t);
        return true;
    }
    return false;
}

static bool set_filter(struct tree *t, const char *text, struct err *e)
{
    struct filter *f = NULL;
    if (*text && filter_parse(text, cand_fields, cand_fields_n, &f, e) < 0)
        return false;
    filter_free(t->rows.filter);
    free(t->filter);
    t->rows.filter = f;
    t->filter = *text ? xstrdup(text) : NULL;
    t->stale = true;
    return true;
}

static bool command(struct view *v, const char *word, const char *rest, struct err *e)
{
    struct tree *t = self(v);
    if (str_eq(word, "filter")) {
        set_filter(t, rest, e);
    } else if (str_eq(word, "sort")) {
        int s = rows_sort_parse(rest);
        if (s < 0)
            return err_set(e, ERR_USAGE, "id speedup gain operator status time.", "cannot sort by %s", rest),
                   true;
        t->rows.sort = (enum rows_sort)s;
    } else if (str_eq(word, "layout")) {
        int l = rows_layout_parse(rest);
        if (l < 0)
            return err_set(e, ERR_USAGE, "tree rank island generation.", "%s is not a layout", rest), true;
        t->rows.layout = (enum rows_layout)l;
    } else {
        return false;
    }
    t->stale = true;
    return true;
}

static void point(struct view *v, int row, int col)
{
    struct tree *t = self(v);
    (void)col;
    if (row < 1 || t->list.top + row - 1 >= (int64_t)t->rows.v.n)
        return;
    t->list.cursor = t->list.top + row - 1;
    select_cursor(t);
}

const struct view_ops view_tree = {
    .name = "tree",
    .title = "Population",
    .help = "every candidate: who came from whom, and how fast it is",
    .size = sizeof(struct tree),
    .key = ACT_VIEW_TREE,
    .open = open,
    .close = close_view,
    .draw = draw,
    .act = act,
    .changed = changed,
    .heading = heading,
    .search = search,
    .command = command,
    .point = point,
};
