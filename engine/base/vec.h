// A growable array of any type: VEC(int) ids = {0}; vec_push(&ids, 7); ids.v[0]; ids.n; vec_free(&ids);
// A zeroed one is empty and valid. Elements move when it grows, so keep indices, not pointers.
#pragma once
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define VEC(type)      \
    struct {           \
        type *v;       \
        size_t n, cap; \
    }

#define vec_reserve(x, want)                                 \
    do {                                                     \
        size_t want_ = (want);                               \
        if ((x)->cap < want_) {                              \
            size_t cap_ = (x)->cap ? (x)->cap * 2 : 8;       \
            if (cap_ < want_)                                \
                cap_ = want_;                                \
            (x)->v = xrealloc((x)->v, cap_, sizeof *(x)->v); \
            (x)->cap = cap_;                                 \
        }                                                    \
    } while (0)

#define vec_push(x, ...)                \
    do {                                \
        vec_reserve((x), (x)->n + 1);   \
        (x)->v[(x)->n++] = __VA_ARGS__; \
    } while (0)

// Removes element i and keeps the order of the others.
#define vec_remove(x, i)                                                           \
    do {                                                                           \
        size_t i_ = (i);                                                           \
        memmove((x)->v + i_, (x)->v + i_ + 1, ((x)->n - i_ - 1) * sizeof *(x)->v); \
        (x)->n--;                                                                  \
    } while (0)

#define vec_free(x)            \
    do {                       \
        free((x)->v);          \
        (x)->v = NULL;         \
        (x)->n = (x)->cap = 0; \
    } while (0)

#define countof(a) (sizeof(a) / sizeof *(a))
