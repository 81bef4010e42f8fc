// What the CUDA worker can prove without a GPU: the compile process, the reports, the reading of binaries,
// and what the driver table says where there is no driver.
#include "base/io.h"
#include "base/json.h"
#include "base/proc.h"
#include "cuda/cubin.h"
#include "cuda/driver.h"
#include "cuda/nvrtc.h"
#include "cuda/report.h"
#include "t.h"

#include <sys/wait.h>
#include <unistd.h>

static void report_of_two_kernels(void)
{
    static const char log[] =
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function '_Z4gemmPf' for 'sm_90'\n"
        "ptxas         .     48 bytes stack frame, 844 bytes spill stores, 868 bytes spill loads\n"
        "ptxas info    : Used 32 registers, used 1 barriers, 8448 bytes smem\n"
        "ptxas info    : Compiling entry function 'copy' for 'sm_90'\n"
        "ptxas info    : Function properties for copy\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 10 registers, used 0 barriers\n";
    kernel_reports r = {0};
    report_parse(log, sizeof log - 1, &r);
    CHECK_INT(r.n, 2);
    const struct kernel_report *g = report_find(&r, "_Z4gemmPf"), *c = report_find(&r, "copy");
    CHECK(g && c && !report_find(&r, "gemm"));
    if (g && c) {
        CHECK_INT(g->registers, 32);
        CHECK_INT(g->barriers, 1);
        CHECK_INT(g->shared_bytes, 8448);
        CHECK_INT(g->stack_bytes, 48);
        CHECK_INT(g->spill_stores, 844);
        CHECK_INT(g->spill_loads, 868);
        CHECK_INT(c->registers, 10);
        CHECK_INT(c->spill_loads, 0);
    }
    vec_free(&r);
}

static void log_puts_errors_first(void)
{
    static const char log[] = "k.cu(3): warning #177-D: variable \"y\" was declared but never referenced\n"
                              "      int y;\n          ^\n\n"
                              "Remark: The warnings can be suppressed with \"-diag-suppress\"\n\n"
                              "k.cu(2): error: identifier \"x\" is undefined\n      x = 1;\n      ^\n\n"
                              "1 error detected in the compilation of \"k.cu\".\n";
    struct str s = {0};
    report_distil(log, sizeof log - 1, 4096, &s);
    CHECK(str_starts(
        str_c(&s), "k.cu(2): error: identifier \"x\" is undefined\n      x = 1;\n      ^\nk.cu(3): warning"));
    CHECK(!strstr(str_c(&s), "detected in") && !strstr(str_c(&s), "Remark"));
    str_clear(&s);
    report_distil(log, sizeof log - 1, 120, &s);
    CHECK(s.len <= 120 && strstr(str_c(&s), "[1 more]"));
    str_free(&s);
}

static void damaged_cubin_is_refused(void)
{
    struct cubin c;
    struct err e = {0};
    unsigned char junk[4096];
    CHECK_INT(cubin_read("", 0, &c, &e), -1);
    for (unsigned round = 0; round < 200; round++) { // an ELF header, then offsets that lead anywhere
        for (size_t i = 0; i < sizeof junk; i++)
            junk[i] = (unsigned char)((round * 7919u + i * 104729u) >> (i % 13));
        memcpy(junk, "\177ELF\2\1\1", 7);
        junk[0x3a] = 64;
        junk[0x3b] = 0;
        junk[0x28] &= 0xf8;
        memset(junk + 0x2a, 0, 6);
        if (cubin_read(junk, sizeof junk, &c, &e) == 0)
            cubin_free(&c);
    }
}

static void errors_have_words(void)
{
    CHECK(gpu_error_sticky(GPU_ILLEGAL_ADDRESS) && gpu_error_sticky(GPU_LAUNCH_FAILED));
    CHECK(!gpu_error_sticky(GPU_OUT_OF_MEMORY) && !gpu_error_sticky(GPU_LAUNCH_OUT_OF_RESOURCES));
    CHECK(strstr(gpu_error_words(GPU_MISALIGNED_ADDRESS), "misaligned"));
}

static void missing_driver_is_said(void)
{
    setenv("KSMITH_GPU_LIBRARY", "/nonexistent/libcuda.so", 1);
    struct gpu g;
    struct err e = {0};
    CHECK_INT(gpu_open(&g, &e), -1);
    CHECK(strstr(e.msg, "no GPU driver") && e.hint[0]);
    unsetenv("KSMITH_GPU_LIBRARY");
}

// A compile process: this program forked, so that nothing needs a built worker.
struct server {
    pid_t pid;
    int in;
    FILE *out;
};

static void server_start(struct server *s)
{
    int to[2], from[2];
    s->pid = -1;
    if (pipe(to) != 0 || pipe(from) != 0)
        return;
    fflush(stdout);
    s->pid = fork();
    if (s->pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        nvrtc_main();
    }
    close(to[0]);
    close(from[1]);
    s->in = to[1];
    s->out = fdopen(from[0], "r");
}

static json *server_ask(struct server *s, const char *source, const char *name, struct str *cubin)
{
    json *q = json_object(), *options = json_array(), *names = json_array();
    json_put_str(q, "source", source);
    json_put_str(q, "file", "k.cu");
    static const char *const given[] = {"--gpu-architecture=sm_90", "--std=c++17", "--ptxas-options=-v",
                                        "-lineinfo"};
    for (size_t i = 0; i < countof(given); i++)
        json_push(options, json_new_str(given[i]));
    if (name)
        json_push(names, json_new_str(name));
    json_put(q, "options", options);
    json_put(q, "names", names);
    struct str line = {0};
    json_print(q, &line);
    str_addc(&line, '\n');
    json_free(q);
    int rc = io_write_all(s->in, line.s, line.len);
    str_free(&line);
    char *text = NULL;
    size_t cap = 0;
    ssize_t n = rc == 0 ? getline(&text, &cap, s->out) : -1;
    struct err e = {0};
    json *a = n > 0 ? json_parse(text, (size_t)n - 1, &e) : NULL;
    free(text);
    str_clear(cubin);
    size_t bytes = a ? (size_t)json_int(a, "cubin", 0) : 0, ptx = a ? (size_t)json_int(a, "ptx", 0) : 0;
    str_reserve(cubin, bytes + ptx + 1);
    cubin->len = fread(cubin->s, 1, bytes + ptx, s->out);
    return a;
}

static void server_stop(struct server *s)
{
    close(s->in);
    if (s->out)
        fclose(s->out);
    waitpid(s->pid, NULL, 0);
}

static void code_id_of(struct server *s, const char *source, char id[65])
{
    struct str cubin = {0};
    struct cubin c;
    struct err e = {0};
    json *a = server_ask(s, source, NULL, &cubin);
    id[0] = 0;
    if (a && json_int(a, "rc", -1) == 0 &&
        cubin_read(cubin.s, (size_t)json_int(a, "cubin", 0), &c, &e) == 0) {
        memcpy(id, c.code_id, 65);
        cubin_free(&c);
    }
    json_free(a);
    str_free(&cubin);
}

static void nvrtc_compiles(void)
{
    struct server s;
    struct str cubin = {0};
    server_start(&s);
    json *a =
        server_ask(&s,
                   "#include <cstdint>\n#include <assert.h>\n#include <stdio.h>\n"
                   "__global__ void half(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                   "  if (i < n) x[i] *= 0.5f; assert(n); }\n"
                   "template <int N> __global__ void fill(float *x) { x[threadIdx.x] = N; }\n",
                   "fill<3>", &cubin);
    CHECK(a && json_int(a, "rc", -1) == 0);
    if (a && json_int(a, "rc", -1) == 0) {
        struct cubin c;
        struct err e = {0};
        int matches;
        kernel_reports r = {0};
        CHECK_INT(cubin_read(cubin.s, (size_t)json_int(a, "cubin", 0), &c, &e), 0);
        CHECK_STR(cubin_kernel(&c, "half", &matches), "_Z4halfPfi");
        CHECK(!cubin_kernel(&c, "hal", &matches) && matches == 0);
        const char *lowered = json_str(json_get(a, "names"), "fill<3>");
        CHECK(lowered && cubin_kernel(&c, lowered, &matches));
        bool asserts = false;
        for (size_t i = 0; i < c.needs.n; i++)
            asserts |= strcmp(c.needs.v[i], "__assertfail") == 0;
        CHECK(asserts);
        report_parse(json_str_or(a, "log", ""), strlen(json_str_or(a, "log", "")), &r);
        const struct kernel_report *k = report_find(&r, "_Z4halfPfi");
        CHECK(k && k->registers > 0);
        vec_free(&r);
        cubin_free(&c);
    }
    json_free(a);
    a = server_ask(&s, "__global__ void k(float *p) {\n  x = 1;\n}\n", NULL, &cubin);
    CHECK(a && json_int(a, "rc", -1) == 1 && strstr(json_str_or(a, "log", ""), "k.cu(2): error"));
    json_free(a);
    str_free(&cubin);
    server_stop(&s);
}

static void same_code_has_the_same_id(void)
{
    struct server s;
    char one[65], spaced[65], other[65];
    server_start(&s);
    code_id_of(&s, "extern \"C\" __global__ void k(float *p) { p[threadIdx.x] = 1; }", one);
    code_id_of(
        &s, "extern \"C\" __global__ void k(float *p)\n{\n    // a comment\n    p[threadIdx.x] = 2 - 1;\n}\n",
        spaced);
    code_id_of(&s, "extern \"C\" __global__ void k(float *p) { p[threadIdx.x] = 2; }", other);
    CHECK(one[0] && other[0]);
    CHECK_STR(spaced, one);
    CHECK(strcmp(one, other) != 0);
    server_stop(&s);
}

int main(void)
{
    T(report_of_two_kernels);
    T(log_puts_errors_first);
    T(damaged_cubin_is_refused);
    T(errors_have_words);
    T(missing_driver_is_said);
    struct str path = {0}, includes = {0};
    struct err e = {0};
    if (nvrtc_find(&path, &includes, &e) == 0) {
        T(nvrtc_compiles);
        T(same_code_has_the_same_id);
    } else {
        SKIP("nvrtc_compiles", "libnvrtc is not installed");
        SKIP("same_code_has_the_same_id", "libnvrtc is not installed");
    }
    str_free(&path);
    str_free(&includes);
    T_END;
}
