// Names of places that survive edits elsewhere: the loops around a statement by their counters, "#2" for the
// second of a name.
#include "source/edits.h"

#include "base/task.h"

static const char *counter_of(const struct analysis *a, const struct node *n)
{
    const struct loop *l = n->kind == N_FOR ? analysis_loop(a, n) : NULL;
    return l ? l->var : "?";
}

static const struct node *for_around(const struct node *n)
{
    for (n = n->up; n && n->kind != N_FOR;)
        n = n->up;
    return n;
}

struct ranking {
    const struct analysis *a;
    const struct node *of;
    int rank;
};

// Counts what has the same name below the same loop, up to the statement itself: other statements than loops
// go by number.
static bool count_alike(void *user, struct node *n)
{
    struct ranking *r = user;
    if (n->first > r->of->first || node_is_expr(n))
        return false;
    bool loop = r->of->kind == N_FOR;
    bool alike = loop ? n->kind == N_FOR && str_eq(counter_of(r->a, n), counter_of(r->a, r->of))
                      : n->kind <= N_OPAQUE && n->kind != N_FOR;
    // A node inside may begin at the same token as the statement: it comes after it.
    if (alike && n->up && for_around(n) == for_around(r->of) &&
        !(n->first == r->of->first && n->end < r->of->end))
        r->rank++;
    return n != r->of;
}

static int rank_of(const struct analysis *a, const struct node *n)
{
    struct ranking r = {a, n, 0};
    node_walk(a->t->root, count_alike, &r);
    return r.rank;
}

char *site_of(const struct analysis *a, const struct node *stmt)
{
    const struct node *chain[16];
    int n = 0;
    for (const struct node *k = stmt->kind == N_FOR ? stmt : for_around(stmt); k && n < 16; k = for_around(k))
        chain[n++] = k;
    struct str out = {0};
    for (int i = n - 1; i >= 0; i--) {
        int rank = rank_of(a, chain[i]);
        str_addf(&out, "%sfor %s", out.len ? " / " : "", counter_of(a, chain[i]));
        if (rank > 1)
            str_addf(&out, " #%d", rank);
    }
    if (stmt->kind != N_FOR)
        str_addf(&out, "%sstmt %d", out.len ? " / " : "", rank_of(a, stmt));
    return str_steal(&out);
}

struct searching {
    const struct analysis *a;
    const char *where;
    struct node *found;
};

static bool search(void *user, struct node *n)
{
    struct searching *s = user;
    if (s->found)
        return false;
    if (n->kind <= N_OPAQUE && n->up) {
        char *name = site_of(s->a, n);
        if (str_eq(name, s->where))
            s->found = n;
        free(name);
    }
    return !s->found && !node_is_expr(n);
}

struct node *site_find(const struct analysis *a, const char *where)
{
    struct searching s = {a, where, NULL};
    node_walk(a->t->root, search, &s);
    return s.found;
}

int rule_source_open(struct rule_source *s, const char *text, size_t len, const char *path, const char *func,
                     const struct task *task, struct err *e)
{
    bool cxx = func_is_cxx(path);
    *s = (struct rule_source){.text = text, .len = len, .path = path, .task = task};
    tokens_read(&s->ts, text, len);
    if (func_find(&s->f, &s->ts, path, func, cxx, e) < 0) {
        tokens_free(&s->ts);
        return -1;
    }
    ast_parse(&s->t, &s->ts, s->f.open, cxx);
    // A task's buffers are distinct: the referee never makes two arguments overlap.
    analysis_run(&s->a, &s->t, &s->f, task != NULL);
    s->threads = task && task->allow_threads;
    s->fast_math = task && task->allow_fast_math;
    return 0;
}

void rule_source_close(struct rule_source *s)
{
    analysis_free(&s->a);
    ast_free(&s->t);
    func_free(&s->f);
    tokens_free(&s->ts);
}

void rule_sites_free(rule_sites *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].where);
        json_free(s->v[i].params);
    }
    vec_free(s);
}
