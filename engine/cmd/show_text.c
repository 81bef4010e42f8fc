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

void show_speedup(char *out, size_t n, double x, double low, double high)
{
    if (!(x > 0))
        snprintf(out, n, "-");
    else if (low == high || !(low > 0))
        snprintf(out, n, "%.*fx", digits(x), x);
    else
        snprintf(out, n, "%.*fx [%.*f, %.*f]", digits(x), x, digits(x), low, digits(x), high);
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

void show_row_head(FILE *f)
{
    fprintf(f, "%5s %-11s %-26s %10s %-11s %-7s %s\n", "id", "state", "speedup", "time", "operator", "parent", "what");
}

void show_row(const struct state *s, const struct cand *c, double now, const char *prefix, FILE *f)
{
    char speed[64], time[32] = "-", parent[32] = "-";
    (void)now;
    show_speedup(speed, sizeof speed, c->speedup, c->speed_low, c->speed_high);
    if (c->n_shapes)
        show_time(time, sizeof time, (double)s->shapes.v[c->shapes_at].time_us * 1e3);
    if (c->parents[1] >= 0)
        snprintf(parent, sizeof parent, "%lld,%lld", (long long)c->parents[0], (long long)c->parents[1]);
    else if (c->parents[0] >= 0)
        snprintf(parent, sizeof parent, "%lld", (long long)c->parents[0]);
    fprintf(f, "%5lld %-11s %-26s %10s %-11.11s %-7s %s", (long long)c->id, state_word(s, c), speed, time, c->op, parent,
            prefix ? prefix : "");
    if (c->pinned)
        fputs("[pinned] ", f);
    struct str what = {0};
    bool failed = c->status != CAND_OK && c->status != CAND_PENDING && *c->reason;
    text_clean(&what, failed ? c->reason : c->subject, strlen(failed ? c->reason : c->subject), TEXT_LINE);
    fprintf(f, "%.90s\n", str_c(&what));
    str_free(&what);
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
        show_speedup(speed, sizeof speed, json_num(ev, "gain", 0), json_num(ev, "low", 0), json_num(ev, "high", 0));
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
        show_speedup(speed, sizeof speed, json_num(x, "gain", 0), json_num(x, "low", 0), json_num(x, "high", 0));
        fprintf(f, "  %-12s %10s against %10s: %s\n", json_str_or(x, "name", "?"), time, other, speed);
    }
    const char *log = json_str(ev, "log");
    if (log && *log)
        show_block(log, strlen(log), "  | ", f);
}

const struct cand *show_find(const struct state *s, const char *word, struct err *e)
{
    char *end;
    long id = strtol(word + (*word == '#'), &end, 10);
    const struct cand *c = NULL;
    if (str_eq(word, "champion"))
        c = state_champion(s);
    else if (str_eq(word, "baseline"))
        c = state_cand(s, 0);
    else if (end != word && !*end)
        c = state_cand(s, id);
    for (size_t i = 0; !c && strlen(word) >= 7 && i < s->cands.n; i++)
        if (str_starts(s->cands.v[i].commit, word))
            c = &s->cands.v[i];
    if (!c)
        err_set(e, ERR_USAGE, s->cands.n ? "`ksmith ls` shows the numbers; champion and baseline are names too."
                                         : "This session has not run yet: `ksmith run`.",
                "%s is not a candidate of this session", word);
    return c;
}
