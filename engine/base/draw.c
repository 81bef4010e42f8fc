#include "base/draw.h"

#include "base/hash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

uint64_t draw_bits(struct draw d, const char *purpose, uint64_t index)
{
    uint64_t h = hash_bytes(purpose, strlen(purpose), d.seed);
    h = hash_mix(h ^ hash_mix(d.iteration + 0x51ed270b));
    return hash_mix(h ^ hash_mix(index + 0x2545f491));
}

double draw_unit(struct draw d, const char *purpose, uint64_t index)
{
    return (double)(draw_bits(d, purpose, index) >> 11) * 0x1p-53;
}

uint64_t draw_below(struct draw d, const char *purpose, uint64_t index, uint64_t n)
{
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)((u128)draw_bits(d, purpose, index) * n >> 64);
}

double draw_normal(struct draw d, const char *purpose, uint64_t index)
{
    // Box and Muller; 1 - u keeps the logarithm's argument positive.
    double u = 1.0 - draw_unit(d, purpose, 2 * index), v = draw_unit(d, purpose, 2 * index + 1);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

int draw_weighted(struct draw d, const char *purpose, uint64_t index, const double *weight, int n)
{
    double total = 0;
    for (int i = 0; i < n; i++)
        total += weight[i];
    double at = draw_unit(d, purpose, index) * total;
    int last = 0;
    for (int i = 0; i < n; i++) {
        if (weight[i] <= 0)
            continue;
        last = i;
        at -= weight[i];
        if (at < 0)
            return i;
    }
    return last;
}

uint64_t draw_secret(void)
{
    uint64_t x;
    if (getrandom(&x, sizeof x, 0) != (ssize_t)sizeof x) {
        fputs("ksmith: the kernel gives no random bytes (getrandom failed)\n", stderr);
        abort();
    }
    return x;
}
