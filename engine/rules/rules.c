// The table of all rules, in the order in which a listing shows them: a line for each, twice.
#include "rules/rule.h"

// clang-format off
extern const struct rule rule_interchange;
extern const struct rule rule_simd;
extern const struct rule rule_accumulators;
extern const struct rule rule_scalar;
extern const struct rule rule_hoist;
extern const struct rule rule_reciprocal;
extern const struct rule rule_unroll;
extern const struct rule rule_jam;
extern const struct rule rule_fission;
extern const struct rule rule_fusion;
extern const struct rule rule_peel;
extern const struct rule rule_unswitch;
extern const struct rule rule_reuse;
extern const struct rule rule_ivdep;
extern const struct rule rule_vecmath;
extern const struct rule rule_tile;
extern const struct rule rule_privatize;
extern const struct rule rule_block;
extern const struct rule rule_pack;
extern const struct rule rule_parallel;
extern const struct rule rule_prefetch;
extern const struct rule rule_align;
extern const struct rule rule_cuda_threads;
extern const struct rule rule_cuda_stride;
extern const struct rule rule_cuda_rows;
extern const struct rule rule_cuda_matmul;
extern const struct rule rule_cuda_turn;
extern const struct rule rule_cuda_coarsen;
extern const struct rule rule_cuda_tree;
extern const struct rule rule_cuda_swap;
extern const struct rule rule_cuda_vector;

const struct rule *const rule_table[] = {
    &rule_interchange,
    &rule_simd,
    &rule_accumulators,
    &rule_scalar,
    &rule_hoist,
    &rule_reciprocal,
    &rule_unroll,
    &rule_jam,
    &rule_fission,
    &rule_fusion,
    &rule_peel,
    &rule_unswitch,
    &rule_reuse,
    &rule_ivdep,
    &rule_vecmath,
    &rule_tile,
    &rule_privatize,
    &rule_block,
    &rule_pack,
    &rule_parallel,
    &rule_prefetch,
    &rule_align,
    &rule_cuda_threads,
    &rule_cuda_stride,
    &rule_cuda_rows,
    &rule_cuda_matmul,
    &rule_cuda_turn,
    &rule_cuda_coarsen,
    &rule_cuda_tree,
    &rule_cuda_swap,
    &rule_cuda_vector,
};
// clang-format on
const size_t rule_table_n = countof(rule_table);
