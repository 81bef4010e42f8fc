#include "cuda/trial.h"

#include "base/draw.h"
#include "cuda/driver.h"

#include <math.h>
#include <stdio.h>

enum { RED_CHECK = 2048, RED_RACE = 512 };

static void put(struct str *q, const void *p, size_t n)
{
    str_addn(q, p, n);
}

static void put_buffers(const struct judge *j, const struct trial_spec *s, struct str *q)
{
    for (int i = 0; i < j->buffers.n; i++) {
        const struct task_arg *a = buffer_arg(&j->task, &j->buffers, i);
        size_t size = dtype_info(a->type)->size;
        struct trial_buffer b = {.elements = (uint64_t)s->shape->elements[i],
                                 .type = a->type,
                                 .dir = a->dir,
                                 .align = a->align > (int)size ? (uint32_t)a->align : (uint32_t)size};
        put(q, &b, sizeof b);
    }
}

// What this shape's values are allowed to differ by.
static struct trial_content content_of(const struct judge *j, const struct trial_spec *s,
                                       const struct dataset *d, int i)
{
    const struct task_arg *a = buffer_arg(&j->task, &j->buffers, i);
    struct task_tol tol = compare_tolerance(&j->task, a->type);
    double twice = s->shape->baseline_is_oracle ? 2 : 1, eps = dtype_info(a->type)->eps;
    return (struct trial_content){.master = d->device_in[i],
                                  .wanted = d->device_wanted[i],
                                  .rtol = twice * tol.rtol,
                                  .atol = twice * tol.k * eps * d->wanted[i].rms +
                                          (a->type == DT_F32 ? 0x1p-149 : 0),
                                  .rms = d->wanted[i].rms,
                                  .eps = eps};
}

static struct trial_arg value_arg(const struct judge *j, const struct trial_spec *s,
                                  const struct gpu_kernel *k, const struct plan_arg *p)
{
    struct trial_arg a = {.kind = (uint32_t)p->kind, .index = (uint32_t)p->index};
    const struct task_arg *t = p->kind == PLAN_ARG ? &j->task.args.v[p->index] : NULL;
    if (t && t->dir == ARG_DIM) {
        a.bytes = (uint32_t)dtype_info(t->type)->size;
        a.bits = (uint64_t)s->shape->shape->dims[t->dim];
    } else if (t) {
        a.bytes = (uint32_t)dtype_info(t->type)->size;
        if (dtype_info(t->type)->is_float)
            dtype_store(t->type, &a.bits, t->value);
        else
            a.bits = (uint64_t)(int64_t)t->value;
    } else if (p->kind == PLAN_FLOAT) {
        enum dtype type = p->twice ? DT_F64 : DT_F32;
        a.bytes = (uint32_t)dtype_info(type)->size;
        dtype_store(type, &a.bits, p->value);
    } else if (p->kind == PLAN_INT) {
        int64_t v = 0;
        plan_int(&k->plan, &j->task, p, s->shape->shape->dims, &v);
        a.bits = (uint64_t)v;
    }
    return a;
}

static bool put_side(const struct judge *j, const struct trial_spec *s, const struct gpu_kernel *k,
                     struct str *q, struct fault *f)
{
    static const char zeros[8];
    struct plan_at at;
    struct str why = {0};
    if (plan_eval(&k->plan, &j->task, s->shape->shape->dims, &at, &why) < 0) {
        fault_set(f, STATUS_LAUNCH_ERROR, "%.400s", str_c(&why));
        str_free(&why);
        return false;
    }
    struct trial_side side = {(uint32_t)at.nscratch, (uint32_t)at.n, (uint32_t)k->image.len, 0};
    put(q, &side, sizeof side);
    for (int i = 0; i < at.nscratch; i++) {
        struct trial_buffer b = {.elements = (uint64_t)at.scratch[i],
                                 .type = k->plan.scratch.v[i].type,
                                 .dir = ITEM_SCRATCH,
                                 .align = 256};
        put(q, &b, sizeof b);
    }
    for (int i = 0; i < at.n; i++) {
        const struct plan_launch *l = &k->plan.launches.v[i];
        struct trial_launch t = {.at = at.launch[i], .args = (uint32_t)l->args.n};
        snprintf(t.name, sizeof t.name, "%s", k->symbol[i]);
        put(q, &t, sizeof t);
        for (size_t a = 0; a < l->args.n; a++) {
            struct trial_arg arg = value_arg(j, s, k, &l->args.v[a]);
            put(q, &arg, sizeof arg);
        }
    }
    put(q, k->image.s, k->image.len);
    put(q, zeros, (8 - k->image.len % 8) % 8);
    return true;
}

static bool make_question(const struct device *d, const struct judge *j, const struct trial_spec *s,
                          struct str *q, struct fault *f)
{
    struct trial t = {.salt = d->stores.v[d->stores.n - 1].salt ^ (uint64_t)(uintptr_t)q ^ draw_secret(),
                      .limit_s = s->limit_s,
                      .key = d->key,
                      .flags = s->flags,
                      .sides = s->kernel[1] ? 2 : 1,
                      .first_side = s->first_side,
                      .sets = s->copies,
                      .contents = (uint32_t)s->nsets,
                      .buffers = (uint32_t)j->buffers.n,
                      .samples = s->samples,
                      .red = s->flags & TRIAL_SEPARATE ? 0
                             : s->flags & TRIAL_GRAPH  ? RED_RACE
                                                       : RED_CHECK,
                      .repeat = s->repeat ? s->repeat : 1};
    put(q, &t, sizeof t);
    put_buffers(j, s, q);
    for (size_t i = 0; i < s->nsets; i++)
        for (int b = 0; b < j->buffers.n; b++) {
            struct trial_content c = content_of(j, s, s->sets[i], b);
            put(q, &c, sizeof c);
        }
    for (int i = 0; i < 2 && s->kernel[i]; i++)
        if (!put_side(j, s, s->kernel[i], q, f))
            return false;
    return true;
}

// ---- what came of it

static void remember_killer(struct device *d, const struct gpu_kernel *k, const struct fault *f)
{
    json *o = json_object();
    json_put_int(o, "status", f->status);
    json_put_str(o, "reason", f->reason);
    if (!json_has(d->killers, k->id))
        json_put(d->killers, k->id, o);
    else
        json_free(o);
}

bool trial_alive(const struct device *d, const struct gpu_kernel *k, struct fault *f)
{
    const json *o = json_get(d->killers, k->id);
    return !o || fault_set(f, (enum status)json_int(o, "status", STATUS_CRASH),
                           "%.400s (as before: it is not run again)", json_str_or(o, "reason", ""));
}

static bool blame(struct device *d, const struct trial_spec *s, const struct card_reply *r, int *side,
                  struct fault *f)
{
    *side = r->side;
    if (r->error == CARD_TIMEOUT)
        fault_set(f, STATUS_TIMEOUT, "did not end within %.3g s", s->limit_s);
    else if (r->error == CARD_REFUSED)
        fault_set(f, r->side < 0 ? STATUS_TROUBLE : STATUS_LAUNCH_ERROR, "%s", r->words);
    else if (gpu_error_sticky(r->error))
        fault_set(f, STATUS_CRASH, "it %s (%s)", gpu_error_words(r->error), r->words);
    else if (r->side < 0)
        fault_set(f, STATUS_TROUBLE, "the GPU: %s", r->words);
    else
        fault_set(f, STATUS_LAUNCH_ERROR, "it %s (%s)", gpu_error_words(r->error), r->words);
    if (r->lost && r->side >= 0 && s->kernel[r->side])
        remember_killer(d, s->kernel[r->side], f);
    return false;
}

bool trial_run(struct device *d, struct judge *j, const struct trial_spec *s, struct trial_out *out,
               int *side, struct fault *f)
{
    struct card_reply r;
    struct str q = {0}, answer = {0};
    *side = -1;
    out->results.n = 0;
    for (size_t i = 0; i < s->nsets; i++)
        if (!device_put(d, j, s->shape, s->sets[i], f))
            return false;
    bool ok = make_question(d, j, s, &q, f);
    // The process holds to the limit of each run itself; ours is for the case that it cannot.
    double runs = (s->samples + 1) * (s->kernel[1] ? 6.0 : 3.0);
    if (ok && !device_ask(d, CARD_TRIAL, q.s, q.len, s->limit_s + runs * 2 + 10, &r, &answer, f)) {
        ok = false;
        *side = s->kernel[1] ? 1 : 0;
        if (f->status == STATUS_TIMEOUT || f->status == STATUS_CRASH)
            remember_killer(d, s->kernel[*side], f);
    } else if (ok && r.error) {
        ok = blame(d, s, &r, side, f);
    }
    if (ok && answer.len >= sizeof out->a) {
        memcpy(&out->a, answer.s, sizeof out->a);
        size_t n = (answer.len - sizeof out->a) / sizeof(struct item_result);
        vec_reserve(&out->results, n + 1);
        memcpy(out->results.v, answer.s + sizeof out->a, n * sizeof(struct item_result));
        out->results.n = n;
        if (out->a.hashes) {
            *side = s->kernel[1] ? 1 : 0;
            ok = fault_set(f, STATUS_REJECTED,
                           "changed memory of the referee (%llu buffers that are not its own)",
                           (unsigned long long)out->a.hashes);
            device_kill(d); // what it left is not to be trusted
        }
    }
    str_free(&q);
    str_free(&answer);
    return ok;
}

static void record(FILE *to, enum card_op op, const void *data, size_t n)
{
    struct card_head h = {(uint32_t)op, (uint32_t)n};
    fwrite(&h, sizeof h, 1, to);
    fwrite(data, 1, n, to);
}

static void record_store(const struct device *d, uint32_t id, FILE *to)
{
    const struct stored *s = &d->stores.v[id];
    struct card_store room = {.id = id, .bytes = s->bytes};
    struct card_seal seal = {.id = id, .nonce = s->nonce, .seal = s->sealed, .key = d->key, .salt = s->salt};
    record(to, CARD_STORE, &room, sizeof room);
    for (uint64_t at = 0; at < s->bytes; at += CARD_STAGING) {
        uint64_t n = s->bytes - at < CARD_STAGING ? s->bytes - at : CARD_STAGING;
        struct card_store part = {.id = id, .offset = at, .bytes = n};
        record(to, CARD_FILL, &part, sizeof part);
        fwrite((const char *)s->data + at, 1, n, to);
    }
    record(to, CARD_SEAL, &seal, sizeof seal);
}

bool trial_record(struct device *d, struct judge *j, const struct trial_spec *s, const char *path,
                  struct fault *f)
{
    struct str q = {0};
    int32_t ordinal = d->ordinal;
    for (size_t i = 0; i < s->nsets; i++)
        if (!device_put(d, j, s->shape, s->sets[i], f))
            return false;
    FILE *to = make_question(d, j, s, &q, f) ? fopen(path, "wbe") : NULL;
    bool ok = to != NULL;
    if (to) {
        record(to, CARD_OPEN, &ordinal, sizeof ordinal);
        record(to, CARD_LOAD, d->trusted.s, d->trusted.len);
        for (size_t i = 0; i < s->nsets; i++)
            for (int b = 0; b < j->buffers.n; b++) {
                uint32_t both[] = {s->sets[i]->device_in[b], s->sets[i]->device_wanted[b]};
                for (int k = 0; k < 2; k++)
                    if (both[k])
                        record_store(d, both[k], to);
            }
        record(to, CARD_TRIAL, q.s, q.len);
        ok = fclose(to) == 0;
    }
    str_free(&q);
    return ok || (f->status == STATUS_OK && fault_set(f, STATUS_TROUBLE, "cannot write %s", path));
}

void trial_free(struct trial_out *o)
{
    vec_free(&o->results);
}

bool trial_right(const struct judge *j, const struct trial_spec *s, int buffer, const struct item_result *r,
                 struct fault *f)
{
    static const char scratch[] = "a scratch buffer";
    const struct task_arg *a = buffer < j->buffers.n ? buffer_arg(&j->task, &j->buffers, buffer) : NULL;
    const char *name = a ? a->name : scratch;
    unsigned long long n = a ? (unsigned long long)s->shape->elements[buffer] : 0, wrong = r->wrong;
    if (r->after != UINT64_MAX)
        return fault_set(f, STATUS_WRONG, "wrote outside %s: %llu bytes after its end", name,
                         (unsigned long long)r->after);
    if (r->before != UINT64_MAX)
        return fault_set(f, STATUS_WRONG, "wrote outside %s: %llu bytes before its start", name,
                         (unsigned long long)r->before);
    if (r->changed != UINT64_MAX)
        return fault_set(f, STATUS_WRONG, "changed its input %s at element %llu", name,
                         (unsigned long long)r->changed);
    if (!wrong)
        return true;
    if (a && a->dir == ARG_OUT && r->unwritten && dtype_info(a->type)->size > 1)
        return fault_set(f, STATUS_WRONG, "left %llu of %llu elements of %s unwritten%s",
                         (unsigned long long)r->unwritten, n, name,
                         r->unwritten < n && r->last == n - 1 ? " (skipped tail?)" : "");
    if (a && !dtype_info(a->type)->is_float)
        return fault_set(f, STATUS_WRONG, "%s[%llu] is %.0f, wanted %.0f (%llu of %llu elements wrong)", name,
                         (unsigned long long)r->first, r->got, r->want, wrong, n);
    if (isnan(r->got))
        return fault_set(f, STATUS_WRONG, "%s[%llu] is NaN, wanted %.9g (%llu of %llu elements wrong)", name,
                         (unsigned long long)r->first, r->want, wrong, n);
    return fault_set(f, STATUS_WRONG, "%s[%llu] is %.9g, wanted %.9g (%llu of %llu elements wrong)", name,
                     (unsigned long long)r->first, r->got, r->want, wrong, n);
}

double trial_limit(const struct shape_data *s, double n)
{
    return s->baseline_ns > 0 ? n * 5 * s->baseline_ns * 1e-9 + 1 : 60;
}
