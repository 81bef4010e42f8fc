// The oracle, in double.
void conv2d_ref(real *out, const real *x, const real *w, int K, int C, int H, int W, int R, int S)
{
    int P = H - R + 1, Q = W - S + 1;
    for (int k = 0; k < K; k++)
        for (int p = 0; p < P; p++)
            for (int q = 0; q < Q; q++) {
                real sum = 0;
                for (int c = 0; c < C; c++)
                    for (int r = 0; r < R; r++)
                        for (int s = 0; s < S; s++)
                            sum += x[(c * H + p + r) * W + q + s] * w[((k * C + c) * R + r) * S + s];
                out[(k * P + p) * Q + q] = sum;
            }
}
