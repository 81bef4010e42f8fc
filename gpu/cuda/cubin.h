// Reading a cubin (an ELF file) without any tool: which kernels it holds, which outside functions it needs,
// and an identity of its code. Input is not trusted: every offset is checked.
#pragma once
#include "base/err.h"
#include "base/vec.h"

#include <stddef.h>

struct cubin {
    VEC(char *) kernels;            // entry functions, by their names in the binary (mangled)
    VEC(char *) needs;              // undefined functions: vprintf, malloc, __assertfail
    size_t code_bytes, state_bytes; // state: variables that a kernel can write and find again
    char code_id[65];               // SHA-256 of code and constants; names and line tables do not count
};

int cubin_read(const void *image, size_t n, struct cubin *out, struct err *e);
void cubin_free(struct cubin *c);
// The kernel that `name` ("rmsnorm", as the source has it, or the binary's own name) means: exact, or the one
// whose mangled name ends its (possibly nested) name with it. NULL where none or several match; *matches is
// their number.
const char *cubin_kernel(const struct cubin *c, const char *name, int *matches);
