// The line that is typed into: commands, searches, filters, words for steering. Editing, history and
// completion; knows neither terminal nor views.
#pragma once
#include "base/str.h"
#include "base/vec.h"
#include "tui/canvas.h"
#include "tui/key.h"

enum entry_kind {
    ENTRY_NONE,
    ENTRY_COMMAND,
    ENTRY_SEARCH,
    ENTRY_FILTER,
    ENTRY_TEXT,
    ENTRY_CONFIRM,
    ENTRY_KINDS
};
enum entry_result { ENTRY_GOES_ON, ENTRY_DONE, ENTRY_CANCELLED };

struct entry;
// All that a word may become at the cursor: pushes malloc'ed words that begin with `word`, given the text
// before it.
typedef VEC(char *) word_list;
typedef void entry_complete(void *user, const char *before, const char *word, word_list *out);

struct entry {
    enum entry_kind kind;
    char label[200];
    struct str text;
    size_t cursor; // byte
    VEC(char *) history[ENTRY_KINDS];
    size_t at;   // in the history; n = the line being typed
    char *typed; // that line, while the history is looked at
    word_list choices;
    size_t choice, word_at; // where the word being completed begins
    bool completing;
    entry_complete *complete;
    void *user;
};

void entry_begin(struct entry *p, enum entry_kind kind, const char *label, const char *text);
void entry_end(struct entry *p);
void entry_free(struct entry *p);
// ENTRY_CONFIRM: y is ENTRY_DONE, every other key cancels; p->text holds the key.
enum entry_result entry_key(struct entry *p, const struct key *k);
// Text that was pasted: goes in as it is, newlines as blanks, never as Enter.
void entry_paste(struct entry *p, const char *s, size_t n);
// Draws into one row; returns the column of the cursor.
int entry_draw(const struct entry *p, struct canvas *c, struct rect r);
