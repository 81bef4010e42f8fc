// Loops that the task's timed shapes make short are no place for vectors and accumulators.
#include "t.h"

#include "base/task.h"
#include "source/edits.h"

static const char text[] = "void k(float *y, const float *x, int n, int m)\n{\n"
                           "    float s = 0;\n    for (int i = 0; i < n; i++)\n"
                           "        for (int j = 0; j < m - 1; j++)\n            s += x[i * m + j];\n"
                           "    y[0] = s;\n}\n";

// What the rule says at the inner loop; "" where it applies.
static void inner(const char *name, int64_t m, char why[240])
{
    int64_t dims[] = {1000, m}, large[] = {1000, 4096};
    struct task_shape shapes[] = {{.dims = large, .test = true}, {.dims = dims, .bench = true}};
    char *names[] = {"n", "m"};
    struct task task = {.dims = {names, 2, 2}, .shapes = {shapes, 2, 2}};
    struct rule_source s;
    struct err e = {0};
    rule_sites sites = {0};
    CHECK_INT(rule_source_open(&s, text, sizeof text - 1, "k.c", "k", &task, &e), 0);
    for (size_t i = 0; i < rule_table_n; i++)
        if (str_eq(rule_table[i]->name, name))
            rule_table[i]->sites(&s, &sites);
    CHECK_INT(sites.n, 1);
    snprintf(why, 240, "%s", sites.n && !sites.v[0].ok ? sites.v[0].why : "");
    rule_sites_free(&sites);
    rule_source_close(&s);
}

static void timed_shapes_decide(void)
{
    char why[240];
    inner("simd", 8, why);
    CHECK_STR(why, "it runs at most 7 times in the shapes that are timed");
    inner("simd", 9, why);
    CHECK_STR(why, "");
    inner("accumulators", 9, why);
    CHECK_STR(why, "it runs at most 8 times in the shapes that are timed");
    inner("accumulators", 64, why);
    CHECK_STR(why, "");
}

// Plain independent iterations are vector code already at -O3, not so at -O2.
static void what_the_compiler_does(void)
{
    static const char plain[] = "void k(float *y, const float *x, int n)\n{\n"
                                "    for (int i = 0; i < n; i++)\n        y[i] = x[i] * 2;\n}\n";
    for (int level = 2; level <= 3; level++) {
        char flag[] = "-O2", *flags[] = {flag};
        struct task task = {.cflags = {flags, 1, 1}};
        struct rule_source s;
        struct err e = {0};
        rule_sites sites = {0};
        flag[2] = (char)('0' + level);
        CHECK_INT(rule_source_open(&s, plain, sizeof plain - 1, "k.c", "k", &task, &e), 0);
        for (size_t i = 0; i < rule_table_n; i++)
            if (str_eq(rule_table[i]->name, "simd"))
                rule_table[i]->sites(&s, &sites);
        CHECK(sites.n == 1 && sites.v[0].ok == (level == 2));
        rule_sites_free(&sites);
        rule_source_close(&s);
    }
}

int main(void)
{
    T(timed_shapes_decide);
    T(what_the_compiler_does);
    T_END;
}
