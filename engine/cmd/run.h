// Starting an engine from a command.
#pragma once
#include "base/err.h"
#include "evolve/engine.h"

// Starts the engine as a process of its own that outlives this one; returns when it listens, or with its own
// words.
int run_engine(const struct engine_options *o, struct err *e);
