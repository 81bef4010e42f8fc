// The right to measure on this machine's CPUs or on one of its GPUs: one lock for all sessions and all users,
// held only while timing.
#pragma once
#include "base/err.h"

#include <stdbool.h>

struct lease;

// Opens the lock of what ("cpu", or a GPU's UUID), /tmp/ksmith-lease/WHAT or below the folder $KSMITH_LEASE
// (for machines whose users have no common /tmp). Where the shared folder cannot be used safely the lease is
// private to this process and lease_warning says so.
int lease_open(struct lease **out, const char *what, struct err *e);
void lease_close(struct lease *l);                // releases
const char *lease_warning(const struct lease *l); // NULL where all is well
const char *lease_path(const struct lease *l);
// Waits until the lock is ours. stop (may be NULL) is asked about every 20 ms. Returns 0 held; 1 stopped, or
// timeout_ms
// (-1: none) passed; -1 trouble. Taking a held lease is no error.
int lease_take(struct lease *l, int timeout_ms, bool (*stop)(void *user), void *user, struct err *e);
void lease_release(struct lease *l);
bool lease_held(const struct lease *l);
// Whether another process waits: then release between two replicates, see lease_yield.
bool lease_wanted(const struct lease *l);
// Gives a waiting process its turn and takes the lease again; returns as lease_take, at once where nobody
// waits.
int lease_yield(struct lease *l, int timeout_ms, bool (*stop)(void *user), void *user, struct err *e);
