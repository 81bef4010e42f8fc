// What a model is told, gathered from a session: fills a prompt_ctx from the fold, the journal's lines and
// the sources.
#pragma once
#include "models/prompt.h"
#include "session/session.h"

struct task;
struct context {
    struct prompt_ctx ctx; // its texts belong to this struct
    VEC(char *) texts;
    VEC(struct prompt_item) lists[5];
    json *feedback; // for feedback.json of a command: the parent's verdict as journaled
};
// Gives the source of a candidate, malloc'ed, or NULL.
typedef char *context_source_fn(void *user, int64_t id);
// second: the other parent of ASK_CROSS, or -1. -1 and an error where a source is lost. c is always safe to
// free.
int context_fill(struct context *c, const struct session *s, const struct task *t, int64_t parent,
                 int64_t second, enum ask ask, context_source_fn *source, void *user, struct err *e);
void context_free(struct context *c);
