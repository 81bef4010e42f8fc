// The lineage: a bare git repository DIR/.ksmith/lineage.git that any git reads. Accepted candidates are
// commits, every other source is a blob. The journal is the truth and refs are a cache of it:
//   refs/heads/main       a fast-forward chain of champions, parents (previous main, winner)
//   refs/heads/pick-N     on demand: candidate N as one commit on the baseline
//   refs/ksmith/lineage   keeps every accepted commit reachable (a chain of commits: previous, accepted)
//   refs/ksmith/attempts  keeps the sources reachable, 256 a commit; refs/ksmith/recent the last ones
// Objects are synced before the journal line that names them; commit text and time come from the journal, so
// that a lost commit is rebuilt with the same id. Object ids are 40 hex digits.
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct state;
struct session;
struct lineage;

enum { LINEAGE_GROUP = 256 }; // sources a commit of refs/ksmith/attempts

int lineage_open(struct lineage **l, const char *path, bool write, struct err *e);
void lineage_close(struct lineage *l);

// Stores a text and syncs it; call before the journal line that names the blob.
int lineage_blob(struct lineage *l, const char *text, size_t n, char hex[41], struct err *e);
// The id that a text has or would have, without storing it.
int lineage_hash(const char *text, size_t n, char hex[41], struct err *e);
// Appends a blob's bytes to out.
int lineage_read(struct lineage *l, const char *hex, struct str *out, struct err *e);

// A file of the project, for the session line ("files"). The first one is the kernel file.
struct lineage_file {
    char *path; // relative to the project's root, with '/'
    char blob[41];
    bool executable;
};
// Reads the kernel file and the local headers it includes ("..." includes, transitively, inside root) and
// stores them as blobs; kernel is relative to root. In a git work tree paths are relative to its top, and
// head (may be NULL) gets HEAD's commit id. Caller frees with lineage_files_free().
int lineage_project(struct lineage *l, const char *root, const char *kernel, struct lineage_file **files,
                    size_t *n, char head[41], struct err *e);
void lineage_files_free(struct lineage_file *files, size_t n);

// What a commit says. The subject is one line; the trailers Candidate, Speedup, Shapes, Operator, Proposer,
// Model, Inspired-by, Device, Driver, Compiler and Ksmith are made from the state.
struct lineage_text {
    const char *subject;
    const char *body;        // further paragraphs, or NULL
    const char *name, *mail; // author, for a human's edit; NULL: ksmith
};
// How a candidate's commit is described: asked for the winner and for each stepping stone before it.
typedef void lineage_describe(void *user, int64_t id, struct lineage_text *text);

struct lineage_accept {
    int64_t id;                 // the winner; its candidate and verdict lines are folded already
    int64_t over;               // the incumbent it beat, or -1
    double gain, low, high;     // over the incumbent, of the recheck
    bool champion;              // also becomes the head of main
    lineage_describe *describe; // NULL: the candidates' own titles
    void *user;
};
// Accepts: stepping stones and winner committed and synced, then the `accept` line (synced: the commit
// point), then refs. An error before the line leaves nothing accepted; a ref that cannot be moved after it is
// only a warning in *e with return 1, since the next start sets it. The baseline (id 0) becomes the root.
int lineage_accept(struct session *s, const struct lineage_accept *a, struct err *e);

struct lineage_repaired {
    int commits, refs, locks; // rebuilt objects, moved refs, stale lock files removed
};
// After objects were lost: the refs that only keep things reachable go, and repair and idle work make their
// chains anew (with the same ids).
void lineage_distrust(struct lineage *l);
// Makes the repository say what the fold says. session_open() for writing calls it.
int lineage_repair(struct lineage *l, const struct state *st, struct lineage_repaired *did, struct err *e);

// Idle work, short: brings refs/ksmith/attempts and /recent up to the fold; at most `groups` full groups a
// call; returns 1 while there is more to do, 0 when done.
int lineage_idle(struct lineage *l, const struct state *st, int groups, struct err *e);
// Whether packing pays (many loose objects).
bool lineage_wants_packing(struct lineage *l);
// Packs loose objects; long: run it in a child process (which may be killed at any moment), then call
// lineage_refresh() in the parent. all = one pack of everything.
int lineage_pack(const char *path, bool all, struct err *e);
int lineage_refresh(struct lineage *l, struct err *e);

// refs/heads/pick-ID: `text` as one commit on the baseline's commit. text is the whole kernel file (a pick
// strips its comments), or NULL for the candidate's own.
int lineage_pick(struct lineage *l, const struct state *st, int64_t id, const char *text,
                 const struct lineage_text *say, char hex[41], struct err *e);
