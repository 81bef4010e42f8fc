// What the device can do at best, measured several ways: bytes copied and read, fp32 operations, launches.
#include "cuda/card.h"

#include "base/clock.h"

enum { ROUNDS = 6, EMPTY = 200, FMA_BLOCKS = 64, FMA_PER_THREAD = 2 * 16 * 512 };

struct bench {
    struct card *c;
    gpu_event from, to;
    gpu_ptr a, b;
    uint64_t bytes;
};

typedef int bench_fn(struct bench *x, void *what);

// The shortest of some rounds, in seconds; 0 where it failed.
static double best(struct bench *x, bench_fn *fn, void *what, int *rc)
{
    double least = 0;
    for (int i = 0; i < ROUNDS && *rc == 0; i++) {
        float ms = 0;
        *rc = x->c->gpu.event_record(x->from, x->c->stream);
        if (*rc == 0)
            *rc = fn(x, what);
        if (*rc == 0)
            *rc = x->c->gpu.event_record(x->to, x->c->stream);
        if (*rc == 0)
            *rc = card_wait(x->c, x->to, 20);
        if (*rc == 0)
            *rc = x->c->gpu.event_ms(&ms, x->from, x->to);
        double s = (double)ms * 1e-3;
        least = i == 0 || (least > 0 && s < least) ? s : least;
    }
    return *rc == 0 ? least : 0;
}

static int run_memcpy(struct bench *x, void *unused)
{
    (void)unused;
    return x->c->gpu.copy_async(x->b, x->a, x->bytes, x->c->stream);
}

struct copy {
    gpu_function f;
    unsigned blocks;
};

static int run_copy(struct bench *x, void *what)
{
    struct copy *k = what;
    uint64_t n = x->bytes / 16;
    void *params[] = {&x->a, &x->b, &n};
    return x->c->gpu.launch(k->f, k->blocks, 1, 1, 512, 1, 1, 0, x->c->stream, params, NULL);
}

static int run_fma(struct bench *x, void *unused)
{
    (void)unused;
    float a = 0.999f, b = 0.001f;
    void *params[] = {&x->b, &a, &b};
    for (int i = 0; i < 8; i++) {
        int rc = x->c->gpu.launch(x->c->fma, (unsigned)x->c->sms * FMA_BLOCKS, 1, 1, 256, 1, 1, 0,
                                  x->c->stream, params, NULL);
        if (rc)
            return rc;
    }
    return 0;
}

static int run_graph(struct bench *x, void *what)
{
    return x->c->gpu.graph_launch(*(gpu_exec *)what, x->c->stream);
}

static int measure_launch(struct bench *x, double *ns)
{
    struct card *c = x->c;
    gpu_graph graph = NULL;
    gpu_exec exec = NULL;
    int rc = c->gpu.capture_begin(c->stream, GPU_CAPTURE_RELAXED);
    for (int i = 0; i < EMPTY && rc == 0; i++)
        rc = c->gpu.launch(c->empty, 1, 1, 1, 32, 1, 1, 0, c->stream, NULL, NULL);
    int end = c->gpu.capture_end(c->stream, &graph);
    rc = rc ? rc : end;
    if (rc == 0)
        rc = c->gpu.graph_instantiate(&exec, graph, 0);
    if (rc == 0)
        *ns = best(x, run_graph, &exec, &rc) * 1e9 / EMPTY;
    if (exec)
        c->gpu.exec_destroy(exec);
    if (graph)
        c->gpu.graph_destroy(graph);
    return rc;
}

static double best_copy(struct bench *x, gpu_function f, double bytes, int *rc)
{
    static const unsigned per_sm[] = {4, 16, 64};
    double rate = 0;
    for (size_t i = 0; i < countof(per_sm); i++) {
        struct copy k = {f, (unsigned)x->c->sms * per_sm[i]};
        double s = best(x, run_copy, &k, rc);
        if (s > 0 && bytes / s > rate)
            rate = bytes / s;
    }
    return rate;
}

int card_ceiling(struct card *c, struct card_reply *r, struct card_ceilings *out)
{
    struct bench x = {.c = c, .bytes = (uint64_t)2 << 30};
    size_t free = 0, total = 0;
    c->gpu.mem_info(&free, &total);
    while (x.bytes > free / 4)
        x.bytes /= 2;
    int rc = c->gpu.mem_alloc(&x.a, x.bytes);
    if (rc == 0)
        rc = c->gpu.mem_alloc(&x.b, x.bytes);
    uint64_t words = x.bytes / 8, salt = 1;
    void *params[] = {&x.a, &words, &salt}; // random bits: zeros would be faster than real data
    if (rc == 0)
        rc = card_launch(c, c->zones, words, 1, params);
    if (rc == 0)
        rc = c->gpu.event_create(&x.from, GPU_EVENT_DEFAULT);
    if (rc == 0)
        rc = c->gpu.event_create(&x.to, GPU_EVENT_DEFAULT);
    double s = rc == 0 ? best(&x, run_memcpy, NULL, &rc) : 0;
    out->memcpy_rate = s > 0 ? 2.0 * (double)x.bytes / s : 0;
    for (int i = 0; i < 3 && rc == 0; i++) {
        double rate = best_copy(&x, c->copy[i], 2.0 * (double)x.bytes, &rc);
        out->copy = rate > out->copy ? rate : out->copy;
    }
    if (rc == 0)
        out->read = best_copy(&x, c->read, (double)x.bytes, &rc);
    s = rc == 0 ? best(&x, run_fma, NULL, &rc) : 0;
    out->fma = s > 0 ? 8.0 * c->sms * FMA_BLOCKS * 256 * (double)FMA_PER_THREAD / s : 0;
    if (rc == 0)
        rc = measure_launch(&x, &out->launch_ns);
    if (x.a)
        c->gpu.mem_free(x.a);
    if (x.b)
        c->gpu.mem_free(x.b);
    if (x.from)
        c->gpu.event_destroy(x.from);
    if (x.to)
        c->gpu.event_destroy(x.to);
    return card_error(c, r, rc, "measuring the ceilings");
}
