// Options and positional arguments of one subcommand.
#include "base/io.h"
#include "base/task.h"
#include "cmd/cmd.h"

#include <ctype.h>
#include <limits.h>

bool args_flag(const struct args *a, const char *name)
{
    return args_value(a, name, NULL) != NULL;
}

const char *args_value(const struct args *a, const char *name, const char *otherwise)
{
    for (int i = a->ngiven - 1; i >= 0; i--)
        if (str_eq(a->given[i].opt->name, name))
            return a->given[i].value;
    return otherwise;
}

const char **args_values(const struct args *a, const char *name, size_t *n)
{
    VEC(const char *) all = {0};
    vec_reserve(&all, 1);
    for (int i = 0; i < a->ngiven; i++)
        if (str_eq(a->given[i].opt->name, name))
            vec_push(&all, a->given[i].value);
    *n = all.n;
    return all.v;
}

int args_id(const char *text, long *id, struct err *e)
{
    const char *digits = text + (*text == '#');
    char *end;
    *id = strtol(digits, &end, 10);
    if (!isdigit((unsigned char)*digits) || *end || *id > INT_MAX)
        return err_set(e, ERR_USAGE, "`ksmith ls` shows the numbers.", "%s is not the number of a candidate",
                       text);
    return 0;
}

static const struct opt help_opt = {"help", NULL, "show this help"};

static const struct opt *find_opt(const struct cmd *cmd, const char *name, size_t n)
{
    for (const struct opt *o = cmd->opts; o && o->name; o++)
        if (strlen(o->name) == n && strncmp(o->name, name, n) == 0)
            return o;
    return n == 4 && strncmp(name, "help", 4) == 0 ? &help_opt : NULL;
}

static int unknown_opt(const struct cmd *cmd, const char *text, struct err *e)
{
    VEC(const char *) names = {0};
    for (const struct opt *o = cmd->opts; o && o->name; o++)
        vec_push(&names, o->name);
    const char *near = str_nearest(text + 2, names.v, names.n);
    char *hint = near ? xasprintf("Did you mean --%s? `ksmith %s --help` lists them.", near, cmd->name)
                      : xasprintf("`ksmith %s --help` lists the options.", cmd->name);
    err_set(e, ERR_USAGE, hint, "%s is not an option of %s", text, cmd->name);
    free(hint);
    vec_free(&names);
    return -1;
}

static void give(struct args *a, const struct opt *o, const char *value)
{
    a->given = xrealloc(a->given, (size_t)a->ngiven + 1, sizeof *a->given);
    a->given[a->ngiven++] = (struct given){o, xstrdup(value)};
}

// Takes one option at argv[*i]; advances *i over a separate value.
static int take_opt(struct args *a, int argc, char **argv, int *i, struct err *e)
{
    const char *text = argv[*i], *eq = strchr(text, '=');
    if (str_eq(text, "-h"))
        text = "--help";
    size_t n = eq && eq > text ? (size_t)(eq - text) - 2 : strlen(text) - 2;
    const struct opt *o = str_starts(text, "--") ? find_opt(a->cmd, text + 2, n) : NULL;
    if (!o)
        return unknown_opt(a->cmd, text, e);
    if (!o->arg && eq)
        return err_set(e, ERR_USAGE, "", "--%s takes no value", o->name);
    if (o->arg && !eq && *i + 1 >= argc)
        return err_set(e, ERR_USAGE, "", "--%s needs a value: --%s %s", o->name, o->name, o->arg);
    give(a, o, !o->arg ? "" : eq ? eq + 1 : argv[++*i]);
    return 0;
}

// A first argument names the session where it is a folder with a task.ini, or can be nothing but a folder.
static bool names_dir(const struct args *a)
{
    if (a->npos == 0)
        return false;
    char *task = io_join(a->pos[0], "task.ini");
    bool yes = io_exists(task) || (a->npos > a->cmd->max && a->cmd->max >= 0) || io_is_dir(a->pos[0]);
    free(task);
    return yes;
}

static int take_dir(struct args *a, struct err *e)
{
    bool named = names_dir(a);
    a->dir = task_find_dir(named ? a->pos[0] : ".", e);
    if (!a->dir)
        return -1;
    if (named) {
        free(a->pos[0]);
        memmove(a->pos, a->pos + 1, (size_t)--a->npos * sizeof *a->pos);
    }
    return 0;
}

int args_parse(const struct cmd *cmd, int argc, char **argv, struct args *out, int *status, struct err *e)
{
    *out = (struct args){.cmd = cmd};
    out->pos = xcalloc((size_t)argc + 1, sizeof *out->pos);
    bool only_positional = false;
    for (int i = 0; i < argc; i++) {
        if (!only_positional && str_eq(argv[i], "--"))
            only_positional = true;
        else if (only_positional || argv[i][0] != '-' || !argv[i][1])
            out->pos[out->npos++] = xstrdup(argv[i]);
        else if (take_opt(out, argc, argv, &i, e) < 0)
            return -1;
    }
    if (args_flag(out, "help")) {
        cmd_help(cmd, stdout);
        *status = 0;
        return 1;
    }
    if (cmd->takes_dir && take_dir(out, e) < 0)
        return -1;
    if (out->npos < cmd->min || (cmd->max >= 0 && out->npos > cmd->max)) {
        char *hint = xasprintf("Usage: ksmith %s %s", cmd->name, cmd->args);
        err_set(e, ERR_USAGE, hint, "%s: %s arguments", cmd->name,
                out->npos < cmd->min ? "too few" : "too many");
        free(hint);
        return -1;
    }
    return 0;
}

void args_free(struct args *a)
{
    for (int i = 0; i < a->npos; i++)
        free(a->pos[i]);
    for (int i = 0; i < a->ngiven; i++)
        free(a->given[i].value);
    free(a->pos);
    free(a->given);
    free(a->dir);
    *a = (struct args){0};
}
