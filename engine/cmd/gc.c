// ksmith gc: packs a session's repository and removes what can be made again.
#include "base/io.h"
#include "cmd/cmd.h"
#include "session/session.h"

static int run(struct args *a)
{
    struct session s;
    struct err e = {0};
    if (session_open(&s, a->dir, SESSION_WRITE, &e) < 0)
        return cmd_fail(&e);
    int r;
    while ((r = lineage_idle(s.lineage, &s.state, 16, &e)) > 0)
        ;
    if (r == 0)
        r = lineage_pack(s.lineage_path, true, &e);
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
