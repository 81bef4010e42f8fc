#include "cmd/look.h"

#include "cmd/cmd.h"
#include "cmd/show_text.h"

int look_open(struct look *l, const struct args *a)
{
    err_list errors = {0};
    struct err e = {0};
    size_t n = 0;
    const char **set = args_values(a, "set", &n);
    int status = 0;
    *l = (struct look){.session = {.lock = -1}};
    if (task_load(a->dir, set, n, &l->task, &errors) < 0)
        status = cmd_fail_list(&errors);
    else if (session_open(&l->session, a->dir, SESSION_READ, &e) < 0)
        status = cmd_fail(&e);
    if (status == 0) {
        l->loop = loop_new();
        l->p = proposers_open(&(struct proposers_options){.loop = l->loop,
                                                          .session_dir = l->task.dir,
                                                          .state_dir = l->session.ksmith,
                                                          .sections = l->task.extra,
                                                          .path = "task.ini",
                                                          .seed = l->task.seed,
                                                          .look = true},
                              &errors);
        status = l->p ? 0 : cmd_fail_list(&errors);
    }
    vec_free(&errors);
    free(set);
    return status;
}

void look_close(struct look *l)
{
    proposers_close(l->p);
    loop_free(l->loop);
    if (l->session.dir)
        session_close(&l->session);
    task_free(&l->task);
}

char *look_source(void *user, int64_t id)
{
    struct look *l = user;
    const struct candidate *c = state_candidate(&l->session.state, id);
    return c ? show_source(&l->session, c, NULL) : NULL;
}

int look_proposer(const struct look *l, const char *name, struct err *e)
{
    VEC(const char *) names = {0};
    int n = proposers_count(l->p), who = name ? proposers_find(l->p, name) : n ? 0 : -1;
    if (!name || who >= 0)
        return who;
    for (int i = 0; i < n; i++)
        vec_push(&names, proposers_info(l->p, i).name);
    const char *near = names.n ? str_nearest(name, names.v, names.n) : NULL;
    char *hint = near ? xasprintf("Did you mean %s?", near) : xstrdup("`ksmith models` lists them.");
    err_set(e, ERR_USAGE, hint, "no model or command is named %s", name);
    free(hint);
    vec_free(&names);
    return -2;
}
