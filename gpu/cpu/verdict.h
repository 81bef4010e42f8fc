// What can become of a candidate, and why: a typed status and words. Shared by every stage of the referee.
#pragma once
#include <stdbool.h>

enum status {
    STATUS_OK,
    STATUS_DUPLICATE,
    STATUS_REJECTED,
    STATUS_COMPILE_ERROR,
    STATUS_LAUNCH_ERROR,
    STATUS_WRONG,
    STATUS_TIMEOUT,
    STATUS_CRASH,
    STATUS_FLAGGED,
    // Not the candidate's: the request ends without a verdict.
    STATUS_CANCELLED,
    STATUS_TROUBLE, // this machine could not do it; the reason says what
    STATUS_COUNT
};
extern const char *const status_names[STATUS_COUNT];

struct fault {
    enum status status; // STATUS_OK: nothing is wrong
    char reason[480];
};

// Fills f and returns false, so that `return fault_set(...)` reads well.
__attribute__((format(printf, 3, 4))) bool fault_set(struct fault *f, enum status s, const char *fmt, ...);
