// The search over knobs: given where a candidate stands, the next point to try. Landscapes are rugged (a 4x16
// register tile 5x, 4x64 70x, 6x48 103x at one size), so single steps, jumps, pairs and restarts are mixed.
#pragma once
#include "base/draw.h"

#include <stdbool.h>

enum { TUNE_KNOBS_MAX = 16 };

struct tune_space {
    int n;
    int sizes[TUNE_KNOBS_MAX]; // how many values each knob has
    int at[TUNE_KNOBS_MAX];    // index of the current value
};

// Whether a point was tried before (or cannot be).
typedef bool tune_tried(void *user, const int *point);
// Draws an untried point near space->at into out; false where some 48 draws found none.
bool tune_next(const struct tune_space *space, struct draw d, tune_tried *tried, void *user, int *out);
