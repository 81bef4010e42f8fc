// ksmith explain: a model's words on one candidate: where its time goes, what to try next.
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/show_text.h"
#include "evolve/lines.h"

#include <unistd.h>

struct waiting {
    struct loop *loop;
    bool live; // print it as it comes
    int64_t id;
    char tag[24];
    struct str text; // said so far
    bool done;
    struct err e;
};

static void on_reply(struct waiting *w, const json *o)
{
    if (!json_bool(o, "ok", false)) {
        client_refusal(o, &w->e);
        loop_stop(w->loop);
    } else if (json_has(o, "tag")) {
        snprintf(w->tag, sizeof w->tag, "%s", json_str(o, "tag"));
    }
}

static void on_answer(struct waiting *w, const json *o)
{
    const char *text = json_str(o, "text");
    w->done = text != NULL;
    str_clear(&w->text);
    str_add(&w->text, text ? text : "");
    if (!text)
        err_set(&w->e, ERR_FAIL, "", "%s: %s", json_str_or(o, "model", "the model"),
                json_str_or(o, "problem", json_str_or(o, "end", "no answer")));
    loop_stop(w->loop);
}

static void on_line(void *user, json *o)
{
    struct waiting *w = user;
    const char *ev = json_str(o, "ev");
    if (!ev)
        on_reply(w, o);
    else if (!w->tag[0] || !str_eq(json_str(o, "tag"), w->tag))
        return;
    else if (str_eq(ev, "answer"))
        on_answer(w, o);
    else if (str_eq(ev, "text") && w->live) {
        const char *text = json_str_or(o, "text", "");
        if (json_bool(o, "restart", false))
            fputs("\n(once more)\n", stderr);
        fprintf(stderr, "\r\033[K%zu bytes ...", w->text.len);
        str_add(&w->text, text);
    }
}

static void on_bad(void *user, const char *text, const struct err *e)
{
    (void)user, (void)text, (void)e;
}

static void on_closed(void *user)
{
    struct waiting *w = user;
    if (!w->done && !w->e.kind)
        err_set(&w->e, ERR_FAIL, "See .ksmith/engine.log.", "the engine ended before the answer came");
    loop_stop(w->loop);
}

static const struct lines_ops ops = {on_line, on_bad, on_closed};

static void send(struct lines *l, const char *cmd)
{
    json *o = json_object();
    json_put_str(o, "cmd", cmd);
    client_who(o);
    lines_send(l, o);
    json_free(o);
}

static int ask(struct args *a, struct waiting *w)
{
    struct str cmd = {0};
    int fd = client_open(a->dir, args_flag(a, "trust") ? CLIENT_TRUST : CLIENT_SERVE, &w->e);
    if (fd < 0)
        return -1;
    w->loop = loop_new();
    w->live = isatty(STDERR_FILENO);
    struct lines *l = lines_new(w->loop, fd, fd, 8 << 20, &ops, w);
    str_addf(&cmd, "explain %lld", (long long)w->id);
    if (args_flag(a, "model"))
        client_word(args_value(a, "model", ""), &cmd);
    send(l, "subscribe");
    send(l, str_c(&cmd));
    loop_run(w->loop);
    if (w->live)
        fputs("\r\033[K", stderr);
    lines_free(l);
    loop_free(w->loop);
    str_free(&cmd);
    return w->done ? 0 : -1;
}

// ---- what was said before

static bool is_explanation(void *user, const json *x)
{
    const struct waiting *w = user;
    const json *note = json_get(x, "note");
    return str_eq(json_str(note, "ask"), "explain") && json_int(note, "parent", -1) == w->id &&
           (str_eq(json_str(x, "end"), "ok") || str_eq(json_str(x, "end"), "cut"));
}

static bool said_before(const struct args *a, const struct look *l, struct waiting *w)
{
    struct record *r = proposers_record(l->p);
    json *x =
        r && !args_flag(a, "again") && !args_flag(a, "model") ? record_newest(r, is_explanation, w) : NULL;
    if (!x)
        return false;
    str_add(&w->text, json_str_or(x, "reply", ""));
    snprintf(w->tag, sizeof w->tag, "%s", json_str_or(x, "tag", "?"));
    fprintf(stderr, "said before, in request %s; --again asks once more\n", w->tag);
    json_free(x);
    return true;
}

static int run(struct args *a)
{
    struct look l;
    struct waiting w = {0};
    int status = look_open(&l, a);
    const struct candidate *c =
        status == 0 ? show_find(&l.session.state, a->npos ? a->pos[0] : "champion", &w.e) : NULL;
    w.id = c ? c->id : -1;
    if (status == 0 && (!c || (!said_before(a, &l, &w) && ask(a, &w) < 0)))
        status = cmd_fail(&w.e);
    if (status == 0)
        show_block(str_c(&w.text), w.text.len, "", stdout);
    str_free(&w.text);
    look_close(&l);
    return status;
}

static const struct opt opts[] = {
    {"model", "NAME", "ask this model or command; by default one is chosen as for a candidate"},
    {"again", NULL, "ask although it was explained before"},
    OPT_TRUST,
    OPT_SET,
    OPT_END};

const struct cmd cmd_explain = {
    .name = "explain",
    .args = "[DIR] [ID]",
    .help = "ask a model where a candidate's time goes, which limit it meets and what to try next",
    .more = "It is shown what a proposer is shown; nothing is proposed. The answer and its cost are kept "
            "with the\n"
            "session: asked again, the same words are printed without a model.",
    .group = "models",
    .max = 1,
    .takes_dir = true,
    .opts = opts,
    .complete = "id",
    .run = run,
};
