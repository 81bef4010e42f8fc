// The oracle, in double.
void dot_ref(const real *x, const real *y, real *out, int N)
{
    real sum = 0;
    for (int i = 0; i < N; i++)
        sum += x[i] * y[i];
    out[0] = sum;
}
