#include "base/expr.h"
#include "t.h"

static bool lookup(void *user, const char *name, int64_t *value)
{
    (void)user;
    static const struct {
        const char *name;
        int64_t value;
    } names[] = {{"M", 7}, {"N", 100}, {"big", INT64_MAX}, {"least", INT64_MIN}, {"zero", 0}, {"minus", -3}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0) {
            *value = names[i].value;
            return true;
        }
    return false;
}

static void values(void)
{
    static const struct {
        const char *text;
        int64_t want;
    } rows[] = {
        {"1+2*3", 7},
        {"(1+2)*3", 9},
        {"10-4-3", 3},
        {"100/7/2", 7},
        {"-7/2", -3},
        {"-7%3", -1},
        {"2*-3", -6},
        {"- -3", 3},
        {"+4", 4},
        {"~0", -1},
        {"!5 + !0", 1},
        {"0x10", 16},
        {"16UL", 16},
        {"1<<10", 1024},
        {"1 << 2 + 1", 8},
        {"7>>1", 3},
        {"6&3|8", 10},
        {"6^3", 5},
        {"1|2==2", 1},
        {"3<4==1", 1},
        {"M<N && N<=100", 1},
        {"M>N || N>=101", 0},
        {"M!=7", 0},
        {"zero && 1/zero", 0},
        {"1 || 1/zero", 1},
        {"zero ? 1/zero : 5", 5},
        {"M ? N ? 1 : 2 : 3", 1},
        {"zero ? 1 : M ? 2 : 3", 2},
        {"min(3,1,2)", 1},
        {"max(M, N)", 100},
        {"ceildiv(N, 32)", 4},
        {"ceildiv(-7, 2)", -3},
        {"ceildiv(96, 32)", 3},
        {"align(N, 64)", 128},
        {"align(128, 64)", 128},
        {"BLOCKS*0+1", -1}, // unknown: below
        {"sizeof(float)*M", 28},
        {"sizeof( unsigned  int )", 4},
        {"sizeof(f16)", 2},
        {" \tM ", 7},
        {"least/1 == least", 1},
        {"minus", -3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct expr *x = NULL;
        struct err e = {0};
        int64_t v = 0;
        CHECK_INT(expr_parse(rows[i].text, &x, NULL, &e), 0);
        if (!x) {
            printf("# %s: %s\n", rows[i].text, e.msg);
            continue;
        }
        int r = expr_eval(x, lookup, NULL, &v, &e);
        if (strstr(rows[i].text, "BLOCKS")) {
            CHECK_INT(r, -1);
            CHECK(strstr(e.msg, "BLOCKS") != NULL);
        } else if (r < 0 || v != rows[i].want) {
            printf("# %s is %lld, wanted %lld (%s)\n", rows[i].text, (long long)v, (long long)rows[i].want,
                   e.msg);
            CHECK(false);
        }
        CHECK_STR(expr_text(x), rows[i].text);
        expr_free(x);
    }
}

static void syntax_errors_have_columns(void)
{
    static const struct {
        const char *text;
        int column;
        const char *says;
    } rows[] = {
        {"", 1, "too early"},
        {"1+", 3, "too early"},
        {"1 2", 3, "operator"},
        {"(1", 3, "')'"},
        {"1)", 2, "operator"},
        {"M*$", 3, "number or a name"},
        {"foo(1)", 1, "function"},
        {"min(1)", 1, "arguments"},
        {"align(1,2,3)", 1, "arguments"},
        {"min(1", 6, "')'"},
        {"1.5", 1, "integer"},
        {"12ab", 1, "integer"},
        {"0x", 1, "integer"},
        {"99999999999999999999", 1, "too large"},
        {"M ? 1", 6, "':'"},
        {"sizeof(thing)", 8, "sizeof"},
        {"sizeof 4", 8, "'('"},
        {"1 = 2", 3, "operator"},
        {"1 +* 2", 4, "number or a name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct expr *x = NULL;
        struct err e = {0};
        int column = 0;
        char where[16];
        snprintf(where, sizeof where, ":0:%d", rows[i].column);
        CHECK_INT(expr_parse(rows[i].text, &x, &column, &e), -1);
        CHECK(x == NULL);
        if (column != rows[i].column || strcmp(e.where, where) != 0 || !strstr(e.msg, rows[i].says) ||
            !e.hint[0]) {
            printf("# '%s': column %d (%s), %s, hint '%s'\n", rows[i].text, column, e.where, e.msg, e.hint);
            CHECK(false);
        }
        expr_free(x);
    }
    CHECK_INT(expr_parse("(", &(struct expr *){NULL}, NULL, NULL), -1);
}

static void nesting_and_length_have_limits(void)
{
    char text[8000];
    struct expr *x = NULL;
    struct err e = {0};
    memset(text, '(', 5000);
    text[5000] = 0;
    CHECK_INT(expr_parse(text, &x, NULL, &e), -1);
    text[3000] = 0;
    CHECK_INT(expr_parse(text, &x, NULL, &e), -1);
    CHECK(strstr(e.msg, "deep") != NULL);
    memset(text, '-', 3000);
    CHECK_INT(expr_parse(text, &x, NULL, &e), -1);
    for (int i = 0; i < 2000; i++) // a long sum is no deep one
        memcpy(text + 2 * i, i == 1999 ? "1" : "1+", i == 1999 ? 2 : 2);
    int64_t v = 0;
    CHECK_INT(expr_parse(text, &x, NULL, &e), 0);
    CHECK(x && expr_eval(x, NULL, NULL, &v, &e) == 0 && v == 2000);
    expr_free(x);
}

static void arithmetic_errors_are_words(void)
{
    static const struct {
        const char *text, *says;
    } rows[] = {{"1/zero", "division by zero"},
                {"1%zero", "division by zero"},
                {"big+1", "overflow"},
                {"least-1", "overflow"},
                {"big*2", "overflow"},
                {"-least", "overflow"},
                {"least/-1", "overflow"},
                {"least%-1", "overflow"},
                {"1<<63", "shift"},
                {"1<<-1", "shift"},
                {"big<<1", "overflow"},
                {"ceildiv(1,zero)", "division by zero"},
                {"ceildiv(1,-2)", "negative"},
                {"align(big,64)", "overflow"},
                {"align(5,minus)", "negative"},
                {"max(1/zero,2)", "division by"},
                {"X", "unknown name 'X'"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct expr *x = NULL;
        struct err e = {0};
        int64_t v;
        CHECK_INT(expr_parse(rows[i].text, &x, NULL, &e), 0);
        if (!x)
            continue;
        CHECK_INT(expr_eval(x, lookup, NULL, &v, &e), -1);
        if (!strstr(e.msg, rows[i].says)) {
            printf("# %s: %s\n", rows[i].text, e.msg);
            CHECK(false);
        }
        expr_free(x);
    }
}

static void count_name(void *user, const char *name)
{
    strcat(user, name);
    strcat(user, " ");
}

static void names_are_visited(void)
{
    struct expr *x = NULL;
    char names[64] = "";
    CHECK_INT(expr_parse("max(M,N)*sizeof(int)+M", &x, NULL, NULL), 0);
    if (x)
        expr_names(x, count_name, names);
    CHECK_STR(names, "M N M ");
    expr_free(x);
    expr_free(NULL);
}

int main(void)
{
    T(values);
    T(syntax_errors_have_columns);
    T(nesting_and_length_have_limits);
    T(arithmetic_errors_are_words);
    T(names_are_visited);
    T_END;
}
