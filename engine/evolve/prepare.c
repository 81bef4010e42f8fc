#include "evolve/prepare.h"

#include "base/cflags.h"
#include "base/cudaflags.h"
#include "source/annot.h"
#include "source/region.h"
#include "source/scan.h"

static void say(struct prepared *p, enum prepare_result r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (p->reason.len)
        str_add(&p->reason, "; ");
    str_addv(&p->reason, fmt, ap);
    va_end(ap);
    if (p->result != PREPARE_REJECTED)
        p->result = r;
}

static void say_errors(struct prepared *p, err_list *errors)
{
    for (size_t i = 0; i < errors->n && i < 8; i++)
        say(p, PREPARE_REJECTED, "%s: %s", errors->v[i].where, errors->v[i].msg);
    vec_free(errors);
}

static void check_annotations(const struct task *t, const char *text, size_t len, struct prepared *p)
{
    struct annots a;
    err_list errors = {0};
    annot_read(&a, text, len, t->kernel_file, &errors);
    say_errors(p, &errors);
    for (size_t i = 0; i < a.flags.n; i++) {
        struct err e = {0};
        bool threads = cflags_threads(a.flags.v[i]);
        int bad = t->backend == BACKEND_CUDA ? cudaflags_check(a.flags.v[i], t->allow_fast_math, &e)
                                             : cflags_check(a.flags.v[i], t->allow_fast_math, &e);
        if (bad < 0)
            say(p, PREPARE_REJECTED, "flag %s: %s", a.flags.v[i], e.msg);
        else if (threads && !t->allow_threads)
            say(p, PREPARE_REJECTED, "flag %s: the task does not allow threads", a.flags.v[i]);
        vec_push(&p->flags, xstrdup(a.flags.v[i]));
    }
    annot_free(&a);
}

void prepare(const struct task *t, const char *baseline, const char *text, size_t len, struct prepared *p)
{
    *p = (struct prepared){0};
    err_list errors = {0};
    if (region_check(baseline, strlen(baseline), text, len, t->kernel_file, t->kernel_func, t->evolve,
                     &errors) < 0 ||
        errors.n)
        say_errors(p, &errors);
    vec_free(&errors);
    check_annotations(t, text, len, p);
    struct scan_opts o = {.cuda = t->backend == BACKEND_CUDA,
                          .threads = t->allow_threads,
                          .allow_asm = t->allow_asm,
                          .func = t->kernel_func};
    scan_findings found = {0};
    scan_source(text, len, baseline, strlen(baseline), &o, &found);
    for (size_t i = 0; i < found.n; i++)
        if (found.v[i].severity != SCAN_NOTE)
            say(p, found.v[i].severity == SCAN_REJECT ? PREPARE_REJECTED : PREPARE_FLAGGED,
                "%s:%u:%u: %s: %s", t->kernel_file, found.v[i].line, found.v[i].col, found.v[i].what,
                found.v[i].reason);
    vec_free(&found);
}

void prepared_free(struct prepared *p)
{
    str_free(&p->reason);
    for (size_t i = 0; i < p->flags.n; i++)
        free(p->flags.v[i]);
    vec_free(&p->flags);
}

json *prepared_flags(const struct prepared *p)
{
    json *a = json_array();
    for (size_t i = 0; i < p->flags.n; i++)
        json_push(a, json_new_str(p->flags.v[i]));
    return a;
}
