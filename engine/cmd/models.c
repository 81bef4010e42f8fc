// ksmith models: who proposes beside the rules, what each brought and what it cost; whether they answer.
#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/show_text.h"
#include "evolve/forecast.h"
#include "evolve/loop.h"
#include "evolve/worker.h"

#include <math.h>

struct probed {
    bool done, ok;
    double seconds, tokens, usd;
    char *words;
};

static const struct op_stats *stats_of(const struct state *s, const char *name)
{
    static const struct op_stats none;
    for (size_t i = 0; i < s->models.n; i++)
        if (str_eq(s->models.v[i].name, name))
            return &s->models.v[i];
    return &none;
}

static double asked_of(const struct op_stats *m)
{
    return (double)(m->asked > m->tried ? m->asked : m->tried); // a journal of before answers were counted
}

static double weight_of(const struct look *l, const struct proposer_info *i)
{
    const char *steered = state_setting(&l->session.state, "weight", i->name);
    return steered && *steered ? strtod(steered, NULL) : i->weight;
}

static void percent(char *out, size_t n, double part, double whole)
{
    if (whole > 0)
        snprintf(out, n, "%.0f%%", 100 * part / whole);
    else
        snprintf(out, n, "-");
}

// "12.3%" of speedup per unit of cost: the factor that one unit brought on average, less one.
static void rate(char *out, size_t n, double log_gain, double cost, bool known)
{
    if (!known)
        snprintf(out, n, "unknown");
    else if (cost <= 0)
        snprintf(out, n, "-");
    else
        snprintf(out, n, "%.3g", log_gain / cost);
}

static void dollars(char *out, size_t n, const struct op_stats *m)
{
    snprintf(out, n, "%s$%.4f", m->unpriced ? ">=" : "", m->usd);
}

static void print_row(const struct look *l, int who)
{
    struct proposer_info i = proposers_info(l->p, who);
    const struct op_stats *m = stats_of(&l->session.state, i.name);
    char answered[16], correct[16], hour[24], dollar[24], usd[32], name[24];
    snprintf(name, sizeof name, "%.20s", i.name);
    percent(answered, sizeof answered, (double)m->tried, asked_of(m));
    percent(correct, sizeof correct, (double)m->ok, (double)m->judged);
    rate(hour, sizeof hour, m->log_gain, m->seconds / 3600, true);
    rate(dollar, sizeof dollar, m->log_gain, m->usd, !m->unpriced);
    dollars(usd, sizeof usd, m);
    show_clean(name, stdout);
    printf("%*s %6g %6.0f %6s %6s %8lld %7.2fx %9s %9s %10lld %10s  ", (int)(20 - strlen(name)), "",
           weight_of(l, &i), asked_of(m), answered, correct, (long long)m->accepted, exp(m->log_gain), hour,
           dollar, (long long)(m->tokens_in + m->tokens_out), usd);
    show_clean(i.what, stdout);
    if (i.url) {
        fputs(" at ", stdout);
        show_clean(i.url, stdout);
    }
    putchar('\n');
}

static void print_table(const struct look *l)
{
    printf("%-20s %6s %6s %6s %6s %8s %8s %9s %9s %10s %10s  %s\n", "name", "weight", "asked", "usable", "ok",
           "accepted", "together", "gain/hour", "gain/$", "tokens", "cost", "who");
    for (int i = 0; i < proposers_count(l->p); i++)
        print_row(l, i);
}

static void print_json(const struct look *l, const struct probed *probes)
{
    for (int k = 0; k < proposers_count(l->p); k++) {
        struct proposer_info i = proposers_info(l->p, k);
        const struct op_stats *m = stats_of(&l->session.state, i.name);
        json *o = json_object();
        json_put_str(o, "name", i.name);
        json_put_str(o, "kind", i.exec ? "exec" : "llm");
        json_put_str(o, i.exec ? "command" : "model", i.what);
        json_put_str(o, "url", i.url);
        json_put_num(o, "weight", weight_of(l, &i));
        const struct {
            const char *key;
            int64_t n;
        } counts[] = {{"asked", (int64_t)asked_of(m)}, {"candidates", m->tried},
                      {"judged", m->judged},           {"ok", m->ok},
                      {"accepted", m->accepted},       {"tokens_in", m->tokens_in},
                      {"tokens_out", m->tokens_out},   {"unpriced", m->unpriced}};
        for (size_t c = 0; c < countof(counts); c++)
            json_put_int(o, counts[c].key, counts[c].n);
        json_put_num(o, "log_gain", m->log_gain);
        json_put_num(o, "seconds", m->seconds);
        json_put_num(o, "usd", m->usd);
        if (probes && probes[k].done) {
            json_put_bool(o, "answers", probes[k].ok);
            json_put_num(o, "probe_seconds", probes[k].seconds);
            json_put_str(o, "probe", probes[k].words);
        }
        show_json(o);
        json_free(o);
    }
}

// ---- probing

struct probe_run {
    struct look *l;
    struct probed *v;
    int waiting;
};

static void on_probe(void *user, int who, const struct probe *r)
{
    struct probe_run *x = user;
    x->v[who] =
        (struct probed){true, r->ok, r->seconds, r->tokens_in + r->tokens_out, r->usd, xstrdup(r->words)};
    x->waiting--;
}

static void print_probe(const struct look *l, int who, const struct probed *v)
{
    struct proposer_info i = proposers_info(l->p, who);
    show_clean(i.name, stdout);
    if (!v->done) {
        puts(": a command; it is only run when it is asked for a candidate");
        return;
    }
    if (v->ok) {
        printf(": answers after %.2f s (%.0f tokens%s", v->seconds, v->tokens, isfinite(v->usd) ? ", $" : "");
        if (isfinite(v->usd))
            printf("%.6f", v->usd);
        fputs("): ", stdout);
    } else {
        fputs(": FAILED: ", stdout);
    }
    show_clean(v->words, stdout);
    putchar('\n');
}

// Whether every model answered.
static bool probe_all(struct look *l, struct probed *v)
{
    struct probe_run x = {l, v, 0};
    int n = proposers_count(l->p);
    bool ok = true;
    for (int i = 0; i < n; i++)
        x.waiting += proposers_probe(l->p, i, on_probe, &x) == 0;
    while (x.waiting)
        loop_step(l->loop, 1000);
    for (int i = 0; i < n; i++)
        ok &= !v[i].done || v[i].ok;
    return ok;
}

static int show(struct args *a, struct look *l)
{
    struct err e = {0};
    int n = proposers_count(l->p);
    bool ok = true;
    struct probed *v = args_flag(a, "probe") ? xcalloc((size_t)n + 1, sizeof *v) : NULL;
    if (v && worker_trust(&l->task, args_flag(a, "trust"), &e) < 0) {
        free(v);
        return cmd_fail(&e);
    }
    if (v)
        ok = probe_all(l, v);
    if (args_flag(a, "json")) {
        print_json(l, v);
    } else if (n == 0) {
        puts("No model and no command is configured: rules propose alone. `man ksmith-config` says how to "
             "add one.");
    } else {
        struct str words = {0};
        print_table(l);
        for (int i = 0; v && i < n; i++)
            print_probe(l, i, &v[i]);
        forecast(l->p, &l->task, &l->session, &words);
        printf("to the end of the run: %s\n", str_c(&words));
        str_free(&words);
    }
    for (int i = 0; v && i < n; i++)
        free(v[i].words);
    free(v);
    return ok ? 0 : ERR_FAIL;
}

static int run(struct args *a)
{
    struct look l;
    int status = look_open(&l, a);
    if (status == 0)
        status = show(a, &l);
    look_close(&l);
    return status;
}

static const struct opt opts[] = {
    {"probe", NULL, "ask each model one short question: is it there, does the key fit"},
    OPT_JSON,
    OPT_TRUST,
    OPT_SET,
    OPT_END};

const struct cmd cmd_models = {
    .name = "models",
    .args = "[DIR]",
    .help = "models and commands that propose: what each brought, what it cost, what the run will cost",
    .more = "usable: answers that gave a candidate. ok: of those judged, the correct ones. together: the "
            "product of\n"
            "the accepted steps. gain: its logarithm, per hour of asking and judging and per dollar. With "
            "--probe\n"
            "the exit status is 1 where a model does not answer.",
    .group = "models",
    .takes_dir = true,
    .opts = opts,
    .run = run,
};
