// Dependences: what is called independent must be, whatever the spelling. "No" stands for no or unknown here.
#include "t.h"

#include "source/analysis.h"
#include "source/func.h"

static enum tri first_loop(const char *params, const char *body, bool no_alias)
{
    char *text = xasprintf("void f(%s)\n{\n%s\n}\n", params, body);
    struct tokens ts;
    tokens_read(&ts, text, strlen(text));
    struct func f;
    struct ast t;
    struct analysis a;
    struct err e = {0};
    enum tri v = TRI_UNKNOWN;
    if (func_find(&f, &ts, "kernel.c", "f", false, &e) == 0) {
        ast_parse(&t, &ts, f.open, false);
        analysis_run(&a, &t, &f, no_alias);
        reductions red = {0};
        if (a.loops.n)
            v = loop_independent(&a, a.loops.v[0], &red).v;
        else
            CHECK(!"canonical loop");
        vec_free(&red);
        analysis_free(&a);
        ast_free(&t);
        func_free(&f);
    } else {
        CHECK_STR(e.msg, "");
    }
    tokens_free(&ts);
    free(text);
    return v;
}

static void independence(void)
{
    static const struct {
        enum tri want;
        const char *params, *body;
    } cases[] = {
        {TRI_YES, "float *A, const float *B, int n", "for (int i = 0; i < n; i++) A[i] = B[i];"},
        {TRI_NO, "float *A, int n", "for (int i = 1; i < n; i++) A[i] = A[i-1];"},
        {TRI_NO, "float *A, int n", "for (int i = 0; i < n; i++) A[0] = i;"},
        {TRI_NO, "float *A, int n", "for (int i = 0; i < n; i++) A[i % 4] = i;"},
        {TRI_NO, "float *A, const int *x, int n", "for (int i = 0; i < n; i++) A[x[i]] = i;"},
        {TRI_YES, "float *A, int n",
         "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) A[i*n+j] += 1;"},
        {TRI_NO, "float *A, int n", "float t = 0; for (int i = 0; i < n; i++) { A[i] = t; t = A[i] * 2; }"},
        {TRI_NO, "float *A, int n",
         "float *p = A; for (int i = 0; i < n; i++) { p[0] = i; if (i & 1) p++; }"},
        {TRI_NO, "float *A, int n", "for (int i = 0; i < n; i++) A[i] = g(i);"},
        {TRI_NO, "float *A, int n", "for (int i = 0; i < n; i++) { A[i] = 1; A[n-1-i] = 2; }"},
        {TRI_NO, "float *A, int n", "int k = 0; for (int i = 0; i < n; i++) { A[k] = i; k += i; }"},
        {TRI_NO, "float *A, int n", "static float t; for (int i = 0; i < n; i++) { A[i] = t++; }"},
        {TRI_NO, "float *restrict A, int n",
         "float t = 0; for (int i = 0; i < n; i++) { if (i > 2) t = i; A[i] = t; }"},
        {TRI_NO, "float *restrict A, int n",
         "float t = 0; for (int i = 0; i < n; i++) { for (int j = 0; j < i; j++) t = j; A[i] = t; }"},
        {TRI_NO, "float *restrict A, int n",
         "float t = 0; for (int i = 0; i < n; i++) { i > 3 ? (t = i) : 0; A[i] = t; }"},
        {TRI_NO, "float *restrict A, int n",
         "float b[4]; for (int i = 0; i < n; i++) { b[0] += i; A[i] = b[0]; }"},
        {TRI_NO, "float *restrict A, int n",
         "float s = 0; for (int i = 0; i < n; i++) { s += A[i]; A[i] = s; }"},
        {TRI_NO, "float *restrict A, int n",
         "int x = 0; int *q = &x; for (int i = 0; i < n; i++) { *q = i; A[i] = x; }"},
        {TRI_NO, "float *restrict A, int n", "for (int i = 0; i < n; i++) { A[i] = 0; A[i + 1] = 1; }"},
        {TRI_NO, "float *restrict A, int n", "for (int i = 0; i < n; i += 2) { A[i] = 0; A[i + 2] = 1; }"},
        {TRI_NO, "float *restrict A, int n",
         "for (int i = 0; i < n; i++) for (int j = 0; j <= n; j++) A[i * n + j] = i;"},
        {TRI_NO, "float *restrict A, int n",
         "for (int i = 0; i < n; i++) for (int j = i; j < i + n; j++) A[i * n + j] = i;"},
        {TRI_NO, "float *restrict A, int n", "for (int i = 0; i < n; i++) A[i / 2] = i;"},
        {TRI_NO, "float *restrict A, int n",
         "for (unsigned char i = 0; i < n; i++) A[(unsigned char)(i * 16)] = i;"},
        {TRI_NO, "float *restrict A, const int *restrict g, int n",
         "for (int i = 0; i < n; i++) { int k = g[i]; A[i + k] = 0; }"},
        {TRI_NO, "float *restrict A, int n, int s", "for (int i = 0; i < n; i++) A[i*s] = i;"},
        {TRI_YES, "float *restrict A, int n", "for (int i = 0; i < n; i++) A[i*n] = i;"},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        bool yes = first_loop(cases[i].params, cases[i].body, true) == TRI_YES;
        if (yes != (cases[i].want == TRI_YES)) {
            CHECK(!"as wanted");
            printf("# %s: %s\n", cases[i].body, yes ? "said independent" : "said dependent");
        }
    }
}

static void aliases(void)
{
    static const char body[] = "for (int i = 0; i < n; i++) A[i] = B[i];";
    CHECK(first_loop("float *A, const float *B, int n", body, false) != TRI_YES);
    CHECK(first_loop("float *restrict A, const float *restrict B, int n", body, false) == TRI_YES);
    CHECK(first_loop("float *A, const float *B, int n", body, true) == TRI_YES);
}

int main(void)
{
    T(independence);
    T(aliases);
    T_END;
}
