// ksmith ls: candidates, filtered and sorted.
#include "cmd/cmd.h"
#include "cmd/fields.h"
#include "cmd/show_text.h"
#include "evolve/population.h"

#include <math.h>

static int by_speedup(const void *a, const void *b)
{
    const struct candidate *x = *(const struct candidate *const *)a, *y = *(const struct candidate *const *)b;
    if (x->speedup.value != y->speedup.value)
        return x->speedup.value < y->speedup.value ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static int list(struct args *a, struct session *s, const struct filter *f)
{
    const struct state *st = &s->state;
    VEC(const struct candidate *) rows = {0};
    long best = strtol(args_value(a, "best", "0"), NULL, 10);
    for (size_t i = 0; i < st->c.n; i++) {
        struct cand_view v = {st, &st->c.v[i]};
        if ((!f || filter_match(f, cand_field, &v)) &&
            (best <= 0 || (v.cand->speedup.value > 0 && population_alive(v.cand))))
            vec_push(&rows, v.cand);
    }
    if (best > 0 && rows.n) {
        qsort(rows.v, rows.n, sizeof *rows.v, by_speedup);
        if ((long)rows.n > best)
            rows.n = (size_t)best;
    }
    bool as_json = args_flag(a, "json"), ids = args_flag(a, "ids");
    if (!as_json && !ids)
        show_row_head(stdout);
    for (size_t i = 0; i < rows.n; i++) {
        if (as_json) {
            json *o = show_candidate_json(st, rows.v[i]);
            show_json(o);
            json_free(o);
        } else if (ids) {
            printf("%lld\n", (long long)rows.v[i]->id);
        } else {
            show_row(st, rows.v[i], stdout);
        }
    }
    vec_free(&rows);
    return 0;
}

static int run(struct args *a)
{
    struct session s;
    struct err e = {0};
    struct filter *f = NULL;
    const char *text = args_value(a, "filter", NULL);
    if ((text && filter_parse(text, cand_fields, cand_fields_n, &f, &e) < 0) ||
        session_open(&s, a->dir, SESSION_READ, &e) < 0) {
        filter_free(f);
        return cmd_fail(&e);
    }
    int status = list(a, &s, f);
    session_close(&s);
    filter_free(f);
    return status;
}

static const struct opt opts[] = {{"filter", "CONDITIONS", "as in 'speedup>1.2 op=tune'; all must hold"},
                                  {"best", "N", "the N fastest correct ones, fastest first"},
                                  {"ids", NULL, "only the numbers"},
                                  OPT_JSON,
                                  OPT_END};

const struct cmd cmd_ls = {
    .name = "ls",
    .args = "[DIR]",
    .help = "list candidates",
    .group = "read",
    .takes_dir = true,
    .opts = opts,
    .run = run,
};
