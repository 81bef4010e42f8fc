// What the rules on loops share beyond rewrite.h: pieces of a loop's header as text, blocks of iterations
// with a remainder, statements with some expressions replaced, and the types of values. Texts are appended.
#pragma once
#include "rules/rewrite.h"

enum { PARTS_UNROLL_MAX = 64 }; // what "#pragma GCC unroll" is given: it takes no macro

// The statements of a body, whether it is a block or a single one.
const struct node *parts_first(const struct node *body);
const struct node *parts_next(const struct node *body, const struct node *n);
bool parts_inner_loop(const struct rule_source *s, const struct loop *l); // no loop of any kind inside

// "for (...)" without the body, as written.
void parts_header(const struct rule_source *s, const struct loop *l, struct str *out);
// The counter's type, "int"; NULL where it is not known or not plain.
const char *parts_counter_type(const struct loop *l);
// Blocks of `count` iterations: a loop over `start`, the first iteration of each block, around code (lines).
// It is a counted loop again, where the counter and its bound are signed, so that other rules understand it.
void parts_block(const struct rule_source *s, const struct loop *l, const char *start, const char *count,
                 const char *code, struct str *out);
// What is left after whole blocks: the loop's header with another first value, and its body. The original
// counter is used, so that it ends where it did.
void parts_rest(const struct rule_source *s, const struct loop *l, const char *start, const char *count,
                struct str *out);
// Its header alone, "for (...) ".
void parts_rest_head(const struct rule_source *s, const struct loop *l, const char *start, const char *count,
                     struct str *out);
// "i_0 + u" or "i_0 + 2 * u": the counter of iteration u of the block that begins at i_0.
void parts_at(const struct loop *l, const char *start, const char *u, struct str *out);
// "for (int u = 0; u < U; u++) { code }" after a pragma that unrolls it or makes it vector code.
void parts_lanes(const char *u, const char *count, bool simd, const char *code, struct str *out);
// Is it, or does it stand in, what an earlier rewrite left over: the rest after whole blocks, or a loop over
// a block? Nothing is to be gained there; why says so.
bool parts_made(const struct rule_source *s, const struct loop *l, char why[240]);
// "lo < hi": the condition of the first iteration.
void parts_runs(const struct rule_source *s, const struct loop *l, struct str *out);
// An expression as an operand of anything: in parentheses unless it is one name, number, call or place.
void parts_operand(const struct rule_source *s, const struct node *n, struct str *out);
// Can blocks of iterations be made of it: a for loop of the kernel's own, without a pragma, whose counter has
// a plain type?
bool parts_blocks_ok(const struct rule_source *s, const struct loop *l, char why[240]);
bool parts_header_ok(const struct rule_source *s, const struct loop *l, char why[240]); // whatever is inside
bool parts_only_math(const struct rule_source *s, const struct loop *l, char why[240]); // no other calls
// A loop over the iterations of a block, made by an earlier rewrite, with no loop in it.
bool parts_is_lanes(const struct rule_source *s, const struct node *stmt);
// Has the first value of the counter one value, before the loop and after it?
bool parts_start_fixed(const struct rule_source *s, const struct loop *l);
// Does the statement stand in (or directly after) "#pragma omp simd"? No such pragma may stand below another.
bool parts_in_simd(const struct rule_source *s, const struct node *stmt);

// Does it run less than `least` times in every shape that the task times? why says how often.
bool parts_short(const struct rule_source *s, const struct loop *l, int64_t least, char why[240]);
// Do all places that move with the loop move by a constant? Along a column no vector is loaded; why says so.
bool parts_along_memory(const struct rule_source *s, const struct loop *l, char why[240]);
// Does a macro of the file name it? Then replacing the name in the text does not replace all.
bool parts_in_macro(const struct rule_source *s, const char *name);

// A statement or expression with names replaced (see ast_clone), its lines moved to column 0.
void parts_clone(const struct rule_source *s, const struct node *n, const struct subst *subst, size_t ns,
                 struct str *out);
// The same with some nodes below n replaced by texts, which are used as they are.
struct swap {
    const struct node *node;
    const char *text;
};
typedef VEC(struct swap) swaps;
void parts_swap(const struct rule_source *s, const struct node *n, const swaps *w, struct str *out);
// The body's statements with the swaps, without its braces, a line for each statement at least.
void parts_body(const struct rule_source *s, const struct node *body, const swaps *w, struct str *out);

// "float", "double", "int", ... of an expression, NULL where it is not known.
const char *parts_type(const struct rule_source *s, const struct node *n);
bool parts_is_float(const char *type);
const struct access *parts_access(const struct rule_source *s, const struct node *n);
// Replaces the statement by "{ code }", the code being lines without indentation.
void parts_place(const struct rule_source *s, const struct node *stmt, const char *code, struct str *out);
// The same without braces where the statement stands in a block: several statements take its place.
void parts_replace(const struct rule_source *s, const struct node *stmt, const char *code, struct str *out);
// In place of all from one statement to another of the same block.
void parts_replace_two(const struct rule_source *s, const struct node *from, const struct node *to,
                       const char *code, struct str *out);
// "{\n" code "}\n" with the code one step deeper.
void parts_braces(struct str *out, const char *before, const char *code);
// An unused name made of parts: NAME + suffix.
char *parts_name(const struct rule_source *s, const char *name, const char *suffix);
// A parameter of a site as {"name": [values...]}; values NULL-terminated.
json *parts_choice(const char *name, const char *const *values);
// The loop that a descriptor names; NULL and an error "RULE: ..." where there is none.
const struct loop *parts_loop(const struct rule_source *s, const char *rule, const char *where,
                              struct err *e);
// " reduction(+:s) reduction(max:t)" for what a loop accumulates, as OpenMP has it (simd.c); false and words
// where one has no clause.
bool parts_reductions(const struct rule_source *s, const reductions *reds, struct str *out, char why[240]);
