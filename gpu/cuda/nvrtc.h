// The compile process: `ksmith-cuda --nvrtc` holds NVRTC and nothing else, in a sandbox. It answers one
// request at a time on standard input and output; whoever started it kills it when an answer does not come.
//   -> {"source":TEXT,"file":"k.cu","options":[..],"names":[..]}\n
//   <- {"rc":0,"log":TEXT,"cubin":BYTES,"ptx":BYTES,"names":{expression:lowered}}\n then the cubin's and the
//   PTX's
//      bytes; {"rc":-1,"log":why} where NVRTC itself is missing or fails
#pragma once
#include "base/err.h"
#include "base/str.h"

// The library: $KSMITH_NVRTC, or the names and folders it is known by. Fills path (absolute where it was
// found in a folder) and, for each include folder that exists ("include", "include/cccl"), a line "-I..." in
// includes.
int nvrtc_find(struct str *path, struct str *includes, struct err *e);
// The process's main; never returns.
__attribute__((noreturn)) void nvrtc_main(void);
