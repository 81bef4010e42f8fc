// The engine's end of one worker process (ksmith-cpu, ksmith-cuda): start, requests, events, restart. A
// worker is disposable: when it dies the engine hears it once and starts another.
#pragma once
#include "base/json.h"
#include "evolve/loop.h"

#include <sys/types.h>

struct task;
struct worker;
// The words that start the task's worker: the command of its first [worker NAME] section, else ksmith-cpu or
// ksmith-cuda beside this program. A command may come with a session folder from elsewhere, so it needs
// trust. One free() releases the result.
char **worker_command(const struct task *t, bool trust, struct err *e);

// Whether the commands of a session's models and proposers may run: key_cmd, [exec NAME].
int worker_trust(const struct task *t, bool trust, struct err *e);

struct worker_ops {
    void (*event)(void *user, const json *event); // one line of the worker
    void (*gone)(void *user, const char *why);    // it ended; worker_free may be called from here
};

// argv[0] is a path or looked up in PATH. What the worker prints outside the protocol goes to log_path
// (appended).
struct worker *worker_start(struct loop *l, const char *const *argv, const char *log_path,
                            const struct worker_ops *ops, void *user, struct err *e);
// Kills the worker's process group and frees w; `gone` is not called.
void worker_free(struct worker *w);
int worker_request(struct worker *w, const json *request);
pid_t worker_pid(const struct worker *w);
