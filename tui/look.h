// How a candidate looks everywhere in the workbench: glyph and slot by what it is.
#pragma once
#include "session/state.h"
#include "tui/canvas.h"

struct look {
    enum glyph glyph;
    enum slot slot;
};
// Whether its speedup may be believed: correct, and neither killed nor in quarantine.
bool look_counts(const struct candidate *c);
struct look look_of(const struct state *st, const struct candidate *c);
// "22.4x", "0.98x", or the word of its status where it has no speedup that counts.
void look_speed(const struct state *st, const struct candidate *c, char *out, size_t n);
// Ages in steps coarse enough that a still screen needs no clock: "now", "3m", "2h", "5d".
void look_age(double seconds, char *out, size_t n);
