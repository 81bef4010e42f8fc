// What a measurement depends on besides the kernel: times taken under another fingerprint are not compared.
#pragma once
#include "base/json.h"

struct compiler;
struct fingerprint {
    char id[17];      // 16 hex digits
    char device[128]; // the CPU's name
};
// Fills f and returns the parts by name ("cpu", "microcode", "kernel", "compiler", "governor", "thp", "aslr",
// "libc",
// ...), which the caller frees. c may be NULL.
json *fingerprint_read(const struct compiler *c, struct fingerprint *f);
