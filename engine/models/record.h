// What was asked and answered, kept with the session (redacted): for the workbench's eyes, for salvage, and
// for running the same search again without a network. One JSON line per exchange in exchanges.jsonl, only
// ever appended; a torn last line is cut off. A tag names the proposal ("17"), turns count its exchanges (0
// the question, 1 the answer to a diagnostic...).
#pragma once
#include "base/err.h"
#include "base/json.h"

struct record;
// Opens DIR/exchanges.jsonl, to write where `write` (made 0600), else to read. NULL and an error where it
// cannot.
struct record *record_open(const char *dir, bool write, struct err *e);
void record_free(struct record *r);

struct exchange { // texts are not owned; NULL is left out
    const char *tag;
    int turn;
    const char *kind; // "llm", "exec"
    const char *who;  // the model's or command's name
    const char *system, *prompt;
    double temperature; // NAN: none
    const char *end;    // chat_end_name, or "ok", "failed" of a command
    const char *reply, *finish, *error;
    int attempts;
    double seconds, waited, tokens_in, tokens_out, usd; // NAN: unknown
    bool estimated;
    const json *note; // the asker's own, for a replay; copied
    int64_t at;       // where the search stood when the answer came: its number of candidates
};
// Appends it with every registered secret cut out.
int record_add(struct record *r, const struct exchange *x, struct err *e);
// The exchange as it was written; NULL where there is none. Free with json_free. Sees what another process
// appended.
json *record_find(struct record *r, const char *tag, int turn);
size_t record_count(struct record *r);
// The k-th answered request in the order in which the answers came: its last exchange. NULL where there are
// fewer.
json *record_answer(struct record *r, size_t k);
// The newest exchange that fits; NULL where none does.
typedef bool record_fits(void *user, const json *exchange);
json *record_newest(struct record *r, record_fits *fits, void *user);
int64_t record_highest(struct record *r); // of the tags that are numbers; -1 where none is

// The salvage queue: answers that could not be applied, for the engineer to repair in the editor. A file
// each, in DIR/salvage. item: {"tag","parent","who","name","description","kind","body","problem","reply"}.
int salvage_put(const char *dir, const char *tag, const json *item, struct err *e);
json *salvage_list(const char *dir); // an array, by tag; never NULL
json *salvage_get(const char *dir, const char *tag, struct err *e);
int salvage_drop(const char *dir, const char *tag, struct err *e);
