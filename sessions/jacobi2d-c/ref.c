// The oracle, in double: the border stays, the inside becomes the mean of its four neighbours.
void jacobi2d_ref(const real *u, real *v, real *change, int H, int W)
{
    real sum = 0;
    for (int i = 0; i < H; i++)
        for (int j = 0; j < W; j++) {
            int inside = i > 0 && i < H - 1 && j > 0 && j < W - 1;
            real n = u[i * W + j];
            if (inside)
                n = (u[(i - 1) * W + j] + u[(i + 1) * W + j] + u[i * W + j - 1] + u[i * W + j + 1]) / 4;
            sum += (n - u[i * W + j]) * (n - u[i * W + j]);
            v[i * W + j] = n;
        }
    change[0] = sum;
}
