// Outside commands as proposers: an agent's command line, a script. Each run has a fresh folder of its own
// with the parent (parent.c or parent.cu), task.md, feedback.json, prompt.md and hint.txt; what it leaves as
// candidate.c (.cu), as a changed parent.c, as candidate.patch, or prints, becomes an answer in the form that
// reply_read takes. At its time limit it and all it started are killed; the folder is removed.
#pragma once
#include "base/json.h"
#include "models/run.h"

struct exec_command { // a [exec NAME] section
    char *name, *command;
    int timeout_s, parallel;
    double weight, usd; // of one run; NAN: unknown
};
int exec_load(struct exec_command *x, const char *name, const json *section, const char *path,
              err_list *errors);
void exec_free(struct exec_command *x);

struct exec_files { // what goes into the folder; NULL: no such file
    bool cuda;
    const char *parent, *task, *feedback, *prompt, *hint;
};
struct exec_result {
    bool ok;            // it ended with status 0 and left something
    struct str answer;  // for reply_read
    struct str printed; // the end of what it printed, cleaned and redacted
    struct err err;     // where not ok
    double seconds;
};
struct exec_call;
// Called once from the loop; the call is gone then.
typedef void exec_fn(void *user, const struct exec_result *r);
// NULL and an error where the folder or the command cannot be made.
struct exec_call *exec_start(struct loop *loop, const struct exec_command *x, const struct exec_files *f,
                             exec_fn *fn, void *user, struct err *e);
void exec_cancel(struct exec_call *c); // at once, with all it started; no callback follows
