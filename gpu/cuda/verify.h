// Correct on every test and hidden shape, for every kind of contents, wherever the buffers lie; and what the
// baseline shows of itself. The judge_ops of the GPU that check.
#pragma once
#include "cuda/device.h"

bool cuda_smoke(struct judge *j, const struct binary *b, struct fault *f);
bool cuda_check(struct judge *j, const struct binary *b, struct precision *p, struct fault *f);
bool cuda_baseline_right(struct judge *j, json *problems);
bool cuda_stand_in(struct judge *j, struct shape_data *s, struct fault *f);
// timing.c
bool cuda_baseline_times(struct judge *j, json *problems);
void cuda_ceilings(struct judge *j, json *out);
bool cuda_replicate(struct judge *j, const struct binary *const binary[2], const struct race_plan *plan,
                    int number, struct race_cells *out, struct fault *f);
