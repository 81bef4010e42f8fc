// The lineage: accepted kernels as git commits. The journal is the truth; commits are functions of its `accept` lines, so a
// lost object is rebuilt with the same id, and refs are a cache that start-up sets again.
//
// An acceptance, in order: source blob, tree and commits are written and synced -> the journal's `accept` line is
// synced (the commit point) -> refs are moved.
//
//   refs/heads/main         champions as a fast-forward chain: each commit has the previous main and the winner as parents
//   refs/heads/pick-N       on demand: candidate N as one commit on the baseline, for git cherry-pick
//   refs/ksmith/lineage     a chain that keeps every accepted commit reachable
//   refs/ksmith/attempts    commits of up to 256 sources each: every other source
#pragma once
#include "session/git.h"
#include "session/journal.h"
#include "session/state.h"

struct lineage;

struct lineage *lineage_open(const char *dir, bool create, struct err *e);
void lineage_close(struct lineage *l);
struct repo *lineage_repo(struct lineage *l);

// Makes the commits that accepting candidate c needs (stepping stones before it, its own, main's when it takes the title)
// and returns the `accept` event for the journal, which names them; NULL and an error where an object cannot be written.
// files are the tree of the baseline (kernel first, its blob is replaced by each candidate's); subject is one line;
// trailers are "Key: value\n" lines that the caller knows (device, compiler, ...).
struct lineage_accept {
    const struct state *state;
    const struct cand *cand;
    bool title;
    const char *subject, *body, *trailers;
    const struct repo_file *files; // only for the baseline (id 0); NULL otherwise
    size_t n_files;
};
json *lineage_accept(struct lineage *l, const struct lineage_accept *a, struct err *e);
// Moves the refs to where the accept line says. Called after the line is in the journal.
int lineage_refs(struct lineage *l, const json *accept, struct err *e);
// At start: walks all accept lines of the journal, rebuilds lost commits, sets the refs. Sources that are lost are
// counted in *lost; they do not stop the session.
int lineage_repair(struct lineage *l, const char *journal, size_t *lost, struct err *e);
// Makes every source reachable from refs/ksmith/attempts. Cheap where nothing is new.
int lineage_attempts(struct lineage *l, const struct state *s, struct err *e);
// One commit of candidate id on the baseline's commit, as refs/heads/pick-ID; hex receives its id.
int lineage_pick(struct lineage *l, const struct state *s, int64_t id, const char *message, char hex[41], struct err *e);
