#include "cpu/rig.h"

#include "base/clock.h"
#include "base/draw.h"
#include "base/hash.h"
#include "cpu/mxcsr.h"

#include <stdio.h>
#include <string.h>

static const int64_t HARNESS_NS = 20000000000; // a harness command on the largest buffers

static size_t element_size(const struct rig *r, const struct task_arg *a)
{
    const struct dtype_info *d = dtype_info(a->type);
    return r->real && d->is_float ? sizeof(double) : d->size;
}

bool rig_open(struct rig *r, const struct task *t, const struct buffers *b, struct shape_data *const *shapes,
              size_t n, bool real, struct fault *f)
{
    *r = (struct rig){.task = t, .buffers = b, .real = real, .arena.fd = -1};
    for (int i = 0; i < 2; i++)
        r->side[i].control_fd = r->side[i].schedstat_fd = -1;
    size_t most[MAX_BUFFERS] = {0};
    for (size_t k = 0; k < n; k++) {
        for (int i = 0; i < b->n; i++) {
            size_t bytes = (size_t)shapes[k]->elements[i] * element_size(r, buffer_arg(t, b, i));
            most[i] = bytes > most[i] ? bytes : most[i];
        }
    }
    struct err e = {0};
    if (arena_open(&r->arena, most, b->n, &e) < 0)
        return fault_set(f, STATUS_TROUBLE, "%s", e.msg);
    r->salt = draw_secret();
    return true;
}

void rig_close(struct rig *r)
{
    side_close(&r->side[0]);
    side_close(&r->side[1]);
    arena_close(&r->arena);
}

bool rig_start(struct rig *r, int side, const struct side_spec *spec, struct fault *f)
{
    side_close(&r->side[side]);
    r->last[side] = NULL;
    return side_start(&r->side[side], &r->arena, spec, f);
}

void rig_place(struct rig *r, const struct shape_data *s, enum placement how, size_t align)
{
    r->shape = s;
    for (int i = 0; i < r->buffers->n; i++) {
        const struct task_arg *a = buffer_arg(r->task, r->buffers, i);
        size_t size = element_size(r, a), least = size > align ? size : align;
        if (a->align > 0 && (size_t)a->align > least)
            least = (size_t)a->align;
        arena_place(&r->arena, i, (size_t)s->elements[i] * size, least < PAGE ? least : PAGE, how);
    }
}

void rig_load(struct rig *r, const struct dataset *d)
{
    r->salt = hash_mix(r->salt + 1);
    for (int i = 0; i < r->buffers->n; i++) {
        const struct task_arg *a = buffer_arg(r->task, r->buffers, i);
        struct arena_buffer *b = &r->arena.buffer[i];
        if (a->dir == ARG_OUT)
            arena_poison(&r->arena, i, r->salt, element_size(r, a));
        else if (r->real && dtype_info(a->type)->is_float)
            dtype_load_n(a->type, d->in[i], (double *)(void *)b->data, b->bytes / sizeof(double));
        else
            memcpy(b->data, d->in[i], b->bytes);
    }
}

bool rig_prepare(struct rig *r, int side, struct fault *f)
{
    struct side *s = &r->side[side];
    struct control *c = s->control;
    uint64_t address[MAX_BUFFERS];
    for (int i = 0; i < r->buffers->n; i++) {
        const struct task_arg *a = buffer_arg(r->task, r->buffers, i);
        address[i] = arena_address(&r->arena, i);
        c->touch[i] = (struct touch){address[i], r->arena.buffer[i].bytes, a->dir != ARG_IN, 0};
    }
    struct err e = {0};
    if (call_layout(r->task, r->buffers, r->shape->shape->dims, address, r->real, &c->args, &e) < 0)
        return fault_set(f, STATUS_TROUBLE, "%s", e.msg);
    c->touches = (uint32_t)r->buffers->n;
    c->condition = r->condition;
    return side_fault(s, side_do(s, OP_PREPARE, HARNESS_NS), 20, f);
}

static void scribble(struct rig *r)
{
    for (int i = 0; i < r->buffers->n; i++) {
        struct arena_buffer *b = &r->arena.buffer[i];
        if (buffer_arg(r->task, r->buffers, i)->dir != ARG_IN || b->bytes == 0)
            continue;
        size_t lines = (b->bytes + 63) / 64;
        for (int k = 0; k < SCRIBBLES; k++) {
            uint64_t h = hash_mix(r->salt ^ (uint64_t)(i * SCRIBBLES + k + 1) << 32);
            size_t line = h % lines, n = b->bytes - line * 64 < 64 ? b->bytes - line * 64 : 64;
            r->scribble[i].at[k] = (uint32_t)line;
            for (size_t x = 0; x < n; x++)
                b->data[line * 64 + x] = (char)(h >> (x % 8 * 8) ^ x);
        }
    }
}

// After the answer to a ping the harness surely has control again; what a kernel left undone until then is
// lost.
static bool settle(struct rig *r, struct side *s, int64_t done, int64_t *late, struct fault *f)
{
    int64_t pong = 0;
    if (s->whole_machine)
        side_freeze(s);
    else {
        side_send(s, OP_PING);
        if (!side_fault(s, side_wait(s, HARNESS_NS, &pong), 20, f))
            return false;
        if (late)
            *late = pong - done;
    }
    scribble(r);
    return true;
}

static bool check_mode(struct side *s, struct fault *f)
{
    uint32_t mode = mxcsr_mode(s->control->mxcsr);
#if defined(__x86_64__)
    if (mode == 0x1f80)
        return true;
    if (mode & 0x8040)
        return fault_set(f, STATUS_REJECTED, "set flush-to-zero for the process");
#else
    if (mode == 0)
        return true;
#endif
    return fault_set(f, STATUS_REJECTED, "changed the floating-point mode of the process");
}

// What the fault address of a crash says about the buffers.
static void crash_words(struct rig *r, struct side *s, struct fault *f)
{
    uint64_t at = s->control->fault_address - r->arena.address;
    if (f->status != STATUS_CRASH || at >= r->arena.bytes)
        return;
    for (int i = 0; i < r->buffers->n; i++) {
        const struct arena_buffer *b = &r->arena.buffer[i];
        const char *name = buffer_arg(r->task, r->buffers, i)->name;
        if (at >= b->room + b->room_bytes && at < b->room + b->room_bytes + PAGE / 2) {
            fault_set(f, STATUS_CRASH, "reads or writes past the end of %s (%llu bytes after it)", name,
                      // NOLINTNEXTLINE(bugprone-misplaced-widening-cast): at most 192
                      (unsigned long long)(at - (b->at + b->bytes) + 1));
            return;
        }
        if (at < b->room && at + PAGE / 2 >= b->room) {
            fault_set(f, STATUS_CRASH, "reads or writes before the start of %s (%llu bytes before it)", name,
                      (unsigned long long)(b->at - at));
            return;
        }
    }
}

bool rig_call(struct rig *r, int side, double limit_s, int64_t *ns, int64_t *late, struct fault *f)
{
    struct side *s = &r->side[side];
    int64_t done = 0, start = clock_ns();
    side_send(s, OP_RUN);
    enum wait_end w = side_wait(s, (int64_t)(limit_s * 1e9), &done);
    *ns = done - start;
    if (!side_fault(s, w, limit_s, f) || !settle(r, s, done, late, f)) {
        crash_words(r, s, f);
        return false;
    }
    return s->whole_machine || check_mode(s, f);
}

static uint64_t outputs_hash(const struct rig *r)
{
    uint64_t h = 0;
    for (int i = 0; i < r->buffers->n; i++)
        if (buffer_arg(r->task, r->buffers, i)->dir != ARG_IN)
            h = hash_bytes(r->arena.buffer[i].data, r->arena.buffer[i].bytes, h);
    return h;
}

static bool scribbled(const struct rig *r, int i, size_t at)
{
    for (int k = 0; k < SCRIBBLES; k++)
        if (r->scribble[i].at[k] == at / 64)
            return true;
    return false;
}

static bool inputs_kept(struct rig *r, const struct dataset *d, struct fault *f)
{
    for (int i = 0; i < r->buffers->n; i++) {
        const struct task_arg *a = buffer_arg(r->task, r->buffers, i);
        const struct arena_buffer *b = &r->arena.buffer[i];
        if (a->dir != ARG_IN || b->bytes == 0)
            continue;
        // Put the scribbled lines back first, so that one comparison serves.
        const char *want = d->in[i];
        for (int k = 0; k < SCRIBBLES; k++) {
            size_t at = (size_t)r->scribble[i].at[k] * 64, n = b->bytes - at < 64 ? b->bytes - at : 64;
            memcpy(b->data + at, want + at, n);
        }
        if (memcmp(b->data, want, b->bytes) == 0)
            continue;
        size_t at = 0, size = dtype_info(a->type)->size;
        while (b->data[at] == want[at] || scribbled(r, i, at))
            at++;
        return fault_set(f, STATUS_WRONG, "changed its input %s at element %zu", a->name, at / size);
    }
    return true;
}

static bool red_zones(struct rig *r, struct fault *f)
{
    for (int i = 0; i < r->buffers->n; i++) {
        const char *name = buffer_arg(r->task, r->buffers, i)->name;
        long d;
        if (arena_intact(&r->arena, i, &d))
            continue;
        if (d > 0)
            return fault_set(f, STATUS_WRONG, "wrote outside %s: %ld bytes after its end", name, d);
        return fault_set(f, STATUS_WRONG, "wrote outside %s: %ld bytes before its start", name, -d);
    }
    return true;
}

static void compare_output(const struct rig *r, int i, const struct dataset *d, struct comparison *c)
{
    const struct task_arg *a = buffer_arg(r->task, r->buffers, i);
    const struct wanted *w = &d->wanted[i];
    size_t n = (size_t)r->shape->elements[i];
    if (w->real)
        compare_real(a->type, r->arena.buffer[i].data, w->real, w->rms, n,
                     compare_tolerance(r->task, a->type), c);
    else
        compare_exact(a->type, r->arena.buffer[i].data, w->exact, n, c);
}

// Whether buffer i holds the answer to the set that this side ran before.
static bool kept_answer(const struct rig *r, int side, int i, const struct dataset *d)
{
    const struct dataset *last = r->last[side];
    if (!last || last == d || r->last_shape[side] != r->shape)
        return false;
    struct comparison c;
    compare_output(r, i, last, &c);
    return c.wrong == 0;
}

static bool wrong_output(struct rig *r, int side, int i, const struct dataset *d, const struct comparison *c,
                         struct fault *f)
{
    const struct task_arg *a = buffer_arg(r->task, r->buffers, i);
    uint64_t before = outputs_hash(r);
    clock_sleep_ms(20);
    if (outputs_hash(r) != before)
        return fault_set(f, STATUS_WRONG, "says done before the work is done: %s changed afterwards",
                         a->name);
    size_t unwritten = arena_poisoned(&r->arena, i, r->salt, element_size(r, a));
    if (a->dir == ARG_OUT && unwritten > 0 && dtype_info(a->type)->size > 1)
        return fault_set(f, STATUS_WRONG, "left %zu of %zu elements of %s unwritten%s", unwritten, c->n,
                         a->name, unwritten < c->n && c->last == c->n - 1 ? " (skipped tail?)" : "");
    if (kept_answer(r, side, i, d))
        return fault_set(f, STATUS_WRONG, "returned the answer of an earlier call in %s", a->name);
    if (c->got != c->got)
        return fault_set(f, STATUS_WRONG, "%s[%zu] is NaN, wanted %.9g (%zu of %zu elements wrong)", a->name,
                         c->first, c->want, c->wrong, c->n);
    if (!dtype_info(a->type)->is_float)
        return fault_set(f, STATUS_WRONG, "%s[%zu] is %.0f, wanted %.0f (%zu of %zu elements wrong)", a->name,
                         c->first, c->got, c->want, c->wrong, c->n);
    return fault_set(f, STATUS_WRONG,
                     "%s[%zu] is %.9g, wanted %.9g (tolerance %.2g; %zu of %zu elements wrong)", a->name,
                     c->first, c->got, c->want, c->allowed, c->wrong, c->n);
}

bool rig_judge(struct rig *r, int side, const struct dataset *d, struct precision *p, struct fault *f)
{
    struct comparison worst = {0};
    int at = -1;
    for (int i = 0; i < r->buffers->n; i++) {
        struct comparison c;
        if (buffer_arg(r->task, r->buffers, i)->dir == ARG_IN)
            continue;
        compare_output(r, i, d, &c);
        if (c.wrong && at < 0) {
            worst = c;
            at = i;
        }
        if (p) {
            p->error_sq += c.error_sq;
            p->wanted_sq += c.wanted_sq;
            p->max_ulp = c.max_ulp > p->max_ulp ? c.max_ulp : p->max_ulp;
        }
    }
    // The most telling reason first: a kernel that writes outside is often wrong inside as well.
    bool ok = red_zones(r, f) && inputs_kept(r, d, f) && (at < 0 || wrong_output(r, side, at, d, &worst, f));
    r->last[side] = d;
    r->last_shape[side] = r->shape;
    side_thaw(&r->side[side]);
    return ok;
}

bool rig_run(struct rig *r, int side, const struct dataset *d, double limit_s, int64_t *ns,
             struct precision *p, struct fault *f)
{
    int64_t unused;
    rig_load(r, d);
    return rig_prepare(r, side, f) && rig_call(r, side, limit_s, ns ? ns : &unused, NULL, f) &&
           rig_judge(r, side, d, p, f);
}

void rig_collect(struct rig *r, struct dataset *d)
{
    for (int i = 0; i < r->buffers->n; i++) {
        const struct task_arg *a = buffer_arg(r->task, r->buffers, i);
        const struct arena_buffer *b = &r->arena.buffer[i];
        struct wanted *w = &d->wanted[i];
        size_t n = (size_t)r->shape->elements[i];
        if (a->dir == ARG_IN)
            continue;
        if (w->exact)
            memcpy(w->exact, b->data, n * dtype_info(a->type)->size);
        else if (r->real)
            memcpy(w->real, b->data, n * sizeof(double));
        else
            dtype_load_n(a->type, b->data, w->real, n);
        if (w->real)
            w->rms = compare_rms(w->real, n);
    }
    d->ready = true;
}
