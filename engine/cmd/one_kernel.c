#include "cmd/one_kernel.h"

#include "base/io.h"
#include "cmd/show_text.h"
#include "evolve/oneshot.h"
#include "evolve/prepare.h"

// The text of a candidate of the session, or of a file; malloc'ed, NULL and an error.
static char *source_of(const struct args *a, const char *word, struct err *e)
{
    struct session s;
    struct str text = {0};
    if (a->npos && io_exists(word))
        return io_read_file(word, 4 << 20, &text, e) < 0 ? (str_free(&text), NULL) : str_steal(&text);
    if (session_open(&s, a->dir, SESSION_READ, e) < 0)
        return NULL;
    const struct candidate *c = show_find(&s.state, word, e);
    char *out = c ? show_source(&s, c, e) : NULL;
    session_close(&s);
    return out;
}

static json *ask(const struct task *t, struct oneshot *o, const char *text, const char *op, struct err *e)
{
    char *baseline = oneshot_baseline(t, e);
    struct prepared p;
    json *ev = NULL;
    if (!baseline)
        return NULL;
    prepare(t, baseline, text, strlen(text), &p);
    if (p.result == PREPARE_REJECTED) {
        err_set(e, ERR_FAIL, "", "refused before it is compiled: %.400s", str_c(&p.reason));
    } else {
        json *request = json_object();
        json_put_str(request, "op", op);
        json_put_int(request, "id", 0);
        json_put_str(request, "source", text);
        json_put(request, "flags", prepared_flags(&p));
        ev = oneshot_ask(o, request, op, NULL, NULL, e);
        json_free(request);
    }
    prepared_free(&p);
    free(baseline);
    return ev;
}

json *one_kernel_ask(struct args *a, const char *word, const char *op, int *status)
{
    struct task t;
    err_list errors = {0};
    struct err e = {0};
    size_t n;
    const char **set = args_values(a, "set", &n);
    struct oneshot *o = NULL;
    char *text = NULL;
    json *ev = NULL;
    *status = 0;
    if (task_load(a->dir, set, n, &t, &errors) < 0)
        *status = cmd_fail_list(&errors);
    else if (!(text = source_of(a, word, &e)) || !(o = oneshot_open(&t, set, n, args_flag(a, "trust"), &e)) ||
             !(ev = ask(&t, o, text, op, &e)))
        *status = cmd_fail(&e);
    free(text);
    oneshot_close(o);
    free(set);
    task_free(&t);
    vec_free(&errors);
    return ev;
}
