#include "base/cudaflags.h"

#include "base/str.h"

#include <ctype.h>

// The value's words are separated by blanks; a number lies between low and high.
static const struct flag {
    const char *text, *words;
    long low, high;
    bool math; // may change results beyond rounding that every compiler is free to choose
} flags[] = {
    {"-maxrregcount=", NULL, 16, 255, false},
    {"-fmad=", "true false", 0, 0, false},
    {"-extra-device-vectorization", NULL, 0, 0, false},
    {"-restrict", NULL, 0, 0, false},
    {"-use_fast_math", NULL, 0, 0, true},
    {"-ftz=", "true false", 0, 0, true},       // denormal numbers become zero
    {"-prec-div=", "true false", 0, 0, true},  // x/y to 2 ulp
    {"-prec-sqrt=", "true false", 0, 0, true}, // sqrt to 3 ulp
};

static bool one_of(const char *s, const char *words)
{
    size_t n = strlen(s);
    for (const char *at = words; n; at += strcspn(at, " ") + 1) {
        size_t len = strcspn(at, " ");
        if (len == n && strncmp(at, s, n) == 0)
            return true;
        if (!at[len])
            break;
    }
    return false;
}

static int check_value(const struct flag *f, const char *flag, const char *value, struct err *e)
{
    if (f->words && !one_of(value, f->words))
        return err_set(e, ERR_USAGE, "Choose one of these values.", "'%s' wants one of: %s", flag, f->words);
    if (f->high) {
        char *end;
        long x = strtol(value, &end, 10);
        if (!isdigit((unsigned char)*value) || *end || x < f->low || x > f->high)
            return err_set(e, ERR_USAGE, "Choose a value in that range.",
                           "'%s' wants a number from %ld to %ld", flag, f->low, f->high);
    }
    return 0;
}

int cudaflags_check(const char *flag, bool allow_fast_math, struct err *e)
{
    const char *bare = str_starts(flag, "--") ? flag + 1 : flag, *known[countof(flags)];
    for (size_t i = 0; i < countof(flags); i++) {
        const struct flag *f = &flags[i];
        known[i] = f->text;
        if (!(str_ends(f->text, "=") ? str_starts(bare, f->text) : str_eq(bare, f->text)))
            continue;
        if (check_value(f, flag, bare + strlen(f->text), e) < 0)
            return -1;
        bool exact = str_ends(bare, str_starts(bare, "-prec") ? "=true" : "=false");
        if (f->math && !allow_fast_math && !exact)
            return err_set(e, ERR_USAGE, "Add allow = fast-math to [build] where results may change.",
                           "'%s' may change results, and the task does not allow that", flag);
        return 0;
    }
    const char *near = str_nearest(bare, known, countof(flags));
    char hint[120];
    snprintf(hint, sizeof hint, near ? "Did you mean '%s'?" : "The list is in ksmith-task(5), under flags.",
             near);
    return err_set(e, ERR_USAGE, hint,
                   "the flag '%s' is not on the list of those that a CUDA candidate may carry", flag);
}
