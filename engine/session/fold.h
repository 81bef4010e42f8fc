// What the files of the fold share. A handler first checks its whole event and then, unless it is only asked
// to check, changes the state; nothing may fail once it changes.
#pragma once
#include "session/memory.h"
#include "session/state.h"

struct fold {
    struct state *st;
    const json *event;
    int64_t n, offset;
    double t;
    bool check; // only check
    struct err *e;
};

__attribute__((format(printf, 2, 3))) int fold_bad(struct fold *f, const char *fmt, ...);
// The candidate that the event names under key; NULL and an error where it names none.
struct candidate *fold_candidate(struct fold *f, const json *o, const char *key);
// RATIO: value under key, low, high.
struct ratio fold_ratio(const json *o, const char *key);
int fold_cell(struct fold *f, int bins[STATE_CELL]); // the event's "cell"
bool fold_hex(const char *hex, unsigned char out[20]);

struct op_stats *fold_stats(stats_list *l, const char *name); // name is interned; added where it is new

int fold_session(struct fold *f);
int fold_worker(struct fold *f);
int fold_preflight(struct fold *f);
int fold_floor(struct fold *f);
int fold_cost(struct fold *f);
int fold_pause(struct fold *f);
int fold_resume(struct fold *f);
int fold_stop(struct fold *f);
int fold_note(struct fold *f);
int fold_new_candidate(struct fold *f);
int fold_verdict(struct fold *f);
int fold_anchor(struct fold *f);
int fold_accept(struct fold *f);
int fold_archive(struct fold *f);
int fold_evict(struct fold *f);
int fold_migrate(struct fold *f);
int fold_steer(struct fold *f);
