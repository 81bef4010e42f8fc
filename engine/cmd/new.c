// ksmith new: copies a shipped session, or lists them.
#include "base/io.h"
#include "base/task.h"
#include "cmd/cmd.h"

#include <dirent.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static strings session_names(const char *root)
{
    strings names = {0};
    DIR *d = opendir(root);
    for (struct dirent *x; d && (x = readdir(d));) {
        char *path = xasprintf("%s/%s/task.ini", root, x->d_name);
        if (x->d_name[0] != '.' && io_exists(path))
            vec_push(&names, xstrdup(x->d_name));
        free(path);
    }
    if (d)
        closedir(d);
    if (names.n)
        qsort(names.v, names.n, sizeof *names.v, by_name);
    return names;
}

static int list(const char *root, const strings *names)
{
    for (size_t i = 0; i < names->n; i++) {
        char *dir = io_join(root, names->v[i]);
        struct task t;
        err_list errors = {0};
        if (task_load(dir, NULL, 0, &t, &errors) == 0) {
            printf("%-14s %-5s %s:%s, shapes", names->v[i], t.backend == BACKEND_CUDA ? "cuda" : "cpu",
                   t.kernel_file, t.kernel_func);
            for (size_t s = 0; s < t.shapes.n; s++)
                if (t.shapes.v[s].bench)
                    printf(" %s", t.shapes.v[s].name);
            putchar('\n');
        }
        task_free(&t);
        vec_free(&errors);
        free(dir);
    }
    return 0;
}

static int copy(const char *root, const strings *names, const char *name, const char *to)
{
    struct err e = {0};
    char *from = io_join(root, name), *task = xasprintf("%s/task.ini", from);
    int r = 0;
    if (strchr(name, '/') || !io_exists(task)) {
        const char *near = str_nearest(name, (const char *const *)names->v, names->n);
        char *hint = near ? xasprintf("Did you mean %s? `ksmith new` lists them.", near)
                          : xstrdup("`ksmith new` lists them.");
        r = err_set(&e, ERR_USAGE, hint, "there is no shipped session %s", name);
        free(hint);
    } else if (io_exists(to)) {
        r = err_set(&e, ERR_USAGE, "Name a folder that does not exist yet.", "%s exists already", to);
    } else {
        r = io_copy_tree(from, to, &e);
    }
    free(from);
    free(task);
    if (r < 0)
        return cmd_fail(&e);
    printf("%s is ready: `ksmith check %s` proves the task, `ksmith run %s` starts the search.\n", to, to,
           to);
    return 0;
}

static int run(struct args *a)
{
    char *root = io_data_dir("sessions");
    struct err e = {0};
    if (!root) {
        err_set(&e, ERR_FAIL, "Install ksmith whole (make install), or run it from its source tree.",
                "the shipped sessions are not beside this program");
        return cmd_fail(&e);
    }
    strings names = session_names(root);
    int status = a->npos == 0 ? list(root, &names)
                              : copy(root, &names, a->pos[0], a->npos > 1 ? a->pos[1] : a->pos[0]);
    for (size_t i = 0; i < names.n; i++)
        free(names.v[i]);
    vec_free(&names);
    free(root);
    return status;
}

const struct cmd cmd_new = {
    .name = "new",
    .args = "[SESSION [FOLDER]]",
    .help = "copy a shipped session; without a name, list them",
    .group = "start",
    .max = 2,
    .complete = "session",
    .run = run,
};
