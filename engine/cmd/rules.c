// ksmith rules: what the rewriting rules do, and where each applies in a kernel or refuses, and why.
#include "cmd/cmd.h"

#include "base/io.h"
#include "base/task.h"
#include "cmd/show_text.h"
#include "evolve/oneshot.h"
#include "rules/rule.h"

static const char *risk_word(enum rule_risk risk)
{
    static const char *const words[] = {[RISK_NONE] = "none",
                                        [RISK_WORK] = "order of work",
                                        [RISK_ROUND] = "rounding",
                                        [RISK_SHAPE] = "structure"};
    return words[risk];
}

static void list_rules(bool as_json)
{
    if (!as_json)
        printf("%-14s %-14s %s\n", "rule", "may change", "what it does");
    for (size_t i = 0; i < rule_table_n; i++) {
        const struct rule *r = rule_table[i];
        if (!as_json) {
            printf("%-14s %-14s %s\n", r->name, risk_word(r->risk), r->help);
            continue;
        }
        json *o = json_object();
        json_put_str(o, "rule", r->name);
        json_put_str(o, "help", r->help);
        json_put_str(o, "risk", risk_word(r->risk));
        show_json(o);
        json_free(o);
    }
}

static void site_json(const struct rule *r, const struct rule_site *site)
{
    json *o = json_object();
    json_put_str(o, "rule", r->name);
    json_put_str(o, "at", site->where);
    json_put_int(o, "line", site->line);
    json_put_bool(o, "ok", site->ok);
    json_put_str(o, "why", site->why);
    if (site->ok && json_first(site->params))
        json_put(o, "with", json_copy(site->params));
    show_json(o);
    json_free(o);
}

// " (U: 2 4 8)" for the choices that the site offers.
static void choices(const json *params, struct str *out)
{
    for (const json *c = json_first(params); c; c = json_next(c)) {
        str_addf(out, " (%s:", json_key(c));
        for (const json *v = json_first(c); v; v = json_next(v))
            str_addf(out, " %s", json_string(v) ? json_string(v) : "?");
        str_addc(out, ')');
    }
}

static void site_line(const struct rule *r, const struct rule_site *site)
{
    struct str text = {0};
    str_addf(&text, "line %-4d %-7s %s: %s", site->line, site->ok ? "applies" : "refuses", site->where,
             site->why);
    if (site->ok)
        choices(site->params, &text);
    printf("%-14s ", r->name);
    show_clean(str_c(&text), stdout);
    putchar('\n');
    str_free(&text);
}

struct counts {
    size_t offered, refused;
};

static int list_function(const char *text, const char *path, const char *func, const char *in,
                         const struct task *task, bool as_json, struct counts *c)
{
    struct rule_source s;
    struct err e = {0};
    if (rule_source_open(&s, text, strlen(text), path, in, task, &e) < 0)
        return cmd_fail(&e);
    for (size_t i = 0; i < rule_table_n; i++) {
        rule_sites found = {0};
        if (!rule_fits(rule_table[i], &s))
            continue;
        rule_table[i]->sites(&s, &found);
        for (size_t k = 0; k < found.n; k++) {
            char *where = rule_where(func, in, found.v[k].where);
            free(found.v[k].where);
            found.v[k].where = where;
            *(found.v[k].ok ? &c->offered : &c->refused) += 1;
            if (as_json)
                site_json(rule_table[i], &found.v[k]);
            else
                site_line(rule_table[i], &found.v[k]);
        }
        if (!found.n && !as_json && str_eq(func, in))
            printf("%-14s no place for it\n", rule_table[i]->name);
        rule_sites_free(&found);
    }
    rule_source_close(&s);
    return 0;
}

static int list_sites(const char *text, const char *path, const char *func, const struct task *task,
                      bool as_json)
{
    func_names all = {0};
    struct counts c = {0};
    int status = 0;
    rule_functions(text, strlen(text), path, func, task, &all);
    for (size_t i = 0; i < all.n && status == 0; i++)
        status = list_function(text, path, func, all.v[i], task, as_json, &c);
    if (!as_json && status == 0)
        printf("%s: rules apply at %zu places and refuse at %zu\n", func, c.offered, c.refused);
    func_names_free(&all);
    return status;
}

// A kernel of any file. Without a task threads and fast math are not allowed, and buffers may overlap.
static int of_file(const char *arg, bool as_json)
{
    const char *colon = strrchr(arg, ':');
    struct err e = {0};
    struct str text = {0};
    char *path = xstrndup(arg, (size_t)(colon - arg));
    int status = io_read_file(path, 4 << 20, &text, &e) < 0
                     ? cmd_fail(&e)
                     : list_sites(str_c(&text), path, colon + 1, NULL, as_json);
    str_free(&text);
    free(path);
    return status;
}

// The source of a candidate, the champion by default; of a session that never ran, the task's own kernel.
static char *source_of(const struct task *t, const char *word, struct err *e)
{
    char *journal = io_join(t->dir, ".ksmith/journal.jsonl");
    bool ran = io_exists(journal);
    free(journal);
    if (!ran && (!word || str_eq(word, "baseline")))
        return oneshot_baseline(t, e);
    struct session s;
    char *text = NULL;
    if (session_open(&s, t->dir, SESSION_READ, e) < 0)
        return NULL;
    const struct candidate *c = show_find(&s.state, word ? word : "champion", e);
    if (c)
        text = show_source(&s, c, e);
    session_close(&s);
    return text;
}

static int of_session(const char *from, const char *word, const struct args *a)
{
    struct task t;
    struct err e = {0};
    err_list errors = {0};
    size_t n;
    const char **set = args_values(a, "set", &n);
    char *dir = task_find_dir(from, &e), *text = NULL;
    int status;
    if (!dir)
        status = cmd_fail(&e);
    else if (task_load(dir, set, n, &t, &errors) < 0)
        status = cmd_fail_list(&errors);
    else {
        text = source_of(&t, word, &e);
        status =
            text ? list_sites(text, t.kernel_file, t.kernel_func, &t, args_flag(a, "json")) : cmd_fail(&e);
        task_free(&t);
    }
    free(text);
    free(dir);
    free(set);
    vec_free(&errors);
    return status;
}

static int run(struct args *a)
{
    const char *first = a->npos ? a->pos[0] : NULL, *colon = first ? strrchr(first, ':') : NULL;
    if (!first) {
        list_rules(args_flag(a, "json"));
        return 0;
    }
    if (io_is_dir(first))
        return of_session(first, a->npos > 1 ? a->pos[1] : NULL, a);
    if (a->npos > 1) {
        struct err e = {0};
        err_set(&e, ERR_USAGE, "Usage: ksmith rules [FILE:FUNCTION | [DIR] ID]", "%s is not a folder", first);
        return cmd_fail(&e);
    }
    return colon ? of_file(first, args_flag(a, "json")) : of_session(".", first, a);
}

static const struct opt opts[] = {OPT_JSON, OPT_SET, OPT_END};

const struct cmd cmd_rules = {
    .name = "rules",
    .args = "[FILE:FUNCTION | [DIR] ID]",
    .help = "the rewriting rules; where each applies in a kernel, or refuses and why",
    .more = "Without arguments: every rule, what it may change and what it does.\n"
            "ksmith rules src/norm.c:rmsnorm    a kernel of any file, no task needed: threads are not\n"
            "                                   allowed then, and buffers may overlap\n"
            "ksmith rules . champion            a candidate of a session, with what its task promises\n"
            "ksmith rules ~/sgemm               its champion; before the first run, its kernel",
    .group = "read",
    .max = 2,
    .opts = opts,
    .complete = "id",
    .run = run,
};
