// Element types of kernel arguments, as task.ini names them.
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum dtype { // the order of the table in dtype.c
    DT_F64,
    DT_F32,
    DT_F16,
    DT_BF16,
    DT_F8E4M3,
    DT_F8E5M2,
    DT_I64,
    DT_I32,
    DT_U32,
    DT_I16,
    DT_I8,
    DT_U8,
    DT_BOOL,
    DT_COUNT
};

struct dtype_info {
    const char *name; // "f32"
    size_t size;      // bytes
    bool is_float, is_signed;
    double eps;          // distance from 1.0 to the next value; 0 for integers
    double max;          // largest finite value
    double rtol, atol_k; // default tolerance: |y-r| <= rtol*|r| + atol_k*eps*rms(r); 0 for integers (exact)
    const char *
        c_names[6]; // spellings in C and CUDA C that mean this type, for the signature check; NULL-terminated
};

const struct dtype_info *dtype_info(enum dtype t);
int dtype_parse(const char *name, enum dtype *out); // -1 where unknown
// One element to and from double. Stores round to nearest even and saturate nothing: too large becomes
// infinity.
double dtype_load(enum dtype t, const void *p);
void dtype_store(enum dtype t, void *p, double x);
// n elements at once (the fast path of oracles and checks).
void dtype_load_n(enum dtype t, const void *p, double *out, size_t n);
void dtype_store_n(enum dtype t, void *p, const double *in, size_t n);
