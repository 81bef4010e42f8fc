#include "cpu/inputs.h"

#include "base/hash.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const variant_names[VARIANT_COUNT] = {"plain", "shifted", "large", "denormal"};

enum { BLOCK = 1024 };

static uint64_t bits_at(uint64_t key, uint64_t i)
{
    uint64_t x = key + i * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double unit_at(uint64_t key, uint64_t i)
{
    return (double)(int64_t)(bits_at(key, i) >> 11) * 0x1p-53;
}

// The sum of eight uniform numbers, as a normal one up to 4.9 deviations, without branches or tables: a
// compiler makes vector code of it, and 16 million elements take a tenth of a second.
static double normal_at(uint64_t key, uint64_t i)
{
    uint64_t x = bits_at(key, i), y = bits_at(key ^ 0x5851f42d4c957f2du, i);
    int64_t sum = (int64_t)((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48) +
                            (y & 0xffff) + (y >> 16 & 0xffff) + (y >> 32 & 0xffff) + (y >> 48));
    double fine = (double)(int64_t)((x ^ y) >> 40) * 0x1p-24; // below one step of the sum
    return ((double)sum + fine - 4 * 65536.0 + 3.5) * (1 / (65536.0 * 0.81649658092772603));
}

static void fill_block(const struct dist *d, uint64_t key, uint64_t from, double *out, size_t n)
{
    switch (d->kind) {
    case DIST_NORMAL:
        for (size_t i = 0; i < n; i++)
            out[i] = d->a + d->b * normal_at(key, from + i);
        break;
    case DIST_UNIFORM:
        for (size_t i = 0; i < n; i++)
            out[i] = d->a + (d->b - d->a) * unit_at(key, from + i);
        break;
    case DIST_INT:
        for (size_t i = 0; i < n; i++)
            out[i] = d->a + floor(unit_at(key, from + i) * (d->b - d->a + 1));
        break;
    case DIST_ARANGE:
        for (size_t i = 0; i < n; i++)
            out[i] = (double)(from + i);
        break;
    case DIST_SPARSE:
        for (size_t i = 0; i < n; i++)
            out[i] = unit_at(~key, from + i) < d->a ? normal_at(key, from + i) : 0.0;
        break;
    case DIST_ONES:
        for (size_t i = 0; i < n; i++)
            out[i] = 1;
        break;
    default: // DIST_ZEROS; DIST_PERM has its own way
        memset(out, 0, n * sizeof *out);
        break;
    }
}

// A random order of 0..n-1 (Durstenfeld's shuffle).
static void fill_perm(enum dtype type, uint64_t key, void *p, size_t n)
{
    double *order = xmalloc((n ? n : 1) * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = (double)i;
    for (size_t i = n; i > 1; i--) {
        size_t j = bits_at(key, i) % i;
        double keep = order[j];
        order[j] = order[i - 1];
        order[i - 1] = keep;
    }
    dtype_store_n(type, p, order, n);
    free(order);
}

// Values between given bounds stay between them: a caller promised them.
static void vary(const struct task_arg *a, enum variant v, double *x, size_t n)
{
    double tiny = a->type == DT_F64 ? 0x1p-1030 : 0x1p-131;
    for (size_t i = 0; i < n; i++) {
        switch (v) {
        case VARIANT_SHIFTED:
            if (a->dist.kind == DIST_UNIFORM) {
                double u = (x[i] - a->dist.a) / (a->dist.b - a->dist.a);
                x[i] = a->dist.a + (a->dist.b - a->dist.a) * u * u;
            } else {
                x[i] = x[i] * 3 + a->dist.b * 2 + 0.5;
            }
            break;
        case VARIANT_LARGE:
            x[i] *= 64;
            break;
        case VARIANT_TINY:
            x[i] *= tiny;
            break;
        default:
            break;
        }
    }
}

bool inputs_varies(const struct task_arg *a, enum variant v)
{
    bool random = a->dist.kind == DIST_NORMAL || a->dist.kind == DIST_UNIFORM || a->dist.kind == DIST_SPARSE;
    if (v == VARIANT_PLAIN || !dtype_info(a->type)->is_float || !random)
        return false;
    if (v == VARIANT_TINY && a->type != DT_F32 && a->type != DT_F64)
        return false;
    return v == VARIANT_SHIFTED || a->dist.kind != DIST_UNIFORM;
}

void inputs_fill(const struct task_arg *a, int index, uint64_t seed, enum variant v, void *p, size_t n)
{
    uint64_t key = hash_mix(seed ^ hash_mix((uint64_t)index + 1));
    if (a->dist.kind == DIST_PERM) {
        fill_perm(a->type, key, p, n);
        return;
    }
    size_t size = dtype_info(a->type)->size;
    bool varies = inputs_varies(a, v);
    double block[BLOCK];
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        fill_block(&a->dist, key, at, block, m);
        if (varies)
            vary(a, v, block, m);
        dtype_store_n(a->type, (char *)p + at * size, block, m);
    }
}
