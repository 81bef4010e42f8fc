// ksmith tree: who came from whom.
#include "cmd/cmd.h"
#include "cmd/show_text.h"

#include <langinfo.h>

struct tree {
    const struct state *s;
    bool all, utf8;
    struct str prefix;
};

static bool interesting(const struct candidate *c)
{
    return c->id == 0 || c->commit || (c->flags & (CF_ACCEPTED | CF_ARCHIVED | CF_PINNED));
}

// Whether c or anything below it is shown.
static bool shown(const struct tree *t, int64_t id)
{
    if (t->all || interesting(state_candidate(t->s, id)))
        return true;
    for (int64_t k = t->s->c.v[id].first_child; k >= 0; k = t->s->c.v[k].next_sibling)
        if (shown(t, k))
            return true;
    return false;
}

static void print_node(struct tree *t, int64_t id, const char *branch)
{
    const struct candidate *c = state_candidate(t->s, id);
    char speed[64];
    show_speedup(speed, sizeof speed, c->speedup);
    printf("%s%s%lld %s %s%s", str_c(&t->prefix), branch, (long long)id, show_word(t->s, c),
           c->speedup.value > 0 ? speed : "", c->flags & CF_PINNED ? " [pinned]" : "");
    if (c->nparents > 1)
        printf(" (also from %lld)", (long long)c->parents[1]);
    fputs("  ", stdout);
    show_clean(c->title ? c->title : "", stdout);
    putchar('\n');
}

static void walk(struct tree *t, int64_t id, const char *branch, const char *below)
{
    print_node(t, id, branch);
    size_t len = t->prefix.len;
    str_add(&t->prefix, below);
    for (int64_t k = t->s->c.v[id].first_child; k >= 0;) {
        int64_t next = t->s->c.v[k].next_sibling;
        while (next >= 0 && !shown(t, next))
            next = t->s->c.v[next].next_sibling;
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
    struct tree t = {.s = s, .all = all, .utf8 = str_eq(nl_langinfo(CODESET), "UTF-8")};
    if (s->c.n)
        walk(&t, 0, "", "");
    str_free(&t.prefix);
}

static int run(struct args *a)
{
    struct session s;
    struct err e = {0};
    if (session_open(&s, a->dir, SESSION_READ, &e) < 0)
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
