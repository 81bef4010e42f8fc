// What a model's answer proposes: a patch of SEARCH/REPLACE blocks or a whole source, with a name and a
// description. The text is hostile and sloppy: reasoning is dropped first; tags, JSON, fences of every kind,
// unified diffs and bare code are understood; what is cut off, leaves parts out or is the parent again is
// told apart and never handed on as code.
#pragma once
#include "base/err.h"
#include "base/str.h"

enum reply_kind {
    REPLY_PATCH,  // body: canonical SEARCH/REPLACE blocks for patch_apply
    REPLY_SOURCE, // body: C that defines the function; the whole file, or the function with what it needs
    REPLY_NONE,   // no code in it
    REPLY_CUT,    // half an answer: a fence, a block or a brace stays open, or the server said "length"
    REPLY_ELIDED, // code with "... rest unchanged" in it
    REPLY_BROKEN, // blocks whose markers are out of order
    REPLY_SAME,   // the parent again
    REPLY_KIND_COUNT
};

struct reply_opts {
    const char *func;   // the kernel's name
    const char *parent; // its present source
    size_t parent_len;
    bool cut; // finish_reason said that the token limit ended it
};

struct reply {
    enum reply_kind kind;
    struct str
        name; // one line of at most 72 characters, fit for a commit's subject; empty where none was given
    struct str description; // at most 2000 bytes, fit for a commit's body
    struct str body;        // newlines are LF
    struct str problem;     // where it is neither patch nor source: words to send back to the model
};

// Never fails: a text that proposes nothing is REPLY_NONE.
void reply_read(const char *text, size_t n, const struct reply_opts *o, struct reply *out);
void reply_free(struct reply *r);
const char *reply_kind_name(enum reply_kind k);
