// What candidates may not contain, in plain spellings and in disguise, and that ordinary kernels pass.
#include "t.h"

#include "base/io.h"
#include "source/scan.h"

#include <dirent.h>

static size_t scan(const char *text, const char *base, struct scan_opts o, struct scan_finding *first)
{
    scan_findings out = {0};
    char *exact = malloc(strlen(text) ? strlen(text) : 1); // no byte behind the text may be read
    memcpy(exact, text, strlen(text));
    size_t n = scan_source(exact, strlen(text), base, base ? strlen(base) : 0, &o, &out);
    if (first && out.n)
        *first = out.v[0];
    vec_free(&out);
    free(exact);
    return n;
}

static void forbidden(void)
{
    static const char *const texts[] = {
        "void k(void) { asm(\"nop\"); }",
        "void k(void) { __asm__ volatile(\"nop\"); }",
        "#include \"/etc/passwd\"\n",
        "#include \"../secret.h\"\n",
        "#include <unistd.h>\n",
        "#include HEADER\n",
        "#embed \"x\"\n",
        "#line 3 \"other.c\"\n",
        "void k(void) { system(\"x\"); }",
        "#define GO system\n",
        "#define GO(x) sys##x\n",
        "__attribute__((constructor)) void f(void) { }",
        "__attribute__((__constructor__)) void f(void) { }",
        "void k(float *y) { static float last; y[0] = last++; }",
        "void k(float *y) { static const float *last; if (!last) last = y; }",
        "#define KEEP static\n",
        "float cache[64];\nvoid k(void) { }",
        "float *seen = 0;\nvoid k(void) { }",
        "struct { float a; } cache;\n",
        "extern float other;\n",
        "_Thread_local int x;\n",
        "void k(void) { as\\\nm(\"nop\"); }",
        "#inc\\\nlude \"/etc/passwd\"\n",
        "%:include \"/etc/passwd\"\n",
        "void k(void) <% %>",
        "?"
        "?=include \"/etc/passwd\"\n",
        "#pragma GCC optimize(\"Ofast\")\n",
        "#pragma omp parallel for\n",
        "#if 0\nvoid k(void) { asm(\"nop\"); }\n#endif\n",
        "const char *t = __DATE__;\n",
    };
    for (size_t i = 0; i < countof(texts); i++) {
        struct scan_finding f = {0};
        size_t n = scan(texts[i], NULL, (struct scan_opts){.func = "k"}, &f);
        if (!n || !f.reason[0] || !f.what[0] || !f.line) {
            CHECK(!"refused");
            printf("# %s\n", texts[i]);
        }
    }
}

static void allowed(void)
{
    static const char *const texts[] = {
        "#include <math.h>\n#include <stdint.h>\nstatic const float t[2 * 3] = {1};\nstatic float f(float x) "
        "{ return x; }\n"
        "void k(float *y, int n) { for (int i = 0; i < n; i++) y[i] = f(t[i % 6]); }\n",
        "typedef float v8 __attribute__((vector_size(32)));\nstruct s;\nstruct p { int a; };\nenum { N = 4 "
        "};\n"
        "const float one = 1;\nvoid other(int a);\nvoid k(float *y) { y[0] = one; }\n",
        "#define BM 4 // knob: 2 4 8\n#define SUM(a, b) \\\n    ((a) + (b))\nvoid k(struct p *q) { q->time = "
        "SUM(1, 2); /* asm */ }\n",
        "void k(float *y) { static const float *const t = 0; (void)t; y[0] = sizeof(\"system(\"); int a = 1 "
        "? 2 : 3; }\n",
        "#pragma omp simd\n",
        "",
    };
    for (size_t i = 0; i < countof(texts); i++) {
        struct scan_finding f = {0};
        if (scan(texts[i], NULL, (struct scan_opts){.func = "k"}, &f)) {
            CHECK(!"allowed");
            printf("# %s: %s: %s\n", texts[i], f.what, f.reason);
        }
    }
}

static void what_the_baseline_has_may_stay(void)
{
    static const char base[] = "#include <unistd.h>\nfloat table[4];\n";
    CHECK_INT(scan("#include <unistd.h>\nfloat table[4];\nint x = 1;\n", base, (struct scan_opts){0}, NULL),
              1);
    CHECK_INT(scan(base, base, (struct scan_opts){0}, NULL), 0);
}

static void options(void)
{
    static const char omp[] =
        "#include <omp.h>\nvoid k(void) {\n#pragma omp parallel for\nfor (int i = 0; i < 3; i++) ; }\n";
    CHECK_INT(scan(omp, NULL, (struct scan_opts){.threads = true}, NULL), 0);
    CHECK_INT(scan(omp, NULL, (struct scan_opts){0}, NULL), 2);
    CHECK_INT(scan("void k(void) { asm(\"nop\"); }", NULL, (struct scan_opts){.allow_asm = true}, NULL), 0);
    static const char cuda[] =
        "#include <cuda_fp16.h>\n__global__ void k(float *y) { __shared__ float t[32]; t[0] = *y; }\n";
    CHECK_INT(scan(cuda, NULL, (struct scan_opts){.cuda = true}, NULL), 0);
    CHECK_INT(scan(cuda, NULL, (struct scan_opts){0}, NULL), 1);
    CHECK_STR(scan_severity_name(SCAN_FLAG), "flag");
}

// The shipped kernels pass, without their own baseline.
static void sessions_pass(void)
{
    DIR *d = opendir("sessions");
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[128];
        snprintf(name, sizeof name, "%.100s", e->d_name);
        char *dash = strrchr(name, '-');
        if (name[0] == '.' || !dash || strcmp(dash, "-c") != 0)
            continue;
        *dash = 0;
        struct str text = {0};
        struct err err = {0};
        struct scan_finding f = {0};
        char *path = xasprintf("sessions/%s/%s.c", e->d_name, name);
        if (io_read_file(path, 1 << 20, &text, &err) == 0) {
            n++;
            CHECK_INT(scan(str_c(&text), NULL, (struct scan_opts){0}, &f), 0);
            CHECK_STR(f.reason, "");
        }
        str_free(&text);
        free(path);
    }
    if (d)
        closedir(d);
    CHECK(n >= 8);
}

int main(void)
{
    T(forbidden);
    T(allowed);
    T(what_the_baseline_has_may_stay);
    T(options);
    T(sessions_pass);
    T_END;
}
