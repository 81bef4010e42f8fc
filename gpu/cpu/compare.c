#include "cpu/compare.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 1024 };

struct task_tol compare_tolerance(const struct task *t, enum dtype type)
{
    if (t->tol[type].set)
        return t->tol[type];
    const struct dtype_info *d = dtype_info(type);
    // An oracle in the type itself has rounding errors of its own, and a candidate may have as many the other
    // way.
    double twice = t->ref_original ? 2 : 1;
    return (struct task_tol){true, d->rtol * twice, d->atol_k * twice};
}

double compare_rms(const double *v, size_t n)
{
    double sum = 0;
    size_t finite = 0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(v[i])) {
            sum += v[i] * v[i];
            finite++;
        }
    }
    return finite ? sqrt(sum / (double)finite) : 0;
}

static bool right(double y, double r, double allowed)
{
    if (isnan(r))
        return isnan(y);
    if (isinf(r))
        return y == r;
    return fabs(y - r) <= allowed;
}

static void look_closely(const double *y, const double *r, size_t at, size_t n, double rtol, double atol,
                         struct comparison *out)
{
    for (size_t i = 0; i < n; i++) {
        double allowed = rtol * fabs(r[i]) + atol;
        if (right(y[i], r[i], allowed)) {
            if (isfinite(r[i])) {
                double d = fabs(y[i] - r[i]);
                out->error_sq += d * d;
                out->wanted_sq += r[i] * r[i];
            }
            continue;
        }
        if (!out->wrong++) {
            out->first = at + i;
            out->got = y[i];
            out->want = r[i];
            out->allowed = allowed;
        }
        out->last = at + i;
    }
}

void compare_real(enum dtype type, const void *got, const double *want, double rms, size_t n,
                  struct task_tol tol, struct comparison *out)
{
    const struct dtype_info *info = dtype_info(type);
    // Half the smallest denormal more, so that correctly rounded denormals are right.
    double atol = tol.k * info->eps * rms + (type == DT_F32 ? 0x1p-149 : 0);
    double y[BLOCK], worst = 0;
    *out = (struct comparison){.n = n};
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        const double *r = want + at;
        dtype_load_n(type, (const char *)got + at * info->size, y, m);
        double error_sq = 0, wanted_sq = 0, ulp = 0;
        int bad = 0;
        for (size_t i = 0; i < m; i++) {
            double d = fabs(y[i] - r[i]), size = fabs(r[i]), rel = d / (size + rms * 1e-3 + 1e-300);
            bad += !(d <= tol.rtol * size + atol);
            error_sq += d * d;
            wanted_sq += size * size;
            ulp = rel > ulp ? rel : ulp;
        }
        if (bad) {
            look_closely(y, r, at, m, tol.rtol, atol, out);
            continue;
        }
        out->error_sq += error_sq;
        out->wanted_sq += wanted_sq;
        worst = ulp > worst ? ulp : worst;
    }
    out->max_ulp = info->eps > 0 ? worst / info->eps : 0;
}

void compare_exact(enum dtype type, const void *got, const void *want, size_t n, struct comparison *out)
{
    size_t size = dtype_info(type)->size;
    *out = (struct comparison){.n = n};
    if (memcmp(got, want, n * size) == 0)
        return;
    const char *y = got, *r = want;
    for (size_t i = 0; i < n; i++) {
        if (memcmp(y + i * size, r + i * size, size) == 0)
            continue;
        if (!out->wrong++) {
            out->first = i;
            out->got = dtype_load(type, y + i * size);
            out->want = dtype_load(type, r + i * size);
        }
        out->last = i;
    }
}
