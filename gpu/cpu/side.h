// The judge's handle on one child: starting it, giving commands, waiting with a deadline, and saying how it
// died.
#pragma once
#include "cpu/arena.h"
#include "cpu/verdict.h"

#include <sys/types.h>

struct side_spec {
    const char *library, *function;
    int cpu;          // -1: all
    int threads;      // most threads; 1: none may be started
    size_t llc_bytes; // of the sweep buffer; 0: no cold runs
};

struct side {
    pid_t pid; // also its process group; 0: none
    struct control *control;
    int control_fd, schedstat_fd;
    uint32_t seq;
    bool sleeping_judge; // wait by futex instead of spinning
    bool whole_machine;  // freeze and thaw the group around reading its results
    int stopped;
    int wait_status; // after it died
    bool dead;
};

enum wait_end { WAIT_DONE, WAIT_TIMEOUT, WAIT_DEAD, WAIT_CANCELLED };

// Starts a child on the arena and waits until its kernel is loaded. false: fault says why.
bool side_start(struct side *s, const struct arena *a, const struct side_spec *spec, struct fault *f);
void side_close(struct side *s);
void side_send(struct side *s, enum control_op op);
// Waits for the answer to the last command; *at (may be NULL) is the moment it was seen.
enum wait_end side_wait(struct side *s, int64_t timeout_ns, int64_t *at);
// Sends and waits. timeout_ns also bounds harness commands: 5 s is plenty.
enum wait_end side_do(struct side *s, enum control_op op, int64_t timeout_ns);
void side_freeze(struct side *s);
void side_thaw(struct side *s);
// Nanoseconds that the child has waited for its core so far.
uint64_t side_waited(const struct side *s);
// Turns an end of waiting that is not WAIT_DONE into a fault with words.
bool side_fault(struct side *s, enum wait_end w, double limit_s, struct fault *f);
