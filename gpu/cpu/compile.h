// Candidates become shared objects here: the system's compiler in a sandbox, with its log cut to what helps,
// a cache, an identity for the code that came out, and the checks on symbols that need no run.
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/task.h"

#include <stdbool.h>
#include <stddef.h>

struct compiler; // one per task; not for several threads

// A shared object. The file belongs to the compiler: it stays until 256 later builds or compiler_close.
struct binary {
    char path[512];
    char id[65];        // SHA-256 of the code and data, the same for two sources that compile to the same
    size_t text_bytes;  // machine code
    const void *device; // of a GPU: its struct gpu_kernel
    double flop_rate;   // times the measured FMA ceiling that its instructions could reach; 0: not known
    bool cached;        // nothing was compiled: the same source and flags came before
};

// Finds $CC, or where it is not set gcc, cc or clang; makes a private work folder. The task must outlive the
// compiler.
int compiler_open(const struct task *t, struct compiler **out, struct err *e);
void compiler_close(struct compiler *c);                // removes the work folder
const char *compiler_version(const struct compiler *c); // "gcc 12.2.0"
const char *compiler_path(const struct compiler *c);    // absolute

// Builds the kernel file from its text. flags are a candidate's own, each checked against the allow-list, and
// come after the task's; the baseline has none. While a timing runs anywhere call this outside the lease.
// Returns 0; 1: it does not compile, and log says why in at most 4 KiB, errors first, under the user's file
// name; -1: this machine is in trouble (no compiler, full disk), e says what to do.
int compiler_build(struct compiler *c, const char *source, const char *const *flags, size_t n,
                   struct binary *out, struct str *log, struct err *e);
// Builds the task's reference (ref_file) with -O2 -Dreal=double and <tgmath.h>; results as above.
int compiler_reference(struct compiler *c, struct binary *out, struct str *log, struct err *e);
// The same for any text: a reference, or one of our own small programs. extra flags are not checked.
int compiler_text(struct compiler *c, const char *name, const char *source, const char *const *extra,
                  size_t n, struct binary *out, struct str *log, struct err *e);
// The commands of a build as a user could type them, for `show`.
void compiler_command(const struct compiler *c, const char *const *flags, size_t n, struct str *out);

// What a binary says about itself without being run.
struct binary_facts {
    size_t state_bytes; // writable data and bss: a kernel that keeps state between calls is suspicious
    size_t text_bytes, rodata_bytes;
    bool uses_threads; // it is linked with the OpenMP or the thread library
    char calls[256];   // the outside functions it calls, separated by blanks, cut where long
};
// Returns 0 and facts; 1 and the reason of a rejection in words ("calls system()", "runs code at load time");
// -1 where the file cannot be read.
int compiler_check_binary(const struct compiler *c, const struct binary *b, const char *func,
                          struct binary_facts *facts, struct str *reason, struct err *e);
