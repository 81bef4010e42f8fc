// The page that the judge and one child share, and the commands that go through it. The judge never believes
// what a child writes here beyond the two numbers of the handshake: the child's process is the candidate's.
#pragma once
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
    CONTROL_BYTES = 16384,
    MAX_BUFFERS = 32,
    MAX_INTS = 6,
    MAX_FLOATS = 8,
    MAX_STACK = 32,
    MAX_GUARDS = 96
};

enum control_op {
    OP_NONE,
    OP_PREPARE, // takes the arguments over; conditions the caches by `condition`
    OP_RUN,     // calls the kernel once
    OP_EMPTY,   // calls an empty function on the same way: the floor
    OP_PING,    // answers at once: shows that the harness has control again
    OP_SLEEP,   // gives the core away until the next command
    OP_QUIT,
};

enum condition { CONDITION_NONE, CONDITION_WARM, CONDITION_COLD };

enum child_state {
    CHILD_STARTING,
    CHILD_SANDBOXED, // about to load the kernel
    CHILD_READY,
    CHILD_FAILED, // `message` says why
};

struct touch {
    uint64_t address, bytes;
    uint32_t write; // read for ownership
    uint32_t pad;
};

// How a call passes its arguments: the System V (and AAPCS64) convention counts integers and floats apart,
// and what finds no register goes to 8-byte stack slots in order.
struct call_args {
    uint64_t ints[MAX_INTS];
    double floats[MAX_FLOATS]; // a float occupies the low half of its slot
    uint64_t stack[MAX_STACK];
};

struct control {
    // Written by the judge.
    alignas(64) _Atomic uint32_t seq; // futex of a sleeping child
    uint32_t op;
    // Written by the child.
    alignas(64) _Atomic uint32_t done; // futex of a sleeping judge
    _Atomic uint32_t asleep;
    _Atomic uint32_t state;
    uint32_t mxcsr; // after the last call
    // Written by the judge before a command.
    alignas(64) struct call_args args;
    uint32_t condition;
    _Atomic uint32_t judge_sleeps; // the judge waits on `done` by futex
    uint32_t touches, pad0;
    struct touch touch[MAX_BUFFERS];
    // What a child needs to start.
    uint64_t arena_address, arena_bytes, llc_bytes;
    int32_t cpu; // -1: any
    uint32_t threads;
    uint32_t guards, pad1;
    struct {
        uint64_t offset, bytes;
    } guard[MAX_GUARDS];
    char library[512], function[256];
    // The child's last words.
    char message[256];
    int32_t signal, syscall;
    uint64_t fault_address;
};
_Static_assert(sizeof(struct control) <= CONTROL_BYTES, "the control page is too small");
