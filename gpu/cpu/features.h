// Features of a compiled kernel, read from its machine code: the coordinates of its cell in the archive. The
// bins are fixed, so that cells mean the same in every session.
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct features {
    bool known; // false where objdump is missing or the architecture is not read; all else is 0 then
    // vec: widest registers that do arithmetic in the hot loop: 0 scalar, 1 128 bits, 2 256, 3 512.
    int vec;
    // acc: distinct accumulators of the hot loop: 0 one or none, 1 two or three, 2 up to 7, 3 up to 15, 4
    // more.
    int acc;
    // block: depth of the deepest loop nest: 0 no nest, 1 two deep, 2 three, 3 four or more.
    int block;
    int accumulators, depth; // what was binned
    // Counts over the kernel and the functions of its file.
    int instructions, fma, loads, stores, gathers, calls;
    int spills;     // vector or general registers stored to the stack inside loops
    int code_bytes; // machine code
    int hot_instructions;
};

// path is a shared object made by compile.h. Returns 0 (known may be false), -1 only where the run failed.
int features_of(const char *path, const char *func, struct features *out, struct err *e);
// The machine code of a shared object as objdump prints it, run in the compiler's sandbox; -1 and an error
// where objdump is missing or failed.
int features_listing(const char *path, struct str *listing, struct err *e);
