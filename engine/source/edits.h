// The edit list of a candidate: which rule, where, with which parameters, in order, from a base source. Lists
// are what crossing, ablation and minimal diffs work on.
#pragma once
#include "rules/rule.h"

struct edit {
    char *rule;   // name of a rule; "knob" sets a knob: where is its name, params {"value":"8"}; "flags" sets
                  // the flags line: params {"flags":"..."}
    char *where;  // site descriptor
    json *params; // object, may be NULL
};
struct edits {
    VEC(struct edit) v;
};
void edits_free(struct edits *l);
void edits_add(struct edits *l, const char *rule, const char *where, const json *params); // copies
void edits_copy(struct edits *to, const struct edits *from);
bool edit_same(const struct edit *a, const struct edit *b);
// JSON: [{"rule":"interchange","at":"for j / for k","with":{...}}, ...]
json *edits_json(const struct edits *l);
int edits_from_json(struct edits *l, const json *j, struct err *e);
// One line of words each: "interchange at for j / for k (tile=8)".
void edits_words(const struct edits *l, struct str *out);

struct edits_env {
    const struct rule *const *rules;
    size_t n;
    const char *path, *func;
    const struct task *task;
};
struct edit_refusal {
    size_t index; // in the list
    char why[320];
};
typedef VEC(struct edit_refusal) edit_refusals;
// Replays the list over base. Refused edits are skipped and listed where refused is not NULL, else the first
// stops with an error. out is the resulting text; done (may be NULL) receives the edits that applied. After
// each edit the text is tokenised again: brackets must balance and the signature must be the same, or the
// edit counts as refused.
int edits_replay(const struct edits *l, const char *base, size_t len, const struct edits_env *env,
                 struct str *out, struct edits *done, edit_refusals *refused, struct err *e);
// A's edits, then those of B that A lacks (common prefix once): what crossing replays.
void edits_cross(const struct edits *a, const struct edits *b, struct edits *out);
// Delta debugging over the list: keeps a smallest sub-list (in order) for which keep() still says true. keep
// is called with sub-lists only; it must hold for the whole list. budget: most calls.
typedef bool edits_keep(void *user, const struct edits *l);
void edits_minimise(const struct edits *l, edits_keep *keep, void *user, size_t budget, struct edits *out);

// Site descriptors of statements: the path of loops by variable ("for i / for k"), "#2" where siblings have
// the same name, then "stmt N", "decl NAME" below the innermost loop. malloc'ed.
char *site_of(const struct analysis *a, const struct node *stmt);
// The statement a descriptor names in this source, or NULL.
struct node *site_find(const struct analysis *a, const char *where);
