// The oracle, in double.
void attention_score_ref(real *s, const real *q, const real *k, int T, int D, real scale, real slope)
{
    for (int i = 0; i < T; i++)
        for (int j = 0; j < T; j++) {
            real acc = 0;
            for (int d = 0; d < D; d++)
                acc += q[i * D + d] * k[j * D + d];
            s[i * T + j] = acc * scale + slope * (j - i);
        }
}
