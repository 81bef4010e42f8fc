#include "base/task_parse.h"

#include "base/io.h"

#include <ctype.h>

const struct task_item *task_item_of(const struct task_parser *p, const char *section, const char *key)
{
    const struct task_item *found = NULL;
    for (size_t i = 0; i < p->items.n; i++)
        if (str_eq(p->items.v[i].section, section) && str_eq(p->items.v[i].key, key))
            found = &p->items.v[i];
    return found;
}

struct name_check {
    struct task_parser *p;
    const struct task_item *it;
    const char *expr;
    int at; // of the expression in the item's value
};

static bool word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// Where the whole word stands in text, not as a part of a longer one.
static const char *find_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        if (!word_byte(at[n]) && (at == text || !word_byte(at[-1])))
            return at;
    return NULL;
}

static void check_name(void *user, const char *name)
{
    struct name_check *c = user;
    struct task *t = c->p->t;
    for (size_t i = 0; i < t->dims.n; i++)
        if (str_eq(t->dims.v[i], name))
            return;
    bool is_arg = false;
    for (size_t i = 0; i < t->args.n; i++)
        is_arg |= str_eq(t->args.v[i].name, name);
    const char *at = find_word(c->expr, name);
    int place = c->at + (at ? (int)(at - c->expr) : 0);
    if (is_arg)
        task_error(c->p, c->it, place, "Only arguments that are dim can stand in expressions.",
                   "'%s' is no dim", name);
    else {
        vec_push(&t->dims, NULL);
        t->dims.n--;
        task_error_nearest(c->p, c->it, place, name, (const char *const *)t->dims.v,
                           "'%s' is no dim of this task", name);
    }
}

static void check_names(struct task_parser *p, const struct task_item *it, const struct expr *x)
{
    if (!x || !it)
        return;
    const char *at = strstr(it->value, expr_text(x));
    struct name_check c = {p, it, expr_text(x), at ? (int)(at - it->value) : 0};
    expr_names(x, check_name, &c);
}

// The names that shapes of buffers, requirements and metrics use.
static void check_expressions(struct task_parser *p)
{
    struct task *t = p->t;
    for (size_t i = 0; i < t->args.n; i++)
        for (int r = 0; r < t->args.v[i].rank; r++)
            check_names(p, task_item_of(p, "args", t->args.v[i].name), t->args.v[i].shape[r]);
    check_names(p, task_item_of(p, "metric", "bytes"), t->metric_bytes);
    check_names(p, task_item_of(p, "metric", "flops"), t->metric_flops);
    for (size_t i = 0, n = 0; i < p->items.n && n < t->require.n; i++)
        if (str_eq(p->items.v[i].section, "task") && str_eq(p->items.v[i].key, "require"))
            for (size_t k = 0; k < t->require.n; k++)
                if (str_eq(expr_text(t->require.v[k]), p->items.v[i].value)) {
                    check_names(p, &p->items.v[i], t->require.v[k]);
                    n++;
                    break;
                }
}

static void check_args(struct task_parser *p)
{
    struct task *t = p->t;
    if (t->args.n == 0) {
        task_missing(p, "args", "List the kernel's parameters in C order, such as: x = in f32[N].",
                     "the task has no [args]");
        return;
    }
    bool written = false;
    for (size_t i = 0; i < t->args.n; i++)
        written |= t->args.v[i].dir == ARG_OUT || t->args.v[i].dir == ARG_INOUT;
    if (!written)
        task_missing(p, "args", "Mark what the kernel writes as out or inout.",
                     "no argument is out or inout: there is nothing to check");
}

static void check_shapes(struct task_parser *p)
{
    struct task *t = p->t;
    bool test = false, bench = false;
    for (size_t i = 0; i < t->shapes.n; i++) {
        test |= t->shapes.v[i].test;
        bench |= t->shapes.v[i].bench;
    }
    // Sizes can be computed only from shapes and names without a mistake.
    for (size_t i = 0; p->errors->n == p->errors_before && i < t->shapes.n; i++)
        task_check_shape(p, task_item_of(p, "shapes", t->shapes.v[i].name), &t->shapes.v[i]);
    if (!test)
        task_missing(p, "shapes", "Add a line such as: ragged = N=1001 test.", "no shape is a test");
    if (!bench)
        task_missing(p, "shapes", "Add a line such as: large = N=65536 bench.", "no shape is timed (bench)");
}

static void check_kernel(struct task_parser *p)
{
    struct task *t = p->t;
    const struct task_item *it = task_item_of(p, "task", "kernel");
    if (!it) {
        task_missing(p, "task", "Add kernel = FILE:FUNCTION.", "the task names no kernel");
    } else if (p->files && t->kernel_file) {
        char *path = io_join(t->project, t->kernel_file);
        if (!io_exists(path))
            task_error(p, it, 0, "Correct the name, or set project to the folder it is relative to.",
                       "there is no file %s", path);
        free(path);
    }
    if (!t->kernel_file)
        return;
    bool cu = str_ends(t->kernel_file, ".cu") || str_ends(t->kernel_file, ".cuh");
    if (it && cu && t->backend == BACKEND_CPU)
        task_error(p, it, 0, "Add backend = cuda.", "%s is CUDA, and the backend is cpu", t->kernel_file);
}

static void check_reference(struct task_parser *p)
{
    struct task *t = p->t;
    const struct task_item *c = task_item_of(p, "reference", "c"),
                           *o = task_item_of(p, "reference", "original");
    if (!c && (!o || (str_eq(o->value, "no"))))
        task_missing(p, "reference", "Add c = ref.c:FUNCTION, or original = yes to trust the baseline.",
                     "the task has no reference");
    else if (c && t->ref_original)
        task_error(p, o, -1, "Keep one of them.", "both a reference in C and original = yes");
    else if (c && p->files && t->ref_file) {
        char *path = io_join(t->dir, t->ref_file);
        if (!io_exists(path))
            task_error(p, c, 0, "Correct the name; it is relative to the session's folder.",
                       "there is no file %s", path);
        free(path);
    }
}

static void check_build(struct task_parser *p)
{
    struct task *t = p->t;
    const struct task_item *launch = task_item_of(p, "launch", "run"),
                           *threads = task_item_of(p, "build", "threads");
    if (launch && t->backend == BACKEND_CPU)
        task_error(p, launch, -1, "Remove it: a C kernel is called as a function.",
                   "a launch, and the backend is cpu");
    if (threads && t->threads > 1 && !t->allow_threads)
        task_error(p, threads, 0, "Add allow = threads, or leave threads at 1.",
                   "%d threads, and the task does not allow threads", t->threads);
}

// Also true where the value is wrong and so is not in extra.
static bool has_key(const struct task_parser *p, const char *model, const char *key)
{
    for (size_t i = 0; i < p->items.n; i++)
        if (str_eq(p->items.v[i].section, "model") && str_eq(p->items.v[i].name, model) &&
            str_eq(p->items.v[i].key, key))
            return true;
    return false;
}

// Sections of other parts: what a model or worker cannot do without.
static void check_extra(struct task_parser *p)
{
    for (json *s = json_first(p->t->extra); s; s = json_next(s)) {
        const char *name = json_key(s);
        if (str_starts(name, "exec ") && !json_has(s, "command"))
            err_list_add(p->errors, p->task_path, 0, 0, "Add command = to the section.",
                         "[%s] has no command", name);
        if (!str_starts(name, "model "))
            continue;
        const struct task_item *it = NULL;
        for (size_t i = 0; i < p->items.n && !it; i++)
            if (str_eq(p->items.v[i].section, "model") && str_eq(p->items.v[i].name, name + 6))
                it = &p->items.v[i];
        static const char *const needed[] = {"url", "model"};
        for (size_t i = 0; it && i < countof(needed); i++)
            if (!has_key(p, name + 6, needed[i]))
                task_error(p, it, -1, "Add the key to the section.", "[%s] has no %s", name, needed[i]);
        if (it && json_has(s, "key_env") && json_has(s, "key_cmd"))
            task_error(p, it, -1, "Keep one of them.", "[%s] has both key_env and key_cmd", name);
    }
}

void task_check(struct task_parser *p)
{
    check_kernel(p);
    check_args(p);
    check_expressions(p);
    check_shapes(p);
    check_reference(p);
    check_build(p);
    check_extra(p);
}
