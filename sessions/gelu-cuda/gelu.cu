#include <math.h>

// GELU in its tanh form, one element a thread.
__global__ void gelu(float *out, const float *x, int N)
{
    // launch: gelu<<<ceildiv(N, 128), 128>>>(out, x, N)
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        float v = x[i];
        float inner = 0.79788456f * (v + 0.044715f * v * v * v);
        out[i] = 0.5f * v * (1.0f + tanhf(inner));
    }
}
