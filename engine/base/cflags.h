// Which flags of the C compiler may be used. A candidate's flags come from a search, a model or an agent and
// pass an allow-list: nothing that names a path, loads a plugin, reads a file or talks to another program.
#pragma once
#include "base/err.h"

// Whether a candidate may carry the flag; allow_fast_math says that the task allows results to change as
// -ffast-math changes them, allow_threads the same of OpenMP's threads. Returns 0, or -1 and what is wrong.
int cflags_check(const char *flag, bool allow_fast_math, struct err *e);
// True where the flag starts threads (-fopenmp): the task must allow threads too.
bool cflags_threads(const char *flag);
// True where the flag may change results: it needs allow = fast-math.
bool cflags_fast_math(const char *flag);
// The list itself, for pages and completion: flag i, ending in '=' where a value follows; NULL behind the
// last.
const char *cflags_name(size_t i);
const char *cflags_param(size_t i); // the same for the names of --param=NAME=NUMBER
// The task's own cflags are its author's: only what would break the judge's own command line is refused.
int cflags_check_task(const char *flag, struct err *e);
