// y = a*x + y in groups of 16 bytes, one group a thread: what the memory allows is there already.
__global__ void saxpy(float *y, const float *x, float a, int N)
{
    // launch: saxpy<<<ceildiv(N, 1024), 256>>>(y, x, a, N)
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N / 4) {
        float4 u = ((const float4 *)x)[i], v = ((float4 *)y)[i];
        v.x = a * u.x + v.x;
        v.y = a * u.y + v.y;
        v.z = a * u.z + v.z;
        v.w = a * u.w + v.w;
        ((float4 *)y)[i] = v;
    }
    int tail = N / 4 * 4 + i;
    if (i < 4 && tail < N)
        y[tail] = a * x[tail] + y[tail];
}
