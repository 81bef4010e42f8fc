// y = a*x + y: three memory accesses for two operations.
void saxpy(float *y, const float *x, float a, int N)
{
    for (int i = 0; i < N; i++)
        y[i] = a * x[i] + y[i];
}
