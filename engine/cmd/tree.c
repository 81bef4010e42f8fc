// ksmith tree: who came from whom.
#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/show_text.h"

#include <langinfo.h>

struct tree {
    const struct state *s;
    const int64_t *first, *next; // child lists by first parent
    bool all, utf8;
    struct str prefix;
};

static bool interesting(const struct cand *c)
{
    return c->id == 0 || c->accepted || c->archived || c->pinned || c->commit[0];
}

// Whether c or anything below it is shown.
static bool shown(const struct tree *t, int64_t id)
{
    if (t->all || interesting(state_cand(t->s, id)))
        return true;
    for (int64_t k = t->first[id]; k >= 0; k = t->next[k])
        if (shown(t, k))
            return true;
    return false;
}

static void print_node(struct tree *t, int64_t id, const char *branch)
{
    const struct cand *c = state_cand(t->s, id);
    char speed[64];
    show_speedup(speed, sizeof speed, c->speedup, c->speed_low, c->speed_high);
    printf("%s%s%lld %s %s%s", str_c(&t->prefix), branch, (long long)id, state_word(t->s, c), c->speedup > 0 ? speed : "",
           c->pinned ? " [pinned]" : "");
    if (c->parents[1] >= 0)
        printf(" (also from %lld)", (long long)c->parents[1]);
    fputs("  ", stdout);
    show_clean(c->subject, stdout);
    putchar('\n');
}

static void walk(struct tree *t, int64_t id, const char *branch, const char *below)
{
    print_node(t, id, branch);
    size_t len = t->prefix.len;
    str_add(&t->prefix, below);
    for (int64_t k = t->first[id]; k >= 0;) {
        int64_t next = t->next[k];
        while (next >= 0 && !shown(t, next))
            next = t->next[next];
        if (shown(t, k)) {
            if (t->utf8)
                walk(t, k, next >= 0 ? "├─ " : "└─ ", next >= 0 ? "│  " : "   ");
            else
                walk(t, k, next >= 0 ? "|- " : "`- ", next >= 0 ? "|  " : "   ");
        }
        k = next;
    }
    t->prefix.len = len;
    if (t->prefix.s)
        t->prefix.s[len] = 0;
}

static void print_tree(const struct state *s, bool all)
{
    size_t n = s->cands.n;
    int64_t *first = xmalloc(n * sizeof *first), *next = xmalloc(n * sizeof *next);
    for (size_t i = 0; i < n; i++)
        first[i] = next[i] = -1;
    for (size_t i = n; i-- > 1;) { // backwards, so that children end up in order
        int64_t p = s->cands.v[i].parents[0];
        if (p >= 0) {
            next[i] = first[p];
            first[p] = (int64_t)i;
        }
    }
    struct tree t = {.s = s, .first = first, .next = next, .all = all, .utf8 = str_eq(nl_langinfo(CODESET), "UTF-8")};
    if (n)
        walk(&t, 0, "", "");
    str_free(&t.prefix);
    free(first);
    free(next);
}

static int run(struct args *a)
{
    struct session s;
    struct err e = {0};
    if (session_read(&s, a->dir, &e) < 0)
        return cmd_fail(&e);
    print_tree(&s.state, args_flag(a, "all"));
    session_close(&s);
    return 0;
}

static const struct opt opts[] = {{"all", NULL, "failed candidates too"}, OPT_END};

const struct cmd cmd_tree = {
    .name = "tree",
    .args = "[DIR]",
    .help = "who came from whom",
    .group = "read",
    .takes_dir = true,
    .opts = opts,
    .run = run,
};
