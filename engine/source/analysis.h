// What the rules ask about loops. Every question is answered yes, no or unknown, the latter two with words
// that the workbench shows. Conservative: unknown unless proven. Nothing here changes a byte.
#pragma once
#include "source/ast.h"

enum tri { TRI_YES, TRI_NO, TRI_UNKNOWN };
struct answer {
    enum tri v;
    char why[240]; // words for no and unknown, a short ground for yes
};

// A polynomial with integer coefficients over atoms (names, or the text of an invariant expression): 3 + i*n
// + 2*j.
enum { POLY_MAX_DEGREE = 6 };
struct poly_term {
    int64_t coef;
    int n; // atoms, sorted by name
    const char *atom[POLY_MAX_DEGREE];
};
struct poly {
    VEC(struct poly_term) t; // sorted, no zero coefficients; empty is 0
    bool bad;                // not a polynomial (overflow, unknown operator): compares equal to nothing
};
void poly_free(struct poly *p);
void poly_copy(struct poly *to, const struct poly *from);
void poly_const(struct poly *p, int64_t c);
void poly_atom(struct poly *p, const char *name);
void poly_add(struct poly *p, const struct poly *q, int64_t scale); // p += scale*q
void poly_mul(struct poly *p, const struct poly *q);
bool poly_equal(const struct poly *a, const struct poly *b);
bool poly_is_const(const struct poly *p, int64_t *c);
// Splits p = stride*name + rest; false where p is not linear in name.
bool poly_split(const struct poly *p, const char *name, struct poly *stride, struct poly *rest);
bool poly_uses(const struct poly *p, const char *name);
void poly_subst(struct poly *p, const char *name, const struct poly *by);
// C text of it: "i * n + 2 * j + 3".
void poly_print(const struct poly *p, struct str *out);

// A canonical counted loop: var runs from lo while var < hi (hi exclusive) in steps of step > 0, or downwards
// from lo while var > hi (exclusive) with step < 0. The body does not change var, lo, hi or step, and has no
// break, goto, return or continue out of order.
struct loop {
    struct node *stmt; // N_FOR or N_WHILE
    struct node *body;
    struct node *init, *cond, *inc; // inc: the expression that steps (in the body for while loops)
    const char *var;
    struct ctype *type;   // of var; NULL where its declaration was not found
    bool declared_inside; // the loop header declares var
    bool is_while;        // recognised while loop: inc is the last statement of the body
    bool has_break;  // canonical but leaves early (still false for `canonical` questions that need all trips)
    struct node *lo; // NULL: starts at the value var has before the loop
    struct node *hi_node;   // the bound as written
    bool inclusive;         // written <= or >=
    int64_t step;           // 0 where symbolic
    struct node *step_node; // the symbolic step or NULL
    struct poly lo_p, hi_p; // hi_p is exclusive (one added for <=)
    struct loop *outer;     // the loop directly around it, or NULL
    int depth;              // 0 outermost
    bool perfect; // its body holds exactly one loop and nothing else but declarations without initialiser,
                  // comments and pragmas
    uint32_t id;
};

enum access_kind { ACC_READ = 1, ACC_WRITE = 2, ACC_UPDATE = 3 };
struct access {        // of memory through a pointer or array
    struct node *node; // the whole lvalue: A[i*n+k], *p, A[i][j]
    enum access_kind kind;
    const char
        *base;   // the root after pointers were followed: parameter, local array, global; "" where unknown
    bool affine; // sub (and dims) are polynomials
    struct poly sub; // in elements, row-major linearised where the dimensions are known
    int rank;        // dimensions with known subscripts each (declared arrays): dims[0..rank)
    struct poly dims[TYPE_MAX_RANK];
    const char *elem;  // element type's base, or NULL
    bool conditional;  // under an if, ?:, && or || inside its loop body
    struct loop *loop; // innermost loop around it
    struct node *stmt; // the statement it stands in
};

struct scalar_use {
    const char *name;
    struct node *node;
    enum access_kind kind;
    bool conditional;
    struct loop *loop;
    struct node *stmt;
};

enum red_op { RED_NONE, RED_ADD, RED_SUB, RED_MUL, RED_MAX, RED_MIN, RED_AND, RED_OR, RED_XOR };
struct reduction {
    enum red_op op;
    const char *var;            // scalar accumulated, or NULL where it is a memory cell
    struct node *target;        // the lvalue
    struct node *value;         // what is added or compared (NULL for fma: see a, b)
    struct node *fma_a, *fma_b; // s = fma(a, b, s)
    struct node *stmt;
    bool is_float; // reassociating changes rounding
};

struct call_use {
    struct node *node;
    const char *name; // "" where called through an expression
    bool
        pure; // a known function of its arguments alone (math.h, builtins, macros that expand to expressions)
    struct loop *loop;
    struct node *stmt;
};

struct var_info { // a variable of the function: parameter, local or (undeclared here) global
    const char *name;
    struct ctype *type; // NULL where unknown
    struct node *decl;  // N_VAR; NULL for parameters and globals
    bool param, global;
    bool address_taken;
    bool shadowed; // declared more than once with this name: answers about it are unknown
};

struct func;
struct analysis {
    struct ast *t;
    const struct func *f;     // may be NULL
    bool no_alias;            // distinct pointer parameters never overlap, because the task says so
    VEC(struct loop *) loops; // in source order
    VEC(struct access) accesses;
    VEC(struct scalar_use) scalars;
    VEC(struct call_use) calls;
    VEC(struct var_info) vars;
    VEC(const char *)
    positive; // names known to be at least 1 (the caller may add to it, e.g. dims of the task)
    bool has_asm_or_opaque;
};

// Analyses the body parsed into t. f gives the parameters (NULL: none are known).
void analysis_run(struct analysis *a, struct ast *t, const struct func *f, bool no_alias);
void analysis_free(struct analysis *a);

// Loops.
struct loop *analysis_loop(const struct analysis *a, const struct node *stmt); // NULL: not canonical
// Why a for or while statement is no canonical loop.
struct answer loop_canonical(const struct analysis *a, const struct node *stmt);
// The number of iterations as C text, e.g. "n", "(n - 1 + 3) / 4"; false where it cannot be said. For lo < hi
// only: the text may be negative where the loop does not run.
bool loop_trip(const struct analysis *a, const struct loop *l, struct str *out);
bool loop_trip_poly(const struct loop *l, struct poly *out); // step +-1 only
bool loop_trip_const(const struct analysis *a, const struct loop *l, int64_t *n);
// The nest that begins at l and goes down while it is perfect; returns the depth (at least 1), loops in out.
size_t loop_nest(const struct analysis *a, struct loop *l, struct loop **out, size_t max);
bool loop_inside(const struct loop *l, const struct loop *outer); // l == outer counts

// Dependences: may different iterations of l touch the same memory or scalar with a write, other than through
// recognised reductions (listed where red is not NULL) and variables private to an iteration?
// yes = the iterations are independent (up to the reductions).
typedef VEC(struct reduction) reductions;
struct answer loop_independent(const struct analysis *a, const struct loop *l, reductions *red);
// May loops outer and inner (inner directly inside, perfect nest) be exchanged? Reductions into memory cells
// or scalars are allowed where every statement only accumulates (rounding order changes: *reorders is set).
struct answer loop_interchangeable(const struct analysis *a, const struct loop *outer,
                                   const struct loop *inner, bool *reorders);
// May the two accesses touch the same element in different iterations of l (or in any, where l is NULL)?
struct answer access_overlap(const struct analysis *a, const struct access *x, const struct access *y,
                             const struct loop *l);
// The step in elements that the access makes per iteration of l: stride polynomial; false where not affine.
bool access_stride(const struct access *x, const struct loop *l, struct poly *stride);
bool analysis_may_alias(const struct analysis *a, const char *base1, const char *base2);

// Expressions and scalars.
struct answer expr_invariant(const struct analysis *a, const struct node *expr, const struct loop *l);
struct answer expr_pure(const struct analysis *a, const struct node *expr); // no write, no unknown call
bool expr_poly(const struct analysis *a, const struct node *expr, struct poly *out); // macros followed
// Is the value that scalar name has at the end of stmt read after it? (unknown with gotos or address taken)
struct answer scalar_live_out(const struct analysis *a, const char *name, const struct node *stmt);
// Is name written in stmt (also through ++, +=, as a declared variable without counting its own initialiser)?
bool scalar_written(const struct analysis *a, const char *name, const struct node *stmt);
const struct var_info *analysis_var(const struct analysis *a, const char *name);
bool stmt_reduction(const struct analysis *a, const struct node *stmt, struct reduction *out);
bool call_is_pure(const struct analysis *a, const char *name);
// A name with this prefix that occurs nowhere in the file: "ks_acc", "ks_acc2", ... malloc'ed.
char *analysis_fresh(const struct analysis *a, const char *prefix);
