#include "evolve/population.h"

#include "base/stats.h"

#include <math.h>

enum { PARENTS_MAX = 4096 };

bool population_alive(const struct candidate *c)
{
    return (c->id == 0 || c->status == ST_OK) && !(c->flags & (CF_KILLED | CF_QUARANTINED | CF_REJECTED));
}

bool population_parent_ok(const struct candidate *c)
{
    return population_alive(c) && (c->id == 0 || (c->flags & (CF_ARCHIVED | CF_ACCEPTED | CF_PINNED)));
}

struct pool {
    const struct candidate *v[PARENTS_MAX];
    double fit[PARENTS_MAX]; // log speedup
    double weight[PARENTS_MAX], copy[PARENTS_MAX];
    int n;
};

static void collect(const struct state *s, int island, bool focus, struct pool *p)
{
    p->n = 0;
    for (size_t i = s->c.n; i-- > 0 && p->n < PARENTS_MAX;) {
        const struct candidate *c = &s->c.v[i];
        bool here = c->island == island || c->id == 0;
        if (here && population_parent_ok(c) &&
            (!focus || s->focus < 0 || state_is_ancestor(s, s->focus, c->id))) {
            p->v[p->n] = c;
            p->fit[p->n++] = c->speedup.value > 0 ? log(c->speedup.value) : 0;
        }
    }
}

static const struct candidate *by_rank(struct pool *p, struct draw d, uint64_t try)
{
    for (int i = 0; i < p->n; i++) {
        double rank = 1;
        for (int k = 0; k < p->n; k++)
            rank += p->fit[k] > p->fit[i] || (p->fit[k] == p->fit[i] && k < i);
        p->weight[i] = 1 / (rank * rank);
    }
    return p->v[draw_weighted(d, "parent-rank", try, p->weight, p->n)];
}

static int children(const struct state *s, const struct candidate *c)
{
    int n = 0;
    for (int64_t k = c->first_child; k >= 0; k = s->c.v[k].next_sibling)
        n++;
    return n;
}

static const struct candidate *by_weight(const struct state *s, struct pool *p, struct draw d, uint64_t try)
{
    memcpy(p->copy, p->fit, (size_t)p->n * sizeof *p->copy);
    double median = stats_median(p->copy, (size_t)p->n);
    for (int i = 0; i < p->n; i++)
        p->copy[i] = fabs(p->fit[i] - median);
    double spread = fmax(stats_median(p->copy, (size_t)p->n), 1e-3);
    for (int i = 0; i < p->n; i++)
        p->weight[i] = 1 / (1 + exp(-(p->fit[i] - median) / spread)) / (1 + children(s, p->v[i]));
    return p->v[draw_weighted(d, "parent-weight", try, p->weight, p->n)];
}

const struct candidate *population_parent(const struct state *s, int island, struct draw d, uint64_t try)
{
    struct pool *p = xmalloc(sizeof *p);
    collect(s, island, true, p);
    if (p->n == 0)
        collect(s, island, false, p);
    const struct candidate *c = NULL;
    if (p->n)
        c = draw_unit(d, "parent-how", try) < 0.75 ? by_rank(p, d, try) : by_weight(s, p, d, try);
    free(p);
    return c;
}

const struct candidate *population_second(const struct state *s, const struct candidate *first, struct draw d,
                                          uint64_t try)
{
    struct pool *p = xmalloc(sizeof *p);
    int n = 0;
    collect(s, first->island, true, p);
    for (int i = 0; i < p->n; i++)
        if (!state_is_ancestor(s, p->v[i]->id, first->id) && !state_is_ancestor(s, first->id, p->v[i]->id)) {
            p->v[n] = p->v[i];
            p->fit[n++] = p->fit[i];
        }
    p->n = n;
    d.seed ^= 0x63726f7373U; // its own draws: those of the first parent chose that one
    const struct candidate *c = n ? by_rank(p, d, try) : NULL;
    free(p);
    return c;
}

double population_operator_weight(const struct state *s, const char *op)
{
    // The prior is worth two tries that gained 5 % each.
    const double prior_n = 2, prior_gain = 0.1;
    const struct op_stats *o = state_op(s, op);
    const char *steered = state_setting(s, "weight", op);
    double n = prior_n + (o ? (double)o->tried : 0), gain = prior_gain + (o ? o->log_gain : 0);
    double w = gain / n + 0.1 / sqrt(n);
    if (!o || o->tried == 0)
        w *= 4; // what was never tried may be the one that matters
    return steered && *steered ? w * strtod(steered, NULL) : w;
}

const struct candidate *population_incumbent(const struct state *s, int island)
{
    // The one that was accepted last was proven faster than all before it.
    for (size_t i = s->accepted.n; i-- > 0;) {
        const struct candidate *c = state_candidate(s, s->accepted.v[i]);
        if (c->id == 0 || (c->island == island && population_alive(c)))
            return c;
    }
    return state_candidate(s, 0);
}

bool population_archives(const struct state *s, const struct candidate *c, const struct candidate **over)
{
    *over = NULL;
    if (!population_alive(c) || c->cell[0] < 0 || !(c->speedup.value > 0))
        return false;
    const struct candidate *elite = state_elite(s, c->island, c->cell);
    if (!elite)
        return true;
    *over = elite;
    if (!population_alive(elite))
        return true;
    const struct candidate *parent = c->nparents ? state_candidate(s, c->parents[0]) : NULL;
    return c->speedup.value > elite->speedup.value ||
           (parent == elite && c->speedup.high >= parent->speedup.value &&
            c->speedup.value >= 0.99 * parent->speedup.value);
}

double population_budget(const struct state *s, const char *what, double task)
{
    const char *steered = state_setting(s, "budget", what);
    double value = steered && *steered ? strtod(steered, NULL) : 0;
    return value > 0 ? value : task;
}
