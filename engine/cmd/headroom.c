#include "cmd/headroom.h"

#include <math.h>

struct rates {
    double bytes, flops;           // a second, of the champion
    double bytes_most, flops_most; // ceilings
    bool gpu;
};

static double part_of(double x, double most)
{
    return x > 0 && most > 0 ? x / most : 0;
}

// One shape's line; the larger of its two parts of a ceiling.
static double add_shape(const char *name, const struct rates *r, struct str *out)
{
    double memory = part_of(r->bytes, r->bytes_most), work = part_of(r->flops, r->flops_most);
    if (memory <= 0 && work <= 0)
        return 0;
    if (memory >= work)
        str_addf(out, "%s: %.3g GB/s, %.0f %% of the %.3g GB/s that this machine copies\n", name,
                 r->bytes / 1e9, 100 * memory, r->bytes_most / 1e9);
    else
        str_addf(out, "%s: %.3g GFLOP/s, %.0f %% of the %.3g GFLOP/s that %s\n", name, r->flops / 1e9,
                 100 * work, r->flops_most / 1e9,
                 r->gpu ? "fp32 FMA reaches on this GPU" : "one core reaches");
    return fmax(memory, work);
}

static void add_meaning(double least, int shapes, bool improved, struct str *out)
{
    if (!shapes)
        return;
    if (least >= 0.9)
        str_add(out, "That is the machine's limit: there is next to nothing left to gain.\n");
    else if (least >= 0.7)
        str_addf(out, "At most %.2fx is left; what costs it may be what every kernel of this kind pays.\n",
                 1 / least);
    else if (!improved)
        str_add(out, "The machine could do more: no rule found the step. `ksmith rules` says what was "
                     "refused and why; a model "
                     "([model] in the config) or your own edit (`ksmith try`) may find it.\n");
}

static const struct shape_time *champion_time(const struct state *st, const struct candidate *c,
                                              const char *name)
{
    for (int i = 0; c && i < c->ntimes; i++)
        if (str_eq(st->shapes.v[c->times[i].shape].name, name))
            return &c->times[i];
    return NULL;
}

void headroom_words(const struct state *st, const char *journal_path, struct str *out)
{
    const struct candidate *c = state_champion(st);
    json *line = st->at_preflight >= 0 ? journal_line_at(journal_path, st->at_preflight, NULL) : NULL;
    const json *ceilings = json_get(line, "ceilings");
    double least = 1e9;
    int shapes = 0;
    for (json *row = json_first(json_get(line, "shapes")); row; row = json_next(row)) {
        const json *x[5] = {NULL};
        int n = 0;
        for (json *k = json_first(row); k && n < 5; k = json_next(k))
            x[n++] = k;
        const char *name = n > 3 ? json_string(x[0]) : NULL;
        const struct shape_time *t = name && c && c->id > 0 ? champion_time(st, c, name) : NULL;
        double faster = name && t && t->time_ns > 0 ? json_number(x[1], 0) / t->time_ns : 1;
        if (!name)
            continue;
        struct rates r = {json_number(x[2], 0) * faster, json_number(x[3], 0) * faster,
                          json_num(ceilings, "copy_bytes_s", 0), json_num(ceilings, "fma_flops_s", 0),
                          json_has(ceilings, "launch_ns")};
        double part = add_shape(name, &r, out);
        if (part > 0) {
            least = fmin(least, part);
            shapes++;
        }
    }
    add_meaning(least, shapes, c && c->id > 0, out);
    json_free(line);
}
