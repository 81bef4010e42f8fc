// Kernels in many spellings for test_cuda_rules.c: arguments and shapes as task.ini has them, and recipes:
// rules applied in order, "!rule" where it must refuse.
#pragma once
#include <stddef.h>

struct kernel {
    const char *name, *func, *head, *args, *shapes, *source;
    const char *recipes[4];
};

#define ELEMENT "y = out f32[N] align=16\nx = in f32[N] align=16\nN = dim i32\n"
#define ODD "y = out f32[N]\nx = in f32[N]\nN = dim i32\n"
#define INPLACE "y = inout f32[N]\nx = in f32[N]\nN = dim i32\n"
#define SIZES "a = N=1 test\nb = N=7 test\nc = N=512 test\nd = N=1003 test bench\n"
#define ROW "out = out f32[T,H] align=16\nx = in f32[T,H] align=16\nT = dim i32\nH = dim i32\n"
#define ROWS "a = T=1 H=64 test\nb = T=5 H=1 test\nc = T=3 H=100 test\nd = T=37 H=131 test bench\n"
#define RUN(grid) "    // launch: k<<<" grid ">>>(y, x, N)\n"
#define HEAD "__global__ void k(float *y, const float *x, int N)\n{\n"
#define ID "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"

#define MM                                                                                                 \
    "C = out f32[M,N] align=16\nA = in f32[M,K] align=16\nB = in f32[K,N] align=16\nM = dim i32\nN = dim " \
    "i32\nK = dim i32\n"
#define MMS \
    "a = M=1 N=1 K=1 test\nb = M=5 N=7 K=3 test\nc = M=70 N=33 K=20 test\nd = M=130 N=68 K=36 test bench\n"
#define MMH                                                                                                \
    "__global__ void k(float *C, const float *A, const float *B, int M, int N, int K)\n{\n    // launch: " \
    "k<<<dim3(ceildiv(N, 16), ceildiv(M, 16)), dim3(16, 16)>>>(C, A, B, M, N, K)\n"
#define MMX                                                                                                \
    "__global__ void k(float *C, const float *A, const float *B, int M, int N, int K)\n{\n    // launch: " \
    "k<<<dim3(ceildiv(M, 16), ceildiv(N, 16)), dim3(16, 16)>>>(C, A, B, M, N, K)\n"
#define IJ "    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;\n"
#define PL "y = out f32[N,M] align=16\nx = in f32[M,N] align=16\nM = dim i32\nN = dim i32\n"
#define PLS "a = M=1 N=1 test\nb = M=3 N=50 test\nc = M=64 N=64 test\nd = M=97 N=65 test bench\n"
#define PLH                                                                                                  \
    "__global__ void k(float *y, const float *x, int M, int N)\n{\n    // launch: k<<<dim3(ceildiv(N, 32), " \
    "ceildiv(M, 8)), dim3(32, 8)>>>(y, x, M, N)\n"

static const struct kernel kernels[] = {
    {"sessions/gelu-cuda",
     NULL,
     NULL,
     NULL,
     NULL,
     NULL,
     {"stride", "stride vector threads", "threads !threads stride !stride vector !vector"}},
    {"sessions/histogram-cuda", NULL, NULL, NULL, NULL, NULL, {"stride vector counters !counters", "stride counters vector threads", "stride cached"}},
    {"sessions/layernorm-cuda",
     NULL,
     NULL,
     NULL,
     NULL,
     NULL,
     {"threads !stride", "tree tree vector threads", "threads tree vector !vector"}},
    {"sessions/rmsnorm-cuda",
     NULL,
     NULL,
     NULL,
     NULL,
     NULL,
     {"threads tree", "vector", "threads vector tree"}},
    {"sessions/softmax-cuda",
     NULL,
     NULL,
     NULL,
     NULL,
     NULL,
     {"rows vector", "rows:team=warp vector", "threads rows"}},
    {"sessions/attention-score-cuda",
     NULL,
     NULL,
     NULL,
     NULL,
     NULL,
     {"threads !stride !vector", "swap !swap threads", "matmul"}},
    // Elements, in the ways they are written.
    {"test <",
     "k",
     NULL,
     ODD,
     SIZES,
     HEAD RUN("ceildiv(N, 128), 128") ID "    if (i < N)\n        y[i] = x[i] * 2.0f;\n}\n",
     {"stride vector", "threads stride vector", "stride threads"}},
    {"test >=",
     "k",
     NULL,
     ODD,
     SIZES,
     HEAD RUN("(N + 63) / 64, 64") ID
     "    if (i >= N)\n        return;\n    float v = x[i];\n    y[i] = v * v;\n}\n",
     {"stride vector", "threads stride"}},
    {"no braces, other order",
     "k",
     NULL,
     ELEMENT,
     SIZES,
     HEAD RUN("(N + 256 - 1) / 256, 256") "    const int i = threadIdx.x + blockDim.x * blockIdx.x;\n    if "
                                          "(N > i) { y[i] = x[i] + 1; }\n}\n",
     {"stride vector", "threads stride vector"}},
    {"block is a literal",
     "k",
     NULL,
     ELEMENT,
     SIZES,
     HEAD RUN("ceildiv(N, 256), 256") "    int i = blockIdx.x * 256 + threadIdx.x;\n    if (i < N)\n        "
                                      "y[i] = x[i] * 3;\n}\n",
     {"stride vector", "threads stride vector"}},
    {"block is a constant",
     "k",
     NULL,
     ELEMENT,
     SIZES,
     HEAD "#define THREADS 64 /* warps */\n" RUN(
         "ceildiv(N, THREADS), THREADS") "    int i = blockIdx.x * THREADS + threadIdx.x;\n    if (i < N)\n  "
                                         "      y[i] = x[i] * 3;\n}\n",
     {"stride vector", "threads stride vector"}},
    {"constant outside the body",
     "k",
     NULL,
     ELEMENT,
     SIZES,
     "#define THREADS 64\n" HEAD RUN(
         "ceildiv(N, THREADS), THREADS") "    int i = blockIdx.x * THREADS + threadIdx.x;\n    if (i < N)\n  "
                                         "      y[i] = x[i] * 3;\n}\n",
     {"!threads stride vector"}},
    {"in place",
     "k",
     NULL,
     INPLACE,
     SIZES,
     HEAD RUN("ceildiv(N, 64), 64") ID "    if (i < N)\n        y[i] = 2 * x[i] + y[i];\n}\n",
     {"stride vector"}},
    {"plus",
     "k",
     NULL,
     INPLACE,
     SIZES,
     HEAD RUN("ceildiv(N, 64), 64") ID "    if (i < N)\n        y[i] += 2 * x[i];\n}\n",
     {"stride vector"}},
    {"grid stride already",
     "k",
     NULL,
     ELEMENT,
     SIZES,
     HEAD RUN("8, 64") "    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * "
                       "blockDim.x)\n        y[i] = x[i] > 0 ? x[i] : 0;\n}\n",
     {"!stride vector threads"}},
    {"size_t and a stride variable",
     "k",
     NULL,
     ELEMENT,
     SIZES,
     HEAD RUN("8, 64") "    size_t step = (size_t)blockDim.x * gridDim.x;\n    for (size_t i = "
                       "(size_t)blockIdx.x * blockDim.x + threadIdx.x; i < N; i += step) {\n        float a "
                       "= x[i];\n        y[i] = a + 1;\n    }\n}\n",
     {"vector", "threads vector"}},
    {"a neighbour is read",
     "k",
     NULL,
     ELEMENT,
     SIZES,
     HEAD RUN("ceildiv(N, 64), 64") ID "    if (i < N)\n        y[i] = x[i] + x[i > 0 ? i - 1 : 0];\n}\n",
     {"stride vector"}},
    {"written backwards",
     "k",
     NULL,
     ELEMENT,
     SIZES,
     HEAD RUN("ceildiv(N, 64), 64") ID "    if (i < N)\n        y[N - 1 - i] = x[i];\n}\n",
     {"stride !vector"}},
    {"written under a condition",
     "k",
     NULL,
     INPLACE,
     SIZES,
     HEAD RUN("ceildiv(N, 64), 64") ID "    if (i < N)\n        if (x[i] > 0)\n            y[i] = x[i];\n}\n",
     {"stride !vector"}},
    {"a fixed grid",
     "k",
     NULL,
     ELEMENT,
     "a = N=512 test bench\n",
     HEAD RUN("8, 64") "    y[blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + "
                       "threadIdx.x];\n}\n",
     {"!threads !stride !vector"}},
    {"two bounds",
     "k",
     NULL,
     ELEMENT,
     SIZES,
     HEAD RUN("ceildiv(N, 64), 64") ID
     "    if (i < N)\n        y[i] = x[i];\n    if (i == 0)\n        y[0] = 5;\n}\n",
     {"!stride threads"}},
    {"rows by pointers",
     "k",
     NULL,
     ROW,
     ROWS,
     "__global__ void k(float *out, const float *x, int T, int H)\n{\n    // launch: k<<<T, 128>>>(out, x, "
     "T, H)\n    const float *row = x + (size_t)blockIdx.x * H;\n    float *to = out + (size_t)blockIdx.x * "
     "H;\n    for (int h = threadIdx.x; h < H; h += blockDim.x)\n        to[h] = row[h] * 2 + h;\n}\n",
     {"vector threads", "threads"}},
    {"lanes",
     "k",
     NULL,
     ROW,
     ROWS,
     "__global__ void k(float *out, const float *x, int T, int H)\n{\n    // launch: k<<<ceildiv(T, 4), "
     "128>>>(out, x, T, H)\n    int lane = threadIdx.x % 32, t = blockIdx.x * 4 + threadIdx.x / 32;\n    if "
     "(t < T)\n        for (int h = lane; h < H; h += 32)\n            out[t * H + h] = x[t * H + h] + "
     "1;\n}\n",
     {"vector", "!threads"}},
    // Rows, a thread each.
    {"layer norm by rows",
     "k",
     NULL,
     ROW,
     ROWS,
     "__global__ void k(float *out, const float *x, int T, int H)\n{\n    // launch: k<<<(T + 31) / 32, "
     "32>>>(out, x, T, H)\n    int t = blockIdx.x * blockDim.x + threadIdx.x;\n    if (t < T) {\n        "
     "const float *r = x + t * H;\n        float mean = 0, var = 0;\n        for (int h = 0; h < H; h++)\n   "
     "         mean += r[h];\n        mean /= H;\n        for (int h = 0; h < H; h++) {\n            float d "
     "= r[h] - mean;\n            var += d * d;\n        }\n        var = rsqrtf(var / H + 1e-5f);\n        "
     "for (int h = 0; h < H; h++)\n            out[t * H + h] = (r[h] - mean) * var;\n    }\n}\n",
     {"rows vector", "rows:team=warp vector", "threads rows:team=warp"}},
    {"softmax that stores on the way",
     "k",
     NULL,
     ROW,
     ROWS,
     "__global__ void k(float *out, const float *x, int T, int H)\n{\n    // launch: k<<<ceildiv(T, 128), "
     "128>>>(out, x, T, H)\n    int row = blockIdx.x * 128 + threadIdx.x;\n    if (row >= T) return;\n    "
     "float m = x[row * H], s = 0;\n    for (int j = 1; j < H; j++)\n        if (x[row * H + j] > m)\n       "
     "     m = x[row * H + j];\n    for (int j = 0; j < H; j++) {\n        out[row * H + j] = expf(x[row * H "
     "+ j] - m);\n        s += out[row * H + j];\n    }\n    for (int j = 0; j < H; ++j)\n        out[row * "
     "H + j] /= s;\n}\n",
     {"rows", "rows:team=warp"}},
    {"two sums and a minimum",
     "k",
     NULL,
     "y = out f32[T] align=16\nx = in f32[T,H] align=16\nT = dim i32\nH = dim i32\n",
     ROWS,
     "__global__ void k(float *y, const float *x, int T, int H)\n{\n    // launch: k<<<ceildiv(T, 64), "
     "64>>>(y, x, T, H)\n    int t = blockIdx.x * blockDim.x + threadIdx.x;\n    if (t < T) {\n        float "
     "a = 3, b = 0, low = 1e30f;\n        for (int h = 0; h < H; h++) {\n            a += x[t * H + h];\n    "
     "        b += x[t * H + h] * x[t * H + h];\n            low = fminf(low, x[t * H + h]);\n        }\n    "
     "    y[t] = a + b - low;\n    }\n}\n",
     {"rows vector", "rows:team=warp vector"}},
    {"a running sum",
     "k",
     NULL,
     ROW,
     ROWS,
     "__global__ void k(float *out, const float *x, int T, int H)\n{\n    // launch: k<<<ceildiv(T, 64), "
     "64>>>(out, x, T, H)\n    int t = blockIdx.x * blockDim.x + threadIdx.x;\n    if (t < T) {\n        "
     "float a = 0;\n        for (int h = 0; h < H; h++) {\n            a += x[t * H + h];\n            out[t "
     "* H + h] = a;\n        }\n    }\n}\n",
     {"!rows"}},
    {"an online maximum and sum",
     "k",
     NULL,
     "y = out f32[T]\nx = in f32[T,H]\nT = dim i32\nH = dim i32\n",
     ROWS,
     "__global__ void k(float *y, const float *x, int T, int H)\n{\n    // launch: k<<<ceildiv(T, 64), "
     "64>>>(y, x, T, H)\n    int t = blockIdx.x * blockDim.x + threadIdx.x;\n    if (t < T) {\n        float "
     "m = -1e30f, s = 0;\n        for (int h = 0; h < H; h++) {\n            float n = fmaxf(m, x[t * H + "
     "h]);\n            s = s * expf(m - n) + expf(x[t * H + h] - n);\n            m = n;\n        }\n       "
     " y[t] = m + logf(s);\n    }\n}\n",
     {"!rows"}},
    // Sums over blocks.
    {"interleaved",
     "k",
     "evolve = file\n",
     "y = out f32[1]\nx = in f32[N] align=16\nN = dim i32\n",
     SIZES,
     "__global__ void part(const float *x, float *p, int N)\n{\n    __shared__ float s[128];\n    int i = "
     "blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;\n    s[t] = i < N ? x[i] : 0;\n    "
     "__syncthreads();\n    for (int k = 1; k < blockDim.x; k *= 2) {\n        if (t % (2 * k) == 0)\n       "
     "     s[t] += s[t + k];\n        __syncthreads();\n    }\n    if (t == 0)\n        p[blockIdx.x] = "
     "s[0];\n}\n"
     "__global__ void k(float *y, const float *p, int n)\n{\n    // launch: part<<<ceildiv(N, 128), "
     "128>>>(x, p, N)\n    // launch: k<<<1, 32>>>(y, p, ceildiv(N, 128))\n    // scratch: p f32[ceildiv(N, "
     "128)]\n    if (threadIdx.x == 0) {\n        float a = 0;\n        for (int i = 0; i < n; i++)\n        "
     "    a += p[i];\n        y[0] = a;\n    }\n}\n",
     {"tree@part", "coarsen@part tree@part vector@part threads@part", "threads@part coarsen@part tree@part"}},
    {"interleaved, number",
     "k",
     "evolve = file\n",
     "y = out f32[1]\nx = in f32[N] align=16\nN = dim i32\n",
     SIZES,
     "__global__ void part(const float *x, float *p, int N)\n{\n    __shared__ float s[128];\n    int i = "
     "blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;\n    s[t] = i < N ? x[i] : 0;\n    "
     "__syncthreads();\n    for (unsigned int k = 1; k < 128; k <<= 1) {\n        if (threadIdx.x % (k * 2) "
     "== 0) {\n            s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + k];\n        }\n        "
     "__syncthreads();\n    }\n    if (t == 0)\n        p[blockIdx.x] = s[0];\n}\n"
     "__global__ void k(float *y, const float *p, int n)\n{\n    // launch: part<<<ceildiv(N, 128), "
     "128>>>(x, p, N)\n    // launch: k<<<1, 32>>>(y, p, ceildiv(N, 128))\n    // scratch: p f32[ceildiv(N, "
     "128)]\n    if (threadIdx.x == 0) {\n        float a = 0;\n        for (int i = 0; i < n; i++)\n        "
     "    a += p[i];\n        y[0] = a;\n    }\n}\n",
     {"tree@part", "coarsen@part tree@part vector@part threads@part", "threads@part coarsen@part tree@part"}},
    {"strided",
     "k",
     "evolve = file\n",
     "y = out f32[1]\nx = in f32[N] align=16\nN = dim i32\n",
     SIZES,
     "__global__ void part(const float *x, float *p, int N)\n{\n    __shared__ float s[128];\n    int i = "
     "blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;\n    s[t] = i < N ? x[i] : 0;\n    "
     "__syncthreads();\n    for (int k = 1; k < blockDim.x; k *= 2) {\n        int at = 2 * k * t;\n        "
     "if (at < blockDim.x)\n            s[at] += s[at + k];\n        __syncthreads();\n    }\n    if (t == "
     "0)\n        p[blockIdx.x] = s[0];\n}\n"
     "__global__ void k(float *y, const float *p, int n)\n{\n    // launch: part<<<ceildiv(N, 128), "
     "128>>>(x, p, N)\n    // launch: k<<<1, 32>>>(y, p, ceildiv(N, 128))\n    // scratch: p f32[ceildiv(N, "
     "128)]\n    if (threadIdx.x == 0) {\n        float a = 0;\n        for (int i = 0; i < n; i++)\n        "
     "    a += p[i];\n        y[0] = a;\n    }\n}\n",
     {"tree@part", "coarsen@part tree@part vector@part threads@part", "threads@part coarsen@part tree@part"}},
    {"halving",
     "k",
     "evolve = file\n",
     "y = out f32[1]\nx = in f32[N] align=16\nN = dim i32\n",
     SIZES,
     "__global__ void part(const float *x, float *p, int N)\n{\n    __shared__ float s[128];\n    int i = "
     "blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;\n    s[t] = i < N ? x[i] : 0;\n    "
     "__syncthreads();\n    for (int k = blockDim.x / 2; k > 0; k >>= 1) {\n        if (t < k)\n            "
     "s[t] += s[t + k];\n        __syncthreads();\n    }\n    if (t == 0)\n        p[blockIdx.x] = s[0];\n}\n"
     "__global__ void k(float *y, const float *p, int n)\n{\n    // launch: part<<<ceildiv(N, 128), "
     "128>>>(x, p, N)\n    // launch: k<<<1, 32>>>(y, p, ceildiv(N, 128))\n    // scratch: p f32[ceildiv(N, "
     "128)]\n    if (threadIdx.x == 0) {\n        float a = 0;\n        for (int i = 0; i < n; i++)\n        "
     "    a += p[i];\n        y[0] = a;\n    }\n}\n",
     {"tree@part", "coarsen@part tree@part vector@part threads@part", "threads@part coarsen@part tree@part"}},
    {"halving, number",
     "k",
     "evolve = file\n",
     "y = out f32[1]\nx = in f32[N] align=16\nN = dim i32\n",
     SIZES,
     "__global__ void part(const float *x, float *p, int N)\n{\n    __shared__ float s[128];\n    int i = "
     "blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;\n    s[t] = i < N ? x[i] : 0;\n    "
     "__syncthreads();\n    for (int k = 64; k > 0; k /= 2) {\n        if (t < k)\n            s[t] += s[t + "
     "k];\n        __syncthreads();\n    }\n    if (t == 0)\n        p[blockIdx.x] = s[0];\n}\n"
     "__global__ void k(float *y, const float *p, int n)\n{\n    // launch: part<<<ceildiv(N, 128), "
     "128>>>(x, p, N)\n    // launch: k<<<1, 32>>>(y, p, ceildiv(N, 128))\n    // scratch: p f32[ceildiv(N, "
     "128)]\n    if (threadIdx.x == 0) {\n        float a = 0;\n        for (int i = 0; i < n; i++)\n        "
     "    a += p[i];\n        y[0] = a;\n    }\n}\n",
     {"tree@part", "coarsen@part tree@part vector@part threads@part", "threads@part coarsen@part tree@part"}},
    {"halving, last first",
     "k",
     "evolve = file\n",
     "y = out f32[1]\nx = in f32[N] align=16\nN = dim i32\n",
     SIZES,
     "__global__ void part(const float *x, float *p, int N)\n{\n    __shared__ float s[128];\n    int i = "
     "blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;\n    s[t] = i < N ? x[i] : 0;\n    "
     "__syncthreads();\n    for (unsigned k = blockDim.x >> 1; k >= 1; k = k / 2) {\n        if (t < k)\n    "
     "        s[t] = s[t + k] + s[t];\n        __syncthreads();\n    }\n    if (t == 0)\n        "
     "p[blockIdx.x] = s[0];\n}\n"
     "__global__ void k(float *y, const float *p, int n)\n{\n    // launch: part<<<ceildiv(N, 128), "
     "128>>>(x, p, N)\n    // launch: k<<<1, 32>>>(y, p, ceildiv(N, 128))\n    // scratch: p f32[ceildiv(N, "
     "128)]\n    if (threadIdx.x == 0) {\n        float a = 0;\n        for (int i = 0; i < n; i++)\n        "
     "    a += p[i];\n        y[0] = a;\n    }\n}\n",
     {"tree@part", "coarsen@part tree@part vector@part threads@part", "threads@part coarsen@part tree@part"}},
    {"a tree of half",
     "k",
     "evolve = file\n",
     "y = out f32[1]\nx = in f32[N] align=16\nN = dim i32\n",
     SIZES,
     "__global__ void part(const float *x, float *p, int N)\n{\n    __shared__ float s[128];\n    int i = "
     "blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;\n    s[t] = i < N ? x[i] : 0;\n    "
     "__syncthreads();\n    for (int k = 32; k > 0; k /= 2) {\n        if (t < k)\n            s[t] += s[t + "
     "k];\n        __syncthreads();\n    }\n    if (t == 0)\n        s[0] += 0 * s[1];\n    if (t == 0)\n    "
     "    p[blockIdx.x] = s[0];\n}\n"
     "__global__ void k(float *y, const float *p, int n)\n{\n    // launch: part<<<ceildiv(N, 128), "
     "128>>>(x, p, N)\n    // launch: k<<<1, 32>>>(y, p, ceildiv(N, 128))\n    // scratch: p f32[ceildiv(N, "
     "128)]\n    if (threadIdx.x == 0) {\n        float a = 0;\n        for (int i = 0; i < n; i++)\n        "
     "    a += p[i];\n        y[0] = a;\n    }\n}\n",
     {"!tree@part !coarsen@part"}},
    // Products of matrices.
    {"product",
     "k",
     NULL,
     MM,
     MMS,
     MMH IJ "    if (i < M && j < N) {\n        float s = 0;\n        for (int k = 0; k < K; k++)\n          "
            "  s += A[i * K + k] * B[k * N + j];\n        C[i * N + j] = s;\n    }\n}\n",
     {"matmul", "threads", "!swap !turn"}},
    {"product, x over rows",
     "k",
     NULL,
     MM,
     MMS,
     MMX "    int row = blockIdx.x * blockDim.x + threadIdx.x;\n    int col = blockIdx.y * blockDim.y + "
         "threadIdx.y;\n    if (row >= M || col >= N)\n        return;\n    float s = 0.0f;\n    for (int k "
         "= 0; k < K; ++k)\n        s = s + A[row * K + k] * B[k * N + col];\n    C[row * N + col] = s;\n}\n",
     {"matmul", "swap matmul"}},
    {"product, fmaf and two tests",
     "k",
     NULL,
     MM,
     MMS,
     MMH IJ "    if (i >= M) return;\n    if (j >= N) return;\n    float s = 0.0f;\n    for (int k = 0; k < "
            "K; k++)\n        s = fmaf(A[i * K + k], B[k * N + j], s);\n    C[i * N + j] = s;\n}\n",
     {"matmul"}},
    {"product, literal block",
     "k",
     NULL,
     MM,
     MMS,
     MMH "    const int j = blockIdx.x * 16 + threadIdx.x;\n    const int i = blockIdx.y * 16 + "
         "threadIdx.y;\n    if (j < N)\n        if (i < M) {\n            float s = 0;\n            for (int "
         "k = 0; k < K; k++) {\n                float a = A[i * K + k];\n                float b = B[k * N + "
         "j];\n                s += a * b;\n            }\n            C[i * N + j] = s;\n        }\n}\n",
     {"matmul"}},
    {"product, B first and pointers",
     "k",
     NULL,
     MM,
     MMS,
     MMH IJ "    if (!(i < M && j < N)) return;\n    const float *a = A + (size_t)i * K, *b = B + j;\n    "
            "float s = 0;\n    for (int k = 0; k < K; k++)\n        s += b[(size_t)k * N] * a[k];\n    "
            "C[(size_t)i * N + j] = s;\n}\n",
     {"matmul"}},
    {"product with relu and bias",
     "k",
     NULL,
     MM,
     MMS,
     MMH IJ "    if (i < M && j < N) {\n        float s = B[j];\n        for (int k = 0; k < K; k++)\n       "
            "     s += A[i * K + k] * B[k * N + j];\n        s = 2 * s + i;\n        C[i * N + j] = s > 0 ? "
            "s : 0.5f * s;\n    }\n}\n",
     {"matmul"}},
    {"product in a running sum",
     "k",
     NULL,
     MM,
     MMS,
     MMH IJ "    if (i < M && j < N) {\n        float s = 0;\n        for (int k = 0; k < K; k++) {\n        "
            "    s += A[i * K + k] * B[k * N + j];\n            C[i * N + j] = s;\n        }\n    }\n}\n",
     {"!matmul"}},
    {"sum of differences",
     "k",
     NULL,
     MM,
     MMS,
     MMH IJ "    if (i < M && j < N) {\n        float s = 0;\n        for (int k = 0; k < K; k++)\n          "
            "  s += A[i * K + k] - B[k * N + j];\n        C[i * N + j] = s;\n    }\n}\n",
     {"!matmul"}},
    {"both transposed",
     "k",
     NULL,
     "C = out f32[M,N]\nA = in f32[K,M]\nB = in f32[N,K]\nM = dim i32\nN = dim i32\nK = dim i32\n",
     MMS,
     MMH IJ "    if (i < M && j < N) {\n        float s = 0;\n        for (int k = 0; k < K; k++)\n          "
            "  s += A[k * M + i] * B[j * K + k];\n        C[i * N + j] = s;\n    }\n}\n",
     {"matmul"}},
    {"A transposed",
     "k",
     NULL,
     "C = out f32[M,N] align=16\nA = in f32[K,M] align=16\nB = in f32[K,N] align=16\nM = dim i32\nN = dim "
     "i32\nK = dim i32\n",
     MMS,
     MMH IJ "    if (i < M && j < N) {\n        float s = 0;\n        for (int k = 0; k < K; k++)\n          "
            "  s += A[k * M + i] * B[k * N + j];\n        C[i * N + j] = s;\n    }\n}\n",
     {"matmul"}},
    {"result transposed",
     "k",
     NULL,
     "C = out f32[N,M] align=16\nA = in f32[M,K] align=16\nB = in f32[K,N] align=16\nM = dim i32\nN = dim "
     "i32\nK = dim i32\n",
     MMS,
     MMH IJ "    if (i < M && j < N) {\n        float s = 0;\n        for (int k = 0; k < K; k++)\n          "
            "  s += A[i * K + k] * B[k * N + j];\n        C[j * M + i] = s;\n    }\n}\n",
     {"matmul"}},
    {"alpha and beta",
     "k",
     NULL,
     "C = inout f32[M,N]\nA = in f32[M,K]\nB = in f32[K,N]\nM = dim i32\nN = dim i32\nK = dim i32\nalpha = "
     "val f32 2\nbeta = val f32 0.5\n",
     MMS,
     "__global__ void k(float *C, const float *A, const float *B, int M, int N, int K, float alpha, float "
     "beta)\n{\n    // launch: k<<<dim3(ceildiv(N, 16), ceildiv(M, 16)), dim3(16, 16)>>>(C, A, B, M, N, K, "
     "alpha, beta)\n" IJ
     "    if (i < M && j < N) {\n        float s = 0;\n        for (int k = 0; k < K; k++)\n            s += "
     "A[i * K + k] * B[k * N + j];\n        C[i * N + j] = alpha * s + beta * C[i * N + j];\n    }\n}\n",
     {"matmul"}},
    {"bfloat16 factors",
     "k",
     NULL,
     "C = out f32[M,N]\nA = in bf16[M,K]\nB = in bf16[K,N]\nM = dim i32\nN = dim i32\nK = dim i32\n",
     MMS,
     "#include <cuda_bf16.h>\n__global__ void k(float *C, const __nv_bfloat16 *A, const __nv_bfloat16 *B, "
     "int M, int N, int K)\n{\n    // launch: k<<<dim3(ceildiv(N, 16), ceildiv(M, 16)), dim3(16, 16)>>>(C, "
     "A, B, M, N, K)\n" IJ "    if (i < M && j < N) {\n        float s = 0;\n        for (int k = 0; k < K; "
                           "k++)\n            s += __bfloat162float(A[i * K + k]) * __bfloat162float(B[k * N "
                           "+ j]);\n        C[i * N + j] = s;\n    }\n}\n",
     {"matmul"}},
    // Transpositions.
    {"turn",
     "k",
     NULL,
     PL,
     PLS,
     PLH "    int n = blockIdx.x * blockDim.x + threadIdx.x;\n    int m = blockIdx.y * blockDim.y + "
         "threadIdx.y;\n"
         "    if (m < M && n < N)\n        y[n * M + m] = x[m * N + n];\n}\n",
     {"turn !turn", "threads"}},
    {"turn, returns",
     "k",
     NULL,
     PL,
     PLS,
     PLH "    int n = blockIdx.x * blockDim.x + threadIdx.x;\n    int m = blockIdx.y * blockDim.y + "
         "threadIdx.y;\n"
         "    if (n >= N || m >= M) return;\n    y[m + n * M] = x[n + m * N];\n}\n",
     {"turn"}},
    {"turn, scaled, literal block",
     "k",
     NULL,
     PL,
     PLS,
     PLH "    int n = blockIdx.x * 32 + threadIdx.x;\n    int m = blockIdx.y * 8 + threadIdx.y;\n    if (n < "
         "N && m < M) {\n        y[(size_t)n * M + m] = 2.0f * x[(size_t)m * N + n] + 1;\n    }\n}\n",
     {"turn"}},
    {"turn, writes along x",
     "k",
     NULL,
     PL,
     PLS,
     "__global__ void k(float *y, const float *x, int M, int N)\n{\n    // launch: k<<<dim3(ceildiv(M, 32), "
     "ceildiv(N, 8)), dim3(32, 8)>>>(y, x, M, N)\n    int m = blockIdx.x * blockDim.x + threadIdx.x;\n    "
     "int n = blockIdx.y * blockDim.y + threadIdx.y;\n    if (m < M)\n        if (n < N)\n            y[n * "
     "M + m] = x[m * N + n];\n}\n",
     {"turn"}},
    {"no turn",
     "k",
     NULL,
     PL,
     PLS,
     "__global__ void k(float *y, const float *x, int M, int N)\n{\n    // launch: k<<<dim3(ceildiv(M, 32), "
     "ceildiv(N, 8)), dim3(32, 8)>>>(y, x, M, N)\n    int m = blockIdx.x * blockDim.x + threadIdx.x;\n    "
     "int n = blockIdx.y * blockDim.y + threadIdx.y;\n    if (m < M && n < N)\n        y[m * N + n] = x[m * "
     "N + n];\n}\n",
     {"!turn swap threads"}},
};
static const size_t kernels_n = sizeof kernels / sizeof *kernels;
