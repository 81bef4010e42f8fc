#include <math.h>

// Softmax of each of T rows. One thread does a whole row, so neighbouring threads read addresses H apart.
__global__ void softmax(float *out, const float *x, int T, int H)
{
    // launch: softmax<<<ceildiv(T, 64), 64>>>(out, x, T, H)
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= T)
        return;
    float max = x[(size_t)t * H];
    for (int h = 1; h < H; h++)
        max = fmaxf(max, x[(size_t)t * H + h]);
    float sum = 0.0f;
    for (int h = 0; h < H; h++)
        sum += expf(x[(size_t)t * H + h] - max);
    for (int h = 0; h < H; h++)
        out[(size_t)t * H + h] = expf(x[(size_t)t * H + h] - max) / sum;
}
