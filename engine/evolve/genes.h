// Compiler flags as genes: groups of alternatives of which a candidate carries at most one each. Parts of
// -ffast-math are genes of their own, and the whole is one too, since glibc declares its vector functions
// only under the whole (softmax: 1.1x by parts, 7.7x whole). Whole and the parts that change values need
// `allow = fast-math`.
#pragma once
#include "base/draw.h"
#include "base/task.h"

struct gene {
    const char *group; // alternatives within a group exclude each other
    const char *flags; // words to add, "" for none
    bool fast_math;    // only where the task allows it
    bool threads;      // only where the task allows threads
    const char *why;   // one line for the engineer
    bool cuda;         // of NVRTC; the others are the C compiler's
};
extern const struct gene genes[];
extern const int genes_n;

// All genes that the task allows and that the task's own cflags do not already contain.
int genes_allowed(const struct task *t, int *out, int max);
// flags with gene g put in and its group's other alternatives taken out; or g taken out where it is in. The
// strings of the result are new and the caller's. Returns false where nothing would change.
bool genes_toggle(const strings *flags, int g, strings *out);
bool genes_has(const strings *flags, int g);
// Do two different words belong to alternatives of one group (so that a candidate carries at most one)?
bool genes_exclude(const char *word, const char *other);
