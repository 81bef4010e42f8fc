// C = A * B for row-major matrices, one element a thread. Neighbouring threads take neighbouring rows, so that
// every read of A and every write of C is N or K apart.
__global__ void sgemm(const float *A, const float *B, float *C, int M, int N, int K)
{
    // launch: sgemm<<<dim3(ceildiv(M, 16), ceildiv(N, 16)), dim3(16, 16)>>>(A, B, C, M, N, K)
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= M || j >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += A[i * K + k] * B[k * N + j];
    C[i * N + j] = sum;
}
