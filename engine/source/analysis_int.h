// Shared by the files of the analysis only.
#pragma once
#include "source/analysis.h"

__attribute__((format(printf, 2, 3))) struct answer analysis_answer(enum tri v, const char *fmt, ...);
struct answer analysis_yes(const char *why);
void analysis_find_loops(struct analysis *a);    // fills a->loops; wants the variables
void analysis_find_accesses(struct analysis *a); // fills accesses, scalars and calls; wants the loops
