// NVIDIA's own tools on one candidate, where they are installed (never required): compute-sanitizer before a
// candidate is promoted, ncu and nvdisasm on demand. The first two run the GPU process on a recorded trial.
#pragma once
#include "cuda/device.h"

// What compute-sanitizer's memcheck and racecheck say of a candidate that won a race: false and the first
// finding. True where the tool is missing or does not work on this machine.
bool tools_sanitize(struct judge *j, const struct binary *b, struct fault *f);
// The worker's `profile` request: ncu's sections of each kernel, as metrics by name.
bool tools_profile(struct judge *j, const struct binary *b, json *out, struct fault *f);
// The worker's `assembly` request: SASS, from nvdisasm.
bool tools_assembly(struct judge *j, const struct binary *b, struct str *out, struct fault *f);
