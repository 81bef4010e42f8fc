// The journal: append-only JSON lines, each with its number, time and a CRC over its own bytes. It alone is the truth; all
// else is derived. A torn last line (a crash in the middle of a write) is cut off and said; a bad line elsewhere stops the
// program with its place, since nothing after it could be trusted.
#pragma once
#include "base/json.h"

struct journal;

// Called for each good line in order. offset is where it starts. Returns -1 and words to stop.
typedef int journal_fn(void *user, const json *line, uint64_t offset, struct err *e);

// Opens for appending (creating it) after reading all lines through fn. *torn is how many bytes were cut off the end.
struct journal *journal_open(const char *path, journal_fn *fn, void *user, uint64_t *torn, struct err *e);
void journal_close(struct journal *j);
// Adds "n", "t" and "crc" to event (which stays the caller's) and writes the line; sync makes it durable before returning.
// On failure (disk full) the part that was written is taken away again, and the journal can still be used. *offset (may be NULL) receives where it starts.
int journal_append(struct journal *j, json *event, bool sync, uint64_t *offset, struct err *e);
uint64_t journal_lines(const struct journal *j);

// Reading without writing, also while an engine appends: reads whole lines from *offset on and advances it. A torn last
// line is left for the next call.
int journal_read(const char *path, uint64_t *offset, uint64_t *lines, journal_fn *fn, void *user, struct err *e);
// The one line that starts at offset; NULL and an error where it is bad.
json *journal_line_at(const char *path, uint64_t offset, struct err *e);
