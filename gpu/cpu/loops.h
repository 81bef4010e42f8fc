// The loops of a function in machine code: basic blocks, dominators, natural loops.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum flow { FLOW_NEXT, FLOW_JUMP, FLOW_BRANCH, FLOW_RETURN };
struct flow_insn {
    uint64_t address;
    uint64_t target; // of a jump or branch; 0 where it is unknown
    enum flow flow;
    // Filled by loops_find:
    int depth; // how many loops it is in
    int loop;  // the innermost of them, -1 for none: the number of its header's block
};

// Marks depth and loop of all n instructions of one function. Returns the deepest nest.
int loops_find(struct flow_insn *v, size_t n);
