// Evolve regions, annotations and lists of edits: what may change, and that nothing else does.
#include "t.h"

#include "source/annot.h"
#include "source/edits.h"
#include "source/region.h"

static const char file[] = "#include <math.h>\n"
                           "// EVOLVE-BLOCK-START\n"
                           "static int h(void) { return 1; }\n"
                           "// EVOLVE-BLOCK-END\n"
                           "void k(float *y, int n)\n"
                           "{\n"
                           "    /* EVOLVE-BLOCK-START */\n"
                           "    y[0] = n;\n"
                           "    /* EVOLVE-BLOCK-END */\n"
                           "}\n";

static void regions(void)
{
    struct region r;
    struct err e = {0};
    struct str words = {0};
    CHECK_INT(region_find(&r, file, sizeof file - 1, "k.c", "k", EVOLVE_BODY, &e), 0);
    CHECK_INT(r.spans.n, 1);
    size_t open = (size_t)(strstr(file, "\n{") + 2 - file), close = sizeof file - 3;
    CHECK(region_allows(&r, open, close) && !region_allows(&r, open - 1, close) &&
          !region_allows(&r, open, close + 1));
    region_describe(&r, &words);
    CHECK_STR(str_c(&words), "lines 6-10");
    region_free(&r);
    CHECK_INT(region_find(&r, file, sizeof file - 1, "k.c", "k", EVOLVE_MARKERS, &e), 0);
    CHECK_INT(r.spans.n, 2);
    CHECK(r.spans.n == 2 && strncmp(file + r.spans.v[0].at, "static int", 10) == 0 &&
          file[r.spans.v[0].end - 1] == '\n');
    region_free(&r);
    CHECK_INT(region_find(&r, file, sizeof file - 1, "k.c", "k", EVOLVE_FILE, &e), 0);
    CHECK(region_allows(&r, 0, sizeof file - 1));
    region_free(&r);
    static const char *const bad[] = {"void k(void) { }\n", "// EVOLVE-BLOCK-START\n",
                                      "// EVOLVE-BLOCK-END\n",
                                      "// EVOLVE-BLOCK-START\n// EVOLVE-BLOCK-START\n// EVOLVE-BLOCK-END\n"};
    for (size_t i = 0; i < countof(bad); i++) {
        CHECK_INT(region_find(&r, bad[i], strlen(bad[i]), "k.c", "k", EVOLVE_MARKERS, &e), -1);
        CHECK(e.msg[0] && e.where[0]);
        region_free(&r);
    }
    CHECK_INT(region_find(&r, file, sizeof file - 1, "k.c", "kk", EVOLVE_BODY, &e), -1);
    CHECK(strstr(e.hint, "Did you mean k?") != NULL);
    region_free(&r);
    str_free(&words);
}

static int check(const char *from, const char *to, enum task_evolve how, struct err *first)
{
    struct str cand = {0};
    err_list errors = {0};
    const char *at = strstr(file, from);
    CHECK(at != NULL);
    str_addn(&cand, file, at ? (size_t)(at - file) : 0);
    str_add(&cand, to);
    str_add(&cand, at ? at + strlen(from) : "");
    int r = region_check(file, sizeof file - 1, cand.s, cand.len, "k.c", "k", how, &errors);
    CHECK((r == 0) == (errors.n == 0));
    if (errors.n)
        *first = errors.v[0];
    vec_free(&errors);
    str_free(&cand);
    return r;
}

static void candidates(void)
{
    struct err e = {0};
    CHECK_INT(check("y[0] = n;", "y[0] = n + 1;\n    y[0] -= 1;", EVOLVE_BODY, &e), 0);
    CHECK_INT(check("y[0] = n;", "y[0] = n + 1;", EVOLVE_MARKERS, &e), 0);
    CHECK_INT(check("return 1;", "return 2;", EVOLVE_MARKERS, &e), 0);
    CHECK_INT(check("return 1;", "return 2;", EVOLVE_BODY, &e), -1);
    CHECK_STR(e.where, "k.c:3:29");
    CHECK_INT(check("<math.h>", "<float.h>", EVOLVE_MARKERS, &e), -1);
    CHECK_STR(e.where, "k.c:1:11");
    CHECK_INT(check("    y[0] = n;\n", "// EVOLVE-BLOCK-END\n// EVOLVE-BLOCK-START\n", EVOLVE_MARKERS, &e),
              -1);
    CHECK_INT(check("y[0] = n;", "}\nvoid k2(void)\n{", EVOLVE_BODY, &e), -1); // another function after it
    CHECK_INT(check("int n)", "long n)", EVOLVE_FILE, &e), -1);
    CHECK(strstr(e.msg, "signature") != NULL);
    CHECK_INT(check("int n)", "int  n /* count */)", EVOLVE_FILE, &e), 0);
    CHECK_INT(check("void k(", "void q(", EVOLVE_FILE, &e), -1);
    CHECK_INT(check("\n}\n", "\n}\nint x;\n", EVOLVE_BODY, &e), -1);
}

static void knobs(void)
{
    static const char text[] =
        "void k(float *y)\n{\n#define BM 4 // knob: 2 4 8\n    const int U = 2; // knob: 1 2\n"
        "    // flags: -funroll-loops -O3\n    y[0] = BM + U; // not a knob\n}\n";
    struct annots a;
    err_list errors = {0};
    struct str out = {0}, said = {0};
    struct err e = {0};
    CHECK_INT(annot_read(&a, text, sizeof text - 1, "k.c", &errors), 0);
    CHECK_INT(a.knobs.n, 2);
    CHECK_INT(a.flags.n, 2);
    const struct knob *k = annot_knob(&a, "BM");
    CHECK(k && k->n == 3 && str_eq(k->value, "4") && str_eq(k->values[2], "8"));
    CHECK_INT(annot_set_knob(text, sizeof text - 1, "BM", "8", &out, &e), 0);
    CHECK(strstr(str_c(&out), "#define BM 8 // knob: 2 4 8\n") != NULL && out.len == sizeof text - 1);
    CHECK_INT(annot_set_knob(text, sizeof text - 1, "NO", "8", &out, &e), -1);
    annot_free(&a);
    str_clear(&out);
    annot_strip(text, sizeof text - 1, &out, &said);
    CHECK(!strstr(str_c(&out), "knob:") && !strstr(str_c(&out), "flags:") &&
          strstr(str_c(&out), "// not a knob"));
    CHECK(strstr(str_c(&said), "knob BM = 4") != NULL);
    vec_free(&errors);
    str_free(&out);
    str_free(&said);
}

static bool holds_b_and_d(void *user, const struct edits *l)
{
    int *calls = user, found = 0;
    ++*calls;
    for (size_t i = 0; i < l->v.n; i++)
        found += str_eq(l->v.v[i].where, "b") || str_eq(l->v.v[i].where, "d");
    return found == 2;
}

static void lists(void)
{
    struct edits a = {0}, b = {0}, out = {0};
    const char *const first[] = {"a", "b", "c", "d"}, *const second[] = {"b", "e"};
    for (size_t i = 0; i < countof(first); i++)
        edits_add(&a, "knob", first[i], NULL);
    for (size_t i = 0; i < countof(second); i++)
        edits_add(&b, "knob", second[i], NULL);
    edits_cross(&a, &b, &out);
    struct str words = {0};
    edits_words(&out, &words);
    CHECK_STR(str_c(&words), "knob a\nknob b\nknob c\nknob d\nknob e\n");
    edits_free(&out);
    int calls = 0;
    edits_minimise(&a, holds_b_and_d, &calls, 50, &out);
    str_clear(&words);
    edits_words(&out, &words);
    CHECK_STR(str_c(&words), "knob b\nknob d\n");
    CHECK(calls < 50);
    edits_free(&out);
    calls = 0;
    edits_minimise(&a, holds_b_and_d, &calls, 2, &out);
    CHECK_INT(calls, 2);
    CHECK(holds_b_and_d(&calls, &out));
    edits_free(&out);
    edits_free(&a);
    edits_free(&b);
    str_free(&words);
}

// flags and knob edits over a text; what is refused is left out and said.
static void replay(void)
{
    static const char base[] = "void k(float *y)\n{\n#define BM 4 // knob: 2 4 8\n    y[0] = BM;\n}\n";
    struct edits l = {0}, done = {0};
    struct edits_env env = {rule_table, rule_table_n, "k.c", "k", NULL};
    edit_refusals refused = {0};
    struct str out = {0};
    struct err e = {0};
    json *p = json_object(), *f = json_object(), *none = json_object();
    json_put_str(p, "value", "2");
    json_put_str(f, "flags", "-O3");
    json_put_str(none, "flags", "");
    edits_add(&l, "knob", "BM", p);
    edits_add(&l, "nothing", "for i", NULL);
    edits_add(&l, "flags", "", f);
    CHECK_INT(edits_replay(&l, base, sizeof base - 1, &env, &out, &done, &refused, &e), 0);
    CHECK_STR(str_c(&out),
              "void k(float *y)\n{\n    // flags: -O3\n#define BM 2 // knob: 2 4 8\n    y[0] = BM;\n}\n");
    CHECK(refused.n == 1 && refused.v[0].index == 1 && strstr(refused.v[0].why, "no rule nothing"));
    CHECK_INT(done.v.n, 2);
    str_clear(&out);
    CHECK_INT(edits_replay(&l, base, sizeof base - 1, &env, &out, NULL, NULL, &e), -1);
    CHECK_INT(out.len, 0);
    edits_add(&done, "flags", "", none);
    CHECK_INT(edits_replay(&done, base, sizeof base - 1, &env, &out, NULL, NULL, &e), 0);
    CHECK_STR(str_c(&out), "void k(float *y)\n{\n#define BM 2 // knob: 2 4 8\n    y[0] = BM;\n}\n");
    json_free(p);
    json_free(f);
    json_free(none);
    edits_free(&l);
    edits_free(&done);
    vec_free(&refused);
    str_free(&out);
}

int main(void)
{
    T(regions);
    T(candidates);
    T(knobs);
    T(lists);
    T(replay);
    T_END;
}
