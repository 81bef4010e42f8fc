// Layer normalization: one block of 1024 threads a row, whatever the row's length. Two sums, each a tree in
// shared memory with a barrier a step.
__global__ void layernorm(float *out, const float *x, const float *w, const float *b, int T, int H, float eps)
{
    // launch: layernorm<<<T, 1024>>>(out, x, w, b, T, H, eps)
    __shared__ float part[1024];
    int t = blockIdx.x, tid = threadIdx.x;
    float sum = 0.0f;
    for (int h = tid; h < H; h += 1024)
        sum += x[(size_t)t * H + h];
    part[tid] = sum;
    __syncthreads();
    for (int s = 512; s > 0; s >>= 1) {
        if (tid < s)
            part[tid] += part[tid + s];
        __syncthreads();
    }
    float mean = part[0] / H;
    __syncthreads();
    float square = 0.0f;
    for (int h = tid; h < H; h += 1024) {
        float d = x[(size_t)t * H + h] - mean;
        square += d * d;
    }
    part[tid] = square;
    __syncthreads();
    for (int s = 512; s > 0; s >>= 1) {
        if (tid < s)
            part[tid] += part[tid + s];
        __syncthreads();
    }
    float scale = 1.0f / sqrtf(part[0] / H + eps);
    for (int h = tid; h < H; h += 1024)
        out[(size_t)t * H + h] = (x[(size_t)t * H + h] - mean) * scale * w[h] + b[h];
}
