// The command line: ksmith VERB [DIR] ARGS. A subcommand is one file that defines one struct cmd; the table
// in cmd.c is what dispatch, --help, completion and the man page's list are made from.
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct args;

struct opt {
    const char *name; // without the dashes
    const char *arg;  // what its value is called; NULL for a flag
    const char *help;
};

struct cmd {
    const char *name;
    const char *args;           // "[DIR] ID", for usage lines
    const char *help;           // one line
    const char *more;           // a paragraph or examples for `ksmith VERB --help`; may be NULL
    const char *group;          // heading in `ksmith --help`; NULL hides it
    int min, max;               // positional arguments after DIR; max -1: any number
    bool takes_dir;             // an optional session folder comes first
    const struct opt *opts;     // ended by an entry without name; may be NULL
    const char *complete;       // what positional arguments are: "id", "session", "verb", "file"
    int (*run)(struct args *a); // the exit status
};

struct args {
    const struct cmd *cmd;
    char *dir;  // the session's folder where takes_dir, absolute
    char **pos; // positional arguments without DIR
    int npos;
    struct given {
        const struct opt *opt;
        char *value;
    } * given;
    int ngiven;
};

// The workbench, put in by main.c so that nothing of the engine includes it; NULL in programs without one.
struct workbench_call {
    const char *dir;
    bool read_only, ascii;
    const char *theme;      // NULL: as the config says
    const char *color;      // "always", "never" or "auto"
    bool keys, print_theme; // print the table and leave
};
extern int (*cmd_workbench)(const struct workbench_call *w);

extern const struct cmd *const cmds[];
extern const size_t cmds_n;
const struct cmd *cmd_find(const char *name);

bool args_flag(const struct args *a, const char *name);
// The last value given, or otherwise.
const char *args_value(const struct args *a, const char *name, const char *otherwise);
// All values of a repeatable option; *n of them, borrowed; the array is the caller's to free.
const char **args_values(const struct args *a, const char *name, size_t *n);
// The number of a candidate: "42" or "#42"; -1 and an error otherwise.
int args_id(const char *text, long *id, struct err *e);
// Prints the error and returns its exit status, so that `return cmd_fail(&e);` reads well.
int cmd_fail(const struct err *e);
int cmd_fail_list(const err_list *errors);

// Parses argv after the verb; prints help for --help (status in *status, returns 1); errors return -1.
int args_parse(const struct cmd *cmd, int argc, char **argv, struct args *out, int *status, struct err *e);
void args_free(struct args *a);
void cmd_help(const struct cmd *cmd, FILE *f);
void cmd_help_all(FILE *f);

#define OPT_SET                                                                                       \
    {                                                                                                 \
        "set", "KEY=VALUE", "override a key of task.ini or the config for this call; may be repeated" \
    }
#define OPT_JSON                                             \
    {                                                        \
        "json", NULL, "one JSON object a line, for programs" \
    }
#define OPT_TRUST                                                                                            \
    {                                                                                                        \
        "trust", NULL, "commands of this session's folder may run, and models' candidates without a sandbox" \
    }
#define OPT_END \
    {           \
        0       \
    }
