// A session and its models as commands see them: opened to look, nothing is written and nobody is asked.
#pragma once
#include "base/task.h"
#include "models/proposer.h"
#include "session/session.h"

struct args;
struct look {
    struct task task;
    struct session session;
    struct loop *loop;
    struct proposers *p;
};
// 0, or the exit status with the errors printed. look is always safe to close.
int look_open(struct look *l, const struct args *a);
void look_close(struct look *l);
// The text of a candidate for context_fill; user is the look.
char *look_source(void *user, int64_t id);
// The proposer that --model names: its number; the first of all without one, -1 where none is configured; -2
// and an error where no proposer has that name.
int look_proposer(const struct look *l, const char *name, struct err *e);
