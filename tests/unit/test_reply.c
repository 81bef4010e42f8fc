// Models' answers: every form with every fault, each classified, nothing half.
#include "t.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "models/forms.h"
#include "models/reply.h"

static const char parent[] =
    "#include <stddef.h>\n\nvoid scale(float *x, int n)\n{\n    for (int i = 0; i < n; i++)\n"
    "        x[i] *= 2.0f;\n}\n";
#define GOOD                                                                                               \
    "#include <stddef.h>\n\nvoid scale(float *restrict x, int n)\n{\n#pragma GCC ivdep\n    for (int i = " \
    "0; i < n; i++)\n"                                                                                     \
    "        x[i] += x[i]; // { not a bracket\n}\n"
#define BLOCK "<<<<<<< SEARCH\n        x[i] *= 2.0f;\n=======\n        x[i] += x[i];\n>>>>>>> REPLACE\n"
#define BLOCK2                                                                                          \
    "<<<<<<< SEARCH\n    for (int i = 0; i < n; i++)\n=======\n    for (int i = n; i-- > 0;)\n>>>>>>> " \
    "REPLACE\n"
#define HUNK                                                                                                 \
    "--- a/k.c\n+++ b/k.c\n@@ -5,2 +5,2 @@\n     for (int i = 0; i < n; i++)\n-        x[i] *= 2.0f;\n+    " \
    "    x[i] += x[i];\n }\n"
#define HUNK_OUT                                                                                            \
    "<<<<<<< SEARCH\n    for (int i = 0; i < n; i++)\n        x[i] *= 2.0f;\n}\n=======\n    for (int i = " \
    "0; i < n; "                                                                                            \
    "i++)\n        x[i] += x[i];\n}\n>>>>>>> REPLACE\n"

static const struct form {
    const char *name, *text;
    enum reply_kind kind;
    const char *body; // NULL: not compared
} forms[] = {
    {"tag source", "<name>add</name>\n<description>why\nso</description>\n<source>\n" GOOD "</source>\n",
     REPLY_SOURCE, GOOD},
    {"tag source with fence", "<name>add</name>\n<source>\n```c\n" GOOD "```\n</source>\n", REPLY_SOURCE,
     GOOD},
    {"tag patch", "<name>add</name>\n<patch>\n" BLOCK BLOCK2 "</patch>\n", REPLY_PATCH, BLOCK BLOCK2},
    {"tag patch with fence", "<patch>\n```\n" BLOCK "```\n</patch>\n", REPLY_PATCH, BLOCK},
    {"two patch tags", "<patch>\n" BLOCK "</patch>\nand\n<patch>\n" BLOCK2 "</patch>\n", REPLY_PATCH,
     BLOCK BLOCK2},
    {"tag upper case", "<NAME>add</NAME>\n<SOURCE>\n" GOOD "</SOURCE>\n", REPLY_SOURCE, GOOD},
    {"tag without its end", "<source>\n" GOOD, REPLY_SOURCE, GOOD},
    {"all in an xml fence", "```xml\n<name>add</name>\n<source>\n" GOOD "</source>\n```\n", REPLY_SOURCE,
     GOOD},
    {"fence", "Here it is.\n\n```c\n" GOOD "```\nDone.\n", REPLY_SOURCE, GOOD},
    {"fence without label", "```\n" GOOD "```", REPLY_SOURCE, GOOD},
    {"fence c++", "``` c++ {.numberLines}\n" GOOD "```", REPLY_SOURCE, GOOD},
    {"tilde fence", "~~~ cuda\n" GOOD "~~~\n", REPLY_SOURCE, GOOD},
    {"long fence", "`````c\n" GOOD "`````\n", REPLY_SOURCE, GOOD},
    {"fence after prose", "Here is the code: ```c\n" GOOD "```\n", REPLY_SOURCE, GOOD},
    {"fence end after code", "```c\nvoid scale(float *x, int n)\n{ for (;n--;x++) *x += *x; }```\n",
     REPLY_SOURCE, "void scale(float *x, int n)\n{ for (;n--;x++) *x += *x; }\n"},
    {"indented fence", "1. do this\n   ```c\n" GOOD "   ```\n", REPLY_SOURCE, GOOD},
    {"fence not closed", "```c\n" GOOD, REPLY_SOURCE, GOOD},
    {"several fences",
     "Compile with\n```sh\ngcc -O3 k.c\n```\nbefore:\n```c\nint main(void) { return 0; "
     "}\n```\nand\n```c\n" GOOD "```\nuse\n```c\nscale(x, n);\n```\n",
     REPLY_SOURCE, GOOD},
    {"old then new",
     "Was:\n```c\n#include <stddef.h>\n\nvoid scale(float *x, int n)\n{\n    for (int i = 0; i < n; i++)\n   "
     "     x[i] *= 2.0f;\n}\n```\nNow:\n```c\n" GOOD "```\n",
     REPLY_SOURCE, GOOD},
    {"new then old",
     "Now:\n```c\n" GOOD "```\nIt was:\n```c\n#include <stddef.h>\n\nvoid scale(float *x, int n)\n{\n  for "
     "(int i = 0; i < n; i++)\n    x[i] *= 2.0f;\n}\n```\n",
     REPLY_SOURCE, GOOD},
    {"fence not closed, then another", "```c\nvoid scale(float *x, int n);\n\n```c\n" GOOD "```\n",
     REPLY_SOURCE, GOOD},
    {"inline code", "Use ```restrict``` here.\n```c\n" GOOD "```\n", REPLY_SOURCE, GOOD},
    {"bare code", GOOD, REPLY_SOURCE, GOOD},
    {"bare blocks", "I add.\n\n" BLOCK "\nThat is all.\n", REPLY_PATCH, BLOCK},
    {"blocks in fences", "```diff\n" BLOCK "```\nthen\n```c\n" BLOCK2 "```\n", REPLY_PATCH, BLOCK BLOCK2},
    {"block with inner fences",
     "<<<<<<< SEARCH\n```c\n        x[i] *= 2.0f;\n```\n=======\n```c\n        x[i] += x[i];\n```\n>>>>>>> "
     "REPLACE\n",
     REPLY_PATCH, BLOCK},
    {"block markers with spaces",
     "  <<<<<<<  SEARCH  \n        x[i] *= 2.0f;\n  =======  \n        x[i] += x[i];\n  >>>>>>>  REPLACE \n",
     REPLY_PATCH, BLOCK},
    {"block with an anchor",
     "<<<<<<< SEARCH @6\n        x[i] *= 2.0f;\n=======\n        x[i] += x[i];\n>>>>>>> REPLACE\n",
     REPLY_PATCH,
     "<<<<<<< SEARCH @6\n        x[i] *= 2.0f;\n=======\n        x[i] += x[i];\n>>>>>>> REPLACE\n"},
    {"short markers", "<<<<< SEARCH\n        x[i] *= 2.0f;\n=====\n        x[i] += x[i];\n>>>>> REPLACE\n",
     REPLY_PATCH, BLOCK},
    {"unified diff", "```diff\n" HUNK "```\n", REPLY_PATCH, HUNK_OUT},
    {"bare diff", "Apply this:\n" HUNK, REPLY_PATCH, HUNK_OUT},
    {"apply_patch",
     "*** Begin Patch\n*** Update File: k.c\n@@\n     for (int i = 0; i < n; i++)\n-        x[i] *= 2.0f;\n+ "
     "       x[i] += x[i];\n }\n*** End Patch\n",
     REPLY_PATCH, HUNK_OUT},
    {"json source",
     "{\"name\":\"add\",\"description\":\"d\",\"source\":\"void scale(float *x, int n)\\n{\\n}\\n\"}",
     REPLY_SOURCE, "void scale(float *x, int n)\n{\n}\n"},
    {"json in a fence",
     "Sure.\n```json\n{\"name\":\"add\",\"code\":\"void scale(float *x, int n)\\n{\\n}\\n\"}\n```\n",
     REPLY_SOURCE, "void scale(float *x, int n)\n{\n}\n"},
    {"cuda",
     "```cuda\n__global__ void scale(float *x, int n)\n{\n    x[threadIdx.x] *= 2;\n}\nvoid run() { "
     "scale<<<1, 2>>>(0, 0); }\n```\n",
     REPLY_SOURCE, NULL},
    {"unbalanced comment is fine",
     "```c\nvoid scale(float *x, int n)\n{\n    // } ) ]\n    char c = '{'; const char *s = \"((\";\n    "
     "x[0] = c + s[0] + n;\n}\n```\n",
     REPLY_SOURCE, NULL},

    {"prose", "I think the kernel is already optimal.\n", REPLY_NONE, NULL},
    {"empty", "", REPLY_NONE, NULL},
    {"white space", " \n\n\t\n", REPLY_NONE, NULL},
    {"only a call", "```c\nscale(x, n);\n```\n", REPLY_NONE, NULL},
    {"only a prototype", "```c\nvoid scale(float *x, int n);\n```\n", REPLY_NONE, NULL},
    {"another function", "```c\nvoid scale2(float *x, int n)\n{\n}\nvoid rescale(void) { }\n```\n",
     REPLY_NONE, NULL},
    {"definition in a comment", "```c\n/* void scale(float *x, int n) { } */\nint y;\n```\n", REPLY_NONE,
     NULL},
    {"shell only", "```sh\nmake\n```\n", REPLY_NONE, NULL},
    {"heading", "# Faster\n\nUse more cores.\n", REPLY_NONE, NULL},
    {"half a function",
     "```c\nvoid scale(float *x, int n)\n{\n    for (int i = 0; i < n; i++) {\n        x[i]", REPLY_CUT,
     NULL},
    {"half in a closed fence", "```c\nvoid scale(float *x, int n)\n{\n    for (;;) {\n```\n", REPLY_CUT,
     NULL},
    {"half a comment", "```c\nvoid scale(float *x, int n)\n{\n}\n/* and\n", REPLY_CUT, NULL},
    {"whole then half", "```c\n" GOOD "```\nBetter:\n```c\nvoid scale(float *x, int n)\n{\n    int a",
     REPLY_CUT, NULL},
    {"half a block", "<<<<<<< SEARCH\n        x[i] *= 2.0f;\n=======\n        x[i] +", REPLY_CUT, NULL},
    {"whole and half a block", BLOCK "<<<<<<< SEARCH\n    for", REPLY_CUT, NULL},
    {"reasoning only", "<think>\nI could unroll. ```c\n" GOOD "```", REPLY_CUT, NULL},
    {"elided", "```c\nvoid scale(float *x, int n)\n{\n    // ... rest of the code unchanged ...\n}\n```\n",
     REPLY_ELIDED, NULL},
    {"elided dots", "```c\nvoid scale(float *x, int n)\n{\n    ...\n}\n```\n", REPLY_ELIDED, NULL},
    {"elided comment", "```c\nvoid scale(float *x, int n)\n{\n    /* ... */\n    x[0] = 1;\n}\n```\n",
     REPLY_ELIDED, NULL},
    {"elided unicode",
     "```c\nvoid scale(float *x, int n)\n{\n    // \u2026 existing code\n    x[0] = 1;\n}\n```\n",
     REPLY_ELIDED, NULL},
    {"no divider", "<<<<<<< SEARCH\nx\n>>>>>>> REPLACE\n", REPLY_BROKEN, NULL},
    {"nested", "<<<<<<< SEARCH\nx\n<<<<<<< SEARCH\ny\n=======\nz\n>>>>>>> REPLACE\n", REPLY_BROKEN, NULL},
    {"lone end", BLOCK ">>>>>>> REPLACE\n", REPLY_BROKEN, NULL},
    {"the parent",
     "```c\n#include <stddef.h>\n\nvoid scale(float *x, int n)\n{\n  for (int i = 0; i < n; i++)\n    x[i] "
     "*= 2.0f;\n}\n```\n",
     REPLY_SAME, NULL},
};

static struct reply_opts opts = {.func = "scale", .parent = parent, .parent_len = sizeof parent - 1};

static void check(const char *what, const char *text, size_t n, const struct form *f)
{
    struct reply r;
    char *copy = malloc(n ? n : 1); // exact, so that a sanitizer sees an overread
    memcpy(copy, text, n);
    reply_read(copy, n, &opts, &r);
    free(copy);
    if (r.kind != f->kind || (f->body && !str_eq(str_c(&r.body), f->body))) {
        printf("# %s: %s: %s\n%s\n", f->name, what, reply_kind_name(r.kind), str_c(&r.body));
        t_bad = 1;
    }
    bool usable = r.kind == REPLY_PATCH || r.kind == REPLY_SOURCE;
    CHECK(usable == (r.body.len > 0));
    CHECK(usable == (r.problem.len == 0));
    CHECK(!strchr(str_c(&r.name), '\n'));
    reply_free(&r);
}

static void every_form_is_told_apart(void)
{
    for (size_t i = 0; i < countof(forms); i++)
        check("as it is", forms[i].text, strlen(forms[i].text), &forms[i]);
}

// Faults that do not change what an answer says.
static void harmless(const char *in, int fault, struct str *out)
{
    static const char *const before[] = {
        "<think>\nLet me see.\n```c\nvoid scale(float *x, int n)\n{\n    wrong();\n}\n```\n" BLOCK
        "</think>\n\n",
        "We could do this:\n```c\nvoid scale(float *x, int n) { wrong(); }\n```\n</think>\n",
        "[THINK]hm[/THINK]",
        "<|channel|>analysis<|message|>```c\nvoid scale(float *x, int n) { wrong(); "
        "}\n```<|end|><|start|>assistant<|channel|>final<|message|>",
        "\xef\xbb\xbf",
        "<thinking>\r\na\r\n</thinking>\r\n<think>b</think>\n",
        "\n\n",
    };
    size_t kinds = countof(before);
    if (fault & 1 && !(fault & 2)) { // CRLF
        for (; *in; in++)
            *in == '\n' ? str_add(out, "\r\n") : str_addc(out, *in);
    } else
        str_add(out, in);
    if (fault & 2) // blanks at line ends outside of code: only at the very end, which may stand in a fence
        str_add(out, "\n  \n");
    size_t which = (size_t)fault >> 2;
    if (which > 0 && which <= kinds)
        str_splice(out, 0, 0, before[which - 1], strlen(before[which - 1]));
}

static void harmless_faults_change_nothing(void)
{
    int n = 0;
    for (size_t i = 0; i < countof(forms); i++)
        for (int fault = 0; fault < 32; fault++) {
            struct str text = {0};
            // An answer that never ends its thought, or bare code after nothing but blanks, stays what it is.
            harmless(forms[i].text, fault, &text);
            check("with a fault", str_c(&text), text.len, &forms[i]);
            str_free(&text);
            n++;
        }
    printf("# %d answers\n", n);
}

static void a_cut_answer_is_never_code(void)
{
    int n = 0;
    for (size_t i = 0; i < countof(forms); i++) {
        size_t len = strlen(forms[i].text);
        for (size_t k = 0; k <= len; k += 1 + k / 40) {
            struct reply r;
            struct reply_opts o = opts;
            // The server says that it was cut.
            o.cut = true;
            reply_read(forms[i].text, k, &o, &r);
            CHECK(r.kind != REPLY_PATCH && r.kind != REPLY_SOURCE);
            reply_free(&r);
            // It does not: then whole blocks and whole functions only.
            reply_read(forms[i].text, k, &opts, &r);
            struct str masked = {0};
            if (r.kind == REPLY_SOURCE) {
                CHECK(code_mask(r.body.s, r.body.len, &masked) && code_balanced(&masked));
                CHECK(code_defines(&masked, "scale"));
            }
            if (r.kind == REPLY_PATCH)
                CHECK(str_ends(r.body.s, ">>>>>>> REPLACE\n"));
            str_free(&masked);
            reply_free(&r);
            n++;
        }
    }
    printf("# %d prefixes\n", n);
}

static void names_and_descriptions(void)
{
    static const struct {
        const char *text, *name, *description;
    } cases[] = {
        {"<name>Add instead of multiply</name>\n<description>\nOne add is "
         "cheaper.\n</description>\n<source>\n" GOOD "</source>\n",
         "Add instead of multiply", "One add is cheaper."},
        {"NAME: **add**\nDESCRIPTION: cheaper\n```c\n" GOOD "```\n", "add", "cheaper"},
        {"**Name:** `add`\n\n```c\n" GOOD "```\n", "add", NULL},
        {"Because an add is cheaper.\n\n```c\n// name: no\n" GOOD "```\n", "", "Because an add is cheaper."},
        {"<name>a\nb\x1b[31m\u202e</name>\n<source>\n" GOOD "</source>", "a b^[[31m<U+202E>", NULL},
        {"<name>123456789 123456789 123456789 123456789 123456789 123456789 123456789 "
         "\u20ac\u20ac\u20ac</name>\n<patch>\n" BLOCK "</patch>\n",
         "123456789 123456789 123456789 123456789 123456789 123456789 123456789 ", NULL},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct reply r;
        reply_read(cases[i].text, strlen(cases[i].text), &opts, &r);
        CHECK_STR(str_c(&r.name), cases[i].name);
        if (cases[i].description)
            CHECK_STR(str_c(&r.description), cases[i].description);
        reply_free(&r);
    }
}

static void noise_is_survived(void)
{
    static const char *const parts[] = {"```",
                                        "```c\n",
                                        "\n",
                                        "~~~",
                                        "<<<<<<< SEARCH\n",
                                        "=======\n",
                                        ">>>>>>> REPLACE\n",
                                        GOOD,
                                        "<think>",
                                        "</think>",
                                        "<source>\n",
                                        "</source>\n",
                                        "<patch>",
                                        "{\"source\":\"x\"}",
                                        "@@\n",
                                        "-a\n",
                                        "+b\n",
                                        "void scale(",
                                        "{",
                                        "}",
                                        "/*",
                                        "\"",
                                        "'",
                                        "\xff",
                                        "\r",
                                        "...",
                                        "<name>"};
    for (unsigned seed = 0; seed < 20000; seed++) {
        struct str text = {0};
        for (unsigned i = 0; i < 3 + seed % 12; i++)
            str_add(&text, parts[hash_mix(seed * 64 + i) % countof(parts)]);
        struct reply r;
        reply_read(str_c(&text), text.len, &opts, &r);
        struct str masked = {0};
        if (r.kind == REPLY_SOURCE)
            CHECK(code_mask(r.body.s, r.body.len, &masked) && code_balanced(&masked) &&
                  code_defines(&masked, "scale"));
        str_free(&masked);
        reply_free(&r);
        str_free(&text);
    }
}

int main(void)
{
    T(every_form_is_told_apart);
    T(harmless_faults_change_nothing);
    T(a_cut_answer_is_never_code);
    T(names_and_descriptions);
    T(noise_is_survived);
    T_END;
}
