#include "evolve/population.h"

#include "base/stats.h"

#include <math.h>

enum { PARENTS_MAX = 4096 };

bool population_parent_ok(const struct state *s, const struct cand *c)
{
    (void)s;
    if (c->killed || c->quarantined || c->evicted)
        return false;
    return c->id == 0 || (c->status == CAND_OK && (c->archived || c->accepted || c->pinned));
}

static bool in_focus(const struct state *s, const struct cand *c)
{
    if (s->focus < 0)
        return true;
    for (; c; c = c->parents[0] >= 0 ? state_cand(s, c->parents[0]) : NULL)
        if (c->id == s->focus)
            return true;
    return false;
}

struct pool {
    const struct cand *v[PARENTS_MAX];
    double fit[PARENTS_MAX]; // log speedup
    int n;
};

static void collect(const struct state *s, int island, bool focus, struct pool *p)
{
    p->n = 0;
    for (size_t i = s->cands.n; i-- > 0 && p->n < PARENTS_MAX;) {
        const struct cand *c = &s->cands.v[i];
        if ((c->island == island || c->id == 0) && population_parent_ok(s, c) && (!focus || in_focus(s, c))) {
            p->v[p->n] = c;
            p->fit[p->n++] = c->speedup > 0 ? log(c->speedup) : 0;
        }
    }
}

// p ~ 1/rank by speedup.
static const struct cand *by_rank(const struct pool *p, struct draw d, uint64_t try)
{
    double weight[PARENTS_MAX];
    for (int i = 0; i < p->n; i++) {
        int rank = 1;
        for (int k = 0; k < p->n; k++)
            rank += p->fit[k] > p->fit[i] || (p->fit[k] == p->fit[i] && k < i);
        weight[i] = 1.0 / ((double)rank * rank);
    }
    return p->v[draw_weighted(d, "parent-rank", try, weight, p->n)];
}

static const struct cand *by_weight(const struct pool *p, struct draw d, uint64_t try)
{
    double weight[PARENTS_MAX], copy[PARENTS_MAX];
    memcpy(copy, p->fit, (size_t)p->n * sizeof *copy);
    double median = stats_median(copy, (size_t)p->n);
    for (int i = 0; i < p->n; i++)
        copy[i] = fabs(p->fit[i] - median);
    double spread = stats_median(copy, (size_t)p->n);
    if (spread < 1e-3)
        spread = 1e-3;
    for (int i = 0; i < p->n; i++)
        weight[i] = 1 / (1 + exp(-(p->fit[i] - median) / spread)) / (1 + p->v[i]->children);
    return p->v[draw_weighted(d, "parent-weight", try, weight, p->n)];
}

const struct cand *population_parent(const struct state *s, int island, struct draw d, uint64_t try)
{
    static struct pool p; // large; the engine has one thread
    collect(s, island, true, &p);
    if (p.n == 0)
        collect(s, island, false, &p);
    if (p.n == 0)
        return NULL;
    return draw_unit(d, "parent-how", try) < 0.6 ? by_rank(&p, d, try) : by_weight(&p, d, try);
}

double population_operator_weight(const struct state *s, const char *op)
{
    // The prior is worth two tries that gained 5 % each.
    const double prior_n = 2, prior_gain = 0.1;
    double n = prior_n, gain = prior_gain;
    for (size_t i = 0; i < s->ops.n; i++)
        if (str_eq(s->ops.v[i].name, op)) {
            n += (double)s->ops.v[i].tried;
            gain += s->ops.v[i].log_gain;
        }
    return gain / n + 0.1 / sqrt(n);
}

const struct cand *population_incumbent(const struct state *s, int island)
{
    // The one that was accepted last was proven faster than all before it.
    const struct cand *best = state_cand(s, 0);
    for (size_t i = 1; i < s->cands.n; i++) {
        const struct cand *c = &s->cands.v[i];
        if (c->island == island && c->accepted && !c->killed && !c->quarantined && c->accept_n > best->accept_n)
            best = c;
    }
    return best;
}

enum population_fate population_fate(const struct state *s, const struct cand *c, const struct population_verdict *v,
                                     const struct cand **evicts)
{
    *evicts = NULL;
    if (v->faster)
        return FATE_ACCEPT;
    const struct cand *elite = state_elite(s, c->island, v->cell);
    if (!elite || elite->killed)
        return FATE_ARCHIVE;
    if (v->speedup > elite->speedup) {
        *evicts = elite->accepted || elite->pinned ? NULL : elite;
        return FATE_ARCHIVE;
    }
    // Neutral to its parent: a stepping stone for steps that only pay together.
    const struct cand *parent = state_cand(s, c->parents[0]);
    bool neutral = parent && v->high >= parent->speedup && v->speedup >= 0.98 * parent->speedup;
    return neutral ? FATE_ARCHIVE : FATE_LEAVE;
}
