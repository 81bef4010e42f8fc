// Runs CUDA kernels on a CPU, for tests of rewriting rules: blocks one after the other, the threads of a block as
// coroutines that change at barriers and shuffles only. `emu::backwards` runs the threads in the other order: what
// depends on the order is a race. Not a model of the device's memory, speed or rounding.
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __constant__

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(8) uint2 { unsigned x, y; };
static inline float4 make_float4(float a, float b, float c, float d) { return {a, b, c, d}; }

struct __nv_bfloat16 {
    uint16_t bits;
};
static inline float __bfloat162float(__nv_bfloat16 v)
{
    uint32_t u = (uint32_t)v.bits << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline __nv_bfloat16 __float2bfloat16(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    u += 0x7fff + ((u >> 16) & 1);
    return {(uint16_t)(u >> 16)};
}

static thread_local uint3 threadIdx, blockIdx;
static thread_local dim3 blockDim, gridDim;
static const int warpSize = 32;

namespace emu {
enum state { READY, AT_BLOCK, AT_WARP, DONE };
struct fiber {
    ucontext_t at;
    state is;
    uint3 id;
};
static fiber *fibers;
static char *stacks;
static size_t now;
static ucontext_t home;
static uint64_t slots[1024];
static bool backwards, refused; // refused: a launch that no device takes
static void (*body)(void *);
static void *body_arg;
static char shared[1 << 18];
enum { STACK = 64 << 10 };

static void entry()
{
    body(body_arg);
    fibers[now].is = DONE;
    swapcontext(&fibers[now].at, &home);
}

static void wait(state s)
{
    size_t me = now;
    fibers[me].is = s;
    swapcontext(&fibers[me].at, &home);
}

static void stuck(const char *why)
{
    fprintf(stderr, "emulation: %s\n", why);
    abort();
}

// Lets the threads go on that all of their warp, or all of the block, wait for; false where none does.
static bool release(size_t n)
{
    bool any = false, all = true;
    for (size_t w = 0; w < n; w += 32) {
        bool together = true, some = false;
        for (size_t i = w; i < n && i < w + 32; i++) {
            together &= fibers[i].is == AT_WARP || fibers[i].is == DONE;
            some |= fibers[i].is == AT_WARP;
        }
        for (size_t i = w; together && some && i < n && i < w + 32; i++)
            if (fibers[i].is == AT_WARP)
                fibers[i].is = READY;
        any |= together && some;
    }
    if (any)
        return true;
    for (size_t i = 0; i < n; i++)
        all &= fibers[i].is == AT_BLOCK || fibers[i].is == DONE;
    for (size_t i = 0; all && i < n; i++)
        if (fibers[i].is == AT_BLOCK) {
            fibers[i].is = READY;
            any = true;
        }
    return any;
}

static void run_block(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        getcontext(&fibers[i].at);
        fibers[i].at.uc_stack.ss_sp = stacks + i * STACK;
        fibers[i].at.uc_stack.ss_size = STACK;
        fibers[i].at.uc_link = nullptr;
        makecontext(&fibers[i].at, entry, 0);
        fibers[i].is = READY;
    }
    for (;;) {
        bool left = false;
        for (size_t k = 0; k < n; k++) {
            size_t i = backwards ? n - 1 - k : k;
            if (fibers[i].is != READY)
                continue;
            now = i;
            threadIdx = fibers[i].id;
            swapcontext(&home, &fibers[i].at);
        }
        for (size_t i = 0; i < n; i++)
            left |= fibers[i].is != DONE;
        if (!left)
            return;
        if (!release(n))
            stuck("threads wait for threads that do not come");
    }
}

// coroutines: the kernel has barriers or shuffles.
template <typename F> static void launch(dim3 grid, dim3 block, size_t bytes, bool coroutines, F f)
{
    size_t n = (size_t)block.x * block.y * block.z;
    if (!n || n > 1024 || bytes > sizeof shared || (size_t)grid.x * grid.y * grid.z == 0 || grid.y > 65535) {
        refused = true;
        return;
    }
    if (!fibers) {
        fibers = (fiber *)calloc(1024, sizeof *fibers);
        stacks = (char *)malloc((size_t)1024 * STACK);
    }
    gridDim = grid;
    blockDim = block;
    body = [](void *p) { (*(F *)p)(); };
    body_arg = &f;
    for (size_t i = 0; i < n; i++)
        fibers[i].id = {(unsigned)(i % block.x), (unsigned)(i / block.x % block.y), (unsigned)(i / block.x / block.y)};
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = {x, y, z};
                memset(shared, 0xa5, bytes);
                if (coroutines)
                    run_block(n);
                for (size_t k = 0; !coroutines && k < n; k++) {
                    threadIdx = fibers[backwards ? n - 1 - k : k].id;
                    f();
                }
            }
}
} // namespace emu

static inline void __syncthreads() { emu::wait(emu::AT_BLOCK); }
static inline void __syncwarp(unsigned = ~0u) { emu::wait(emu::AT_WARP); }

template <typename T> static T emu_exchange(T v, size_t from)
{
    size_t me = emu::now;
    memcpy(&emu::slots[me], &v, sizeof v);
    emu::wait(emu::AT_WARP);
    memcpy(&v, &emu::slots[from], sizeof v);
    emu::wait(emu::AT_WARP);
    return v;
}
template <typename T> static T __shfl_xor_sync(unsigned, T v, int o) { return emu_exchange(v, emu::now ^ (size_t)o); }
template <typename T> static T __shfl_down_sync(unsigned, T v, int o)
{
    size_t lane = emu::now % 32;
    return emu_exchange(v, lane + o < 32 ? emu::now + o : emu::now);
}
template <typename T> static T __shfl_sync(unsigned, T v, int from) { return emu_exchange(v, emu::now / 32 * 32 + from); }

template <typename T, typename U> static T atomicAdd(T *p, U v)
{
    T old = *p;
    *p = old + (T)v;
    return old;
}
template <typename T> static T __ldg(const T *p) { return *p; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
#define __expf(x) expf(x)
template <typename T> static T min(T a, T b) { return b < a ? b : a; }
template <typename T> static T max(T a, T b) { return a < b ? b : a; }
static inline int ceildiv(int a, int b) { return (a + b - 1) / b; }
