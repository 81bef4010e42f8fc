// A session's folder DIR/.ksmith: the lock, the journal, the state folded from it, the lineage repository, the samples. An
// engine opens it for writing; listings and workbenches read it without any lock, also while an engine writes.
#pragma once
#include "session/journal.h"
#include "session/lineage.h"
#include "session/state.h"

struct session {
    char *dir;    // the session's folder, absolute
    char *hidden; // DIR/.ksmith
    char *journal_path, *samples, *log_path;
    char *socket; // where the engine listens
    struct state state;
    struct lineage *lineage; // NULL for a reader of a session that never ran
    // writer only
    struct journal *journal;
    int lock;
    // reader only
    uint64_t read_to, read_lines;
    // what opening had to mend, in words for the log; empty where nothing
    struct str mended;
};

// For the engine: makes .ksmith (0700), takes the lock, cuts a torn line, repairs the lineage. Errors name the process (and
// host) that holds the lock.
int session_open(struct session *s, const char *dir, struct err *e);
// For readers. A session that never ran has an empty state.
int session_read(struct session *s, const char *dir, struct err *e);
// Readers: folds what was appended since. Returns how many lines, -1 on error.
int session_refresh(struct session *s, struct err *e);
void session_close(struct session *s);

// Writers: appends and folds one event (which is freed). sync: durable before returning.
int session_append(struct session *s, json *event, bool sync, struct err *e);
// The source text of a candidate, malloc'ed; NULL and an error where it is lost.
char *session_source(struct session *s, const struct cand *c, struct err *e);
// The candidate line or the verdict line of a candidate; NULL where there is none.
json *session_candidate_line(struct session *s, const struct cand *c);
json *session_verdict_line(struct session *s, const struct cand *c);
// Who holds the session's lock: pid (0: nobody) and host.
int session_owner(const char *dir, char host[128]);
