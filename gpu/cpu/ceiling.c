#include "cpu/ceiling.h"

#include "base/clock.h"
#include "base/mem.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_MB = 256, ROUNDS = 5, FMA_LOOPS = 2000000, CHAINS = 16 };

typedef float v4 __attribute__((vector_size(16)));
typedef float v8 __attribute__((vector_size(32)));
typedef float v16 __attribute__((vector_size(64)));

// Sixteen independent chains hide the latency of a fused multiply-add on every core so far. Vectors never
// cross a function boundary, so that the three widths can live in one file.
#define FMA_LOOP(name, type, target_text)                                                  \
    __attribute__((noinline, target(target_text))) static float name(long loops)           \
    {                                                                                      \
        type c[CHAINS], a = {0}, b = {0};                                                  \
        for (size_t k = 0; k < sizeof a / sizeof a[0]; k++) {                              \
            a[k] = 0.999F;                                                                 \
            b[k] = 0.001F;                                                                 \
        }                                                                                  \
        for (int i = 0; i < CHAINS; i++)                                                   \
            c[i] = a;                                                                      \
        for (long n = 0; n < loops; n++) {                                                 \
            _Pragma("GCC unroll 16") for (int i = 0; i < CHAINS; i++) c[i] = c[i] * a + b; \
        }                                                                                  \
        float sum = 0;                                                                     \
        for (int i = 0; i < CHAINS; i++)                                                   \
            sum += c[i][0];                                                                \
        return sum;                                                                        \
    }

#pragma GCC push_options
#pragma GCC optimize("O3", "fp-contract=fast")
#if defined(__x86_64__)
FMA_LOOP(fma_128, v4, "sse2")
FMA_LOOP(fma_256, v8, "avx2,fma")
FMA_LOOP(fma_512, v16, "avx512f")
#else
FMA_LOOP(fma_128, v4, "")
#endif
#pragma GCC pop_options

static volatile float sink;

static double best_fma(float (*fn)(long), int lanes)
{
    double best = 0;
    for (int r = 0; r < ROUNDS; r++) {
        int64_t start = clock_ns();
        sink = fn(FMA_LOOPS / 4);
        double s = (double)(clock_ns() - start) * 1e-9;
        double rate = 2.0 * lanes * CHAINS * (double)(FMA_LOOPS / 4) / s;
        best = rate > best ? rate : best;
    }
    return best;
}

static double fma_ceiling(void)
{
    double best = best_fma(fma_128, 4);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        double x = best_fma(fma_256, 8);
        best = x > best ? x : best;
    }
    if (__builtin_cpu_supports("avx512f")) {
        double x = best_fma(fma_512, 16);
        best = x > best ? x : best;
    }
#endif
    return best;
}

#pragma GCC push_options
#pragma GCC optimize("O3")
static void copy_words(char *to, const char *from, size_t n)
{
    uint64_t *t = (uint64_t *)(void *)to;
    const uint64_t *f = (const uint64_t *)(const void *)from;
    for (size_t i = 0; i < n / 8; i++)
        t[i] = f[i];
}

// In place: the line that is written was read anyway, so nothing is read only to be overwritten.
static void update_words(char *to, const char *from, size_t n)
{
    float *t = (float *)(void *)to;
    const float *f = (const float *)(const void *)from;
    for (size_t i = 0; i < n / 4; i++)
        t[i] += 0.5F * f[i];
}

static void copy_libc(char *to, const char *from, size_t n)
{
    memcpy(to, from, n);
}

static void read_words(char *to, const char *from, size_t n)
{
    const uint64_t *f = (const uint64_t *)(const void *)from;
    uint64_t sum[8] = {0};
    for (size_t i = 0; i + 8 <= n / 8; i += 8)
        for (int k = 0; k < 8; k++)
            sum[k] += f[i + (size_t)k];
    memcpy(to, sum, sizeof sum);
}

#pragma GCC pop_options

static double copy_ceiling(void)
{
    static const struct {
        void (*fn)(char *, const char *, size_t);
        int streams; // memory read plus written, in copies
    } ways[] = {{copy_words, 2}, {update_words, 3}, {copy_libc, 2}, {read_words, 1}};
    size_t n = (size_t)COPY_MB << 20;
    char *a = xmalloc(n), *b = xmalloc(n);
    memset(a, 1, n);
    memset(b, 2, n);
    double best = 0;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (int r = 0; r < 3; r++) {
            int64_t start = clock_ns();
            ways[w].fn(b, a, n);
            double rate = (double)n * ways[w].streams / ((double)(clock_ns() - start) * 1e-9);
            best = rate > best ? rate : best;
        }
    free(a);
    free(b);
    return best;
}

void ceiling_measure(int cpu, double *copy_bytes_s, double *fma_flops_s)
{
    cpu_set_t old, one;
    bool moved = cpu >= 0 && sched_getaffinity(0, sizeof old, &old) == 0;
    if (moved) {
        CPU_ZERO(&one);
        CPU_SET((size_t)cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    *fma_flops_s = fma_ceiling();
    *copy_bytes_s = copy_ceiling();
    if (moved)
        sched_setaffinity(0, sizeof old, &old);
}
