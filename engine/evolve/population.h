// The population's policy, as pure functions of the state and of counter-based draws: who may be a parent,
// which one is drawn, which operator gets the next iteration, whether a judged candidate stays in the
// archive. Nothing here changes anything; the engine journals what these functions decide.
#pragma once
#include "base/draw.h"
#include "session/state.h"

// Correct, not killed, not waiting for a human.
bool population_alive(const struct candidate *c);
// May this candidate be changed further: alive, and in the archive, accepted, pinned or the baseline.
bool population_parent_ok(const struct candidate *c);

// Draws a parent on an island. Three of four draws rank by speedup (p ~ 1/rank squared), the others weigh
// fitness against how often a parent was used: sigmoid((log speedup - median) / spread) / (1 + children),
// after ShinkaEvolve (Lange et al., 2025). Focus restricts to a subtree. NULL where no candidate may be a
// parent.
const struct candidate *population_parent(const struct state *s, int island, struct draw d, uint64_t try);

// Draws a second parent for a crossing with `first`, by rank: on its island, neither ancestor nor descendant
// of it. NULL where there is none.
const struct candidate *population_second(const struct state *s, const struct candidate *first, struct draw d,
                                          uint64_t try);

// Weight of an operator by what it brought: mean log gain per evaluation over its own past, with a prior, so
// that every one keeps a share; times what the engineer set with `weight`.
double population_operator_weight(const struct state *s, const char *op);

// The candidate that another one races: the best of its island. Racing a slow parent instead would spend the
// budget on proving that something is faster than what nobody would use.
const struct candidate *population_incumbent(const struct state *s, int island);

// Whether a correct candidate that was not accepted takes a place in the archive: its cell is empty, its
// elite is slower, or (neutral to its parent) it is a stepping stone for steps that only pay together. *over
// receives the elite whose place it takes, or NULL.
bool population_archives(const struct state *s, const struct candidate *c, const struct candidate **over);
// Seconds, evaluations or iterations: the engineer's last word, else the task's; 0: no limit.
double population_budget(const struct state *s, const char *what, double task);
