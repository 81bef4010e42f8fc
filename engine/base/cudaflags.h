// Which flags of the CUDA compiler a candidate may carry: nothing that names a path or another target.
#pragma once
#include "base/err.h"

// allow_fast_math: the task lets results change as these flags change them. 0, or -1 and what is wrong.
int cudaflags_check(const char *flag, bool allow_fast_math, struct err *e);
