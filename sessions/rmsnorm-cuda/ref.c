#include <tgmath.h>

// The oracle, in double: sqrt is the one of real's type.
void rmsnorm_ref(real *out, const real *x, const real *w, int T, int H, real eps)
{
    for (int t = 0; t < T; t++) {
        real sum = 0;
        for (int h = 0; h < H; h++)
            sum += x[t * H + h] * x[t * H + h];
        real scale = 1 / sqrt(sum / H + eps);
        for (int h = 0; h < H; h++)
            out[t * H + h] = x[t * H + h] * scale * w[h];
    }
}
