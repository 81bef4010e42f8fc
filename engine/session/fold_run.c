// The fold of what concerns the run as a whole: session, workers, preflight, costs, pause and stop.
#include "session/fold.h"

#include <inttypes.h>

static void fold_files(struct fold *f, const json *files)
{
    for (const json *x = json_first(files); x; x = json_next(x)) {
        const json *path = json_first(x), *blob = json_next(path), *mode = json_next(blob);
        struct file file = {.path = memory_copy(f->st->memory, json_string(path)),
                            .executable = str_eq(json_string(mode), "x")};
        memcpy(file.blob, json_string(blob), 41);
        vec_push(&f->st->files, file);
    }
}

static bool rows_ok(const json *rows, size_t width, bool blobs)
{
    for (const json *x = json_first(rows); x; x = json_next(x)) {
        const json *name = json_first(x);
        unsigned char id[20];
        if (!json_is_array(x) || json_count(x) != width || !json_string(name) ||
            (blobs && !fold_hex(json_string(json_next(name)), id)))
            return false;
    }
    return true;
}

int fold_session(struct fold *f)
{
    struct state *st = f->st;
    const json *ev = f->event;
    if (st->last > 0)
        return fold_bad(f, "a second session line");
    int64_t format = json_int(ev, "format", -1);
    if (format != JOURNAL_FORMAT) {
        fold_bad(f, "the journal has format %" PRId64 ", this ksmith reads format %d", format,
                 JOURNAL_FORMAT);
        return err_set(f->e, ERR_FAIL, "Use the ksmith version that wrote it.", "%s", f->e ? f->e->msg : "");
    }
    int64_t islands = json_int(ev, "islands", 1);
    if (islands < 1 || islands > 4096)
        return fold_bad(f, "%" PRId64 " islands", islands);
    if (!rows_ok(json_get(ev, "files"), 3, true) || !rows_ok(json_get(ev, "shapes"), 3, false))
        return fold_bad(f, "files or shapes are no rows of three");
    if (f->check)
        return 0;
    struct state_memory *m = st->memory;
    st->version = memory_copy(m, json_str(ev, "ksmith"));
    st->name = memory_copy(m, json_str(ev, "name"));
    st->backend = memory_copy(m, json_str(ev, "backend"));
    st->kernel = memory_copy(m, json_str(ev, "kernel"));
    st->head = memory_copy(m, json_str(ev, "head"));
    st->host = memory_copy(m, json_str(ev, "host"));
    st->task = memory_copy(m, json_str(ev, "task"));
    st->seed = (uint64_t)json_int(ev, "seed", 0);
    st->islands = (int)islands;
    st->started = f->t;
    fold_files(f, json_get(ev, "files"));
    for (const json *x = json_first(json_get(ev, "shapes")); x; x = json_next(x)) {
        const json *name = json_first(x), *bench = json_next(name);
        struct shape s = {.name = memory_intern(m, json_string(name)),
                          .bench = json_number(bench, 0) != 0,
                          .weight = json_number(json_next(bench), 1)};
        vec_push(&st->shapes, s);
    }
    return 0;
}

int fold_worker(struct fold *f)
{
    if (f->check)
        return 0;
    struct state *st = f->st;
    struct state_memory *m = st->memory;
    const json *ev = f->event;
    struct worker_info w = {.name = memory_intern(m, json_str_or(ev, "name", "worker")),
                            .device = memory_intern(m, json_str(ev, "device")),
                            .compiler = memory_intern(m, json_str(ev, "compiler")),
                            .driver = memory_intern(m, json_str(ev, "driver")),
                            .fingerprint = memory_intern(m, json_str(ev, "fingerprint")),
                            .why = memory_intern(m, json_str(ev, "why")),
                            .is_protected = json_bool(ev, "protected", false),
                            .since = f->t,
                            .at = f->offset};
    st->at_worker = f->offset;
    for (size_t i = 0; i < st->workers.n; i++)
        if (st->workers.v[i].name == w.name) {
            st->workers.v[i] = w;
            return 0;
        }
    vec_push(&st->workers, w);
    return 0;
}

int fold_preflight(struct fold *f)
{
    if (f->check)
        return 0;
    f->st->preflight_done = true;
    f->st->preflight_ok = json_bool(f->event, "ok", false);
    f->st->at_preflight = f->offset;
    return 0;
}

int fold_floor(struct fold *f)
{
    double floor = json_num(f->event, "floor", -1);
    if (floor < 0)
        return fold_bad(f, "a floor line without a floor");
    if (f->check)
        return 0;
    f->st->floor = floor;
    f->st->floor_fingerprint = memory_intern(f->st->memory, json_str(f->event, "fingerprint"));
    return 0;
}

// The seconds of an answer that is a candidate stand in the candidate's own line.
static void add_request(struct op_stats *m, const json *event)
{
    const char *answer = json_str(event, "answer");
    m->usd += json_num(event, "usd", 0);
    m->tokens_in += json_int(event, "tokens_in", 0);
    m->tokens_out += json_int(event, "tokens_out", 0);
    m->asked += answer != NULL;
    m->unpriced += json_bool(event, "unpriced", false);
    if (answer && !str_eq(answer, "source"))
        m->seconds += json_num(event, "seconds", 0);
}

int fold_cost(struct fold *f)
{
    if (f->check)
        return 0;
    struct state *st = f->st;
    st->wall += json_num(f->event, "wall", 0);
    st->cpu += json_num(f->event, "cpu", 0);
    st->usd += json_num(f->event, "usd", 0);
    st->tokens_in += json_int(f->event, "tokens_in", 0);
    st->tokens_out += json_int(f->event, "tokens_out", 0);
    const char *model = memory_intern(st->memory, json_str(f->event, "model"));
    if (model)
        add_request(fold_stats(&st->models, model), f->event);
    return 0;
}

int fold_pause(struct fold *f)
{
    if (f->check)
        return 0;
    f->st->paused = true;
    f->st->paused_why = memory_copy(f->st->memory, json_str(f->event, "why"));
    return 0;
}

int fold_resume(struct fold *f)
{
    if (f->check)
        return 0;
    f->st->paused = f->st->stopped = false;
    f->st->paused_why = f->st->stop_reason = f->st->stop_msg = NULL;
    return 0;
}

int fold_stop(struct fold *f)
{
    const char *reason = json_str(f->event, "reason");
    if (!reason)
        return fold_bad(f, "a stop line without a reason");
    if (f->check)
        return 0;
    f->st->stopped = true;
    f->st->stop_reason = memory_copy(f->st->memory, reason);
    f->st->stop_msg = memory_copy(f->st->memory, json_str(f->event, "msg"));
    return 0;
}

int fold_note(struct fold *f)
{
    return json_str(f->event, "msg") ? 0 : fold_bad(f, "a note line without a message");
}
