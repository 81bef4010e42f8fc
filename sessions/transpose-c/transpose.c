// out[j][i] = x[i][j]: reads run along rows, writes jump by a whole row.
void transpose(float *out, const float *x, int M, int N)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            out[j * M + i] = x[i * N + j];
}
