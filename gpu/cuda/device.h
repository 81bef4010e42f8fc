// The worker's handle on its GPU process (link.h): started when it is needed, killed when a run does not end,
// started anew with all that was on the device. What it cost is nobody's but the candidate's that did it.
#pragma once
#include "cpu/judge.h"
#include "cuda/build.h"
#include "cuda/link.h"

struct stored { // what lies, or is to lie, on the device
    const void *data;
    uint64_t bytes, hash, salt;
    uint32_t nonce;
    bool sealed, there;
};

struct device {
    pid_t pid; // 0: none
    int to, from, staging_fd, ordinal;
    char *staging;
    struct card_facts facts;
    struct shop_device shop_device;
    struct build_shop *shop;
    struct str trusted; // the cubin of our own kernels
    struct item_key key;
    VEC(struct stored) stores; // number 0 is not used
    struct card_ceilings ceilings;
    json *killers;      // id -> {"status","reason"}: binaries that hung or crashed; never run again
    double *last_ns;    // per bench shape: the faster side of the last race
    double recovery_ms; // of the last restart
    int restarts;
};

int device_open(struct device *d, const struct judge *j, struct err *e);
void device_close(struct device *d);
void device_kill(struct device *d);
// Asks and waits; false where no answer came (the process is dead then) or the card could not be started.
bool device_ask(struct device *d, enum card_op op, const void *data, size_t n, double limit_s,
                struct card_reply *r, struct str *out, struct fault *f);
// The numbers of a set's inputs and expected values; uploads what is missing.
bool device_put(struct device *d, const struct judge *j, const struct shape_data *s, struct dataset *set,
                struct fault *f);
