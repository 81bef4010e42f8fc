// The log: what happened, a line each, read from the journal where it is looked at. Places of lines are found
// by a scan that parses nothing, so a long journal opens at once.
#include "base/io.h"
#include "cmd/event_text.h"
#include "tui/list.h"
#include "tui/match.h"
#include "tui/view.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, HEAD = 160, CACHE = 512 };

struct told { // a line made into words
    int64_t at;
    char *text;
    double t;
    int64_t id;
    char ev[12];
};
struct log_view {
    struct view view;
    VEC(int64_t) at; // places of the lines that are told
    int64_t scanned; // bytes of the journal that were looked through
    struct list list;
    struct told cache[CACHE];
    bool unfollowed;
    char *kind; // only events of this kind; NULL: all
};

static struct log_view *self(struct view *v)
{
    return (struct log_view *)v;
}

// The event's name in the head of a line, which the journal writes near its start.
static bool wanted(const struct log_view *l, const char *line, size_t n)
{
    const char *ev = memmem(line, n < HEAD ? n : HEAD, "\"ev\":\"", 6);
    if (!ev)
        return false;
    ev += 6;
    const char *end = memchr(ev, '"', (size_t)(line + n - ev));
    if (!end || !event_is_told(ev, (size_t)(end - ev)))
        return false;
    return !l->kind || (strlen(l->kind) == (size_t)(end - ev) && memcmp(l->kind, ev, strlen(l->kind)) == 0);
}

static void scan(struct log_view *l)
{
    const struct model *m = l->view.host->model;
    if (l->scanned >= m->st->offset)
        return;
    int fd = open(m->session.journal_path, O_RDONLY | O_CLOEXEC);
    char *buf = xmalloc(CHUNK);
    int64_t end = m->st->offset; // what the fold has, not more
    while (fd >= 0 && l->scanned < end) {
        int64_t want = end - l->scanned < CHUNK ? end - l->scanned : CHUNK;
        ssize_t n = pread(fd, buf, (size_t)want, l->scanned);
        size_t used = 0;
        if (n <= 0)
            break;
        for (char *nl; (nl = memchr(buf + used, '\n', (size_t)n - used)); used = (size_t)(nl - buf) + 1)
            if (wanted(l, buf + used, (size_t)(nl - (buf + used))))
                vec_push(&l->at, l->scanned + (int64_t)used);
        l->scanned += used ? (int64_t)used : n; // a line longer than a chunk is none of ours
    }
    free(buf);
    if (fd >= 0)
        close(fd);
}

static const struct told *tell(struct log_view *l, int64_t row)
{
    const struct model *m = l->view.host->model;
    struct told *t = &l->cache[row % CACHE];
    if (t->text && t->at == l->at.v[row])
        return t;
    json *line = model_line(m, l->at.v[row]);
    struct str text = {0};
    if (line)
        event_text(m->st, line, &text);
    free(t->text);
    *t = (struct told){
        .at = l->at.v[row], .t = json_num(line, "t", 0) - m->st->started, .id = json_int(line, "id", -1)};
    if (t->id < 0)
        t->id = json_int(json_get(line, "args"), "id", -1);
    snprintf(t->ev, sizeof t->ev, "%s", json_str_or(line, "ev", ""));
    t->text = text.s ? str_steal(&text) : xstrdup("");
    json_free(line);
    return t;
}

static void drop(struct log_view *l)
{
    for (int i = 0; i < CACHE; i++) {
        free(l->cache[i].text);
        l->cache[i] = (struct told){0};
    }
}

static enum slot slot_of(const struct told *t)
{
    return str_eq(t->ev, "accept")  ? SLOT_ACCEPTED
           : str_eq(t->ev, "steer") ? SLOT_OP
           : str_eq(t->ev, "stop")  ? SLOT_STRONG
           : str_eq(t->ev, "note")  ? SLOT_WARN
                                    : SLOT_TEXT;
}

static void draw(struct view *v, struct canvas *c, struct rect r, bool focused)
{
    struct log_view *l = self(v);
    scan(l);
    if (!l->unfollowed)
        l->list.cursor = (int64_t)l->at.n - 1;
    list_fit(&l->list, (int64_t)l->at.n, r.rows);
    if (!l->at.n)
        canvas_put(c, r, 1, 1, SLOT_DIM,
                   l->kind ? "No such event; :kind shows all." : "Nothing happened yet.");
    for (int i = 0; i < r.rows && l->list.top + i < (int64_t)l->at.n; i++) {
        const struct told *t = tell(l, l->list.top + i);
        canvas_putf(c, r, i, 0, SLOT_DIM, "%8.1fs ", t->t);
        struct rect text = {r.row, r.col + 10, r.rows, r.cols - 10};
        canvas_put(c, text, i, -l->list.left, slot_of(t), t->text);
        if (l->list.top + i == l->list.cursor)
            canvas_tint(c, r, i, focused ? SLOT_CURSOR : SLOT_CURSOR_BLUR);
    }
}

static bool act(struct view *v, enum action a, int count)
{
    struct log_view *l = self(v);
    bool here = l->list.cursor >= 0 && l->list.cursor < (int64_t)l->at.n;
    if (a == ACT_FOLLOW) {
        l->unfollowed = !l->unfollowed;
        return true;
    }
    if (a == ACT_ENTER && here) {
        const struct told *t = tell(l, l->list.cursor);
        if (t->id >= 0) {
            v->host->select(v->host, t->id);
            v->host->show(v->host, "detail");
        }
        return true;
    }
    if (a == ACT_YANK && here)
        return v->host->yank(v->host, "the line", tell(l, l->list.cursor)->text), true;
    if (!list_act(&l->list, a, count))
        return false;
    if (a != ACT_LEFT && a != ACT_RIGHT)
        l->unfollowed = l->list.cursor + 1 < (int64_t)l->at.n;
    return true;
}

static bool search(struct view *v, const char *text, bool back, bool again)
{
    struct log_view *l = self(v);
    int64_t n = (int64_t)l->at.n;
    for (int64_t i = again ? 1 : 0; i < n + (again ? 1 : 0); i++) {
        int64_t row = ((back ? l->list.cursor - i : l->list.cursor + i) % n + n) % n;
        if (!match_in(tell(l, row)->text, text))
            continue;
        l->list.cursor = row;
        l->unfollowed = true;
        return true;
    }
    return false;
}

static bool command(struct view *v, const char *word, const char *rest, struct err *e)
{
    struct log_view *l = self(v);
    if (!str_eq(word, "kind"))
        return false;
    if (*rest && !event_is_told(rest, strlen(rest)))
        return err_set(e, ERR_USAGE, "verdict accept steer note worker preflight pause resume stop.",
                       "there is no event %s", rest),
               true;
    free(l->kind);
    l->kind = *rest ? xstrdup(rest) : NULL;
    l->at.n = 0;
    l->scanned = 0;
    return true;
}

static void changed(struct view *v, unsigned what)
{
    if (what & MODEL_JOURNAL) // numbers of candidates may have changed
        drop(self(v));
}

static void heading(struct view *v, struct str *out)
{
    struct log_view *l = self(v);
    str_addf(out, "%zu lines  ", l->at.n);
    if (l->kind)
        str_addf(out, "only %s  ", l->kind);
    if (l->unfollowed)
        str_add(out, "F follows  ");
}

static void close_view(struct view *v)
{
    struct log_view *l = self(v);
    drop(l);
    vec_free(&l->at);
    free(l->kind);
}

const struct view_ops view_log = {
    .name = "log",
    .title = "Log",
    .help = "what happened",
    .size = sizeof(struct log_view),
    .key = ACT_VIEW_LOG,
    .close = close_view,
    .draw = draw,
    .act = act,
    .changed = changed,
    .heading = heading,
    .search = search,
    .command = command,
};
