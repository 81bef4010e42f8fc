// One sweep of a five-point Jacobi solver and how much it changed: what the solver's stop test asks for.
void jacobi2d(const float *u, float *v, float *change, int H, int W)
{
    float sum = 0.0f;
    for (int i = 0; i < H; i++) {
        v[i * W] = u[i * W];
        v[i * W + W - 1] = u[i * W + W - 1];
    }
    for (int j = 0; j < W; j++) {
        v[j] = u[j];
        v[(H - 1) * W + j] = u[(H - 1) * W + j];
    }
    for (int i = 1; i < H - 1; i++) {
        float row = 0.0f;
        for (int j = 1; j < W - 1; j++) {
            float n = 0.25f * (u[(i - 1) * W + j] + u[(i + 1) * W + j] + u[i * W + j - 1] + u[i * W + j + 1]);
            float d = n - u[i * W + j];
            v[i * W + j] = n;
            row += d * d;
        }
        sum += row;
    }
    change[0] = sum;
}
