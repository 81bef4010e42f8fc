#include "evolve/genes.h"

#include "base/str.h"

const struct gene genes[] = {
    {"level", "-O3", false, false, "more optimization passes", false},
    {"level", "-O2", false, false, "fewer optimization passes: smaller code", false},
    {"arch", "-march=native", false, false, "use this machine's vector instructions", false},
    {"width", "-mprefer-vector-width=512", false, false, "512-bit vectors where the compiler would take 256",
     false},
    {"width", "-mprefer-vector-width=256", false, false, "256-bit vectors", false},
    {"unroll", "-funroll-loops", false, false, "unroll loops with a trip count known on entry", false},
    {"errno", "-fno-math-errno", false, false, "math functions need not set errno", false},
    {"trap", "-fno-trapping-math", false, false, "floating-point operations have no visible traps", false},
    {"tree", "-fno-tree-vectorize", false, false, "no automatic vectors: for loops that are too short",
     false},
    {"tree", "-fvect-cost-model=unlimited", false, false,
     "vectorize also where the compiler's model doubts it", false},
    {"align", "-falign-loops=64", false, false, "loops start on a cache line", false},
    {"prefetch", "-fprefetch-loop-arrays", false, false, "the compiler adds prefetches", false},
    {"math", "-fno-signed-zeros", true, false, "-0.0 and 0.0 may be exchanged", false},
    {"math", "-freciprocal-math", true, false, "x/y may become x*(1/y)", false},
    {"math", "-fassociative-math -fno-signed-zeros -fno-trapping-math", true, false, "sums may be reordered",
     false},
    {"math", "-ffast-math", true, false, "all of them, and vector math functions of the C library", false},
    {"openmp", "-fopenmp", false, true, "OpenMP threads", false},
    {"registers", "-maxrregcount=32", false, false, "at most 32 registers a thread: more warps at once",
     true},
    {"registers", "-maxrregcount=64", false, false, "at most 64 registers a thread", true},
    {"registers", "-maxrregcount=128", false, false, "at most 128 registers a thread", true},
    {"vector", "-extra-device-vectorization", false, false, "the compiler looks harder for wide accesses",
     true},
    {"math", "-ftz=true", true, false, "denormal numbers become zero", true},
    {"division", "-prec-div=false", true, false, "division to 2 ulp", true},
    {"root", "-prec-sqrt=false", true, false, "square roots to 3 ulp", true},
    {"math", "-use_fast_math", true, false, "all of them, and the fast versions of expf, logf, sinf, ...",
     true},
};
const int genes_n = (int)countof(genes);

static bool list_has(const strings *l, const char *word, size_t n)
{
    for (size_t i = 0; i < l->n; i++)
        if (strlen(l->v[i]) == n && strncmp(l->v[i], word, n) == 0)
            return true;
    return false;
}

// Calls for each word of flags; stops where fn returns false, and returns that.
static bool each_word(const char *flags, bool (*fn)(void *user, const char *word, size_t n), void *user)
{
    while (*flags) {
        size_t n = strcspn(flags, " ");
        if (n && !fn(user, flags, n))
            return false;
        flags += n + (flags[n] == ' ');
    }
    return true;
}

static bool in_list(void *user, const char *word, size_t n)
{
    return list_has(user, word, n);
}

bool genes_has(const strings *flags, int g)
{
    return each_word(genes[g].flags, in_list, (void *)(uintptr_t)flags);
}

int genes_allowed(const struct task *t, int *out, int max)
{
    int n = 0;
    for (int g = 0; g < genes_n && n < max; g++) {
        if (genes[g].cuda != (t->backend == BACKEND_CUDA) || (genes[g].fast_math && !t->allow_fast_math) ||
            (genes[g].threads && !t->allow_threads))
            continue;
        if (!genes_has(&t->cflags, g))
            out[n++] = g;
    }
    return n;
}

static bool not_in_gene(const char *word, const char *flags)
{
    size_t n = strlen(word);
    for (const char *at = flags; (at = strstr(at, word)); at += n)
        if ((at == flags || at[-1] == ' ') && (at[n] == 0 || at[n] == ' '))
            return false;
    return true;
}

static bool push_word(void *user, const char *word, size_t n)
{
    strings *out = user;
    if (!list_has(out, word, n))
        vec_push(out, xstrndup(word, n));
    return true;
}

bool genes_toggle(const strings *flags, int g, strings *out)
{
    *out = (strings){0};
    bool had = genes_has(flags, g);
    for (size_t i = 0; i < flags->n; i++) {
        bool keep = true;
        for (int other = 0; other < genes_n && keep; other++)
            if (str_eq(genes[other].group, genes[g].group) && !not_in_gene(flags->v[i], genes[other].flags))
                keep = false;
        if (keep)
            vec_push(out, xstrdup(flags->v[i]));
    }
    if (!had)
        each_word(genes[g].flags, push_word, out);
    bool same = out->n == flags->n;
    for (size_t i = 0; i < out->n && same; i++)
        same = list_has(flags, out->v[i], strlen(out->v[i]));
    return !same;
}

bool genes_exclude(const char *word, const char *other)
{
    for (int g = 0; g < genes_n; g++)
        for (int h = 0; h < genes_n; h++)
            if (g != h && str_eq(genes[g].group, genes[h].group) && str_eq(genes[g].flags, word) &&
                str_eq(genes[h].flags, other))
                return true;
    return false;
}
