// What the files of the engine share. Only engine*.c include this.
#pragma once
#include "base/task.h"
#include "evolve/asking.h"
#include "evolve/engine.h"
#include "evolve/loop.h"
#include "evolve/prepare.h"
#include "evolve/server.h"
#include "evolve/worker.h"
#include "session/event.h"
#include "session/session.h"

enum phase { PHASE_START, PHASE_PREFLIGHT, PHASE_SEARCH, PHASE_STOPPING, PHASE_STOPPED };

// What the worker was last asked for.
enum work { WORK_NONE, WORK_OPEN, WORK_PREFLIGHT, WORK_JUDGE, WORK_ANCHOR, WORK_REMEASURE };

struct engine {
    struct engine_options o;
    struct task task;
    struct loop *loop;
    struct session *session;
    struct state *state; // of the session: the fold
    struct worker *worker;
    struct server *server;
    enum phase phase;
    enum work work;
    int64_t work_id;           // candidate the worker is busy with
    int64_t rival;             // what it races
    int64_t work_started;      // clock_ns
    char stage[24];            // of the judge, as the worker reports it
    int worker_deaths;         // in a row, without an answer in between
    char *baseline;            // text of the task's own kernel file
    double started_wall;       // clock_wall at start, for budgets
    double ticked, cpu_ticked; // clock_wall and clock_cpu at the last budget line
    VEC(int64_t) remeasure;    // ordered by the engineer, next
    VEC(int64_t) breed;        // parents ordered by the engineer, next
    int steps_left;            // `step N`; -1: not stepping
    char stop_reason[200];
    int status; // exit status
    int tick_timer;
    struct asking *asking; // models and commands at work
    pid_t packer;          // a child that packs the repository; 0: none
};

// engine.c
int engine_append(struct engine *en, json *event,
                  bool sync); // takes event; stops the engine where the disk fails
void engine_stop(struct engine *en, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void engine_status(struct engine *en); // tells subscribers what is going on now
double engine_spent(const struct engine *en);
char *engine_source(struct engine *en, int64_t id); // malloc'ed text of a candidate, NULL where it is lost
void engine_next(struct engine *en);                // gives the worker something to do
// engine_search.c
void search_next(struct engine *en);
void search_judge_waiting(
    struct engine *en); // proposes nothing; stops where nothing waits and nobody listens
struct new_candidate {
    int64_t parents[2]; // -1: none
    const char *op, *proposer, *title, *text;
    const char *author; // "Ann <ann@example.org>" of an engineer's own edit, or NULL
    const char *model;  // who made it, where a model did
    double seconds;     // that proposing took
    const json *edits;  // from the baseline, or NULL
};
int64_t search_record(struct engine *en,
                      const struct new_candidate *n); // its id, or -1 with the engine stopping
struct proposal;
// Records what propose.h found, or the engineer ordered: its id, or -1.
int64_t search_propose(struct engine *en, const struct proposal *p, const char *author);
void search_judge(struct engine *en, int64_t id, enum work work);
// engine_verdict.c
void verdict_event(struct engine *en, const json *event);
void verdict_reject(struct engine *en, int64_t id, enum status status, const char *stage, const char *reason,
                    int64_t of);
void verdict_accept(struct engine *en, int64_t id);
// engine_steer.c
json *steer_request(void *user, const json *request);
