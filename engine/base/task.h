// A task: what is optimized, as task.ini says it. Loading reports every error of the file with line and
// column. The grammar is in man/ksmith-task.5; the page and this parser come from the same table (task_keys).
#pragma once
#include "base/dtype.h"
#include "base/err.h"
#include "base/expr.h"
#include "base/json.h"

#include <stdint.h>

enum task_backend { BACKEND_CPU, BACKEND_CUDA };
enum task_policy { POLICY_EVOLVE, POLICY_RANDOM, POLICY_KNOBS };
enum task_evolve { EVOLVE_BODY, EVOLVE_FILE, EVOLVE_MARKERS };
enum task_cache { CACHE_WARM, CACHE_COLD };
enum arg_dir { ARG_IN, ARG_OUT, ARG_INOUT, ARG_DIM, ARG_VAL };
enum { TASK_MAX_RANK = 4 };

enum dist_kind {
    DIST_NORMAL,
    DIST_UNIFORM,
    DIST_INT,
    DIST_ZEROS,
    DIST_ONES,
    DIST_ARANGE,
    DIST_PERM,
    DIST_SPARSE
};
struct dist {
    enum dist_kind kind;
    double a, b; // normal(mean, deviation), uniform(low, high), int(low, high) inclusive, sparse(density)
};

struct task_arg { // in C parameter order
    char *name;
    enum arg_dir dir;
    enum dtype type;
    struct expr *shape[TASK_MAX_RANK]; // buffers; row-major
    int rank;
    struct dist dist; // for in and inout; default normal(0,1), integers int(-8,8) (unsigned: int(0,8))
    int align;        // bytes that the caller promises; 0: only the type's own alignment
    double value;     // ARG_VAL
    int dim;          // ARG_DIM: index into task_shape.dims
    int line;
};

struct task_shape {
    char *name;
    int64_t *dims; // one per ARG_DIM argument, in their order
    bool test, bench, hidden;
    double weight; // of a bench shape in the geometric mean
};

struct task_tol {
    bool set;
    double rtol, k; // |y-r| <= rtol*|r| + k*eps(type)*rms(r)
};

typedef VEC(char *) strings;

struct task {
    char *dir;     // the session's folder, absolute
    char *project; // the root that kernel paths are relative to; dir by default
    char *name;
    enum task_backend backend;
    char *kernel_file; // relative to project
    char *kernel_func;
    enum task_evolve evolve;
    VEC(struct expr *) require;
    VEC(struct task_arg) args;
    strings dims;                  // names of the ARG_DIM arguments
    VEC(struct task_shape) shapes; // the file's own; hidden ones are added by task_hidden_shapes
    strings launches;              // cuda: "rmsnorm<<<T, 256, 0>>>(out, x, w, T, H, eps)"
    strings cflags, include, define;
    bool allow_fast_math, allow_threads, allow_precision, allow_asm;
    int threads;
    char *ref_file, *ref_func; // NULL where original = yes
    bool ref_original;
    struct expr *metric_bytes, *metric_flops; // NULL where absent
    struct task_tol tol[DT_COUNT];
    enum task_cache cache;
    bool deterministic;
    double gain, regress; // [accept]
    double race_seconds;  // [accept] time: most wall seconds of one race, default 10
    char *verify;
    enum task_policy policy; // [evolve]
    int islands, iterations;
    int population; // most living candidates, default 1000
    int patience;   // stop after so many iterations without acceptance; 0: never
    uint64_t seed;
    double wall_s, usd;  // [budget]; 0: none
    int64_t evaluations; // [budget]; 0: none
    json *extra;         // sections of other parts ([model NAME], [worker NAME], [proposers], [ui]): {"model
                         // NAME":{"k":"v"}}
};

// overrides are "section.key=value" or, where unambiguous, "key=value" (the --set option); they replace the
// file's. Returns 0, or -1 with every error in errors. t is always safe to free.
int task_load(const char *dir, const char *const *overrides, size_t n, struct task *t, err_list *errors);
// The same from text; path is used in messages. Files (kernel, reference) are not checked for existence.
int task_parse(const char *path, const char *text, size_t len, const char *dir, const char *const *overrides,
               size_t n, struct task *t, err_list *errors);
void task_free(struct task *t);

// Elements of a buffer argument at a shape; -1 and an error on overflow, a negative size, or over 2^40 bytes.
int task_elements(const struct task *t, const struct task_arg *a, const int64_t *dims, int64_t *out,
                  struct err *e);
// Whether require holds for dims.
bool task_allows(const struct task *t, const int64_t *dims);
// Evaluates a metric (bytes or flops) at dims; false where it cannot.
bool task_eval(const struct task *t, const struct expr *x, const int64_t *dims, int64_t *out);
// Appends the referee's hidden shapes: each dimension 1, one less and one more than the smallest test
// shape's, a prime and values drawn from secret, all within require, small enough to check quickly (at most
// ~2^20 elements a buffer). The caller owns them as part of shapes.
void task_hidden_shapes(const struct task *t, uint64_t secret, struct task_shape **out, size_t *n);
void task_shape_free(struct task_shape *s);
// The folder upwards from `from` that holds a task.ini, absolute and malloc'ed; NULL and an error where none
// does.
char *task_find_dir(const char *from, struct err *e);

// The table behind the parser, the man page and completion. Keys "NAME" stand for names of the user's choice;
// the sections model and worker are written [model NAME]. The fields below help are the parser's own.
struct task_parser;
struct task_item;
struct task_key {
    const char *section, *key, *type, *deflt, *help;
    int (*set)(struct task_parser *p, const struct task_key *k, const struct task_item *item);
    size_t at;                // where the value goes in struct task; 0: only into extra
    double low, high;         // of numbers
    const char *const *words; // of a choice; NULL-terminated
    bool list;                // several lines with the key add up
};
extern const struct task_key task_keys[];
extern const size_t task_keys_n;
