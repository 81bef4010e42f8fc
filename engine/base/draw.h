// Counter-based random draws: a draw is a pure function of (seed, iteration, purpose, index), so nothing has
// to be saved to resume and two runs with the same journal draw the same. Purpose is a short fixed name of
// the decision.
#pragma once
#include <stdint.h>

struct draw {
    uint64_t seed;
    uint64_t iteration;
};

uint64_t draw_bits(struct draw d, const char *purpose, uint64_t index);
double draw_unit(struct draw d, const char *purpose, uint64_t index); // in [0, 1)
// In [0, n), unbiased to 2^-64; n must be positive.
uint64_t draw_below(struct draw d, const char *purpose, uint64_t index, uint64_t n);
double draw_normal(struct draw d, const char *purpose, uint64_t index); // mean 0, deviation 1
// An index drawn with the given weights (not all of them zero, none negative).
int draw_weighted(struct draw d, const char *purpose, uint64_t index, const double *weight, int n);
// 64 bits that nobody can predict (getrandom); for secret seeds, never for decisions that must replay.
uint64_t draw_secret(void);
