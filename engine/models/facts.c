#include "models/facts.h"

#include "base/log.h"
#include "base/text.h"
#include "base/vec.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

static void add_time(struct str *out, double ns)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {0, "ns"}};
    for (size_t i = 0; i < countof(units); i++)
        if (ns >= units[i].unit) {
            str_addf(out, "%.4g %s", units[i].unit > 0 ? ns / units[i].unit : ns, units[i].name);
            return;
        }
}

// "key: value" lines of an object of scalars; objects inside with a prefix.
static void add_members(const json *o, const char *prefix, struct str *out)
{
    for (const json *x = json_first(o); x; x = json_next(x)) {
        struct str name = {0};
        str_addf(&name, "%s%s%s", prefix, *prefix ? "." : "", json_key(x));
        if (json_is_object(x))
            add_members(x, str_c(&name), out);
        else if (!json_is_array(x)) {
            str_addf(out, "- %s: ", str_c(&name));
            if (json_string(x))
                text_clean(out, json_string(x), strlen(json_string(x)), TEXT_LINE);
            else
                json_print(x, out);
            str_addc(out, '\n');
        }
        str_free(&name);
    }
}

void facts_hardware(const json *opened, const json *preflight, struct str *out)
{
    static const char *const words[] = {"device", "compiler"};
    for (size_t i = 0; i < countof(words); i++)
        if (json_str(opened, words[i])) {
            str_addf(out, "- %s: ", words[i]);
            text_clean(out, json_str(opened, words[i]), strlen(json_str(opened, words[i])), TEXT_LINE);
            str_addc(out, '\n');
        }
    add_members(json_get(opened, "env"), "", out);
    add_members(json_get(preflight, "ceilings"), "measured ceiling", out);
}

// The k-th element of a row, or NULL.
static const json *nth(const json *row, int k)
{
    const json *x = json_first(row);
    while (x && k--)
        x = json_next(x);
    return x;
}

// A worker says {"name":..,"time_ns":..}, the journal [name, time_ns, inc_ns, gain, low, high, n].
static void add_shape(const json *s, struct str *out)
{
    bool row = json_is_array(s);
    const char *name = row ? json_string(nth(s, 0)) : json_str(s, "name");
    double time = row ? json_number(nth(s, 1), 0) : json_num(s, "time_ns", 0);
    double gain = row ? json_number(nth(s, 3), NAN) : json_num(s, "gain", NAN);
    double low = row ? json_number(nth(s, 4), NAN) : json_num(s, "low", NAN);
    double high = row ? json_number(nth(s, 5), NAN) : json_num(s, "high", NAN);
    str_addf(out, "- %s: ", name ? name : "?");
    add_time(out, time);
    if (isfinite(gain) && gain > 0) {
        str_addf(out, ", %.3fx of the version it raced", gain);
        if (isfinite(low) && isfinite(high))
            str_addf(out, " [%.3f, %.3f]", low, high);
    }
    double bytes = json_num(s, "bytes_s", 0), flops = json_num(s, "flops_s", 0),
           pct = json_num(s, "ceiling_pct", 0);
    if (bytes > 0)
        str_addf(out, ", %.4g GB/s", bytes * 1e-9);
    if (flops > 0)
        str_addf(out, ", %.4g GFLOP/s", flops * 1e-9);
    if (pct > 0)
        str_addf(out, ", %.3g %% of the ceiling", pct);
    str_addc(out, '\n');
}

void facts_outcome(const json *v, struct str *out)
{
    if (!v) {
        str_add(out, "not judged yet");
        return;
    }
    const char *status = json_str_or(v, "status", "unknown"), *stage = json_str(v, "stage"),
               *reason = json_str(v, "reason");
    double gain = json_num(v, "gain", NAN), low = json_num(v, "low", NAN), high = json_num(v, "high", NAN);
    if (str_eq(status, "ok") && isfinite(gain)) {
        str_addf(out, "%s, %.3fx",
                 json_bool(v, "faster", false) ? "proven faster" : "right but not proven faster", gain);
        if (isfinite(low) && isfinite(high))
            str_addf(out, " [%.3f, %.3f]", low, high);
    } else {
        str_add(out, status);
        if (stage)
            str_addf(out, " at stage %s", stage);
    }
    if (json_str(v, "regress"))
        str_addf(out, ", slower on shape %s", json_str(v, "regress"));
    if (reason && *reason) {
        str_add(out, ": ");
        text_clean(out, reason, strlen(reason), TEXT_LINE);
    }
}

void facts_verdict(const json *v, struct str *out)
{
    facts_outcome(v, out);
    str_addc(out, '\n');
    for (const json *s = json_first(json_get(v, "shapes")); s; s = json_next(s))
        add_shape(s, out);
    static const char *const objects[] = {"static", "features", "error"};
    for (size_t i = 0; i < countof(objects); i++)
        add_members(json_get(v, objects[i]), objects[i], out);
}

// ---- logs

static bool helps(const char *line)
{
    static const char *const words[] = {"error", "warning", "undefined", "mismatch", "expected",
                                        "wrong", "ptxas",   "signal",    "spill",    "note:"};
    for (size_t i = 0; i < countof(words); i++)
        if (strcasestr(line, words[i]))
            return true;
    return false;
}

// "/tmp/x.abc/cand.c:2:" says no more than "cand.c:2:".
static void shorten_paths(const char *line, struct str *out)
{
    while (*line) {
        if (*line == '/' && (out->len == 0 || strchr(" \t\"'(=", out->s[out->len - 1]))) {
            size_t n = strcspn(line, " \t\"'):,");
            const char *slash = memrchr(line, '/', n);
            if (slash > line)
                line = slash + 1;
        }
        str_addc(out, *line++);
    }
}

static void add_line(struct str *out, const char *line, size_t times, size_t max)
{
    size_t n = strlen(line);
    if (out->len + n + 24 > max)
        return;
    str_addn(out, line, n);
    if (times > 1)
        str_addf(out, "   (%zu times)", times);
    str_addc(out, '\n');
}

void facts_log(const char *log, size_t max, struct str *out)
{
    struct str clean = {0};
    VEC(char *) lines = {0};
    VEC(size_t) times = {0};
    text_clean(&clean, log, strlen(log), TEXT_BLOCK);
    log_redact(&clean);
    char *save = NULL;
    for (char *l = strtok_r(clean.s ? clean.s : (char[]){""}, "\n", &save); l;
         l = strtok_r(NULL, "\n", &save)) {
        struct str s = {0};
        shorten_paths(l, &s);
        if (lines.n && str_eq(lines.v[lines.n - 1], str_c(&s))) {
            times.v[times.n - 1]++;
            str_free(&s);
        } else if (lines.n < 4000) {
            vec_push(&lines, str_steal(&s));
            vec_push(&times, 1);
        } else
            str_free(&s);
    }
    // All where it fits, else what helps first, with the two lines after it (the source and its caret).
    bool all = clean.len <= max;
    size_t after = 0;
    struct str picked = {0};
    for (size_t i = 0; i < lines.n; i++) {
        bool good = lines.v[i] && helps(lines.v[i]);
        after = good ? 3 : after;
        if (all || after)
            add_line(&picked, lines.v[i] ? lines.v[i] : "", times.v[i], max);
        after -= after > 0;
    }
    if (!picked.len && lines.n) // nothing speaks: its end
        for (size_t i = lines.n > 20 ? lines.n - 20 : 0; i < lines.n; i++)
            add_line(&picked, lines.v[i], times.v[i], max);
    str_addn(out, str_c(&picked), picked.len);
    str_free(&picked);
    for (size_t i = 0; i < lines.n; i++)
        free(lines.v[i]);
    vec_free(&lines);
    vec_free(&times);
    str_free(&clean);
}
