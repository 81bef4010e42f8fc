// What the files probe*.c share; nobody else includes it.
#pragma once
#include "cpu/sandbox.h"

#include <stdbool.h>

struct probe {
    struct sandbox_support have;
    int broken;
    int cpus;
};
// One line of the result. remedy is shown where it does not hold.
__attribute__((format(printf, 5, 6))) void probe_say(struct probe *p, const char *name, bool holds,
                                                     const char *remedy, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void probe_fact(struct probe *p, const char *name, const char *fmt,
                                                      ...);
void probe_compiler(struct probe *p); // the cage of the compiler
void probe_kernel(struct probe *p);   // the cage of the candidate
