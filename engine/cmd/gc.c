// ksmith gc: packs a session's repository and removes what can be made again.
#include "base/io.h"
#include "base/proc.h"
#include "cmd/cmd.h"
#include "session/session.h"

static int repack(const struct session *s, struct err *e)
{
    char *path = io_join(s->hidden, "lineage.git");
    // -d removes only what the new pack holds: sources that no ref reaches yet stay.
    const char *argv[] = {"git", "--git-dir", path, "repack", "-d", "-q", NULL};
    struct proc_spec spec = {.argv = argv, .in = -1};
    struct proc_end end;
    struct str out = {0};
    int r = proc_run(&spec, &out, 4096, 600000, &end, e);
    if (r == 0 && end.status != 0)
        r = err_set(e, ERR_FAIL, "", "git repack failed: %.300s", str_c(&out));
    str_free(&out);
    free(path);
    return r;
}

static int run(struct args *a)
{
    struct session s;
    struct err e = {0};
    if (session_open(&s, a->dir, &e) < 0)
        return cmd_fail(&e);
    int r = lineage_attempts(s.lineage, &s.state, &e);
    if (r == 0)
        r = repack(&s, &e);
    if (r == 0 && args_flag(a, "samples"))
        r = io_remove(s.samples, &e);
    session_close(&s);
    if (r < 0)
        return cmd_fail(&e);
    puts("packed");
    return 0;
}

static const struct opt opts[] = {{"samples", NULL, "also remove the raw timing samples"}, OPT_END};

const struct cmd cmd_gc = {
    .name = "gc",
    .args = "[DIR]",
    .help = "pack the session's repository; needs the engine to be stopped",
    .group = "keep house",
    .takes_dir = true,
    .opts = opts,
    .run = run,
};
