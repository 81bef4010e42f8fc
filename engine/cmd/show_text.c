#include "cmd/show_text.h"

#include "base/text.h"

#include <math.h>

void show_time(char *out, size_t n, double ns)
{
    static const struct {
        double scale;
        const char *unit;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    size_t i = 0;
    while (i < 3 && ns < units[i].scale)
        i++;
    double v = ns / units[i].scale;
    snprintf(out, n, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, units[i].unit);
}

static int digits(double x)
{
    return x < 10 ? 3 : x < 100 ? 2 : 1;
}

void show_speedup(char *out, size_t n, struct ratio r)
{
    int d = digits(r.value);
    if (!(r.value > 0))
        snprintf(out, n, "-");
    else if (r.low == r.high || !(r.low > 0))
        snprintf(out, n, "%.*fx", d, r.value);
    else
        snprintf(out, n, "%.*fx [%.*f, %.*f]", d, r.value, d, r.low, d, r.high);
}

void show_age(char *out, size_t n, double s)
{
    if (s < 100)
        snprintf(out, n, "%.0fs", fmax(s, 0));
    else if (s < 6000)
        snprintf(out, n, "%.0fm", s / 60);
    else if (s < 172800)
        snprintf(out, n, "%.0fh", s / 3600);
    else
        snprintf(out, n, "%.0fd", s / 86400);
}

void show_json(const json *o)
{
    struct str s = {0};
    json_print(o, &s);
    puts(str_c(&s));
    str_free(&s);
}

void show_clean(const char *s, FILE *f)
{
    struct str clean = {0};
    text_clean(&clean, s, strlen(s), TEXT_LINE);
    fputs(str_c(&clean), f);
    str_free(&clean);
}

void show_block(const char *s, size_t n, const char *indent, FILE *f)
{
    struct str clean = {0};
    text_clean(&clean, s, n, TEXT_BLOCK);
    for (const char *line = str_c(&clean); *line;) {
        size_t len = strcspn(line, "\n");
        fprintf(f, "%s%.*s\n", indent, (int)len, line);
        line += len + (line[len] == '\n');
    }
    str_free(&clean);
}

const char *show_word(const struct state *s, const struct candidate *c)
{
    static const struct {
        unsigned flag;
        const char *word;
    } words[] = {{CF_REJECTED, "rejected by hand"}, {CF_KILLED, "killed"}, {CF_QUARANTINED, "quarantined"}};
    const struct candidate *champion = state_champion(s);
    for (size_t i = 0; i < countof(words); i++)
        if (c->flags & words[i].flag)
            return words[i].word;
    if (c->id == 0)
        return "baseline";
    if (champion && champion->id == c->id)
        return "champion";
    return c->flags & CF_ACCEPTED ? "accepted" : c->flags & CF_ARCHIVED ? "archived" : status_name(c->status);
}

void show_row_head(FILE *f)
{
    fprintf(f, "%5s %-13s %-26s %10s %-11s %-7s %s\n", "id", "state", "speedup", "time", "operator", "parent",
            "what");
}

static const char *what_of(const struct candidate *c)
{
    bool failed = c->status != ST_OK && c->status != ST_PENDING && c->reason && *c->reason;
    return failed ? c->reason : c->title ? c->title : "";
}

void show_row(const struct state *s, const struct candidate *c, FILE *f)
{
    char speed[64], time[32] = "-", parent[64] = "-";
    show_speedup(speed, sizeof speed, c->speedup);
    if (c->ntimes)
        show_time(time, sizeof time, c->times[0].time_ns);
    if (c->nparents > 1)
        snprintf(parent, sizeof parent, "%lld,%lld", (long long)c->parents[0], (long long)c->parents[1]);
    else if (c->nparents)
        snprintf(parent, sizeof parent, "%lld", (long long)c->parents[0]);
    fprintf(f, "%5lld %-13s %-26s %10s %-11.11s %-7s %s", (long long)c->id, show_word(s, c), speed, time,
            c->op, parent, c->flags & CF_PINNED ? "[pinned] " : "");
    struct str what = {0};
    text_clean(&what, what_of(c), strlen(what_of(c)), TEXT_LINE);
    if (c->of >= 0)
        str_addf(&what, " as %lld", (long long)c->of);
    fprintf(f, "%.90s\n", str_c(&what));
    str_free(&what);
}

static void put_ratio(json *o, const char *key, struct ratio r)
{
    if (!(r.value > 0))
        return;
    json *a = json_array();
    json_push(a, json_new_num(r.low));
    json_push(a, json_new_num(r.high));
    char ci[32];
    snprintf(ci, sizeof ci, "%s_ci", key);
    json_put_num(o, key, r.value);
    json_put(o, ci, a);
}

static json *shapes_json(const struct state *s, const struct candidate *c)
{
    json *shapes = json_array();
    for (int i = 0; i < c->ntimes; i++) {
        const struct shape_time *t = &c->times[i];
        json *x = json_object();
        json_put_str(x, "name", s->shapes.v[t->shape].name);
        json_put_num(x, "time_ns", t->time_ns);
        json_put_num(x, "inc_ns", t->inc_ns);
        put_ratio(x, "gain", (struct ratio){(double)t->gain, (double)t->low, (double)t->high});
        json_push(shapes, x);
    }
    return shapes;
}

json *show_candidate_json(const struct state *s, const struct candidate *c)
{
    json *o = json_object(), *parents = json_array(), *tags = json_array();
    char blob[41];
    json_put_int(o, "id", c->id);
    for (int i = 0; i < c->nparents; i++)
        json_push(parents, json_new_int(c->parents[i]));
    json_put(o, "parents", parents);
    json_put_str(o, "op", c->op);
    json_put_str(o, "proposer", c->proposer);
    json_put_str(o, "model", c->model);
    json_put_int(o, "island", c->island);
    json_put_int(o, "gen", c->gen);
    json_put_int(o, "iter", c->iter);
    json_put_str(o, "status", status_name(c->status));
    json_put_str(o, "state", show_word(s, c));
    json_put_str(o, "stage", c->stage);
    json_put_str(o, "reason", c->reason);
    if (c->of >= 0)
        json_put_int(o, "of", c->of);
    if (c->incumbent >= 0)
        json_put_int(o, "incumbent", c->incumbent);
    put_ratio(o, "gain", c->gain);
    put_ratio(o, "speedup", c->speedup);
    json_put(o, "shapes", shapes_json(s, c));
    candidate_blob(c, blob);
    json_put_str(o, "blob", blob);
    json_put_str(o, "commit", c->commit);
    json_put_str(o, "title", c->title);
    json_put_str(o, "note", c->note);
    for (size_t i = 0; i < c->tags.n; i++)
        json_push(tags, json_new_str(c->tags.v[i]));
    json_put(o, "tags", tags);
    json_put_bool(o, "pinned", (c->flags & CF_PINNED) != 0);
    json_put_num(o, "seconds", c->seconds);
    json_put_num(o, "t", c->born);
    return o;
}

char *show_source(struct session *s, const struct candidate *c, struct err *e)
{
    struct str text = {0};
    char hex[41];
    candidate_blob(c, hex);
    if (!s->lineage || lineage_read(s->lineage, hex, &text, e) < 0) {
        if (!s->lineage)
            err_set(e, ERR_FAIL, "Has the session run yet?", "there is no lineage repository");
        str_free(&text);
        return NULL;
    }
    return str_steal(&text);
}

static struct ratio ratio_of(const json *o)
{
    return (struct ratio){json_num(o, "gain", 0), json_num(o, "low", 0), json_num(o, "high", 0)};
}

static void verdict_head(const json *ev, FILE *f)
{
    char speed[64];
    const char *status = json_str_or(ev, "status", "?");
    fprintf(f, "verdict: %s", status);
    if (json_str(ev, "reason") && *json_str(ev, "reason")) {
        fputs(": ", f);
        show_clean(json_str(ev, "reason"), f);
    }
    fputc('\n', f);
    if (json_num(ev, "gain", 0) > 0) {
        show_speedup(speed, sizeof speed, ratio_of(ev));
        fprintf(f, "gain: %s %s\n", speed,
                json_bool(ev, "faster", false) ? "(proven faster, twice)" : "(not proven faster)");
    }
    if (json_str(ev, "regress"))
        fprintf(f, "slower on shape %s\n", json_str(ev, "regress"));
}

void show_verdict(const json *ev, FILE *f)
{
    verdict_head(ev, f);
    for (const json *x = json_first(json_get(ev, "shapes")); x; x = json_next(x)) {
        char time[32], other[32], speed[64];
        if (!json_is_object(x))
            continue;
        show_time(time, sizeof time, json_num(x, "time_ns", 0));
        show_time(other, sizeof other, json_num(x, "inc_ns", 0));
        show_speedup(speed, sizeof speed, ratio_of(x));
        fprintf(f, "  %-12s %10s against %10s: %s\n", json_str_or(x, "name", "?"), time, other, speed);
    }
    const char *log = json_str(ev, "log");
    if (log && *log)
        show_block(log, strlen(log), "  | ", f);
}

const struct candidate *show_find(const struct state *s, const char *word, struct err *e)
{
    char *end;
    long id = strtol(word + (*word == '#'), &end, 10);
    const struct candidate *c = NULL;
    if (str_eq(word, "champion"))
        c = state_champion(s);
    else if (str_eq(word, "baseline"))
        c = state_candidate(s, 0);
    else if (end != word && !*end)
        c = state_candidate(s, id);
    for (size_t i = 0; !c && strlen(word) >= 7 && i < s->c.n; i++)
        if (s->c.v[i].commit && str_starts(s->c.v[i].commit, word))
            c = &s->c.v[i];
    if (!c)
        err_set(e, ERR_USAGE,
                s->c.n ? "`ksmith ls` shows the numbers; champion and baseline are names too."
                       : "This session has not run yet: `ksmith run`.",
                "%s is not a candidate of this session", word);
    return c;
}
