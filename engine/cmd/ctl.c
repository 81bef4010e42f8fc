// ksmith ctl: one steering command from a script. A session without an engine gets one for the moment it
// takes.
#include "base/io.h"
#include "base/proc.h"
#include "cmd/cmd.h"
#include "cmd/run.h"
#include "cmd/show_text.h"
#include "evolve/server.h"
#include "evolve/steer.h"
#include "session/session.h"

#include <errno.h>
#include <unistd.h>

static int list_verbs(void)
{
    for (size_t i = 0; i < steer_verbs_n; i++)
        printf("%s\n", steer_verbs[i].name);
    return 0;
}

static void quote(const char *word, struct str *out)
{
    bool plain = *word && !strpbrk(word, " \t'\"");
    char mark = strchr(word, '\'') ? '"' : '\'';
    if (!plain)
        str_addc(out, mark);
    for (; *word; word++)
        str_addc(out, !plain && *word == mark ? ' ' : *word);
    if (!plain)
        str_addc(out, mark);
}

// The engineer as git knows them, for commits of their own edits.
static bool git_says(const char *key, struct str *out)
{
    const char *argv[] = {"git", "config", key, NULL};
    struct proc_spec spec = {.argv = argv, .in = -1};
    struct proc_end end;
    if (proc_run(&spec, out, 200, 2000, &end, NULL) < 0 || end.status != 0)
        return false;
    while (out->len && out->s[out->len - 1] == '\n')
        out->s[--out->len] = 0;
    return out->len > 0;
}

static void put_who(json *o)
{
    struct str name = {0}, mail = {0};
    char host[128] = "", who[300];
    const char *user = getenv("USER");
    gethostname(host, sizeof host - 1);
    snprintf(who, sizeof who, "%s@%s", user && *user ? user : "uid", host);
    json_put_str(o, "who", who);
    if (git_says("user.name", &name) && git_says("user.email", &mail)) {
        char author[420];
        snprintf(author, sizeof author, "%s <%s>", str_c(&name), str_c(&mail));
        json_put_str(o, "author", author);
    }
    str_free(&name);
    str_free(&mail);
}

// The request: the words as one line, and the text of a kernel file for `add`.
static json *request_of(struct args *a, struct err *e)
{
    json *o = json_object();
    struct str line = {0};
    for (int i = 0; i < a->npos; i++) {
        if (i)
            str_addc(&line, ' ');
        quote(a->pos[i], &line);
    }
    if (args_flag(a, "descendants"))
        str_add(&line, " --descendants");
    json_put_str(o, "cmd", str_c(&line));
    str_free(&line);
    put_who(o);
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
    err_set(&e, json_int(reply, "status", 1) == 2 ? ERR_USAGE : ERR_FAIL, json_str_or(reply, "hint", ""),
            "%s", json_str_or(reply, "msg", "refused"));
    return cmd_fail(&e);
}

static int no_engine(const struct args *a)
{
    struct err e = {0};
    struct session_holder h;
    if (session_holder(a->dir, &h) && !h.here)
        err_set(&e, ERR_FAIL, "Steer it from a login on that machine.",
                "the engine of this session runs on %s (process %ld)", h.host, h.pid);
    else
        err_set(&e, ERR_FAIL, "`ksmith run --detach` starts it.", "no engine runs this session");
    return cmd_fail(&e);
}

// A session that does not search gets an engine for the moment that steering takes. What only a search can do
// is refused.
static bool serve(const struct args *a, struct err *e)
{
    struct session_holder h;
    if (steer_searches(a->pos[0]))
        return false;
    if (session_holder(a->dir, &h))
        return false;
    char *journal = io_join(a->dir, ".ksmith/journal.jsonl");
    bool ran = io_exists(journal);
    free(journal);
    struct engine_options o = {.dir = a->dir, .serve = true, .ready_fd = -1};
    return ran && run_engine(&o, e) == 0;
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
    char *socket = session_socket(a->dir, &e);
    int fd = socket ? server_connect(socket) : -1, status;
    if (fd < 0 && serve(a, &e))
        fd = socket ? server_connect(socket) : -1;
    free(socket);
    if (fd < 0) {
        status = e.kind ? cmd_fail(&e) : no_engine(a);
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
