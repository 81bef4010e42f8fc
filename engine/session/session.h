// A session's folder: DIR/.ksmith/ with lock, journal, fold and lineage in one hand. The engine opens it to
// write, everybody else to read. What happens is told through session_log() and nothing else.
#pragma once
#include "base/err.h"
#include "session/journal.h"
#include "session/lineage.h"
#include "session/state.h"

enum session_mode {
    SESSION_READ,  // no lock, nothing is changed on the disk; the journal may be missing (an empty state)
    SESSION_WRITE, // takes the lock, makes what is missing, cuts a torn line, repairs refs from the fold
};

struct session {
    char *dir;    // real path of the session's folder
    char *ksmith; // DIR/.ksmith
    char *journal_path, *lineage_path, *samples, *log, *snapshot, *lock_path;
    int lock; // descriptor, or -1
    enum session_mode mode;
    struct state state;     // the fold of all lines read so far
    struct journal journal; // SESSION_WRITE only
    struct journal_reader reader;
    struct lineage *lineage; // NULL where a reader finds no repository
    int64_t saved;           // line that the snapshot on the disk reaches
    int64_t cut;             // bytes of a torn tail that were cut off (write) or ignored (read)
};

int session_open(struct session *s, const char *dir, enum session_mode mode, struct err *e);
void session_close(struct session *s); // writes a snapshot (SESSION_WRITE) and gives the lock back

// Appends an event (made by an event_...() of state.h; taken over also on error) and folds it.
int session_log(struct session *s, json *event, enum journal_sync sync, struct err *e);
// SESSION_READ: folds what was appended since; *news gets the number of new lines.
int session_poll(struct session *s, int64_t *news, struct err *e);
// The whole line of a detail that the fold keeps only by place (state.h: at_candidate, at_verdict ...).
json *session_line(const struct session *s, int64_t offset, struct err *e);

// Who runs a session.
struct session_holder {
    char host[128];
    long pid;
    double since; // wall clock, or 0
    bool here;    // this host
    bool alive;   // holds the lock now; for another host: the lock file names it (cannot be checked)
};
bool session_holder(const char *dir, struct session_holder *h); // false where nobody does
// After fork(): the daemon writes its own pid into the lock; any other child must drop what it inherited.
int session_lock_mine(struct session *s, struct err *e);
void session_forget(struct session *s);

// The folder at or above `from` that holds a task.ini; malloc'ed, NULL and an error where there is none.
char *session_find(const char *from, struct err *e);
// The engine's socket: RUNTIME/<16 hex digits of the folder's real path>.sock. malloc'ed.
char *session_socket(const char *dir, struct err *e);
