// Which model is asked next, and whether the budget allows it. Pure functions: the state is what the journal
// says of each model, passed in, so that a run that is replayed chooses the same.
#pragma once
#include "base/draw.h"
#include "base/err.h"
#include "base/str.h"

// What the journal tells of one arm (a model, or an operator: the same bandit serves both).
struct arm {
    const char *name;
    double weight;  // the engineer's; 0: never
    bool busy;      // cannot be asked now (denied, cooling, all its places taken)
    double asked;   // proposals that ended, failures too
    double judged;  // of them, verdicts
    double gain;    // sum over its candidates of max(0, log(speedup over the parent))
    double seconds; // of asking and judging, all proposals
    double usd;     // of all proposals; NAN: a price is unknown
};

struct arm_score {
    double rate;   // gain per hour, with a prior of one mean outcome
    double score;  // 0..1: what the choice is weighed by, before the engineer's weight
    double chance; // of being chosen now
};

// Scores of n arms into out. An arm that was asked fewer than twice scores 1, so that each is tried; the
// others by gain per second and (where every price is known) per dollar, with a bonus for those that were
// asked seldom.
void ensemble_score(const struct arm *arms, int n, struct arm_score *out);
// The arm to use, drawn with the chances; -1 where all are busy or have no weight.
int ensemble_choose(const struct arm *arms, int n, struct draw d, const char *purpose);

struct budget {
    double usd, tokens;             // limits; 0: none
    double spent_usd, spent_tokens; // of what ended
    int unpriced;                   // requests that ended without a known price
};
struct flight { // requests under way
    int n;
    double usd, tokens; // estimates of all of them; usd NAN: unknown
};
// May one more request of about next_usd and next_tokens start? Spent, under way and next must fit. Where it
// may not, why says so in words ("the budget of $5.00 is used: ..."); the run then drains. Unknown prices
// cannot break a dollar limit, so with a dollar limit and an unknown price the answer is no, said once and in
// words.
bool budget_allows(const struct budget *b, const struct flight *f, double next_usd, double next_tokens,
                   struct str *why);
// "about 400 requests, $3.10 to $4.80 of $5.00" before a run; appends. low and high per request; NAN:
// unknown.
void budget_forecast(const struct budget *b, double requests, double low_usd, double high_usd, double tokens,
                     struct str *out);
