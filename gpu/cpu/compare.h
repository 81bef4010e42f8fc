// Whether an output is right: |y-r| <= rtol*|r| + k*eps(type)*rms(r), NaN and infinities by position,
// integers exact.
#pragma once
#include "base/task.h"

struct comparison {
    size_t n, wrong;
    size_t first, last;         // wrong elements
    double got, want, allowed;  // of the first wrong one
    double error_sq, wanted_sq; // sums over finite elements
    double max_ulp;             // largest error in units of the type's eps at the wanted value
};

// The tolerance that holds for a type in this task.
struct task_tol compare_tolerance(const struct task *t, enum dtype type);
void compare_real(enum dtype type, const void *got, const double *want, double rms, size_t n,
                  struct task_tol tol, struct comparison *out);
void compare_exact(enum dtype type, const void *got, const void *want, size_t n, struct comparison *out);
double compare_rms(const double *v, size_t n); // of the finite values
