// A bare git repository through libgit2: objects, then refs. Every object and ref is synced before a call returns. Ids are
// 40 hex digits. The only file of the session that includes libgit2 is git.c.
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct repo;
struct repo_file { // of a tree
    const char *path; // "csrc/rms.cu"
    const char *blob;
};
struct repo_commit {
    const struct repo_file *files;
    size_t n_files;
    const char *const *parents;
    size_t n_parents;
    const char *author, *email; // of the author; the committer is always ksmith
    int64_t time;               // seconds since 1970, UTC
    const char *message;
};

struct repo *repo_open(const char *path, bool create, struct err *e);
void repo_close(struct repo *g);
int repo_put_blob(struct repo *g, const char *text, size_t n, char hex[41], struct err *e);
int repo_get_blob(struct repo *g, const char *hex, struct str *out, struct err *e);
bool repo_has(struct repo *g, const char *hex);
int repo_put_commit(struct repo *g, const struct repo_commit *c, char hex[41], struct err *e);
// Creates or moves a ref, whatever it was; no change where it points there already.
int repo_set_ref(struct repo *g, const char *name, const char *hex, struct err *e);
bool repo_get_ref(struct repo *g, const char *name, char hex[41]);
// The user's own identity from git's configuration; false where there is none.
bool repo_identity(char name[128], char email[128]);
// The id that text would have as a blob, without a repository.
void repo_blob_id(const char *text, size_t n, char hex[41]);
