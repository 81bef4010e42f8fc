// What the engineer does to candidates: each key names the candidate under the cursor when it was pressed,
// asks first where something is lost, and sends the same command that `ksmith ctl` would.
#include "tui/app.h"

#include "cmd/client.h"
#include "cmd/show_text.h"
#include "source/merge.h"

#include <stdlib.h>
#include <string.h>

static void send_id(struct app *a, const char *verb, int64_t id, const char *more)
{
    char *cmd = xasprintf("%s %lld%s%s", verb, (long long)id, more && *more ? " " : "", more ? more : "");
    link_send(a, cmd, NULL, NULL, NULL);
    free(cmd);
}

static const char *called(const struct app *a, const struct candidate *c, char *buf, size_t n)
{
    char speed[64] = "";
    if (c->speedup.value > 0)
        snprintf(speed, sizeof speed, " %.2fx", c->speedup.value);
    snprintf(buf, n, "%lld (%s%s)", (long long)c->id, show_word(a->model.st, c), speed);
    return buf;
}

static int64_t count_below(const struct state *st, int64_t id)
{
    int64_t n = 0;
    // Without recursion: a subtree can be as deep as the run is long.
    VEC(int64_t) todo = {0};
    vec_push(&todo, id);
    while (todo.n) {
        int64_t top = todo.v[--todo.n];
        for (int64_t k = st->c.v[top].first_child; k >= 0; k = st->c.v[k].next_sibling) {
            n++;
            vec_push(&todo, k);
        }
    }
    vec_free(&todo);
    return n;
}

// ---- what asks first

static void kill_one(struct app *a, const char *text)
{
    (void)text;
    send_id(a, "kill", a->subject, NULL);
}

static void kill_all(struct app *a, const char *text)
{
    (void)text;
    send_id(a, "kill", a->subject, "--descendants");
}

static void ask_kill(struct app *a, const struct candidate *c, bool tree)
{
    char name[96];
    int64_t below = count_below(a->model.st, c->id);
    if (c->id == 0) {
        app_say(a, SLOT_ERROR, "the baseline cannot be killed; pause or stop the search instead");
        return;
    }
    a->subject = c->id;
    if (tree)
        app_prompt(a, ENTRY_CONFIRM, NULL, kill_all, "Kill %s and the %lld that came from it? y/n ",
                   called(a, c, name, sizeof name), (long long)below);
    else
        app_prompt(a, ENTRY_CONFIRM, NULL, kill_one,
                   below ? "Kill %s? Its %lld descendants live on (X kills them too). y/n " : "Kill %s? y/n ",
                   called(a, c, name, sizeof name), (long long)below);
}

static void revive_all(struct app *a, const char *text)
{
    send_id(a, "revive", a->subject, text[0] == 'y' ? "--descendants" : NULL);
}

static void revive(struct app *a, const struct candidate *c)
{
    if (!(c->flags & CF_KILLED)) {
        app_say(a, SLOT_ERROR, "%lld was not killed", (long long)c->id);
        return;
    }
    if (!count_below(a->model.st, c->id)) {
        send_id(a, "revive", c->id, NULL);
        return;
    }
    a->subject = c->id;
    app_prompt(a, ENTRY_CONFIRM, NULL, revive_all, "Revive %lld: y with its descendants, e only itself ",
               (long long)c->id);
}

// ---- crossing

static void cross_now(struct app *a, const char *text)
{
    char *cmd = NULL;
    if (text[0] == 'e') {
        editing_merge(a, a->subject, a->other);
        return;
    }
    cmd = xasprintf("cross %lld %lld", (long long)a->subject, (long long)a->other);
    link_send(a, cmd, NULL, NULL, NULL);
    free(cmd);
}

// How the text merge at the common ancestor would go, in words.
static void preview(struct app *a, int64_t one, int64_t two, struct str *out)
{
    struct err e = {0};
    int64_t base = state_common_ancestor(a->model.st, one, two);
    size_t n[3];
    char *text[3] = {model_source(&a->model, base, &n[0], &e), model_source(&a->model, one, &n[1], &e),
                     model_source(&a->model, two, &n[2], &e)};
    struct merge_result m = {0};
    if (text[0] && text[1] && text[2]) {
        struct merge_side s[3];
        for (int i = 0; i < 3; i++)
            s[i] = (struct merge_side){text[i], n[i], ""};
        if (merge_texts(&s[0], &s[1], &s[2], &m, &e) == 0)
            str_addf(out, m.conflicts.n ? "%zu conflicts at ancestor %lld" : "merges cleanly", m.conflicts.n,
                     (long long)base);
    }
    merge_result_free(&m);
    for (int i = 0; i < 3; i++)
        free(text[i]);
}

static void cross(struct app *a, const struct candidate *c)
{
    const struct model *m = &a->model;
    int64_t one = m->marks.n ? m->marks.v[0] : -1, two = m->marks.n > 1 ? m->marks.v[1] : c->id;
    if (m->marks.n > 2) {
        app_say(a, SLOT_ERROR, "%zu are marked: a cross takes two (M takes all marks off)", m->marks.n);
        return;
    }
    if (one < 0 || one == two) {
        app_say(a, SLOT_INFO, "mark one with Space, then press c on the other");
        return;
    }
    struct str how = {0};
    preview(a, one, two, &how);
    a->subject = one;
    a->other = two;
    app_prompt(a, ENTRY_CONFIRM, NULL, cross_now, "Cross %lld with %lld (%s)? y: go, e: merge by hand, n ",
               (long long)one, (long long)two, how.len ? str_c(&how) : "the engine looks how");
    str_free(&how);
}

// ---- what takes words

static void send_words(struct app *a, const char *verb, const char *text)
{
    if (!*text)
        return;
    struct str s = {0};
    client_word(text, &s);
    send_id(a, verb, a->subject, str_c(&s));
    str_free(&s);
}

static void done_note(struct app *a, const char *text)
{
    send_words(a, "note", text);
}

static void done_hint(struct app *a, const char *text)
{
    send_words(a, "hint", text);
}

static void done_tag(struct app *a, const char *text)
{
    send_words(a, "tag", text);
}

static void done_plain(struct app *a, const char *verb, const char *text)
{
    if (!*text)
        return;
    char *cmd = xasprintf("%s %s", verb, text);
    link_send(a, cmd, NULL, NULL, NULL);
    free(cmd);
}

static void done_budget(struct app *a, const char *text)
{
    done_plain(a, "budget", text);
}

static void done_weight(struct app *a, const char *text)
{
    done_plain(a, "weight", text);
}

// ---- undo and redo

static void took_back(struct app *a, void *user, const json *answer)
{
    (void)user;
    if (json_bool(answer, "ok", false))
        app_say(a, SLOT_INFO, "%s  (U does it again)", json_str_or(answer, "msg", "taken back"));
    else
        app_say(a, SLOT_ERROR, "%s  %s", json_str_or(answer, "msg", "refused"),
                json_str_or(answer, "hint", ""));
}

static void undo(struct app *a)
{
    link_send(a, "undo", NULL, took_back, NULL);
}

// ---- the table

static void on_pin(struct app *a, const struct candidate *c, int count)
{
    (void)count;
    send_id(a, c->flags & CF_PINNED ? "unpin" : "pin", c->id, NULL);
}

static void on_kill(struct app *a, const struct candidate *c, int count)
{
    (void)count;
    ask_kill(a, c, false);
}

static void on_kill_tree(struct app *a, const struct candidate *c, int count)
{
    (void)count;
    ask_kill(a, c, true);
}

static void on_revive(struct app *a, const struct candidate *c, int count)
{
    (void)count;
    revive(a, c);
}

static void on_cross(struct app *a, const struct candidate *c, int count)
{
    (void)count;
    cross(a, c);
}

static void on_edit(struct app *a, const struct candidate *c, int count)
{
    (void)count;
    editing_edit(a, c->id);
}

static void on_breed(struct app *a, const struct candidate *c, int count)
{
    char times[24];
    snprintf(times, sizeof times, "%d", count ? count : 1);
    send_id(a, "breed", c->id, times);
}

static void on_focus(struct app *a, const struct candidate *c, int count)
{
    (void)count;
    if (a->model.st->focus == c->id)
        link_send(a, "unfocus", NULL, NULL, NULL);
    else
        send_id(a, "focus", c->id, NULL);
}

static void on_hint(struct app *a, const struct candidate *c, int count)
{
    (void)count;
    a->subject = c->id;
    app_prompt(a, ENTRY_TEXT, NULL, done_hint, "Hint for models that change %lld: ", (long long)c->id);
}

static void on_note(struct app *a, const struct candidate *c, int count)
{
    (void)count;
    a->subject = c->id;
    app_prompt(a, ENTRY_TEXT, c->note, done_note, "Note on %lld: ", (long long)c->id);
}

static void on_tag(struct app *a, const struct candidate *c, int count)
{
    (void)count;
    a->subject = c->id;
    app_prompt(a, ENTRY_TEXT, NULL, done_tag, "Tag %lld with: ", (long long)c->id);
}

static void done_move(struct app *a, const char *text)
{
    send_words(a, "move", text);
}

static void on_move(struct app *a, const struct candidate *c, int count)
{
    (void)count;
    if (a->model.st->islands < 2) {
        app_say(a, SLOT_INFO, "there is one island; `[evolve] islands` of the task makes more");
        return;
    }
    a->subject = c->id;
    app_prompt(a, ENTRY_TEXT, NULL, done_move, "Move %lld to island (0 to %d): ", (long long)c->id,
               a->model.st->islands - 1);
}

static void on_budget(struct app *a, const struct candidate *c, int count)
{
    (void)c;
    (void)count;
    app_prompt(a, ENTRY_TEXT, NULL, done_budget, "Budget (wall=10m, iterations=500, evaluations=100): ");
}

static void on_weight(struct app *a, const struct candidate *c, int count)
{
    (void)c;
    (void)count;
    app_prompt(a, ENTRY_TEXT, NULL, done_weight, "Weight of an operator (tune=2): ");
}

static void on_pause(struct app *a, const struct candidate *c, int count)
{
    (void)c;
    (void)count;
    link_send(a, a->model.st->paused ? "resume" : "pause", NULL, NULL, NULL);
}

static void on_step(struct app *a, const struct candidate *c, int count)
{
    char cmd[32];
    (void)c;
    snprintf(cmd, sizeof cmd, "step %d", count ? count : 1);
    link_send(a, cmd, NULL, NULL, NULL);
}

static void on_undo(struct app *a, const struct candidate *c, int count)
{
    (void)c;
    (void)count;
    undo(a);
}

static const struct {
    enum action act;
    void (*fn)(struct app *a, const struct candidate *c,
               int count); // NULL: the verb with the candidate's number
} rows[] = {
    {ACT_PIN, on_pin},       {ACT_KILL, on_kill},           {ACT_KILL_TREE, on_kill_tree},
    {ACT_REVIVE, on_revive}, {ACT_CROSS, on_cross},         {ACT_EDIT, on_edit},
    {ACT_CLONE, NULL},       {ACT_MOVE, on_move},           {ACT_BREED, on_breed},
    {ACT_HINT, on_hint},     {ACT_FOCUS_SUBTREE, on_focus}, {ACT_NOTE, on_note},
    {ACT_TAG, on_tag},       {ACT_REMEASURE, NULL},         {ACT_APPROVE, NULL},
    {ACT_REJECT, NULL},      {ACT_BUDGET, on_budget},       {ACT_WEIGHT, on_weight},
    {ACT_PAUSE, on_pause},   {ACT_STEP, on_step},           {ACT_UNDO, on_undo},
};

bool steering_act(struct app *a, enum action act, int count)
{
    const struct candidate *c = model_selected(&a->model);
    if (act == ACT_REDO) {
        link_send(a, "redo", NULL, NULL, NULL);
        return true;
    }
    for (size_t i = 0; i < countof(rows); i++) {
        if (rows[i].act != act)
            continue;
        if (!c)
            app_say(a, SLOT_ERROR, "no candidate is selected");
        else if (rows[i].fn)
            rows[i].fn(a, c, count);
        else
            send_id(a, actions[act].steer, c->id, NULL);
        return true;
    }
    return false;
}
