// Keys: from the environment or from a command, fetched when first needed and again when a server refuses
// one. They live in memory only and are registered with the log before anything else sees them.
#pragma once
#include "evolve/loop.h"
#include "models/model.h"

struct keyring;
enum key_state { KEY_READY, KEY_PENDING, KEY_FAILED };

struct keyring *keyring_new(struct loop *loop, struct model *models, size_t n); // models must outlive it
void keyring_free(struct keyring *k);
// Whether model m has its key (or needs none). Starts its command where it has not; pending: ask again soon.
enum key_state keyring_get(struct keyring *k, struct model *m, struct err *e);
// Which fetch the present key came from; keyring_drop forgets it unless it was fetched anew since.
unsigned keyring_age(const struct keyring *k, const struct model *m);
void keyring_drop(struct keyring *k, struct model *m, unsigned age);
// Fetches again after a failure.
void keyring_forgive(struct keyring *k, const struct model *m);
