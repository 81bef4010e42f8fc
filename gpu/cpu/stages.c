// A verdict, stage by stage; the same for every device. What a device does in each stage is in its judge_ops.
#include "cpu/judge.h"

#include "base/clock.h"
#include "base/io.h"
#include "worker.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct verdict {
    struct judge *j;
    const json *request;
    json *out, *stages;
    int64_t stage_start;
    const char *stage;
    struct fault fault;
    struct entry entry, incumbent;
    struct str log;
};

static void stage(struct verdict *v, const char *name)
{
    int64_t now = clock_ns();
    if (v->stage) {
        json *row = json_object();
        json_put_str(row, "name", v->stage);
        json_put_num(row, "ms", round((double)(now - v->stage_start) * 1e-4) / 100);
        json_push(v->stages, row);
    }
    v->stage = name;
    v->stage_start = now;
    if (!name)
        return;
    json *o = json_object();
    json_put_str(o, "ev", "stage");
    json_put_int(o, "id", json_int(v->request, "id", -1));
    json_put_str(o, "stage", name);
    worker_send(o);
}

static bool dedup(struct verdict *v)
{
    const char *id = v->entry.binary.id;
    char key[17];
    snprintf(key, sizeof key, "%.16s", id);
    json_put_str(v->out, "binary", key);
    int64_t of = json_int(v->j->binaries, key, -1);
    if (str_eq(json_str(v->request, "op"), "judge") && of >= 0 && of != v->entry.id) {
        json_put_int(v->out, "of", of);
        return fault_set(&v->fault, STATUS_DUPLICATE, "the same binary as %lld", (long long)of);
    }
    return true;
}

static void remember(struct verdict *v)
{
    const char *key = json_str(v->out, "binary");
    if (key && v->entry.id >= 0 && !json_has(v->j->binaries, key))
        json_put_int(v->j->binaries, key, v->entry.id);
}

static json *race_json(const struct race *r)
{
    json *o = json_object();
    json_put_num(o, "gain", r->gain);
    json_put_num(o, "low", r->low);
    json_put_num(o, "high", r->high);
    json_put_int(o, "n", r->replicates);
    json_put_int(o, "tainted", r->tainted);
    return o;
}

static void put_race(struct verdict *v, const struct race *r)
{
    json *shapes = json_array();
    for (size_t k = 0; k < v->j->bench.n; k++) {
        const struct race_shape *s = &r->shapes[k];
        json *o = json_object();
        json_put_str(o, "name", v->j->bench.v[k]->shape->name);
        json_put_num(o, "time_ns", round(s->ns[1]));
        json_put_num(o, "inc_ns", round(s->ns[0]));
        json_put_num(o, "gain", s->gain);
        json_put_num(o, "low", s->low);
        json_put_num(o, "high", s->high);
        json_put_int(o, "n", r->replicates);
        json_push(shapes, o);
    }
    json_put(v->out, "shapes", shapes);
    json_put_num(v->out, "gain", r->gain);
    json_put_num(v->out, "low", r->low);
    json_put_num(v->out, "high", r->high);
}

// A shape whose interval lies wholly below the task's limit.
static const char *regressed(const struct judge *j, const struct race *r)
{
    for (size_t k = 0; k < j->bench.n; k++)
        if (r->shapes[k].high < j->task.regress)
            return j->bench.v[k]->shape->name;
    return NULL;
}

// Faster than this machine can be.
static bool impossible(struct verdict *v, const struct race *r)
{
    const struct judge *j = v->j;
    for (size_t k = 0; k < j->bench.n && !v->entry.approved; k++) {
        const struct shape_data *s = j->bench.v[k];
        int64_t n;
        double seconds = r->shapes[k].ns[1] * 1e-9;
        bool threads = j->task.threads > 1;
        if (j->task.metric_flops && !threads && v->entry.binary.flop_rate > 0 &&
            task_eval(&j->task, j->task.metric_flops, s->shape->dims, &n) &&
            (double)n / seconds > 1.03 * v->entry.binary.flop_rate * j->fma_ceiling)
            return !fault_set(&v->fault, STATUS_FLAGGED,
                              "%.3g GFLOP/s on %s is more than this %s can do (%.3g)",
                              (double)n / seconds * 1e-9, s->shape->name, j->unit,
                              v->entry.binary.flop_rate * j->fma_ceiling * 1e-9);
        if (j->task.metric_bytes && s->bytes > 2 * j->llc_bytes &&
            task_eval(&j->task, j->task.metric_bytes, s->shape->dims, &n) && !threads &&
            (double)n / seconds > j->copy_slack * j->copy_ceiling)
            return !fault_set(&v->fault, STATUS_FLAGGED,
                              "%.3g GB/s on %s is more than this %s can move (%.3g)",
                              (double)n / seconds * 1e-9, s->shape->name, j->unit, j->copy_ceiling * 1e-9);
    }
    double most = json_num(v->request, "parent_gain_limit", 10);
    if (v->entry.by_model && !v->entry.approved && r->gain > most)
        return !fault_set(&v->fault, STATUS_FLAGGED, "%.3gx over its parent in one step: a human should look",
                          r->gain);
    return false;
}

static bool right(struct verdict *v)
{
    struct precision p = {0};
    double ratio = 0;
    stage(v, "smoke");
    if (!v->j->ops->smoke(v->j, &v->entry.binary, &v->fault))
        return false;
    stage(v, "check");
    if (!v->j->ops->check(v->j, &v->entry.binary, &p, &v->fault))
        return false;
    bool precise = check_precision(v->j, &p, &ratio);
    json *o = json_object();
    json_put_num(o, "max_ulp", p.max_ulp);
    json_put_num(o, "over_baseline", ratio);
    json_put(v->out, "error", o);
    if (!precise && !v->j->task.allow_precision && !v->entry.approved)
        return fault_set(&v->fault, STATUS_FLAGGED, "lost precision: its error is %.0f times the baseline's",
                         ratio);
    return true;
}

static void save_samples(struct verdict *v, json *race, json *recheck)
{
    char name[40];
    if (!v->j->samples || v->entry.id < 0)
        return;
    json *o = json_object();
    struct str text = {0};
    json_put(o, "race", json_copy(race));
    if (recheck)
        json_put(o, "recheck", json_copy(recheck));
    json_print(o, &text);
    snprintf(name, sizeof name, "%lld.json", (long long)v->entry.id);
    char *path = io_join(v->j->samples, name);
    if (io_write_file(path, text.s, text.len, 0600, NULL) == 0)
        json_put_str(v->out, "samples", name);
    free(path);
    json_free(o);
    str_free(&text);
}

static bool won(const struct judge *j, const struct race *r)
{
    return r->gain >= j->task.gain && r->low > 1;
}

static bool run_race(struct verdict *v)
{
    struct judge *j = v->j;
    struct race first = {0}, second = {0};
    struct race_plan plan = {.least = 5,
                             .most = 8,
                             .level = 0.95,
                             .seconds = j->task.race_seconds,
                             .may_give_up = true,
                             .report = v->entry.id};
    stage(v, "race");
    bool ok = race_run(j, &v->incumbent.binary, &v->entry.binary, &plan, &first, &v->fault);
    bool faster = ok && won(j, &first) && !regressed(j, &first) && !impossible(v, &first);
    if (ok) {
        put_race(v, &first);
        json_put(v->out, "race", race_json(&first));
        if (regressed(j, &first))
            json_put_str(v->out, "regress", regressed(j, &first));
    }
    ok = ok && v->fault.status == STATUS_OK;
    if (ok && faster && j->ops->promote) {
        stage(v, "sanitize");
        ok = j->ops->promote(j, &v->entry.binary, &v->fault);
    }
    if (ok && faster) {
        struct race_plan again = {.least = 8,
                                  .most = 8,
                                  .level = 0.99,
                                  .first_seed = RACE_SEEDS,
                                  .seconds = 2 * j->task.race_seconds,
                                  .report = v->entry.id};
        stage(v, "recheck");
        ok = race_run(j, &v->incumbent.binary, &v->entry.binary, &again, &second, &v->fault);
        if (ok) {
            json *fresh = json_object();
            for (const json *x = json_first(v->out); x; x = json_next(x)) {
                const char *key = json_key(x);
                if (!str_eq(key, "shapes") && !str_eq(key, "gain") && !str_eq(key, "low") &&
                    !str_eq(key, "high"))
                    json_put(fresh, key, json_copy(x));
            }
            json_free(v->out);
            v->out = fresh;
            put_race(v, &second);
            json_put(v->out, "recheck", race_json(&second));
            faster = won(j, &second) && !regressed(j, &second) && !impossible(v, &second);
            if (regressed(j, &second) && !json_has(v->out, "regress"))
                json_put_str(v->out, "regress", regressed(j, &second));
        }
    }
    if (first.samples)
        save_samples(v, first.samples, second.samples);
    json_put_bool(v->out, "faster", ok && faster && v->fault.status == STATUS_OK);
    race_free(&first);
    race_free(&second);
    return ok && v->fault.status == STATUS_OK;
}

static bool stages(struct verdict *v)
{
    struct str ignored = {0};
    stage(v, "compile");
    bool ok = v->j->ops->build(v->j, v->request, &v->entry, &v->log, &v->fault) && dedup(v);
    if (ok) {
        const json *inc = json_get(v->request, "incumbent");
        ok = v->j->ops->build(v->j, inc ? inc : v->request, &v->incumbent, &ignored, &v->fault);
        if (!ok && v->fault.status != STATUS_TROUBLE)
            fault_set(&v->fault, STATUS_TROUBLE, "the incumbent no longer builds");
    }
    str_free(&ignored);
    if (!ok)
        return false;
    stage(v, "static");
    v->j->ops->facts(v->j, &v->entry, v->out);
    if (!right(v))
        return false;
    remember(v);
    return str_eq(json_str(v->request, "until"), "check") || run_race(v);
}

void judge_verdict(void *user, const json *request)
{
    struct judge *j = user;
    struct verdict v = {.j = j, .request = request, .out = json_object(), .stages = json_array()};
    if (!j->ready) {
        struct err e = {0};
        err_set(&e, ERR_USAGE, "Send open and preflight first.", "the task has not passed its preflight");
        worker_error(&e);
        json_free(v.out);
        json_free(v.stages);
        return;
    }
    bool ok = stages(&v);
    const char *last = v.stage;
    stage(&v, NULL);
    if (v.fault.status == STATUS_CANCELLED || v.fault.status == STATUS_TROUBLE) {
        json *o = json_object();
        json_put_str(o, "ev", v.fault.status == STATUS_CANCELLED ? "cancelled" : "error");
        json_put_int(o, "id", json_int(request, "id", -1));
        json_put_str(o, "msg", v.fault.reason);
        worker_send(o);
        json_free(v.out);
        json_free(v.stages);
    } else {
        json *o = json_object();
        json_put_str(o, "ev", "verdict");
        json_put_int(o, "id", json_int(request, "id", -1));
        json_put_str(o, "status", status_names[ok ? STATUS_OK : v.fault.status]);
        json_put_str(o, "stage", last);
        json_put_str(o, "reason", ok ? "" : v.fault.reason);
        json_put(o, "stages", v.stages);
        for (const json *x = json_first(v.out); x; x = json_next(x))
            json_put(o, json_key(x), json_copy(x));
        if (v.log.len)
            json_put_str(o, "log", str_c(&v.log));
        json_free(v.out);
        worker_send(o);
    }
    str_free(&v.log);
}

// A champion that is much faster than what the floor was measured on trembles otherwise: measured again on
// it.
static void renew_floor(struct judge *j, const struct binary *b, const struct race *r)
{
    double ns = 0;
    struct fault f = {0};
    for (size_t k = 0; k < j->bench.n; k++)
        ns += r->shapes[k].ns[1];
    if (4 * ns > j->floor_ns || !preflight_floor(j, b, 8, &f))
        return;
    json *o = json_object();
    json_put_str(o, "ev", "floor");
    json_put_num(o, "floor", j->floor);
    worker_send(o);
}

void judge_anchor(void *user, const json *request)
{
    struct judge *j = user;
    struct entry mine, base;
    struct str log = {0};
    struct fault f = {0};
    struct race r = {0};
    double slow = 0;
    for (size_t k = 0; k < j->bench.n; k++)
        slow += j->bench.v[k]->baseline_ns * 1e-9;
    int n = slow > 0.1 ? 4 : 5;
    struct race_plan plan = {.least = n, .most = n, .level = 0.95, .seconds = 30, .report = -1};
    json *o = json_object();
    bool ok = j->ops->build(j, request, &mine, &log, &f) &&
              j->ops->build(j, json_get(request, "baseline"), &base, &log, &f) &&
              race_run(j, &base.binary, &mine.binary, &plan, &r, &f);
    if (ok)
        renew_floor(j, &mine.binary, &r);
    json_put_str(o, "ev", ok ? "anchor" : "error");
    json_put_int(o, "id", json_int(request, "id", -1));
    if (ok) {
        json_put_num(o, "speedup", r.gain);
        json_put_num(o, "low", r.low);
        json_put_num(o, "high", r.high);
    } else {
        json_put_str(o, "msg", f.reason);
    }
    worker_send(o);
    race_free(&r);
    str_free(&log);
}

void judge_profile(void *user, const json *request)
{
    struct judge *j = user;
    struct entry x;
    struct str log = {0};
    struct fault f = {0};
    json *o = json_object();
    bool ok = j->compiler && j->ops->profile
                  ? j->ops->build(j, request, &x, &log, &f) && j->ops->profile(j, &x.binary, o, &f)
                  : fault_set(&f, STATUS_TROUBLE, "there is no profiler for this backend");
    json_put_str(o, "ev", ok ? "profile" : "error");
    json_put_int(o, "id", json_int(request, "id", -1));
    if (!ok)
        json_put_str(o, "msg", f.reason);
    worker_send(o);
    str_free(&log);
}

static bool stop_waiting(void *unused)
{
    (void)unused;
    return worker_cancelled();
}

// The lease is held meanwhile: whoever looks at code must not disturb what another session times.
void judge_assembly(void *user, const json *request)
{
    struct judge *j = user;
    struct entry x;
    struct str log = {0}, text = {0};
    struct fault f = {0};
    struct err e = {0};
    json *o = json_object();
    bool ok = j->compiler && j->ops->assembly
                  ? lease_take(j->lease, -1, stop_waiting, NULL, &e) == 0 ||
                        fault_set(&f, STATUS_TROUBLE, "%s", e.kind ? e.msg : "cancelled")
                  : fault_set(&f, STATUS_TROUBLE, "this worker shows no assembly");
    ok = ok && j->ops->build(j, request, &x, &log, &f) && j->ops->assembly(j, &x.binary, &text, &f);
    if (j->compiler)
        lease_release(j->lease);
    json_put_str(o, "ev", ok ? "assembly" : "error");
    json_put_int(o, "id", json_int(request, "id", -1));
    if (ok)
        json_put_str(o, "text", str_c(&text));
    else {
        json_put_str(o, "msg", f.reason);
        json_put_str(o, "hint", str_c(&log));
    }
    worker_send(o);
    str_free(&log);
    str_free(&text);
}
