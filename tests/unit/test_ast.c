// The parser on other people's spellings: shapes of trees, printing, and that what is not understood is
// opaque.
#include "t.h"

#include "source/ast.h"
#include "source/func.h"

struct parsed {
    struct tokens ts;
    struct ast t;
    char *text;
};

static void parse(struct parsed *p, const char *params, const char *body)
{
    p->text = xasprintf("void f(%s)\n{\n%s\n}\n", params, body);
    tokens_read(&p->ts, p->text, strlen(p->text));
    size_t open = 0;
    while (!token_op(&p->ts, open, OP_LBRACE))
        open++;
    ast_parse(&p->t, &p->ts, open, false);
}

static void done(struct parsed *p)
{
    ast_free(&p->t);
    tokens_free(&p->ts);
    free(p->text);
}

static void kinds_of_first_statements(void)
{
    static const struct {
        const char *body;
        enum node_kind kind;
    } cases[] = {
        {"int i;", N_DECL},
        {"const float *restrict a = A + i * n, b[4][8], *c;", N_DECL},
        {"size_t i = 0;", N_DECL},
        {"foo_t x;", N_DECL},
        {"struct s *p = q;", N_DECL},
        {"unsigned long long int k = 3ull;", N_DECL},
        {"A[i] = 0;", N_EXPR},
        {"*p++ = *q++;", N_EXPR},
        {"(void)x;", N_EXPR},
        {"x = (float)y + (float)(a * b);", N_EXPR},
        {"x = sizeof(float) * n + sizeof x;", N_EXPR},
        {"x = a ? b : c ? d : e, y = 2;", N_EXPR},
        {"for (;;) break;", N_FOR},
        {"for (int i = 0, j = 1; i < n; ++i, j--) ;", N_FOR},
        {"while (n--) { *A++ = 0; }", N_WHILE},
        {"do x++; while (x < 3);", N_DO},
        {"if (a) b(); else { c(); }", N_IF},
        {"return;", N_RETURN},
        {"goto out; out: ;", N_GOTO},
        {"#pragma omp simd\nfor (int i = 0; i < n; i++) A[i] = 0;", N_PRAGMA},
        {"#ifdef X\na();\n#else\nb();\n#endif\n", N_PP},
        {";", N_EMPTY},
        {"{ int z = 1; }", N_BLOCK},
        {"asm volatile(\"nop\");", N_OPAQUE},
        {"UNROLL(4) for (int i = 0; i < n; i++) A[i] = 0;", N_OPAQUE},
        {"else x();", N_OPAQUE},
        {"a +;", N_OPAQUE},
        {"for (int i = 0; i < n) ;", N_OPAQUE},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct parsed p;
        parse(&p, "float *A, int n, float x, float *p", cases[i].body);
        CHECK(p.t.root->kind == N_BLOCK && p.t.root->kids);
        if (p.t.root->kids && p.t.root->kids->kind != cases[i].kind) {
            CHECK(!"kind");
            printf("# %s: %s, wanted %s\n", cases[i].body, node_kind_name(p.t.root->kids->kind),
                   node_kind_name(cases[i].kind));
        }
        done(&p);
    }
}

static void printing_keeps_meaning(void)
{
    static const struct {
        const char *in, *i, *want; // want with i replaced
    } cases[] = {
        {"A[i*n+k]", "i + 1", "A[(i + 1) * n + k]"},
        {"a-(b-c)", NULL, "a - (b - c)"},
        {"(a-b)-c", NULL, "a - b - c"},
        {"-i", "-2", "- -2"},
        {"a*i", "x, y", "a * (x, y)"},
        {"f(i, (a,b))", "j", "f(j, (a, b))"},
        {"(a?b:c)?d:e", NULL, "(a ? b : c) ? d : e"},
        {"s.i+p->i", "k", "s.i + p->i"},
        {"(float)(a+b)", NULL, "(float)(a + b)"},
        {"(*p)[i]", "i << 1", "(*p)[i << 1]"},
        {"a & (b == c)", NULL, "a & b == c"},
        {"!(a && b)", NULL, "!(a && b)"},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct parsed p;
        parse(&p, "float *A, int n", ";");
        struct node *n = ast_parse_expr(&p.t, cases[i].in);
        CHECK(n != NULL);
        struct str out = {0};
        struct subst s = {"i", cases[i].i};
        if (n)
            ast_print(&p.t, n, &s, cases[i].i ? 1 : 0, &out);
        CHECK_STR(str_c(&out), cases[i].want);
        str_free(&out);
        done(&p);
    }
}

static void opaque_does_not_swallow_what_follows(void)
{
    struct parsed p;
    parse(&p, "float *A, int n", "asm volatile(\"nop\"); int j = 2;\nFOO(x) { a(); } A[0] = j;");
    int kinds[4] = {-1, -1, -1, -1}, n = 0;
    for (struct node *k = p.t.root->kids; k && n < 4; k = k->next)
        kinds[n++] = (int)k->kind;
    CHECK_INT(n, 4);
    CHECK_INT(kinds[0], N_OPAQUE);
    CHECK_INT(kinds[1], N_DECL);
    CHECK_INT(kinds[2], N_OPAQUE);
    CHECK_INT(kinds[3], N_EXPR);
    CHECK(p.t.opaque > 0);
    done(&p);
}

static void deep_nesting_ends(void)
{
    struct str s = {0};
    for (int i = 0; i < 400000; i++)
        str_add(&s, "(");
    for (int i = 0; i < 400000; i++)
        str_add(&s, "{");
    struct parsed p;
    parse(&p, "int n", str_c(&s));
    done(&p);
    str_clear(&s);
    for (int i = 0; i < 400000; i++)
        str_add(&s, "if(1){");
    for (int i = 0; i < 400000; i++)
        str_add(&s, "}");
    parse(&p, "int n", str_c(&s));
    CHECK(p.t.opaque > 0);
    done(&p);
    str_clear(&s);
    str_add(&s, "x=");
    for (int i = 0; i < 400000; i++)
        str_add(&s, "-(");
    str_add(&s, "1");
    for (int i = 0; i < 400000; i++)
        str_add(&s, ")");
    str_add(&s, ";");
    parse(&p, "int x", str_c(&s));
    CHECK(p.t.opaque > 0);
    done(&p);
    // What nests to the left: the parser loops, but a walk over the tree recurses.
    str_clear(&s);
    str_add(&s, "x = 1");
    for (int i = 0; i < 400000; i++)
        str_add(&s, "+1");
    str_add(&s, "; x = a");
    for (int i = 0; i < 400000; i++)
        str_add(&s, "[0]");
    str_add(&s, "; y = 1;");
    parse(&p, "int x", str_c(&s));
    CHECK(p.t.opaque >= 2);
    CHECK(node_uses(p.t.root, "y"));
    done(&p);
    str_free(&s);
}

int main(void)
{
    T(kinds_of_first_statements);
    T(printing_keeps_meaning);
    T(opaque_does_not_swallow_what_follows);
    T(deep_nesting_ends);
    T_END;
}
