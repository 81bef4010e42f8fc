#include "base/task.h"
#include "models/facts.h"

#include <inttypes.h>

static const char *const dirs[] = {[ARG_IN] = "in",
                                   [ARG_OUT] = "out",
                                   [ARG_INOUT] = "in and out",
                                   [ARG_DIM] = "dimension",
                                   [ARG_VAL] = "value"};

static void add_arg(const struct task_arg *a, struct str *out)
{
    str_addf(out, "- %s: %s, %s", a->name, dirs[a->dir], dtype_info(a->type)->name);
    if (a->rank) {
        str_addc(out, '[');
        for (int i = 0; i < a->rank; i++)
            str_addf(out, "%s%s", i ? "," : "", expr_text(a->shape[i]));
        str_add(out, "], row-major");
    }
    if (a->align)
        str_addf(out, ", aligned to %d bytes", a->align);
    if (a->dir == ARG_VAL)
        str_addf(out, ", always %g", a->value);
    str_addc(out, '\n');
}

static void add_shape(const struct task *t, const struct task_shape *s, struct str *out)
{
    if (s->hidden)
        return;
    str_addf(out, "- %s:", s->name);
    for (size_t i = 0; i < t->dims.n; i++)
        str_addf(out, " %s=%" PRId64, t->dims.v[i], s->dims[i]);
    str_addf(out, " (%s)\n", s->bench ? "timed" : "checked only");
}

static void add_strings(const char *name, const strings *s, struct str *out)
{
    for (size_t i = 0; i < s->n; i++)
        str_addf(out, "%s%s", i ? " " : name, s->v[i]);
    if (s->n)
        str_addc(out, '\n');
}

void facts_task(const struct task *t, struct str *out)
{
    str_addf(out, "The function %s in %s. Its arguments, in order:\n", t->kernel_func, t->kernel_file);
    for (size_t i = 0; i < t->args.n; i++)
        add_arg(&t->args.v[i], out);
    str_add(out, "Shapes (others are checked too):\n");
    for (size_t i = 0; i < t->shapes.n; i++)
        add_shape(t, &t->shapes.v[i], out);
    for (size_t i = 0; i < t->require.n; i++)
        str_addf(out, "%s%s", i ? ", " : "The caller guarantees: ", expr_text(t->require.v[i]));
    str_addf(out, "%s\n", t->require.n ? "." : "Nothing is guaranteed about the sizes.");
    for (int d = 0; d < DT_COUNT; d++)
        if (t->tol[d].set)
            str_addf(out, "Tolerance for %s: relative %g, plus %g units of rounding of the result's size.\n",
                     dtype_info((enum dtype)d)->name, t->tol[d].rtol, t->tol[d].k);
    add_strings("Compiler flags: ", &t->cflags, out);
    for (size_t i = 0; i < t->launches.n; i++)
        str_addf(out, "Launch: %s\n", t->launches.v[i]);
    str_addf(
        out,
        "Threads: %d. Fast math is %s, more threads are %s, lower precision inside is %s, assembly is %s.\n",
        t->threads, t->allow_fast_math ? "allowed" : "not allowed",
        t->allow_threads ? "allowed" : "not allowed", t->allow_precision ? "allowed" : "not allowed",
        t->allow_asm ? "allowed" : "not allowed");
    if (t->deterministic)
        str_add(out, "The same input must always give the same bits.\n");
    str_addf(out, "It counts as faster from %.4g times on%s.\n", t->gain,
             t->cache == CACHE_COLD ? ", with cold caches" : ", with warm caches");
}
