#include "cmd/client.h"

#include "base/io.h"
#include "base/proc.h"
#include "cmd/run.h"
#include "evolve/server.h"
#include "session/session.h"

#include <unistd.h>

void client_word(const char *word, struct str *line)
{
    if (line->len)
        str_addc(line, ' ');
    if (*word && !strpbrk(word, " \t'\"")) {
        str_add(line, word);
        return;
    }
    // Pieces in quotes of the kind that they do not hold; the engine joins them.
    do {
        char mark = *word == '\'' ? '"' : '\'';
        size_t n = strcspn(word, mark == '"' ? "\"" : "'");
        str_addf(line, "%c%.*s%c", mark, (int)n, word, mark);
        word += n;
    } while (*word);
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

void client_who(json *o)
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

static void no_engine(const char *dir, struct err *e)
{
    struct session_holder h;
    if (session_holder(dir, &h) && !h.here)
        err_set(e, ERR_FAIL, "Steer it from a login on that machine.",
                "the engine of this session runs on %s (process %ld)", h.host, h.pid);
    else
        err_set(e, ERR_FAIL, "`ksmith run --detach` starts it.", "no engine runs this session");
}

static bool start_serving(const char *dir, bool trust, struct err *e)
{
    struct session_holder h;
    if (session_holder(dir, &h))
        return false;
    char *journal = io_join(dir, ".ksmith/journal.jsonl");
    bool ran = io_exists(journal);
    free(journal);
    struct engine_options o = {.dir = dir, .serve = true, .trust = trust, .ready_fd = -1};
    return ran && run_engine(&o, e) == 0;
}

int client_open(const char *dir, enum client_serve serve, struct err *e)
{
    struct err why = {0};
    char *socket = session_socket(dir, &why);
    int fd = socket ? server_connect(socket) : -1;
    if (socket && fd < 0 && serve && start_serving(dir, serve == CLIENT_TRUST, &why))
        fd = server_connect(socket);
    free(socket);
    if (fd < 0 && !why.kind)
        no_engine(dir, &why);
    if (fd < 0 && e)
        *e = why;
    return fd;
}

json *client_add(int fd, const struct client_candidate *c, struct err *e)
{
    json *o = json_object();
    char cmd[64];
    snprintf(cmd, sizeof cmd, "add - %lld", c->parent);
    json_put_str(o, "cmd", cmd);
    client_who(o);
    json_put_strn(o, "text", c->text, c->len);
    json_put_str(o, "op", c->op);
    json_put_str(o, "subject", c->subject);
    json_put_str(o, "model", c->model);
    json *reply = server_ask(fd, o, 20000, e);
    json_free(o);
    return reply;
}

void client_refusal(const json *reply, struct err *e)
{
    err_set(e, json_int(reply, "status", 1) == 2 ? ERR_USAGE : ERR_FAIL, json_str_or(reply, "hint", ""), "%s",
            json_str_or(reply, "msg", "refused"));
}
