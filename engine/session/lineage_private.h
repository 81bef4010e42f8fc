// What the files of the lineage share.
#pragma once
#include "session/git.h"
#include "session/lineage.h"
#include "session/state.h"

struct lineage {
    struct repo *repo;
    char *path;
    bool write;
};

#define LINEAGE_MAIN "refs/heads/main"
#define LINEAGE_KEEP "refs/ksmith/lineage"
#define LINEAGE_ATTEMPTS "refs/ksmith/attempts"
#define LINEAGE_RECENT "refs/ksmith/recent"

// The tree of the project with the given kernel source.
int lineage_tree(struct lineage *l, const struct state *st, const char *blob, char hex[41], struct err *e);
// The commit as the journal tells it, stored if it is not there.
int lineage_commit(struct lineage *l, const struct state *st, const struct commit *c, char hex[41],
                   struct err *e);
// Sets main and the chain that keeps accepted commits, as the fold says; *moved counts refs that changed.
int lineage_refs(struct lineage *l, const struct state *st, int *moved, struct err *e);
