#include "cpu/data.h"

#include <string.h>

int buffers_of(const struct task *t, struct buffers *b, struct err *e)
{
    *b = (struct buffers){0};
    for (size_t i = 0; i < t->args.n; i++) {
        enum arg_dir dir = t->args.v[i].dir;
        if (dir == ARG_DIM || dir == ARG_VAL)
            continue;
        if (b->n == MAX_BUFFERS)
            return err_set(e, ERR_USAGE, "Pass fewer buffers.", "more than %d buffers", MAX_BUFFERS);
        b->arg[b->n++] = (int)i;
    }
    return 0;
}

int shape_data_init(struct shape_data *s, const struct task *t, const struct buffers *b,
                    const struct task_shape *shape, struct err *e)
{
    *s = (struct shape_data){.shape = shape};
    for (int i = 0; i < b->n; i++) {
        const struct task_arg *a = buffer_arg(t, b, i);
        if (task_elements(t, a, shape->dims, &s->elements[i], e) < 0)
            return -1;
        s->bytes += (size_t)s->elements[i] * dtype_info(a->type)->size;
    }
    return 0;
}

void shape_data_free(struct shape_data *s)
{
    for (size_t i = 0; i < s->sets.n; i++)
        dataset_free(s->sets.v[i]);
    vec_free(&s->sets);
}

size_t dataset_bytes(const struct task *t, const struct buffers *b, const struct shape_data *s)
{
    size_t sum = sizeof(struct dataset);
    for (int i = 0; i < b->n; i++) {
        const struct task_arg *a = buffer_arg(t, b, i);
        const struct dtype_info *d = dtype_info(a->type);
        if (a->dir != ARG_OUT)
            sum += (size_t)s->elements[i] * d->size;
        if (a->dir != ARG_IN)
            sum += (size_t)s->elements[i] * (d->is_float ? sizeof(double) : d->size);
    }
    return sum;
}

struct dataset *dataset_new(const struct task *t, const struct buffers *b, const struct shape_data *s,
                            uint64_t seed, enum variant v)
{
    struct dataset *d = xcalloc(1, sizeof *d);
    d->seed = seed;
    d->variant = v;
    for (int i = 0; i < b->n; i++) {
        const struct task_arg *a = buffer_arg(t, b, i);
        size_t n = (size_t)s->elements[i], size = dtype_info(a->type)->size;
        if (a->dir != ARG_OUT) {
            d->in[i] = xmalloc(n * size + 1);
            inputs_fill(a, b->arg[i], seed, v, d->in[i], n);
        }
        if (a->dir != ARG_IN) {
            if (dtype_info(a->type)->is_float)
                d->wanted[i].real = xmalloc((n + 1) * sizeof(double));
            else
                d->wanted[i].exact = xmalloc(n * size + 1);
        }
    }
    return d;
}

void dataset_free(struct dataset *d)
{
    if (!d)
        return;
    for (int i = 0; i < MAX_BUFFERS; i++) {
        free(d->in[i]);
        free(d->wanted[i].real);
        free(d->wanted[i].exact);
    }
    free(d);
}

struct slots {
    struct call_args *out;
    int ints, floats, stack;
};

static int put_stack(struct slots *s, uint64_t bits)
{
    if (s->stack == MAX_STACK)
        return -1;
    s->out->stack[s->stack++] = bits;
    return 0;
}

static int put_int(struct slots *s, uint64_t bits)
{
    if (s->ints == MAX_INTS)
        return put_stack(s, bits);
    s->out->ints[s->ints++] = bits;
    return 0;
}

static int put_float(struct slots *s, uint64_t bits)
{
    if (s->floats == MAX_FLOATS)
        return put_stack(s, bits);
    memcpy(&s->out->floats[s->floats++], &bits, sizeof bits);
    return 0;
}

static int put_value(struct slots *s, enum dtype type, double x, int64_t whole)
{
    uint64_t bits = 0;
    if (type == DT_F64 || type == DT_F32) {
        dtype_store(type, &bits, x); // a float sits in the low half
        return put_float(s, bits);
    }
    if (type == DT_F16 || type == DT_BF16) {
        dtype_store(type, &bits, x); // _Float16 and __bf16 travel in vector registers
        return put_float(s, bits);
    }
    return put_int(s, (uint64_t)whole); // sign-extended, as callers do
}

// The value as the kernel gets it: a reference in double precision must not get a more exact one.
static double rounded_value(const struct task_arg *a)
{
    uint64_t bits = 0;
    if (!dtype_info(a->type)->is_float)
        return a->value;
    dtype_store(a->type, &bits, a->value);
    return dtype_load(a->type, &bits);
}

int call_layout(const struct task *t, const struct buffers *b, const int64_t *dims, const uint64_t *address,
                bool real, struct call_args *out, struct err *e)
{
    *out = (struct call_args){0};
    struct slots s = {.out = out};
    int buffer = 0;
    (void)b;
    for (size_t i = 0; i < t->args.n; i++) {
        const struct task_arg *a = &t->args.v[i];
        int r;
        if (a->dir == ARG_DIM)
            r = put_value(&s, a->type, (double)dims[a->dim], dims[a->dim]);
        else if (a->dir == ARG_VAL)
            r = put_value(&s, real && dtype_info(a->type)->is_float ? DT_F64 : a->type, rounded_value(a),
                          (int64_t)a->value);
        else
            r = put_int(&s, address[buffer++]);
        if (r < 0)
            return err_set(e, ERR_USAGE, "Pass fewer arguments.",
                           "the kernel has more arguments than can be passed");
    }
    return 0;
}
