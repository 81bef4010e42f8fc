// Candidates become device code here: NVRTC in a sandboxed process of its own, the log cut to what helps, the
// launch plan read and checked, an identity for code and plan, and a cache of both successes and failures.
#pragma once
#include "base/str.h"
#include "cuda/cubin.h"
#include "cuda/plan.h"
#include "cuda/report.h"

struct build_shop; // one per task

struct gpu_kernel { // belongs to the shop; stays until it is closed, or 512 later builds
    struct str image;
    struct cubin cubin;
    struct plan plan;
    kernel_reports reports;
    char *symbol[PLAN_MOST];       // of each launch, as the binary has it
    char id[65];                   // of code and plan: equal ids run the same
    int memory, compute, parallel; // the archive's features, from the PTX
};

struct shop_device {
    int major, minor;
    struct launch_limits limits;
    char driver[64];
    uint64_t memory;
};

// task and device must outlive the shop.
int shop_open(const struct task *t, const struct shop_device *d, struct build_shop **out, struct err *e);
void shop_close(struct build_shop *s);
const char *shop_version(const struct build_shop *s); // "NVRTC 13.0"
// Returns 0; 1: refused or it does not compile: *rejected tells which, log and why say more; -1: this machine
// is in trouble, e says what to do. names of launches are resolved; plans are checked at the shapes given.
int shop_build(struct build_shop *s, const char *source, const char *const *flags, size_t n,
               const int64_t *const *shapes, size_t nshapes, const struct gpu_kernel **out, struct str *log,
               struct str *why, bool *rejected, struct err *e);
// Any text of ours (trusted.cu) for the device; the caller frees image.
int shop_text(struct build_shop *s, const char *source, const char *name, struct str *image, struct err *e);
