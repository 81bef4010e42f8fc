#include "base/task_parse.h"

#include "base/cflags.h"
#include "base/io.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

#define FIELD(type) ((type *)(void *)((char *)p->t + k->at))

static bool stored(const struct task_key *k)
{
    return k->at != 0;
}

static void replace(char **to, char *by)
{
    free(*to);
    *to = by;
}

int task_set_text(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    if (!it->value[0])
        return task_error(p, it, 0, "Write a value after '=', or remove the line.", "%s has no value",
                          it->key);
    if (stored(k))
        replace(FIELD(char *), xstrdup(it->value));
    return 0;
}

int task_set_name(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    for (int i = 0; it->value[i]; i++)
        if (!isalnum((unsigned char)it->value[i]) && !strchr("._-", it->value[i]))
            return task_error(p, it, i, "Use letters, digits, '.', '_' and '-'.",
                              "'%c' cannot stand in the name of a session", it->value[i]);
    return task_set_text(p, k, it);
}

static int choice_of(const struct task_key *k, const char *value)
{
    for (int i = 0; k->words[i]; i++)
        if (str_eq(k->words[i], value))
            return i;
    return -1;
}

int task_set_choice(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    int i = choice_of(k, it->value);
    if (i < 0)
        return task_error_nearest(p, it, 0, it->value, k->words, "%s cannot be '%s': it is one of %s",
                                  it->key, it->value, k->type);
    if (stored(k))
        *FIELD(int) = i; // enums of this file's kind are ints
    return 0;
}

int task_set_backend(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    static const char *const later[] = {"triton", "maca", "hip"};
    for (size_t i = 0; i < countof(later); i++)
        if (str_eq(later[i], it->value))
            return task_error(p, it, 0, "Use backend = cpu or backend = cuda.",
                              "the backend %s is not built yet; cpu and cuda are", it->value);
    return task_set_choice(p, k, it);
}

int task_set_yes(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    bool yes = str_eq(it->value, "yes");
    if (!yes && !str_eq(it->value, "no"))
        return task_error(p, it, 0, "Write yes or no.", "%s is yes or no, not '%s'", it->key, it->value);
    if (stored(k))
        *FIELD(bool) = yes;
    return 0;
}

// A decimal number that is the whole of s, within the row's limits.
static int number(struct task_parser *p, const struct task_key *k, const struct task_item *it, double *x)
{
    char *end;
    errno = 0;
    *x = strtod(it->value, &end);
    if (end == it->value || *end || !isfinite(*x) || strpbrk(it->value, "xXpP"))
        return task_error(p, it, end == it->value ? 0 : (int)(end - it->value),
                          "Write a decimal number such as 1.01.", "%s wants a number, not '%s'", it->key,
                          it->value);
    if (*x < k->low || *x > k->high)
        return task_error(p, it, 0, "Choose a number in that range.", "%s must lie between %.15g and %.15g",
                          it->key, k->low, k->high);
    return 0;
}

int task_set_number(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    double x;
    if (number(p, k, it, &x) < 0)
        return -1;
    if (stored(k))
        *FIELD(double) = x;
    return 0;
}

int task_set_weight(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    return task_set_number(p, k, it);
}

int task_set_proposer(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    for (int i = 0; k->words[i]; i++)
        if (str_eq(k->words[i], it->key))
            return task_set_number(p, k, it);
    if (str_eq(it->key, "exec"))
        return task_error(p, it, -1, "Remove the line.",
                          "the proposer exec is not built yet; rules, tune, cross and llm are");
    return task_error_nearest(p, it, -1, it->key, k->words, "there is no proposer called '%s'", it->key);
}

int task_set_numbers(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    size_t n = 0;
    char **words = str_words(it->value, &n);
    int r = words && n ? 0
                       : task_error(p, it, 0, "Write numbers with spaces between them, such as 0.3 0.7.",
                                    "%s wants numbers, not '%s'", it->key, it->value);
    for (size_t i = 0; words && i < n && r == 0; i++) {
        struct task_item one = *it;
        double x;
        one.value = words[i];
        r = number(p, k, &one, &x);
    }
    free(words);
    return r;
}

static int whole(struct task_parser *p, const struct task_key *k, const struct task_item *it, double *x)
{
    if (number(p, k, it, x) < 0)
        return -1;
    if (*x != floor(*x) || strpbrk(it->value, ".eE"))
        return task_error(p, it, 0, "Write it without a point.", "%s wants a whole number, not '%s'", it->key,
                          it->value);
    return 0;
}

int task_set_int(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    double x;
    if (whole(p, k, it, &x) < 0)
        return -1;
    if (stored(k))
        *FIELD(int) = (int)x;
    return 0;
}

int task_set_int64(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    double x;
    if (whole(p, k, it, &x) < 0)
        return -1;
    if (stored(k))
        *FIELD(int64_t) = (int64_t)x;
    return 0;
}

int task_set_seed(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    char *end;
    errno = 0;
    unsigned long long x = strtoull(it->value, &end, 10);
    if (!isdigit((unsigned char)it->value[0]) || *end || errno)
        return task_error(p, it, 0, "Write a whole number from 0 to 2^64-1.",
                          "%s wants a whole number, not '%s'", it->key, it->value);
    *FIELD(uint64_t) = x;
    return 0;
}

// 90, 90s, 15m, 2h, 1d, 1h30m.
int task_set_duration(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    const char *s = it->value;
    double total = 0;
    for (bool bare = false; *s && !bare;) {
        char *end = NULL;
        double x = isdigit((unsigned char)*s) ? strtod(s, &end) : -1, scale = 0;
        if (!end)
            break;
        bare = *end == 0;
        for (size_t i = 0; i < countof(units); i++)
            if (*end == units[i].unit)
                scale = units[i].seconds;
        if (!bare && scale == 0)
            break;
        total += x * (bare ? 1 : scale);
        s = bare ? end : end + 1;
    }
    if (*s || !it->value[0])
        return task_error(p, it, (int)(s - it->value), "Write 90s, 15m, 2h or 1h30m.",
                          "%s wants a duration, not '%s'", it->key, it->value);
    if (!(total >= k->low && total <= k->high))
        return task_error(p, it, 0, "Choose a duration in that range.",
                          "%s must lie between %.15g and %.15g seconds", it->key, k->low, k->high);
    *FIELD(double) = total;
    return 0;
}

int task_parse_expr(struct task_parser *p, const struct task_item *it, int at, const char *text, int len,
                    struct expr **out)
{
    char *s = xstrndup(text, (size_t)len);
    struct err e = {0};
    int column = 1;
    int r = expr_parse(s, out, &column, &e);
    if (r < 0)
        task_error(p, it, at + column - 1, e.hint, "%s", e.msg);
    free(s);
    return r;
}

int task_set_expr(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    struct expr *x;
    if (task_parse_expr(p, it, 0, it->value, (int)strlen(it->value), &x) < 0)
        return -1;
    expr_free(*FIELD(struct expr *));
    *FIELD(struct expr *) = x;
    return 0;
}

int task_set_exprs(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    struct expr *x;
    (void)k; // require is the only list of expressions
    if (task_parse_expr(p, it, 0, it->value, (int)strlen(it->value), &x) < 0)
        return -1;
    vec_push(&p->t->require, x);
    return 0;
}

int task_set_flags(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    size_t n;
    char **words = str_words(it->value, &n);
    if (!words)
        return task_error(p, it, 0, "Close the quote.", "%s has an open quote", it->key);
    int r = 0;
    for (size_t i = 0; i < n; i++) {
        struct err e = {0};
        const char *where = strstr(it->value, words[i]);
        if (cflags_check_task(words[i], &e) < 0)
            r = task_error(p, it, where ? (int)(where - it->value) : 0, e.hint, "%s", e.msg);
        else
            vec_push(FIELD(strings), xstrdup(words[i]));
    }
    free(words);
    return r;
}

// A folder of #include, or a macro: NULL where it is fine.
static const char *word_wrong(struct task_parser *p, const struct task_key *k, const char *word,
                              const char **hint)
{
    if (str_eq(k->key, "include")) {
        char *path = task_path_inside(p->t->project, word);
        bool good = path != NULL;
        free(path);
        *hint = "Name a folder inside the project; project = sets its root.";
        return good ? NULL : "leads out of the project";
    }
    size_t n = 0;
    while (isalnum((unsigned char)word[n]) || word[n] == '_')
        n++;
    *hint = "Write NAME or NAME=VALUE.";
    return n && !isdigit((unsigned char)word[0]) && (!word[n] || word[n] == '=') ? NULL : "is no macro";
}

int task_set_words(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    size_t n;
    char **words = str_words(it->value, &n);
    if (!words)
        return task_error(p, it, 0, "Close the quote.", "%s has an open quote", it->key);
    int r = 0;
    for (size_t i = 0; i < n; i++) {
        const char *hint, *where = strstr(it->value, words[i]), *wrong = word_wrong(p, k, words[i], &hint);
        if (wrong)
            r = task_error(p, it, where ? (int)(where - it->value) : 0, hint, "'%s' %s", words[i], wrong);
        else
            vec_push(FIELD(strings), xstrdup(words[i]));
    }
    free(words);
    return r;
}

int task_set_line(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    const char *open = strstr(it->value, "<<<"), *close = open ? strstr(open, ">>>") : NULL;
    if (!close || it->value[strlen(it->value) - 1] != ')')
        return task_error(p, it, 0, "Write name<<<blocks, threads, shared>>>(arguments).",
                          "'%s' is no launch", it->value);
    vec_push(FIELD(strings), xstrdup(it->value));
    return 0;
}

int task_set_function(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    const char *colon = strrchr(it->value, ':');
    bool kernel = k->at == offsetof(struct task, kernel_file);
    if (!colon || colon == it->value)
        return task_error(p, it, 0, "Write file:function, such as sgemm.c:sgemm.",
                          "%s wants file:function, not '%s'", it->key, it->value);
    size_t n = 1;
    while (isalnum((unsigned char)colon[n]) || colon[n] == '_')
        n++;
    if (n == 1 || colon[n] || isdigit((unsigned char)colon[1]))
        return task_error(p, it, (int)(colon + 1 - it->value),
                          "Write the function's name alone, without brackets.",
                          "'%s' is no name of a function", colon + 1);
    char *file = xstrndup(it->value, (size_t)(colon - it->value));
    char *path = task_path_inside(kernel ? p->t->project : p->t->dir, file);
    free(file);
    if (!path)
        return task_error(p, it, 0,
                          kernel ? "Give a path inside the project; project = sets its root."
                                 : "Give a path inside the session's folder.",
                          "'%s' leads out of %s", it->value, kernel ? "the project" : "the session's folder");
    replace(FIELD(char *), path);
    replace(kernel ? &p->t->kernel_func : &p->t->ref_func, xstrdup(colon + 1));
    return 0;
}

int task_set_project(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    if (!it->value[0])
        return task_error(p, it, 0, "Name the project's folder.", "project has no value");
    char *path = io_join(p->t->dir, it->value);
    char *real = realpath(path, NULL);
    if (p->files && (!real || !io_is_dir(real)))
        task_error(p, it, 0, "Name a folder, absolute or relative to the session's.",
                   "the project %s is no folder", path);
    replace(FIELD(char *), real ? real : path);
    if (real)
        free(path);
    return 0;
}

int task_set_allow(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    bool *const fields[] = {&p->t->allow_fast_math, &p->t->allow_threads, &p->t->allow_precision,
                            &p->t->allow_asm};
    struct task_word w;
    int r = 0;
    for (int pos = 0; task_word_next(it->value, &pos, &w);) {
        char *word = xstrndup(w.s, (size_t)w.len);
        int i = choice_of(k, word);
        if (i >= 0)
            *fields[i] = true;
        else
            r = task_error_nearest(p, it, w.at, word, k->words, "nothing called '%s' can be allowed", word);
        free(word);
    }
    return r;
}

int task_set_tolerance(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    enum dtype type;
    struct task_word w;
    (void)k;
    if (dtype_parse(it->key, &type) < 0)
        return -1;
    struct task_tol tol = {true, -1, dtype_info(type)->atol_k};
    double *to = NULL;
    for (int pos = 0; task_word_next(it->value, &pos, &w);) {
        char *word = xstrndup(w.s, (size_t)w.len), *end;
        double x = strtod(word, &end);
        bool is_number = !*end && x >= 0 && isfinite(x);
        bool is_name = !to && (str_eq(word, "rtol") || str_eq(word, "k"));
        bool was_wanted = to && is_number;
        if (was_wanted)
            *to = x;
        else if (!is_name)
            task_error(p, it, w.at, "Write rtol 1e-5, or rtol 1e-5 k 16.", "expected %s, not '%s'",
                       to ? "a number from 0 up" : "rtol or k", word);
        to = is_name ? (word[0] == 'r' ? &tol.rtol : &tol.k) : NULL;
        free(word);
        if (!is_name && !was_wanted)
            return -1;
    }
    if (tol.rtol < 0 || to)
        return task_error(p, it, (int)strlen(it->value), "Write rtol 1e-5, or rtol 1e-5 k 16.",
                          "%s ends too early", it->key);
    if (tol.rtol >= 1)
        return task_error(p, it, 0,
                          "Choose a relative tolerance below 1: with 1 an output of zeros would pass.",
                          "a relative tolerance of %g accepts anything", tol.rtol);
    p->t->tol[type] = tol;
    return 0;
}

int task_set_url(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    if (!str_starts(it->value, "https://") && !str_starts(it->value, "http://"))
        return task_error(p, it, 0, "Write the base URL, such as https://api.example.com/v1.",
                          "'%s' is no http or https URL", it->value);
    return task_set_text(p, k, it);
}

// The name of an environment variable. A key pasted here by mistake would be repeated in an error: it is not
// quoted.
int task_set_env(struct task_parser *p, const struct task_key *k, const struct task_item *it)
{
    for (int i = 0; it->value[i]; i++)
        if (!isalnum((unsigned char)it->value[i]) && it->value[i] != '_')
            return task_error(
                p, it, 0, "Name the variable that holds the key, such as MY_API_KEY; never the key itself.",
                "%s wants the name of an environment variable", it->key);
    return task_set_text(p, k, it);
}
