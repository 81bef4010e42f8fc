// ksmith prompt: what a model would be sent about one candidate.
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/show_text.h"
#include "evolve/context.h"

#include <unistd.h>

// The second parent of a cross: --with, or the champion where it is another.
static int second_of(const struct args *a, const struct state *s, int64_t parent, int64_t *out, struct err *e)
{
    const char *word = args_value(a, "with", "champion");
    const struct candidate *c = show_find(s, word, e);
    if (!c)
        return -1;
    if (c->id == parent)
        return err_set(e, ERR_USAGE, "Name another candidate: --with ID.",
                       "%lld cannot be crossed with itself", (long long)parent);
    *out = c->id;
    return 0;
}

static void print(const struct args *a, const struct preview *v)
{
    if (args_flag(a, "json") && v->body.len) {
        puts(v->body.s);
        return;
    }
    fprintf(stderr, "to %s; %zu of at most %zu bytes%s%s\n", str_c(&v->to),
            v->prompt.system.len + v->prompt.user.len, v->budget, v->prompt.cut.len ? "; " : "",
            str_c(&v->prompt.cut));
    if (isatty(STDOUT_FILENO)) // compilers' logs and comments may hold what a terminal obeys
        show_block(v->text.s, v->text.len, "", stdout);
    else
        fwrite(v->text.s, 1, v->text.len, stdout);
}

static int preview(struct args *a, struct look *l)
{
    struct err e = {0};
    const struct candidate *c = show_find(&l->session.state, a->npos ? a->pos[0] : "champion", &e);
    enum ask ask = ASK_IMPROVE;
    int64_t second = -1;
    int who = look_proposer(l, args_value(a, "model", NULL), &e);
    if (!c || who < -1 || ask_parse(args_value(a, "op", "improve"), &ask, &e) < 0 ||
        (ask == ASK_CROSS && second_of(a, &l->session.state, c->id, &second, &e) < 0))
        return cmd_fail(&e);
    if (args_flag(a, "with") && ask != ASK_CROSS)
        return cmd_fail((err_set(&e, ERR_USAGE, "", "--with belongs to --op cross"), &e));
    struct context x = {0};
    struct preview v = {0};
    int r = context_fill(&x, &l->session, &l->task, c->id, second, ask, look_source, l, &e);
    if (r == 0)
        r = proposers_preview(
            l->p,
            &(struct proposer_request){.iteration = -1, .who = who, .ctx = x.ctx, .feedback = x.feedback}, &v,
            &e);
    if (r == 0)
        print(a, &v);
    preview_free(&v);
    context_free(&x);
    return r < 0 ? cmd_fail(&e) : 0;
}

static int run(struct args *a)
{
    struct look l;
    int status = look_open(&l, a);
    if (status == 0)
        status = preview(a, &l);
    look_close(&l);
    return status;
}

static const struct opt opts[] = {
    {"model", "NAME", "to this model or command; the first of the configuration by default"},
    {"op", "OPERATOR", "improve, repair, cross, explore, simplify or explain"},
    {"with", "ID", "the second parent of a cross; the champion by default"},
    {"json", NULL, "the body of the request, as it goes over the network"},
    OPT_SET,
    OPT_END};

const struct cmd cmd_prompt = {
    .name = "prompt",
    .args = "[DIR] [ID]",
    .help = "print what a model would be sent about a candidate; nobody is asked",
    .more = "The messages go to standard output, each under its name; to whom, and what was left out for\n"
            "want of room, to standard error. For a command ([exec NAME]) the files of its folder.",
    .group = "models",
    .max = 1,
    .takes_dir = true,
    .opts = opts,
    .complete = "id",
    .run = run,
};
