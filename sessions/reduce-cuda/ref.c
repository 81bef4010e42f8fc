// The oracle, in double.
void reduce_ref(real *sum, const real *x, int N)
{
    real s = 0;
    for (int i = 0; i < N; i++)
        s += x[i];
    sum[0] = s;
}
