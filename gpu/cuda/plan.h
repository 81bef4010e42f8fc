// How a candidate is launched: kernels in order, with blocks, threads, dynamic shared memory and arguments,
// and the scratch buffers that only they share. Read from the source's own comments, else from the task's
// [launch]:
//   // launch: k<<<ceildiv(N, BLOCK), BLOCK, BLOCK*sizeof(float)>>>(x, y, N)
//   // scratch: tmp f32[N]
// Expressions may use dims, integer values, and the source's own #define and const constants.
#pragma once
#include "base/str.h"
#include "base/task.h"
#include "base/vec.h"
#include "cuda/report.h"

enum plan_kind { PLAN_BUFFER, PLAN_SCRATCH, PLAN_ARG, PLAN_INT, PLAN_FLOAT };
struct plan_arg {
    enum plan_kind kind;
    int index; // of the task's buffer (in parameter order, buffers only), the scratch, or the task's arg
    struct expr *expr; // PLAN_INT
    double value;      // PLAN_FLOAT
    bool twice;        // PLAN_FLOAT: written without f, a double
};
struct plan_launch {
    char *name;                               // as written: k, ns::k, k<256>
    struct expr *grid[3], *block[3], *shared; // NULL: 1, 1, 0
    VEC(struct plan_arg) args;
};
struct plan_scratch {
    char *name;
    enum dtype type;
    struct expr *dim[TASK_MAX_RANK];
    int rank;
};
struct plan_constant {
    char *name, *text;
    bool twice; // defined differently in two places: not usable
};
struct plan {
    VEC(struct plan_launch) launches;
    VEC(struct plan_scratch) scratch;
    VEC(struct plan_constant) constants;
};

// A launch at one shape.
struct launch_at {
    unsigned grid[3], block[3];
    size_t shared;
};
enum { PLAN_MOST = 16 };
struct plan_at {
    int n, nscratch;
    struct launch_at launch[PLAN_MOST];
    int64_t scratch[PLAN_MOST]; // elements
};

// What a device can launch.
struct launch_limits {
    int max_threads, max_block[3], max_grid[3];
    int shared_block, shared_optin, regs_block;
};

// Returns 0, or -1 with the reason in words. The plan is always safe to free.
int plan_read(struct plan *p, const struct task *t, const char *source, struct str *why);
void plan_free(struct plan *p);
// Numbers at a shape's dims.
int plan_eval(const struct plan *p, const struct task *t, const int64_t *dims, struct plan_at *out,
              struct str *why);
// The integer value of PLAN_INT argument a at dims.
int plan_int(const struct plan *p, const struct task *t, const struct plan_arg *a, const int64_t *dims,
             int64_t *out);
// Whether the device can launch it, r being the compiler's report of the kernel (may be NULL): -1 and the
// numbers in words.
int plan_fits(const struct launch_at *l, const char *name, const struct kernel_report *r,
              const struct launch_limits *limits, struct str *why);
