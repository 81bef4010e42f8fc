#include "evolve/worker.h"

#include "base/io.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/task.h"
#include "evolve/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 8 << 20 };

struct worker {
    pid_t pid;
    struct lines *lines;
    const struct worker_ops *ops;
    void *user;
};

static void on_line(void *user, json *o)
{
    struct worker *w = user;
    w->ops->event(w->user, o);
}

static void on_bad(void *user, const char *text, const struct err *e)
{
    (void)user;
    log_line("worker: a line that is no event (%s): %.200s", e->msg, text);
}

static void on_closed(void *user)
{
    struct worker *w = user;
    int status = 0;
    kill(-w->pid, SIGKILL);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    w->pid = -1;
    struct proc_end end = {.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                           .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    struct str why = {0};
    proc_describe(&end, &why);
    w->ops->gone(w->user, str_c(&why));
    str_free(&why);
}

static const struct lines_ops line_ops = {on_line, on_bad, on_closed};

// Commands that a session folder brings along run only after the user said so once.
int worker_trust(const struct task *t, bool trust, struct err *e)
{
    for (const json *x = json_first(t->extra); x && !trust; x = json_next(x)) {
        const char *command = json_str(x, "key_cmd")             ? json_str(x, "key_cmd")
                              : str_starts(json_key(x), "exec ") ? json_str(x, "command")
                                                                 : NULL;
        if (command)
            return err_set(e, ERR_USAGE, "Read it, then run again with --trust.", "[%s] runs a command: %s",
                           json_key(x), command);
    }
    return 0;
}

char **worker_command(const struct task *t, bool trust, struct err *e)
{
    const char *command = NULL;
    if (worker_trust(t, trust, e) < 0)
        return NULL;
    for (const json *x = json_first(t->extra); x && !command; x = json_next(x))
        if (str_starts(json_key(x), "worker "))
            command = json_str(x, "command");
    if (command && !trust)
        return err_set(e, ERR_USAGE, "Read it, then run again with --trust.",
                       "the task starts a worker of its own: %s", command),
               NULL;
    char *own = NULL;
    if (!command) {
        char *dir = io_self_dir();
        own = xasprintf("'%s/%s'", dir, t->backend == BACKEND_CUDA ? "ksmith-cuda" : "ksmith-cpu");
        free(dir);
    }
    size_t n = 0;
    char **words = str_words(own ? own : command, &n);
    free(own);
    if (words && n)
        return words;
    free(words);
    return err_set(e, ERR_USAGE, "Write command = PROGRAM ARGS in [worker NAME].", "an empty worker command"),
           NULL;
}

struct worker *worker_start(struct loop *l, const char *const *argv, const char *log_path,
                            const struct worker_ops *ops, void *user, struct err *e)
{
    int in[2], out[2];
    if (proc_pipe(in) < 0)
        return err_sys(e, "", "cannot make a pipe"), NULL;
    if (proc_pipe(out) < 0) {
        close(in[0]);
        close(in[1]);
        return err_sys(e, "", "cannot make a pipe"), NULL;
    }
    int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct proc_spec spec = {.argv = argv, .in = in[0], .out = out[1], .err = log};
    pid_t pid = -1;
    int r = proc_start(&spec, &pid, e);
    close(in[0]);
    close(out[1]);
    if (log >= 0)
        close(log);
    if (r < 0) {
        close(in[1]);
        close(out[0]);
        return NULL;
    }
    struct worker *w = xcalloc(1, sizeof *w);
    *w = (struct worker){pid, NULL, ops, user};
    w->lines = lines_new(l, out[0], in[1], LINE_MAX_BYTES, &line_ops, w);
    return w;
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    if (w->pid > 0)
        proc_kill(w->pid);
    lines_free(w->lines);
    free(w);
}

int worker_request(struct worker *w, const json *request)
{
    return lines_send(w->lines, request);
}

pid_t worker_pid(const struct worker *w)
{
    return w->pid;
}
