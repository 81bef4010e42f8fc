// One kernel before the worker, outside of any search: what `asm` and `profile` have in common.
#pragma once
#include "base/json.h"
#include "cmd/cmd.h"

// Sends the source that `word` names (a candidate of the session, or a file) with the request `op` and
// returns the event of that name, which the caller frees. NULL where it failed: the words were printed,
// *status is set.
json *one_kernel_ask(struct args *a, const char *word, const char *op, int *status);
