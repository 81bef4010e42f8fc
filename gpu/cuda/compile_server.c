#include "cuda/compile_server.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/proc.h"
#include "cpu/sandbox.h"
#include "cuda/nvrtc.h"
#include "worker.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

enum { ANSWER_MS = 40000, RENEW = 400 };
#if defined __SANITIZE_ADDRESS__
static const uint64_t MEMORY = 0; // the sanitizer itself maps terabytes
#else
static const uint64_t MEMORY = 8ull << 30;
#endif

struct compile_server {
    pid_t pid; // 0: none
    int to, from, asked;
    struct str library, includes, in;
    strings readable;
};

static void allow(struct compile_server *s, const char *path)
{
    vec_push(&s->readable, xstrdup(path));
}

int compile_server_open(const strings *include, struct compile_server **out, struct err *e)
{
    static const char *const always[] = {
        "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.conf", "/dev/null", "/proc/self/exe"};
    struct compile_server *s = xcalloc(1, sizeof *s);
    if (nvrtc_find(&s->library, &s->includes, e) < 0) {
        compile_server_close(s);
        return -1;
    }
    for (size_t i = 0; i < countof(always); i++)
        allow(s, always[i]);
    // The library's tree (it loads libnvrtc-builtins from beside it) and the headers.
    char real[PATH_MAX];
    if (realpath(str_c(&s->library), real))
        allow(s, dirname(real));
    for (char *line = s->includes.s, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        char *dir = xstrndup(line + 2, (size_t)(end - line - 2));
        allow(s, dir);
        free(dir);
    }
    char *self = io_self_dir(), *libs = self ? xasprintf("%s/../lib", self) : NULL;
    if (self) {
        allow(s, self);
        allow(s, libs);
    }
    free(self);
    free(libs);
    for (size_t i = 0; include && i < include->n; i++)
        allow(s, include->v[i]);
    *out = s;
    return 0;
}

static void stop(struct compile_server *s)
{
    if (!s->pid)
        return;
    proc_kill(s->pid);
    close(s->to);
    close(s->from);
    s->pid = 0;
    str_clear(&s->in);
}

void compile_server_close(struct compile_server *s)
{
    if (!s)
        return;
    stop(s);
    for (size_t i = 0; i < s->readable.n; i++)
        free(s->readable.v[i]);
    vec_free(&s->readable);
    str_free(&s->library);
    str_free(&s->includes);
    str_free(&s->in);
    free(s);
}

const char *compile_server_includes(const struct compile_server *s)
{
    return str_c(&s->includes);
}

const char *compile_server_library(const struct compile_server *s)
{
    return str_c(&s->library);
}

static int start(struct compile_server *s, struct err *e)
{
    int to[2], from[2];
    if (s->pid && s->asked < RENEW)
        return 0;
    stop(s);
    s->asked = 0;
    if (proc_pipe(to) < 0 || proc_pipe(from) < 0)
        return err_sys(e, "", "cannot make a pipe");
    vec_push(&s->readable, NULL);
    s->readable.n--;
    struct sandbox box = {.kind = SANDBOX_COMPILER,
                          .read_only = (const char *const *)s->readable.v,
                          .memory_bytes = MEMORY,
                          .file_bytes = 64ull << 20};
    char *library = xasprintf("KSMITH_NVRTC=%s", str_c(&s->library));
    const char *argv[] = {"/proc/self/exe", "--nvrtc", NULL}, *env[] = {library, NULL};
    struct proc_spec spec = {
        .argv = argv, .env = env, .bare_env = true, .in = to[0], .out = from[1], .err = -1};
    int r = sandbox_prepare(&box, e);
    if (r == 0) {
        spec.before_exec = sandbox_enter;
        spec.user = &box;
        r = proc_start(&spec, &s->pid, e);
        sandbox_done(&box);
    }
    free(library);
    close(to[0]);
    close(from[1]);
    s->to = to[1];
    s->from = from[0];
    if (r < 0) {
        close(s->to);
        close(s->from);
        s->pid = 0;
    }
    return r;
}

// Reads until the buffer holds n bytes, or (n == 0) a line. false: it ended, or its time is over.
static bool fill(struct compile_server *s, size_t n, int64_t deadline, bool *late)
{
    while (n ? s->in.len < n : !s->in.len || !memchr(s->in.s, '\n', s->in.len)) {
        struct pollfd p = {.fd = s->from, .events = POLLIN};
        int64_t left = (deadline - clock_ns()) / 1000000;
        if (left <= 0 || worker_cancelled()) {
            *late = true;
            return false;
        }
        if (poll(&p, 1, left < 20 ? (int)left : 20) <= 0)
            continue;
        str_reserve(&s->in, 1 << 20);
        ssize_t got = read(s->from, s->in.s + s->in.len, 1 << 20);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return false;
        s->in.len += (size_t)got;
    }
    return true;
}

static bool take(struct compile_server *s, size_t n, struct str *out, int64_t deadline, bool *late)
{
    str_clear(out);
    if (n && !fill(s, n, deadline, late))
        return false;
    str_addn(out, str_c(&s->in), n);
    str_splice(&s->in, 0, n, "", 0);
    return true;
}

static void question(const char *source, const char *file, const char *const *options, size_t n,
                     const char *const *names, size_t nnames, struct str *line)
{
    json *q = json_object(), *o = json_array(), *x = json_array();
    for (size_t i = 0; i < n; i++)
        json_push(o, json_new_str(options[i]));
    for (size_t i = 0; i < nnames; i++)
        json_push(x, json_new_str(names[i]));
    json_put_str(q, "source", source);
    json_put_str(q, "file", file);
    json_put(q, "options", o);
    json_put(q, "names", x);
    json_print(q, line);
    str_addc(line, '\n');
    json_free(q);
}

json *compile_server_ask(struct compile_server *s, const char *source, const char *file,
                         const char *const *options, size_t n, const char *const *names, size_t nnames,
                         struct str *cubin, struct str *ptx, struct err *e)
{
    struct str line = {0};
    bool late = false;
    json *a = NULL;
    if (start(s, e) < 0)
        return NULL;
    s->asked++;
    question(source, file, options, n, names, nnames, &line);
    int64_t deadline = clock_ns() + (int64_t)ANSWER_MS * 1000000;
    bool ok = io_write_all(s->to, line.s, line.len) == 0 && fill(s, 0, deadline, &late);
    str_free(&line);
    if (ok) {
        size_t len = (size_t)((char *)memchr(s->in.s, '\n', s->in.len) - s->in.s);
        a = json_parse(s->in.s, len, e);
        str_splice(&s->in, 0, len + 1, "", 0);
    }
    if (a && take(s, (size_t)json_int(a, "cubin", 0), cubin, deadline, &late) &&
        take(s, (size_t)json_int(a, "ptx", 0), ptx, deadline, &late))
        return a;
    json_free(a);
    stop(s);
    if (late)
        err_set(e, ERR_USAGE, "", "the compiler took longer than %d s", ANSWER_MS / 1000);
    else
        err_set(e, ERR_USAGE, "", "the compiler died on it (out of memory, or an error of its own)");
    return NULL;
}
