#include "base/dtype.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// rtol and atol_k: a float buffer's default tolerance, where the oracle is in fp64. They are loose enough for
// any order of a sum of some hundred terms and far too tight for a result in the next smaller type.
static const struct dtype_info table[DT_COUNT] = {
    [DT_F64] = {"f64", 8, true, true, 0x1p-52, 0x1.fffffffffffffp1023, 1e-7, 16, {"double", NULL}},
    [DT_F32] = {"f32", 4, true, true, 0x1p-23, 0x1.fffffep127, 1e-5, 16, {"float", NULL}},
    [DT_F16] = {"f16", 2, true, true, 0x1p-10, 65504, 1e-3, 4, {"_Float16", "__half", "half", NULL}},
    [DT_BF16] = {"bf16",
                 2,
                 true,
                 true,
                 0x1p-7,
                 0x1.fep127,
                 1.6e-2,
                 4,
                 {"__nv_bfloat16", "nv_bfloat16", "__bf16", NULL}},
    [DT_F8E4M3] = {"f8e4m3", 1, true, true, 0x1p-3, 448, 0.125, 2, {"__nv_fp8_e4m3", NULL}},
    [DT_F8E5M2] = {"f8e5m2", 1, true, true, 0x1p-2, 57344, 0.25, 2, {"__nv_fp8_e5m2", NULL}},
    [DT_I64] = {"i64",
                8,
                false,
                true,
                0,
                0x1p63,
                0,
                0,
                {"int64_t", "long", "long long", "ptrdiff_t", "ssize_t", NULL}},
    [DT_I32] = {"i32", 4, false, true, 0, 0x1p31 - 1, 0, 0, {"int", "int32_t", "signed", "signed int", NULL}},
    [DT_U32] =
        {"u32", 4, false, false, 0, 0x1p32 - 1, 0, 0, {"unsigned", "unsigned int", "uint32_t", "uint", NULL}},
    [DT_I16] = {"i16", 2, false, true, 0, 32767, 0, 0, {"short", "int16_t", "short int", NULL}},
    [DT_I8] = {"i8", 1, false, true, 0, 127, 0, 0, {"signed char", "int8_t", "char", NULL}},
    [DT_U8] = {"u8", 1, false, false, 0, 255, 0, 0, {"unsigned char", "uint8_t", NULL}},
    [DT_BOOL] = {"bool", 1, false, false, 0, 1, 0, 0, {"bool", "_Bool", NULL}},
};

const struct dtype_info *dtype_info(enum dtype t)
{
    return &table[t];
}

int dtype_parse(const char *name, enum dtype *out)
{
    for (int i = 0; i < DT_COUNT; i++)
        if (strcmp(table[i].name, name) == 0) {
            *out = (enum dtype)i;
            return 0;
        }
    return -1;
}

// A small float: sign, exponent bits, mantissa bits. e4m3 is the "fn" kind: no infinity, and of its largest
// exponent only the all-ones mantissa is NaN.
struct small {
    int ebits, mbits;
    bool finite_only;
};
static const struct small SMALL_F16 = {5, 10, false}, SMALL_BF16 = {8, 7, false}, SMALL_E4M3 = {4, 3, true},
                          SMALL_E5M2 = {5, 2, false};

static inline double small_load(struct small f, uint32_t bits)
{
    int bias = (1 << (f.ebits - 1)) - 1, top = (1 << f.ebits) - 1;
    int e = (int)(bits >> f.mbits) & top;
    uint32_t m = bits & ((1u << f.mbits) - 1);
    double sign = bits >> (f.ebits + f.mbits) & 1 ? -1.0 : 1.0;
    if (e == top && !f.finite_only)
        return m ? copysign(NAN, sign) : sign * INFINITY;
    if (e == top && m == (1u << f.mbits) - 1)
        return copysign(NAN, sign);
    if (e == 0)
        return sign * ldexp((double)m, 1 - bias - f.mbits);
    return sign * ldexp((double)(m | 1u << f.mbits), e - bias - f.mbits);
}

static inline uint32_t small_store(struct small f, double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    int bias = (1 << (f.ebits - 1)) - 1, top = (1 << f.ebits) - 1;
    uint32_t sign = (uint32_t)(u >> 63) << (f.ebits + f.mbits);
    uint32_t inf = (uint32_t)top << f.mbits,
             nan = f.finite_only ? inf | ((1u << f.mbits) - 1) : inf | 1u << (f.mbits - 1);
    int e = (int)(u >> 52 & 0x7ff);
    uint64_t m = u & 0xfffffffffffffu;
    if (e == 0x7ff)
        return sign | (m || f.finite_only ? nan : inf);
    int t = e - 1023 + bias; // the exponent field of the result, before rounding
    int drop = 52 - f.mbits;
    if (e == 0 || t < -f.mbits) // a subnormal double, or under half of the least subnormal
        return sign;
    m |= (uint64_t)1 << 52;
    if (t < 1) { // becomes subnormal: shift by what the exponent lacks
        drop += 1 - t;
        t = 1;
    }
    uint64_t half = (uint64_t)1 << (drop - 1), kept = m >> drop, rest = m & ((half << 1) - 1);
    if (rest > half || (rest == half && (kept & 1)))
        kept++;
    // Adding lets a mantissa that rounded up carry into the exponent, also from subnormal to normal.
    uint64_t r = ((uint64_t)(t - 1) << f.mbits) + kept;
    if (f.finite_only ? r >= nan : r >= inf)
        return sign | (f.finite_only ? nan : inf);
    return sign | (uint32_t)r;
}

static inline double as_double_u16(const void *p, struct small f)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return small_load(f, v);
}

static inline double load_one(enum dtype t, const unsigned char *p)
{
#define LOAD(type)                 \
    do {                           \
        type v_;                   \
        memcpy(&v_, p, sizeof v_); \
        return (double)v_;         \
    } while (0)
    switch (t) {
    case DT_F64:
        LOAD(double);
    case DT_F32:
        LOAD(float);
    case DT_F16:
        return as_double_u16(p, SMALL_F16);
    case DT_BF16:
        return as_double_u16(p, SMALL_BF16);
    case DT_F8E4M3:
        return small_load(SMALL_E4M3, *p);
    case DT_F8E5M2:
        return small_load(SMALL_E5M2, *p);
    case DT_I64:
        LOAD(int64_t);
    case DT_I32:
        LOAD(int32_t);
    case DT_U32:
        LOAD(uint32_t);
    case DT_I16:
        LOAD(int16_t);
    case DT_I8:
        LOAD(int8_t);
    case DT_U8:
        return *p;
    case DT_BOOL:
        return *p != 0;
    case DT_COUNT:
        break;
    }
#undef LOAD
    return NAN;
}

// Nearest integer within the type; NaN is 0. Converting a double outside the range would be undefined.
static inline int64_t to_integer(double x, double low, double high)
{
    x = nearbyint(x);
    if (!(x > low))
        return isnan(x) ? 0 : low <= -0x1p63 ? INT64_MIN : (int64_t)low;
    if (x >= high)
        return high >= 0x1p63 ? INT64_MAX : (int64_t)high;
    return (int64_t)x;
}

static inline void store_one(enum dtype t, unsigned char *p, double x)
{
    const struct dtype_info *d = &table[t];
    if (!d->is_float) {
        double low = t == DT_I64 ? -d->max : d->is_signed ? -d->max - 1 : 0;
        // The machines this runs on are little-endian (the build is x86-64), so a prefix of the wide integer
        // is it.
        int64_t v = t == DT_BOOL ? x != 0 : to_integer(x, low, d->max);
        memcpy(p, &v, d->size);
        return;
    }
    if (t == DT_F64) {
        memcpy(p, &x, sizeof x);
    } else if (t == DT_F32) {
        float v = (float)x;
        memcpy(p, &v, sizeof v);
    } else if (d->size == 2) {
        uint16_t v = (uint16_t)small_store(t == DT_F16 ? SMALL_F16 : SMALL_BF16, x);
        memcpy(p, &v, sizeof v);
    } else {
        *p = (unsigned char)small_store(t == DT_F8E4M3 ? SMALL_E4M3 : SMALL_E5M2, x);
    }
}

double dtype_load(enum dtype t, const void *p)
{
    return load_one(t, p);
}

void dtype_store(enum dtype t, void *p, double x)
{
    store_one(t, p, x);
}

void dtype_load_n(enum dtype t, const void *p, double *out, size_t n)
{
    const unsigned char *at = p;
    if (t == DT_F32) // the common case, as a loop that vectorizes
        for (size_t i = 0; i < n; i++) {
            float v;
            memcpy(&v, at + i * sizeof v, sizeof v);
            out[i] = v;
        }
    else
        for (size_t i = 0, size = table[t].size; i < n; i++)
            out[i] = load_one(t, at + i * size);
}

void dtype_store_n(enum dtype t, void *p, const double *in, size_t n)
{
    unsigned char *at = p;
    if (t == DT_F32)
        for (size_t i = 0; i < n; i++) {
            float v = (float)in[i];
            memcpy(at + i * sizeof v, &v, sizeof v);
        }
    else
        for (size_t i = 0, size = table[t].size; i < n; i++)
            store_one(t, at + i * size, in[i]);
}
