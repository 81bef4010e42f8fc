// Places in the other kernels of a file.
#include "base/task.h"
#include "rules/rule.h"

void rule_functions(const char *text, size_t len, const char *path, const char *func, const struct task *task,
                    func_names *out)
{
    struct tokens ts;
    func_names all = {0};
    vec_push(out, xstrdup(func));
    if (!task || task->evolve != EVOLVE_FILE || task->backend != BACKEND_CUDA)
        return;
    tokens_read(&ts, text, len);
    func_list(&ts, &all);
    for (size_t i = 0; i < all.n; i++) {
        struct func f;
        if (str_eq(all.v[i], func) || func_find(&f, &ts, path, all.v[i], func_is_cxx(path), NULL) < 0)
            continue;
        if (f.is_global)
            vec_push(out, xstrdup(all.v[i]));
        func_free(&f);
    }
    func_names_free(&all);
    tokens_free(&ts);
}

char *rule_where(const char *func, const char *in, const char *where)
{
    return str_eq(func, in) ? xstrdup(where) : xasprintf("in %s: %s", in, where);
}

const char *rule_where_split(const char *where, const char *func, char in[128])
{
    const char *colon = str_starts(where, "in ") ? strchr(where, ':') : NULL;
    size_t n = colon ? (size_t)(colon - where) - 3 : 0;
    if (!n || n >= 128 || colon[1] != ' ') {
        snprintf(in, 128, "%s", func);
        return where;
    }
    memcpy(in, where + 3, n);
    in[n] = 0;
    return colon + 2;
}
