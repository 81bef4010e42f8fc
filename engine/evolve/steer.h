// The table of steering commands: one row gives the ctl verb, its help and completion, the man page's list
// and the workbench's command line. What a row does is journaled and can be taken back with undo.
#pragma once
#include "base/err.h"

enum steer_what { // what the first argument is
    STEER_NONE,
    STEER_ID,     // a candidate
    STEER_OPT_ID, // a candidate, or nothing
};

struct steer_verb {
    const char *name, *args, *help;
    enum steer_what what;
    int min, max; // words after the candidate; max -1: any number
};
extern const struct steer_verb steer_verbs[];
extern const size_t steer_verbs_n;
const struct steer_verb *steer_find(const char *name);
// What only a running search can do: no engine is started for the moment that such a command takes.
bool steer_searches(const char *name);
