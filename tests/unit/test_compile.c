// The compiler in its sandbox: what it builds, what it refuses, and what it cannot be made to read or write.
#include "base/clock.h"
#include "base/io.h"
#include "cpu/compile.h"
#include "t.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *dir;
static struct task task;
static struct compiler *cc;
static struct str text;

static const char saxpy[] = "#include <math.h>\n"
                            "void k(float *o, const float *a, int n)\n"
                            "{\n    for (int i = 0; i < n; i++)\n        o[i] = expf(a[i]) + o[i];\n}\n";

static int build_with(const char *source, const char *flag, struct binary *b)
{
    struct err e = {0};
    int r = compiler_build(cc, source, &flag, flag ? 1 : 0, b, &text, &e);
    if (r < 0)
        printf("# %s\n", e.msg);
    return r;
}
static int build(const char *source, struct binary *b)
{
    return build_with(source, NULL, b);
}
static const char *reason_for(const char *source)
{
    static struct str reason;
    struct binary b;
    struct binary_facts f;
    str_clear(&reason);
    if (build(source, &b) != 0)
        return str_c(&text);
    return compiler_check_binary(cc, &b, "k", &f, &reason, NULL) == 0 ? "" : str_c(&reason);
}
static void put(const char *name, const char *data)
{
    char *path = io_join(dir, name);
    CHECK(io_write_file(path, data, strlen(data), 0644, NULL) == 0);
    free(path);
}

static void builds_a_kernel(void)
{
    struct binary b, again;
    struct binary_facts f;
    struct str reason = {0};
    CHECK_INT(build(saxpy, &b), 0);
    CHECK(!b.cached && b.text_bytes > 0 && strlen(b.id) == 64);
    CHECK_INT(compiler_check_binary(cc, &b, "k", &f, &reason, NULL), 0);
    CHECK_INT(f.state_bytes, 0);
    CHECK(strstr(f.calls, "exp") != NULL);
    void *so = dlopen(b.path, RTLD_NOW | RTLD_LOCAL);
    CHECK(so != NULL);
    void (*k)(float *, const float *, int) = NULL;
    if (so)
        *(void **)&k = dlsym(so, "k");
    float o[3] = {1, 2, 3}, a[3] = {0, 0, 0};
    if (k)
        k(o, a, 3);
    CHECK_NEAR(o[2], 4, 1e-6);
    CHECK_INT(build(saxpy, &again), 0);
    CHECK(again.cached);
    CHECK_STR(again.id, b.id);
    if (so)
        dlclose(so);
    str_free(&reason);
}

static void equal_code_has_equal_identity(void)
{
    struct binary a, b, other;
    struct str moved = {0};
    str_addf(&moved, "// a comment\n%s", saxpy);
    CHECK_INT(build(saxpy, &a), 0);
    CHECK_INT(build(str_c(&moved), &b), 0);
    CHECK(!b.cached);
    CHECK_STR(b.id, a.id);
    CHECK_INT(compiler_text(cc, "other_name.c", saxpy, (const char *[]){"-O2"}, 1, &b, &text, NULL), 0);
    CHECK_INT(compiler_text(cc, "third_name.c", saxpy, (const char *[]){"-O2"}, 1, &other, &text, NULL), 0);
    CHECK_STR(other.id, b.id);
    // The same instructions calling another function are other code.
    CHECK_INT(build("float expf(float); void k(float *o) { *o = expf(*o); }", &a), 0);
    CHECK_INT(build("float sinf(float); void k(float *o) { *o = sinf(*o); }", &b), 0);
    CHECK(strcmp(a.id, b.id) != 0);
    str_free(&moved);
}

static void errors_in_words(void)
{
    struct binary b;
    CHECK_INT(build("void k(float *o)\n{\n    *o = nowhere;\n}\n", &b), 1);
    CHECK(strstr(str_c(&text), "k.c:3:10: error:") && strstr(text.s, "nowhere"));
    CHECK(!strstr(str_c(&text), "ksmith-cc"));
    CHECK_INT(build("void k(float *o)\n{\n    *o = nowhere;\n}\n", &b), 1);
    CHECK(b.cached && strstr(str_c(&text), "nowhere"));
    CHECK_INT(build("int missing(void); int k(void) { return missing(); }", &b), 1);
    CHECK(strstr(str_c(&text), "undefined reference to `missing'") && !strstr(text.s, "/tmp"));
    CHECK_INT(build_with(saxpy, "-fplugin=x.so", &b), 1);
    CHECK_INT(build_with(saxpy, "-ffast-math", &b), 1);
    CHECK_INT(build_with(saxpy, "-fopenmp", &b), 1);
    CHECK_INT(build_with(saxpy, "-funroll-loops", &b), 0);
}

static void long_logs_are_cut(void)
{
    struct str s = {0};
    struct binary b;
    for (int i = 0; i < 2000; i++)
        str_addf(&s, "#warning %d %s\n", i, "a long line that says nothing at all and goes on and on");
    str_add(&s, "int k(void) { return nowhere; }\n");
    CHECK_INT(build(str_c(&s), &b), 1);
    CHECK(text.len <= 4096 + 64);
    CHECK(strstr(str_c(&text), "more left out"));
    str_free(&s);
    // Errors come first.
    CHECK_INT(build("#warning first\nint k(void) { return nowhere; }\n", &b), 1);
    CHECK(strstr(str_c(&text), "nowhere") < strstr(str_c(&text), "first"));
}

// No byte of the file that the source asks for reaches the log or the binary.
static void nothing_leaks(void)
{
    put(".ksmith-secret", "int the_secret_word = 1;\n");
    struct binary b;
    char *path = io_join(dir, ".ksmith-secret");
    static const char *const forms[] = {"#include \"%s\"\nvoid k(void) {}\n",
                                        "#include \".ksmith-secret\"\nvoid k(void) {}\n",
                                        "__asm__(\".data\\n.incbin \\\"%s\\\"\\n.text\"); void k(void) {}\n",
                                        "#line 1 \"%s\"\nvoid k(void) { return nowhere; }\n"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct str s = {0};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        char *source = NULL;
        CHECK(asprintf(&source, forms[i], path) > 0);
#pragma GCC diagnostic pop
        CHECK_INT(build(source, &b), 1);
        CHECK(!strstr(str_c(&text), "the_secret_word"));
        free(source);
        str_free(&s);
    }
    CHECK_INT(build("#include \"/etc/passwd\"\nvoid k(void) {}\n", &b), 1);
    CHECK(!strstr(str_c(&text), "root:"));
    CHECK(strstr(str_c(&text), "Permission denied") != NULL);
    free(path);
}

static void local_headers(void)
{
    struct binary b;
    put("near.h", "#include \"deep/far.h\"\n");
    put("deep/far.h", "#define SCALE 3\n");
    CHECK_INT(build("#include \"near.h\"\n#include <api.h>\nint k(void) { return SCALE + MORE; }\n", &b), 0);
    put("near.h", "#define SCALE 5\n");
    struct binary changed;
    CHECK_INT(
        build("#include \"near.h\"\n#include <api.h>\nint k(void) { return SCALE + MORE; }\n", &changed), 0);
    CHECK(!changed.cached && strcmp(changed.id, b.id) != 0);
}

static void fast_math_sets_nothing_at_load(void)
{
    struct binary b;
    struct binary_facts f;
    struct str reason = {0};
    task.allow_fast_math = true;
    CHECK_INT(build_with(saxpy, "-ffast-math", &b), 0);
    CHECK_INT(compiler_check_binary(cc, &b, "k", &f, &reason, NULL), 0);
    task.allow_fast_math = false;
    str_free(&reason);
}

static void refused_binaries(void)
{
    CHECK_STR(reason_for("int system(const char *); int k(void) { return system(\"id\"); }"),
              "calls system()");
    CHECK_STR(reason_for("int x; __attribute__((constructor)) static void c(void) { *(volatile int *)&x = 1; "
                         "} void k(void) {}"),
              "runs code at load time");
    CHECK_STR(reason_for("int x; __attribute__((destructor)) static void c(void) { *(volatile int *)&x = 1; "
                         "} void k(void) {}"),
              "runs code at unload time");
    CHECK_STR(reason_for("static void f(void) {} static void *r(void) { return f; } "
                         "static void g(void) __attribute__((ifunc(\"r\"))); void k(void) { g(); }"),
              "runs code at load time (ifunc)");
    CHECK_STR(reason_for("int clock_gettime(int c, void *t) { return c + !t; } void k(void) {}"),
              "defines a function of the C library: clock_gettime");
    CHECK_STR(reason_for("void other(void) {}"), "does not define the function k");
    CHECK_STR(
        reason_for("__asm__(\".section .note.GNU-stack,\\\"x\\\",@progbits\\n.text\"); void k(void) {}"),
        "needs an executable stack");
    CHECK_STR(reason_for("#include <stdlib.h>\n#include <string.h>\n#include <math.h>\nvoid k(float *o) { "
                         "float *t = malloc(99); "
                         "memset(t, *(int *)o, 99); *o = powf(*t, sinf(*o)); free(t); }"),
              "");
}

static void state_is_seen(void)
{
    struct binary b;
    struct binary_facts f;
    struct str reason = {0};
    CHECK_INT(build("static float kept[100]; void k(float *o) { *o = kept[(int)*o]++; }", &b), 0);
    CHECK_INT(compiler_check_binary(cc, &b, "k", &f, &reason, NULL), 0);
    CHECK(f.state_bytes >= 400);
    str_free(&reason);
}

static void huge_output_is_stopped(void)
{
    struct binary b;
    CHECK_INT(build("__asm__(\".data\\n.fill 200000000,1,1\\n.text\"); void k(void) {}\n", &b), 1);
    CHECK(strstr(str_c(&text), "larger than") || strstr(str_c(&text), "too large"));
}

static void reference_in_double(void)
{
    struct binary b;
    put("ref.c",
        "void ref(real *o, const real *a, int n) { for (int i = 0; i < n; i++) o[i] = exp(a[i]); }\n");
    CHECK_INT(compiler_reference(cc, &b, &text, NULL), 0);
    CHECK(b.text_bytes > 0);
}

// A worker that was killed leaves its folder; the next one removes it, and none that is in use.
static void stale_folders_go(void)
{
    int fds[2], status;
    struct binary b;
    char path[512] = "";
    CHECK(pipe(fds) == 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct compiler *mine;
        struct str log = {0};
        if (compiler_open(&task, &mine, NULL) == 0 &&
            compiler_build(mine, saxpy, NULL, 0, &b, &log, NULL) == 0 &&
            write(fds[1], b.path, sizeof b.path) > 0)
            raise(SIGKILL);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    CHECK(read(fds[0], path, sizeof path) == (ssize_t)sizeof path && io_exists(path));
    struct compiler *next;
    CHECK_INT(compiler_open(&task, &next, NULL), 0);
    CHECK(!io_exists(path));
    CHECK_INT(build("void k(void) {}", &b), 0); // cc, which was open all the while, still works
    compiler_close(next);
    close(fds[0]);
    close(fds[1]);
}

static void version_and_command(void)
{
    struct str s = {0};
    const char *flag = "-funroll-loops";
    compiler_command(cc, &flag, 1, &s);
    CHECK(strstr(str_c(&s), "-O3 -DTWO=2 -funroll-loops") != NULL);
    CHECK(strchr(compiler_version(cc), '.') != NULL);
    str_free(&s);
}

int main(void)
{
    struct err e = {0};
    dir = io_temp_dir("ksmith-test", &e);
    char *inc = io_join(dir, "inc"), *deep = io_join(dir, "deep");
    CHECK(mkdir(inc, 0755) == 0 && mkdir(deep, 0755) == 0);
    put("inc/api.h", "#define MORE 4\n");
    task = (struct task){.dir = dir,
                         .project = dir,
                         .kernel_file = "k.c",
                         .kernel_func = "k",
                         .ref_file = "ref.c",
                         .ref_func = "ref",
                         .threads = 1};
    vec_push(&task.cflags, "-O3");
    vec_push(&task.define, "TWO=2");
    vec_push(&task.include, "inc");
    if (compiler_open(&task, &cc, &e) < 0) {
        printf("not ok 1 - compiler_open: %s\n1..1\n", e.msg);
        return 1;
    }
    T(builds_a_kernel);
    T(equal_code_has_equal_identity);
    T(errors_in_words);
    T(long_logs_are_cut);
    T(nothing_leaks);
    T(local_headers);
    T(fast_math_sets_nothing_at_load);
    T(refused_binaries);
    T(state_is_seen);
    T(huge_output_is_stopped);
    T(reference_in_double);
    T(stale_folders_go);
    T(version_and_command);
    compiler_close(cc);
    io_remove(dir, NULL);
    vec_free(&task.cflags);
    vec_free(&task.define);
    vec_free(&task.include);
    str_free(&text);
    free(dir);
    free(inc);
    free(deep);
    T_END;
}
