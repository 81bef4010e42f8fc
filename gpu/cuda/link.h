// What the worker and its GPU process say to each other: a head, then bytes, both ways, one question at a
// time. Both ends are the same program, so the structs travel as they are. Bulk data goes through a shared
// staging area. The GPU process ("card") owns the context and can be killed at any time; nothing is lost but
// time.
#pragma once
#include "cuda/items.h"
#include "cuda/plan.h"

#include <stdbool.h>
#include <stddef.h>

enum { CARD_STAGING = 64 << 20, CARD_STAGING_FD = 3, CARD_BUFFERS = 48, CARD_SAMPLES = 64, CARD_ARGS = 64 };

enum card_op {
    CARD_OPEN = 1, // int32 device -> struct card_facts
    CARD_LOAD,     // the cubin of trusted.cu
    CARD_STORE,    // struct card_store: room on the device for a number of bytes
    CARD_FILL,     // struct card_store: bytes from the staging area to an offset of a store
    CARD_SEAL,     // struct card_seal -> uint64 hash of what then lies there
    CARD_TRIAL,    // struct trial and what follows it -> struct trial_answer, then results
    CARD_FETCH,    // struct card_fetch: bytes of a buffer of the last trial to the staging area
    CARD_CEILINGS, // -> struct card_ceilings
};
struct card_head {
    uint32_t op, bytes;
};
struct card_reply {
    int32_t error;  // 0; a driver's error number; or CARD_TIMEOUT, CARD_REFUSED (words say why)
    uint32_t lost;  // the context is gone, and the process ends now
    int32_t side;   // whose launch it was
    uint32_t bytes; // that follow
    char words[240];
};
enum { CARD_TIMEOUT = -1, CARD_REFUSED = -2 };

struct card_facts {
    char name[128], driver[64];
    unsigned char uuid[16];
    int driver_version, major, minor, sms, clock_khz, pageable, l2_bytes;
    struct launch_limits limits;
    uint64_t memory, free;
    double open_ms;
};
struct card_store {
    uint32_t id, pad;
    uint64_t offset, bytes;
};
struct card_seal {
    uint32_t id, nonce;
    uint32_t seal, pad; // 0: only the hash
    struct item_key key;
    uint64_t salt;
};
struct card_fetch {
    uint32_t set, buffer;
    uint64_t offset, bytes;
};
struct card_ceilings {
    double copy, memcpy_rate, read; // bytes a second; copy: the best of three kernels
    double fma;                     // fp32 operations a second
    double launch_ns;               // one empty launch within a graph
};

// A trial: one or two candidates on the same buffers. After struct trial come
//   struct trial_buffer [buffers], struct trial_content [contents * buffers], and for each side:
//   struct trial_side, struct trial_buffer [scratch], launches (struct trial_launch, each with its
//   struct trial_arg [args]), the cubin.
enum trial_flag {
    TRIAL_GRAPH = 1,    // timed: the launches as a graph, each side `samples` times in turn
    TRIAL_BRIEF = 2,    // answer only the first thing that is wrong
    TRIAL_MISALIGN = 4, // buffers start anywhere that the task allows
    TRIAL_SEPARATE = 8, // every buffer is an allocation of its own without red zones, for memory checkers
};
struct trial {
    uint64_t salt;
    double limit_s; // of one run
    struct item_key key;
    uint32_t flags, sides, first_side, sets, contents, buffers, samples, red;
    uint32_t repeat, pad; // launches of each set in one run
};
struct trial_buffer {
    uint64_t elements;
    uint32_t type, dir, align, pad;
};
struct trial_content {
    uint32_t master, wanted; // store ids; 0: none
    double rtol, atol, rms, eps;
};
struct trial_side {
    uint32_t scratch, launches, image_bytes, pad;
};
struct trial_launch {
    char name[256]; // in the cubin
    struct launch_at at;
    uint32_t args, pad;
};
struct trial_arg {
    uint32_t kind, index; // PLAN_BUFFER and PLAN_SCRATCH by index; else bits
    uint32_t bytes, pad;  // of the value; 0: as the kernel's parameter has it
    uint64_t bits;
};
struct trial_answer {
    uint32_t
        results; // struct item_result that follow: samples x sets x buffers, or one where BRIEF found a fault
    uint32_t side, sample, set, buffer, content; // of that one
    uint32_t n[2], tainted;
    uint32_t mhz_low, mhz_high;
    uint64_t throttle;
    double ns[2][CARD_SAMPLES]; // per launch of the plan
    uint64_t hashes;            // of all stores that the trial used
};

// The GPU process; with a file it answers the questions recorded there (trial_record) and says on standard
// error what went wrong: that is what memory checkers and profilers run. Never returns.
__attribute__((noreturn)) void card_main(const char *file);
