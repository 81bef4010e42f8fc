// Builders of journal events, so that what is written and what the fold reads cannot drift apart. Each
// returns a new object for session_log(). The keys are specified in state.h. Optional extras (static, log,
// env ...) may be put into the object before it is logged.
#pragma once
#include "base/json.h"
#include "session/lineage.h"
#include "session/state.h"

struct event_session {
    const char *name, *backend, *kernel, *head, *task;
    uint64_t seed;
    int islands;
    const struct lineage_file *files;
    size_t nfiles;
    const struct shape *shapes;
    size_t nshapes;
};
json *event_session(const struct event_session *s);
json *event_worker(const char *name, const json *opened); // from the worker's "opened" answer
json *event_preflight(const json *answer);                // from the worker's "preflight" answer
json *event_floor(double floor, const char *fingerprint);

struct event_candidate {
    int64_t id; // = state.c.n
    const int64_t *parents, *inspired;
    int nparents, ninspired;
    const char *op, *proposer, *model, *title, *flags, *hint;
    int island, gen;
    int64_t iter, seen;
    const char *blob;  // hex
    const json *edits; // copied
    double seconds, usd;
};
json *event_candidate(const struct event_candidate *c);
// A verdict that the engine itself gives (source dedup, scan): no worker was asked.
json *event_verdict(int64_t id, enum status status, const char *stage, const char *reason, int64_t of);
// From the worker's "verdict" answer (contract: ev verdict). incumbent -1 and blob NULL where there is none.
json *event_verdict_of(const json *answer, int64_t incumbent, const char *blob, double seconds, bool again);
json *event_anchor(const json *answer);
json *event_archive(int64_t id, int island, const int bins[STATE_CELL], int64_t over);
json *event_evict(int64_t id, int island, const char *why);
json *event_migrate(int64_t id, int from, int to, const int bins[STATE_CELL], int64_t over);
json *event_steer(const char *who, const char *cmd, json *args); // args is taken over; NULL: {}
struct event_cost {
    double wall, cpu, usd; // seconds, seconds, dollars
    int64_t tokens_in, tokens_out;
    const char *model;
    const char *answer; // what came of a request (proposal_end_name); NULL: this is no request
    double seconds;     // that it took
    bool unpriced;      // usd is not known
};
json *event_cost(const struct event_cost *c);
json *event_pause(const char *why);
json *event_resume(const char *why);
json *event_stop(const char *reason, const char *msg);
json *event_note(const char *msg, int64_t id); // id -1: of the session
