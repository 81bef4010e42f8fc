// The corpus of tests/models/corpus.py: every form of an answer with every fault is sorted out as it should
// be, and what becomes a candidate is the whole change and nothing else.
#include "t.h"

#include "base/json.h"
#include "models/apply.h"
#include "source/token.h"

#include <stdio.h>

enum { SHOWN = 12 };

static int total, candidates, lenient, bad;

// What an answer came to, in the words of the corpus.
static const char *outcome(struct reply *r, const struct apply_opts *o, struct str *child,
                           struct str *problem)
{
    enum reply_kind read = r->kind;
    if (reply_apply(r, o, child, problem) == 0)
        return "candidate";
    switch (r->kind) {
    case REPLY_SAME:
        return "same";
    case REPLY_NONE:
        return "none";
    case REPLY_CUT:
        return "cut";
    case REPLY_ELIDED:
        return "elided";
    case REPLY_BROKEN:
        return "broken";
    default:
        return read == REPLY_PATCH || read == REPLY_SOURCE ? "refused" : "?";
    }
}

static bool wanted(const json *want, const char *got)
{
    for (const json *x = json_first(want); x; x = json_next(x))
        if (str_eq(json_string(x), got))
            return true;
    return false;
}

static void complain(const json *x, const char *got, const char *why, const struct str *problem)
{
    if (bad++ >= SHOWN)
        return;
    printf("# %d %s, %s: %s%s\n", (int)json_int(x, "id", 0), json_str(x, "form"), json_str(x, "fault"), got,
           why);
    if (problem->len)
        printf("#   %.*s\n", (int)strcspn(problem->s, "\n"), problem->s);
}

static void look(const json *x)
{
    const char *parent = json_str(x, "parent"), *text = json_str_or(x, "text", ""),
               *child = json_str(x, "child");
    size_t n = strlen(parent);
    struct reply r = {0};
    struct str got = {0}, problem = {0};
    reply_read(text, strlen(text), &(struct reply_opts){"scale_rows", parent, n, json_bool(x, "cut", false)},
               &r);
    const char *what =
        outcome(&r, &(struct apply_opts){parent, n, "k.c", "scale_rows", EVOLVE_BODY}, &got, &problem);
    total++;
    lenient += wanted(json_get(x, "want"), "candidate") && json_count(json_get(x, "want")) > 1;
    if (!wanted(json_get(x, "want"), what)) {
        complain(x, what, "", &problem);
    } else if (str_eq(what, "candidate")) {
        char a[65], b[65], old[65];
        candidates++;
        source_norm_hash(str_c(&got), got.len, a);
        source_norm_hash(child, strlen(child), b);
        source_norm_hash(parent, n, old);
        if (!str_eq(a, b))
            complain(x, what, ", but not the one that was meant", &got);
        if (str_eq(a, old))
            complain(x, what, ", but it is the parent", &got);
        // The parent's kind of newlines, throughout.
        size_t crlf = 0, lf = 0;
        for (size_t i = 0; i < got.len; i++)
            got.s[i] == '\n' && i &&got.s[i - 1] == '\r' ? crlf++ : (lf += got.s[i] == '\n');
        if ((strstr(parent, "\r\n") ? lf : crlf) != 0)
            complain(x, what, ", with two kinds of newlines", &problem);
    } else if (got.len) {
        complain(x, what, ", but a text was handed on", &problem);
    } else if (!problem.len) {
        complain(x, what, ", and nobody is told why", &problem);
    }
    reply_free(&r);
    str_free(&got);
    str_free(&problem);
}

static void every_answer_is_sorted_out(void)
{
    FILE *f = popen("python3 tests/models/corpus.py", "r");
    CHECK(f != NULL);
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; f && (n = getline(&line, &room, f)) > 0;) {
        json *x = json_parse(line, (size_t)n - 1, NULL);
        CHECK(x != NULL);
        look(x);
        json_free(x);
    }
    free(line);
    CHECK(f && pclose(f) == 0);
    printf("# %d answers, %d candidates, %d may be either; %d not as they should be\n", total, candidates,
           lenient, bad);
    CHECK(total >= 1000);
    CHECK(lenient * 8 < total);
    CHECK_INT(bad, 0);
}

int main(void)
{
    T(every_answer_is_sorted_out);
    T_END;
}
