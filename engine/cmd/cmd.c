// The table of subcommands and the help made from it.
#include "cmd/cmd.h"

extern const struct cmd cmd_prompt, cmd_explain, cmd_seed, cmd_models, cmd_salvage, cmd_new, cmd_check,
    cmd_try, cmd_run, cmd_attach, cmd_ctl, cmd_ps, cmd_wait, cmd_ls, cmd_log, cmd_show, cmd_diff, cmd_tree,
    cmd_funnel, cmd_rules, cmd_pick, cmd_doctor, cmd_gc, cmd_completion, cmd_engine, cmd_profile, cmd_asm;

const struct cmd *const cmds[] = {
    &cmd_pick,   &cmd_new,   &cmd_check,      &cmd_try,     &cmd_run,     &cmd_attach,  &cmd_ctl,
    &cmd_ps,     &cmd_wait,  &cmd_ls,         &cmd_show,    &cmd_diff,    &cmd_tree,    &cmd_log,
    &cmd_funnel, &cmd_rules, &cmd_prompt,     &cmd_explain, &cmd_models,  &cmd_salvage, &cmd_seed,
    &cmd_doctor, &cmd_gc,    &cmd_completion, &cmd_engine,  &cmd_profile, &cmd_asm,
};
const size_t cmds_n = countof(cmds);
int (*cmd_workbench)(const struct workbench_call *w);

const struct cmd *cmd_find(const char *name)
{
    for (size_t i = 0; i < cmds_n; i++)
        if (str_eq(cmds[i]->name, name))
            return cmds[i];
    return NULL;
}

int cmd_fail(const struct err *e)
{
    err_print(e, stderr);
    return err_status(e);
}

int cmd_fail_list(const err_list *errors)
{
    for (size_t i = 0; i < errors->n; i++)
        err_print(&errors->v[i], stderr);
    return errors->n ? err_status(&errors->v[0]) : ERR_FAIL;
}

void cmd_help(const struct cmd *cmd, FILE *f)
{
    fprintf(f, "usage: ksmith %s %s\n\n%s.\n", cmd->name, cmd->args, cmd->help);
    if (cmd->more)
        fprintf(f, "\n%s\n", cmd->more);
    if (cmd->opts)
        fputs("\noptions:\n", f);
    for (const struct opt *o = cmd->opts; o && o->name; o++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        fprintf(f, "  %-20s %s\n", left, o->help);
    }
}

void cmd_help_all(FILE *f)
{
    static const char *const groups[] = {"start", "watch and steer", "read", "models", "keep house"};
    fputs("ksmith breeds faster kernels and proves each step. usage: ksmith VERB [DIR] [ARGS]\n", f);
    for (size_t g = 0; g < countof(groups); g++) {
        fprintf(f, "\n%s\n", groups[g]);
        for (size_t i = 0; i < cmds_n; i++)
            if (str_eq(cmds[i]->group, groups[g]))
                fprintf(f, "  %-11s %s\n", cmds[i]->name, cmds[i]->help);
    }
    fputs(
        "\nDIR is a session's folder; without it the nearest one upwards. `ksmith VERB --help` tells more.\n",
        f);
}
