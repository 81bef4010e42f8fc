#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double stats_quantile(double *v, size_t n, double q)
{
    if (n == 0)
        return NAN;
    qsort(v, n, sizeof *v, ascending);
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? v[i] + (v[i + 1] - v[i]) * (at - (double)i) : v[n - 1];
}

double stats_median(double *v, size_t n)
{
    return stats_quantile(v, n, 0.5);
}

double stats_mean(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return n ? sum / (double)n : NAN;
}

double stats_sd(const double *v, size_t n)
{
    if (n < 2)
        return 0;
    double m = stats_mean(v, n), sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (v[i] - m) * (v[i] - m);
    return sqrt(sum / (double)(n - 1));
}

// P(|T| <= t): the finite sums for integer degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4).
static double t_within(double t, int df)
{
    double theta = atan(t / sqrt((double)df)), c = cos(theta), s = sin(theta), sum = 0, term;
    if (df % 2) {
        term = c;
        for (int k = 1; k <= df - 2; k += 2) {
            sum += term;
            term *= c * c * (k + 1) / (k + 2);
        }
        return 2 / 3.141592653589793 * (theta + s * sum);
    }
    term = 1;
    for (int k = 0; k <= df - 2; k += 2) {
        sum += term;
        term *= c * c * (k + 1) / (k + 2);
    }
    return s * sum;
}

double stats_t(int df, double level)
{
    double low = 0, high = 1e4;
    for (int i = 0; i < 80; i++) {
        double mid = (low + high) / 2;
        if (t_within(mid, df) < level)
            low = mid;
        else
            high = mid;
    }
    return high;
}

struct stats_interval stats_t_interval(const double *v, size_t n, double level, double least)
{
    double mid = stats_mean(v, n);
    if (n < 2)
        return (struct stats_interval){mid, -INFINITY, INFINITY};
    double half = stats_t((int)n - 1, level) * stats_sd(v, n) / sqrt((double)n);
    if (half < least)
        half = least;
    return (struct stats_interval){mid, mid - half, mid + half};
}
