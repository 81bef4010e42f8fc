// The second pass of the tokenizer: partners of brackets, branches of #if.
#pragma once
#include "source/token.h"

void tokens_match(struct tokens *ts);
