// Life of the workbench: opening, keys, views, leaving.
#include "tui/app.h"

#include "base/clock.h"
#include "base/vec.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { PASTE_MAX = 1 << 20, PASTE_MS = 500, AGES_MS = 60000 };

const struct view_ops *const app_views[VIEWS] = {&view_tree,    &view_detail,   &view_diff,   &view_lineage,
                                                 &view_archive, &view_progress, &view_funnel, &view_workers,
                                                 &view_log,     &view_help};

// ---- views

struct view *app_focused(const struct app *a)
{
    return a->focus_right && a->right ? a->right : a->left;
}

static bool opens_right(const struct view_ops *ops)
{
    return ops == &view_detail || ops == &view_diff || ops == &view_progress || ops == &view_help;
}

static struct view *view_of(struct app *a, const struct view_ops *ops)
{
    for (int i = 0; i < VIEWS; i++) {
        if (app_views[i] != ops)
            continue;
        if (!a->views[i]) {
            struct view *v = xcalloc(1, ops->size);
            v->ops = ops;
            v->host = &a->host;
            a->views[i] = v;
            if (ops->open)
                ops->open(v);
        }
        return a->views[i];
    }
    return NULL;
}

void app_open_view(struct app *a, const struct view_ops *ops, bool left)
{
    struct view *v = view_of(a, ops);
    if (left)
        a->left = v;
    else
        a->right = v;
    a->focus_right = !left;
    a->right_waits = false;
    paint_soon(a);
}

static void on_follow(void *user)
{
    struct app *a = user;
    a->follow_timer = 0;
    a->right_waits = false;
    paint_soon(a);
}

void app_changed(struct app *a, unsigned what)
{
    for (int i = 0; i < VIEWS; i++)
        if (a->views[i] && a->views[i]->ops->changed)
            a->views[i]->ops->changed(a->views[i], what);
    if ((what & MODEL_SELECTION) && a->layout.two && !a->focus_right) {
        a->right_waits = true;
        if (a->follow_timer)
            loop_cancel(a->loop, a->follow_timer);
        a->follow_timer = loop_after(a->loop, FOLLOW_MS, on_follow, a);
    }
    paint_soon(a);
}

// ---- what views may ask for

static void host_select(struct host *h, int64_t id)
{
    struct app *a = h->app;
    if (a->model.selected == id)
        return;
    a->model.selected = id;
    app_changed(a, MODEL_SELECTION);
}

static void host_show(struct host *h, const char *name)
{
    struct app *a = h->app;
    for (int i = 0; i < VIEWS; i++)
        if (str_eq(app_views[i]->name, name))
            app_open_view(a, app_views[i], !opens_right(app_views[i]));
}

static void host_say(struct host *h, enum slot weight, const char *fmt, ...)
{
    struct str s = {0};
    va_list ap;
    va_start(ap, fmt);
    str_addv(&s, fmt, ap);
    va_end(ap);
    app_say(h->app, weight, "%s", str_c(&s));
    str_free(&s);
}

static void host_command(struct host *h, const char *line)
{
    command_run(h->app, line);
}

static void host_yank(struct host *h, const char *what, const char *text)
{
    if (term_copy(text, strlen(text)))
        app_say(h->app, SLOT_INFO,
                "%s was sent to the terminal's clipboard (OSC 52; some terminals ignore it)", what);
    else
        app_say(h->app, SLOT_ERROR,
                "%s is too long for a terminal's clipboard; `ksmith show ID --source` prints it", what);
}

// ---- prompts

void app_prompt(struct app *a, enum entry_kind kind, const char *text,
                void (*done)(struct app *, const char *), const char *label, ...)
{
    struct str s = {0};
    va_list ap;
    va_start(ap, label);
    str_addv(&s, label, ap);
    va_end(ap);
    a->prompt.complete = kind == ENTRY_COMMAND || kind == ENTRY_FILTER ? command_complete : NULL;
    a->prompt.user = a;
    entry_begin(&a->prompt, kind, str_c(&s), text);
    a->prompt_done = done;
    str_free(&s);
    paint_soon(a);
}

static void search(struct app *a, bool back, bool again)
{
    struct view *v = app_focused(a);
    if (!a->search || !*a->search)
        app_say(a, SLOT_INFO, "nothing was searched for yet: / searches");
    else if (!v->ops->search)
        app_say(a, SLOT_INFO, "this view has nothing to search");
    else if (!v->ops->search(v, a->search, back, again))
        app_say(a, SLOT_WARN, "not found: %s", a->search);
    paint_soon(a);
}

static void done_search(struct app *a, const char *text)
{
    if (*text) {
        free(a->search);
        a->search = xstrdup(text);
    }
    search(a, false, false);
}

static void done_filter(struct app *a, const char *text)
{
    char *cmd = xasprintf("filter %s", text);
    command_run(a, cmd);
    free(cmd);
}

// ---- actions

void app_leave(struct app *a)
{
    a->leaving = true;
    loop_stop(a->loop);
}

static void back(struct app *a, bool may_leave)
{
    if (a->zoom)
        a->zoom = false;
    else if (a->focus_right && a->right && a->layout.two)
        a->focus_right = false;
    else if (a->focus_right && a->right) {
        a->right = NULL;
        a->focus_right = false;
    } else if (a->left != a->views[0])
        app_open_view(a, &view_tree, true);
    else if (a->right && a->layout.two)
        a->right = NULL;
    else if (may_leave)
        app_leave(a);
    paint_soon(a);
}

static void next_theme(struct app *a)
{
    char **names = theme_list();
    size_t n = 0, at = 0;
    for (; names && names[n]; n++)
        if (str_eq(names[n], a->theme.name))
            at = n + 1;
    if (n) {
        char *cmd = xasprintf("theme %s", names[at % n]);
        command_run(a, cmd);
        app_say(a, SLOT_INFO, "%s", cmd);
        free(cmd);
    }
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

static bool open_view_of(struct app *a, enum action act)
{
    for (int i = 0; i < VIEWS; i++)
        if (app_views[i]->key == act) {
            app_open_view(a, app_views[i], !opens_right(app_views[i]));
            return true;
        }
    return false;
}

static void select_champion(struct app *a)
{
    const struct candidate *c = state_champion(a->model.st);
    if (c)
        host_select(&a->host, c->id);
}

static void mark(struct app *a)
{
    int64_t id = a->model.selected;
    if (id < 0)
        return;
    model_mark(&a->model, id, !model_marked(&a->model, id));
    app_changed(a, MODEL_MARKS);
    struct view *v = app_focused(a);
    v->ops->act(v, ACT_DOWN, 0);
}

// Machine code comes from `ksmith asm`, which compiles it the way the referee does; the pager shows it.
static void show_assembly(struct app *a)
{
    char exe[4096], id[24];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0 || a->model.selected < 0)
        return;
    exe[n] = 0;
    snprintf(id, sizeof id, "%lld", (long long)a->model.selected);
    const char *argv[] = {"sh", "-c", "\"$1\" asm \"$2\" \"$3\" 2>&1 | ${PAGER:-less}",
                          "sh", exe,  a->model.session.dir,
                          id,   NULL};
    int status = term_run(argv);
    if (status)
        app_say(a, SLOT_ERROR, "the pager ended with status %d; `ksmith asm %s` prints it too", status, id);
}

static bool program_act(struct app *a, enum action act)
{
    switch (act) {
    case ACT_BACK:
        return back(a, true), true;
    case ACT_CLOSE:
        return back(a, false), true;
    case ACT_QUIT:
    case ACT_QUIT_ALL:
        return app_leave(a), true;
    case ACT_COMMAND:
        return app_prompt(a, ENTRY_COMMAND, NULL, command_run, ":"), true;
    case ACT_SEARCH:
        return app_prompt(a, ENTRY_SEARCH, NULL, done_search, "/"), true;
    case ACT_SEARCH_NEXT:
        return search(a, false, true), true;
    case ACT_SEARCH_PREVIOUS:
        return search(a, true, true), true;
    case ACT_FILTER:
        return app_prompt(a, ENTRY_FILTER, NULL, done_filter, "show only: "), true;
    case ACT_CHAMPION:
        return select_champion(a), true;
    case ACT_FOCUS_NEXT:
        a->focus_right = !a->focus_right && a->right;
        return true;
    case ACT_ZOOM:
        a->zoom = !a->zoom;
        return true;
    case ACT_MARK:
        return mark(a), true;
    case ACT_UNMARK:
        vec_free(&a->model.marks);
        return app_changed(a, MODEL_MARKS), true;
    case ACT_THEME:
        return next_theme(a), true;
    case ACT_MOUSE:
        a->mouse = !a->mouse;
        term_mouse(a->mouse);
        app_say(a, SLOT_INFO, a->mouse ? "mouse on: hold Shift to select text" : "mouse off");
        return true;
    case ACT_ASSEMBLY:
        return show_assembly(a), true;
    case ACT_REDRAW:
        return term_redraw(), true;
    case ACT_SUSPEND:
        return term_suspend(), true;
    default:
        return open_view_of(a, act);
    }
}

void app_act(struct app *a, enum action act, int count)
{
    struct view *v = app_focused(a);
    if (act == ACT_NONE)
        return;
    if (v->ops->act && v->ops->act(v, act, count))
        return;
    if (!program_act(a, act) && !steering_act(a, act, count) && actions[act].views)
        app_say(a, SLOT_INFO, "%s works in: %s", actions[act].name, actions[act].views);
}

// ---- keys

static void prompt_typed(struct app *a, const struct key *k)
{
    enum entry_result r = entry_key(&a->prompt, k);
    if (r == ENTRY_GOES_ON)
        return;
    char *text = xstrdup(str_c(&a->prompt.text));
    void (*done)(struct app *, const char *) = a->prompt_done;
    bool confirm = a->prompt.kind == ENTRY_CONFIRM;
    entry_end(&a->prompt);
    if (r == ENTRY_DONE)
        done(a, text);
    else if (confirm)
        app_say(a, SLOT_INFO, "nothing was done");
    free(text);
}

static void pasted(struct app *a)
{
    a->pasting = false;
    if (a->prompt.kind != ENTRY_NONE)
        entry_paste(&a->prompt, str_c(&a->paste), a->paste.len);
    else
        app_say(a, SLOT_INFO, "pasted text is not taken as keys; : opens the command line");
    str_clear(&a->paste);
}

static void on_paste_end(void *user)
{
    struct app *a = user;
    if (a->pasting)
        pasted(a);
    paint_now(a);
}

static bool paste_key(struct app *a, const struct key *k)
{
    if (k->code == K_PASTE_BEGIN) {
        a->pasting = true;
        loop_after(a->loop, PASTE_MS, on_paste_end, a); // an end that never comes
        return true;
    }
    if (!a->pasting)
        return false;
    if (k->code == K_PASTE_END || a->paste.len > PASTE_MAX)
        pasted(a);
    else if (k->code == K_ENTER || k->code == K_TAB)
        str_addc(&a->paste, ' ');
    else if (k->code >= ' ' && k->code < 0x80)
        str_addc(&a->paste, (char)k->code);
    else if (k->code < 0x110000) {
        char utf8[8];
        int n = snprintf(utf8, sizeof utf8, "%lc", (wint_t)k->code);
        if (n > 0)
            str_addn(&a->paste, utf8, (size_t)n);
    }
    return true;
}

static bool inside(struct rect r, const struct key *k)
{
    return k->row >= r.row && k->row < r.row + r.rows && k->col >= r.col && k->col < r.col + r.cols;
}

static void mouse_key(struct app *a, const struct key *k)
{
    bool right = inside(a->layout.right, k);
    if (!right && !inside(a->layout.left, k))
        return;
    struct rect r = right ? a->layout.right : a->layout.left;
    struct view *v = right ? a->right : a->left;
    if (k->wheel) {
        for (int i = 0; i < 3; i++)
            v->ops->act(v, k->wheel < 0 ? ACT_UP : ACT_DOWN, 0);
        return;
    }
    a->focus_right = right;
    if (v->ops->point)
        v->ops->point(v, k->row - r.row, k->col - r.col);
}

static void typed(struct app *a, const struct key *k)
{
    if (k->code == K_NONE || k->code == K_RESIZE || paste_key(a, k))
        return;
    if (a->prompt.kind != ENTRY_NONE) {
        prompt_typed(a, k);
        return;
    }
    str_clear(&a->message);
    if (k->code == K_MOUSE) {
        mouse_key(a, k);
        return;
    }
    if (k->code == 3) {
        app_say(a, SLOT_INFO, "q or Q leaves (the search goes on); P pauses it; :stop ends it");
        return;
    }
    bool digit = k->code >= '0' && k->code <= '9';
    enum action act = keymap_find(a->keys, k->code);
    // A digit is a view's number unless a count was begun with another key of the row: 0 begins one.
    if (digit && (a->count || k->code == '0' || act == ACT_NONE)) {
        a->count = a->count < 100000 ? (a->count > 0 ? a->count : 0) * 10 + (int)(k->code - '0') : a->count;
        a->counting = true;
        return;
    }
    int count = a->count;
    a->count = 0;
    a->counting = false;
    if (act == ACT_NONE)
        app_say(a, SLOT_INFO, "that key does nothing here; ? lists those that do");
    else
        app_act(a, act, count);
}

static void on_keys(void *user, int fd, short revents)
{
    struct app *a = user;
    struct key k;
    bool any = false;
    if (!(revents & POLLIN) && (revents & (POLLHUP | POLLERR | POLLNVAL))) {
        app_leave(a);
        return;
    }
    while (!a->leaving && term_key(&k)) {
        typed(a, &k);
        any = true;
    }
    if (!any) { // readable and yet nothing: the terminal is gone
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)))
            app_leave(a);
    }
    if (any && !a->leaving)
        paint_now(a);
}

static void on_signal(void *user, int signal)
{
    struct app *a = user;
    if (signal == SIGWINCH) {
        term_resized();
        a->right_waits = false;
        paint_soon(a);
    } else if (signal == SIGCONT) {
        term_redraw();
        paint_soon(a);
    } else {
        app_leave(a);
    }
}

// ---- life

static int open_all(struct app *a, struct err *e)
{
    static const int signals[] = {SIGWINCH, SIGHUP, SIGTERM, SIGINT, SIGQUIT, SIGCONT, 0};
    const char *notice = NULL;
    struct term_options o = {a->w->color, false, a->w->ascii};
    if (model_open(&a->model, a->w->dir, e) < 0)
        return -1;
    a->socket = session_socket(a->model.session.dir, e);
    if (!a->socket || term_open(&o, &notice, e) < 0)
        return -1;
    a->loop = loop_new();
    loop_signals(a->loop, signals, on_signal, a);
    loop_watch(a->loop, term_fd(), POLLIN, on_keys, a);
    a->keys = keymap_new();
    a->host = (struct host){.model = &a->model,
                            .app = a,
                            .keys = a->keys,
                            .select = host_select,
                            .show = host_show,
                            .say = host_say,
                            .command = host_command,
                            .yank = host_yank};
    theme_default(&a->theme);
    if (a->w->theme) {
        char *cmd = xasprintf("theme %s", a->w->theme);
        command_run(a, cmd);
        free(cmd);
    }
    app_open_view(a, &view_tree, true);
    a->right = view_of(a, &view_detail);
    link_watch(a);
    link_open(a);
    if (notice)
        app_say(a, SLOT_WARN, "%s", notice);
    else if (!a->model.connected && !a->model.st->stopped && a->model.st->last && !a->w->read_only &&
             !a->model.held)
        app_say(a, SLOT_WARN,
                "the engine of this session ended without a word; :run goes on from its journal");
    return 0;
}

static void close_all(struct app *a)
{
    link_close(a);
    term_close();
    for (int i = 0; i < VIEWS; i++)
        if (a->views[i]) {
            if (a->views[i]->ops->close)
                a->views[i]->ops->close(a->views[i]);
            free(a->views[i]);
        }
    loop_free(a->loop);
    keymap_free(a->keys);
    entry_free(&a->prompt);
    canvas_free(&a->canvas);
    canvas_free(&a->shown);
    str_free(&a->message);
    str_free(&a->paste);
    free(a->search);
    free(a->socket);
    model_close(&a->model);
}

int workbench_run(const struct workbench *w)
{
    struct app a = {.w = w, .notify = -1};
    struct err e = {0};
    int status = 0;
    if (open_all(&a, &e) < 0) {
        term_close();
        err_print(&e, stderr);
        status = err_status(&e);
    } else {
        paint_now(&a);
        loop_run(a.loop);
        status = a.status;
    }
    bool connected = a.model.connected;
    close_all(&a);
    if (a.fatal.kind)
        err_print(&a.fatal, stderr);
    else if (connected && isatty(STDOUT_FILENO))
        puts("The search goes on; `ksmith attach` comes back to it, `ksmith ctl stop` ends it.");
    return status;
}

// ---- tables in print

int workbench_keys(void)
{
    const char *group = "";
    for (int i = 1; i < ACT_COUNT; i++) {
        if (!str_eq(group, actions[i].group))
            printf("%s%s\n", i > 1 ? "\n" : "", group = actions[i].group);
        printf("  %-18s %-18s %s%s%s%s\n", actions[i].keys, actions[i].name, actions[i].help,
               actions[i].views ? " [" : "", actions[i].views ? actions[i].views : "",
               actions[i].views ? "]" : "");
    }
    return 0;
}

int workbench_theme(const char *name)
{
    err_list errors = {0};
    struct theme t;
    int status = 0;
    if (theme_load(&t, name ? name : "default", &errors) == 0) {
        theme_print(&t, stdout);
    } else {
        for (size_t i = 0; i < errors.n; i++)
            err_print(&errors.v[i], stderr);
        status = ERR_USAGE;
    }
    vec_free(&errors);
    return status;
}
