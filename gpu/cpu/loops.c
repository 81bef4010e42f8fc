#include "cpu/loops.h"

#include "base/vec.h"

struct block {
    int first, last;  // instructions
    int next[2];      // successors, -1 for none
    int order;        // in reverse postorder; -1: not reached
    int idom;         // immediate dominator
    int depth, inner; // result
    int inner_size;
};
struct graph {
    struct block *b;
    int n;
    int *rpo; // blocks in reverse postorder
    int reached;
};

static int find_insn(const struct flow_insn *v, size_t n, uint64_t address)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (v[mid].address < address)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && v[low].address == address ? (int)low : -1;
}

static void build(struct flow_insn *v, size_t n, struct graph *g, int *block_of)
{
    bool *leader = xcalloc(n + 1, sizeof *leader);
    leader[0] = true;
    for (size_t i = 0; i < n; i++) {
        if (v[i].flow == FLOW_NEXT)
            continue;
        leader[i + 1] = true;
        int t = find_insn(v, n, v[i].target);
        if (t >= 0)
            leader[t] = true;
    }
    g->b = xcalloc(n, sizeof *g->b);
    for (size_t i = 0; i < n; i++) {
        if (leader[i])
            g->b[g->n++].first = (int)i;
        block_of[i] = g->n - 1;
        g->b[g->n - 1].last = (int)i;
    }
    for (int k = 0; k < g->n; k++) {
        struct block *b = &g->b[k];
        const struct flow_insn *end = &v[b->last];
        bool falls = end->flow == FLOW_NEXT || end->flow == FLOW_BRANCH;
        int t = end->flow == FLOW_JUMP || end->flow == FLOW_BRANCH ? find_insn(v, n, end->target) : -1;
        b->next[0] = falls && k + 1 < g->n ? k + 1 : -1;
        b->next[1] = t < 0 ? -1 : block_of[t];
        b->order = b->idom = b->inner = -1;
    }
    free(leader);
}

// Depth-first without recursion; machine code of a hostile kernel may be deep.
static void number(struct graph *g)
{
    int *stack = xcalloc((size_t)g->n, sizeof *stack), *at = xcalloc((size_t)g->n, sizeof *at), depth = 0,
        post = g->n;
    bool *seen = xcalloc((size_t)g->n, sizeof *seen);
    g->rpo = xcalloc((size_t)g->n, sizeof *g->rpo);
    stack[depth++] = 0;
    seen[0] = true;
    while (depth) {
        int k = stack[depth - 1];
        if (at[k] < 2) {
            int s = g->b[k].next[at[k]++];
            if (s >= 0 && !seen[s]) {
                seen[s] = true;
                stack[depth++] = s;
            }
            continue;
        }
        g->rpo[--post] = k;
        depth--;
    }
    g->reached = g->n - post;
    memmove(g->rpo, g->rpo + post, (size_t)g->reached * sizeof *g->rpo);
    for (int i = 0; i < g->reached; i++)
        g->b[g->rpo[i]].order = i;
    free(stack);
    free(at);
    free(seen);
}

typedef VEC(int) ints;
// Predecessors of every block, one after the other; those of k stand at [start[k], start[k+1]).
static void predecessors(const struct graph *g, ints *list, int *start)
{
    for (int k = 0; k < g->n; k++)
        for (int s = 0; s < 2; s++)
            if (g->b[k].order >= 0 && g->b[k].next[s] >= 0)
                start[g->b[k].next[s] + 1]++;
    for (int k = 0; k < g->n; k++)
        start[k + 1] += start[k];
    list->n = (size_t)start[g->n];
    list->v = xcalloc(list->n + 1, sizeof *list->v);
    int *fill = xcalloc((size_t)g->n, sizeof *fill);
    for (int k = 0; k < g->n; k++) {
        for (int s = 0; s < 2; s++) {
            int t = g->b[k].next[s];
            if (g->b[k].order >= 0 && t >= 0)
                list->v[start[t] + fill[t]++] = k;
        }
    }
    free(fill);
}

static int common(const struct graph *g, int a, int b)
{
    while (a != b) {
        while (g->b[a].order > g->b[b].order)
            a = g->b[a].idom;
        while (g->b[b].order > g->b[a].order)
            b = g->b[b].idom;
    }
    return a;
}

// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
static void dominate(struct graph *g, const ints *pred, const int *start)
{
    g->b[0].idom = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 1; i < g->reached; i++) {
            int k = g->rpo[i], dom = -1;
            for (int p = start[k]; p < start[k + 1]; p++) {
                int q = pred->v[p];
                if (g->b[q].idom >= 0)
                    dom = dom < 0 ? q : common(g, dom, q);
            }
            changed |= g->b[k].idom != dom;
            g->b[k].idom = dom;
        }
    }
}

static bool dominates(const struct graph *g, int a, int b)
{
    while (b != a && b != 0)
        b = g->b[b].idom;
    return b == a;
}

// All back edges to one header make one loop; its body is what reaches them without passing the header.
static void mark_loop(struct graph *g, int header, const ints *pred, const int *start, int *mark)
{
    ints body = {0};
    for (int p = start[header]; p < start[header + 1]; p++) {
        int tail = pred->v[p];
        if (dominates(g, header, tail) && mark[tail] != header + 1) {
            mark[tail] = header + 1;
            vec_push(&body, tail);
        }
    }
    if (body.n && mark[header] != header + 1) {
        mark[header] = header + 1;
        vec_push(&body, header);
    }
    for (size_t i = 0; i < body.n; i++) {
        int k = body.v[i];
        for (int p = k == header ? start[k + 1] : start[k]; p < start[k + 1]; p++) {
            if (mark[pred->v[p]] != header + 1) {
                mark[pred->v[p]] = header + 1;
                vec_push(&body, pred->v[p]);
            }
        }
    }
    for (size_t i = 0; i < body.n; i++) {
        struct block *b = &g->b[body.v[i]];
        b->depth++;
        if (b->inner < 0 || (int)body.n < b->inner_size) {
            b->inner = header;
            b->inner_size = (int)body.n;
        }
    }
    vec_free(&body);
}

int loops_find(struct flow_insn *v, size_t n)
{
    if (!n)
        return 0;
    struct graph g = {0};
    int *block_of = xcalloc(n, sizeof *block_of), deepest = 0;
    build(v, n, &g, block_of);
    number(&g);
    ints pred = {0};
    int *start = xcalloc((size_t)g.n + 1, sizeof *start), *mark = xcalloc((size_t)g.n, sizeof *mark);
    predecessors(&g, &pred, start);
    dominate(&g, &pred, start);
    for (int i = 0; i < g.reached; i++)
        mark_loop(&g, g.rpo[i], &pred, start, mark);
    for (size_t i = 0; i < n; i++) {
        v[i].depth = g.b[block_of[i]].depth;
        v[i].loop = g.b[block_of[i]].inner;
        deepest = v[i].depth > deepest ? v[i].depth : deepest;
    }
    vec_free(&pred);
    free(g.b);
    free(g.rpo);
    free(start);
    free(mark);
    free(block_of);
    return deepest;
}
