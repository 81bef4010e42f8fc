#include <cuda_bf16.h>

// Root mean square normalization of rows of bfloat16, summed in float. Every load is two bytes.
__global__ void rmsnorm(__nv_bfloat16 *out, const __nv_bfloat16 *x, const __nv_bfloat16 *w, int T, int H, float eps)
{
    // launch: rmsnorm<<<T, 512>>>(out, x, w, T, H, eps)
    __shared__ float part[512];
    int t = blockIdx.x;
    float sum = 0.0f;
    for (int h = threadIdx.x; h < H; h += blockDim.x) {
        float v = __bfloat162float(x[(size_t)t * H + h]);
        sum += v * v;
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s)
            part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    float scale = rsqrtf(part[0] / H + eps);
    for (int h = threadIdx.x; h < H; h += blockDim.x) {
        float v = __bfloat162float(x[(size_t)t * H + h]);
        out[(size_t)t * H + h] = __float2bfloat16(v * scale * __bfloat162float(w[h]));
    }
}
