// ksmith: finds the subcommand and runs it.
#include "cmd/cmd.h"
#include "cmd/run.h"
#include "tui/workbench.h"

#include <locale.h>
#include <signal.h>

static int serve(const char *dir, struct err *e)
{
    struct engine_options o = {.dir = dir, .serve = true, .ready_fd = -1};
    return run_engine(&o, e);
}

static int search(const char *dir, struct err *e)
{
    struct engine_options o = {.dir = dir, .ready_fd = -1};
    return run_engine(&o, e);
}

static int workbench(const struct workbench_call *w)
{
    struct workbench b = {.dir = w->dir,
                          .read_only = w->read_only,
                          .ascii = w->ascii,
                          .theme = w->theme,
                          .color = str_eq(w->color, "always")  ? 1
                                   : str_eq(w->color, "never") ? 0
                                                               : -1,
                          .serve = serve,
                          .search = search};
    return w->keys ? workbench_keys() : w->print_theme ? workbench_theme(w->theme) : workbench_run(&b);
}

static int unknown_verb(const char *name)
{
    VEC(const char *) names = {0};
    for (size_t i = 0; i < cmds_n; i++)
        if (cmds[i]->group)
            vec_push(&names, cmds[i]->name);
    const char *near = str_nearest(name, names.v, names.n);
    char *hint = near ? xasprintf("Did you mean `ksmith %s`? `ksmith --help` lists the verbs.", near)
                      : xstrdup("`ksmith --help` lists the verbs.");
    struct err e = {0};
    err_set(&e, ERR_USAGE, hint, "%s is not a verb of ksmith", name);
    free(hint);
    vec_free(&names);
    return cmd_fail(&e);
}

int main(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C");
    signal(SIGPIPE, SIG_DFL);
    cmd_workbench = workbench;
    if (argc < 2) {
        cmd_help_all(stderr);
        return ERR_USAGE;
    }
    if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h") || str_eq(argv[1], "help")) {
        const struct cmd *about = argc > 2 ? cmd_find(argv[2]) : NULL;
        if (argc > 2 && !about)
            return unknown_verb(argv[2]);
        if (about)
            cmd_help(about, stdout);
        else
            cmd_help_all(stdout);
        return 0;
    }
    if (str_eq(argv[1], "--version")) {
        puts("ksmith " KSMITH_VERSION);
        return 0;
    }
    const struct cmd *cmd = cmd_find(argv[1]);
    if (!cmd)
        return unknown_verb(argv[1]);
    struct args a;
    struct err e = {0};
    int status = 0, r = args_parse(cmd, argc - 2, argv + 2, &a, &status, &e);
    if (r < 0)
        status = cmd_fail(&e);
    else if (r == 0)
        status = cmd->run(&a);
    args_free(&a);
    return fflush(stdout) == 0 ? status : ERR_FAIL;
}
