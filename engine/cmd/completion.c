// ksmith completion bash|zsh|fish: a script made from the command table.
#include "cmd/cmd.h"
#include "evolve/steer.h"

static void opts_of(const struct cmd *c, struct str *out)
{
    for (const struct opt *o = c->opts; o && o->name; o++)
        str_addf(out, "%s--%s", out->len ? " " : "", o->name);
    str_addf(out, "%s--help", out->len ? " " : "");
}

static void bash(void)
{
    puts("_ksmith() {\n    local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}\n    COMPREPLY=()\n"
         "    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    fputs("        COMPREPLY=($(compgen -W \"", stdout);
    for (size_t i = 0; i < cmds_n; i++)
        if (cmds[i]->group)
            printf("%s ", cmds[i]->name);
    puts("--help --version\" -- \"$cur\"))\n        return\n    fi\n    case $verb in");
    for (size_t i = 0; i < cmds_n; i++) {
        struct str opts = {0};
        if (!cmds[i]->group)
            continue;
        opts_of(cmds[i], &opts);
        printf(
            "    %s)\n        case $cur in -*) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return;; esac",
            cmds[i]->name, str_c(&opts));
        if (str_eq(cmds[i]->complete, "session"))
            fputs("\n        COMPREPLY=($(compgen -W \"$(ksmith new 2>/dev/null | cut -d' ' -f1)\" -- "
                  "\"$cur\"))",
                  stdout);
        else if (str_eq(cmds[i]->complete, "id"))
            fputs("\n        COMPREPLY=($(compgen -W \"$(ksmith ls --ids 2>/dev/null)\" -- \"$cur\"))",
                  stdout);
        else if (str_eq(cmds[i]->complete, "steer"))
            fputs("\n        COMPREPLY=($(compgen -W \"$(ksmith ctl --verbs 2>/dev/null)\" -- \"$cur\"))",
                  stdout);
        puts("\n        COMPREPLY+=($(compgen -f -- \"$cur\"));;");
        str_free(&opts);
    }
    puts("    esac\n}\ncomplete -F _ksmith ksmith");
}

static void zsh(void)
{
    puts("#compdef ksmith\nautoload -U bashcompinit && bashcompinit");
    bash();
}

static void fish(void)
{
    for (size_t i = 0; i < cmds_n; i++) {
        if (!cmds[i]->group)
            continue;
        printf("complete -c ksmith -n __fish_use_subcommand -a %s -d '%s'\n", cmds[i]->name, cmds[i]->help);
        for (const struct opt *o = cmds[i]->opts; o && o->name; o++)
            printf("complete -c ksmith -n '__fish_seen_subcommand_from %s' -l %s%s\n", cmds[i]->name, o->name,
                   o->arg ? " -r" : "");
    }
}

// Text for roff, filled into lines of under 80 bytes: a line that starts with a dot or a quote would be a
// macro.
static void roff(const char *s, bool fill)
{
    int column = 0;
    for (; *s; s++) {
        if (column == 0 && (*s == '.' || *s == '\''))
            fputs("\\&", stdout);
        bool end = *s == '\n' || (fill && *s == ' ' && column > 60);
        if (*s == '\\')
            fputs("\\e", stdout);
        else
            putchar(end ? '\n' : *s);
        column = end ? 0 : column + 1;
    }
}

// The COMMANDS section of ksmith.1; `make man` puts it there and a test compares.
static void man(void)
{
    for (size_t i = 0; i < cmds_n; i++) {
        const struct cmd *c = cmds[i];
        if (!c->group)
            continue;
        printf(".Ss ksmith %s %s\n", c->name, c->args);
        roff(c->help, true);
        puts(".");
        if (c->more) {
            puts(".Bd -literal -offset indent");
            roff(c->more, false);
            puts("\n.Ed");
        }
        if (!c->opts)
            continue;
        puts(".Bl -tag -width indent");
        for (const struct opt *o = c->opts; o->name; o++) {
            printf(".It Fl Fl %s%s%s\n", o->name, o->arg ? " Ar " : "", o->arg ? o->arg : "");
            roff(o->help, true);
            puts("");
        }
        puts(".El");
    }
}

// The STEERING section of ksmith.1.
static void man_steering(void)
{
    puts(".Bl -tag -width indent");
    for (size_t i = 0; i < steer_verbs_n; i++) {
        printf(".It Ic %s%s%s\n", steer_verbs[i].name, *steer_verbs[i].args ? " Ar " : "",
               steer_verbs[i].args);
        roff(steer_verbs[i].help, true);
        puts("");
    }
    puts(".El");
}

static int run(struct args *a)
{
    static const struct {
        const char *name;
        void (*fn)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}, {"man", man}, {"man-steering", man_steering}};
    for (size_t i = 0; i < countof(shells); i++)
        if (str_eq(a->pos[0], shells[i].name)) {
            shells[i].fn();
            return 0;
        }
    struct err e = {0};
    err_set(&e, ERR_USAGE, "Name one of bash, zsh, fish.", "no completion for the shell %s", a->pos[0]);
    return cmd_fail(&e);
}

const struct cmd cmd_completion = {
    .name = "completion",
    .args = "bash|zsh|fish",
    .help = "print a completion script: source <(ksmith completion bash)",
    .group = "keep house",
    .min = 1,
    .max = 1,
    .run = run,
};
