// A worker without an engine, for check and try: one request, one answer, with progress shown meanwhile.
// Nothing is journaled.
#pragma once
#include "base/json.h"
#include "base/task.h"

struct oneshot;

// Starts the task's worker and opens the task in it. overrides as for task_load.
struct oneshot *oneshot_open(const struct task *t, const char *const *overrides, size_t n, bool trust,
                             struct err *e);
void oneshot_close(struct oneshot *o);
// Sends request and waits for the event named want; progress events go to show (may be NULL). NULL and an
// error where the worker fails or the user presses Ctrl-C.
typedef void oneshot_show(void *user, const json *event);
json *oneshot_ask(struct oneshot *o, const json *request, const char *want, oneshot_show *show, void *user,
                  struct err *e);
const json *oneshot_opened(const struct oneshot *o); // the `opened` event
// The baseline's text, malloc'ed.
char *oneshot_baseline(const struct task *t, struct err *e);
