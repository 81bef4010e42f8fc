#include "base/io.h"
#include "base/task.h"
#include "t.h"

#include <sys/stat.h>
#include <unistd.h>

// A whole task, with %s in the middle for what a test adds; sections may be opened again.
static const char GOOD[] = "[task]\n"
                           "name = rmsnorm\n"
                           "kernel = rms.c:rmsnorm\n"
                           "require = H%4==0\n"
                           "[args]\n"
                           "out = out f32[T,H]\n"
                           "x = in f32[T,H] normal(0, 2) align=16\n"
                           "w = inout i32[max(H,1)] int(-3,3)\n"
                           "T = dim i32\n"
                           "H = dim i32\n"
                           "eps = val f32 1e-6\n"
                           "[shapes]\n"
                           "one = T=1 H=64 test\n"
                           "big = T=32 H=4*1024 test bench weight=2\n"
                           "[reference]\n"
                           "c = ref.c:rmsnorm_ref\n";

static int parse(const char *text, const char *const *set, size_t n, struct task *t, err_list *errors)
{
    return task_parse("task.ini", text, strlen(text), "/s/rms", set, n, t, errors);
}

static void a_good_task_loads(void)
{
    struct task t;
    err_list errors = {0};
    char text[4096];
    snprintf(text, sizeof text,
             "%s[metric]\nbytes = 8*T*H\n[build]\nallow = fast-math threads\nthreads = 2\ndefine = A B=3\n"
             "[check]\nf32 = rtol 1e-4 k 8\ncache = cold\n[evolve]\niterations = 7\nseed = "
             "18446744073709551615\n[budget]\nwall = 1h30m\nusd = 5.00\n",
             GOOD);
    CHECK_INT(parse(text, NULL, 0, &t, &errors), 0);
    for (size_t i = 0; i < errors.n; i++)
        err_print(&errors.v[i], stdout);
    CHECK_STR(t.name, "rmsnorm");
    CHECK_STR(t.kernel_file, "rms.c");
    CHECK_STR(t.kernel_func, "rmsnorm");
    CHECK_INT(t.args.n, 6);
    CHECK_INT(t.dims.n, 2);
    CHECK_STR(t.dims.v[1], "H");
    CHECK_INT(t.args.v[1].align, 16);
    CHECK_NEAR(t.args.v[1].dist.b, 2, 0);
    CHECK_INT(t.args.v[4].dim, 1);
    CHECK_NEAR(t.args.v[5].value, 1e-6, 0);
    CHECK_INT(t.shapes.n, 2);
    CHECK_INT(t.shapes.v[1].dims[1], 4096);
    CHECK_NEAR(t.shapes.v[1].weight, 2, 0);
    CHECK(t.shapes.v[1].test && t.shapes.v[1].bench && !t.shapes.v[0].bench);
    CHECK(t.allow_fast_math && t.allow_threads && !t.allow_asm);
    CHECK_INT(t.threads, 2);
    CHECK_INT(t.define.n, 2);
    CHECK(t.tol[DT_F32].set && !t.tol[DT_F64].set);
    CHECK_NEAR(t.tol[DT_F32].k, 8, 0);
    CHECK_INT(t.cache, CACHE_COLD);
    CHECK(t.seed == UINT64_MAX);
    CHECK_NEAR(t.wall_s, 5400, 0);
    CHECK_INT(t.cflags.n, 2); // the default
    int64_t n = 0;
    CHECK_INT(task_elements(&t, &t.args.v[0], t.shapes.v[1].dims, &n, NULL), 0);
    CHECK_INT(n, 32 * 4096);
    CHECK(task_eval(&t, t.metric_bytes, t.shapes.v[0].dims, &n) && n == 512);
    CHECK(!task_eval(&t, t.metric_flops, t.shapes.v[0].dims, &n));
    CHECK(task_allows(&t, (int64_t[]){5, 8}) && !task_allows(&t, (int64_t[]){5, 9}));
    task_free(&t);
    vec_free(&errors);
}

int main(void)
{
    T(a_good_task_loads);
    T_END;
}
