// A thin layer over libgit2 for a bare repository of our own: objects that are synced when a call returns,
// and refs. (The prefix is repo_, since git_ is libgit2's.) Ids are 40 hex digits. Only git.c includes
// git2.h.
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct repo;

// Makes an empty bare repository, whole or not at all.
int repo_create(const char *path, struct err *e);
int repo_open(struct repo **r, const char *path, struct err *e);
void repo_close(struct repo *r);
int repo_refresh(struct repo *r, struct err *e); // after another process packed

int repo_blob(struct repo *r, const char *data, size_t n, char hex[41], struct err *e);
int repo_blob_id(const char *data, size_t n, char hex[41], struct err *e); // without storing
int repo_read(struct repo *r, const char *hex, struct str *out, struct err *e);
bool repo_has(struct repo *r, const char *hex);

struct repo_entry {
    const char *path; // with '/': folders are made
    const char *hex;  // blob
    bool executable;
};
int repo_tree(struct repo *r, const struct repo_entry *entries, size_t n, char hex[41], struct err *e);

struct repo_commit {
    const char *tree;
    const char *const *parents;
    int nparents;
    const char *message;
    const char *author, *mail;
    int64_t time; // seconds; zone UTC
};
// The committer is ksmith; the id is a function of the struct alone.
int repo_commit(struct repo *r, const struct repo_commit *c, char hex[41], struct err *e);
// First line of a commit's message and its k-th parent; -1 where there is no such commit (or parent: "").
int repo_commit_look(struct repo *r, const char *hex, int k, char parent[41], struct str *subject);
int repo_commit_tree(struct repo *r, const char *hex, char tree[41]);

int repo_ref_get(struct repo *r, const char *name, char hex[41]); // 1, 0 where there is none
void repo_ref_drop(struct repo *r, const char *name); // quiet where there is none
int repo_ref_set(struct repo *r, const char *name, const char *hex, struct err *e);

// Packs loose objects (all: and the packs into one), then removes what is in the new pack. It may be killed
// at any moment.
int repo_pack(const char *path, bool all, struct err *e);
size_t repo_loose(const char *path); // an estimate of how many loose objects there are
size_t repo_packs(const char *path);

// Top folder (with '/' at its end) of the git work tree that holds path, and its HEAD commit ("" where it has
// none); NULL where there is no work tree.
char *repo_worktree(const char *path, char head[41]);
