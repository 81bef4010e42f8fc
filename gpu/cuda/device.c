#include "cuda/device.h"

#include "base/clock.h"
#include "base/draw.h"
#include "base/io.h"
#include "base/proc.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

static const double OPEN_SECONDS = 60, HARNESS_SECONDS = 60;

extern const char _binary_gpu_cuda_trusted_cu_start[], _binary_gpu_cuda_trusted_cu_end[];

void device_kill(struct device *d)
{
    if (!d->pid)
        return;
    proc_kill(d->pid);
    close(d->to);
    close(d->from);
    d->pid = 0;
    for (size_t i = 0; i < d->stores.n; i++)
        d->stores.v[i].there = false;
}

static int pass_staging(void *user)
{
    int fd = *(int *)user;
    return fd == CARD_STAGING_FD ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, CARD_STAGING_FD) < 0;
}

static bool spawn(struct device *d, struct fault *f)
{
    int to[2], from[2];
    struct err e = {0};
    if (proc_pipe(to) < 0 || proc_pipe(from) < 0)
        return fault_set(f, STATUS_TROUBLE, "cannot make a pipe");
    const char *argv[] = {"/proc/self/exe", "--card", NULL}, *env[] = {"CUDA_MODULE_LOADING=EAGER", NULL};
    struct proc_spec spec = {.argv = argv,
                             .env = env,
                             .in = to[0],
                             .out = from[1],
                             .err = 2,
                             .before_exec = pass_staging,
                             .user = &d->staging_fd};
    int r = proc_start(&spec, &d->pid, &e);
    close(to[0]);
    close(from[1]);
    d->to = to[1];
    d->from = from[0];
    if (r == 0)
        return true;
    close(d->to);
    close(d->from);
    d->pid = 0;
    return fault_set(f, STATUS_TROUBLE, "%s", e.msg);
}

// 0: done; 1: late or cancelled; -1: it died.
static int read_answer(struct device *d, void *to, size_t n, int64_t deadline)
{
    for (char *p = to; n;) {
        struct pollfd fd = {.fd = d->from, .events = POLLIN};
        if (clock_ns() > deadline || worker_cancelled())
            return 1;
        if (poll(&fd, 1, 20) <= 0)
            continue;
        ssize_t got = read(d->from, p, n);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return -1;
        p += got;
        n -= (size_t)got;
    }
    return 0;
}

// One question and its answer, on a process that runs.
static int exchange(struct device *d, enum card_op op, const void *data, size_t n, double limit_s,
                    struct card_reply *r, struct str *out)
{
    struct card_head h = {(uint32_t)op, (uint32_t)n};
    *r = (struct card_reply){0};
    int64_t deadline = clock_ns() + (int64_t)(limit_s * 1e9);
    if (io_write_all(d->to, &h, sizeof h) < 0 || (n && io_write_all(d->to, data, n) < 0))
        return -1;
    int rc = read_answer(d, r, sizeof *r, deadline);
    if (rc || !r->bytes)
        return rc;
    struct str ignored = {0}, *to = out ? out : &ignored;
    str_clear(to);
    str_reserve(to, r->bytes + 1);
    rc = read_answer(d, to->s, r->bytes, deadline);
    to->len = rc ? 0 : r->bytes;
    str_free(&ignored);
    return rc;
}

static bool start(struct device *d, struct fault *f)
{
    struct card_reply r;
    struct str out = {0};
    int32_t ordinal = d->ordinal;
    int64_t begin = clock_ns();
    if (d->pid)
        return true;
    if (!spawn(d, f))
        return false;
    int rc = exchange(d, CARD_OPEN, &ordinal, sizeof ordinal, OPEN_SECONDS, &r, &out);
    bool ok = rc == 0 && r.error == 0 && out.len == sizeof d->facts;
    if (ok)
        memcpy(&d->facts, out.s, sizeof d->facts);
    if (ok && d->trusted.len) {
        rc = exchange(d, CARD_LOAD, d->trusted.s, d->trusted.len, OPEN_SECONDS, &r, &out);
        ok = rc == 0 && r.error == 0;
    }
    str_free(&out);
    if (!ok) {
        device_kill(d);
        return fault_set(f, STATUS_TROUBLE, "the GPU cannot be opened: %s",
                         rc ? "the process that does it gives no answer" : r.words);
    }
    d->recovery_ms = (double)(clock_ns() - begin) * 1e-6;
    d->restarts++;
    return true;
}

bool device_ask(struct device *d, enum card_op op, const void *data, size_t n, double limit_s,
                struct card_reply *r, struct str *out, struct fault *f)
{
    if (!start(d, f))
        return false;
    int rc = exchange(d, op, data, n, limit_s, r, out);
    if (rc == 0 && r->lost)
        device_kill(d);
    if (rc == 0)
        return true;
    device_kill(d);
    if (worker_cancelled())
        return fault_set(f, STATUS_CANCELLED, "cancelled");
    if (rc > 0)
        return fault_set(f, STATUS_TIMEOUT, "did not end within %.3g s", limit_s);
    return fault_set(f, STATUS_CRASH, "the GPU process died on it");
}

// ---- what lies on the device

static bool harness(struct device *d, enum card_op op, const void *data, size_t n, struct str *out,
                    struct fault *f)
{
    struct card_reply r;
    if (!device_ask(d, op, data, n, HARNESS_SECONDS, &r, out, f)) {
        f->status = f->status == STATUS_CANCELLED ? STATUS_CANCELLED : STATUS_TROUBLE;
        return false;
    }
    return r.error == 0 || fault_set(f, STATUS_TROUBLE, "%s", r.words);
}

static bool upload(struct device *d, uint32_t id, struct fault *f)
{
    struct stored *s = &d->stores.v[id];
    struct card_store room = {.id = id, .bytes = s->bytes};
    struct str out = {0};
    bool ok = harness(d, CARD_STORE, &room, sizeof room, NULL, f);
    for (uint64_t at = 0; ok && at < s->bytes; at += CARD_STAGING) {
        uint64_t n = s->bytes - at < CARD_STAGING ? s->bytes - at : CARD_STAGING;
        struct card_store part = {.id = id, .offset = at, .bytes = n};
        memcpy(d->staging, (const char *)s->data + at, n);
        ok = harness(d, CARD_FILL, &part, sizeof part, NULL, f);
    }
    if (s->sealed) // candidates could read the staging area
        memset(d->staging, 0, s->bytes < CARD_STAGING ? s->bytes : CARD_STAGING);
    struct card_seal seal = {.id = id, .nonce = s->nonce, .seal = s->sealed, .key = d->key, .salt = s->salt};
    ok = ok && harness(d, CARD_SEAL, &seal, sizeof seal, &out, f);
    if (ok)
        memcpy(&s->hash, out.s, sizeof s->hash);
    str_free(&out);
    s->there = ok;
    return ok;
}

static uint32_t store_of(struct device *d, const void *data, uint64_t bytes, bool sealed)
{
    if (d->stores.n == 0)
        vec_push(&d->stores, (struct stored){0});
    vec_push(&d->stores, (struct stored){.data = data,
                                         .bytes = bytes,
                                         .salt = draw_secret(),
                                         .nonce = (uint32_t)d->stores.n,
                                         .sealed = sealed});
    return (uint32_t)d->stores.n - 1;
}

bool device_put(struct device *d, const struct judge *j, const struct shape_data *s, struct dataset *set,
                struct fault *f)
{
    for (int i = 0; i < j->buffers.n; i++) {
        const struct task_arg *a = buffer_arg(&j->task, &j->buffers, i);
        const struct dtype_info *info = dtype_info(a->type);
        uint64_t n = (uint64_t)s->elements[i];
        const void *wanted = set->wanted[i].real ? (const void *)set->wanted[i].real : set->wanted[i].exact;
        if (a->dir != ARG_OUT && !set->device_in[i])
            set->device_in[i] = store_of(d, set->in[i], n * info->size, false);
        if (a->dir != ARG_IN && set->ready && !set->device_wanted[i])
            set->device_wanted[i] =
                store_of(d, wanted, n * (info->is_float ? sizeof(double) : info->size), true);
        uint32_t both[] = {set->device_in[i], set->device_wanted[i]};
        for (int k = 0; k < 2; k++)
            if (both[k] && (!d->pid || !d->stores.v[both[k]].there) && !upload(d, both[k], f))
                return false;
    }
    return true;
}

// ---- open and close

static int ordinal_of(const struct task *t)
{
    for (const json *x = json_first(t->extra); x; x = json_next(x))
        if (str_starts(json_key(x), "worker ") && json_str(x, "device"))
            return (int)strtol(json_str(x, "device"), NULL, 10);
    return 0;
}

static int fault_to_err(const struct fault *f, struct err *e)
{
    return err_set(e, ERR_FAIL, "`ksmith doctor` says what this machine has.", "%s", f->reason);
}

int device_open(struct device *d, const struct judge *j, struct err *e)
{
    struct fault f = {0};
    uint64_t secret[4] = {draw_secret(), draw_secret(), draw_secret(), draw_secret()};
    memcpy(d->key.w, secret, sizeof d->key.w);
    d->ordinal = ordinal_of(&j->task);
    d->killers = json_object();
    d->last_ns = xcalloc(j->bench.n + 1, sizeof *d->last_ns);
    d->staging_fd = memfd_create("ksmith-staging", MFD_CLOEXEC);
    if (d->staging_fd < 0 || ftruncate(d->staging_fd, CARD_STAGING) < 0)
        return err_sys(e, "", "no room for a staging area");
    d->staging = mmap(NULL, CARD_STAGING, PROT_READ | PROT_WRITE, MAP_SHARED, d->staging_fd, 0);
    if (d->staging == MAP_FAILED)
        return err_sys(e, "", "no room for a staging area");
    if (!start(d, &f))
        return fault_to_err(&f, e);
    d->shop_device =
        (struct shop_device){d->facts.major, d->facts.minor, d->facts.limits, {0}, d->facts.memory};
    memcpy(d->shop_device.driver, d->facts.driver, sizeof d->shop_device.driver);
    if (shop_open(&j->task, &d->shop_device, &d->shop, e) < 0)
        return -1;
    uintptr_t begin = (uintptr_t)_binary_gpu_cuda_trusted_cu_start,
              end = (uintptr_t)_binary_gpu_cuda_trusted_cu_end;
    char *text = xstrndup(_binary_gpu_cuda_trusted_cu_start, end - begin);
    int r = shop_text(d->shop, text, "trusted.cu", &d->trusted, e);
    free(text);
    struct card_reply reply;
    if (r == 0 && (!device_ask(d, CARD_LOAD, d->trusted.s, d->trusted.len, OPEN_SECONDS, &reply, NULL, &f)))
        return fault_to_err(&f, e);
    if (r == 0 && reply.error)
        return err_set(e, ERR_FAIL, "`ksmith doctor` says what this machine has.", "%s", reply.words);
    return r;
}

void device_close(struct device *d)
{
    device_kill(d);
    shop_close(d->shop);
    str_free(&d->trusted);
    vec_free(&d->stores);
    json_free(d->killers);
    free(d->last_ns);
    if (d->staging && d->staging != MAP_FAILED)
        munmap(d->staging, CARD_STAGING);
    if (d->staging_fd > 0)
        close(d->staging_fd);
    *d = (struct device){0};
}
