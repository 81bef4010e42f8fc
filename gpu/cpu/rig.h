// One arena with up to two children on it, and the whole life of a run: fresh inputs, poison, conditioning,
// go, done, and the judgement of that very run.
#pragma once
#include "cpu/compare.h"
#include "cpu/data.h"
#include "cpu/side.h"

enum { SCRIBBLES = 4 };

struct rig {
    const struct task *task;
    const struct buffers *buffers;
    bool real; // a reference runs here: floats are doubles
    enum condition condition;
    struct arena arena;
    struct side side[2];
    const struct shape_data *shape; // laid out now
    uint64_t salt;                  // of the poison
    struct {
        uint32_t at[SCRIBBLES];
    } scribble[MAX_BUFFERS];
    // The last set that each side ran, to recognise an answer that was kept.
    const struct dataset *last[2];
    const struct shape_data *last_shape[2];
};

struct precision {
    double error_sq, wanted_sq, max_ulp;
};

// Rooms large enough for each of the n shapes.
bool rig_open(struct rig *r, const struct task *t, const struct buffers *b, struct shape_data *const *shapes,
              size_t n, bool real, struct fault *f);
void rig_close(struct rig *r);
bool rig_start(struct rig *r, int side, const struct side_spec *spec, struct fault *f);
// New places for every buffer; at least `align` bytes aligned, or what the task promises where that is more.
void rig_place(struct rig *r, const struct shape_data *s, enum placement how, size_t align);
// Writes the inputs of a set and poisons the outputs.
void rig_load(struct rig *r, const struct dataset *d);
// Arguments and conditioning on a side.
bool rig_prepare(struct rig *r, int side, struct fault *f);
// One call. *ns is its wall time as the judge saw it; *late (may be NULL) how long the harness took to answer
// afterwards.
bool rig_call(struct rig *r, int side, double limit_s, int64_t *ns, int64_t *late, struct fault *f);
// Judges the run that has just ended; p (may be NULL) collects the error.
bool rig_judge(struct rig *r, int side, const struct dataset *d, struct precision *p, struct fault *f);
// load, prepare, call, judge.
bool rig_run(struct rig *r, int side, const struct dataset *d, double limit_s, int64_t *ns,
             struct precision *p, struct fault *f);
// Copies what a reference left in the buffers into the set's wanted values.
void rig_collect(struct rig *r, struct dataset *d);
