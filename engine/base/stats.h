// The few statistics a verdict needs. Inputs are not changed unless said; n is the number of values.
#pragma once
#include <stddef.h>

// The q-quantile (0..1) by linear interpolation; sorts v in place. NaN for n == 0.
double stats_quantile(double *v, size_t n, double q);
double stats_median(double *v, size_t n);
double stats_mean(const double *v, size_t n);
double stats_sd(const double *v, size_t n); // sample deviation; 0 for n < 2
// The two-sided Student quantile: P(|T| <= t) = level with df degrees of freedom.
double stats_t(int df, double level);

struct stats_interval {
    double mid, low, high;
};
// Mean of v with its t-interval at the given level, never narrower than +-least.
struct stats_interval stats_t_interval(const double *v, size_t n, double level, double least);
