#include "base/cflags.h"

#include "base/str.h"

#include <ctype.h>

enum value_kind {
    PLAIN,  // the flag as it is
    NUMBER, // followed by a number from low to high
    WORD,   // followed by one of words
    COUNTS, // followed by up to four numbers with ':' between, each from low to high
};

// -ffast-math consists of parts. Those marked `math` change what a program computes: they reorder sums, flush
// or ignore NaN and infinities, or replace a division; they need the task's consent. The two that are not
// marked only drop errno and floating-point traps, which no checked output can show.
static const struct flag {
    const char *text;
    enum value_kind kind;
    long low, high;
    const char *words; // separated by blanks
    bool math, threads;
} flags[] = {
    {"-O0", PLAIN, 0, 0, NULL, false, false},
    {"-O1", PLAIN, 0, 0, NULL, false, false},
    {"-O2", PLAIN, 0, 0, NULL, false, false},
    {"-O3", PLAIN, 0, 0, NULL, false, false},
    {"-Os", PLAIN, 0, 0, NULL, false, false},
    {"-march=", WORD, 0, 0, "native x86-64 x86-64-v2 x86-64-v3 x86-64-v4", false, false},
    {"-mtune=", WORD, 0, 0,
     "native generic haswell skylake skylake-avx512 icelake-server sapphirerapids znver1 znver2 znver3 "
     "znver4",
     false, false},
    {"-mprefer-vector-width=", WORD, 0, 0, "none 128 256 512", false, false},
    {"-mfma", PLAIN, 0, 0, NULL, false, false},
    {"-mavx2", PLAIN, 0, 0, NULL, false, false},
    {"-mno-avx512f", PLAIN, 0, 0, NULL, false, false},
    {"-mno-vzeroupper", PLAIN, 0, 0, NULL, false, false},
    {"-funroll-loops", PLAIN, 0, 0, NULL, false, false},
    {"-fno-unroll-loops", PLAIN, 0, 0, NULL, false, false},
    {"-funroll-all-loops", PLAIN, 0, 0, NULL, false, false},
    {"-fpeel-loops", PLAIN, 0, 0, NULL, false, false},
    {"-fno-peel-loops", PLAIN, 0, 0, NULL, false, false},
    {"-fsplit-loops", PLAIN, 0, 0, NULL, false, false},
    {"-fno-split-loops", PLAIN, 0, 0, NULL, false, false},
    {"-funswitch-loops", PLAIN, 0, 0, NULL, false, false},
    {"-fno-unswitch-loops", PLAIN, 0, 0, NULL, false, false},
    {"-fvariable-expansion-in-unroller", PLAIN, 0, 0, NULL, false, false},
    {"-ftree-vectorize", PLAIN, 0, 0, NULL, false, false},
    {"-fno-tree-vectorize", PLAIN, 0, 0, NULL, false, false},
    {"-fno-tree-slp-vectorize", PLAIN, 0, 0, NULL, false, false},
    {"-fno-tree-loop-vectorize", PLAIN, 0, 0, NULL, false, false},
    {"-fno-tree-loop-distribute-patterns", PLAIN, 0, 0, NULL, false, false},
    {"-ftree-loop-distribution", PLAIN, 0, 0, NULL, false, false},
    {"-fno-tree-loop-distribution", PLAIN, 0, 0, NULL, false, false},
    {"-floop-interchange", PLAIN, 0, 0, NULL, false, false},
    {"-fno-loop-interchange", PLAIN, 0, 0, NULL, false, false},
    {"-floop-unroll-and-jam", PLAIN, 0, 0, NULL, false, false},
    {"-fno-loop-unroll-and-jam", PLAIN, 0, 0, NULL, false, false},
    {"-floop-nest-optimize", PLAIN, 0, 0, NULL, false, false},
    {"-fprefetch-loop-arrays", PLAIN, 0, 0, NULL, false, false},
    {"-fno-prefetch-loop-arrays", PLAIN, 0, 0, NULL, false, false},
    {"-fomit-frame-pointer", PLAIN, 0, 0, NULL, false, false},
    {"-fno-ivopts", PLAIN, 0, 0, NULL, false, false},
    {"-fno-tree-pre", PLAIN, 0, 0, NULL, false, false},
    {"-fno-gcse", PLAIN, 0, 0, NULL, false, false},
    {"-fschedule-insns", PLAIN, 0, 0, NULL, false, false},
    {"-fno-schedule-insns2", PLAIN, 0, 0, NULL, false, false},
    {"-fselective-scheduling2", PLAIN, 0, 0, NULL, false, false},
    {"-fira-region=", WORD, 0, 0, "all mixed one", false, false},
    {"-fira-algorithm=", WORD, 0, 0, "CB priority", false, false},
    {"-fvect-cost-model=", WORD, 0, 0, "unlimited dynamic cheap very-cheap", false, false},
    {"-fsimd-cost-model=", WORD, 0, 0, "unlimited dynamic cheap very-cheap", false, false},
    {"-ffp-contract=", WORD, 0, 0, "off on fast", false, false},
    {"-falign-loops", PLAIN, 0, 0, NULL, false, false},
    {"-falign-loops=", COUNTS, 1, 4096, NULL, false, false},
    {"-falign-functions=", COUNTS, 1, 4096, NULL, false, false},
    {"-falign-jumps=", COUNTS, 1, 4096, NULL, false, false},
    {"-falign-labels=", COUNTS, 1, 4096, NULL, false, false},
    {"-finline-limit=", NUMBER, 0, 100000, NULL, false, false},
    {"-fno-math-errno", PLAIN, 0, 0, NULL, false, false},    // no output shows errno
    {"-fno-trapping-math", PLAIN, 0, 0, NULL, false, false}, // nor a trap that nobody enabled
    {"-fassociative-math", PLAIN, 0, 0, NULL, true,
     false}, // sums in another order; gcc wants the two no- flags above and -fno-signed-zeros beside it
    {"-fno-signed-zeros", PLAIN, 0, 0, NULL, true, false},  // -0 may become 0
    {"-freciprocal-math", PLAIN, 0, 0, NULL, true, false},  // x/y becomes x*(1/y)
    {"-ffinite-math-only", PLAIN, 0, 0, NULL, true, false}, // NaN and infinity may be mishandled
    {"-funsafe-math-optimizations", PLAIN, 0, 0, NULL, true, false},
    {"-ffast-math", PLAIN, 0, 0, NULL, true, false}, // all of these; only whole does it bring the vector expf
    {"-Ofast", PLAIN, 0, 0, NULL, true, false},
    {"-fopenmp-simd", PLAIN, 0, 0, NULL, false, false}, // only the simd pragmas: no thread
    {"-fopenmp", PLAIN, 0, 0, NULL, false, true},
};

// Numbers of --param x=N that steer loops, vectors and inlining. Others can make the compiler run for
// minutes.
static const struct param {
    const char *name;
    long low, high;
} params[] = {
    {"max-unroll-times", 1, 64},
    {"max-unrolled-insns", 1, 4000},
    {"max-average-unrolled-insns", 1, 2000},
    {"max-completely-peeled-insns", 1, 4000},
    {"max-completely-peel-times", 1, 128},
    {"max-peel-times", 1, 64},
    {"max-peeled-insns", 1, 2000},
    {"max-variable-expansions-in-unroller", 1, 16},
    {"unroll-jam-max-unroll", 1, 32},
    {"unroll-jam-min-percent", 0, 100},
    {"vect-partial-vector-usage", 0, 2},
    {"vect-max-version-for-alias-checks", 0, 64},
    {"vect-epilogues-nomask", 0, 1},
    {"prefetch-latency", 1, 2000},
    {"simultaneous-prefetches", 1, 64},
    {"min-insn-to-prefetch-ratio", 0, 100},
    {"prefetch-min-insn-to-mem-ratio", 0, 100},
    {"loop-block-tile-size", 1, 512},
    {"inline-unit-growth", 1, 1000},
    {"max-inline-insns-single", 1, 2000},
    {"max-inline-insns-auto", 1, 2000},
};

static bool number_within(const char *s, size_t n, long low, long high)
{
    if (n == 0 || n > 7)
        return false;
    long x = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)s[i]))
            return false;
        x = 10 * x + (s[i] - '0');
    }
    return x >= low && x <= high;
}

static bool counts_within(const char *s, long low, long high)
{
    int n = 1;
    for (const char *colon; n <= 4; s = colon + 1, n++) {
        colon = strchr(s, ':');
        if (!number_within(s, colon ? (size_t)(colon - s) : strlen(s), low, high))
            return false;
        if (!colon)
            return true;
    }
    return false;
}

static bool one_of(const char *s, const char *words)
{
    size_t n = strlen(s);
    for (const char *at = words; n; at++) {
        size_t len = strcspn(at, " ");
        if (len == n && strncmp(at, s, n) == 0)
            return true;
        at += len;
        if (!*at)
            break;
    }
    return false;
}

static const struct flag *find(const char *flag)
{
    const struct flag *best = NULL;
    for (size_t i = 0; i < countof(flags); i++)
        if (flags[i].kind == PLAIN ? str_eq(flags[i].text, flag) : str_starts(flag, flags[i].text))
            best = &flags[i];
    return best;
}

static int check_param(const char *flag, struct err *e)
{
    const char *at = flag + strlen("--param"), *eq = strchr(at, '=');
    if (*at == '=')
        eq = strchr(++at, '=');
    for (size_t i = 0; eq && i < countof(params); i++) {
        if (strlen(params[i].name) != (size_t)(eq - at) ||
            strncmp(params[i].name, at, (size_t)(eq - at)) != 0)
            continue;
        if (number_within(eq + 1, strlen(eq + 1), params[i].low, params[i].high))
            return 0;
        return err_set(e, ERR_USAGE, "Choose a value in that range.", "'%s' must lie between %ld and %ld",
                       flag, params[i].low, params[i].high);
    }
    return err_set(e, ERR_USAGE, "Use a parameter of the list in ksmith-task(5), as --param=NAME=NUMBER.",
                   "the parameter of '%s' is not on the list", flag);
}

int cflags_check(const char *flag, bool allow_fast_math, struct err *e)
{
    if (str_starts(flag, "--param"))
        return check_param(flag, e);
    const struct flag *f = find(flag);
    if (!f) {
        const char *known[countof(flags)];
        for (size_t i = 0; i < countof(flags); i++)
            known[i] = flags[i].text;
        const char *near = str_nearest(flag, known, countof(known));
        char hint[160];
        snprintf(hint, sizeof hint,
                 near ? "Did you mean '%s'?" : "The list is in ksmith-task(5), under flags.", near);
        return err_set(e, ERR_USAGE, hint,
                       "the flag '%s' is not on the list of those that a candidate may carry", flag);
    }
    const char *value = flag + strlen(f->text);
    if ((f->kind == NUMBER && !number_within(value, strlen(value), f->low, f->high)) ||
        (f->kind == COUNTS && !counts_within(value, f->low, f->high)))
        return err_set(e, ERR_USAGE, "Choose a value in that range.", "'%s' wants numbers from %ld to %ld",
                       flag, f->low, f->high);
    if (f->kind == WORD && !one_of(value, f->words))
        return err_set(e, ERR_USAGE, "Choose one of these values.", "'%s' wants one of: %s", flag, f->words);
    if (f->math && !allow_fast_math)
        return err_set(e, ERR_USAGE,
                       "Add 'allow = fast-math' to the task's [build] section if results may change.",
                       "'%s' may change results, and the task does not allow that", flag);
    return 0;
}

const char *cflags_name(size_t i)
{
    return i < countof(flags) ? flags[i].text : NULL;
}

const char *cflags_param(size_t i)
{
    return i < countof(params) ? params[i].name : NULL;
}

bool cflags_threads(const char *flag)
{
    const struct flag *f = find(flag);
    return f && f->threads;
}

bool cflags_fast_math(const char *flag)
{
    const struct flag *f = find(flag);
    return f && f->math;
}

int cflags_check_task(const char *flag, struct err *e)
{
    // What the judge gives itself, or what makes the compiler run or read something else.
    static const char *const refused[] = {
        "-o",          "-c",      "-E",       "-S",       "-x",        "-wrapper",   "-specs",
        "-fplugin",    "-B",      "@",        "-Wl,",     "-Xlinker",  "-shared",    "-static",
        "-save-temps", "-fdump",  "-M",       "-pg",      "-fprofile", "--coverage", "-dump",
        "-aux",        "--specs", "-T",       "-L",       "-l",        "-include",   "-imacros",
        "-I",          "-iquote", "-isystem", "-iprefix", "-fsanitize"};
    if (flag[0] != '-')
        return err_set(e, ERR_USAGE, "Flags start with '-'; macros go into define, folders into include.",
                       "'%s' is no flag", flag);
    for (size_t i = 0; i < countof(refused); i++)
        if (str_starts(flag, refused[i]))
            return err_set(e, ERR_USAGE,
                           str_starts(flag, "-I")
                               ? "Write include = FOLDER instead."
                               : "Leave it out: the worker chooses what is read, written and linked.",
                           "'%s' cannot stand in cflags", flag);
    return 0;
}
