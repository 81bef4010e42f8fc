// What every worker shares: the protocol loop. Requests are JSON lines on standard input, answers JSON lines
// on what was standard output; descriptors 1 and 2 then both lead to the log, so that nothing that is printed
// can be taken for an answer. A thread of its own reads, so that "cancel" and the end of input are noticed at
// any time.
#pragma once
#include "base/json.h"

#include <stdbool.h>

struct worker_verb {
    const char *name; // of "op"
    void (*run)(void *user, const json *request);
};

// Answers requests one at a time until "quit" or the end of input; returns the exit status.
int worker_run(const struct worker_verb *verbs, size_t n, void *user);
// Prints one answer as a line and frees it.
void worker_send(json *answer);
// Whether the request in hand was cancelled; stays true until it returns. Cheap.
bool worker_cancelled(void);
// {"ev":"error","msg","hint"}
void worker_error(const struct err *e);
