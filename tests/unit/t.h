// A unit test is a program of static void functions, each run by T(name), that prints TAP: "ok 1 - name".
// CHECK says what did not hold and goes on, so that one run shows every failure.
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int t_count, t_failed_tests, t_bad;

#define CHECK(cond)                                             \
    do {                                                        \
        if (!(cond)) {                                          \
            t_bad = 1;                                          \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
        }                                                       \
    } while (0)
#define CHECK_STR(got, want)                                                           \
    do {                                                                               \
        const char *got_ = (got), *want_ = (want);                                     \
        if (!got_ || strcmp(got_, want_) != 0) {                                       \
            t_bad = 1;                                                                 \
            printf("# %s:%d: %s is \"%s\", wanted \"%s\"\n", __FILE__, __LINE__, #got, \
                   got_ ? got_ : "(null)", want_);                                     \
        }                                                                              \
    } while (0)
#define CHECK_INT(got, want)                                                                     \
    do {                                                                                         \
        long long got_ = (long long)(got), want_ = (long long)(want);                            \
        if (got_ != want_) {                                                                     \
            t_bad = 1;                                                                           \
            printf("# %s:%d: %s is %lld, wanted %lld\n", __FILE__, __LINE__, #got, got_, want_); \
        }                                                                                        \
    } while (0)
#define CHECK_NEAR(got, want, tol)                                                                 \
    do {                                                                                           \
        double got_ = (got), want_ = (want);                                                       \
        if (!(fabs(got_ - want_) <= (tol))) {                                                      \
            t_bad = 1;                                                                             \
            printf("# %s:%d: %s is %.12g, wanted %.12g\n", __FILE__, __LINE__, #got, got_, want_); \
        }                                                                                          \
    } while (0)
#define T(fn)                                                          \
    do {                                                               \
        t_bad = 0;                                                     \
        fn();                                                          \
        printf("%sok %d - %s\n", t_bad ? "not " : "", ++t_count, #fn); \
        t_failed_tests += t_bad;                                       \
        fflush(stdout);                                                \
    } while (0)
#define SKIP(name, why) printf("ok %d - %s # SKIP %s\n", ++t_count, name, why)
#define T_END return printf("1..%d\n", t_count), t_failed_tests != 0
