// The sum of N floats, as the first version of a well-known lecture has it: interleaved addressing, where half of the
// threads of every warp have nothing to do and the others step over each other's banks.
__global__ void reduce_blocks(const float *x, float *part, int N)
{
    __shared__ float s[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    s[threadIdx.x] = i < N ? x[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        if (threadIdx.x % (2 * step) == 0)
            s[threadIdx.x] += s[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        part[blockIdx.x] = s[0];
}

// The same once more over what the blocks left, by one block.
__global__ void reduce(float *sum, const float *part, int n)
{
    // launch: reduce_blocks<<<ceildiv(N, 256), 256>>>(x, part, N)
    // launch: reduce<<<1, 256>>>(sum, part, ceildiv(N, 256))
    // scratch: part f32[ceildiv(N, 256)]
    __shared__ float s[256];
    float mine = 0.0f;
    for (int i = threadIdx.x; i < n; i += 256)
        mine += part[i];
    s[threadIdx.x] = mine;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        if (threadIdx.x % (2 * step) == 0)
            s[threadIdx.x] += s[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sum[0] = s[0];
}
