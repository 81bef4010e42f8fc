// Launch plans: what the comments say, the numbers at a shape, and what a device refuses, with the numbers.
#include "base/cudaflags.h"
#include "cuda/plan.h"
#include "t.h"

static const char ini[] =
    "[task]\nname = k\nbackend = cuda\nkernel = k.cu:k\n"
    "[args]\nout = out f32[T,H]\nx = in f32[T,H]\neps = val f32 1e-6\nT = dim i32\nH = dim i32\n"
    "[shapes]\na = T=7 H=1000 test bench\n[reference]\noriginal = yes\n[build]\ndefine = WIDE=4\n";

static const struct launch_limits h200 = {1024,  {1024, 1024, 64}, {2147483647, 65535, 65535},
                                          49152, 232448,           65536};

static void load(struct task *t)
{
    err_list errors = {0};
    CHECK_INT(task_parse("task.ini", ini, sizeof ini - 1, "/nonexistent", NULL, 0, t, &errors), 0);
    for (size_t i = 0; i < errors.n; i++)
        printf("# %s: %s\n", errors.v[i].where, errors.v[i].msg);
    vec_free(&errors);
}

// The plan of a source at the task's shape; the words where there is none.
static bool plan_of(const char *source, struct plan *p, struct plan_at *at, struct str *why)
{
    struct task t;
    str_clear(why);
    load(&t);
    bool ok = plan_read(p, &t, source, why) == 0 && plan_eval(p, &t, t.shapes.v[0].dims, at, why) == 0;
    task_free(&t);
    return ok;
}

static void numbers_at_a_shape(void)
{
    struct plan p;
    struct plan_at at;
    struct str why = {0};
    CHECK(plan_of(
        "#define BLOCK 128 // knob: 64 128\n#define TWICE (2 * BLOCK)\nconst int ROWS = 4; // knob: 2 4\n"
        "// scratch: tmp f32[T, ceildiv(H, BLOCK)]\n"
        "__global__ void k(float *out) {\n"
        "    // launch: part<<<dim3(ceildiv(H, BLOCK), T), BLOCK, TWICE*sizeof(float)>>>(x, tmp, H)\n"
        "    // launch: ns::k<256><<<T, WIDE*32>>>(out, tmp, T, ROWS, 0.5f, eps)\n}\n",
        &p, &at, &why));
    CHECK_STR(str_c(&why), "");
    CHECK_INT(at.n, 2);
    CHECK_INT(at.launch[0].grid[0], 8);
    CHECK_INT(at.launch[0].grid[1], 7);
    CHECK_INT(at.launch[0].block[0], 128);
    CHECK_INT(at.launch[0].shared, 1024);
    CHECK_INT(at.launch[1].block[0], 128);
    CHECK_INT(at.scratch[0], 56);
    CHECK_STR(p.launches.v[1].name, "ns::k<256>");
    CHECK_INT(p.launches.v[0].args.v[1].kind, PLAN_SCRATCH);
    CHECK_INT(p.launches.v[1].args.v[0].kind, PLAN_BUFFER);
    CHECK_INT(p.launches.v[1].args.v[3].kind, PLAN_INT);
    CHECK_INT(p.launches.v[1].args.v[4].kind, PLAN_FLOAT);
    CHECK(!p.launches.v[1].args.v[4].twice);
    plan_free(&p);
    str_free(&why);
}

static void faults_have_words(void)
{
    static const struct {
        const char *source, *words;
    } rows[] = {
        {"__global__ void k() {}", "nothing says how it is launched"},
        {"// launch: k<<<T>>>(out)\n", "a launch needs blocks and threads"},
        {"// launch: k<<<T, 32, 0, s>>>(out)\n", "a stream of its own"},
        {"// launch: k<<<dim3(1, 2, 3, 4), 32>>>(out)\n", "more than three sizes"},
        {"// launch: k<<<Q, 32>>>(out)\n", "Q"},
        {"// launch: k<<<T - 8, 32>>>(out)\n", "-1 blocks"},
        {"#define B 32\n#define B 64\n// launch: k<<<T, B>>>(out)\n", "B"},
        {"// scratch: tmp f33[T]\n// launch: k<<<T, 32>>>(out)\n", "no scratch buffer"},
        {"// launch: k<<<T, 32>>>(out,,x)\n", "an empty argument"},
        {"#define A B\n#define B A\n// launch: k<<<A, 32>>>(out)\n", "A"},
    };
    struct str why = {0};
    for (size_t i = 0; i < countof(rows); i++) {
        struct plan p;
        struct plan_at at;
        CHECK(!plan_of(rows[i].source, &p, &at, &why));
        CHECK(strstr(str_c(&why), rows[i].words));
        if (!strstr(str_c(&why), rows[i].words))
            printf("# row %zu: %s\n", i, str_c(&why));
        plan_free(&p);
    }
    str_free(&why);
}

static void limits_are_said_with_numbers(void)
{
    struct kernel_report r = {.registers = 80, .shared_bytes = 1024};
    struct str why = {0};
    const struct {
        struct launch_at at;
        const char *words;
    } rows[] = {
        {{{1, 1, 1}, {2048, 1, 1}, 0}, "2048 threads"},
        {{{1, 1, 1}, {1, 1, 128}, 0}, "128 threads in z"},
        {{{1, 70000, 1}, {32, 1, 1}, 0}, "70000 blocks in y"},
        {{{1, 1, 1}, {32, 1, 1}, 232000}, "233024 bytes of shared memory"},
        {{{1, 1, 1}, {1024, 1, 1}, 0}, "81920 registers"},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        str_clear(&why);
        CHECK_INT(plan_fits(&rows[i].at, "k", &r, &h200, &why), -1);
        CHECK(strstr(str_c(&why), rows[i].words));
    }
    struct launch_at good = {{70000, 1, 1}, {512, 1, 1}, 200000};
    CHECK_INT(plan_fits(&good, "k", &r, &h200, &why), 0);
    str_free(&why);
}

static void flags_pass_a_list(void)
{
    struct err e = {0};
    CHECK_INT(cudaflags_check("-maxrregcount=64", false, &e), 0);
    CHECK_INT(cudaflags_check("--maxrregcount=64", false, &e), 0);
    CHECK_INT(cudaflags_check("-maxrregcount=4", false, &e), -1);
    CHECK_INT(cudaflags_check("-maxrregcount=64x", false, &e), -1);
    CHECK_INT(cudaflags_check("-fmad=false", false, &e), 0);
    CHECK_INT(cudaflags_check("-use_fast_math", false, &e), -1);
    CHECK_INT(cudaflags_check("-use_fast_math", true, &e), 0);
    CHECK_INT(cudaflags_check("-prec-div=true", false, &e), 0);
    CHECK_INT(cudaflags_check("-prec-div=false", false, &e), -1);
    CHECK_INT(cudaflags_check("-ftz=maybe", true, &e), -1);
    CHECK_INT(cudaflags_check("-I/etc", true, &e), -1);
    CHECK_INT(cudaflags_check("-use_fast_mat", true, &e), -1);
    CHECK(strstr(e.hint, "-use_fast_math"));
}

int main(void)
{
    T(numbers_at_a_shape);
    T(faults_have_words);
    T(limits_are_said_with_numbers);
    T(flags_pass_a_list);
    T_END;
}
