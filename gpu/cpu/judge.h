// The referee of one task: everything that outlives a request. The stages of a verdict are in check.c and
// race.c, what a task must show before anything is judged in preflight.c, the expected values in oracle.c.
#pragma once
#include "base/json.h"
#include "cpu/compile.h"
#include "cpu/lease.h"
#include "cpu/rig.h"

enum { POOL = 8, RACE_SEEDS = 4 }; // a race draws from the first half of the pool, a recheck from the second

struct judge_ops;

struct judge {
    const struct judge_ops *ops;
    void *device;      // the ops' own
    const char *unit;  // what limits are said of: "core", "GPU"
    double slow_s;     // a call of the baseline that is longer makes the A/A floor of fewer replicates
    double copy_slack; // times the copy ceiling that nothing can exceed
    struct task task;
    struct compiler *compiler;
    struct buffers buffers;
    struct lease *lease;
    struct task_shape *hidden;
    size_t n_hidden;
    VEC(struct shape_data *) test;  // test and hidden shapes, small ones first
    VEC(struct shape_data *) bench; // in the task's order
    struct binary baseline;
    char *baseline_text;
    bool ready;      // preflight passed
    double floor;    // A/A: a log ratio
    double floor_ns; // of one call of the code that it was measured on
    int child_cpu;
    bool is_protected;
    char why[160];
    size_t llc_bytes;
    json *binaries; // id -> candidate
    char *samples;
    double copy_ceiling, fma_ceiling; // bytes and operations a second
    double launch_floor_ns;
};

// A candidate on its way.
struct entry {
    int64_t id;
    struct binary binary;
    bool by_model, approved;
};

struct race_plan;
struct race_cells;
// What a device does. Expected values, stages, statistics and words around it are the same for all.
struct judge_ops {
    // Takes the device and its lease; fills device, compiler, fingerprint and env of the `opened` event, and
    // child_cpu, llc_bytes, is_protected and why of j.
    int (*open)(struct judge *j, json *opened, struct err *e);
    void (*close)(struct judge *j); // may be NULL
    // Builds a source; on failure the fault says why and log holds the compiler's words.
    bool (*build)(struct judge *j, const json *request, struct entry *out, struct str *log, struct fault *f);
    void (*facts)(struct judge *j, const struct entry *e, json *verdict); // puts features and static
    bool (*smoke)(struct judge *j, const struct binary *b, struct fault *f);
    bool (*check)(struct judge *j, const struct binary *b, struct precision *p, struct fault *f);
    bool (*replicate)(struct judge *j, const struct binary *const binary[2], const struct race_plan *plan,
                      int number, struct race_cells *out, struct fault *f);
    // Fill in each test shape's baseline_ns, error_sq and wanted_sq, and each bench shape's baseline_ns.
    bool (*baseline_right)(struct judge *j, json *problems);
    bool (*baseline_times)(struct judge *j, json *problems);
    void (*ceilings)(struct judge *j, json *out); // also into copy_ceiling and fma_ceiling
    // Slow checks of one that won its race, before the recheck. NULL: none.
    bool (*promote)(struct judge *j, const struct binary *b, struct fault *f);
    // What a profiler says of a binary. NULL: there is none.
    bool (*profile)(struct judge *j, const struct binary *b, json *out, struct fault *f);
    // The machine code in words, assembly.h. NULL: there is none.
    bool (*assembly)(struct judge *j, const struct binary *b, struct str *out, struct fault *f);
    // Expected values from the baseline, for bench shapes whose reference takes too long. NULL: it never
    // does.
    bool (*stand_in)(struct judge *j, struct shape_data *s, struct fault *f);
};

// open.c: answers requests until the end of input.
int judge_main(struct judge *j);
size_t judge_flags(const json *request, const char *out[64]); // a request's flags; their number
void judge_cores(struct judge *j);                            // chooses the cores of judge and children

// stages.c
void judge_verdict(void *user, const json *request);
void judge_anchor(void *user, const json *request);
void judge_profile(void *user, const json *request);
void judge_assembly(void *user, const json *request);

// sample.c, baseline.c: of the CPU
void judge_spec(const struct judge *j, const struct binary *b, struct side_spec *out);
// Most wall seconds of one call at a shape: five times the baseline's and one more.
double judge_limit(const struct shape_data *s);
bool cpu_replicate(struct judge *j, const struct binary *const binary[2], const struct race_plan *plan,
                   int number, struct race_cells *out, struct fault *f);
bool cpu_baseline_right(struct judge *j, json *problems);
bool cpu_baseline_times(struct judge *j, json *problems);
void cpu_ceilings(struct judge *j, json *out);

// oracle.c: fills in what every shape is run on. progress events are sent. false: f says why.
bool oracle_fill(struct judge *j, struct fault *f);

// check.c
bool check_smoke(struct judge *j, const struct binary *b, struct fault *f);
bool check_all(struct judge *j, const struct binary *b, struct precision *p, struct fault *f);
bool check_precision(struct judge *j, const struct precision *p, double *ratio);

// race.c
struct race_shape {
    double ns[2]; // medians over replicates: incumbent, candidate
    double gain, low, high;
};
struct race {
    int replicates;
    double gain, low, high;
    struct race_shape *shapes; // one per bench shape
    bool hopeless;
    int tainted;
    json *samples;
};
struct race_cells { // one replicate
    double *ns[2];  // per bench shape: incumbent, candidate
    int tainted;
    json *samples; // rows are pushed
};
struct race_plan {
    int least, most;  // replicates
    double level;     // of the interval
    int first_seed;   // half of the pool
    double seconds;   // most wall time
    bool may_give_up; // after two replicates that are clearly slower
    int64_t report;   // id for `rate` events, -1: none
};
bool race_run(struct judge *j, const struct binary *incumbent, const struct binary *candidate,
              const struct race_plan *plan, struct race *out, struct fault *f);
void race_free(struct race *r);

// preflight.c
// The A/A floor of a binary on this machine, from `most` replicates of identical code; false where the race
// failed.
bool preflight_floor(struct judge *j, const struct binary *b, int most, struct fault *f);
void preflight_problem(json *list, const char *msg, const char *hint); // adds one
void preflight_run(struct judge *j, const json *request);
