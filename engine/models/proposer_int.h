// What proposer.c (who there is) and ask.c (one question) share.
#pragma once
#include "models/chat.h"
#include "models/exec.h"
#include "models/proposer.h"

struct proposers {
    struct loop *loop;
    char *state_dir;
    uint64_t seed;
    bool replay;
    int64_t next_tag;
    VEC(struct model) models;
    VEC(struct exec_command) execs;
    VEC(int) exec_running;
    VEC(double) answers, answer_tokens; // of each model so far, for estimates
    struct chat *chat;
    struct prompts *prompts;
    struct record *record;
    VEC(struct proposer_call *) calls;
};

static inline bool is_exec(const struct proposers *p, int who)
{
    return who >= (int)p->models.n;
}
static inline const char *name_of(const struct proposers *p, int who)
{
    return is_exec(p, who) ? p->execs.v[who - (int)p->models.n].name : p->models.v[who].name;
}
// ask.c
void call_free(struct proposer_call *c);
double call_estimate(const struct proposer_call *c, double *tokens);
