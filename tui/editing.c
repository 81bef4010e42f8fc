// Editing a candidate in the engineer's own editor. The text lies in the session's folder while it is edited
// and until the engine has taken it, so that a lost line loses nothing.
#include "tui/app.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/proc.h"
#include "source/merge.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SUSPICIOUS_MS = 300, KERNEL_MAX = 4 << 20 };

struct edit {
    char *path;
    int64_t parent, second; // second -1: not a cross
};

static const char *extension(const struct app *a)
{
    const char *file = a->model.st->files.n ? a->model.st->files.v[0].path : "kernel.c",
               *dot = strrchr(file, '.');
    return dot && !strchr(dot, '/') ? dot : ".c";
}

static char *place(struct app *a, int64_t id, struct err *e)
{
    char *dir = io_join(a->model.session.ksmith, "edit");
    if (mkdir(dir, 0700) < 0 && access(dir, W_OK) < 0) {
        err_sys(e, "The session's folder must be writable to edit in it.", "cannot make %s", dir);
        free(dir);
        return NULL;
    }
    char *name = xasprintf("%lld-%lld%s", (long long)id, (long long)time(NULL), extension(a));
    char *path = io_join(dir, name);
    free(name);
    free(dir);
    return path;
}

static const char *editor(void)
{
    const char *names[] = {getenv("KSMITH_EDITOR"), getenv("VISUAL"), getenv("EDITOR")};
    for (size_t i = 0; i < countof(names); i++)
        if (names[i] && *names[i])
            return names[i];
    return "vi";
}

static int open_editor(const char *path)
{
    char *script = xasprintf("%s \"$@\"", editor()); // as git does: the variable may hold arguments
    const char *argv[] = {"sh", "-c", script, editor(), path, NULL};
    int status = term_run(argv);
    free(script);
    return status;
}

static void free_edit(struct edit *d)
{
    free(d->path);
    free(d);
}

static void taken(struct app *a, void *user, const json *answer)
{
    struct edit *d = user;
    if (json_bool(answer, "ok", false)) {
        unlink(d->path);
        app_say(a, SLOT_INFO, "%s", json_str_or(answer, "msg", "taken"));
    } else {
        app_say(a, SLOT_ERROR, "%s  Your text is kept in %s", json_str_or(answer, "msg", "refused"), d->path);
    }
    free_edit(d);
}

static bool has_markers(const char *s)
{
    for (const char *p = s; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
        if (str_starts(p, "<<<<<<< ") || str_starts(p, ">>>>>>> "))
            return true;
    return false;
}

// Hands what was written to the engine, as a child of what was edited.
static void hand_in(struct app *a, struct edit *d, const char *before)
{
    struct str text = {0};
    struct err e = {0};
    if (io_read_file(d->path, KERNEL_MAX, &text, &e) < 0) {
        app_say(a, SLOT_ERROR, "%s", e.msg);
    } else if (str_eq(str_c(&text), before)) {
        app_say(a, SLOT_INFO, "nothing was changed");
        unlink(d->path);
    } else if (has_markers(str_c(&text))) {
        app_say(a, SLOT_ERROR, "conflict markers are left: nothing was handed in; your text is kept in %s",
                d->path);
    } else {
        json *o = json_object();
        json_put_strn(o, "text", text.s, text.len);
        char *cmd = d->second >= 0 ? xasprintf("add - %lld %lld", (long long)d->parent, (long long)d->second)
                                   : xasprintf("add - %lld", (long long)d->parent);
        if (d->second >= 0) {
            char *subject =
                xasprintf("%lld crossed with %lld by hand", (long long)d->parent, (long long)d->second);
            json_put_str(o, "subject", subject);
            free(subject);
        }
        app_say(a, SLOT_INFO, "handing it in; until the engine has it, it lies in %s", d->path);
        link_send(a, cmd, o, taken, d);
        free(cmd);
        str_free(&text);
        return;
    }
    str_free(&text);
    free_edit(d);
}

static struct edit *waiting; // an editor that returned at once
static char *waiting_before;

static void came_back(struct app *a, const char *text)
{
    (void)text;
    struct edit *d = waiting;
    char *before = waiting_before;
    waiting = NULL;
    waiting_before = NULL;
    hand_in(a, d, before);
    free(before);
}

static void edit_text(struct app *a, struct edit *d, const char *text, size_t n)
{
    struct err e = {0};
    struct str now = {0};
    if (!d->path || io_write_file(d->path, text, n, 0600, &e) < 0) {
        app_say(a, SLOT_ERROR, "%s  %s", e.msg, e.hint);
        free_edit(d);
        return;
    }
    char *before = xstrdup(text);
    int64_t start = clock_ns();
    int status = open_editor(d->path);
    bool quick = clock_ns() - start < (int64_t)SUSPICIOUS_MS * 1000000;
    bool same = io_read_file(d->path, KERNEL_MAX, &now, NULL) == 0 && str_eq(str_c(&now), before);
    str_free(&now);
    app_changed(a, MODEL_SELECTION);
    if (status != 0) {
        app_say(a, SLOT_ERROR, "%s ended with status %d: nothing was handed in; the text is in %s", editor(),
                status, d->path);
        free_edit(d);
    } else if (quick && same) {
        waiting = d;
        waiting_before = xstrdup(before);
        app_prompt(
            a, ENTRY_CONFIRM, NULL, came_back,
            "%.40s returned at once (does it open a window? then use its --wait). y: edited, hand it in ",
            editor());
    } else {
        hand_in(a, d, before);
    }
    free(before);
}

static struct edit *begin(struct app *a, int64_t id, int64_t second, struct err *e)
{
    struct edit *d = xcalloc(1, sizeof *d);
    d->parent = id;
    d->second = second;
    d->path = place(a, id, e);
    return d;
}

void editing_edit(struct app *a, int64_t id)
{
    struct err e = {0};
    size_t n;
    if (a->w->read_only) {
        app_say(a, SLOT_ERROR, "this workbench was opened read-only");
        return;
    }
    char *text = model_source(&a->model, id, &n, &e);
    if (!text) {
        app_say(a, SLOT_ERROR, "%s  %s", e.msg, e.hint);
        return;
    }
    struct edit *d = begin(a, id, -1, &e);
    if (d->path) {
        edit_text(a, d, text, n);
    } else {
        app_say(a, SLOT_ERROR, "%s  %s", e.msg, e.hint);
        free_edit(d);
    }
    free(text);
}

void editing_merge(struct app *a, int64_t one, int64_t two)
{
    struct err e = {0};
    size_t n[3];
    char labels[3][40];
    int64_t ids[3] = {state_common_ancestor(a->model.st, one, two), one, two};
    char *text[3];
    struct merge_side s[3];
    bool all = true;
    for (int i = 0; i < 3; i++) {
        text[i] = model_source(&a->model, ids[i], &n[i], &e);
        snprintf(labels[i], sizeof labels[i], "candidate %lld", (long long)ids[i]);
        s[i] = (struct merge_side){text[i], n[i], labels[i]};
        all = all && text[i];
    }
    struct merge_result m = {0};
    if (!all || merge_texts(&s[0], &s[1], &s[2], &m, &e) < 0) {
        app_say(a, SLOT_ERROR, "%s  %s", e.msg, e.hint);
    } else {
        struct edit *d = begin(a, one, two, &e);
        edit_text(a, d, str_c(&m.text), m.text.len);
    }
    merge_result_free(&m);
    for (int i = 0; i < 3; i++)
        free(text[i]);
}
