// A file system in memory that knows what would be on the disk: every node has its present contents and those
// of its last sync; a folder's entries are durable when the folder was synced, a file's bytes when the file
// was.
#pragma once
#include "base/str.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct node;
struct entry {
    char *name;
    struct node *node;
};
typedef VEC(struct entry) entry_list;
struct node {
    bool dir, ever_synced;
    struct str now, synced;             // a file's bytes
    entry_list entries, synced_entries; // a folder's
};

enum variant {
    KEPT,   // all that was done is there: a killed process, the machine ran on
    STRICT, // only synced bytes under synced names
    NAMES,  // names arrived, unsynced bytes did not
    TORN,   // names arrived, half of the unsynced bytes did
    ZEROS,  // names and lengths arrived, unsynced bytes are zeros
    MIXED,  // any of these, drawn for each file and folder
    VARIANTS
};
extern const char *const variant_names[VARIANTS];

struct model {
    struct node *root;
    char *prefix; // path of the root in the log
    VEC(struct known {
        uint64_t ino;
        struct node *node;
    })
    inodes;
};

struct op {
    char name[12];
    uint64_t ino;
    int64_t at;
    const char *data;
    size_t n;
    char *a, *b; // paths
};

// One operation of the log at *p; false at its end.
bool op_read(const char **p, const char *end, struct op *op);
void op_free(struct op *op);
void model_init(struct model *m, const char *prefix);
void model_apply(struct model *m, const struct op *op);
// Writes what would be on the disk to a real folder.
void model_write(const struct model *m, const char *path, enum variant v, uint64_t seed);
