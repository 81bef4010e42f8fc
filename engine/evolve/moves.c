#include "evolve/moves.h"

#include "base/task.h"
#include "evolve/genes.h"
#include "source/annot.h"

static void add_move(moves *out, const char *op, const char *words, const char *rule, const char *where,
                     const json *params)
{
    struct move m = {0};
    snprintf(m.op, sizeof m.op, "%s", op);
    snprintf(m.words, sizeof m.words, "%s", words);
    edits_add(&m.edit, rule, where, params);
    vec_push(out, m);
}

// One move for the defaults, and one for each other value of each choice.
static void add_site(moves *out, const struct rule *r, const struct rule_site *site)
{
    json *defaults = json_object();
    for (const json *c = json_first(site->params); c; c = json_next(c))
        if (json_first(c))
            json_put(defaults, json_key(c), json_copy(json_first(c)));
    char words[300];
    snprintf(words, sizeof words, "%s at %s: %s", r->name, site->where, site->why);
    add_move(out, r->name, words, r->name, site->where, site->params ? defaults : NULL);
    for (const json *c = json_first(site->params); c; c = json_next(c)) {
        const json *v = json_first(c);
        for (v = v ? json_next(v) : NULL; v; v = json_next(v)) {
            json *params = json_object();
            for (const json *d = json_first(defaults); d; d = json_next(d))
                json_put(params, json_key(d), json_copy(str_eq(json_key(d), json_key(c)) ? v : d));
            add_move(out, r->name, words, r->name, site->where, params);
            json_free(params);
        }
    }
    json_free(defaults);
}

static int add_function(const struct moves_env *env, const char *func, const char *text, size_t len,
                        moves *out, struct err *e)
{
    struct rule_source s;
    if (rule_source_open(&s, text, len, env->path, func, env->task, e) < 0)
        return -1;
    for (size_t i = 0; i < rule_table_n; i++) {
        rule_sites found = {0};
        if (rule_fits(rule_table[i], &s))
            rule_table[i]->sites(&s, &found);
        for (size_t k = 0; k < found.n; k++) {
            char *where = rule_where(env->task->kernel_func, func, found.v[k].where);
            free(found.v[k].where);
            found.v[k].where = where;
            if (found.v[k].ok)
                add_site(out, rule_table[i], &found.v[k]);
        }
        rule_sites_free(&found);
    }
    rule_source_close(&s);
    return 0;
}

static int add_rules(const struct moves_env *env, const char *text, size_t len, moves *out, struct err *e)
{
    func_names all = {0};
    int r = 0;
    rule_functions(text, len, env->path, env->task->kernel_func, env->task, &all);
    for (size_t i = 0; i < all.n && r == 0; i++)
        r = add_function(env, all.v[i], text, len, out, e);
    func_names_free(&all);
    return r;
}

static void add_genes(const struct moves_env *env, const char *text, size_t len, moves *out)
{
    struct annots a;
    err_list errors = {0};
    annot_read(&a, text, len, env->path, &errors);
    vec_free(&errors);
    strings now = {0};
    for (size_t i = 0; i < a.flags.n; i++)
        vec_push(&now, a.flags.v[i]);
    int allowed[64], n = genes_allowed(env->task, allowed, (int)countof(allowed));
    for (int i = 0; i < n; i++) {
        strings next;
        const struct gene *g = &genes[allowed[i]];
        if (genes_toggle(&now, allowed[i], &next)) {
            struct str line = {0};
            for (size_t k = 0; k < next.n; k++)
                str_addf(&line, "%s%s", k ? " " : "", next.v[k]);
            json *params = json_object();
            json_put_str(params, "flags", str_c(&line));
            char words[256];
            snprintf(words, sizeof words, "%s %s: %s", genes_has(&now, allowed[i]) ? "drop" : "compile with",
                     g->flags, g->why);
            add_move(out, "flags", words, "flags", "", params);
            json_free(params);
            str_free(&line);
        }
        for (size_t k = 0; k < next.n; k++)
            free(next.v[k]);
        vec_free(&next);
    }
    vec_free(&now);
    annot_free(&a);
}

int moves_list(const struct moves_env *env, const char *text, size_t len, moves *out, struct err *e)
{
    add_genes(env, text, len, out);
    return add_rules(env, text, len, out, e);
}

void moves_free(moves *m)
{
    for (size_t i = 0; i < m->n; i++)
        edits_free(&m->v[i].edit);
    vec_free(m);
}

int moves_apply(const struct moves_env *env, const struct edits *edits, const char *text, size_t len,
                struct str *out, struct err *e)
{
    struct edits_env ee = {rule_table, rule_table_n, env->path, env->task->kernel_func, env->task};
    return edits_replay(edits, text, len, &ee, out, NULL, NULL, e);
}
