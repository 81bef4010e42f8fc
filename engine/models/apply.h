// From what an answer proposes to the text of a candidate: the patch applied whole, or the source put in
// place, and held against the parent. What may not change did not, or there is no candidate.
#pragma once
#include "base/task.h"
#include "models/reply.h"

struct apply_opts {
    const char *parent;
    size_t parent_len;
    const char *path, *func; // for messages; the kernel
    enum task_evolve evolve;
};
// 0 and the candidate's text in child (with the parent's kind of newlines), or -1 and in problem what is
// wrong, with the nearest text where lines were not found: fit to be sent back to a model. The reply's kind
// becomes REPLY_SAME where the candidate would be the parent again (but for comments and white space).
int reply_apply(struct reply *r, const struct apply_opts *o, struct str *child, struct str *problem);
