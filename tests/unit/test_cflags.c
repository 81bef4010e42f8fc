#include "base/cflags.h"
#include "base/io.h"
#include "t.h"

static const struct {
    const char *flag, *says; // NULL: allowed; "math": allowed only with fast-math
} rows[] = {
    {"-O0", NULL},
    {"-O3", NULL},
    {"-O4", "not on the list"},
    {"-march=native", NULL},
    {"-march=evil", "wants one of"},
    {"-march=native ", "wants one of"},
    {"-march=", "wants one of"},
    {"-mtune=znver3", NULL},
    {"-mprefer-vector-width=512", NULL},
    {"-mprefer-vector-width=51", "wants one of"},
    {"-funroll-loops", NULL},
    {"-fno-unroll-loops", NULL},
    {"-fno-tree-vectorize", NULL},
    {"-fno-math-errno", NULL},
    {"-fno-trapping-math", NULL},
    {"-fassociative-math", "math"},
    {"-fno-signed-zeros", "math"},
    {"-freciprocal-math", "math"},
    {"-ffinite-math-only", "math"},
    {"-ffast-math", "math"},
    {"-Ofast", "math"},
    {"-fopenmp-simd", NULL},
    {"-fopenmp", NULL},
    {"-falign-loops=32", NULL},
    {"-falign-loops=32:16:8", NULL},
    {"-falign-loops=32:x", "numbers from"},
    {"-falign-loops=0", "numbers from"},
    {"-falign-functions=99999", "numbers from"},
    {"--param=max-unroll-times=8", NULL},
    {"--param max-unroll-times=8", "not on the list"},
    {"--param=max-unroll-times=1000", "must lie between"},
    {"--param=max-unroll-times=8x", "must lie between"},
    {"--param=ggc-min-heapsize=1", "not on the list"},
    {"--param", "not on the list"},
    {"-I/etc", "not on the list"},
    {"-include", "not on the list"},
    {"-B/tmp", "not on the list"},
    {"-Wl,-rpath,/tmp", "not on the list"},
    {"-Wa,x", "not on the list"},
    {"-Wp,x", "not on the list"},
    {"@/etc/passwd", "not on the list"},
    {"-specs=x", "not on the list"},
    {"-fplugin=x.so", "not on the list"},
    {"-o", "not on the list"},
    {"-ofoo", "not on the list"},
    {"-xassembler", "not on the list"},
    {"-DX", "not on the list"},
    {"-lm", "not on the list"},
    {"/etc/passwd", "not on the list"},
    {"", "not on the list"},
    {"-O3 -B/tmp", "not on the list"},
    {"-fopenmp=libfoo", "not on the list"},
    {"-fdump-tree-all", "not on the list"},
    {"-fsanitize=address", "not on the list"},
    {"-pg", "not on the list"},
};

static void candidates_pass_an_allow_list(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int math = 0; math < 2; math++) {
            struct err e = {0};
            bool is_math = rows[i].says && strcmp(rows[i].says, "math") == 0;
            int want = rows[i].says && !(is_math && math) ? -1 : 0;
            int got = cflags_check(rows[i].flag, math, &e);
            const char *says = is_math ? "does not allow" : rows[i].says;
            if (got != want || (want < 0 && (!strstr(e.msg, says) || !e.hint[0]))) {
                printf("# %s: %d, %s\n", rows[i].flag, got, e.msg);
                CHECK(false);
            }
        }
}

static void kinds_of_flags(void)
{
    CHECK(cflags_threads("-fopenmp") && !cflags_threads("-fopenmp-simd") && !cflags_threads("-nonsense"));
    CHECK(cflags_fast_math("-ffast-math") && !cflags_fast_math("-fno-math-errno"));
    struct err e = {0};
    CHECK_INT(cflags_check("-funrol-loops", false, &e), -1);
    CHECK_STR(e.hint, "Did you mean '-funroll-loops'?");
}

static void a_tasks_own_flags(void)
{
    static const char *const good[] = {"-O3",     "-march=haswell", "-ffast-math", "-std=gnu11",
                                       "-DFOO=1", "-fwrapv",        "-Wall"};
    static const char *const bad[] = {"-o",     "x.c",      "@f",       "-fplugin=x", "-I/usr",
                                      "-Wl,-z", "-specs=x", "-include", "-shared",    ""};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_INT(cflags_check_task(good[i], NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = {0};
        CHECK_INT(cflags_check_task(bad[i], &e), -1);
        CHECK(e.hint[0] != 0);
    }
}

static void the_man_page_has_the_list(void)
{
    struct str page = {0};
    CHECK_INT(io_read_file("man/ksmith-task.5", 1 << 20, &page, NULL), 0);
    const char *at = strstr(str_c(&page), ".Sh FLAGS");
    CHECK(at != NULL);
    for (int kind = 0; at && kind < 2; kind++)
        for (size_t i = 0; kind ? cflags_param(i) != NULL : cflags_name(i) != NULL; i++) {
            char want[96];
            const char *name = kind ? cflags_param(i) : cflags_name(i) + 1;
            // roff would take the O of -Os for a macro's name
            snprintf(want, sizeof want, "%s %s\n", kind ? "\n.It Li" : "Fl",
                     strcmp(name, "Os") ? name : "\\&Os");
            if (!strstr(at, want)) {
                printf("# no %s", want);
                CHECK(false);
            }
        }
    str_free(&page);
}

int main(void)
{
    T(candidates_pass_an_allow_list);
    T(kinds_of_flags);
    T(a_tasks_own_flags);
    T(the_man_page_has_the_list);
    T_END;
}
