// Scores of one attention head: S = scale * Q K^T plus a bias that grows with the distance. One score a thread;
// threadIdx.x runs over the rows of Q, so that the threads of a warp read and write rows apart.
__global__ void attention_score(float *s, const float *q, const float *k, int T, int D, float scale, float slope)
{
    // launch: attention_score<<<dim3(ceildiv(T, 16), ceildiv(T, 16)), dim3(16, 16)>>>(s, q, k, T, D, scale, slope)
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < T && j < T) {
        float acc = 0.0f;
        for (int d = 0; d < D; d++)
            acc += q[i * D + d] * k[j * D + d];
        s[i * T + j] = acc * scale + slope * (j - i);
    }
}
