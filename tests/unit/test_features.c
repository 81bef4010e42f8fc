// Features of known kernels, compiled here and read back from their machine code.
#include "base/io.h"
#include "cpu/compile.h"
#include "cpu/features.h"
#include "cpu/loops.h"
#include "t.h"

static struct task task;
static struct compiler *cc;

static struct features of(const char *source, const char *const *flags, size_t n)
{
    struct features f = {0};
    struct binary b;
    struct str log = {0};
    struct err e = {0};
    CHECK_INT(compiler_text(cc, "k.c", source, flags, n, &b, &log, &e), 0);
    CHECK_INT(features_of(b.path, "k", &f, &e), 0);
    CHECK(f.known);
    str_free(&log);
    return f;
}
#define FEATURES(source, ...) \
    of(source, (const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *))

static const char dot[] = "float k(const float *a, const float *b, int n)\n{\n    float s = 0;\n"
                          "    for (int i = 0; i < n; i++)\n        s += a[i] * b[i];\n    return s;\n}\n";
static const char sgemm[] =
    "void k(float *restrict c, const float *restrict a, const float *restrict b, int n)\n{\n"
    "    for (int i = 0; i < n; i++)\n        for (int p = 0; p < n; p++)\n            for (int j = 0; j < "
    "n; j++)\n"
    "                c[i * n + j] += a[i * n + p] * b[p * n + j];\n}\n";

static void vector_width(void)
{
    CHECK_INT(FEATURES(dot, "-O2").vec, 0);
    CHECK_INT(FEATURES(dot, "-O3", "-ffast-math").vec, 1);
    CHECK_INT(FEATURES(dot, "-O3", "-ffast-math", "-mavx2", "-mfma").vec, 2);
    CHECK_INT(FEATURES(dot, "-O3", "-ffast-math", "-mavx512f", "-mprefer-vector-width=512").vec, 3);
}

static void accumulators_are_counted(void)
{
    struct features one = FEATURES(dot, "-O3", "-ffast-math", "-mavx2", "-mfma");
    CHECK_INT(one.accumulators, 1);
    CHECK_INT(one.acc, 0);
    CHECK(one.fma >= 1);
    struct features four = FEATURES("typedef float v8 __attribute__((vector_size(32), aligned(4)));\n"
                                    "void k(const v8 *a, const v8 *b, v8 *o, int n)\n{\n"
                                    "    v8 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};\n"
                                    "    for (int i = 0; i < n; i += 4) {\n"
                                    "        s0 += a[i] * b[i]; s1 += a[i + 1] * b[i + 1];\n"
                                    "        s2 += a[i + 2] * b[i + 2]; s3 += a[i + 3] * b[i + 3];\n    }\n"
                                    "    o[0] = s0; o[1] = s1; o[2] = s2; o[3] = s3;\n}\n",
                                    "-O3", "-mavx2", "-mfma");
    CHECK_INT(four.accumulators, 4);
    CHECK_INT(four.acc, 2);
    CHECK_INT(four.vec, 2);
}

static void nesting(void)
{
    CHECK_INT(FEATURES(dot, "-O2").depth, 1);
    struct features f = FEATURES(sgemm, "-O2");
    CHECK_INT(f.depth, 3);
    CHECK_INT(f.block, 2);
    CHECK(f.loads > 0 && f.stores > 0 && f.code_bytes > 0 && f.instructions > f.hot_instructions);
    // Out-of-line remainders that jump back are no loops of their own.
    CHECK_INT(FEATURES(sgemm, "-O3", "-mavx2", "-mfma").depth, 3);
    CHECK_INT(FEATURES("int k(int a) { return a + 1; }", "-O2").depth, 0);
}

static void calls_and_gathers(void)
{
    CHECK(FEATURES(
              "float expf(float); void k(float *a, int n) { for (int i = 0; i < n; i++) a[i] = expf(a[i]); }",
              "-O2")
              .calls >= 1);
    CHECK(FEATURES("void k(float *restrict o, const float *restrict a, const int *restrict at, int n)\n"
                   "{ for (int i = 0; i < n; i++) o[i] = a[at[i]]; }",
                   "-O3", "-mavx512f", "-mavx512vl", "-mtune=skylake-avx512")
              .gathers >= 1);
}

// 0: jump 2; 1: body; 2: branch 1 (a loop of 1 and 2); 3: branch 0 (around it); 4: return
static void loops_of_a_graph(void)
{
    struct flow_insn v[] = {{.address = 10, .flow = FLOW_JUMP, .target = 12},
                            {.address = 11},
                            {.address = 12, .flow = FLOW_BRANCH, .target = 11},
                            {.address = 13, .flow = FLOW_BRANCH, .target = 10},
                            {.address = 14, .flow = FLOW_RETURN}};
    CHECK_INT(loops_find(v, 5), 2);
    CHECK_INT(v[0].depth, 1);
    CHECK_INT(v[1].depth, 2);
    CHECK_INT(v[2].depth, 2);
    CHECK_INT(v[3].depth, 1);
    CHECK_INT(v[4].depth, 0);
    // A jump back into the middle from where the target does not rule is no natural loop.
    struct flow_insn odd[] = {{.address = 1, .flow = FLOW_BRANCH, .target = 4},
                              {.address = 2},
                              {.address = 3, .flow = FLOW_RETURN},
                              {.address = 4, .flow = FLOW_JUMP, .target = 2}};
    CHECK_INT(loops_find(odd, 4), 0);
}

int main(void)
{
    struct err e = {0};
    char *dir = io_temp_dir("ksmith-test", &e);
    task = (struct task){.dir = dir, .project = dir, .kernel_file = "k.c", .kernel_func = "k"};
    T(loops_of_a_graph);
#ifdef __x86_64__
    if (compiler_open(&task, &cc, &e) < 0) {
        printf("not ok 2 - compiler_open: %s\n1..2\n", e.msg);
        return 1;
    }
    T(vector_width);
    T(accumulators_are_counted);
    T(nesting);
    T(calls_and_gathers);
    compiler_close(cc);
#endif
    io_remove(dir, NULL);
    free(dir);
    T_END;
}
