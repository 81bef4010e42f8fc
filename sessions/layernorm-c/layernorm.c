#include <math.h>

// Layer normalization: mean, variance, then scale and shift; each pass over the row by itself.
void layernorm(float *out, const float *x, const float *w, const float *b, int T, int H, float eps)
{
    for (int t = 0; t < T; t++) {
        float mean = 0.0f;
        for (int h = 0; h < H; h++)
            mean += x[t * H + h];
        mean = mean / H;
        float var = 0.0f;
        for (int h = 0; h < H; h++) {
            float d = x[t * H + h] - mean;
            var += d * d;
        }
        float scale = 1.0f / sqrtf(var / H + eps);
        for (int h = 0; h < H; h++)
            out[t * H + h] = (x[t * H + h] - mean) * scale * w[h] + b[h];
    }
}
