// Patches of SEARCH/REPLACE blocks: whole or not at all, in the right place, with words where not.
#include "t.h"

#include "base/hash.h"
#include "source/patch.h"

static const char text[] = "#include <math.h>\n"                 // 1
                           "\n"                                  // 2
                           "void f(float *x, int n)\n"           // 3
                           "{\n"                                 // 4
                           "    for (int i = 0; i < n; i++) {\n" // 5
                           "        x[i] *= 2;   \n"             // 6
                           "        x[i] += 1;\n"                // 7
                           "    }\n"                             // 8
                           "    for (int i = 0; i < n; i++) {\n" // 9
                           "        x[i] *= 2;\n"                // 10
                           "    }\n"                             // 11
                           "}\n";                                // 12
#define B(old, new) "<<<<<<< SEARCH\n" old "=======\n" new ">>>>>>> REPLACE\n"
#define AT(n, old, new) "<<<<<<< SEARCH @" n "\n" old "=======\n" new ">>>>>>> REPLACE\n"

// The body of f, as the caller finds it.
static struct region body_of(const char *s)
{
    struct region r = {0};
    struct span b = {.at = (size_t)(strchr(s, '{') + 1 - s), .end = (size_t)(strrchr(s, '}') - s)};
    vec_push(&r.spans, b);
    return r;
}

static int apply(const char *s, const char *patch, struct patch_result *out, struct err *e)
{
    struct region r = body_of(s);
    char *exact = malloc(strlen(patch) ? strlen(patch) : 1);
    memcpy(exact, patch, strlen(patch));
    int ok = patch_apply(s, strlen(s), exact, strlen(patch), &r, out, e);
    free(exact);
    region_free(&r);
    return ok;
}

static void what_applies(void)
{
    static const struct {
        const char *patch, *old, *new; // old becomes new in the text
    } cases[] = {
        {B("        x[i] += 1;\n", "        x[i] += 3;\n"), "x[i] += 1;", "x[i] += 3;"},
        // White space at line ends does not matter, and lines that stay keep theirs.
        {B("        x[i] *= 2;\n        x[i] += 1;\t\n", "        x[i] *= 2;\n        x[i] += 3;\n"),
         "x[i] += 1;", "x[i] += 3;"},
        // The signature as context.
        {B("void f(float *x, int n)\n{\n    for (int i = 0; i < n; i++) {\n        x[i] *= 2;\n        x[i] "
           "+= 1;\n",
           "void f(float *x, int n)\n{\n    for (int i = 0; i < n; i++) {\n        x[i] *= 2;\n        x[i] "
           "+= 3;\n"),
         "x[i] += 1;", "x[i] += 3;"},
        // Another indentation of all lines, either way.
        {B("x[i] += 1;\n", "x[i] += 3;\nif (x)\n    g();\n"), "        x[i] += 1;\n",
         "        x[i] += 3;\n        if (x)\n            g();\n"},
        {B("            x[i] *= 2;\n            x[i] += 1;\n",
           "            x[i] *= 2;\n            x[i] += 3;\n"),
         "x[i] += 1;", "x[i] += 3;"},
        // Several that look the same: by the line, or by more context.
        {AT("10", "        x[i] *= 2;\n", "        x[i] *= 4;\n"), "x[i] *= 2;\n    }\n}",
         "x[i] *= 4;\n    }\n}"},
        {B("        x[i] *= 2;\n    }\n", "        x[i] *= 4;\n    }\n"), "x[i] *= 2;\n    }\n}",
         "x[i] *= 4;\n    }\n}"},
        {B("        x[i] += 1;\n", ""), "        x[i] += 1;\n", ""},
        {B("        x[i] += 1;\n    }\n", "        x[i] += 1;\n    }\n    g();\n"), "+= 1;\n    }\n",
         "+= 1;\n    }\n    g();\n"},
        {AT("9", "", "    g();\n"), "+= 1;\n    }\n", "+= 1;\n    }\n    g();\n"},
        // A line that an earlier block wrote is not meant by a later one.
        {B("        x[i] += 1;\n", "        y += 3;\n        x[i] *= 2;\n    }\n")
             B("        x[i] *= 2;\n    }\n}\n", "        x[i] *= 4;\n    }\n}\n"),
         "        x[i] += 1;\n    }\n    for (int i = 0; i < n; i++) {\n        x[i] *= 2;\n    }\n}",
         "        y += 3;\n        x[i] *= 2;\n    }\n    }\n    for (int i = 0; i < n; i++) {\n        x[i] "
         "*= 4;\n    }\n}"},
        // But it may be, where nothing else is.
        {B("        x[i] += 1;\n", "        y += 3;\n") B("        y += 3;\n", "        y += 4;\n"),
         "x[i] += 1;", "y += 4;"},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct patch_result out;
        struct err e = {0};
        struct str want = {0};
        str_add(&want, text);
        const char *at = strstr(text, cases[i].old);
        CHECK(at != NULL);
        str_splice(&want, (size_t)(at - text), strlen(cases[i].old), cases[i].new, strlen(cases[i].new));
        if (apply(text, cases[i].patch, &out, &e) < 0)
            printf("# case %zu: %s\n%s\n", i, e.msg, str_c(&out.diagnostic));
        CHECK_STR(str_c(&out.text), str_c(&want));
        str_free(&want);
        patch_result_free(&out);
    }
}

static void what_is_refused(void)
{
    static const struct {
        const char *patch, *says, *shows;
    } cases[] = {
        {"", "no SEARCH/REPLACE block", ""},
        {"nothing\n", "no SEARCH/REPLACE block", ""},
        {B("        x[i] += 2;\n", "        x[i] += 3;\n"), "matches nothing", "+         x[i] "},
        {B("zzzz qqqq;\n", "a\n"), "matches nothing", "Nothing in the source is like"},
        {B("        x[i] *= 2;\n", "        x[i] *= 4;\n"), "matches several places", "at lines 6, 10"},
        {AT("7", "        x[i] *= 2;\n", "        x[i] *= 4;\n"), "matches several places", "@6"},
        {B("#include <math.h>\n", "#include <stdlib.h>\n"), "may not change", "line 1"},
        {B("void f(float *x, int n)\n", "void f(float *x, long n)\n"), "may not change",
         "Only these lines may change"},
        {B("    }\n}\n", "    }\n}\nvoid g(void);\n"), "may not change", ""},
        {B("        x[i] += 1;\n", "        x[i] += 1;\n"), "changes nothing", ""},
        {B("", "a\n"), "has no SEARCH lines", ""},
        {AT("1", "", "int y;\n"), "may not change", ""},
        {"<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", "before any =======", ""},
        {"<<<<<<< SEARCH\na\n=======\nb\n", "no REPLACE marker", ""},
        {"<<<<<<< SEARCH\na\n<<<<<<< SEARCH\nb\n=======\n>>>>>>> REPLACE\n", "inside of a block", ""},
        {">>>>>>> REPLACE\n", "without its SEARCH", ""},
        // The second block fails, so the first does not count.
        {B("        x[i] += 1;\n", "        x[i] += 3;\n") B("nowhere\n", "b\n"), "block 2 matches nothing",
         ""},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct patch_result out;
        struct err e = {0};
        CHECK(apply(text, cases[i].patch, &out, &e) < 0);
        if (!strstr(e.msg, cases[i].says) || !strstr(str_c(&out.diagnostic), cases[i].shows)) {
            printf("# case %zu: %s\n%s\n", i, e.msg, str_c(&out.diagnostic));
            t_bad = 1;
        }
        CHECK_INT(out.text.len, 0);
        patch_result_free(&out);
    }
    struct patch_result out;
    struct err e = {0};
    CHECK(patch_apply(text, sizeof text - 1, "<<<<<<< SEARCH\na\0\n", 17, NULL, &out, &e) < 0);
    CHECK(strstr(e.msg, "NUL"));
    patch_result_free(&out);
}

static void newlines_are_kept(void)
{
    struct patch_result out;
    struct err e = {0};
    const char *crlf = "void f(void)\r\n{\r\n    a();\r\n    b();\r\n}";
    CHECK(apply(crlf, B("    a();\n", "    c();\n    d();\n"), &out, &e) == 0);
    CHECK_STR(str_c(&out.text), "void f(void)\r\n{\r\n    c();\r\n    d();\r\n    b();\r\n}");
    patch_result_free(&out);
    CHECK(apply("void f(void)\n{\n    a();\n}",
                "<<<<<<< SEARCH\r\n    a();\r\n=======\r\n    c();\r\n>>>>>>> REPLACE\r\n", &out, &e) == 0);
    CHECK_STR(str_c(&out.text), "void f(void)\n{\n    c();\n}");
    patch_result_free(&out);
    const char *open = "x\ny"; // everything may change, no newline at the end
    CHECK(patch_apply(open, 3, B("y\n", "z\n"), strlen(B("y\n", "z\n")), NULL, &out, &e) == 0);
    CHECK_STR(str_c(&out.text), "x\nz");
    patch_result_free(&out);
    CHECK(patch_apply(open, 3, B("y\n", "y\nz\n"), strlen(B("y\n", "y\nz\n")), NULL, &out, &e) == 0);
    CHECK_STR(str_c(&out.text), "x\ny\nz");
    patch_result_free(&out);
}

static void markers_inside_of_code(void)
{
    struct patch_result out;
    struct err e = {0};
    const char *banner = "void f(void)\n{\n    /*\n=======\n    old\n=======\n    */\n    a();\n}\n";
    CHECK(apply(banner, B("=======\n    old\n=======\n    */\n", "=======\n    new\n=======\n    */\n"), &out,
                &e) == 0);
    CHECK_STR(str_c(&out.text), "void f(void)\n{\n    /*\n=======\n    new\n=======\n    */\n    a();\n}\n");
    patch_result_free(&out);
    CHECK(apply(banner, B("    a();\n", "    /*\n=======\n    */\n    b();\n"), &out, &e) == 0);
    CHECK_STR(
        str_c(&out.text),
        "void f(void)\n{\n    /*\n=======\n    old\n=======\n    */\n    /*\n=======\n    */\n    b();\n}\n");
    patch_result_free(&out);
    const char *merge = "void f(void)\n{\n    s = \"<<<<<<< SEARCH\";\n}\n";
    CHECK(apply(merge, B("    s = \"<<<<<<< SEARCH\";\n", "    s = 0;\n"), &out, &e) == 0);
    CHECK_STR(str_c(&out.text), "void f(void)\n{\n    s = 0;\n}\n");
    patch_result_free(&out);
    const char *empty = "void f(void)\n{\n}\n";
    CHECK(apply(empty, B("", "    a();\n"), &out, &e) == 0);
    CHECK_STR(str_c(&out.text), "void f(void)\n{\n    a();\n}\n");
    patch_result_free(&out);
}

// Random edits of random texts: where it applies, the result is the text with exactly these lines replaced.
static void random_edits(void)
{
    int applied = 0;
    for (unsigned seed = 0; seed < 3000; seed++) {
        struct str s = {0}, patch = {0}, want = {0};
        unsigned n = 3 + (unsigned)(hash_mix(seed) % 12), at = (unsigned)(hash_mix(seed + 7000u) % n),
                 k = 1 + at % 3;
        if (at + k > n)
            k = n - at;
        str_add(&patch, "<<<<<<< SEARCH\n");
        for (unsigned i = 0; i < n; i++) {
            char line[40];
            snprintf(line, sizeof line, "%*sline%d;\n", (int)(hash_mix(seed * 31 + i) % 3) * 4, "",
                     (int)(hash_mix(seed * 17 + i) % 6));
            str_add(&s, line);
            if (i >= at && i < at + k)
                str_add(&patch, line);
            if (i == at)
                str_add(&want, "new;\n");
            if (i < at || i >= at + k)
                str_add(&want, line);
        }
        str_add(&patch, "=======\nnew;\n>>>>>>> REPLACE\n");
        struct patch_result out;
        struct err e = {0};
        if (patch_apply(s.s, s.len, patch.s, patch.len, NULL, &out, &e) == 0) {
            CHECK_STR(str_c(&out.text), str_c(&want));
            applied++;
        } else
            CHECK(strstr(e.msg, "several places"));
        patch_result_free(&out);
        str_free(&s);
        str_free(&patch);
        str_free(&want);
    }
    CHECK(applied > 1000);
}

int main(void)
{
    T(what_applies);
    T(what_is_refused);
    T(newlines_are_kept);
    T(markers_inside_of_code);
    T(random_edits);
    T_END;
}
