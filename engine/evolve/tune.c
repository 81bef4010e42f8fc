#include "evolve/tune.h"

#include <string.h>

enum { TRIES = 48 };

static int other_value(struct draw d, const char *purpose, uint64_t i, int size, int now)
{
    int v = (int)draw_below(d, purpose, i, (uint64_t)size - 1);
    return v >= now ? v + 1 : v;
}

// One of the knobs that have a choice; -1 where none has.
static int pick_knob(const struct tune_space *s, struct draw d, uint64_t i, int not_this)
{
    int open[TUNE_KNOBS_MAX], n = 0;
    for (int k = 0; k < s->n; k++)
        // cppcheck-suppress negativeIndex ; -1 names no knob, and is no index here
        if (s->sizes[k] > 1 && k != not_this)
            open[n++] = k;
    return n ? open[draw_below(d, "tune-knob", i, (uint64_t)n)] : -1;
}

static void step(const struct tune_space *s, struct draw d, uint64_t i, int k, int *out)
{
    int up = draw_bits(d, "tune-up", i) & 1;
    int v = s->at[k] + (up ? 1 : -1);
    if (v < 0 || v >= s->sizes[k])
        v = s->at[k] + (up ? -1 : 1);
    out[k] = v;
}

bool tune_next(const struct tune_space *s, struct draw d, tune_tried *tried, void *user, int *out)
{
    // step, jump, pair, restart
    static const double modes[] = {0.4, 0.2, 0.3, 0.1};
    for (uint64_t i = 0; i < TRIES; i++) {
        int mode = draw_weighted(d, "tune-mode", i, modes, 4);
        int a = pick_knob(s, d, 2 * i, -1), b = mode == 2 ? pick_knob(s, d, 2 * i + 1, a) : -1;
        if (a < 0)
            return false;
        memcpy(out, s->at, sizeof s->at);
        if (mode == 0)
            step(s, d, i, a, out);
        else if (mode < 3)
            out[a] = other_value(d, "tune-a", i, s->sizes[a], s->at[a]);
        if (b >= 0)
            out[b] = other_value(d, "tune-b", i, s->sizes[b], s->at[b]);
        if (mode == 3)
            for (int k = 0; k < s->n; k++)
                out[k] =
                    (int)draw_below(d, "tune-all", i * TUNE_KNOBS_MAX + (uint64_t)k, (uint64_t)s->sizes[k]);
        if (memcmp(out, s->at, (size_t)s->n * sizeof *out) != 0 && !tried(user, out))
            return true;
    }
    return false;
}
