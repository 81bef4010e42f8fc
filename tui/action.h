// The table of all that a key or the command line can do: one row gives the action's name for `:` and for
// key bindings, its default keys, its help and its row in man/ksmith-keys.7. Steering verbs stand in the
// engine's table (evolve/steer.h); the rows here that steer say which verb they send.
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum action {
    ACT_NONE,
    // moving
    ACT_UP,
    ACT_DOWN,
    ACT_LEFT,
    ACT_RIGHT,
    ACT_PAGE_UP,
    ACT_PAGE_DOWN,
    ACT_HALF_UP,
    ACT_HALF_DOWN,
    ACT_TOP,
    ACT_BOTTOM,
    ACT_ENTER,
    ACT_BACK,
    ACT_CLOSE,
    ACT_NEXT, // the next hunk, branch or match, by view
    ACT_PREVIOUS,
    ACT_SEARCH,
    ACT_SEARCH_NEXT,
    ACT_SEARCH_PREVIOUS,
    ACT_FILTER,
    ACT_CHAMPION,
    // views
    ACT_VIEW_TREE,
    ACT_VIEW_DETAIL,
    ACT_VIEW_DIFF,
    ACT_VIEW_LINEAGE,
    ACT_VIEW_ARCHIVE,
    ACT_VIEW_PROGRESS,
    ACT_VIEW_FUNNEL,
    ACT_VIEW_WORKERS,
    ACT_VIEW_LOG,
    ACT_HELP,
    ACT_FOCUS_NEXT,
    ACT_ZOOM,
    // what the view shows
    ACT_FOLD,
    ACT_FOLD_ALL,
    ACT_SORT,
    ACT_REVERSE,
    ACT_LAYOUT, // tree, ranked, by island, by generation
    ACT_FOLLOW,
    ACT_FREEZE,
    ACT_MARK,
    ACT_UNMARK,
    ACT_AGAINST, // what the diff compares with
    ACT_SIDE,    // side by side or unified
    ACT_MORE_CONTEXT,
    ACT_LESS_CONTEXT,
    ACT_WHITE,    // white space counts or not
    ACT_ASSEMBLY, // source or assembly
    // steering
    ACT_PIN,
    ACT_KILL,
    ACT_KILL_TREE,
    ACT_REVIVE,
    ACT_CROSS,
    ACT_EDIT,
    ACT_CLONE,
    ACT_MOVE,
    ACT_BREED,
    ACT_FOCUS_SUBTREE,
    ACT_HINT,
    ACT_NOTE,
    ACT_TAG,
    ACT_REMEASURE,
    ACT_APPROVE,
    ACT_REJECT,
    ACT_PAUSE, // or resume
    ACT_STEP,
    ACT_BUDGET,
    ACT_WEIGHT,
    ACT_UNDO,
    ACT_REDO,
    // the program
    ACT_COMMAND,
    ACT_YANK,
    ACT_THEME,
    ACT_MOUSE,
    ACT_REDRAW,
    ACT_SUSPEND,
    ACT_QUIT,
    ACT_QUIT_ALL,
    ACT_COUNT
};

struct action_info {
    const char *name;  // "page-down": for :bind and the man page
    const char *keys;  // default keys, blank-separated: "j Down"
    const char *group; // heading in the help
    const char *help;
    const char *steer; // the steering verb that it sends, or NULL
    const char *views; // where it works: view names, blank-separated; NULL: everywhere
    bool main;         // shown on the bottom line
};
extern const struct action_info actions[ACT_COUNT];
enum action action_find(const char *name); // ACT_NONE where unknown
