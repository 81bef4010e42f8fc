// The race: what a device measures in one replicate (fresh processes or modules, fresh places) becomes a gain
// with an interval. Intervals from within one replicate are too narrow, since process and page placement
// dominate; the t-interval is over replicates, and never narrower than identical code's own spread (the A/A
// floor).
#include "cpu/judge.h"

#include "base/clock.h"
#include "base/stats.h"
#include "worker.h"

#include <math.h>

struct runner {
    struct judge *j;
    const struct race_plan *plan;
    struct race *out;
    double *logs;     // [replicate * shapes + shape]
    double *times[2]; // the same
};

static bool replicate(struct runner *x, const struct binary *const binary[2], int number, struct fault *f)
{
    struct err e = {0};
    size_t shapes = x->j->bench.n, at = (size_t)number * shapes;
    struct race_cells cells = {.ns = {x->times[0] + at, x->times[1] + at}, .samples = x->out->samples};
    if (lease_yield(x->j->lease, -1, NULL, NULL, &e) < 0)
        return fault_set(f, STATUS_TROUBLE, "%s", e.msg);
    bool ok = x->j->ops->replicate(x->j, binary, x->plan, number, &cells, f);
    x->out->tainted += cells.tainted;
    for (size_t k = 0; k < shapes && ok; k++)
        x->logs[at + k] = log(cells.ns[0][k] / cells.ns[1][k]);
    return ok;
}

static double weighted(const struct runner *x, int replicate)
{
    double sum = 0, weights = 0;
    for (size_t k = 0; k < x->j->bench.n; k++) {
        double w = x->j->bench.v[k]->shape->weight;
        sum += w * x->logs[(size_t)replicate * x->j->bench.n + k];
        weights += w;
    }
    return sum / weights;
}

// A race given up after two replicates has no useful t-interval (one degree of freedom): what is published
// then is the range of the two, widened by what identical code shows.
static struct stats_interval interval(const struct runner *x, const double *v, int n)
{
    if (n != 2)
        return stats_t_interval(v, (size_t)n, x->plan->level, x->j->floor);
    double mid = (v[0] + v[1]) / 2, half = fabs(v[0] - v[1]) / 2 + 2 * x->j->floor;
    return (struct stats_interval){mid, mid - half, mid + half};
}

static void conclude(struct runner *x, int n)
{
    struct race *r = x->out;
    size_t shapes = x->j->bench.n;
    double *v = xmalloc((size_t)n * sizeof *v);
    r->replicates = n;
    for (int i = 0; i < n; i++)
        v[i] = weighted(x, i);
    struct stats_interval all = interval(x, v, n);
    r->gain = exp(all.mid);
    r->low = exp(all.low);
    r->high = exp(all.high);
    for (size_t k = 0; k < shapes; k++) {
        struct race_shape *s = &r->shapes[k];
        for (int i = 0; i < n; i++)
            v[i] = x->logs[(size_t)i * shapes + k];
        struct stats_interval one = interval(x, v, n);
        s->gain = exp(one.mid);
        s->low = exp(one.low);
        s->high = exp(one.high);
        for (int side = 0; side < 2; side++) {
            for (int i = 0; i < n; i++)
                v[i] = x->times[side][(size_t)i * shapes + k];
            s->ns[side] = stats_median(v, (size_t)n);
        }
    }
    free(v);
}

static void report(const struct runner *x, int n)
{
    if (x->plan->report < 0)
        return;
    json *o = json_object();
    json_put_str(o, "ev", "rate");
    json_put_int(o, "id", x->plan->report);
    json_put_int(o, "replicate", n);
    json_put_num(o, "gain", x->out->gain);
    worker_send(o);
}

// Whether the race may end after n replicates.
static bool enough(const struct runner *x, int n, double spent)
{
    const struct race *r = x->out;
    double worst = -1;
    for (int i = 0; i < n; i++)
        worst = fmax(worst, weighted(x, i));
    if (n >= 2 && x->plan->may_give_up && worst < -0.03 && worst < -2 * x->j->floor) {
        x->out->hopeless = true;
        return true;
    }
    if (n < x->plan->least)
        return false;
    double next = spent / n;
    bool decided = r->low > 1 || r->high < x->j->task.gain || (r->high < 1.0);
    return decided || spent + next > x->plan->seconds;
}

bool race_run(struct judge *j, const struct binary *incumbent, const struct binary *candidate,
              const struct race_plan *plan, struct race *out, struct fault *f)
{
    const struct binary *const binary[2] = {incumbent, candidate};
    struct runner x = {.j = j, .plan = plan, .out = out};
    size_t cells = (size_t)plan->most * j->bench.n;
    struct err e = {0};
    *out = (struct race){.shapes = xcalloc(j->bench.n, sizeof *out->shapes), .samples = json_array()};
    x.logs = xcalloc(cells, sizeof *x.logs);
    for (int side = 0; side < 2; side++)
        x.times[side] = xcalloc(cells, sizeof(double));
    bool ok = lease_take(j->lease, -1, NULL, NULL, &e) == 0 || fault_set(f, STATUS_TROUBLE, "%s", e.msg);
    int64_t start = clock_ns();
    for (int n = 0; n < plan->most && ok; n++) {
        ok = replicate(&x, binary, n, f);
        if (!ok)
            break;
        conclude(&x, n + 1);
        report(&x, n + 1);
        if (enough(&x, n + 1, (double)(clock_ns() - start) * 1e-9))
            break;
    }
    lease_release(j->lease);
    free(x.logs);
    free(x.times[0]);
    free(x.times[1]);
    return ok;
}

void race_free(struct race *r)
{
    free(r->shapes);
    json_free(r->samples);
    *r = (struct race){0};
}
