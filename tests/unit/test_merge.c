// Three-way merges: both changes where they do not touch, markers with labels where they do.
#include "t.h"

#include "source/merge.h"

static int merge(const char *b, const char *o, const char *t, struct merge_result *r, struct err *e)
{
    struct merge_side s[3] = {
        {b, strlen(b), "base 1"}, {o, strlen(o), "candidate 17"}, {t, strlen(t), "candidate 23"}};
    return merge_texts(&s[0], &s[1], &s[2], r, e);
}

static void clean(void)
{
    static const struct {
        const char *b, *o, *t, *want;
    } cases[] = {
        {"a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n"},
        {"a\nb\n", "a\nb\n", "a\nb\n", "a\nb\n"},
        {"a\nb\n", "x\nb\n", "x\nb\n", "x\nb\n"},                 // both the same
        {"", "", "a\n", "a\n"},                                   // empty base
        {"a\n", "", "a\n", ""},                                   // all taken away
        {"a\nb\nc\nd", "a\nb\nc\nD", "A\nb\nc\nd", "A\nb\nc\nD"}, // no newline at the end
        {"a\r\nb\r\nc\r\nd\r\n", "A\r\nb\r\nc\r\nd\r\n", "a\r\nb\r\nc\r\nD\r\n", "A\r\nb\r\nc\r\nD\r\n"},
        // Marker lines in the texts are no conflicts.
        {"<<<<<<< x\nb\nc\n>>>>>>> y\n", "<<<<<<< x\nB\nc\n>>>>>>> y\n", "<<<<<<< x\nb\nc\n>>>>>>> y\nz\n",
         "<<<<<<< x\nB\nc\n>>>>>>> y\nz\n"},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct merge_result r;
        struct err e = {0};
        CHECK_INT(merge(cases[i].b, cases[i].o, cases[i].t, &r, &e), 0);
        CHECK_STR(str_c(&r.text), cases[i].want);
        CHECK_INT(r.conflicts.n, 0);
        merge_result_free(&r);
    }
}

static void conflicts(void)
{
    struct merge_result r;
    struct err e = {0};
    CHECK_INT(
        merge("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nX\nc\nd\ne\nf\nP\nh\n", "a\nY\nc\nd\ne\nf\nQ\nh\n", &r, &e), 0);
    CHECK_STR(
        str_c(&r.text),
        "a\n<<<<<<< candidate 17\nX\n||||||| base 1\nb\n=======\nY\n>>>>>>> candidate 23\n"
        "c\nd\ne\nf\n<<<<<<< candidate 17\nP\n||||||| base 1\ng\n=======\nQ\n>>>>>>> candidate 23\nh\n");
    CHECK_INT(r.conflicts.n, 2);
    if (r.conflicts.n == 2) {
        CHECK_INT(r.conflicts.v[0].line, 2);
        CHECK_INT(r.conflicts.v[0].last_line, 8);
        CHECK_INT(r.conflicts.v[1].line, 13);
        CHECK_INT(r.conflicts.v[1].last_line, 19);
    }
    merge_result_free(&r);
    // zdiff3: what both sides begin and end with stands outside the markers.
    CHECK_INT(merge("1\n2\n3\n", "1\nA\nB\nC\n3\n", "1\nA\nX\nC\n3\n", &r, &e), 0);
    CHECK_STR(str_c(&r.text),
              "1\nA\n<<<<<<< candidate 17\nB\n||||||| base 1\n2\n=======\nX\n>>>>>>> candidate 23\nC\n3\n");
    CHECK_INT(r.conflicts.n, 1);
    merge_result_free(&r);
    // Longer markers where the text holds such lines.
    CHECK_INT(merge("=======\nb\n", "=======\nX\n", "=======\nY\n", &r, &e), 0);
    CHECK_STR(str_c(&r.text),
              "=======\n<<<<<<<< candidate 17\nX\n|||||||| base 1\nb\n========\nY\n>>>>>>>> candidate 23\n");
    CHECK_INT(r.conflicts.n, 1);
    merge_result_free(&r);
}

static void refused(void)
{
    struct merge_result r;
    struct err e = {0};
    struct merge_side t = {"a\n", 2, NULL}, bin = {"a\0b", 3, "candidate 9"}, none = {NULL, 0, NULL};
    CHECK_INT(merge_texts(&t, &t, &bin, &r, &e), -1);
    CHECK(strstr(e.msg, "second text, candidate 9 holds NUL") != NULL);
    merge_result_free(&r);
    CHECK_INT(merge_texts(&none, &none, &t, &r, &e), 0);
    CHECK_STR(str_c(&r.text), "a\n");
    merge_result_free(&r);
}

int main(void)
{
    T(clean);
    T(conflicts);
    T(refused);
    T_END;
}
