// What kernels are run on: every shape of the task with sets of secret inputs and the results that the oracle
// found for them. The results never leave this process.
#pragma once
#include "base/task.h"
#include "cpu/control.h"
#include "cpu/inputs.h"

struct wanted {
    double *real; // of float outputs, in double
    void *exact;  // of integer outputs, as they are stored
    double rms;   // root mean square of the finite ones
};

struct dataset {
    uint64_t seed;
    enum variant variant;
    void *in[MAX_BUFFERS];                                       // stored bytes of in and inout buffers
    struct wanted wanted[MAX_BUFFERS];                           // of out and inout buffers
    uint32_t device_in[MAX_BUFFERS], device_wanted[MAX_BUFFERS]; // a GPU's copies, by its numbers; 0: none
    bool ready;                                                  // wanted is filled in
    bool useless; // the reference does not stay finite, or the baseline fails: not used
};

struct shape_data {
    const struct task_shape *shape; // borrowed
    int64_t elements[MAX_BUFFERS];
    size_t bytes; // of all buffers as the kernel sees them
    VEC(struct dataset *) sets;
    double baseline_ns;      // one call of the baseline, roughly; 0: not known
    bool baseline_is_oracle; // the reference would take too long
    // The baseline's own error: sums over what was checked.
    double error_sq, wanted_sq;
};

// Buffers are numbered in parameter order, without dims and values.
struct buffers {
    int n;
    int arg[MAX_BUFFERS]; // index into task.args
};
int buffers_of(const struct task *t, struct buffers *b, struct err *e);
static inline const struct task_arg *buffer_arg(const struct task *t, const struct buffers *b, int i)
{
    return &t->args.v[b->arg[i]];
}

int shape_data_init(struct shape_data *s, const struct task *t, const struct buffers *b,
                    const struct task_shape *shape, struct err *e);
void shape_data_free(struct shape_data *s);
// Bytes of memory that one set takes.
size_t dataset_bytes(const struct task *t, const struct buffers *b, const struct shape_data *s);
struct dataset *dataset_new(const struct task *t, const struct buffers *b, const struct shape_data *s,
                            uint64_t seed, enum variant v);
void dataset_free(struct dataset *d);
// Lays out a call: buffers at the addresses given, dims and values by their types. -1: too many arguments.
// real: for a reference, to which every floating-point value is passed as double.
int call_layout(const struct task *t, const struct buffers *b, const int64_t *dims, const uint64_t *address,
                bool real, struct call_args *out, struct err *e);
