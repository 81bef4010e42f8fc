// The command line of the workbench: view names, actions by name, the view's own words, settings, and every
// steering verb as `ksmith ctl` spells it.
#include "tui/app.h"

#include "base/io.h"
#include "cmd/fields.h"
#include "cmd/show_text.h"
#include "evolve/steer.h"

#include <stdlib.h>
#include <string.h>

typedef bool command_fn(struct app *a, const char *rest, struct err *e); // false: *e says why

static bool do_quit(struct app *a, const char *rest, struct err *e)
{
    (void)rest;
    (void)e;
    app_leave(a);
    return true;
}

static bool do_theme(struct app *a, const char *rest, struct err *e)
{
    err_list errors = {0};
    struct theme t;
    if (!*rest) {
        app_say(a, SLOT_INFO, "theme %s", a->theme.name);
        return true;
    }
    if (theme_load(&t, rest, &errors) < 0) {
        *e = errors.v[0];
        vec_free(&errors);
        return false;
    }
    vec_free(&errors);
    a->theme = t;
    term_theme(&t);
    paint_soon(a);
    return true;
}

static bool do_set(struct app *a, const char *rest, struct err *e)
{
    if (str_starts(rest, "theme="))
        return do_theme(a, rest + 6, e);
    if (str_eq(rest, "mouse=on") || str_eq(rest, "mouse=off")) {
        a->mouse = str_eq(rest, "mouse=on");
        term_mouse(a->mouse);
        return true;
    }
    return err_set(e, ERR_USAGE, "theme=NAME, mouse=on and mouse=off can be set.", "cannot set %s", rest),
           false;
}

static bool do_bind(struct app *a, const char *rest, struct err *e)
{
    char key[24], name[40];
    if (sscanf(rest, "%23s %39s", key, name) != 2)
        return err_set(e, ERR_USAGE, "As in :bind F5 remeasure.", "bind takes a key and an action"), false;
    uint32_t code = key_parse(key);
    enum action act = action_find(name);
    if (code == K_NONE)
        return err_set(e, ERR_USAGE, "As in a, C-x, F5, Up, Space, PageDown.", "%s is not a key", key), false;
    if (act == ACT_NONE && !str_eq(name, "none"))
        return err_set(e, ERR_USAGE, "ksmith-keys(7) lists them; Tab completes.", "%s is not an action",
                       name),
               false;
    keymap_bind(a->keys, code, act);
    app_say(a, SLOT_INFO, "%s is %s now", key, name);
    return true;
}

static bool do_view(struct app *a, const char *rest, struct err *e)
{
    for (int i = 0; i < VIEWS; i++)
        if (str_eq(app_views[i]->name, rest)) {
            app_act(a, app_views[i]->key, 0);
            return true;
        }
    return err_set(e, ERR_USAGE, "tree detail diff lineage archive progress funnel workers log help.",
                   "%s is not a view", rest),
           false;
}

static bool do_save(struct app *a, const char *rest, struct err *e)
{
    struct str s = {0};
    if (!*rest)
        return err_set(e, ERR_USAGE, "As in :save-display screen.txt.", "save-display takes a file"), false;
    canvas_text(&a->canvas, &s);
    int r = io_write_file(rest, str_c(&s), s.len, 0600, e);
    str_free(&s);
    if (r == 0)
        app_say(a, SLOT_INFO, "the screen was written to %s", rest);
    return r == 0;
}

static bool do_select(struct app *a, const char *rest, struct err *e)
{
    const struct candidate *c = show_find(a->model.st, rest, e);
    if (!c)
        return false;
    a->host.select(&a->host, c->id);
    return true;
}

static bool do_run(struct app *a, const char *rest, struct err *e)
{
    (void)rest;
    if (a->model.connected)
        return err_set(e, ERR_USAGE, "", "the engine runs already"), false;
    if (a->w->read_only || !a->w->search)
        return err_set(e, ERR_USAGE, "`ksmith run` starts it.", "this workbench cannot start the search"),
               false;
    if (a->w->search(a->model.session.dir, e) < 0)
        return false;
    link_open(a);
    app_say(a, SLOT_INFO, "the search goes on");
    return true;
}

static bool do_add(struct app *a, const char *rest, struct err *e)
{
    char path[512];
    int used = 0;
    struct str text = {0};
    if (sscanf(rest, "%511s%n", path, &used) != 1)
        return err_set(e, ERR_USAGE, "As in :add mine.c 42.", "add takes a kernel file"), false;
    if (io_read_file(path, 4 << 20, &text, e) < 0)
        return false;
    json *o = json_object();
    json_put_strn(o, "text", text.s, text.len);
    str_free(&text);
    char *cmd = xasprintf("add - %s", rest + used);
    link_send(a, cmd, o, NULL, NULL);
    free(cmd);
    return true;
}

static const struct {
    const char *name, *help;
    command_fn *fn;
} commands[] = {
    {"q", "leave; the search goes on", do_quit},
    {"quit", "leave; the search goes on", do_quit},
    {"run", "start or continue the search", do_run},
    {"select", "ID, champion, baseline or a commit: select that candidate", do_select},
    {"view", "NAME: open a view", do_view},
    {"theme", "NAME: another theme", do_theme},
    {"set", "theme=NAME, mouse=on|off", do_set},
    {"bind", "KEY ACTION: a key for this session", do_bind},
    {"save-display", "FILE: what the screen shows, as text", do_save},
    {"add", "FILE [PARENT]: bring in a kernel by hand", do_add},
};

// A view's own command goes to the focused view first, then to any view that knows it.
static bool view_command(struct app *a, const char *word, const char *rest, struct err *e)
{
    struct view *first = app_focused(a);
    if (first->ops->command && first->ops->command(first, word, rest, e))
        return true;
    for (int i = 0; i < VIEWS && !e->kind; i++) {
        struct view *v = a->views[i];
        if (v && v != first && v->ops->command && v->ops->command(v, word, rest, e))
            return true;
    }
    return e->kind != ERR_NONE;
}

static bool steer_needs_id(const struct steer_verb *v, const char *rest)
{
    return v->what == STEER_ID &&
           (!*rest || (!strchr("0123456789#", *rest) && !str_starts(rest, "champion") &&
                       !str_starts(rest, "baseline")));
}

static void unknown(struct app *a, const char *word)
{
    VEC(const char *) names = {0};
    for (size_t i = 0; i < countof(commands); i++)
        vec_push(&names, commands[i].name);
    for (size_t i = 0; i < steer_verbs_n; i++)
        vec_push(&names, steer_verbs[i].name);
    for (int i = 1; i < ACT_COUNT; i++)
        vec_push(&names, actions[i].name);
    const char *near = str_nearest(word, names.v, names.n);
    app_say(a, SLOT_ERROR, "%s is not a command%s%s%s", word, near ? "; did you mean " : "", near ? near : "",
            near ? "?" : "; Tab completes, ? helps");
    vec_free(&names);
}

static void command_run_select(struct app *a, const char *word)
{
    struct err e = {0};
    if (!do_select(a, word, &e))
        app_say(a, SLOT_ERROR, "%s  %s", e.msg, e.hint);
}

void command_run(struct app *a, const char *line)
{
    char word[64];
    int used = 0;
    struct err e = {0};
    while (*line == ' ' || *line == ':')
        line++;
    if (!*line)
        return;
    if (sscanf(line, "%63s%n", word, &used) != 1)
        return;
    if (word[strspn(word, "0123456789")] == 0) { // :42 goes to candidate 42
        command_run_select(a, word);
        return;
    }
    const char *rest = line + used + strspn(line + used, " ");
    for (size_t i = 0; i < countof(commands); i++)
        if (str_eq(commands[i].name, word)) {
            if (!commands[i].fn(a, rest, &e))
                app_say(a, SLOT_ERROR, "%s%s%s  %s", e.where, e.where[0] ? ": " : "", e.msg, e.hint);
            return;
        }
    if (view_command(a, word, rest, &e)) {
        if (e.kind)
            app_say(a, SLOT_ERROR, "%s  %s", e.msg, e.hint);
        paint_soon(a);
        return;
    }
    const struct steer_verb *v = steer_find(word);
    enum action act = action_find(word);
    if (v && steer_needs_id(v, rest) && a->model.selected >= 0) {
        // Without a number it means the selected one, as its key does.
        char *cmd = xasprintf("%s %lld%s%s", word, (long long)a->model.selected, *rest ? " " : "", rest);
        link_send(a, cmd, NULL, NULL, NULL);
        free(cmd);
    } else if (v) {
        link_send(a, line, NULL, NULL, NULL);
    } else if (act != ACT_NONE) {
        app_act(a, act, (int)strtol(rest, NULL, 10));
    } else {
        unknown(a, word);
    }
}

// ---- completion

static void offer(word_list *out, const char *word, const char *name)
{
    if (!str_starts(name, word))
        return;
    for (size_t i = 0; i < out->n; i++)
        if (str_eq(out->v[i], name))
            return;
    vec_push(out, xstrdup(name));
}

static void offer_themes(const char *word, word_list *out)
{
    char **names = theme_list();
    for (size_t i = 0; names && names[i]; i++) {
        offer(out, word, names[i]);
        free(names[i]);
    }
    free(names);
}

static void offer_fields(const char *word, word_list *out)
{
    for (int i = 0; i < cand_fields_n; i++)
        offer(out, word, cand_fields[i].name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void command_complete(void *user, const char *before, const char *word, word_list *out)
{
    struct app *a = user;
    if (a->prompt.kind == ENTRY_FILTER || str_starts(before, "filter ") || str_starts(before, "sort ")) {
        offer_fields(word, out);
    } else if (!*before) {
        for (size_t i = 0; i < countof(commands); i++)
            offer(out, word, commands[i].name);
        for (size_t i = 0; i < steer_verbs_n; i++)
            offer(out, word, steer_verbs[i].name);
        for (int i = 1; i < ACT_COUNT; i++)
            offer(out, word, actions[i].name);
    } else if (str_starts(before, "theme ")) {
        offer_themes(word, out);
    } else if (str_starts(before, "view ")) {
        for (int i = 0; i < VIEWS; i++)
            offer(out, word, app_views[i]->name);
    } else if (str_starts(before, "bind ") && strchr(before + 5, ' ')) {
        for (int i = 1; i < ACT_COUNT; i++)
            offer(out, word, actions[i].name);
    } else {
        offer(out, word, "champion");
        offer(out, word, "baseline");
    }
    if (out->n)
        qsort(out->v, out->n, sizeof *out->v, by_name);
}
