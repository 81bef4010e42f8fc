// What a view is: a struct of its own that begins with struct view, and a table of functions. Views draw into
// the canvas and answer actions; they never touch the terminal, the socket or each other. To steer or to go
// elsewhere they ask the workbench through struct host.
#pragma once
#include "tui/action.h"
#include "tui/canvas.h"
#include "tui/model.h"

struct view;

// What the workbench does for a view.
struct keymap;
struct host {
    struct model *model;
    const struct keymap *keys; // as they are bound now
    void *app;
    void (*select)(struct host *h, int64_t id);     // the candidate that everything else follows
    void (*show)(struct host *h, const char *view); // opens a view by name beside or over this one
    void (*say)(struct host *h, enum slot weight, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
    void (*command)(struct host *h, const char *command);             // as if typed after `:`
    void (*yank)(struct host *h, const char *what, const char *text); // to the clipboard; says so
};

struct view_ops {
    const char *name;              // "diff"
    const char *title;             // "Diff"
    const char *help;              // one line
    size_t size;                   // of the whole struct
    enum action key;               // the action that opens it
    void (*open)(struct view *v);  // the struct is zeroed but for ops and host; may be NULL
    void (*close)(struct view *v); // frees what it holds; may be NULL
    // Draws into r, all of it (the workbench has blanked it). Heading and border are not the view's: it says
    // what belongs into the heading with heading().
    void (*draw)(struct view *v, struct canvas *c, struct rect r, bool focused);
    // True where it was this view's; count is 0 where none was typed.
    bool (*act)(struct view *v, enum action a, int count);
    // Something changed (MODEL_... bits). Cheap: what is costly waits for draw. May be NULL.
    void (*changed)(struct view *v, unsigned what);
    // Words for the heading, after the title: "17 against parent 9". May be NULL.
    void (*heading)(struct view *v, struct str *out);
    // Search: goes to the next match of `text` (UTF-8, case-insensitive unless it holds a capital) from here
    // on, backwards where back; false where there is none. The text is kept for highlighting until NULL. May
    // be NULL.
    bool (*search)(struct view *v, const char *text, bool back, bool again);
    // A command of the view: "against baseline", "filter speedup>1.2", "sort id". False where it is not its;
    // an error in *e where it is but cannot be done. May be NULL.
    bool (*command)(struct view *v, const char *word, const char *rest, struct err *e);
    // The mouse pressed here, relative to the rectangle drawn last. May be NULL.
    void (*point)(struct view *v, int row, int col);
};
struct view {
    const struct view_ops *ops;
    struct host *host;
};
extern const struct view_ops view_tree, view_detail, view_diff, view_lineage, view_archive, view_progress,
    view_funnel, view_workers, view_log, view_help;
