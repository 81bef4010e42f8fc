// out[n][m] = in[m][n]: reads along rows, writes down columns, so that every thread of a warp writes elsewhere.
__global__ void transpose(float *out, const float *in, int M, int N)
{
    // launch: transpose<<<dim3(ceildiv(N, 32), ceildiv(M, 8)), dim3(32, 8)>>>(out, in, M, N)
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    int m = blockIdx.y * blockDim.y + threadIdx.y;
    if (m < M && n < N)
        out[n * M + m] = in[m * N + n];
}
