// The seccomp programs of the two profiles, written as classic BPF by hand.
#pragma once
#include "cpu/sandbox.h"

#include <linux/filter.h>

struct sandbox_filter {
    struct sock_fprog enter; // for sandbox_enter
    struct sock_fprog lock;  // for sandbox_lock_kernel; empty for a COMPILER
};

// malloc'ed; NULL on an architecture whose numbers this program does not know.
struct sandbox_filter *sandbox_filter_build(enum sandbox_kind kind, bool threads);
void sandbox_filter_free(struct sandbox_filter *f);
