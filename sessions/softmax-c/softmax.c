#include <math.h>

// Softmax of each of T rows: maximum, exponentials and their sum, division.
void softmax(float *out, const float *x, int T, int H)
{
    for (int t = 0; t < T; t++) {
        float max = x[t * H];
        for (int h = 1; h < H; h++)
            if (x[t * H + h] > max)
                max = x[t * H + h];
        float sum = 0.0f;
        for (int h = 0; h < H; h++) {
            out[t * H + h] = expf(x[t * H + h] - max);
            sum += out[t * H + h];
        }
        for (int h = 0; h < H; h++)
            out[t * H + h] = out[t * H + h] / sum;
    }
}
