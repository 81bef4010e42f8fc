// Correct on every test and hidden shape, for every kind of contents, wherever the buffers lie.
#include "cpu/judge.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PRECISION_FACTOR = 30, ROUNDS = 4 };

static const enum placement places[] = {PLACE_RANDOM, PLACE_END, PLACE_START};

static size_t least_align(const struct judge *j)
{
    (void)j;
    return 1; // what the task promises is added by rig_place
}

static bool run_shape(struct judge *j, struct rig *r, struct shape_data *s, struct precision *p,
                      struct fault *f)
{
    for (size_t i = 0; i < s->sets.n; i++) {
        struct dataset *d = s->sets.v[i];
        if (d->useless)
            continue;
        rig_place(r, s, places[i % countof(places)], least_align(j));
        if (!rig_run(r, 0, d, judge_limit(s), NULL, d->variant == VARIANT_PLAIN ? p : NULL, f))
            return false;
        // Other contents at the same addresses at once: an answer that was kept is stale now.
        struct dataset *other = s->sets.v[(i + 1) % s->sets.n];
        if (other != d && !other->useless && !rig_run(r, 0, other, judge_limit(s), NULL, NULL, f))
            return false;
    }
    return true;
}

static void name_shape(const struct shape_data *s, const char *extra, struct fault *f)
{
    struct str text = {0};
    if (f->status == STATUS_TROUBLE || f->status == STATUS_CANCELLED)
        return;
    str_addf(&text, "%s (shape %s%s)", f->reason, s->shape->name, extra);
    fault_set(f, f->status, "%s", str_c(&text));
    str_free(&text);
}

// The same contents give the same bits, wherever the buffers lie.
static bool deterministic(struct judge *j, struct rig *r, struct shape_data *s, struct fault *f)
{
    struct dataset *d = s->sets.v[0];
    char *first[MAX_BUFFERS] = {0};
    bool ok = true;
    for (int round = 0; round < ROUNDS && ok; round++) {
        rig_place(r, s, PLACE_RANDOM, 64);
        ok = rig_run(r, 0, d, judge_limit(s), NULL, NULL, f);
        for (int i = 0; i < j->buffers.n && ok; i++) {
            const struct arena_buffer *b = &r->arena.buffer[i];
            const struct task_arg *a = buffer_arg(&j->task, &j->buffers, i);
            if (a->dir == ARG_IN)
                continue;
            if (round == 0) {
                first[i] = xmalloc(b->bytes + 1);
                memcpy(first[i], b->data, b->bytes);
            } else if (memcmp(first[i], b->data, b->bytes) != 0) {
                ok = fault_set(
                    f, STATUS_WRONG,
                    "gives other bits in %s for the same inputs (the task says deterministic = yes)",
                    a->name);
            }
        }
    }
    for (int i = 0; i < MAX_BUFFERS; i++)
        free(first[i]);
    return ok;
}

bool check_smoke(struct judge *j, const struct binary *b, struct fault *f)
{
    struct side_spec spec;
    struct rig r;
    judge_spec(j, b, &spec);
    // The smallest of the task's own: a kernel made for just those fails later, where that is said.
    size_t first = 0;
    while (first + 1 < j->test.n && j->test.v[first]->shape->hidden)
        first++;
    struct shape_data *s = j->test.v[first];
    bool ok = rig_open(&r, &j->task, &j->buffers, &s, 1, false, f) && rig_start(&r, 0, &spec, f);
    if (ok) {
        rig_place(&r, s, PLACE_RANDOM, 64);
        ok = rig_run(&r, 0, s->sets.v[0], judge_limit(s), NULL, NULL, f);
        if (!ok)
            name_shape(s, "", f);
    }
    rig_close(&r);
    return ok;
}

bool check_all(struct judge *j, const struct binary *b, struct precision *p, struct fault *f)
{
    struct side_spec spec;
    struct rig r;
    bool own_passed = true;
    judge_spec(j, b, &spec);
    bool ok =
        rig_open(&r, &j->task, &j->buffers, j->test.v, j->test.n, false, f) && rig_start(&r, 0, &spec, f);
    // The task's own shapes before the hidden ones, so that a kernel made for just those is told so.
    for (int hidden = 0; hidden < 2 && ok; hidden++)
        for (size_t i = 0; i < j->test.n && ok; i++) {
            struct shape_data *s = j->test.v[i];
            if (s->shape->hidden != hidden)
                continue;
            ok = run_shape(j, &r, s, p, f);
            if (!ok)
                name_shape(s,
                           hidden && own_passed ? ": right on all of the task's own, so are sizes hard-wired?"
                                                : "",
                           f);
            own_passed &= ok;
        }
    if (ok && j->task.deterministic)
        ok = deterministic(j, &r, j->test.v[0], f);
    rig_close(&r);
    return ok;
}

bool check_precision(struct judge *j, const struct precision *p, double *ratio)
{
    double base = 0, wanted = 0;
    for (size_t i = 0; i < j->test.n; i++) {
        base += j->test.v[i]->error_sq;
        wanted += j->test.v[i]->wanted_sq;
    }
    // Half a unit in the last place of every element is what rounding the result alone costs.
    double least = 0;
    for (int i = 0; i < j->buffers.n; i++) {
        const struct task_arg *a = buffer_arg(&j->task, &j->buffers, i);
        if (a->dir != ARG_IN)
            least = fmax(least, dtype_info(a->type)->eps);
    }
    double mine = sqrt(p->error_sq / fmax(p->wanted_sq, 1e-300));
    double theirs = fmax(sqrt(base / fmax(wanted, 1e-300)), least / 4);
    *ratio = mine / theirs;
    return least == 0 || *ratio <= PRECISION_FACTOR;
}
