// Input values: a counter-based generator, so that any element of any argument is a pure function of a secret
// seed, and contents chosen to show tricks that ordinary contents hide.
#pragma once
#include "base/task.h"

#include <stddef.h>
#include <stdint.h>

enum variant {
    VARIANT_PLAIN,
    VARIANT_SHIFTED, // other location and scale: constants, identity and copies show
    VARIANT_LARGE,   // large magnitudes: narrow intermediate types show
    VARIANT_TINY,    // denormal numbers: flush-to-zero shows
    VARIANT_COUNT
};
extern const char *const variant_names[VARIANT_COUNT];

// Fills n elements of argument number `index` at p, rounded to the argument's type.
void inputs_fill(const struct task_arg *a, int index, uint64_t seed, enum variant v, void *p, size_t n);
// Whether the variant changes anything for this argument's type and distribution.
bool inputs_varies(const struct task_arg *a, enum variant v);
