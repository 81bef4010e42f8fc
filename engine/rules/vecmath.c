// Rule vecmath: calls of math functions in a loop become calls of the C library's vector versions. glibc
// has them in libmvec (errors up to 4 units in the last place, against 1), but declares them only under
// -ffast-math; a prototype with "omp declare simd" says the same for one function and leaves the rest of the
// arithmetic as it is. The check of the task decides whether the precision is enough.
#include "rules/parts.h"

// What libmvec of glibc 2.35 and later has, for x86-64; with f at the end for float.
static const struct {
    const char *name;
    int args;
} vector_functions[] = {{"exp", 1},   {"log", 1},  {"sin", 1},   {"cos", 1},   {"pow", 2},  {"exp2", 1},
                        {"expm1", 1}, {"log2", 1}, {"log10", 1}, {"log1p", 1}, {"tan", 1},  {"tanh", 1},
                        {"sinh", 1},  {"cosh", 1}, {"asin", 1},  {"acos", 1},  {"atan", 1}, {"atan2", 2},
                        {"erf", 1},   {"cbrt", 1}, {"hypot", 2}};

// The number of arguments, 0 where there is no vector version.
static int vector_args(const char *name, bool *is_float)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < countof(vector_functions); i++) {
        size_t m = strlen(vector_functions[i].name);
        if (strncmp(name, vector_functions[i].name, m) == 0 && (n == m || (n == m + 1 && name[m] == 'f'))) {
            *is_float = n > m;
            return vector_functions[i].args;
        }
    }
    return 0;
}

static void prototype(const char *name, struct str *out)
{
    bool is_float = false;
    int args = vector_args(name, &is_float);
    const char *type = is_float ? "float" : "double";
    str_addf(out, "#pragma omp declare simd notinbranch\nextern %s %s(%s%s%s);\n", type, name, type,
             args > 1 ? ", " : "", args > 1 ? type : "");
}

typedef VEC(const char *) names;

// The functions that the loop calls and that have a vector version.
static bool find_calls(const struct rule_source *s, const struct loop *l, names *found, char why[240])
{
    const char *other = NULL;
    for (size_t i = 0; i < s->a.calls.n; i++) {
        const struct call_use *c = &s->a.calls.v[i];
        bool is_float, listed = false;
        if (!c->loop || c->loop != l || !*c->name)
            continue;
        if (!vector_args(c->name, &is_float)) {
            other = c->name;
            continue;
        }
        for (size_t k = 0; k < found->n; k++)
            listed |= str_eq(found->v[k], c->name);
        if (!listed)
            vec_push(found, c->name);
    }
    if (!found->n && other)
        snprintf(why, 240, "the library has no vector version of %s", other);
    return found->n > 0;
}

static bool declared(const struct rule_source *s, const char *name)
{
    struct str line = {0};
    prototype(name, &line);
    const char *nl = strchr(line.s, '\n') + 1;
    char *text = xstrndup(nl, strcspn(nl, "\n"));
    bool there = strstr(s->text, text) != NULL;
    free(text);
    str_free(&line);
    return there;
}

static bool fits(const struct rule_source *s, const struct loop *l, names *found, char why[240])
{
    *why = 0;
    if (!find_calls(s, l, found, why))
        return false;
#if !defined(__x86_64__) || !defined(__GLIBC__)
    snprintf(why, 240, "this machine's C library has no vector functions that are known here");
    return false;
#endif
    if (s->f.is_global || s->t.cxx) {
        snprintf(why, 240, "vector functions are for C on a CPU");
        return false;
    }
    for (size_t i = found->n; i-- > 0;)
        if (declared(s, found->v[i]))
            vec_remove(found, i);
    if (!found->n)
        snprintf(why, 240, "its functions are declared as vector functions already");
    for (size_t i = 0; i < found->n; i++)
        if (analysis_var(&s->a, found->v[i]) || ast_macro(&s->t, found->v[i])) {
            snprintf(why, 240, "%s is not the function of the C library", found->v[i]);
            return false;
        }
    return found->n > 0;
}

static void sites(const struct rule_source *s, rule_sites *out)
{
    for (size_t i = 0; i < s->a.loops.n; i++) {
        names found = {0};
        char why[240];
        if (fits(s, s->a.loops.v[i], &found, why))
            rewrite_site(s, out, s->a.loops.v[i]->stmt, true, NULL, "the C library's vector version of %s%s",
                         found.v[0], found.n > 1 ? " and others" : "");
        else if (*why)
            rewrite_site(s, out, s->a.loops.v[i]->stmt, false, NULL, "%s", why);
        vec_free(&found);
    }
}

static int apply(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e)
{
    (void)params;
    const struct loop *l = parts_loop(s, "vecmath", where, e);
    names found = {0};
    char why[240];
    if (!l)
        return -1;
    if (!fits(s, l, &found, why)) {
        vec_free(&found);
        return err_set(e, ERR_FAIL, "", "vecmath: %s", *why ? why : "it calls no math function");
    }
    struct str lines = {0};
    for (size_t i = 0; i < found.n; i++)
        prototype(found.v[i], &lines);
    str_addn(out, s->text, s->len);
    int r = rewrite_at_start(s, out, lines.s, e);
    if (r == 0)
        r = rewrite_need_flag(s, out, "-fno-math-errno", e);
    if (r == 0)
        r = rewrite_need_flag(s, out, "-fopenmp-simd", e);
    str_free(&lines);
    vec_free(&found);
    return r;
}

const struct rule rule_vecmath = {
    .name = "vecmath",
    .help = "let the compiler call the C library's vector versions of math functions",
    .risk = RISK_ROUND,
    .promise = 3,
    .sites = sites,
    .apply = apply,
};
