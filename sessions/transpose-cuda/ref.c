// The oracle: nothing is computed, so the results must agree exactly.
void transpose_ref(real *out, const real *in, int M, int N)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            out[j * M + i] = in[i * N + j];
}
