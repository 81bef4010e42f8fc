// Drawing: headings, panes, the status line, the bottom line. Ten frames a second at most, none when nothing
// changed.
#include "tui/app.h"

#include "base/clock.h"
#include "base/vec.h"
#include "cmd/show_text.h"

#include <stdarg.h>
#include <string.h>

void app_say(struct app *a, enum slot weight, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    str_clear(&a->message);
    str_addv(&a->message, fmt, ap);
    va_end(ap);
    a->message_slot = weight;
    paint_soon(a);
}

static void title(struct app *a, struct view *v, struct rect r, bool focused)
{
    struct str s = {0};
    enum slot slot = focused ? SLOT_TITLE_FOCUS : SLOT_TITLE;
    canvas_fill(&a->canvas, r, SLOT_TITLE);
    str_addf(&s, " %s ", v->ops->title);
    int col = canvas_put(&a->canvas, r, 0, 1, slot, str_c(&s));
    str_clear(&s);
    if (v->ops->heading)
        v->ops->heading(v, &s);
    if (s.len) {
        int room = r.cols - col - 2, width = canvas_width(s.s, s.len);
        canvas_field(&a->canvas, r, 0, col, width < room ? width : room, false, SLOT_TITLE, s.s);
        canvas_put(&a->canvas, r, 0, col + (width < room ? width : room), SLOT_TITLE, " ");
    }
    str_free(&s);
}

static void pane(struct app *a, struct view *v, struct rect head, struct rect body, bool focused)
{
    if (!v || body.rows <= 0)
        return;
    v->ops->draw(v, &a->canvas, body, focused);
    title(a, v, head, focused); // after it: drawing is what finds out what there is
}

// What the right pane showed stays there until the cursor rests.
static void keep_old(struct app *a, struct rect r)
{
    for (int row = 0; row < r.rows; row++) {
        size_t at = (size_t)(r.row + row) * (size_t)a->canvas.cols + (size_t)r.col;
        memcpy(&a->canvas.cells[at], &a->shown.cells[at], (size_t)r.cols * sizeof *a->canvas.cells);
    }
}

static int put_time_left(struct app *a, struct rect r, int col, double left)
{
    return canvas_putf(&a->canvas, r, 0, col, SLOT_STATUS, "  %d:%02d left", (int)left / 60, (int)left % 60);
}

static const char *phase_of(const struct app *a)
{
    const struct model *m = &a->model;
    if (m->connected && m->status)
        return json_str_or(m->status, "phase", "running");
    if (m->held && !m->holder.here)
        return "runs on another host";
    if (m->connected)
        return m->st->paused ? "paused" : "running";
    if (m->st->stopped)
        return "stopped";
    return m->st->last ? "no engine" : "never run";
}

static void status_line(struct app *a, struct rect r)
{
    const struct model *m = &a->model;
    const struct candidate *c = state_champion(m->st);
    char speed[64];
    canvas_fill(&a->canvas, r, SLOT_STATUS);
    canvas_tint(&a->canvas, r, 0, SLOT_STATUS);
    int col = canvas_putf(&a->canvas, r, 0, 1, SLOT_STATUS, "%s  %s", m->st->name ? m->st->name : "session",
                          phase_of(a));
    if (m->connected && m->status && json_str_or(m->status, "doing", "")[0]) {
        col = canvas_putf(&a->canvas, r, 0, col, SLOT_STATUS, ": %s", json_str_or(m->status, "doing", ""));
        if (json_has(m->status, "id"))
            col = canvas_putf(&a->canvas, r, 0, col, SLOT_STATUS, " %lld",
                              (long long)json_int(m->status, "id", 0));
    } else if (m->held && !m->holder.here) {
        col = canvas_putf(&a->canvas, r, 0, col, SLOT_STATUS, " (%s)", m->holder.host);
    }
    if (c && c->id > 0) {
        show_speedup(speed, sizeof speed, c->speedup);
        col = canvas_putf(&a->canvas, r, 0, col, SLOT_STATUS, "  best %lld %s", (long long)c->id, speed);
    }
    double spent = m->status ? json_num(m->status, "spent_s", 0) : m->st->wall;
    if (m->st->iterations > 1)
        col =
            canvas_putf(&a->canvas, r, 0, col, SLOT_STATUS, "  %lld tried", (long long)m->st->iterations - 1);
    if (m->connected && spent > 5)
        col = canvas_putf(&a->canvas, r, 0, col, SLOT_STATUS, " %.0f/min", 60 * (double)m->st->evals / spent);
    if (m->connected && m->status && json_has(m->status, "left_s"))
        col = put_time_left(a, r, col, json_num(m->status, "left_s", 0));
    if (m->st->focus >= 0)
        col = canvas_putf(&a->canvas, r, 0, col, SLOT_STATUS, "  focus %lld", (long long)m->st->focus);
    if (m->marks.n)
        col = canvas_putf(&a->canvas, r, 0, col, SLOT_STATUS, "  %zu marked", m->marks.n);
    if (a->w->read_only)
        canvas_put(&a->canvas, r, 0, col, SLOT_STATUS, "  read-only");
}

static bool works_here(const struct app *a, const struct action_info *i)
{
    struct view *v = app_focused(a);
    if (!i->views)
        return true;
    size_t n = 0;
    char **words = str_words(i->views, &n);
    bool yes = false;
    for (size_t k = 0; k < n; k++)
        yes = yes || str_eq(words[k], v->ops->name);
    free(words);
    return yes;
}

static void bottom_line(struct app *a, struct rect r)
{
    if (a->message.len) {
        canvas_put(&a->canvas, r, 0, 1, a->message_slot, str_c(&a->message));
        return;
    }
    int col = 1;
    for (int i = 1; i < ACT_COUNT; i++) {
        char keys[80], word[40];
        if (!actions[i].main || !works_here(a, &actions[i]))
            continue;
        keymap_keys(a->keys, (enum action)i, keys, sizeof keys);
        keys[strcspn(keys, " ")] = 0;
        snprintf(word, sizeof word, "%s",
                 str_starts(actions[i].name, "view-") ? actions[i].name + 5 : actions[i].name);
        if (!keys[0] || col + (int)strlen(keys) + (int)strlen(word) + 2 > r.cols)
            continue;
        col = canvas_put(&a->canvas, r, 0, col, SLOT_STATUS_KEY, keys);
        col = canvas_put(&a->canvas, r, 0, col + 1, SLOT_DIM, word) + 2;
    }
    if (a->count)
        canvas_putf(&a->canvas, r, 0, r.cols - 6, SLOT_STRONG, "%5d", a->count);
}

static void too_small(struct app *a)
{
    struct rect all = canvas_all(&a->canvas);
    canvas_putf(&a->canvas, all, 0, 0, SLOT_WARN, "%dx%d is too small", all.cols, all.rows);
    canvas_putf(&a->canvas, all, 1, 0, SLOT_TEXT, "ksmith needs %dx%d", LAYOUT_MIN_COLS, LAYOUT_MIN_ROWS);
}

static void draw(struct app *a, int *row, int *col)
{
    struct layout *l = &a->layout;
    int rows, cols;
    term_size(&rows, &cols);
    bool same = rows == a->canvas.rows && cols == a->canvas.cols;
    struct canvas old = a->shown;
    a->shown = a->canvas;
    a->canvas = old;
    if (!same || !a->canvas.cells || old.rows != rows || old.cols != cols) {
        canvas_free(&a->canvas);
        canvas_init(&a->canvas, rows, cols, term_utf8());
    }
    canvas_fill(&a->canvas, canvas_all(&a->canvas), SLOT_TEXT);
    struct layout now = layout_make(rows, cols, a->right != NULL, a->focus_right, a->zoom);
    bool waits = a->right_waits && same && now.two && l->two && !a->focus_right;
    *l = now;
    if (l->too_small) {
        too_small(a);
        return;
    }
    pane(a, a->left, l->left_title, l->left, !a->focus_right);
    if (waits) {
        keep_old(a, l->right_title);
        keep_old(a, l->right);
    } else {
        pane(a, a->right, l->right_title, l->right, a->focus_right);
    }
    for (int r = 0; l->border >= 0 && r < l->status.row; r++)
        canvas_put(&a->canvas, canvas_all(&a->canvas), r, l->border, SLOT_BORDER,
                   canvas_glyph(&a->canvas, GLYPH_VLINE));
    status_line(a, l->status);
    if (a->prompt.kind != ENTRY_NONE) {
        *col = entry_draw(&a->prompt, &a->canvas, l->bottom);
        *row = l->bottom.row;
    } else {
        bottom_line(a, l->bottom);
    }
}

static void on_blocked(void *user)
{
    struct app *a = user;
    a->blocked_timer = 0;
    paint_now(a);
}

void paint_now(struct app *a)
{
    int row = -1, col = 0;
    if (a->leaving)
        return;
    draw(a, &row, &col);
    a->dirty = false;
    a->painted_ns = clock_ns();
    // A line that takes nothing: this frame is dropped, the next one shows what is true then.
    if (!term_paint(&a->canvas, row, col) && !a->blocked_timer)
        a->blocked_timer = loop_after(a->loop, FRAME_MS, on_blocked, a);
}

static void on_frame(void *user)
{
    struct app *a = user;
    a->frame_timer = 0;
    if (a->dirty)
        paint_now(a);
}

void paint_soon(struct app *a)
{
    a->dirty = true;
    if (a->frame_timer || a->blocked_timer || a->leaving)
        return;
    int64_t since = (clock_ns() - a->painted_ns) / 1000000;
    a->frame_timer = loop_after(a->loop, since >= FRAME_MS ? 0 : (int)(FRAME_MS - since), on_frame, a);
}
