// Dot product: one running sum, so each addition waits for the one before.
void dot(const float *x, const float *y, float *out, int N)
{
    float sum = 0.0f;
    for (int i = 0; i < N; i++)
        sum += x[i] * y[i];
    out[0] = sum;
}
