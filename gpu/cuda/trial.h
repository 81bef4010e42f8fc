// A trial as the referee asks for it (link.h has the wire's form): one or two candidates on sets of a shape,
// and what came of it in words.
#pragma once
#include "cuda/device.h"

struct trial_spec {
    const struct shape_data *shape;
    struct dataset *const *sets; // contents, in order
    size_t nsets;
    const struct gpu_kernel *kernel[2]; // [1] may be NULL: one side
    uint32_t copies;                    // sets of buffers; contents are dealt to them in turn
    uint32_t samples, repeat, flags, first_side;
    double limit_s; // of one run
};

struct trial_out {
    struct trial_answer a;
    VEC(struct item_result) results; // [sample * copies + copy][buffers], without the scratch buffers
};

// false: something ended it, and f says what; *side is whose doing it was (-1: nobody's). Wrong results are
// no fault here: see trial_words.
bool trial_run(struct device *d, struct judge *j, const struct trial_spec *s, struct trial_out *out,
               int *side, struct fault *f);
// Writes the trial and all that it needs on the device to a file, for `ksmith-cuda --card FILE`.
bool trial_record(struct device *d, struct judge *j, const struct trial_spec *s, const char *path,
                  struct fault *f);
void trial_free(struct trial_out *o);
// Whether a result is faultless; else f gets the words.
bool trial_right(const struct judge *j, const struct trial_spec *s, int buffer, const struct item_result *r,
                 struct fault *f);
// Most wall seconds of a run of n calls.
double trial_limit(const struct shape_data *s, double n);
// A binary that hung or crashed before is not run again: false and the verdict it had.
bool trial_alive(const struct device *d, const struct gpu_kernel *k, struct fault *f);
