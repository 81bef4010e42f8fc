// What rules share: indentation, splices, names, and the annotations that a rewrite brings with it (a flag
// that it needs, a knob that it introduces). All work on text and give whole new texts.
#pragma once
#include "rules/rule.h"

// White space at the start of the line that the statement begins on; malloc'ed.
char *rewrite_indent(const struct rule_source *s, const struct node *stmt);
// The text with statement n (and its own indentation kept) replaced by body, whose lines are indented already
// but for the first.
void rewrite_replace(const struct rule_source *s, const struct node *n, const char *body, struct str *out);
// The text with a line put before statement n, indented like it.
void rewrite_before(const struct rule_source *s, const struct node *n, const char *line, struct str *out);
// Appends code to out, each line indented by indent (the first one too), a newline after each.
void rewrite_lines(struct str *out, const char *indent, const char *code);

// Puts a flag into the kernel's flags annotation (made inside the body where there is none); no change where
// it is there or in the task's cflags already. text is replaced.
int rewrite_need_flag(const struct rule_source *s, struct str *text, const char *flag, struct err *e);
// Puts lines at the start of the body. text is replaced.
int rewrite_at_start(const struct rule_source *s, struct str *text, const char *lines, struct err *e);
// Puts "#define NAME value // knob: values" at the start of the body. values is a NULL-terminated list.
int rewrite_add_knob(const struct rule_source *s, struct str *text, const char *name, const char *value,
                     const char *const *values, struct err *e);
// A macro or variable name that occurs nowhere in the source: PREFIX, PREFIX2, ...; malloc'ed.
char *rewrite_name(const struct rule_source *s, const char *prefix);
// The parameter's value as text: params' member, or the site's default.
const char *rewrite_param(const json *params, const char *name, const char *otherwise);
// Adds a site. why is what would be done (ok) or why not.
__attribute__((format(printf, 6, 7))) void rewrite_site(const struct rule_source *s, rule_sites *out,
                                                        const struct node *stmt, bool ok, json *params,
                                                        const char *why, ...);
// Whether a #pragma stands directly before the statement (then most rules leave the loop alone).
bool rewrite_has_pragma(const struct rule_source *s, const struct node *stmt);
// The statement named by where, or NULL and an error.
struct node *rewrite_find(const struct rule_source *s, const char *where, struct err *e);
