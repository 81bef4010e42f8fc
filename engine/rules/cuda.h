// What the rules on CUDA kernels share: how the kernel is launched, what its indices are made of, its loops
// over threads. A kernel's own names are followed to their only definition; whatever is not understood is an
// atom that equals only itself.
#pragma once
#include "rules/parts.h"

// ---- the launch of this kernel, from the source's comments or the task

struct cu_launch {
    char *grid[3], *block[3]; // NULL past ngrid, nblock
    int ngrid, nblock;
    char *shared; // NULL where not written
    char *args;   // "out, x, N"
};
// -1 and the reason where the kernel is launched not at all, more than once, or in an unknown way.
int cu_launch_read(const struct rule_source *s, struct cu_launch *l, char why[240]);
void cu_launch_free(struct cu_launch *l);
void cu_launch_print(const struct rule_source *s, const struct cu_launch *l, struct str *out);
// Puts the launch into text: in place of the kernel's launch comment, or, where the task has the launches,
// all of those as comments at the start of the body.
int cu_launch_put(const struct rule_source *s, struct str *text, const struct cu_launch *l, struct err *e);
// Is the launch one-dimensional? Sizes of 1 do not count.
bool cu_launch_flat(const struct cu_launch *l);
// The number of threads in dimension d where it is a number or a constant that is one; 0 otherwise.
int64_t cu_block_size(const struct rule_source *s, const struct cu_launch *l, int d);
// Is the expression the number of threads in x, as a number, constant or blockDim.x?
bool cu_is_block(const struct rule_source *s, const struct node *n, const struct cu_launch *l);
// Is each value that the block size may take a multiple of 32 (it is a number, or a knob with such values)?
bool cu_block_warps(const struct rule_source *s, const struct cu_launch *l);
// Whether an expression mentions a name; text with each occurrence of a name or number replaced.
bool cu_mentions(const char *text, const char *word);
void cu_replace(const char *text, const char *word, const char *by, struct str *out);

// ---- expressions

// Like expr_poly, but follows locals that are set once, and takes threadIdx.x and the like and everything
// that is not understood as atoms. Macros are atoms by name.
void cu_poly(const struct rule_source *s, const struct node *n, struct poly *out);
// p[i] or *p through locals that are set once: the parameter or array, and the element. false where unknown.
bool cu_access(const struct rule_source *s, const struct node *n, const char **base, struct poly *sub);
// The only definition of a local that is never set again; NULL otherwise.
const struct node *cu_value(const struct rule_source *s, const char *name);
// Has a local no other value than its declaration gives it?
bool cu_set_once(const struct rule_source *s, const char *name);
// The parameter or array that a pointer's name leads to, NULL where unknown.
const char *cu_root(const struct rule_source *s, const char *name);
// Is the parameter or array written, as far as the kernel says? Unknown writes count.
bool cu_written(const struct rule_source *s, const char *base);
// The element's type of a pointer parameter or array, NULL where unknown, and its size.
const char *cu_elem(const struct rule_source *s, const char *base);
int cu_elem_size(const char *type);
bool cu_pure_call(const struct rule_source *s, const char *name);
const struct task_arg *cu_task_arg(const struct rule_source *s, const char *name);
// "threadIdx.x" of a member expression; NULL for anything else.
const char *cu_builtin(const struct node *n);
bool cu_barrier(const struct node *n); // __syncthreads() and its like occur below n

// ---- loops over threads: for (i = LO; i < HI; i += STEP)

struct cu_loop {
    const struct node *stmt, *body, *hi, *lo;
    const struct node *step; // NULL: 1
    const char *var, *type;
    struct poly lo_p, step_p;
};
bool cu_loop_read(const struct rule_source *s, const struct node *stmt, struct cu_loop *l);
void cu_loop_free(struct cu_loop *l);
enum cu_split { CU_NONE, CU_THREADS, CU_GRID, CU_LANES }; // who shares the iterations
enum cu_split cu_loop_split(const struct rule_source *s, const struct cu_loop *l, const struct cu_launch *at);

// ---- one element or row a thread: i = blockIdx.x * blockDim.x + threadIdx.x; if (i < bound) body

struct cu_guard {
    struct cu_launch l;
    const struct node *decl, *test; // the declaration of i, and the if
    const struct node *bound;
    const char *var, *type;
    bool leaves; // "if (i >= n) return;", and what follows is the body
};
// With l read already. false and the reason where there is none.
bool cu_guard_find(const struct rule_source *s, struct cu_guard *g, char why[240]);
// The statements that the guard guards, in order: the first, and the one after n.
const struct node *cu_guard_first(const struct cu_guard *g);
const struct node *cu_guard_next(const struct cu_guard *g, const struct node *n);
// The bound in the launch's words: parameters replaced by what is passed for them. false where it has others.
bool cu_guard_bound(const struct rule_source *s, const struct cu_guard *g, struct str *out);

// ---- one element of a plane a thread: i and j in x and y, both tested against their bounds

struct cu_axis {
    const char *var, *type;
    const struct node *bound;
};
struct cu_plane {
    struct cu_launch l;
    struct cu_axis axis[2];  // of x and y
    const struct node *from; // the first declaration of i or j
    const struct node *body; // the first of the statements that are done for each (i, j)
};
bool cu_plane_find(const struct rule_source *s, struct cu_plane *p, char why[240]);
void cu_plane_free(struct cu_plane *p);
// Puts code in place of everything from the declaration on.
void cu_plane_replace(const struct rule_source *s, const struct cu_plane *p, const char *code,
                      struct str *out);
// Like cu_access, i and j being atoms.
bool cu_plane_access(const struct rule_source *s, const struct cu_plane *p, const struct node *n,
                     const char **base, struct poly *sub);
// sub = stride * var + rest, neither of which depends on the thread.
bool cu_linear(const struct poly *sub, const char *var, struct poly *stride, struct poly *rest);
// While set, these locals are atoms and are not followed. NULL: none.
void cu_keep(const char *a, const char *b);
// An expression of parameters in the words of the launch. false where it has other names.
bool cu_launch_words(const struct rule_source *s, const struct cu_launch *l, const struct node *n,
                     struct str *out);

// ---- sites

// A site that is the kernel as a whole: its descriptor is "kernel".
__attribute__((format(printf, 5, 6))) void cu_site(const struct rule_source *s, rule_sites *out, bool ok,
                                                   json *params, const char *why, ...);
// The "x" of statements: i = blockIdx.x * blockDim.x + threadIdx.x in dimension d?
bool cu_is_global_id(const struct rule_source *s, const struct poly *p, const struct cu_launch *l, int d);
