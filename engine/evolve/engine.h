// The engine: one process that owns a session. What happens to a candidate, in order:
//
//   propose   search.c picks a parent and a move (rules, flags, tune) or takes one from the engineer's queue
//   record    the source becomes a blob of lineage.git, then the journal gets its `candidate` line
//   scan      prepare.c: region, signature, flags, forbidden constructs; a worker never sees what fails here
//   judge     the worker compiles, checks and races it against its island's best (worker.c, gpu/)
//   verdict   verdict.c journals it, and decides: accept (commit), archive, quarantine, or leave
//
// It outlives the terminal, answers steering on its socket at once, and alone writes journal and repository.
// State is always the fold of the journal: a kill at any moment loses nothing that was acknowledged.
#pragma once
#include "base/err.h"

struct engine_options {
    const char *dir;              // the session's folder
    const char *const *overrides; // --set
    size_t n_overrides;
    const char
        *replay; // another session's folder: models' answers come from its recording, no network; or NULL
    bool trust;  // run candidates of models although this machine has no sandbox
    bool serve;  // only answer steering of a session that does not search, and end when nobody asks any more
    bool judge_only; // judge what waits and what is brought in, propose nothing; end when nobody is connected
    int ready_fd;    // one byte is written here when the socket listens, or the error's text; -1: none
};

// Runs the session until its stop rule, its budget or `stop`; the exit status.
int engine_run(const struct engine_options *o);
