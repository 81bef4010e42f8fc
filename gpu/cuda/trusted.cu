// The referee's own kernels: filling, poisoning, sealing and judging buffers, and the ceilings. Compiled by NVRTC
// when a worker opens; nothing here is a candidate's. The structs are those of gpu/cuda/items.h.
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

struct item { // one buffer of one set
    u64 at, bytes, elements, master, salt;
    u32 type, dir;
};
struct group { // outputs that share expected values
    u64 wanted, elements;
    double rtol, atol, rms, eps;
    u32 nonce, type, first, n; // members[first .. first+n)
};
struct result {
    u64 wrong, first, last, unwritten, before, after, changed, hash;
    double error_sq, wanted_sq, ulp, got, want;
};
struct key {
    u32 w[8];
};
enum { DIR_IN, DIR_OUT, DIR_INOUT, DIR_SCRATCH };
enum { F64, F32, F16, BF16, E4M3, E5M2, I64, I32, U32, I16, I8, U8, BOOL };

__device__ __forceinline__ u64 mix(u64 x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}
__device__ __forceinline__ u64 pattern(u64 salt, u64 word)
{
    return mix(salt + word * 0x9e3779b97f4a7c15ull);
}
__device__ __forceinline__ u8 pattern_byte(u64 salt, u64 address)
{
    return (u8)(pattern(salt, address >> 3) >> (8 * (address & 7)));
}
__device__ __forceinline__ u64 thread_index()
{
    return blockIdx.x * (u64)blockDim.x + threadIdx.x;
}
__device__ __forceinline__ u64 thread_count()
{
    return gridDim.x * (u64)blockDim.x;
}
__device__ __forceinline__ u32 size_of(u32 type)
{
    return type == F64 || type == I64 ? 8 : type == F32 || type == I32 || type == U32 ? 4
         : type == F16 || type == BF16 || type == I16 ? 2 : 1;
}

// ---- a stream cipher (ChaCha with 8 rounds): expected values lie on the device only sealed

__device__ __forceinline__ u32 rotate(u32 x, int n)
{
    return __funnelshift_l(x, x, n);
}
#define QUARTER(a, b, c, d)                                                                          \
    a += b, d = rotate(d ^ a, 16), c += d, b = rotate(b ^ c, 12), a += b, d = rotate(d ^ a, 8), c += d, \
        b = rotate(b ^ c, 7)
__device__ __forceinline__ void stream(const key &k, u32 nonce, u64 block, u64 out[8])
{
    u32 s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, k.w[0], k.w[1], k.w[2], k.w[3],
                 k.w[4], k.w[5], k.w[6], k.w[7], (u32)block, (u32)(block >> 32), nonce, 0x6b736d74};
    u32 x[16];
#pragma unroll
    for (int i = 0; i < 16; i++)
        x[i] = s[i];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        QUARTER(x[0], x[4], x[8], x[12]);
        QUARTER(x[1], x[5], x[9], x[13]);
        QUARTER(x[2], x[6], x[10], x[14]);
        QUARTER(x[3], x[7], x[11], x[15]);
        QUARTER(x[0], x[5], x[10], x[15]);
        QUARTER(x[1], x[6], x[11], x[12]);
        QUARTER(x[2], x[7], x[8], x[13]);
        QUARTER(x[3], x[4], x[9], x[14]);
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = (u64)(x[2 * i] + s[2 * i]) | (u64)(x[2 * i + 1] + s[2 * i + 1]) << 32;
}

extern "C" __global__ void ks_seal(u64 *p, u64 blocks, key k, u32 nonce)
{
    for (u64 i = thread_index(); i < blocks; i += thread_count()) {
        u64 s[8];
        stream(k, nonce, i, s);
        for (int w = 0; w < 8; w++)
            p[i * 8 + w] ^= s[w];
    }
}

// The sum of all words, each mixed with its place: shows any change.
extern "C" __global__ void ks_hash(const u64 *p, u64 words, u64 salt, u64 *out)
{
    u64 sum = 0;
    for (u64 i = thread_index(); i < words; i += thread_count())
        sum += mix(p[i] ^ pattern(salt, i));
    for (int d = 16; d; d >>= 1)
        sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0)
        atomicAdd(out, sum);
}

// ---- before a run

extern "C" __global__ void ks_zones(u64 *p, u64 words, u64 salt)
{
    for (u64 i = thread_index(); i < words; i += thread_count())
        p[i] = pattern(salt, (u64)p / 8 + i);
}

__device__ void load_slow(const item &x)
{
    u8 *to = (u8 *)x.at;
    const u8 *from = (const u8 *)x.master;
    for (u64 i = thread_index(); i < x.bytes; i += thread_count())
        to[i] = from ? from[i] : pattern_byte(x.salt, x.at + i);
}

// Inputs from their masters; outputs and scratch get a pattern that no kernel writes by chance.
extern "C" __global__ void ks_load(const item *items)
{
    const item x = items[blockIdx.y];
    if (x.at % 16) {
        load_slow(x);
        return;
    }
    uint4 *to = (uint4 *)x.at;
    const uint4 *from = (const uint4 *)x.master;
    u64 n = x.bytes / 16;
    for (u64 i = thread_index(); i < n; i += thread_count()) {
        uint4 v;
        if (from) {
            v = from[i];
        } else {
            u64 a = pattern(x.salt, x.at / 8 + 2 * i), b = pattern(x.salt, x.at / 8 + 2 * i + 1);
            v = make_uint4((u32)a, (u32)(a >> 32), (u32)b, (u32)(b >> 32));
        }
        to[i] = v;
    }
    for (u64 i = n * 16 + thread_index(); i < x.bytes; i += thread_count())
        ((u8 *)x.at)[i] = from ? ((const u8 *)x.master)[i] : pattern_byte(x.salt, x.at + i);
}

// ---- after a run

__device__ double narrow(u32 bits, int exponent_bits, int mantissa_bits, bool infinities)
{
    int bias = (1 << (exponent_bits - 1)) - 1, e = (int)(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    u32 m = bits & ((1u << mantissa_bits) - 1);
    double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1.0 : 1.0;
    bool top = e == (1 << exponent_bits) - 1;
    if (top && (infinities || m == (1u << mantissa_bits) - 1))
        return infinities && m == 0 ? sign * __longlong_as_double(0x7ff0000000000000ll)
                                    : __longlong_as_double(0x7ff8000000000000ll);
    return sign * (e ? scalbn((double)(m | 1u << mantissa_bits), e - bias - mantissa_bits)
                     : scalbn((double)m, 1 - bias - mantissa_bits));
}

__device__ __forceinline__ double element(u32 type, const void *p)
{
    switch (type) {
    case F64: return *(const double *)p;
    case F32: return *(const float *)p;
    case F16: return narrow(*(const unsigned short *)p, 5, 10, true);
    case BF16: return __uint_as_float((u32) * (const unsigned short *)p << 16);
    case E4M3: return narrow(*(const u8 *)p, 4, 3, false);
    case E5M2: return narrow(*(const u8 *)p, 5, 2, true);
    case I64: return (double)*(const long long *)p;
    case I32: return *(const int *)p;
    case U32: return *(const u32 *)p;
    case I16: return *(const short *)p;
    case I8: return *(const signed char *)p;
    default: return *(const u8 *)p;
    }
}

__device__ __forceinline__ u64 raw(const u8 *p, u32 size)
{
    switch (size) {
    case 8: return *(const u64 *)p;
    case 4: return *(const u32 *)p;
    case 2: return *(const unsigned short *)p;
    default: return *p;
    }
}

// What the pattern of salt has at this element's place.
__device__ __forceinline__ u64 raw_pattern(u64 salt, u64 address, u32 size)
{
    u64 w = pattern(salt, address >> 3) >> (8 * (address & 7));
    return size == 8 ? w : w & ((1ull << (8 * size)) - 1);
}

// Inputs are compared with their masters, and the red zones on both sides of every buffer with their pattern.
extern "C" __global__ void ks_judge_in(const item *items, result *results, u64 zone_salt, u32 red)
{
    const item x = items[blockIdx.y];
    result *r = &results[blockIdx.y];
    for (u64 i = thread_index(); i < red; i += thread_count()) {
        if (*(const u8 *)(x.at - 1 - i) != pattern_byte(zone_salt, x.at - 1 - i))
            atomicMin(&r->before, i + 1);
        if (*(const u8 *)(x.at + x.bytes + i) != pattern_byte(zone_salt, x.at + x.bytes + i))
            atomicMin(&r->after, i + 1);
    }
    if (x.dir != DIR_IN)
        return;
    u64 done = 0;
    if (x.at % 16 == 0) {
        const uint4 *a = (const uint4 *)x.at, *b = (const uint4 *)x.master;
        for (u64 i = thread_index(); i < x.bytes / 16; i += thread_count()) {
            uint4 v = a[i], w = b[i];
            if (v.x != w.x || v.y != w.y || v.z != w.z || v.w != w.w)
                atomicMin(&r->changed, i * 16 / size_of(x.type));
        }
        done = x.bytes / 16 * 16;
    }
    for (u64 i = done + thread_index(); i < x.bytes; i += thread_count())
        if (((const u8 *)x.at)[i] != ((const u8 *)x.master)[i])
            atomicMin(&r->changed, i / size_of(x.type));
}

struct tally {
    u64 wrong, first, last, unwritten, hash;
    double error_sq, wanted_sq, ulp;
};

__device__ __forceinline__ bool right(double y, double r, double allowed)
{
    if (isnan(r))
        return isnan(y);
    if (isinf(r))
        return y == r;
    return fabs(y - r) <= allowed;
}

__device__ __forceinline__ void tally_one(tally &t, const group &g, const item &x, u64 i, const u64 *wanted, int e,
                                          u32 size, bool real, bool brief)
{
    u64 address = x.at + i * size, bits = raw((const u8 *)address, size);
    bool ok;
    double y = 0, r = 0;
    if (real) {
        y = element(g.type, (const void *)address);
        r = __longlong_as_double((long long)wanted[e]);
        ok = right(y, r, g.rtol * fabs(r) + g.atol);
    } else {
        ok = bits == raw((const u8 *)wanted + e * size, size);
    }
    if (!ok) {
        t.wrong++;
        t.first = i < t.first ? i : t.first;
        t.last = i > t.last ? i : t.last;
        t.unwritten += bits == raw_pattern(x.salt, address, size);
    }
    if (brief)
        return;
    t.hash += mix(bits ^ pattern(7, i));
    if (ok && real && isfinite(r)) {
        double d = fabs(y - r);
        t.error_sq += d * d;
        t.wanted_sq += r * r;
        t.ulp = fmax(t.ulp, d / (fabs(r) + g.rms * 1e-3 + 1e-300));
    }
}

__device__ void tally_add(result *r, const tally &t, bool brief)
{
    if (t.wrong) {
        atomicAdd(&r->wrong, t.wrong);
        atomicMin(&r->first, t.first);
        atomicMax(&r->last, t.last);
        atomicAdd(&r->unwritten, t.unwritten);
    }
    if (brief)
        return;
    atomicAdd(&r->hash, t.hash);
    atomicAdd(&r->error_sq, t.error_sq);
    atomicAdd(&r->wanted_sq, t.wanted_sq);
    atomicMax((u64 *)&r->ulp, (u64)__double_as_longlong(t.ulp)); // order of bits is that of positive doubles
}

// A thread unseals 64 bytes of expected values at a time and holds them against every output that shares them.
extern "C" __global__ void ks_judge_out(const group *groups, const u32 *members, const item *items, result *results,
                                        key k, u32 brief)
{
    const group g = groups[blockIdx.y];
    u32 size = size_of(g.type);
    bool real = g.type <= E5M2;
    u32 per = real ? 8 : 64 / size;
    u64 blocks = (g.elements + per - 1) / per;
    for (u64 b = thread_index(); b < blocks; b += thread_count()) {
        u64 s[8];
        stream(k, g.nonce, b, s);
#pragma unroll
        for (int w = 0; w < 8; w++)
            s[w] ^= ((const u64 *)g.wanted)[b * 8 + w];
        for (u32 m = 0; m < g.n; m++) {
            const item x = items[members[g.first + m]];
            tally t = {0, ~0ull, 0, 0, 0, 0, 0, 0};
            if (real) {
#pragma unroll
                for (int e = 0; e < 8; e++)
                    if (b * 8 + e < g.elements)
                        tally_one(t, g, x, b * 8 + e, s, e, size, true, brief);
            } else {
                for (int e = 0; e < per && b * per + e < g.elements; e++)
                    tally_one(t, g, x, b * per + e, s, e, size, false, brief);
            }
            if (!brief || t.wrong)
                tally_add(&results[members[g.first + m]], t, brief);
        }
    }
}

// What stands at the first wrong element, and what should.
extern "C" __global__ void ks_explain(const group *groups, u32 of, const item *items, u32 number, result *results,
                                      key k)
{
    const group g = groups[of];
    const item x = items[number];
    result *r = &results[number];
    u32 size = size_of(g.type);
    bool real = g.type <= E5M2;
    u32 per = real ? 8 : 64 / size, e = (u32)(r->first % per);
    u64 b = r->first / per, s[8];
    stream(k, g.nonce, b, s);
    for (int w = 0; w < 8; w++)
        s[w] ^= ((const u64 *)g.wanted)[b * 8 + w];
    r->got = element(g.type, (const void *)(x.at + r->first * size));
    r->want = real ? __longlong_as_double((long long)s[e]) : element(g.type, (const u8 *)s + e * size);
}

// ---- ceilings

extern "C" __global__ void ks_empty(void) {}

template <int N> __device__ __forceinline__ void copy_body(const uint4 *a, uint4 *b, u64 n)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x * N + threadIdx.x; i < n; i += gridDim.x * (u64)blockDim.x * N) {
        uint4 v[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            if (i + k * blockDim.x < n)
                v[k] = __ldcs(a + i + k * blockDim.x);
#pragma unroll
        for (int k = 0; k < N; k++)
            if (i + k * blockDim.x < n)
                __stcs(b + i + k * blockDim.x, v[k]);
    }
}
extern "C" __global__ void ks_copy1(const uint4 *a, uint4 *b, u64 n) { copy_body<1>(a, b, n); }
extern "C" __global__ void ks_copy2(const uint4 *a, uint4 *b, u64 n) { copy_body<2>(a, b, n); }
extern "C" __global__ void ks_copy4(const uint4 *a, uint4 *b, u64 n) { copy_body<4>(a, b, n); }

extern "C" __global__ void ks_read(const uint4 *a, uint4 *b, u64 n)
{
    u32 sum = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x * 8 + threadIdx.x; i < n; i += gridDim.x * (u64)blockDim.x * 8) {
        uint4 v[8];
#pragma unroll
        for (int k = 0; k < 8; k++)
            v[k] = i + k * blockDim.x < n ? __ldcs(a + i + k * blockDim.x) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < 8; k++)
            sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    if (sum == 0x12345678)
        b[0] = make_uint4(sum, 0, 0, 0);
}

// 2 * 16 * 512 operations a thread.
extern "C" __global__ void ks_fma(float *out, float a, float b)
{
    float x[16];
#pragma unroll
    for (int k = 0; k < 16; k++)
        x[k] = threadIdx.x + k;
#pragma unroll 4
    for (int i = 0; i < 512; i++)
#pragma unroll
        for (int k = 0; k < 16; k++)
            x[k] = fmaf(x[k], a, b);
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 16; k++)
        sum += x[k];
    if (sum == 1.2345f)
        out[threadIdx.x] = sum;
}
