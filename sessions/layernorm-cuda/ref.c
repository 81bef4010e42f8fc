#include <tgmath.h>

// The oracle, in double.
void layernorm_ref(real *out, const real *x, const real *w, const real *b, int T, int H, real eps)
{
    for (int t = 0; t < T; t++) {
        real mean = 0;
        for (int h = 0; h < H; h++)
            mean += x[t * H + h];
        mean /= H;
        real var = 0;
        for (int h = 0; h < H; h++)
            var += (x[t * H + h] - mean) * (x[t * H + h] - mean);
        real scale = 1 / sqrt(var / H + eps);
        for (int h = 0; h < H; h++)
            out[t * H + h] = (x[t * H + h] - mean) * scale * w[h] + b[h];
    }
}
