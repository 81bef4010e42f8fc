// ksmith run, attach and the hidden engine verb: the search in a process of its own, and windows on it.
#include "cmd/run.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/task.h"
#include "cmd/cmd.h"
#include "cmd/follow.h"
#include "cmd/look.h"
#include "evolve/engine.h"
#include "evolve/forecast.h"
#include "evolve/server.h"
#include "evolve/worker.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// The child of the first fork: leaves the terminal's session, forks again and becomes the engine.
__attribute__((noreturn)) static void daemonize(const struct engine_options *o, int ready)
{
    setsid();
    if (fork() != 0)
        _exit(0);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    for (int fd = 3; fd < 256; fd++)
        if (fd != ready)
            close(fd);
    umask(077);
    signal(SIGHUP, SIG_IGN);
    struct engine_options own = *o;
    own.ready_fd = ready;
    _exit(engine_run(&own));
}

// Starts the engine; returns when it listens. Its own words where it cannot.
int run_engine(const struct engine_options *o, struct err *e)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, "", "cannot make a pipe");
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(e, "", "cannot start the engine");
    if (pid == 0) {
        close(fds[0]);
        daemonize(o, fds[1]);
    }
    close(fds[1]);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    struct str text = {0};
    char buf[512];
    for (ssize_t n; (n = read(fds[0], buf, sizeof buf)) > 0;)
        str_addn(&text, buf, (size_t)n);
    close(fds[0]);
    int r = 0;
    if (!str_eq(str_c(&text), "+")) {
        char *message = text.len ? text.s + 1 : NULL, *hint = message ? strchr(message, '\n') : NULL;
        if (hint)
            *hint++ = 0;
        r = err_set(e, text.s && text.s[0] == '2' ? ERR_USAGE : ERR_FAIL,
                    hint ? hint : "See .ksmith/engine.log.", "%s",
                    message ? message : "the engine ended before it listened");
    }
    str_free(&text);
    return r;
}

static int check_task(const struct args *a, const char *const *set, size_t n, bool *asks)
{
    struct task t;
    err_list errors = {0};
    int r = task_load(a->dir, set, n, &t, &errors);
    struct err e = {0};
    int status = r < 0 ? cmd_fail_list(&errors) : 0;
    char **worker = r < 0 ? NULL : worker_command(&t, args_flag(a, "trust"), &e);
    if (r == 0 && !worker)
        status = cmd_fail(&e);
    free(worker);
    for (const json *x = json_first(t.extra); x; x = json_next(x))
        *asks |= str_starts(json_key(x), "model ") || str_starts(json_key(x), "exec ");
    task_free(&t);
    vec_free(&errors);
    return status;
}

static bool only_serves(const char *dir)
{
    char *path = session_socket(dir, NULL);
    int fd = path ? server_connect(path) : -1;
    free(path);
    if (fd < 0)
        return true; // it ended just now
    json *request = json_object();
    json_put_str(request, "cmd", "hello");
    json *reply = server_ask(fd, request, 2000, NULL);
    bool serves = !reply || json_bool(reply, "serving", false);
    json_free(request);
    json_free(reply);
    close(fd);
    return serves;
}

// The workbench where there is a terminal for it, else lines of text.
static int watch(const struct args *a, bool from_start)
{
    struct workbench_call w = {.dir = a->dir,
                               .read_only = args_flag(a, "read-only"),
                               .ascii = args_flag(a, "ascii"),
                               .theme = args_value(a, "theme", NULL),
                               .color = args_value(a, "color", "auto"),
                               .keys = args_flag(a, "keys"),
                               .print_theme = args_flag(a, "print-theme")};
    bool headless = args_flag(a, "headless");
    if (cmd_workbench && (w.keys || w.print_theme))
        return cmd_workbench(&w);
    if (!headless && cmd_workbench && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        return cmd_workbench(&w);
    struct follow_options f = {a->dir, from_start, from_start && headless};
    return follow(&f);
}

// What models will cost, before the first of them is asked.
static void say_forecast(const struct args *a)
{
    struct look l;
    struct str words = {0};
    if (look_open(&l, a) == 0)
        forecast(l.p, &l.task, &l.session, &words);
    if (words.len)
        printf("models: %s\n", words.s);
    fflush(stdout);
    str_free(&words);
    look_close(&l);
}

static int run(struct args *a)
{
    size_t n;
    const char **set = args_values(a, "set", &n);
    struct err e = {0};
    bool asks = false;
    int status = check_task(a, set, n, &asks);
    if (status == 0) {
        if (asks && !args_flag(a, "replay"))
            say_forecast(a);
        struct engine_options o = {.dir = a->dir,
                                   .overrides = set,
                                   .n_overrides = n,
                                   .trust = args_flag(a, "trust"),
                                   .replay = args_value(a, "replay", NULL),
                                   .ready_fd = -1};
        int r = run_engine(&o, &e);
        // An engine that only answers steering is gone in a moment.
        for (int i = 0; r < 0 && i < 20 && only_serves(a->dir); i++) {
            clock_sleep_ms(150);
            e = (struct err){0};
            r = run_engine(&o, &e);
        }
        if (r < 0) {
            status = cmd_fail(&e);
        } else if (args_flag(a, "detach")) {
            puts("The engine runs; `ksmith attach` follows it.");
        } else {
            status = watch(a, true);
        }
    }
    free(set);
    return status;
}

#define OPT_REPLAY                                                                                \
    {                                                                                             \
        "replay", "DIR",                                                                          \
            "ask no model: repeat the answers that the session DIR recorded, and judge them here" \
    }

#define OPT_LOOK                                                                       \
    {"theme", "NAME", "colours of the workbench: default, dark, light, mono, ..."},    \
        {"color", "WHEN", "always, never, or auto: as the terminal and NO_COLOR say"}, \
    {                                                                                  \
        "ascii", NULL, "draw without characters beyond ASCII"                          \
    }

static const struct opt run_opts[] = {
    {"headless", NULL, "only a bar on a terminal, plain lines in a pipe; Ctrl-C stops the search"},
    OPT_LOOK,
    {"detach", NULL, "return at once"},
    OPT_REPLAY,
    OPT_TRUST,
    OPT_SET,
    OPT_END};

const struct cmd cmd_run = {
    .name = "run",
    .args = "[DIR]",
    .help = "start the search in the background and open the workbench on it",
    .more = "The engine outlives the terminal. Run again, it goes on where the journal ends.",
    .group = "start",
    .takes_dir = true,
    .opts = run_opts,
    .run = run,
};

static int attach(struct args *a)
{
    return watch(a, false);
}

static const struct opt attach_opts[] = {
    {"headless", NULL, "lines of text instead of the workbench"},
    {"read-only", NULL, "only watch: no key steers"},
    {"keys", NULL, "print what each key does and leave"},
    {"print-theme", NULL, "print the theme as a file to start from and leave"},
    OPT_LOOK,
    OPT_END};

const struct cmd cmd_attach = {
    .name = "attach",
    .args = "[DIR]",
    .help = "open the workbench on a session, running or finished, from any login",
    .more = "Leaving it (q) never stops the search. Several may look at once. Without a terminal it prints "
            "lines.",
    .group = "watch and steer",
    .takes_dir = true,
    .opts = attach_opts,
    .run = attach,
};

static int engine(struct args *a)
{
    size_t n;
    const char **set = args_values(a, "set", &n);
    struct engine_options o = {.dir = a->dir,
                               .overrides = set,
                               .n_overrides = n,
                               .trust = args_flag(a, "trust"),
                               .replay = args_value(a, "replay", NULL),
                               .ready_fd = -1};
    int status = engine_run(&o);
    free(set);
    return status;
}

static const struct opt engine_opts[] = {OPT_REPLAY, OPT_TRUST, OPT_SET, OPT_END};

// Not in the help: the engine in the foreground, for debuggers and tests.
const struct cmd cmd_engine = {
    .name = "engine",
    .args = "[DIR]",
    .help = "the engine in the foreground",
    .takes_dir = true,
    .opts = engine_opts,
    .run = engine,
};
