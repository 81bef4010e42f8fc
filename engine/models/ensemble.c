#include "models/ensemble.h"

#include <math.h>

enum { FEW = 2 };
// Share of the choice that goes by the engineer's weights alone, so that no model is ever starved for good.
static const double explore = 0.15, bonus = 0.35;

// Gain per unit of cost, pulled towards the mean of all where little is known.
static double rate_of(double gain, double cost, double mean_gain, double mean_cost)
{
    double c = cost + mean_cost;
    return c > 0 ? (gain + mean_gain) / c : 0;
}

void ensemble_score(const struct arm *arms, int n, struct arm_score *out)
{
    double asked = 0, gain = 0, seconds = 0, usd = 0, best_s = 0, best_d = 0;
    bool priced = true;
    for (int i = 0; i < n; i++) {
        asked += arms[i].asked;
        gain += arms[i].gain;
        seconds += arms[i].seconds;
        usd += arms[i].usd;
        priced &= isfinite(arms[i].usd);
    }
    priced &= usd > 0;
    double g = asked > 0 ? gain / asked : 0, s = asked > 0 ? seconds / asked : 0,
           u = asked > 0 ? usd / asked : 0;
    for (int i = 0; i < n; i++) {
        out[i] = (struct arm_score){.rate = rate_of(arms[i].gain, arms[i].seconds, g, s) * 3600};
        best_s = fmax(best_s, out[i].rate);
        if (priced)
            best_d = fmax(best_d, rate_of(arms[i].gain, arms[i].usd, g, u));
    }
    for (int i = 0; i < n; i++) {
        const struct arm *a = &arms[i];
        double by_s = best_s > 0 ? out[i].rate / best_s : 0;
        double by_d = priced && best_d > 0 ? rate_of(a->gain, a->usd, g, u) / best_d : by_s;
        double seldom = a->asked > 0 ? sqrt(log(1 + asked) / a->asked) : 1;
        double score = sqrt(by_s * by_d) + bonus * fmin(seldom, 2);
        out[i].score = a->asked < FEW ? 1 : fmin(score, 1);
    }
    double total_w = 0, total = 0;
    for (int i = 0; i < n; i++)
        if (!arms[i].busy && arms[i].weight > 0) {
            total_w += arms[i].weight;
            total += arms[i].weight * out[i].score;
        }
    for (int i = 0; i < n; i++)
        if (!arms[i].busy && arms[i].weight > 0)
            out[i].chance = explore * arms[i].weight / total_w +
                            (1 - explore) * (total > 0 ? arms[i].weight * out[i].score / total
                                                       : arms[i].weight / total_w);
}

int ensemble_choose(const struct arm *arms, int n, struct draw d, const char *purpose)
{
    struct arm_score *scores = xcalloc((size_t)n + 1, sizeof *scores);
    double *chance = xcalloc((size_t)n + 1, sizeof *chance), sum = 0;
    ensemble_score(arms, n, scores);
    for (int i = 0; i < n; i++)
        sum += chance[i] = scores[i].chance;
    int chosen = sum > 0 ? draw_weighted(d, purpose, 0, chance, n) : -1;
    free(scores);
    free(chance);
    return chosen;
}

bool budget_allows(const struct budget *b, const struct flight *f, double next_usd, double next_tokens,
                   struct str *why)
{
    double tokens = b->spent_tokens + f->tokens + next_tokens,
           usd = b->spent_usd + (f->n ? f->usd : 0) + next_usd;
    if (b->tokens > 0 && tokens > b->tokens) {
        str_addf(why, "the budget of %.0f tokens is used: %.0f spent, %d requests under way", b->tokens,
                 b->spent_tokens, f->n);
        return false;
    }
    if (b->usd > 0 && (!isfinite(usd) || b->unpriced)) {
        str_addf(why,
                 "a price is unknown, so the budget of $%.2f cannot be kept: give price_in and price_out in "
                 "the model's "
                 "section, or take usd out of [budget]",
                 b->usd);
        return false;
    }
    if (b->usd > 0 && usd > b->usd) {
        str_addf(why, "the budget of $%.2f is used: $%.4f spent, %d requests under way", b->usd, b->spent_usd,
                 f->n);
        return false;
    }
    return true;
}

void budget_forecast(const struct budget *b, double requests, double low_usd, double high_usd, double tokens,
                     struct str *out)
{
    str_addf(out, "about %.0f requests, %.3g million tokens, ", requests, requests * tokens * 1e-6);
    if (!isfinite(low_usd) || !isfinite(high_usd))
        str_add(out, "price unknown");
    else
        str_addf(out, "$%.2f to $%.2f", requests * low_usd, requests * high_usd);
    if (b->usd > 0 && isfinite(high_usd) && high_usd > 0)
        str_addf(out, "; the budget of $%.2f lasts for %.0f requests at least", b->usd,
                 floor(b->usd / high_usd));
    if (b->tokens > 0 && tokens > 0)
        str_addf(out, "; the budget of %.0f tokens lasts for about %.0f", b->tokens,
                 floor(b->tokens / tokens));
}
