// What the files card_trial.c and card_run.c share: a trial in hand, and one run of it.
#pragma once
#include "cuda/card.h"

struct side {
    const struct trial_side *head;
    const struct trial_buffer *scratch;
    const struct trial_launch *launch[PLAN_MOST];
    const struct trial_arg *arg[PLAN_MOST];
    const void *image;
    size_t first_item; // of its scratch
    gpu_module module;
    gpu_function function[PLAN_MOST];
};

struct run {
    struct card *c;
    struct card_reply *r;
    const struct trial *t;
    const struct trial_buffer *buffer;
    const struct trial_content *content;
    struct side side[2];
    gpu_event from, to;
    VEC(struct item_group) groups;
    VEC(uint32_t) members;
    VEC(struct item_result) results;
    gpu_ptr d_items, d_groups, d_members, d_results;
    size_t sets_items; // without scratch
    struct trial_answer *a;
};

// Contents move on by one set from sample to sample, so that no address means the same twice.
uint32_t card_content(const struct run *x, uint32_t set, uint32_t sample);
// One side once, on the contents of a sample; results hold what was found. Returns as card_error does.
int card_run(struct run *x, uint32_t of, uint32_t sample, double *ns, bool *tainted);
// The first item with something wrong, or -1.
long card_find_fault(const struct run *x);
// Fills in got and want of a wrong item.
void card_explain(struct run *x, uint32_t item);
