// The oracle, in double.
void saxpy_ref(real *y, const real *x, real a, int N)
{
    for (int i = 0; i < N; i++)
        y[i] = a * x[i] + y[i];
}
