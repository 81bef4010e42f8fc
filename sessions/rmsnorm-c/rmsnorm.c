#include <math.h>

// RMS normalization of T rows of H numbers, as a transformer's inference code has it.
void rmsnorm(float *out, const float *x, const float *w, int T, int H, float eps)
{
    for (int t = 0; t < T; t++) {
        float sum = 0.0f;
        for (int h = 0; h < H; h++)
            sum += x[t * H + h] * x[t * H + h];
        float scale = 1.0f / sqrtf(sum / H + eps);
        for (int h = 0; h < H; h++)
            out[t * H + h] = x[t * H + h] * scale * w[h];
    }
}
