// ksmith log: the journal as a story, or its lines.
#include "cmd/cmd.h"
#include "cmd/event_text.h"
#include "cmd/show_text.h"

struct teller {
    struct state state;
    bool as_json;
};

static void tell(void *user, const struct journal_line *line)
{
    struct teller *t = user;
    if (t->as_json)
        show_json(line->event);
    else
        event_print(&t->state, line->event, line->t, stdout);
}

static int run(struct args *a)
{
    struct session s;
    struct journal_reader r;
    struct err e = {0};
    if (session_open(&s, a->dir, SESSION_READ, &e) < 0)
        return cmd_fail(&e);
    // Told again from an empty state, so that each line is said as it was then.
    struct teller t = {.as_json = args_flag(a, "json")};
    state_init(&t.state);
    int got = journal_reader_open(&r, s.journal_path, &e);
    if (got == 0) {
        got = event_follow(&r, &t.state, tell, &t, &e);
        journal_reader_close(&r);
    }
    state_free(&t.state);
    session_close(&s);
    return got < 0 ? cmd_fail(&e) : 0;
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
