// Syntax colours of C and CUDA C for lines of a kernel, from the lossless token stream.
#pragma once
#include "tui/theme.h"

#include <stddef.h>

struct syntax; // the colours of one text
struct syntax *syntax_read(const char *text, size_t n);
void syntax_free(struct syntax *s);
// The slot of the byte at an offset; cheap for offsets that ascend.
enum slot syntax_at(struct syntax *s, size_t at);
