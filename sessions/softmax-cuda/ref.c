#include <tgmath.h>

// The oracle, in double.
void softmax_ref(real *out, const real *x, int T, int H)
{
    for (int t = 0; t < T; t++) {
        real max = x[t * H];
        for (int h = 1; h < H; h++)
            max = fmax(max, x[t * H + h]);
        real sum = 0;
        for (int h = 0; h < H; h++)
            sum += exp(x[t * H + h] - max);
        for (int h = 0; h < H; h++)
            out[t * H + h] = exp(x[t * H + h] - max) / sum;
    }
}
