// ksmith profile: what the GPU's profiler says of one candidate.
#include "base/io.h"
#include "cmd/cmd.h"
#include "cmd/show_text.h"
#include "evolve/oneshot.h"
#include "evolve/prepare.h"

// The text of a candidate of the session, or of a file; malloc'ed, NULL and an error.
static char *source_of(struct args *a, struct err *e)
{
    struct session s;
    struct str text = {0};
    if (io_exists(a->pos[0]))
        return io_read_file(a->pos[0], 4 << 20, &text, e) < 0 ? (str_free(&text), NULL) : str_steal(&text);
    if (session_open(&s, a->dir, SESSION_READ, e) < 0)
        return NULL;
    const struct candidate *c = show_find(&s.state, a->pos[0], e);
    char *out = c ? show_source(&s, c, e) : NULL;
    session_close(&s);
    return out;
}

static void print(const json *ev)
{
    printf("on shape %s\n", json_str_or(ev, "shape", "?"));
    for (const json *k = json_first(json_get(ev, "kernels")); k; k = json_next(k)) {
        show_clean(json_str_or(k, "name", "?"), stdout);
        putchar('\n');
        for (const json *m = json_first(json_get(k, "metrics")); m; m = json_next(m)) {
            printf("  %-44s ", json_key(m));
            show_clean(json_string(m) ? json_string(m) : "", stdout);
            putchar('\n');
        }
    }
}

static json *ask(struct args *a, const struct task *t, struct oneshot *o, const char *text, struct err *e)
{
    char *baseline = oneshot_baseline(t, e);
    struct prepared p;
    json *ev = NULL;
    if (!baseline)
        return NULL;
    (void)a;
    prepare(t, baseline, text, strlen(text), &p);
    if (p.result == PREPARE_REJECTED) {
        err_set(e, ERR_FAIL, "", "refused before it reaches the GPU: %.400s", str_c(&p.reason));
    } else {
        json *request = json_object();
        json_put_str(request, "op", "profile");
        json_put_int(request, "id", 0);
        json_put_str(request, "source", text);
        json_put(request, "flags", prepared_flags(&p));
        ev = oneshot_ask(o, request, "profile", NULL, NULL, e);
        json_free(request);
    }
    prepared_free(&p);
    free(baseline);
    return ev;
}

static int run(struct args *a)
{
    struct task t;
    err_list errors = {0};
    struct err e = {0};
    size_t n;
    const char **set = args_values(a, "set", &n);
    int status = 0;
    struct oneshot *o = NULL;
    char *text = NULL;
    json *ev = NULL;
    if (task_load(a->dir, set, n, &t, &errors) < 0)
        status = cmd_fail_list(&errors);
    else if (!(text = source_of(a, &e)) || !(o = oneshot_open(&t, set, n, args_flag(a, "trust"), &e)) ||
             !(ev = ask(a, &t, o, text, &e)))
        status = cmd_fail(&e);
    else if (args_flag(a, "json"))
        show_json(ev);
    else
        print(ev);
    json_free(ev);
    free(text);
    oneshot_close(o);
    free(set);
    task_free(&t);
    vec_free(&errors);
    return status;
}

static const struct opt opts[] = {OPT_TRUST, OPT_JSON, OPT_SET, OPT_END};

const struct cmd cmd_profile = {
    .name = "profile",
    .args = "[DIR] ID|FILE",
    .help = "what NVIDIA's ncu says of one candidate on the first bench shape",
    .more = "Needs backend = cuda and ncu on PATH; nothing else of ksmith does.",
    .group = "read",
    .min = 1,
    .max = 1,
    .takes_dir = true,
    .opts = opts,
    .complete = "id",
    .run = run,
};
