// Loose objects of a git repository as files: whole or damaged. libgit2 1.5 never returns from reading one
// whose compressed stream is cut short, so no object is handed to it that was not looked at here before. The
// only file that includes zlib is loose.c.
#pragma once
#include "base/str.h"

#include <stdbool.h>

// Whether the loose object `hex` of the repository is there and damaged (empty, cut, not what its header says).
// An object that is only in a pack, or nowhere, is not.
bool loose_damaged(const char *repository, const char *hex);
// Removes every damaged loose object; returns how many, and the ids (blank-separated) in ids.
int loose_sweep(const char *repository, struct str *ids);
