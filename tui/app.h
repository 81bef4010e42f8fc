// The workbench's inside, shared by its files: app.c (life and keys), paint.c (drawing), steering.c (what is
// asked of the engine), editing.c ($EDITOR), command.c (the command line).
#pragma once
#include "evolve/lines.h"
#include "evolve/loop.h"
#include "tui/entry.h"
#include "tui/layout.h"
#include "tui/term.h"
#include "tui/view.h"
#include "tui/workbench.h"

enum { VIEWS = 10, FRAME_MS = 100, FOLLOW_MS = 80, RECONNECT_MS = 1000 };

struct app;
typedef void answer_fn(struct app *a, void *user, const json *answer);
struct request { // sent, not yet answered
    int64_t re;
    char *what; // the command, for the message
    answer_fn *fn;
    void *user;
};

struct app {
    const struct workbench *w;
    struct loop *loop;
    struct model model;
    struct host host;
    struct keymap *keys;
    struct theme theme;
    struct view *views[VIEWS]; // opened when first shown, in the order of the table
    struct view *left, *right; // right may be NULL
    bool focus_right, zoom;
    struct canvas canvas, shown; // shown: for the pane that waits
    struct layout layout;
    struct entry prompt;
    void (*prompt_done)(struct app *a, const char *text);
    int64_t subject; // the candidate that a prompt or confirmation is about
    int64_t other;   // the second parent of a cross
    char *search;
    bool search_back;
    int count; // typed before a key
    bool counting;
    struct str message;
    enum slot message_slot;
    // Pastes outside of prompts
    bool pasting;
    struct str paste;
    // Frames
    int frame_timer, follow_timer, blocked_timer;
    bool dirty, right_waits;
    int64_t painted_ns, ages_ns;
    // The engine
    char *socket;
    struct lines *lines;
    json *signature; // who steers; NULL until something is steered
    bool serving;    // that engine only answers steering: we hang up when it has answered
    VEC(struct request) requests;
    int64_t next_re;
    int64_t tried_ns; // last try to connect
    int notify;       // inotify, or -1
    int notify_timer;
    bool mouse;
    bool leaving;
    int status;
    struct err fatal; // told after the terminal was given back
};

// app.c
void app_open_view(struct app *a, const struct view_ops *ops, bool left);
struct view *app_focused(const struct app *a);
void app_act(struct app *a, enum action act, int count);
void app_leave(struct app *a);
void app_prompt(struct app *a, enum entry_kind kind, const char *text,
                void (*done)(struct app *, const char *), const char *label, ...)
    __attribute__((format(printf, 5, 6)));
void app_changed(struct app *a, unsigned what);
extern const struct view_ops *const app_views[VIEWS];

// paint.c
void paint_soon(struct app *a); // at most ten frames a second
void paint_now(struct app *a);  // a key was pressed
void app_say(struct app *a, enum slot weight, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// engine_link.c
void link_open(struct app *a); // connects where an engine listens; quiet where none does
void link_close(struct app *a);
void link_watch(struct app *a); // follows the journal
// Sends a steering command; extra (may be NULL, taken over) adds keys to the request. The answer is said, or
// handed to fn (which may be NULL). Starts an engine where none runs and the command can do without a search.
void link_send(struct app *a, const char *command, json *extra, answer_fn *fn, void *user);

// steering.c
bool steering_act(struct app *a, enum action act, int count); // false where it is none
// editing.c
void editing_edit(struct app *a, int64_t id);
void editing_merge(struct app *a, int64_t one, int64_t two); // the three-way merge, conflicts and all
// command.c
void command_run(struct app *a, const char *line);
void command_complete(void *user, const char *before, const char *word, word_list *out);
