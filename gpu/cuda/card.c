// The GPU process: opens the device, keeps inputs and sealed expected values on it, and runs trials.
#include "cuda/card.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

const void *card_take(struct card_reader *r, size_t bytes)
{
    if ((size_t)(r->end - r->at) < bytes)
        return NULL;
    const void *p = r->at;
    r->at += bytes;
    return p;
}

int card_error(struct card *c, struct card_reply *r, int error, const char *what)
{
    if (error == 0)
        return 0;
    if (error != CARD_TIMEOUT)
        snprintf(r->words, sizeof r->words, "%s: %s", what, gpu_error(&c->gpu, error));
    r->lost = error == CARD_TIMEOUT || gpu_error_sticky(error);
    return r->error = error;
}

int card_refuse(struct card_reply *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->words, sizeof r->words, fmt, ap);
    va_end(ap);
    return r->error = CARD_REFUSED;
}

int card_launch(struct card *c, gpu_function f, uint64_t n, unsigned rows, void **params)
{
    uint64_t blocks = (n + 255) / 256, most = (uint64_t)c->sms * 16;
    if (rows > 1)
        most = most / rows + 1;
    if (blocks > most)
        blocks = most;
    return c->gpu.launch(f, blocks ? (unsigned)blocks : 1, rows ? rows : 1, 1, 256, 1, 1, 0, c->stream,
                         params, NULL);
}

int card_wait(struct card *c, gpu_event e, double limit_s)
{
    int64_t start = clock_ns(), limit = (int64_t)(limit_s * 1e9);
    for (;;) {
        int r = c->gpu.event_query(e);
        int64_t spent = clock_ns() - start;
        if (r != GPU_NOT_READY)
            return r;
        if (spent > limit)
            return CARD_TIMEOUT;
        if (spent > 2000000)
            usleep(100);
    }
}

int card_hash(struct card *c, const struct card_room *s, uint64_t *out)
{
    uint64_t words = s->room / 8;
    void *params[] = {(void *)&s->at, &words, (void *)&s->salt, &c->scalar};
    int r = c->gpu.set8(c->scalar, 0, sizeof *out, c->stream);
    if (r == 0)
        r = card_launch(c, c->hash, words, 1, params);
    if (r == 0)
        r = c->gpu.stream_sync(c->stream);
    return r ? r : c->gpu.copy_out(out, c->scalar, sizeof *out);
}

// ---- opening

static int load_trusted(struct card *c, const void *image, const char **failed)
{
    const struct {
        const char *name;
        gpu_function *f;
    } all[] = {{"ks_seal", &c->seal},       {"ks_hash", &c->hash},         {"ks_zones", &c->zones},
               {"ks_load", &c->load},       {"ks_judge_in", &c->judge_in}, {"ks_judge_out", &c->judge_out},
               {"ks_explain", &c->explain}, {"ks_empty", &c->empty},       {"ks_copy1", &c->copy[0]},
               {"ks_copy2", &c->copy[1]},   {"ks_copy4", &c->copy[2]},     {"ks_read", &c->read},
               {"ks_fma", &c->fma}};
    *failed = "loading the referee's kernels";
    int r = c->gpu.module_load(&c->trusted, image);
    for (size_t i = 0; i < countof(all) && r == 0; i++) {
        *failed = all[i].name;
        r = c->gpu.module_function(all[i].f, c->trusted, all[i].name);
    }
    return r;
}

static void read_facts(struct card *c, struct card_facts *f)
{
    const struct {
        int attr, *to;
    } all[] = {{GPU_ATTR_MAJOR, &f->major},
               {GPU_ATTR_MINOR, &f->minor},
               {GPU_ATTR_SMS, &f->sms},
               {GPU_ATTR_CLOCK_KHZ, &f->clock_khz},
               {GPU_ATTR_PAGEABLE, &f->pageable},
               {GPU_ATTR_L2_BYTES, &f->l2_bytes},
               {GPU_ATTR_MAX_THREADS, &f->limits.max_threads},
               {GPU_ATTR_MAX_BLOCK_X, &f->limits.max_block[0]},
               {GPU_ATTR_MAX_BLOCK_X + 1, &f->limits.max_block[1]},
               {GPU_ATTR_MAX_BLOCK_X + 2, &f->limits.max_block[2]},
               {GPU_ATTR_MAX_GRID_X, &f->limits.max_grid[0]},
               {GPU_ATTR_MAX_GRID_X + 1, &f->limits.max_grid[1]},
               {GPU_ATTR_MAX_GRID_X + 2, &f->limits.max_grid[2]},
               {GPU_ATTR_SHARED_BLOCK, &f->limits.shared_block},
               {GPU_ATTR_SHARED_OPTIN, &f->limits.shared_optin},
               {GPU_ATTR_REGS_SM, &f->limits.regs_block}};
    for (size_t i = 0; i < countof(all); i++)
        c->gpu.device_attr(all[i].to, all[i].attr, c->device);
    if (f->limits.regs_block > 65536) // a block has at most this many, also where a multiprocessor has more
        f->limits.regs_block = 65536;
    size_t bytes = 0, free_bytes = 0;
    c->gpu.device_memory(&bytes, c->device);
    f->memory = bytes;
    c->gpu.mem_info(&free_bytes, &bytes);
    f->free = free_bytes;
    c->gpu.driver_version(&f->driver_version);
    c->gpu.device_name(f->name, sizeof f->name, c->device);
    c->gpu.device_uuid(f->uuid, c->device);
}

static int load(struct card *c, struct card_reader *q, struct card_reply *r)
{
    const char *what = "";
    int rc = load_trusted(c, q->at, &what);
    return card_error(c, r, rc, what);
}

static int open_device(struct card *c, struct card_reader *q, struct card_reply *r, struct str *out)
{
    int64_t start = clock_ns();
    struct err e = {0};
    const int32_t *ordinal = card_take(q, sizeof *ordinal);
    if (!ordinal)
        return card_refuse(r, "a short question");
    if (gpu_open(&c->gpu, &e) < 0)
        return card_refuse(r, "%s (%s)", e.msg, e.hint);
    const char *what = "opening the device";
    int rc = c->gpu.device_get(&c->device, *ordinal);
    if (rc == 0)
        rc = c->gpu.ctx_retain(&c->context, c->device);
    if (rc == 0)
        rc = c->gpu.ctx_set(c->context);
    if (rc == 0)
        rc = c->gpu.stream_create(&c->stream, GPU_STREAM_NON_BLOCKING);
    if (rc == 0)
        rc = c->gpu.mem_alloc(&c->scalar, 256);
    // What a kernel may keep for printf and malloc: as little as there can be; neither is allowed.
    if (rc == 0) {
        c->gpu.ctx_limit(GPU_LIMIT_PRINTF, 1 << 16);
        c->gpu.ctx_limit(GPU_LIMIT_HEAP, 1 << 16);
        if (!c->staging)
            c->staging = mmap(NULL, CARD_STAGING, PROT_READ | PROT_WRITE, MAP_SHARED, CARD_STAGING_FD, 0);
        if (c->staging == MAP_FAILED)
            return card_refuse(r, "no staging area: %s", strerror(errno));
        c->gpu.host_register(c->staging, CARD_STAGING, 0); // only faster
    }
    if (rc)
        return card_error(c, r, rc, what);
    struct card_facts f = {0};
    read_facts(c, &f);
    c->sms = f.sms;
    c->nvml = nvml_open(f.uuid);
    nvml_driver(c->nvml, f.driver, sizeof f.driver);
    f.open_ms = (double)(clock_ns() - start) * 1e-6;
    vec_push(&c->stores, (struct card_room){0});
    str_addn(out, (const char *)&f, sizeof f);
    return 0;
}

// ---- stores

static struct card_room *store_of(struct card *c, uint32_t id)
{
    return id && id < c->stores.n ? &c->stores.v[id] : NULL;
}

static int make_store(struct card *c, struct card_reader *q, struct card_reply *r)
{
    const struct card_store *s = card_take(q, sizeof *s);
    if (!s || s->id == 0 || s->id > 1 << 20)
        return card_refuse(r, "a short question");
    while (c->stores.n <= s->id)
        vec_push(&c->stores, (struct card_room){0});
    struct card_room *m = &c->stores.v[s->id];
    if (m->at)
        c->gpu.mem_free(m->at);
    *m = (struct card_room){.bytes = s->bytes, .room = (s->bytes + 63) / 64 * 64};
    if (m->room == 0)
        m->room = 64;
    int rc = c->gpu.mem_alloc(&m->at, m->room);
    if (rc == 0)
        rc = c->gpu.set8(m->at, 0, m->room, c->stream);
    if (rc == 0)
        rc = c->gpu.stream_sync(c->stream);
    return card_error(c, r, rc, "memory for the inputs");
}

static int fill_store(struct card *c, struct card_reader *q, struct card_reply *r)
{
    const struct card_store *s = card_take(q, sizeof *s);
    struct card_room *m = s ? store_of(c, s->id) : NULL;
    if (!m || s->bytes > CARD_STAGING || s->offset > m->bytes || s->bytes > m->bytes - s->offset)
        return card_refuse(r, "no such store");
    return card_error(c, r, s->bytes ? c->gpu.copy_in(m->at + s->offset, c->staging, s->bytes) : 0,
                      "copying in");
}

static int seal_store(struct card *c, struct card_reader *q, struct card_reply *r, struct str *out)
{
    const struct card_seal *s = card_take(q, sizeof *s);
    struct card_room *m = s ? store_of(c, s->id) : NULL;
    if (!m)
        return card_refuse(r, "no such store");
    m->nonce = s->nonce;
    m->salt = s->salt;
    int rc = 0;
    if (s->seal) {
        uint64_t blocks = m->room / 64;
        void *params[] = {&m->at, &blocks, (void *)&s->key, (void *)&s->nonce};
        rc = card_launch(c, c->seal, blocks, 1, params);
    }
    if (rc == 0)
        rc = card_hash(c, m, &m->hash);
    str_addn(out, (const char *)&m->hash, sizeof m->hash);
    return card_error(c, r, rc, "sealing");
}

static int fetch(struct card *c, struct card_reader *q, struct card_reply *r)
{
    const struct card_fetch *s = card_take(q, sizeof *s);
    size_t i = s ? (size_t)s->set * c->buffers + s->buffer : 0;
    if (!s || i >= c->items.n || s->bytes > CARD_STAGING || s->offset + s->bytes > c->items.v[i].bytes)
        return card_refuse(r, "no such buffer");
    return card_error(c, r,
                      s->bytes ? c->gpu.copy_out(c->staging, c->items.v[i].at + s->offset, s->bytes) : 0,
                      "copying out");
}

// ---- questions and answers

static bool read_all(void *to, size_t n)
{
    for (char *p = to; n;) {
        ssize_t got = read(0, p, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

static void answer(struct card *c, uint32_t op, struct card_reader *q, struct card_reply *r, struct str *out)
{
    struct card_ceilings ceilings = {0};
    if (op != CARD_OPEN && !c->context) {
        card_refuse(r, "the device is not open");
        return;
    }
    switch (op) {
    case CARD_OPEN:
        open_device(c, q, r, out);
        break;
    case CARD_LOAD:
        load(c, q, r);
        break;
    case CARD_STORE:
        make_store(c, q, r);
        break;
    case CARD_FILL:
        fill_store(c, q, r);
        break;
    case CARD_SEAL:
        seal_store(c, q, r, out);
        break;
    case CARD_TRIAL:
        card_trial(c, q, r, out);
        break;
    case CARD_FETCH:
        fetch(c, q, r);
        break;
    case CARD_CEILINGS:
        card_ceiling(c, r, &ceilings);
        str_addn(out, (const char *)&ceilings, sizeof ceilings);
        break;
    default:
        card_refuse(r, "an unknown question");
    }
}

// The questions of a file instead of those of a worker; the bytes for the staging area stand behind theirs.
static int replay(struct card *c, const char *file)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    struct card_head h;
    struct str in = {0}, out = {0};
    if (fd < 0 || dup2(fd, 0) < 0) {
        fprintf(stderr, "cannot read %s: %s\n", file, strerror(errno));
        return 1;
    }
    c->staging = mmap(NULL, CARD_STAGING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    while (c->staging != MAP_FAILED && read_all(&h, sizeof h)) {
        str_clear(&in);
        str_clear(&out);
        str_reserve(&in, h.bytes + 1);
        if (!read_all(in.s, h.bytes))
            break;
        const struct card_store *part = (const void *)in.s;
        if (h.op == CARD_FILL && (part->bytes > CARD_STAGING || !read_all(c->staging, part->bytes)))
            break;
        struct card_reader q = {in.s, in.s + h.bytes};
        struct card_reply r = {0};
        answer(c, h.op, &q, &r, &out);
        if (r.error) {
            fprintf(stderr, "the GPU process: %s (%d)\n", r.words, r.error);
            return 1;
        }
    }
    return 0;
}

void card_main(const char *file)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Whatever a driver or a kernel prints must not be taken for an answer.
    int to = fcntl(1, F_DUPFD_CLOEXEC, 4);
    if (to < 0 || dup2(2, 1) < 0)
        _exit(1);
    struct card c = {0};
    struct card_head h;
    struct str in = {0}, out = {0};
    if (file)
        exit(replay(&c, file)); // profilers write when the program ends in order
    while (read_all(&h, sizeof h)) {
        str_clear(&in);
        str_clear(&out);
        str_reserve(&in, h.bytes + 1);
        if (!read_all(in.s, h.bytes))
            break;
        struct card_reader q = {in.s, in.s + h.bytes};
        struct card_reply r = {0};
        answer(&c, h.op, &q, &r, &out);
        r.bytes = (uint32_t)out.len;
        if (io_write_all(to, &r, sizeof r) < 0 || (out.len && io_write_all(to, out.s, out.len) < 0) || r.lost)
            break;
    }
    _exit(0);
}
