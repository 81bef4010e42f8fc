// Rules on many spellings of loops: whatever a rule offers must compile and compute what the kernel computed.
// The values are small integers, so that float sums are exact in every order and any difference is a wrong
// rewrite.
#include "t.h"

#include "base/draw.h"
#include "base/io.h"
#include "base/proc.h"
#include "base/task.h"
#include "source/edits.h"

#include <dlfcn.h>
#include <unistd.h>

#define HEAD "void k(float *y, const float *x, float *z, int n, int m)\n{\n"
static const char *const bodies[] = {
    "for (int i = 0; i < n; i++) y[i] = x[i] * 2;",
    "for (int i = 0; i < n; i++)\n  for (int j = 0; j < m; j++) {\n    float s = 0;\n    for (int k2 = 0; k2 "
    "< 5; k2++)\n"
    "      s += x[i * 5 + k2] * x[k2 * m + j];\n    y[i * m + j] = s;\n  }",
    "for (int i = 0; i < n; i++)\n  for (int j = 0; j < m; j++)\n    y[i * m + j] = 0;\n"
    "for (int i = 0; i < n; i++)\n  for (int c = 0; c < 5; c++)\n    for (int j = 0; j < m; j++)\n"
    "      y[i * m + j] += x[i * 5 + c] * x[c * m + j];",
    "for (size_t i = 0; i < (size_t)n; ++i) { y[i] = x[i] /* comment */ + 1; } // end",
    "int i, j; for (i = 0; i < n; ++i) { for (j = 0; j < m; ++j) { y[j * n + i] = x[i * m + j]; } }",
    "int i, j = 0; for (i = 0; i < n; ++i) for (j = 0; j < m; ++j) z[i * m + j] = x[j]; y[0] = i + j;",
    "const float *p = x; float *q = y; for (int i = 0; i < n; i++) *q++ = *p++;",
    "const float *p = x; for (int i = 0; i < n; i++) { const float *r = x + i * m; for (int j = 0; j < m; "
    "j++) y[i * m + j] = "
    "r[j] + p[j]; }",
    "float *row = y; for (int i = 0; i < n; i++) { for (int j = 0; j < m; j++) row[j] = x[j] + i; row += m; "
    "}",
    "for (int i = 0; i < n; i++) { y += 1; for (int j = 0; j < m; j++) y[j] = x[j] + i; }",
    "float t[8][8]; for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) t[i][j] = x[i * 8 + j];\n"
    "for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) y[i * 8 + j] = t[j][i];",
    "float s = 0; for (int i = 0; i < n; i++) s += x[i]; y[0] = s;",
    "float s = 0, t = 0; for (int i = 0; i < n; i++) { s += x[i]; t += s; } y[0] = t;",
    "float big = x[0]; for (int i = 1; i < n; i++) if (x[i] > big) big = x[i]; y[0] = big;",
    "float big = x[0]; int at = 0; for (int i = 1; i < n; i++) if (x[i] > big) { big = x[i]; at = i; } y[0] "
    "= at;",
    "for (int i = 1; i < n; i++) y[i] = y[i - 1] + x[i];",
    "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i + j] += x[j];",
    "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] = y[i] + x[i * m + j];",
    "for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) y[i * n + j] = x[j] + i;",
    "for (int i = 0; i < n; i += 2) { y[i] = x[i]; y[i + 1] = x[i] + 1; }",
    "int i = 0; while (i < n) { y[i] = x[i]; i++; }",
    "int i = 0; for (; i + 4 <= n; i += 4) { y[i] = x[i]; y[i+1] = x[i+1]; y[i+2] = x[i+2]; y[i+3] = x[i+3]; "
    "}\n"
    "for (; i < n; i++) y[i] = x[i];",
    "for (int i = n - 1; i >= 0; i--) y[i] = x[i] + y[i + 1];",
    "for (int i = 0; i < n; i++) { if (x[i] < 0) continue; y[i] = x[i]; }",
    "for (int i = 0; i < n; i++) { if (x[i] > 3) break; y[i] = x[i]; }",
    "for (int i = 0; i < 9; i++) { for (int c = 0; c < 3; c++) y[3 * i + c] = i; for (int c = 0; c < 6; c++) "
    "z[i] += y[3 * i + "
    "c]; }",
    "for (int i = 0; i < n; i++) for (int i = 0; i < m; i++) y[i] += 1;",
    "#define AT(r, c) ((r) * m + (c))\nfor (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[AT(i, j)] = "
    "x[AT(i, j)] + 1;",
    "#define STEP i += 2\nfor (int i = 0; i < n; i++) { y[i] = 1; STEP; }",
    "#define N 6\nfor (int i = 0; i < N; i++)\n#pragma GCC ivdep\n  for (int j = 0; j < N; j++)\n    y[i * N "
    "+ j] = x[j * N + i];",
    "for (int i = 0; i < n; i++)\n#pragma omp simd\n  for (int j = 0; j < m; j++)\n    y[i * m + j] = x[i];",
    "for (float f = 0; f < 5; f += 1) y[(int)f] = 1;",
    "for (const float *p = x; p < x + n; p++) y[p - x] = *p;",
    "for (int i = 0; i < n * 0.5; i++) y[i] = 2;",
    "for (int i = 0; i < n; i++) { int o = i * m; for (int j = 0; j < m; j++) y[o + j] = x[o + j]; }",
    "int o = 0; for (int i = 0; i < n; i++) { for (int j = 0; j < m; j++) y[o + j] = x[o + j]; o += 1; }",
    "struct { float a; } s = {0}; for (int i = 0; i < n; i++) { s.a += x[i]; y[i] = s.a; }",
    "#if 1\nfor (int i = 0; i < n; i++)\n#else\nfor (int i = 1; i < n; i++)\n#endif\n  for (int j = 0; j < "
    "m; j++)\n    y[i * m + j] "
    "= 1;",
    "for (int i = 0; i < n; i++) { float s = 0; for (int j = 0; j < m; j++) { s += x[i * m + j]; z[j] = s; } "
    "y[i] = s; }",
    "for (int i = 0; i < n; i++) { float a = x[i], b = a * 2; y[i] = a + b; z[i] = a - b; }",
    "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { float a = x[i * m + j]; y[j * n + i] = a; z[i "
    "* m + j] = a + 1; }",
    "for (int b = 0; b < 2; b++) for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { float a = 0; for "
    "(int c = 0; c < 3; "
    "c++) for (int d = 0; d < 3; d++) a += x[(i + c) * 16 + j + d]; y[(b * n + i) * m + j] = a; }",
    "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { if (i == 0 || j == 0 || i == n - 1 || j == m "
    "- 1) y[i * m + j] = "
    "x[j]; else y[i * m + j] = x[(i - 1) * m + j] + x[i * m + j - 1]; }",
    "for (int i = 0; i < n; i++) { float s = 0, t = 0; for (int j = 0; j < m; j++) { float d = x[i * m + j] "
    "- 1; s += d; t += d * "
    "d; z[i * m + j] = d; } y[2 * i] = s; y[2 * i + 1] = t; }",
    "int flag = m > 4; for (int i = 0; i < n; i++) { float s = 0; for (int r = 0; r < 5; r++) { int at = i + "
    "r - 2; if (at >= 0 && "
    "at < n && flag) s += x[at] * z[r]; } y[i] = s; }",
    "for (int k2 = 0; k2 < 3; k2++) for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { float s = 0; "
    "for (int c = 0; c < 3; "
    "c++) s += x[(i + c) * 8 + j] * z[k2 * 3 + c]; y[(k2 * n + i) * m + j] = s; }",
    "for (int i = 0; i < n; i++) { y[i] = 0; for (int j = 0; j < m; j++) y[i] += x[i * m + j] * x[j]; }",
    "for (int i = 0; i < n; i++) y[i] = x[i] * 2; for (int i = 0; i < n; i++) z[i] = y[i] + x[i]; float s = "
    "0; for (int i = 0; i < "
    "n; i++) s += z[i]; z[0] = s;",
    "for (int i = 1; i < n; i++) { float a = y[i - 1]; y[i] = a + x[i]; z[i] = a; }",
    "for (long i = 2; i <= n; i += 3) { float s = i; for (long j = 1; j <= m; j++) s = s > x[i + j] ? s : "
    "x[i + j]; y[i] = s; }",
};

enum { STEPS = 4, VARIANTS = 10, BUFFER = 4096, BEFORE = 64 };
typedef void kernel_fn(float *y, const float *x, float *z, int n, int m);

static struct task task; // no flags, one thread, buffers that never overlap
static char dir[] = "/tmp/ks-rules-XXXXXX";

struct variant {
    struct str text;
    struct edits edits;
};

// One value of each choice that a site offers.
static json *pick_params(const json *choices, struct draw d, uint64_t n)
{
    json *params = json_first(choices) ? json_object() : NULL;
    for (const json *c = json_first(choices); c; c = json_next(c)) {
        const json *v = json_first(c);
        for (uint64_t k = draw_below(d, json_key(c), n, json_count(c)); k && json_next(v); k--)
            v = json_next(v);
        json_put(params, json_key(c), json_copy(v));
    }
    return params;
}

// One step: a random rule at a random place that it offers. false where there is none.
static bool step(struct variant *v, struct draw d, uint64_t n)
{
    struct rule_source s;
    struct err e = {0};
    if (rule_source_open(&s, str_c(&v->text), v->text.len, "k.c", "k", &task, &e) < 0) {
        CHECK_STR(e.msg, "");
        return false;
    }
    struct {
        const struct rule *rule;
        char *where;
        json *params;
    } all[256];
    size_t count = 0;
    for (size_t r = 0; r < rule_table_n; r++) {
        rule_sites sites = {0};
        if (!rule_fits(rule_table[r], &s)) // a rule for CUDA kernels
            continue;
        rule_table[r]->sites(&s, &sites);
        for (size_t i = 0; i < sites.n && count < countof(all); i++) {
            CHECK(sites.v[i].why[0]);
            if (sites.v[i].ok) {
                all[count].rule = rule_table[r];
                all[count].params = pick_params(sites.v[i].params, d, n);
                all[count++].where = xstrdup(sites.v[i].where);
            }
        }
        rule_sites_free(&sites);
    }
    bool done = false;
    if (count) {
        size_t pick = (size_t)draw_below(d, "pick", n, count);
        struct str out = {0};
        done = all[pick].rule->apply(&s, all[pick].where, all[pick].params, &out, &e) == 0;
        if (!done)
            printf("# offered, then refused: %s at %s: %s\n", all[pick].rule->name, all[pick].where, e.msg);
        CHECK(done);
        edits_add(&v->edits, all[pick].rule->name, all[pick].where, all[pick].params);
        rule_source_close(&s);
        str_free(&v->text);
        v->text = out;
    } else {
        rule_source_close(&s);
    }
    for (size_t i = 0; i < count; i++) {
        free(all[i].where);
        json_free(all[i].params);
    }
    return done;
}

// Replaying the list gives the text of the single steps.
static void check_replay(const char *base, const struct variant *v)
{
    struct edits_env env = {rule_table, rule_table_n, "k.c", "k", &task};
    struct str out = {0};
    struct err e = {0};
    CHECK_INT(edits_replay(&v->edits, base, strlen(base), &env, &out, NULL, NULL, &e), 0);
    CHECK_STR(str_c(&out), str_c(&v->text));
    str_free(&out);
}

static void *build(const struct variant *v, size_t n)
{
    VEC(const char *) argv = {0};
    static const char *const fixed[] = {"gcc",           "-std=gnu17", "-O1",   "-w",
                                        "-fopenmp-simd", "-shared",    "-fPIC", "-o"};
    for (size_t i = 0; i < countof(fixed); i++)
        vec_push(&argv, fixed[i]);
    char *so = xasprintf("%s/k.so", dir);
    struct str log = {0};
    struct err e = {0};
    char *files[VARIANTS + 1];
    vec_push(&argv, so);
    for (size_t i = 0; i < n; i++) {
        struct str text = {0};
        str_addf(&text, "#include <stddef.h>\n#define k k_%zu\n%s", i, str_c(&v[i].text));
        files[i] = xasprintf("%s/%zu.c", dir, i);
        CHECK_INT(io_write_file(files[i], str_c(&text), text.len, 0600, &e), 0);
        vec_push(&argv, files[i]);
        str_free(&text);
    }
    vec_push(&argv, NULL);
    struct proc_spec spec = {.argv = argv.v, .in = -1, .out = -1, .err = -1};
    struct proc_end end = {0};
    void *lib = NULL;
    if (proc_run(&spec, &log, 4000, 60000, &end, &e) == 0 && end.status == 0)
        lib = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        printf("# does not compile (status %d, signal %d):\n# %s %s\n", end.status, end.signal, str_c(&log),
               e.msg);
    CHECK(lib != NULL);
    for (size_t i = 0; i < n; i++)
        unlink(files[i]), free(files[i]);
    unlink(so);
    free(so);
    str_free(&log);
    vec_free(&argv);
    return lib;
}

static void run(kernel_fn *f, int n, int m, float out[2 * BUFFER])
{
    static float x[BUFFER];
    for (int i = 0; i < BUFFER; i++) {
        x[i] = (float)((i * 7 + i / 5) % 9 - 3);
        out[i] = (float)(i % 5);
        out[BUFFER + i] = (float)(i % 3);
    }
    f(out + BEFORE, x + BEFORE, out + BUFFER + BEFORE, n, m);
}

static void compare(void *lib, const struct variant *v, size_t n)
{
    static const int sizes[][2] = {{0, 0}, {1, 1}, {7, 3}, {12, 16}, {5, 70}};
    static float want[2 * BUFFER], got[2 * BUFFER];
    for (size_t s = 0; s < countof(sizes); s++)
        for (size_t i = 0; i < n; i++) {
            char name[32];
            snprintf(name, sizeof name, "k_%zu", i);
            void *p = dlsym(lib, name);
            kernel_fn *f;
            memcpy(&f, &p, sizeof f);
            run(f, sizes[s][0], sizes[s][1], i ? got : want);
            if (i && memcmp(got, want, sizeof want) != 0) {
                CHECK(!"the same results");
                printf("# n %d m %d:\n%s\nbecame\n%s\n", sizes[s][0], sizes[s][1], str_c(&v[0].text),
                       str_c(&v[i].text));
                return;
            }
        }
}

static int offered;

static void one_body(size_t b)
{
    struct variant v[VARIANTS + 1] = {0};
    size_t n = 1;
    str_addf(&v[0].text, HEAD "%s\n}\n", bodies[b]);
    for (size_t i = 1; i <= VARIANTS; i++) {
        struct draw d = {11, b * 100 + i};
        str_addn(&v[n].text, v[0].text.s, v[0].text.len);
        uint64_t steps = 1 + (i - 1) % STEPS;
        for (uint64_t k = 0; k < steps && step(&v[n], d, k); k++)
            ;
        if (!v[n].edits.v.n) {
            str_free(&v[n].text);
            break;
        }
        check_replay(str_c(&v[0].text), &v[n]);
        offered++;
        n++;
    }
    void *lib = n > 1 || getenv("KS_RULES_ALL") ? build(v, n < VARIANTS ? n : VARIANTS) : NULL;
    if (lib) {
        compare(lib, v, n < VARIANTS ? n : VARIANTS);
        dlclose(lib);
    }
    for (size_t i = 0; i < n; i++) {
        str_free(&v[i].text);
        edits_free(&v[i].edits);
    }
}

static void offers_compile_and_compute_the_same(void)
{
    CHECK(mkdtemp(dir) != NULL);
    for (size_t b = 0; b < countof(bodies); b++)
        one_body(b);
    printf("# %d rewrites\n", offered);
    CHECK(offered > 80);
    rmdir(dir);
}

// After simd the loop has its pragma, also where the loop around it has no braces: never a second one.
static void simd_only_once(void)
{
    struct variant v = {0};
    struct edits_env env = {rule_table, rule_table_n, "k.c", "k", &task};
    struct err e = {0};
    str_add(
        &v.text, HEAD
        "for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n        y[i * m + j] = x[j];\n}\n");
    edits_add(&v.edits, "simd", "for i / for j", NULL);
    struct str once = {0}, twice = {0};
    CHECK_INT(edits_replay(&v.edits, v.text.s, v.text.len, &env, &once, NULL, NULL, &e), 0);
    CHECK(strstr(str_c(&once), "#pragma omp simd\n    for (int j") != NULL);
    CHECK(edits_replay(&v.edits, once.s, once.len, &env, &twice, NULL, NULL, &e) < 0);
    CHECK_STR(e.msg, "simd: it has a pragma already");
    str_free(&once);
    str_free(&twice);
    str_free(&v.text);
    edits_free(&v.edits);
}

int main(void)
{
    T(offers_compile_and_compute_the_same);
    T(simd_only_once);
    T_END;
}
