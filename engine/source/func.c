#include "source/func.h"

#include "base/task.h"
#include "source/ast_int.h"

bool func_is_cxx(const char *path)
{
    static const char *const ends[] = {".cu", ".cuh", ".cc", ".cpp", ".hpp", ".cxx"};
    for (size_t i = 0; i < countof(ends); i++)
        if (str_ends(path, ends[i]))
            return true;
    return false;
}

// A name at file level, followed by ( ... ) and a {: a definition. Returns the token of {, or 0.
static uint32_t definition_at(const struct tokens *ts, uint32_t i)
{
    if (ts->t.v[i].kind != TOK_IDENT || ts->t.v[i].inactive || !token_op(ts, i + 1, OP_LPAREN))
        return 0;
    uint32_t close = ts->t.v[i + 1].match;
    if (close <= i)
        return 0;
    uint32_t k = close + 1;
    // Attributes and the like between the parameters and the body.
    while (k < ts->t.n && ts->t.v[k].kind == TOK_IDENT) {
        k++;
        if (token_op(ts, k, OP_LPAREN) && ts->t.v[k].match > k)
            k = ts->t.v[k].match + 1;
    }
    return token_op(ts, k, OP_LBRACE) && ts->t.v[k].match > k ? k : 0;
}

// Calls for each definition at file level (and inside extern "C" and namespace braces).
static void each_definition(const struct tokens *ts, void (*fn)(void *user, uint32_t name, uint32_t open),
                            void *user)
{
    for (uint32_t i = 0; i < ts->t.n; i++) {
        uint32_t open = definition_at(ts, i);
        if (open) {
            fn(user, i, open);
            i = ts->t.v[open].match;
        } else if (token_op(ts, i, OP_LBRACE) && ts->t.v[i].match > i) {
            bool outer = i > 0 && (ts->t.v[i - 1].kind == TOK_STR || token_is(ts, i - 1, "namespace") ||
                                   (i > 1 && token_is(ts, i - 2, "namespace")));
            if (!outer)
                i = ts->t.v[i].match;
        }
    }
}

static void add_name(void *user, uint32_t name, uint32_t open)
{
    struct {
        const struct tokens *ts;
        func_names *out;
    } *x = user;
    const struct token *t = &x->ts->t.v[name];
    (void)open;
    vec_push(x->out, xstrndup(x->ts->src + t->at, t->len));
}

void func_list(const struct tokens *ts, func_names *out)
{
    struct {
        const struct tokens *ts;
        func_names *out;
    } x = {ts, out};
    each_definition(ts, add_name, &x);
}

void func_names_free(func_names *n)
{
    for (size_t i = 0; i < n->n; i++)
        free(n->v[i]);
    vec_free(n);
}

struct finding {
    const struct tokens *ts;
    const char *name;
    uint32_t tok, open;
    int count;
};

static void match_name(void *user, uint32_t name, uint32_t open)
{
    struct finding *f = user;
    if (!token_is(f->ts, name, f->name))
        return;
    f->count++;
    f->tok = name;
    f->open = open;
}

static int not_found(const struct tokens *ts, const char *path, const char *name, struct err *e)
{
    func_names names = {0};
    func_list(ts, &names);
    const char *near = str_nearest(name, (const char *const *)names.v, names.n);
    char *hint = near ? xasprintf("Did you mean %s?", near)
                      : xstrdup("Name a function that this file defines, in [task] kernel.");
    err_set(e, ERR_USAGE, hint, "%s defines no function %s", path, name);
    free(hint);
    func_names_free(&names);
    return -1;
}

static bool params(struct func *f, const struct tokens *ts)
{
    struct parser p = {.t = &f->types, .at = f->open_paren + 1, .end = f->close_paren};
    f->types.ts = ts;
    if (p.at < p.end && token_is(ts, p.at, "void") && p.at + 1 == p.end)
        return true;
    while (p.at < p.end) {
        struct func_param x = {.first = p.at};
        x.type = ast_alloc(&f->types, sizeof *x.type);
        if (token_op(ts, p.at, OP_ELLIPSIS)) {
            f->variadic = true;
            p.at++;
        } else {
            if (!parse_type(&p, x.type) || !parse_declarator(&p, x.type, &x.name))
                return false;
            x.name = x.name ? x.name : "";
            x.end = p.at;
            vec_push(&f->params, x);
        }
        if (token_op(ts, p.at, OP_COMMA) && p.at < p.end)
            p.at++;
        else if (p.at < p.end)
            return false;
    }
    return true;
}

int func_find(struct func *f, const struct tokens *ts, const char *path, const char *name, bool cxx,
              struct err *e)
{
    struct finding x = {.ts = ts, .name = name};
    *f = (struct func){0};
    f->types.cxx = cxx;
    each_definition(ts, match_name, &x);
    if (x.count == 0)
        return not_found(ts, path, name, e);
    if (x.count > 1)
        return err_set(e, ERR_USAGE, "Keep one definition in this file.", "%s defines %s %d times", path,
                       name, x.count);
    f->name_tok = x.tok;
    f->open_paren = x.tok + 1;
    f->close_paren = ts->t.v[f->open_paren].match;
    f->open = x.open;
    f->close = ts->t.v[x.open].match;
    f->types.ts = ts;
    f->name = ast_strn(&f->types, name, strlen(name));
    uint32_t first = x.tok;
    while (first > 0) {
        const struct token *t = &ts->t.v[first - 1];
        bool part = t->kind == TOK_IDENT || t->kind == TOK_STR ||
                    (t->kind == TOK_PUNCT && (t->op == OP_MUL || t->op == OP_LT || t->op == OP_GT ||
                                              t->op == OP_RPAREN || t->op == OP_LPAREN || t->op == OP_COMMA));
        if (!part)
            break;
        first--;
        f->is_static |= token_is(ts, first, "static");
        f->is_inline |= token_is(ts, first, "inline");
        f->is_global |= token_is(ts, first, "__global__");
        f->is_template |= token_is(ts, first, "template");
    }
    f->first = first;
    if (!params(f, ts)) {
        func_free(f);
        err_set(e, ERR_USAGE, "Write parameters as TYPE NAME.", "cannot read the parameters of %s", name);
        err_at(e, path, (int)ts->t.v[x.tok].line, (int)ts->t.v[x.tok].col);
        return -1;
    }
    return 0;
}

void func_free(struct func *f)
{
    vec_free(&f->params);
    ast_free(&f->types);
}

void func_param_print(const struct func *f, size_t i, struct str *out)
{
    ctype_print((struct ast *)(uintptr_t)&f->types, f->params.v[i].type, f->params.v[i].name, out);
}

void func_signature(const struct func *f, struct str *out)
{
    str_addf(out, "%s(", f->name);
    for (size_t i = 0; i < f->params.n; i++) {
        if (i)
            str_add(out, ", ");
        func_param_print(f, i, out);
    }
    str_addc(out, ')');
}

int func_check_task(const struct func *f, const struct tokens *ts, const char *path, const struct task *task,
                    err_list *errors)
{
    size_t before = errors->n;
    const struct token *at = &ts->t.v[f->name_tok];
    if (f->params.n != task->args.n)
        err_list_add(errors, path, (int)at->line, (int)at->col, "List every parameter in [args], in C order.",
                     "%s has %zu parameters, [args] has %zu", f->name, f->params.n, task->args.n);
    for (size_t i = 0; i < f->params.n && i < task->args.n; i++) {
        const struct func_param *p = &f->params.v[i];
        const struct task_arg *a = &task->args.v[i];
        const struct token *t = &ts->t.v[p->first];
        bool buffer = a->dir != ARG_DIM && a->dir != ARG_VAL, pointer = p->type->ptr + p->type->rank > 0;
        if (buffer != pointer)
            err_list_add(errors, path, (int)t->line, (int)t->col, "Correct the order or the kind in [args].",
                         "parameter %zu is %s, [args] calls it %s a buffer", i + 1,
                         pointer ? "a pointer" : "a value", buffer ? "" : "not");
        bool known = false;
        for (const char *const *c = dtype_info(a->type)->c_names; *c; c++)
            known |= str_eq(*c, p->type->base);
        if (!known && p->type->base)
            err_list_add(errors, path, (int)t->line, (int)t->col, "Correct the type in [args].",
                         "parameter %zu (%s) is %s, [args] says %s", i + 1, p->name, p->type->base,
                         dtype_info(a->type)->name);
    }
    return errors->n > before ? -1 : 0;
}
