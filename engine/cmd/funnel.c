// ksmith funnel: where candidates died, and why; what each operator brought.
#include "cmd/cmd.h"
#include "cmd/headroom.h"
#include "cmd/show_text.h"

#include <math.h>

struct bin {
    const char *stage, *status, *reason;
    int64_t n;
};
typedef VEC(struct bin) bins;

static void count(bins *b, const struct candidate *c)
{
    const char *status = status_name(c->status), *stage = c->stage ? c->stage : "";
    for (size_t i = 0; i < b->n; i++)
        if (str_eq(b->v[i].status, status) && str_eq(b->v[i].stage, stage)) {
            b->v[i].n++;
            return;
        }
    vec_push(b, (struct bin){stage, status, c->reason ? c->reason : "", 1});
}

static int by_count(const void *a, const void *b)
{
    const struct bin *x = a, *y = b;
    return (x->n < y->n) - (x->n > y->n);
}

static void print_bins(const bins *b, int64_t total)
{
    printf("%6s %6s  %-14s %-10s %s\n", "n", "share", "status", "stage", "for example");
    for (size_t i = 0; i < b->n; i++) {
        printf("%6lld %5.1f%%  %-14s %-10s ", (long long)b->v[i].n, 100.0 * (double)b->v[i].n / (double)total,
               b->v[i].status, *b->v[i].stage ? b->v[i].stage : "-");
        struct str why = {0};
        str_add(&why, b->v[i].reason);
        if (why.len > 80)
            why.s[80] = 0;
        show_clean(str_c(&why), stdout);
        putchar('\n');
        str_free(&why);
    }
}

static void print_ops(const struct state *s)
{
    printf("\n%-14s %6s %6s %8s %12s %10s\n", "operator", "tried", "ok", "accepted", "total gain", "seconds");
    for (size_t i = 0; i < s->ops.n; i++) {
        const struct op_stats *o = &s->ops.v[i];
        printf("%-14s %6lld %6lld %8lld %11.2fx %10.1f\n", o->name, (long long)o->tried, (long long)o->ok,
               (long long)o->accepted, exp(o->log_gain), o->seconds);
    }
}

static void print_json(const bins *b, const struct state *s)
{
    for (size_t i = 0; i < b->n; i++) {
        json *o = json_object();
        json_put_str(o, "status", b->v[i].status);
        json_put_str(o, "stage", b->v[i].stage);
        json_put_int(o, "n", b->v[i].n);
        json_put_str(o, "example", b->v[i].reason);
        show_json(o);
        json_free(o);
    }
    for (size_t i = 0; i < s->ops.n; i++) {
        json *o = json_object();
        json_put_str(o, "op", s->ops.v[i].name);
        json_put_int(o, "tried", s->ops.v[i].tried);
        json_put_int(o, "ok", s->ops.v[i].ok);
        json_put_int(o, "accepted", s->ops.v[i].accepted);
        json_put_num(o, "gain", exp(s->ops.v[i].log_gain));
        json_put_num(o, "seconds", s->ops.v[i].seconds);
        show_json(o);
        json_free(o);
    }
}

static int run(struct args *a)
{
    struct session s;
    struct err e = {0};
    if (session_open(&s, a->dir, SESSION_READ, &e) < 0)
        return cmd_fail(&e);
    bins b = {0};
    int64_t total = 0;
    for (size_t i = 1; i < s.state.c.n; i++) {
        count(&b, &s.state.c.v[i]);
        total++;
    }
    if (b.n)
        qsort(b.v, b.n, sizeof *b.v, by_count);
    if (args_flag(a, "json")) {
        print_json(&b, &s.state);
    } else {
        printf("%lld candidates, %lld accepted\n", (long long)total,
               (long long)(s.state.accepted.n ? s.state.accepted.n - 1 : 0));
        if (total)
            print_bins(&b, total);
        print_ops(&s.state);
        struct str words = {0};
        headroom_words(&s.state, s.journal_path, &words);
        fputs(str_c(&words), stdout);
        str_free(&words);
    }
    vec_free(&b);
    session_close(&s);
    return 0;
}

static const struct opt opts[] = {OPT_JSON, OPT_END};

const struct cmd cmd_funnel = {
    .name = "funnel",
    .args = "[DIR]",
    .help = "where candidates died, and why; what each operator brought",
    .group = "read",
    .takes_dir = true,
    .opts = opts,
    .run = run,
};
