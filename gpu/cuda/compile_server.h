// The worker's handle on the NVRTC process (nvrtc.h): started in the compilers' sandbox when it is first
// needed, killed when an answer does not come, and started anew.
#pragma once
#include "base/json.h"
#include "base/task.h"

struct compile_server;

// include: folders that the compiler may read besides CUDA's own, absolute; may be NULL.
int compile_server_open(const strings *include, struct compile_server **out, struct err *e);
void compile_server_close(struct compile_server *s);
// "-I..." options of CUDA's own headers, a line each.
const char *compile_server_includes(const struct compile_server *s);
const char *compile_server_library(const struct compile_server *s);
// One compile. Returns the answer (see nvrtc.h), with its bytes in cubin and ptx; NULL and an error where the
// process gave none: e->kind is ERR_USAGE where it ran out of time or memory, which is the source's fault.
json *compile_server_ask(struct compile_server *s, const char *source, const char *file,
                         const char *const *options, size_t n, const char *const *names, size_t nnames,
                         struct str *cubin, struct str *ptx, struct err *e);
