// Prompts from templates: files of text with places, filled from a context that the engine sets. A pure
// function: the same templates, context and budget give the same text. What does not fit is left out in a
// fixed order, and the prompt says so.
//
// Template language: {{name}} is a value; {{#name}}...{{/name}} is kept where the value is not empty, and
// repeated for each item of a list (with {{title}}, {{text}}, {{code}} of the item); {{^name}}...{{/name}} is
// kept where it is empty; NAME.any is "yes" where the list has items. An unknown name is an error with file
// and line.
#pragma once
#include "base/err.h"
#include "base/str.h"

enum ask { ASK_IMPROVE, ASK_REPAIR, ASK_CROSS, ASK_EXPLORE, ASK_SIMPLIFY, ASK_EXPLAIN, ASK_COUNT };
const char *ask_name(enum ask a); // "improve"; also the name of its template
int ask_parse(const char *name, enum ask *out, struct err *e);

struct prompt_item {
    const char *title; // "candidate 17, 1.31x, rule unroll"
    const char *text;  // what came of it, in words; may be NULL
    const char *code;  // a source or a diff; may be NULL
};
struct prompt_items {
    const struct prompt_item *v;
    size_t n; // the most useful first: the last are left out first
};

// Everything a prompt may say; what is NULL or empty is left out with its heading. Not owned.
struct prompt_ctx {
    enum ask ask;
    bool cuda;            // the language of code, and how launches are written
    const char *func;     // the kernel's name
    const char *region;   // what may change, in words: "lines 12-40 (body of sgemm)"
    const char *task;     // facts_task()
    const char *hardware; // facts_hardware()
    const char *title;    // of the parent: "candidate 42, 1.31x over the baseline"
    const char *source;   // the parent
    const char *verdict;  // facts_verdict()
    const char *profile;
    const char *log;                // facts_log()
    struct prompt_items attempts;   // on this parent, the newest first, failures too
    struct prompt_items neighbours; // changes that helped relatives
    struct prompt_items programs;   // the best
    struct prompt_items distant;    // of far cells
    struct prompt_items hints;      // the engineer's; only .text; never left out
    struct prompt_item other;       // ASK_CROSS: the second parent
};

struct prompts; // the templates
// Reads them: a file in one of the folders (in order of preference, NULL-terminated) goes before the one in
// the next. NULL and an error where one is missing everywhere or has a mistake.
struct prompts *prompts_load(const char *const *folders, struct err *e);
// The usual folders: DIR/prompts, $XDG_CONFIG_HOME/ksmith/prompts, the program's own. dir may be NULL.
struct prompts *prompts_open(const char *dir, struct err *e);
void prompts_free(struct prompts *p);

struct prompt {
    struct str system, user;
    struct str cut; // what was left out, in words; empty where nothing was
    size_t cut_bytes;
};
// budget: most bytes of system and user together. -1 where what may not be left out is larger.
int prompt_build(const struct prompts *p, const struct prompt_ctx *c, size_t budget, struct prompt *out,
                 struct err *e);
void prompt_free(struct prompt *p);
