// What the referee's own kernels (trusted.cu) take: the same structs as there.
#pragma once
#include <stdint.h>

enum item_dir { ITEM_IN, ITEM_OUT, ITEM_INOUT, ITEM_SCRATCH }; // the first three as in enum arg_dir
struct item {                                                  // one buffer of one set
    uint64_t at, bytes, elements, master, salt;
    uint32_t type, dir;
};
struct item_group { // outputs that share expected values
    uint64_t wanted, elements;
    double rtol, atol, rms, eps;
    uint32_t nonce, type, first, n;
};
struct item_result { // none is ~0 in first, before, after and changed
    uint64_t wrong, first, last, unwritten;
    uint64_t before, after; // the nearest changed byte outside, counted from 1
    uint64_t changed;       // the first changed element of an input
    uint64_t hash;          // of an output
    double error_sq, wanted_sq, ulp, got, want;
};
struct item_key {
    uint32_t w[8];
};
