// A child process in the poll loop: nothing waits for it. It has its own process group, which is killed at
// the deadline, at a cancel and at the leader's end, so that nothing it started outlives it.
#pragma once
#include "base/proc.h"
#include "evolve/loop.h"

struct run;
struct run_result {
    struct proc_end end;
    struct str out, err; // what it printed, each at most the limit; gone after the callback
    double seconds;
};
// Called once from the loop; the run is gone then.
typedef void run_fn(void *user, const struct run_result *r);

struct run_spec {            // copied where needed
    const char *const *argv; // NULL-terminated
    const char *dir;         // or NULL
    const char *const *env;  // "NAME=value" added, or NULL
    size_t limit;            // bytes kept of each stream
    int timeout_ms;
    run_fn *fn;
    void *user;
};
// NULL and an error where it cannot be started.
struct run *run_start(struct loop *loop, const struct run_spec *s, struct err *e);
// Kills the group now; no callback follows.
void run_cancel(struct run *r);
