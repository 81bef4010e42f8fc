#include "session/event.h"

#include <math.h>
#include <unistd.h>

enum { LOG_MOST = 1500 }; // bytes of a log that go into the journal: lines stay lean, the rest is in samples/

static json *event_new(const char *ev)
{
    json *j = json_object();
    json_put_str(j, "ev", ev);
    return j;
}

// Six significant digits are more than any measurement has, and keep lines short.
static double lean(double x)
{
    char text[32];
    if (!isfinite(x))
        return 0;
    snprintf(text, sizeof text, "%.6g", x);
    return strtod(text, NULL);
}

static void put_lean(json *o, const char *key, double x)
{
    json_put_num(o, key, lean(x));
}

static void put_ids(json *o, const char *key, const int64_t *ids, int n)
{
    json *a = json_array();
    for (int i = 0; i < n; i++)
        json_push(a, json_new_int(ids[i]));
    json_put(o, key, a);
}

json *event_session(const struct event_session *s)
{
    json *j = event_new("session");
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    json_put_int(j, "format", JOURNAL_FORMAT);
    json_put_str(j, "ksmith", KSMITH_VERSION);
    json_put_str(j, "name", s->name);
    json_put_str(j, "backend", s->backend);
    json_put_str(j, "kernel", s->kernel);
    json_put_int(j, "seed", (int64_t)s->seed);
    json_put_int(j, "islands", s->islands);
    json_put_str(j, "host", host);
    json_put_str(j, "head", s->head && *s->head ? s->head : NULL);
    json_put_str(j, "task", s->task);
    json *files = json_array(), *shapes = json_array();
    for (size_t i = 0; i < s->nfiles; i++) {
        json *row = json_array();
        json_push(row, json_new_str(s->files[i].path));
        json_push(row, json_new_str(s->files[i].blob));
        json_push(row, json_new_str(s->files[i].executable ? "x" : ""));
        json_push(files, row);
    }
    for (size_t i = 0; i < s->nshapes; i++) {
        json *row = json_array();
        json_push(row, json_new_str(s->shapes[i].name));
        json_push(row, json_new_int(s->shapes[i].bench));
        json_push(row, json_new_num(s->shapes[i].weight));
        json_push(shapes, row);
    }
    json_put(j, "files", files);
    json_put(j, "shapes", shapes);
    return j;
}

static void copy_keys(json *to, const json *from, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (json_has(from, keys[i]))
            json_put(to, keys[i], json_copy(json_get(from, keys[i])));
}
#define COPY_KEYS(to, from, ...)                          \
    do {                                                  \
        static const char *const keys_[] = {__VA_ARGS__}; \
        copy_keys((to), (from), keys_, countof(keys_));   \
    } while (0)

json *event_worker(const char *name, const json *opened)
{
    json *j = event_new("worker");
    json_put_str(j, "name", name);
    COPY_KEYS(j, opened, "device", "compiler", "driver", "fingerprint", "protected", "why", "env");
    return j;
}

// Rows of numbers behind a name, from the worker's objects.
static json *rows_of(const json *shapes, const char *const *keys, size_t n)
{
    json *rows = json_array();
    for (const json *s = json_first(shapes); s; s = json_next(s)) {
        json *row = json_array();
        json_push(row, json_new_str(json_str_or(s, "name", "?")));
        for (size_t i = 0; i < n; i++)
            json_push(row, json_new_num(lean(json_num(s, keys[i], 0))));
        json_push(rows, row);
    }
    return rows;
}

json *event_preflight(const json *answer)
{
    static const char *const keys[] = {"time_ns", "bytes_s", "flops_s", "ceiling_pct"};
    json *j = event_new("preflight");
    COPY_KEYS(j, answer, "ok", "problems", "warnings", "floor", "ceilings", "error");
    json_put(j, "shapes", rows_of(json_get(answer, "shapes"), keys, countof(keys)));
    return j;
}

json *event_floor(double floor, const char *fingerprint)
{
    json *j = event_new("floor");
    put_lean(j, "floor", floor);
    json_put_str(j, "fingerprint", fingerprint);
    return j;
}

json *event_candidate(const struct event_candidate *c)
{
    json *j = event_new("candidate");
    json_put_int(j, "id", c->id);
    put_ids(j, "parents", c->parents, c->nparents);
    json_put_str(j, "op", c->op);
    json_put_str(j, "proposer", c->proposer);
    json_put_str(j, "model", c->model);
    json_put_int(j, "island", c->island);
    json_put_int(j, "iter", c->iter);
    json_put_int(j, "gen", c->gen);
    json_put_str(j, "blob", c->blob);
    json_put_int(j, "seen", c->seen);
    json_put_str(j, "title", c->title);
    json_put_str(j, "flags", c->flags);
    json_put_str(j, "hint", c->hint);
    if (c->ninspired)
        put_ids(j, "inspired", c->inspired, c->ninspired);
    if (c->edits)
        json_put(j, "edits", json_copy(c->edits));
    if (c->seconds > 0)
        put_lean(j, "seconds", c->seconds);
    if (c->usd > 0)
        put_lean(j, "usd", c->usd);
    return j;
}

json *event_verdict(int64_t id, enum status status, const char *stage, const char *reason, int64_t of)
{
    json *j = event_new("verdict");
    json_put_int(j, "id", id);
    json_put_str(j, "status", status_name(status));
    json_put_str(j, "stage", stage);
    json_put_str(j, "reason", reason && *reason ? reason : NULL);
    if (of >= 0)
        json_put_int(j, "of", of);
    return j;
}

static void put_ratio(json *to, const json *from, const char *key)
{
    if (!json_is_number(json_get(from, key)))
        return;
    put_lean(to, key, json_num(from, key, 0));
    put_lean(to, "low", json_num(from, "low", 0));
    put_lean(to, "high", json_num(from, "high", 0));
}

static void put_stages(json *to, const json *stages)
{
    json *o = json_object();
    for (const json *s = json_first(stages); s; s = json_next(s))
        if (json_str(s, "name") && !json_has(o, json_str(s, "name")))
            put_lean(o, json_str(s, "name"), json_num(s, "ms", 0));
    json_put(to, "stages", o);
}

// The bins are the first numbers of "features", whatever a backend calls them.
static void put_cell(json *to, const json *features)
{
    json *cell = json_array();
    int n = 0;
    for (const json *x = json_first(features); x && n < STATE_CELL; x = json_next(x))
        if (json_is_number(x)) {
            json_push(cell, json_new_num(json_number(x, 0)));
            n++;
        }
    if (n == STATE_CELL)
        json_put(to, "cell", cell);
    else
        json_free(cell);
}

json *event_verdict_of(const json *answer, int64_t incumbent, const char *blob, double seconds, bool again)
{
    static const char *const keys[] = {"time_ns", "inc_ns", "gain", "low", "high", "n"};
    json *j = event_new("verdict");
    COPY_KEYS(j, answer, "id", "status", "stage", "reason", "of");
    if (incumbent >= 0)
        json_put_int(j, "inc", incumbent);
    put_ratio(j, answer, "gain");
    if (json_count(json_get(answer, "shapes")))
        json_put(j, "shapes", rows_of(json_get(answer, "shapes"), keys, countof(keys)));
    if (json_has(answer, "features"))
        put_cell(j, json_get(answer, "features"));
    if (json_bool(answer, "faster", false))
        json_put_bool(j, "faster", true);
    if (again)
        json_put_bool(j, "again", true);
    json_put_str(j, "blob", blob);
    put_lean(j, "seconds", seconds);
    COPY_KEYS(j, answer, "regress", "binary");
    if (json_has(answer, "stages"))
        put_stages(j, json_get(answer, "stages"));
    COPY_KEYS(j, answer, "static", "race", "recheck", "error", "samples");
    const char *log = json_str(answer, "log");
    if (log && *log) {
        size_t keep = strlen(log) < LOG_MOST ? strlen(log) : LOG_MOST;
        // Never through the middle of a character.
        while (keep && ((unsigned char)log[keep] & 0xc0) == 0x80)
            keep--;
        json_put_strn(j, "log", log, keep);
    }
    return j;
}

json *event_anchor(const json *answer)
{
    static const char *const keys[] = {"speedup", "low", "high"};
    json *j = event_new("anchor");
    COPY_KEYS(j, answer, "id");
    put_ratio(j, answer, "speedup");
    if (json_count(json_get(answer, "shapes")))
        json_put(j, "shapes", rows_of(json_get(answer, "shapes"), keys, countof(keys)));
    return j;
}

static json *placed(const char *ev, int64_t id, const int bins[STATE_CELL], int64_t over)
{
    json *j = event_new(ev);
    json_put_int(j, "id", id);
    json *cell = json_array();
    for (int i = 0; bins && i < STATE_CELL; i++)
        json_push(cell, json_new_int(bins[i]));
    json_put(j, "cell", cell);
    if (over >= 0)
        json_put_int(j, "over", over);
    return j;
}

json *event_archive(int64_t id, int island, const int bins[STATE_CELL], int64_t over)
{
    json *j = placed("archive", id, bins, over);
    json_put_int(j, "island", island);
    return j;
}

json *event_migrate(int64_t id, int from, int to, const int bins[STATE_CELL], int64_t over)
{
    json *j = placed("migrate", id, bins, over);
    json_put_int(j, "from", from);
    json_put_int(j, "to", to);
    return j;
}

json *event_evict(int64_t id, int island, const char *why)
{
    json *j = event_new("evict");
    json_put_int(j, "id", id);
    json_put_int(j, "island", island);
    json_put_str(j, "why", why);
    return j;
}

json *event_steer(const char *who, const char *cmd, json *args)
{
    json *j = event_new("steer");
    json_put_str(j, "who", who);
    json_put_str(j, "cmd", cmd);
    json_put(j, "args", args ? args : json_object());
    return j;
}

json *event_cost(const struct event_cost *c)
{
    json *j = event_new("cost");
    const struct {
        const char *key;
        double value;
    } parts[] = {{"wall", c->wall}, {"cpu", c->cpu}, {"usd", c->usd}, {"seconds", c->seconds}};
    for (size_t i = 0; i < countof(parts); i++)
        if (parts[i].value > 0)
            put_lean(j, parts[i].key, parts[i].value);
    if (c->tokens_in > 0)
        json_put_int(j, "tokens_in", c->tokens_in);
    if (c->tokens_out > 0)
        json_put_int(j, "tokens_out", c->tokens_out);
    json_put_str(j, "model", c->model);
    json_put_str(j, "answer", c->answer);
    if (c->unpriced)
        json_put_bool(j, "unpriced", true);
    return j;
}

static json *with_why(const char *ev, const char *why)
{
    json *j = event_new(ev);
    json_put_str(j, "why", why && *why ? why : NULL);
    return j;
}

json *event_pause(const char *why)
{
    return with_why("pause", why);
}

json *event_resume(const char *why)
{
    return with_why("resume", why);
}

json *event_stop(const char *reason, const char *msg)
{
    json *j = event_new("stop");
    json_put_str(j, "reason", reason);
    json_put_str(j, "msg", msg && *msg ? msg : NULL);
    return j;
}

json *event_note(const char *msg, int64_t id)
{
    json *j = event_new("note");
    json_put_str(j, "msg", msg);
    if (id >= 0)
        json_put_int(j, "id", id);
    return j;
}
