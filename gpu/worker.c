#include "worker.h"

#include "base/io.h"
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 16 << 20 };

// One per process: descriptors are process-wide too.
static struct {
    int out;
    pthread_mutex_t lock;
    pthread_cond_t some;
    VEC(json *) queue;
    bool ended;
    atomic_bool cancelled, busy;
} link_ = {.out = 1, .lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};

void worker_send(json *answer)
{
    struct str line = {0};
    json_print(answer, &line);
    str_addc(&line, '\n');
    json_free(answer);
    if (io_write_all(link_.out, line.s, line.len) < 0)
        _exit(1); // nobody listens: children die with us
    str_free(&line);
}

void worker_error(const struct err *e)
{
    json *j = json_object();
    json_put_str(j, "ev", "error");
    json_put_str(j, "msg", e->msg);
    json_put_str(j, "hint", e->hint);
    worker_send(j);
}

bool worker_cancelled(void)
{
    return atomic_load_explicit(&link_.cancelled, memory_order_relaxed);
}

static void push(json *request)
{
    pthread_mutex_lock(&link_.lock);
    if (str_eq(json_str(request, "op"), "cancel")) {
        // What waits was asked before the cancel and is cancelled too: an engine that stops wants none of it.
        for (size_t i = 0; i < link_.queue.n; i++)
            json_free(link_.queue.v[i]);
        link_.queue.n = 0;
        if (atomic_load(&link_.busy))
            atomic_store(&link_.cancelled, true);
    }
    vec_push(&link_.queue, request);
    pthread_cond_signal(&link_.some);
    pthread_mutex_unlock(&link_.lock);
}

static void take_line(const char *s, size_t n)
{
    struct err e = {0};
    json *j = json_parse(s, n, &e);
    if (j && !json_is_object(j)) {
        json_free(j);
        j = NULL;
        err_set(&e, ERR_USAGE, "Send one JSON object a line.", "not an object");
    }
    if (!j) {
        // Answered in order: it travels through the queue like any request.
        j = json_object();
        json_put_str(j, "op", "");
        json_put_str(j, "why", e.msg);
    }
    push(j);
}

static void *reader(void *unused)
{
    (void)unused;
    struct str in = {0};
    bool skipping = false;
    for (;;) {
        str_reserve(&in, 65536);
        ssize_t n = read(0, in.s + in.len, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        in.len += (size_t)n;
        char *nl;
        size_t at = 0;
        while ((nl = memchr(in.s + at, '\n', in.len - at))) {
            if (!skipping)
                take_line(in.s + at, (size_t)(nl - in.s) - at);
            skipping = false;
            at = (size_t)(nl - in.s) + 1;
        }
        str_splice(&in, 0, at, "", 0);
        if (in.len > LINE_MAX_BYTES) {
            if (!skipping)
                take_line("a line over 16 MiB", 18);
            skipping = true;
            str_clear(&in);
        }
    }
    str_free(&in);
    pthread_mutex_lock(&link_.lock);
    bool busy = atomic_load(&link_.busy);
    link_.ended = true;
    atomic_store(&link_.cancelled, true);
    pthread_cond_signal(&link_.some);
    pthread_mutex_unlock(&link_.lock);
    if (busy) {
        // The request in hand ends at its next look; whatever hangs beyond that goes down with the process.
        usleep(80000);
        if (atomic_load(&link_.busy))
            _exit(0);
    }
    return NULL;
}

static json *next_request(void)
{
    pthread_mutex_lock(&link_.lock);
    while (!link_.queue.n && !link_.ended)
        pthread_cond_wait(&link_.some, &link_.lock);
    json *j = NULL;
    if (link_.queue.n && !link_.ended) { // the end of input is "quit at once"
        j = link_.queue.v[0];
        vec_remove(&link_.queue, 0);
        atomic_store(&link_.cancelled, false);
        atomic_store(&link_.busy, true);
    }
    pthread_mutex_unlock(&link_.lock);
    return j;
}

static void answer(const struct worker_verb *verbs, size_t n, void *user, const json *request)
{
    const char *op = json_str_or(request, "op", "");
    if (str_eq(op, "cancel")) {
        json *j = json_object();
        json_put_str(j, "ev", "cancelled");
        worker_send(j);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (str_eq(op, verbs[i].name)) {
            verbs[i].run(user, request);
            return;
        }
    }
    struct err e = {0};
    if (json_str(request, "why"))
        err_set(&e, ERR_USAGE, "Send one JSON object a line; see ksmith-worker(7).",
                "cannot read the request: %s", json_str(request, "why"));
    else
        err_set(&e, ERR_USAGE, "See ksmith-worker(7).", "unknown request \"%s\"", op);
    worker_error(&e);
}

static bool stop_children(void)
{
    return worker_cancelled();
}

int worker_run(const struct worker_verb *verbs, size_t n, void *user)
{
    signal(SIGPIPE, SIG_IGN);
    proc_interrupt = stop_children;
    link_.out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    if (link_.out < 0 || dup2(2, 1) < 0)
        return 1;
    pthread_t thread;
    if (pthread_create(&thread, NULL, reader, NULL) != 0)
        return 1;
    pthread_detach(thread);
    bool quit = false;
    while (!quit) {
        json *request = next_request();
        if (!request)
            break;
        quit = str_eq(json_str(request, "op"), "quit");
        if (!quit)
            answer(verbs, n, user, request);
        json_free(request);
        atomic_store(&link_.busy, false);
    }
    return 0;
}
