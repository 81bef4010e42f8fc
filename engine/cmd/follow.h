// Following a session from outside its engine: a bar on a terminal, plain lines in a pipe.
#pragma once
#include "base/err.h"

struct follow_options {
    const char *dir;
    bool tell_all;          // lines from the start of this run on, although they were written before we came
    bool stop_on_interrupt; // Ctrl-C ends the engine (run --headless), else only the following (attach)
};
// Until the engine stops. Exit status: 0 where it ended by itself or on request, 1 where it failed.
int follow(const struct follow_options *o);
