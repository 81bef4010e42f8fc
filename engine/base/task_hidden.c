// The referee's hidden shapes: sizes that the task does not name, where kernels with wrong tails, hard-wired
// sizes or wrong strides fail.
#include "base/task_parse.h"

#include "base/draw.h"

enum { HIDDEN_MAX = 16, STEPS = 512 };
static const int64_t ELEMENTS_MAX = 1 << 20; // of one buffer
static const int64_t WORK_MAX = 1 << 22;     // product of the dims: the length of a naive kernel's loops

struct hidden {
    const struct task *t;
    const struct task_shape *base; // the smallest test shape
    int64_t elements_max, work_max;
    VEC(struct task_shape) out;
};

static int64_t work_of(const struct task *t, const int64_t *dims)
{
    int64_t n = 1;
    for (size_t i = 0; i < t->dims.n; i++)
        if (__builtin_mul_overflow(n, dims[i], &n))
            return INT64_MAX;
    return n;
}

static int64_t largest_buffer(const struct task *t, const int64_t *dims)
{
    int64_t most = 0;
    for (size_t i = 0; i < t->args.n; i++) {
        int64_t n;
        if (t->args.v[i].dir > ARG_INOUT)
            continue;
        if (task_elements(t, &t->args.v[i], dims, &n, NULL) < 0)
            return INT64_MAX;
        if (n > most)
            most = n;
    }
    return most;
}

static bool same(const struct hidden *h, const int64_t *a, const int64_t *b)
{
    return memcmp(a, b, h->t->dims.n * sizeof *a) == 0;
}

static bool known(const struct hidden *h, const int64_t *dims)
{
    for (size_t i = 0; i < h->t->shapes.n; i++)
        if (h->t->shapes.v[i].test && same(h, h->t->shapes.v[i].dims, dims))
            return true;
    for (size_t i = 0; i < h->out.n; i++)
        if (same(h, h->out.v[i].dims, dims))
            return true;
    return false;
}

static bool fits(const struct hidden *h, const int64_t *dims)
{
    return task_allows(h->t, dims) && largest_buffer(h->t, dims) <= h->elements_max &&
           work_of(h->t, dims) <= h->work_max;
}

// Adds dims where they are new and allowed; they are the vector's from then on.
static void add(struct hidden *h, const int64_t *dims)
{
    size_t bytes = h->t->dims.n * sizeof *dims;
    if (h->out.n >= HIDDEN_MAX || !fits(h, dims) || known(h, dims))
        return;
    struct task_shape s = {.name = xasprintf("hidden-%zu", h->out.n + 1),
                           .dims = xmalloc(bytes),
                           .test = true,
                           .hidden = true,
                           .weight = 1};
    memcpy(s.dims, dims, bytes);
    vec_push(&h->out, s);
}

// One dim at v, or at the nearest value to it that require and the limits allow; and that
// no shape has yet.
static void add_one(struct hidden *h, size_t dim, int64_t v)
{
    int64_t *dims = xmalloc(h->t->dims.n * sizeof *dims);
    memcpy(dims, h->base->dims, h->t->dims.n * sizeof *dims);
    for (int step = 0; step < 2 * STEPS; step++) {
        dims[dim] = v + (step & 1 ? (step + 1) / 2 : -(step / 2));
        if (dims[dim] < 1 || known(h, dims) || !fits(h, dims))
            continue;
        add(h, dims);
        break;
    }
    free(dims);
}

// All dims at once: what couples them (require = M==N) leaves no other way.
static void add_all(struct hidden *h, const int64_t *values)
{
    size_t n = h->t->dims.n;
    int64_t *dims = xmalloc(n * sizeof *dims);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < n; i++)
            dims[i] = values[i] + step;
        if (!fits(h, dims))
            continue;
        add(h, dims);
        break;
    }
    free(dims);
}

static const struct task_shape *smallest_test(const struct task *t)
{
    const struct task_shape *best = NULL;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < t->shapes.n; i++) {
        const struct task_shape *s = &t->shapes.v[i];
        int64_t w = work_of(t, s->dims);
        // All ones says nothing about what is typical.
        if (s->test && w > 1 && (!best || w < least)) {
            best = s;
            least = w;
        }
    }
    for (size_t i = 0; !best && i < t->shapes.n; i++)
        if (t->shapes.v[i].test)
            best = &t->shapes.v[i];
    return best;
}

static int64_t largest_test(const struct task *t, size_t dim)
{
    int64_t most = 1;
    for (size_t i = 0; i < t->shapes.n; i++)
        if (t->shapes.v[i].test && t->shapes.v[i].dims[dim] > most)
            most = t->shapes.v[i].dims[dim];
    return most;
}

void task_hidden_shapes(const struct task *t, uint64_t secret, struct task_shape **out, size_t *n)
{
    static const int64_t primes[] = {7, 13, 31, 61, 127, 251};
    struct hidden h = {.t = t, .base = smallest_test(t)};
    struct draw d = {secret, 0};
    *out = NULL;
    *n = 0;
    if (!h.base || t->dims.n == 0)
        return;
    int64_t elements = largest_buffer(t, h.base->dims), work = work_of(t, h.base->dims);
    h.elements_max = elements > ELEMENTS_MAX / 2 ? elements * 2 : ELEMENTS_MAX;
    h.work_max = work > WORK_MAX / 2 ? (work > INT64_MAX / 2 ? work : work * 2) : WORK_MAX;
    int64_t *drawn = xcalloc(t->dims.n, sizeof *drawn), *equal = xcalloc(t->dims.n, sizeof *equal);
    for (size_t i = 0; i < t->dims.n; i++) {
        drawn[i] = 1 + (int64_t)draw_below(d, "hidden", i, (uint64_t)(largest_test(t, i) + 16));
        equal[i] = primes[draw_below(d, "hidden-prime", t->dims.n, 3)];
    }
    add_all(&h, drawn);
    add_all(&h, equal);
    // A round for each kind of value, so that the limit on their number cuts kinds and not dims.
    for (int kind = 0; kind < 5; kind++)
        for (size_t i = 0; i < t->dims.n; i++) {
            int64_t b = h.base->dims[i];
            int64_t v = kind == 0   ? 1
                        : kind == 1 ? b + 1
                        : kind == 2 ? b - 1
                        : kind == 3 ? primes[draw_below(d, "hidden-prime", i, countof(primes))]
                                    : drawn[i];
            add_one(&h, i, v < 1 ? 1 : v);
        }
    free(drawn);
    free(equal);
    *out = h.out.v;
    *n = h.out.n;
}
