// Shared by the files of the analysis only.
#pragma once
#include "source/analysis.h"

__attribute__((format(printf, 2, 3))) struct answer answer(enum tri v, const char *fmt, ...);
struct answer yes(const char *why);
void loops_find(struct analysis *a);    // fills a->loops; wants the variables
void accesses_find(struct analysis *a); // fills accesses, scalars and calls; wants the loops
