// Assembly made to be read and compared: no addresses and no padding, jumps go to labels, constants are
// called so, and only what the source became is left (not the C library's start-up code).
#pragma once
#include "base/str.h"

// Appends what is worth reading of an `objdump -d --no-show-raw-insn` listing.
void assembly_x86(const char *listing, struct str *out);
// The same of `nvdisasm -c`, whose labels stay as they are.
void assembly_sass(const char *listing, struct str *out);
