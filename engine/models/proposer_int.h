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
// preview.c: what is sent, before it is sent.
size_t prompt_budget(const struct proposers *p, int who); // bytes that prompt and diagnostics may take
struct chat_params draw_params(const struct proposers *p, int who, struct draw d);
struct exec_texts { // the files of a command's folder
    struct exec_files files;
    struct str feedback, task, hints;
};
void exec_texts_fill(struct exec_texts *t, const struct proposer_request *r, const struct prompt *prompt);
void exec_texts_free(struct exec_texts *t);
// ask.c
void call_free(struct proposer_call *c);
double call_estimate(const struct proposer_call *c, double *tokens);
