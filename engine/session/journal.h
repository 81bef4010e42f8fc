// The journal: an append-only file of JSON lines, the truth of a session. Each line is one object
//   {"n":17,"t":1764569471.123,"ev":"candidate",...,"crc":"9f3a11c2"}
// n counts from 1 without gaps, t is the wall clock in seconds, ev names the event (state.h lists all of them
// with their keys), crc is CRC-32 (8 lower-case hex digits) of the line's bytes before `,"crc"`. One process
// writes (it holds the session's lock); any number read, also while it grows.
#pragma once
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum journal_sync {
    JOURNAL_LAZY, // reaches the disk when the system likes: what a lost tail of costs only repeated work
    JOURNAL_SYNC, // fdatasync before the call returns: steering, acceptances, all that is acknowledged
};

// One line. The pointers belong to the reader (or writer) and hold until its next call.
struct journal_line {
    int64_t n;         // the line's number = its "n"
    double t;          // seconds since 1970
    const char *ev;    // inside event
    const json *event; // the whole object
    int64_t offset;    // of its first byte in the file: journal_line_at() reads it again
    size_t len;        // with its newline
};

struct journal {
    int fd; // -1 when closed
    char *path;
    int64_t last;     // number of the last line; 0 in an empty journal
    int64_t size;     // bytes of whole lines
    bool broken;      // a write failed in a way that cannot be taken back: open the session again
    int64_t unsynced; // bytes appended since the last sync
    struct str text;  // the line being made
    json *event;      // of the last line appended
};

// Opens (creates) the journal to append. A torn tail is cut off: *cut (may be NULL) gets how many bytes; they
// are kept in PATH.torn. The caller has read the journal to its end before (`last`, `size` from the reader)
// and passes that reader, so that nothing is read twice. All that was found is synced.
struct journal_reader;
int journal_open(struct journal *j, const char *path, const struct journal_reader *at_end, int64_t *cut,
                 struct err *e);
void journal_close(struct journal *j);

// Appends one event, which it takes over (also on error), and fills *line (may be NULL). n, t and crc are
// added here, t only where the event has none. On error (disk full) the file is as it was before.
int journal_append(struct journal *j, json *event, enum journal_sync sync, struct journal_line *line,
                   struct err *e);
int journal_flush(struct journal *j, struct err *e); // syncs what was appended lazily

// Reading. A reader of a missing file stands at the end of an empty journal.
struct journal_reader {
    int fd; // -1 where there is no file yet
    char *path;
    int64_t offset; // of the next line
    int64_t last;   // number of the last line read
    char *buf;      // bytes [start, end) of it are read and not yet used
    size_t start, end, cap;
    json *event;
    int64_t torn; // bytes of a last line that is not whole, as of the last journal_next() that returned 0
};
int journal_reader_open(struct journal_reader *r, const char *path, struct err *e);
// Goes on after line n, which ends at byte offset (from a snapshot).
void journal_reader_seek(struct journal_reader *r, int64_t offset, int64_t n);
// 1 and a line, 0 at the end (call again when the file has grown), -1 for a bad line: e names file and line.
int journal_next(struct journal_reader *r, struct journal_line *line, struct err *e);
void journal_reader_close(struct journal_reader *r);

// The event of the line at an offset that a fold kept (details on demand). Caller frees it.
json *journal_line_at(const char *path, int64_t offset, struct err *e);
