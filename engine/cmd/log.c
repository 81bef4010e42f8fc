// ksmith log: the journal as a story, or its lines.
#include "base/io.h"
#include "cmd/cmd.h"
#include "cmd/event_text.h"
#include "cmd/show_text.h"

struct teller {
    struct session *s;
    bool as_json;
};

static int tell(void *user, const json *line, uint64_t offset, struct err *e)
{
    struct teller *t = user;
    if (state_fold(&t->s->state, line, offset, e) < 0)
        return -1;
    if (t->as_json)
        show_json(line);
    else
        event_print(&t->s->state, line, stdout);
    return 0;
}

static int run(struct args *a)
{
    struct session s;
    struct err e = {0};
    if (session_read(&s, a->dir, &e) < 0)
        return cmd_fail(&e);
    // Told again from an empty state, so that each line is said as it was then.
    state_free(&s.state);
    state_init(&s.state);
    struct teller t = {&s, args_flag(a, "json")};
    uint64_t offset = 0, lines = 0;
    int r = journal_read(s.journal_path, &offset, &lines, tell, &t, &e);
    session_close(&s);
    return r < 0 ? cmd_fail(&e) : 0;
}

static const struct opt opts[] = {{"json", NULL, "the journal's own lines"}, OPT_END};

const struct cmd cmd_log = {
    .name = "log",
    .args = "[DIR]",
    .help = "the session's story, line by line",
    .group = "read",
    .takes_dir = true,
    .opts = opts,
    .run = run,
};
