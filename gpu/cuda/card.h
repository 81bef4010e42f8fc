// Inside the GPU process: its state, and the parts of it.
#pragma once
#include "cuda/driver.h"
#include "cuda/link.h"
#include "cuda/nvml.h"

struct card_room { // a store on the device
    gpu_ptr at;
    uint64_t bytes, room; // room: rounded up to 64
    uint64_t hash, salt;
    uint32_t nonce;
    bool used; // by the trial in hand
};

struct card {
    struct gpu gpu;
    int device;
    gpu_ctx context;
    gpu_stream stream;
    struct nvml *nvml;
    char *staging;
    gpu_module trusted;
    gpu_function seal, hash, zones, load, judge_in, judge_out, explain, empty, copy[3], read, fma;
    VEC(struct card_room) stores; // number 0 is not used
    gpu_ptr slab, tables, scalar;
    uint64_t slab_bytes, tables_bytes;
    VEC(struct item) items; // of the last trial
    uint32_t buffers;
    int sms;
};

struct card_reader { // over the bytes of a question
    const char *at, *end;
};
const void *card_take(struct card_reader *r, size_t bytes); // NULL where too few are left

// All return 0 or the reply's error; words and lost are filled in by card_error.
int card_error(struct card *c, struct card_reply *r, int error, const char *what);
int card_refuse(struct card_reply *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Launches one of our own kernels over n elements, rows deep; params as cuLaunchKernel takes them.
int card_launch(struct card *c, gpu_function f, uint64_t n, unsigned rows, void **params);
// Waits for the stream until the deadline.
int card_wait(struct card *c, gpu_event e, double limit_s);
int card_hash(struct card *c, const struct card_room *s, uint64_t *out);
int card_trial(struct card *c, struct card_reader *q, struct card_reply *r, struct str *out);
int card_ceiling(struct card *c, struct card_reply *r, struct card_ceilings *out);
