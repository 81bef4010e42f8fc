// ksmith ctl: one steering command from a script. A session without an engine gets one for the moment it
// takes.
#include "base/io.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/show_text.h"
#include "evolve/server.h"
#include "evolve/steer.h"

#include <unistd.h>

static int list_verbs(void)
{
    for (size_t i = 0; i < steer_verbs_n; i++)
        printf("%s\n", steer_verbs[i].name);
    return 0;
}

// The request: the words as one line, and the text of a kernel file for `add`.
static json *request_of(struct args *a, struct err *e)
{
    json *o = json_object();
    struct str line = {0};
    for (int i = 0; i < a->npos; i++)
        client_word(a->pos[i], &line);
    if (args_flag(a, "descendants"))
        str_add(&line, " --descendants");
    json_put_str(o, "cmd", str_c(&line));
    str_free(&line);
    client_who(o);
    if (str_eq(a->pos[0], "add") && a->npos > 1) {
        struct str text = {0};
        if (io_read_file(a->pos[1], 4 << 20, &text, e) < 0) {
            json_free(o);
            return NULL;
        }
        json_put_strn(o, "text", text.s, text.len);
        str_free(&text);
    }
    return o;
}

static int answer(const json *reply)
{
    struct err e = {0};
    if (json_bool(reply, "ok", false)) {
        show_clean(json_str_or(reply, "msg", "done"), stdout);
        putchar('\n');
        return 0;
    }
    client_refusal(reply, &e);
    return cmd_fail(&e);
}

static int run(struct args *a)
{
    struct err e = {0};
    if (args_flag(a, "verbs"))
        return list_verbs();
    if (a->npos == 0)
        return cmd_fail(
            (err_set(&e, ERR_USAGE, "`ksmith ctl --help` lists them.", "ctl needs a command"), &e));
    if (!steer_find(a->pos[0]))
        return cmd_fail((err_set(&e, ERR_USAGE, "`ksmith ctl --verbs` lists them.",
                                 "%s is not a steering command", a->pos[0]),
                         &e));
    json *o = request_of(a, &e);
    if (!o)
        return cmd_fail(&e);
    // What only a search can do is refused where none runs.
    int fd = client_open(a->dir, steer_searches(a->pos[0]) ? CLIENT_NO : CLIENT_SERVE, &e), status;
    if (fd < 0) {
        status = cmd_fail(&e);
    } else {
        json *reply = server_ask(fd, o, 20000, &e);
        status = reply ? answer(reply) : cmd_fail(&e);
        json_free(reply);
        close(fd);
    }
    json_free(o);
    return status;
}

static const struct opt opts[] = {{"descendants", NULL, "kill, revive: with all that came from it"},
                                  {"verbs", NULL, "only the names of the commands"},
                                  OPT_END};

const struct cmd cmd_ctl = {
    .name = "ctl",
    .args = "[DIR] COMMAND ...",
    .help = "steer: pin kill revive approve reject pause resume step stop hint note budget ...",
    .more = "ksmith ctl pin 17            ksmith ctl kill 9 --descendants    ksmith ctl undo\n"
            "ksmith ctl hint 'try AVX'    ksmith ctl budget wall=10m         ksmith ctl add mine.c champion",
    .group = "watch and steer",
    .max = -1,
    .takes_dir = true,
    .opts = opts,
    .complete = "steer",
    .run = run,
};
