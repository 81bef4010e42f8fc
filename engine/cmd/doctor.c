// ksmith doctor: what this machine has, and which protections really hold here, each proven by trying to
// break it. The workers do the trying (`ksmith-cpu --probe`); this prints what they found.
#include "base/io.h"
#include "base/json.h"
#include "base/proc.h"
#include "cmd/cmd.h"

#include <unistd.h>

static const char *mark(const json *o, bool colour)
{
    static const char *const plain[] = {"no ", "yes", "-  "};
    static const char *const vivid[] = {"\033[31mno \033[m", "\033[32myes\033[m", "-  "};
    int i = json_has(o, "holds") ? json_bool(o, "holds", false) : 2;
    return colour ? vivid[i] : plain[i];
}

// Prints one line of the probe; returns whether a protection does not hold.
static bool show(const json *o, bool as_json, bool colour)
{
    if (as_json) {
        struct str s = {0};
        json_print(o, &s);
        puts(str_c(&s));
        str_free(&s);
    } else {
        printf("  %s  %-28s %s\n", mark(o, colour), json_str_or(o, "name", "?"),
               json_str_or(o, "detail", ""));
        const char *remedy = json_str(o, "remedy");
        if (remedy && *remedy && !json_bool(o, "holds", true))
            printf("       %-28s -> %s\n", "", remedy);
    }
    return json_has(o, "holds") && !json_bool(o, "holds", true);
}

static int probe(const char *worker, bool as_json, bool colour, int *broken)
{
    char *dir = io_self_dir(), *path = xasprintf("%s/%s", dir, worker);
    free(dir);
    if (access(path, X_OK) != 0) {
        if (!as_json)
            printf("%s: not built here\n", worker);
        free(path);
        return 0;
    }
    const char *argv[] = {path, "--probe", NULL};
    struct proc_spec spec = {.argv = argv, .in = -1};
    struct proc_end end;
    struct str out = {0};
    struct err e = {0};
    int r = proc_run(&spec, &out, 1 << 20, 120000, &end, &e);
    free(path);
    if (r < 0)
        return cmd_fail(&e);
    if (!as_json)
        printf("%s\n", worker);
    for (char *line = out.s, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        json *o = json_parse(line, strlen(line), NULL);
        if (json_is_object(o))
            *broken += show(o, as_json, colour);
        json_free(o);
    }
    str_free(&out);
    if (end.timed_out || end.signal)
        printf("  no   %s did not finish its probe\n", worker);
    return 0;
}

static int run(struct args *a)
{
    static const char *const workers[] = {"ksmith-cpu", "ksmith-cuda"};
    bool as_json = args_flag(a, "json");
    const char *no_color = getenv("NO_COLOR");
    bool colour = isatty(STDOUT_FILENO) && !(no_color && *no_color);
    int broken = 0;
    for (size_t i = 0; i < countof(workers); i++)
        if (probe(workers[i], as_json, colour, &broken) != 0)
            return ERR_FAIL;
    if (!as_json)
        printf("%s\n", broken ? "Some protections do not hold here: see the arrows above."
                              : "Every protection that was tried holds here.");
    return broken ? ERR_FAIL : 0;
}

static const struct opt opts[] = {OPT_JSON, OPT_END};

const struct cmd cmd_doctor = {
    .name = "doctor",
    .args = "[--json]",
    .help = "what this machine has, and which protections really hold here, by trying them",
    .group = "keep house",
    .opts = opts,
    .run = run,
};
