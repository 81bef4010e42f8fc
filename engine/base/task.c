#include "base/task.h"

#include "base/io.h"
#include "base/task_parse.h"

#include <limits.h>
#include <stdarg.h>
#include <unistd.h>

int task_error(struct task_parser *p, const struct task_item *it, int at, const char *hint, const char *fmt,
               ...)
{
    char msg[sizeof((struct err *)0)->msg];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    err_list_add(p->errors, it->path, it->line, at < 0 ? it->key_column : it->value_column + at, hint, "%s",
                 msg);
    return -1;
}

int task_error_nearest(struct task_parser *p, const struct task_item *it, int at, const char *word,
                       const char *const *known, const char *fmt, ...)
{
    char msg[sizeof((struct err *)0)->msg];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    size_t n = 0;
    while (known && known[n])
        n++;
    const char *near = n ? str_nearest(word, known, n) : NULL;
    struct str hint = {0};
    if (near)
        str_addf(&hint, "Did you mean '%s'?", near);
    else
        str_add(&hint, n ? "There are:" : "There are none.");
    for (size_t i = 0; !near && i < n; i++)
        str_addf(&hint, "%s %s", i ? "," : "", known[i]);
    err_list_add(p->errors, it->path, it->line, at < 0 ? it->key_column : it->value_column + at, str_c(&hint),
                 "%s", msg);
    str_free(&hint);
    return -1;
}

void task_missing(struct task_parser *p, const char *section, const char *hint, const char *fmt, ...)
{
    char msg[sizeof((struct err *)0)->msg];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    // The place is the section's first key, where there is one.
    const struct task_item *it = NULL;
    for (size_t i = 0; i < p->items.n && !it; i++)
        if (str_eq(p->items.v[i].section, section) && p->items.v[i].layer == LAYER_TASK)
            it = &p->items.v[i];
    const char *path = it ? it->path : p->task_path;
    err_list_add(p->errors, path, it ? it->line : 1, 1, hint, "%s", msg);
}

char *task_path_inside(const char *root, const char *path)
{
    size_t n = strlen(root);
    while (n > 1 && root[n - 1] == '/')
        n--;
    if (path[0] == '/') {
        if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != 0))
            return NULL;
        path += n;
    }
    struct str out = {0};
    bool good = true;
    for (const char *s = path; good && *s;) {
        size_t len = strcspn(s, "/");
        if (len == 2 && strncmp(s, "..", 2) == 0) {
            good = out.len > 0;
            while (out.s && out.len && out.s[out.len - 1] != '/')
                out.len--;
            if (out.len)
                out.len--;
        } else if (len && !(len == 1 && *s == '.')) {
            if (out.len)
                str_addc(&out, '/');
            str_addn(&out, s, len);
        }
        if (out.s)
            out.s[out.len] = 0;
        s += len + (s[len] == '/');
    }
    if (good && !out.len)
        str_add(&out, ".");
    if (good)
        return str_steal(&out);
    str_free(&out);
    return NULL;
}

static void apply(struct task_parser *p, const struct task_item *it)
{
    const struct task_key *k = task_key_find(it->section, it->key);
    bool named = false, in_config;
    task_section_known(it->section, &named, &in_config);
    if (!k || k->set(p, k, it) < 0)
        return;
    if (!named && !str_eq(it->section, "proposers") && !str_eq(it->section, "ui"))
        return;
    char *name = named ? xasprintf("%s %s", it->section, it->name) : xstrdup(it->section);
    json *s = json_get(p->t->extra, name);
    if (!s) {
        s = json_object();
        json_put(p->t->extra, name, s);
    }
    json_put_str(s, it->key, it->value);
    free(name);
}

// Which items depend on which: paths on project, shapes on args, require and metric.
static int rank_of(const struct task_item *it)
{
    if (str_eq(it->key, "project") && str_eq(it->section, "task"))
        return 0;
    return str_eq(it->section, "args") ? 1 : str_eq(it->section, "shapes") ? 3 : 2;
}

static void defaults(struct task *t, const char *dir)
{
    *t = (struct task){.dir = xstrdup(dir),
                       .project = xstrdup(dir),
                       .backend = BACKEND_CPU,
                       .threads = 1,
                       .deterministic = true,
                       .gain = 1.01,
                       .regress = 0.98,
                       .race_seconds = 10,
                       .islands = 1,
                       .iterations = 400,
                       .population = 1000,
                       .seed = 1};
    t->extra = json_object();
}

static void defaults_after(struct task_parser *p)
{
    struct task *t = p->t;
    if (!t->name) {
        const char *slash = strrchr(t->dir, '/');
        t->name = xstrdup(slash && slash[1] ? slash + 1 : "session");
    }
    if (!task_item_of(p, "build", "cflags") && t->backend == BACKEND_CPU) {
        vec_push(&t->cflags, xstrdup("-O3"));
        vec_push(&t->cflags, xstrdup("-march=native"));
    }
    if (!task_item_of(p, "check", "cache"))
        t->cache = t->backend == BACKEND_CUDA ? CACHE_COLD : CACHE_WARM;
}

static void read_config(struct task_parser *p)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *path = xdg && *xdg == '/' ? io_join(xdg, "ksmith/config.ini")
                 : home && *home    ? io_join(home, ".config/ksmith/config.ini")
                                    : NULL;
    struct str text = {0};
    struct err e = {0};
    if (path && io_exists(path)) {
        if (io_read_file(path, 1 << 20, &text, &e) < 0)
            vec_push(p->errors, e);
        else
            task_read_layer(p, path, LAYER_CONFIG, str_c(&text), text.len);
    }
    str_free(&text);
    free(path);
}

static int parse(struct task_parser *p, const char *text, size_t len, const char *const *overrides, size_t n)
{
    p->errors_before = p->errors->n;
    if (p->files)
        read_config(p);
    task_read_layer(p, p->task_path, LAYER_TASK, text, len);
    for (size_t i = 0; i < n; i++)
        task_read_override(p, overrides[i]);
    for (int rank = 0; rank < 4; rank++)
        for (size_t i = 0; i < p->items.n; i++)
            if (rank_of(&p->items.v[i]) == rank)
                apply(p, &p->items.v[i]);
    defaults_after(p);
    task_check(p);
    for (size_t i = 0; i < p->items.n; i++)
        task_item_free(&p->items.v[i]);
    vec_free(&p->items);
    return p->errors->n > p->errors_before ? -1 : 0;
}

int task_parse(const char *path, const char *text, size_t len, const char *dir, const char *const *overrides,
               size_t n, struct task *t, err_list *errors)
{
    defaults(t, dir);
    struct task_parser p = {.t = t, .errors = errors, .task_path = path};
    return parse(&p, text, len, overrides, n);
}

int task_load(const char *dir, const char *const *overrides, size_t n, struct task *t, err_list *errors)
{
    char *real = realpath(dir, NULL);
    defaults(t, real ? real : dir);
    char *path = str_eq(dir, ".") ? xstrdup("task.ini") : io_join(dir, "task.ini");
    struct str text = {0};
    struct err e = {0};
    int r = io_read_file(path, 1 << 20, &text, &e);
    if (r < 0) {
        if (!e.hint[0])
            snprintf(e.hint, sizeof e.hint,
                     "Name a session's folder: one with a task.ini. 'ksmith new' makes one.");
        vec_push(errors, e);
    } else {
        struct task_parser p = {.t = t, .errors = errors, .task_path = path, .files = true};
        r = parse(&p, str_c(&text), text.len, overrides, n);
    }
    str_free(&text);
    free(path);
    free(real);
    return r;
}

static void strings_free(strings *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    vec_free(l);
}

void task_free(struct task *t)
{
    for (size_t i = 0; i < t->require.n; i++)
        expr_free(t->require.v[i]);
    vec_free(&t->require);
    for (size_t i = 0; i < t->args.n; i++) {
        free(t->args.v[i].name);
        for (int r = 0; r < TASK_MAX_RANK; r++)
            expr_free(t->args.v[i].shape[r]);
    }
    vec_free(&t->args);
    for (size_t i = 0; i < t->shapes.n; i++)
        task_shape_free(&t->shapes.v[i]);
    vec_free(&t->shapes);
    strings_free(&t->dims);
    strings_free(&t->launches);
    strings_free(&t->cflags);
    strings_free(&t->include);
    strings_free(&t->define);
    expr_free(t->metric_bytes);
    expr_free(t->metric_flops);
    char *texts[] = {t->dir,         t->project,  t->name,     t->kernel_file,
                     t->kernel_func, t->ref_file, t->ref_func, t->verify};
    for (size_t i = 0; i < countof(texts); i++)
        free(texts[i]);
    json_free(t->extra);
    *t = (struct task){0};
}

char *task_find_dir(const char *from, struct err *e)
{
    char *dir = realpath(from, NULL);
    if (!dir) {
        err_sys(e, "Name a session's folder.", "cannot use %s", from);
        return NULL;
    }
    if (!io_is_dir(dir)) {
        char *slash = strrchr(dir, '/');
        *(slash == dir ? slash + 1 : slash) = 0;
    }
    for (;;) {
        char *file = io_join(dir, "task.ini");
        bool found = io_exists(file);
        free(file);
        if (found)
            return dir;
        char *slash = strrchr(dir, '/');
        if (!slash || !slash[1])
            break;
        *(slash == dir ? slash + 1 : slash) = 0;
    }
    free(dir);
    err_set(e, ERR_USAGE, "Go to a session's folder, name one, or make one with 'ksmith new'.",
            "no task.ini in %s or above it", from);
    return NULL;
}
