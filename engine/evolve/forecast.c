#include "evolve/forecast.h"

#include "base/io.h"
#include "evolve/population.h"
#include "models/facts.h"

#include <math.h>

// A prompt holds the parent, a few other programs and what was tried; the fixed texts are some 5 kB.
enum { FIXED_BYTES = 5000, PROGRAMS = 4, FEW = 3 };

static double prompt_bytes(const struct task *t)
{
    struct str source = {0}, facts = {0};
    char *path = io_join(t->project, t->kernel_file);
    io_read_file(path, 4 << 20, &source, NULL);
    facts_task(t, &facts);
    double n = FIXED_BYTES + (double)facts.len + PROGRAMS * (double)source.len;
    free(path);
    str_free(&source);
    str_free(&facts);
    return n;
}

static struct cost_range first_guess(const struct proposers *p, const struct task *t)
{
    struct cost_range all = {0};
    double bytes = prompt_bytes(t);
    for (int i = 0; i < proposers_count(p); i++) {
        struct cost_range r = proposers_range(p, i, bytes);
        // A price that one of them does not say leaves the whole unknown.
        all.low_usd = i == 0 || !(r.low_usd > all.low_usd) ? r.low_usd : all.low_usd;
        all.high_usd = i == 0 || !(r.high_usd < all.high_usd) ? r.high_usd : all.high_usd;
        all.low_tokens = i ? fmin(all.low_tokens, r.low_tokens) : r.low_tokens;
        all.high_tokens = fmax(all.high_tokens, r.high_tokens);
    }
    return all;
}

void forecast(const struct proposers *p, const struct task *t, const struct session *s, struct str *out)
{
    const struct state *st = &s->state;
    double asked = 0, tried = 0, tokens = 0, usd = 0;
    bool unpriced = false;
    if (proposers_count(p) == 0)
        return;
    for (size_t i = 0; i < st->models.n; i++) {
        const struct op_stats *m = &st->models.v[i];
        asked += (double)m->asked;
        tried += (double)m->tried;
        tokens += (double)(m->tokens_in + m->tokens_out);
        usd += m->usd;
        unpriced |= m->unpriced > 0;
    }
    struct cost_range r = first_guess(p, t);
    double per_candidate = 1;
    if (asked >= FEW) {
        double mean = unpriced ? NAN : usd / asked;
        r = (struct cost_range){mean * 0.7, mean * 1.5, tokens / asked, tokens / asked};
        per_candidate = asked / fmax(tried, 1);
    }
    struct budget b = {.usd = population_budget(st, "usd", t->usd),
                       .tokens = population_budget(st, "tokens", 0)};
    double left = population_budget(st, "iterations", t->iterations) - fmax(0, (double)st->iterations - 1);
    // What is spent of a budget is no longer there for the requests to come.
    b.usd = b.usd > 0 ? fmax(b.usd - st->usd, 1e-9) : 0;
    b.tokens = b.tokens > 0 ? fmax(b.tokens - (double)(st->tokens_in + st->tokens_out), 1) : 0;
    budget_forecast(&b, fmax(left, 0) * per_candidate, r.low_usd, r.high_usd,
                    (r.low_tokens + r.high_tokens) / 2, out);
}
