// The workbench: `ksmith run DIR` and `ksmith attach DIR` on a terminal. A reader of the session's journal
// and a client of its engine; whatever happens to it, the search goes on.
#pragma once
#include "base/err.h"

struct workbench {
    const char *dir;
    bool read_only;    // no steering
    const char *theme; // NULL: [ui] theme of the config, or default
    int color;         // as in term.h
    bool ascii;
    // Starts an engine that only answers steering, for a session that does not search; and one that searches.
    int (*serve)(const char *dir, struct err *e);
    int (*search)(const char *dir, struct err *e);
};
// Until the user leaves. The exit status; errors are told on standard error.
int workbench_run(const struct workbench *w);
// Prints the table of keys, blank-separated columns; or a theme as an INI file (NULL: the default).
int workbench_keys(void);
int workbench_theme(const char *name);
