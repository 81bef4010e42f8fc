// The population's policy, as pure functions of the state and of counter-based draws: who may be a parent, which one is
// drawn, which operator gets the next iteration, whether a judged candidate stays in the archive. Nothing here changes
// anything; the engine journals what these functions decide.
#pragma once
#include "base/draw.h"
#include "session/state.h"

// May this candidate be changed further: correct, alive, and in the archive, accepted, pinned or the baseline.
bool population_parent_ok(const struct state *s, const struct cand *c);

// Draws a parent on an island. Six of ten draws rank by speedup (p ~ 1/rank), the others weigh fitness against how often a
// parent was used: sigmoid((log speedup - median) / spread) / (1 + children), after ShinkaEvolve (Lange et al., 2025). Focus restricts to a
// subtree, a breed order names the parent. NULL where no candidate may be a parent.
const struct cand *population_parent(const struct state *s, int island, struct draw d, uint64_t try);

// Weights of operators by what they brought: mean log gain per evaluation over their own past, with a prior, so that every
// one keeps a share. names are journal operator names.
double population_operator_weight(const struct state *s, const char *op);

// The candidate that another one races: the best of its island. Racing a slow parent instead would spend the budget on
// proving that something is faster than what nobody would use.
const struct cand *population_incumbent(const struct state *s, int island);

enum population_fate {
    FATE_ACCEPT,  // proven faster than the incumbent
    FATE_ARCHIVE, // best of its cell, or neutral to its parent
    FATE_LEAVE,   // kept as a record only
};
struct population_verdict {
    bool faster;
    double speedup, low, high; // against the baseline
    int cell;
};
enum population_fate population_fate(const struct state *s, const struct cand *c, const struct population_verdict *v,
                                     const struct cand **evicts);
