// The oracle. 'real' is double when the referee compiles this; every float buffer arrives as real.
void sgemm_ref(const real *A, const real *B, real *C, int M, int N, int K)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            real sum = 0;
            for (int k = 0; k < K; k++)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}
