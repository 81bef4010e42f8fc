// Sets the counters to zero: histogram only ever adds.
__global__ void histogram_clear(int *count)
{
    count[threadIdx.x] = 0;
}

// Counts the values of N bytes, one byte a thread, straight into global memory: equal values wait for each other.
__global__ void histogram(int *count, const unsigned char *x, int N)
{
    // launch: histogram_clear<<<1, 256>>>(count)
    // launch: histogram<<<ceildiv(N, 256), 256>>>(count, x, N)
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        atomicAdd(&count[x[i]], 1);
}
