// The parser: trees of ordinary kernels, and text that wants to break it.
#include "t.h"

#include "source/edits.h"

static const char kernel[] =
    "void k(float *C, const float *A, const float *B, int M, int N, int K)\n{\n"
    "    for (int i = 0; i < M; i++)\n        for (int j = 0; j < N; j++) {\n"
    "            float sum = 0;\n            for (int k = 0; k < K; ++k)\n"
    "                sum += A[i * K + k] * B[k * N + j];\n            C[i * N + j] = sum;\n        }\n}\n";

static void open_text(struct rule_source *s, const char *text)
{
    struct err e = {0};
    CHECK(rule_source_open(s, text, strlen(text), "k.c", "k", NULL, &e) == 0);
}

static void loops_of_a_matrix_product(void)
{
    struct rule_source s;
    open_text(&s, kernel);
    CHECK_INT(s.t.opaque, 0);
    CHECK_INT(s.a.loops.n, 3);
    CHECK_STR(s.a.loops.v[2]->var, "k");
    char *where = site_of(&s.a, s.a.loops.v[2]->stmt);
    CHECK_STR(where, "for i / for j / for k");
    CHECK(site_find(&s.a, where) == s.a.loops.v[2]->stmt);
    free(where);
    struct reduction r;
    CHECK(stmt_reduction(&s.a, s.a.loops.v[2]->body, &r));
    CHECK_STR(r.var, "sum");
    CHECK(r.op == RED_ADD && r.is_float);
    rule_source_close(&s);
}

static enum tri independent(const char *body)
{
    struct rule_source s;
    struct str text = {0};
    reductions red = {0};
    str_addf(&text, "void k(float *y, const float *x, int n)\n{\n%s\n}\n", body);
    open_text(&s, str_c(&text));
    s.a.no_alias = true;
    enum tri v = s.a.loops.n ? loop_independent(&s.a, s.a.loops.v[0], &red).v : TRI_UNKNOWN;
    vec_free(&red);
    rule_source_close(&s);
    str_free(&text);
    return v;
}

static void what_loops_carry(void)
{
    CHECK(independent("for (int i = 0; i < n; i++) y[i] = x[i];") == TRI_YES);
    CHECK(independent("for (int i = 0; i < n; i++) y[0] += x[i];") == TRI_YES); // a reduction into memory
    CHECK(independent("for (int i = 1; i < n; i++) y[i] = y[i - 1] + x[i];") != TRI_YES);
    CHECK(independent("float s = 0; for (int i = 0; i < n; i++) { s = s * 2 + x[i]; y[i] = s; }") != TRI_YES);
    CHECK(independent("for (int i = 0; i < n; i++) y[(int)x[i]] = 1;") != TRI_YES);
    CHECK(
        independent("for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i * n + j] = x[j * n + i];") ==
        TRI_YES);
    CHECK(independent("for (int i = 0; i < n; i++) for (int j = 0; j < 2 * n; j++) y[i * n + j] = x[j];") !=
          TRI_YES);
    CHECK(independent("for (int i = 0; i < n; i++) { if (x[i] < 0) break; y[i] = 1; }") != TRI_YES);
    CHECK(independent("for (int i = 0; i < n; i++) y[i] = other(x[i]);") != TRI_YES);
}

static void deep(const char *open, const char *middle, const char *close, int n)
{
    struct str text = {0};
    struct rule_source s;
    str_add(&text, "void k(float *y, int n)\n{\n");
    for (int i = 0; i < n; i++)
        str_add(&text, open);
    str_add(&text, middle);
    for (int i = 0; i < n; i++)
        str_add(&text, close);
    str_add(&text, ";\n}\n");
    if (rule_source_open(&s, str_c(&text), text.len, "k.c", "k", NULL, NULL) == 0)
        rule_source_close(&s);
    str_free(&text);
}

static void nesting_does_not_exhaust_the_stack(void)
{
    deep("(", "1", ")", 100000);
    deep("{", ";", "}", 100000);
    deep("if (n) ", ";", "", 50000);
    deep("1+", "1", "", 100000);
    deep("y=", "0", "", 100000);
    deep("-", "1", "", 100000);
    deep("y", "", "[0]", 50000);
    deep("n,", "n", "", 50000);
    CHECK(1);
}

static void edits_replay_to_the_same_text(void)
{
    struct edits list = {0};
    struct edits_env env = {rule_table, rule_table_n, "k.c", "k", NULL};
    struct str once = {0}, twice = {0};
    struct err e = {0};
    edits_add(&list, "interchange", "for i / for j", NULL);
    json *flags = json_object();
    json_put_str(flags, "flags", "-O3");
    edits_add(&list, "flags", "", flags);
    json_free(flags);
    // Without a task pointers may overlap: the rule must refuse.
    CHECK(edits_replay(&list, kernel, strlen(kernel), &env, &once, NULL, NULL, &e) < 0);
    CHECK(strstr(e.msg, "overlap") != NULL);
    edit_refusals refused = {0};
    CHECK(edits_replay(&list, kernel, strlen(kernel), &env, &once, NULL, &refused, &e) == 0);
    CHECK_INT(refused.n, 1);
    CHECK(strstr(str_c(&once), "// flags: -O3") != NULL);
    json *j = edits_json(&list);
    struct edits back = {0};
    CHECK(edits_from_json(&back, j, &e) == 0 && edit_same(&back.v.v[1], &list.v.v[1]));
    json_free(j);
    vec_free(&refused);
    edits_free(&back);
    edits_free(&list);
    str_free(&once);
    str_free(&twice);
}

int main(void)
{
    T(loops_of_a_matrix_product);
    T(what_loops_carry);
    T(nesting_does_not_exhaust_the_stack);
    T(edits_replay_to_the_same_text);
    T_END;
}
