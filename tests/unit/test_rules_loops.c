// The rules on single loops, everything they offer: each site with each value of each choice, at the default
// and at the smallest value of the knobs that it brings, compiled and held against the original at odd sizes.
// The values are small integers and every sum is exact, so any difference is a wrong rewrite.
#include "t.h"

#include "base/io.h"
#include "base/proc.h"
#include "base/task.h"
#include "source/annot.h"
#include "source/edits.h"

#include <dlfcn.h>
#include <unistd.h>

#define HEAD "void k(float *y, const float *x, float *z, int n, int m)\n{\n    "

// What a body is there for: at least `offers` rewrites by the rule, or its refusal with these words.
static const struct {
    const char *rule;
    int offers;
    const char *refuses, *body;
} cases[] = {
    {"privatize", 1, NULL,
     "int h[16] = {0}; for (int i = 0; i < n; i++) h[(int)x[i] & 15]++; for (int b = 0; b < 16; b++) y[b] = "
     "h[b];"},
    {"privatize", 1, NULL,
     "int i; for (i = 1; i <= n; i += 2) { float w = x[i]; z[(int)w & 7] += w * 2; } y[0] = i;"},
    {"privatize", 1, NULL,
     "unsigned char b[64]; for (int i = 0; i < 64; i++) b[i] = (unsigned char)(i % 9);\n"
     "for (int i = 0; i < 64; i++) z[b[i]] -= 1;"},
    {"privatize", 0, "may overflow",
     "int h[16] = {0}; for (int i = 0; i < n; i++) h[(int)x[i] & 15] += i; y[0] = h[3];"},
    {"privatize", 0, "is not known", "for (int i = 0; i < n; i++) z[(int)(x[i] + 4)] += 1;"},
    {"privatize", 0, "may overlap", "for (int i = 0; i < n; i++) z[(int)z[i] & 7] += 1;"},
    {"privatize", 0, "does not depend on data", "for (int i = 0; i < n; i++) z[i] += 1;"},
    {"block", 2, NULL,
     "for (int i = 0; i < n; i++)\n  for (int j = 0; j < m; j++)\n    y[j * n + i] = x[i * m + j];"},
    {"block", 2, NULL,
     "int i, j; for (i = 1; i <= n; i += 2) { for (j = 0; j < m; j++) { float a = x[i]; y[i * m + j] = a "
     "+ x[j]; z[j * (n + 2) + i] = a; } }"},
    {"block", 0, "at different places",
     "for (int i = 1; i < n; i++)\n  for (int j = 0; j < m - 1; j++) y[i * m + j] = y[(i - 1) * m + j + 1] + "
     "1;"},
    {"block", 0, "depend on i",
     "for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) y[i * n + j] = x[j] + i;"},
    {"block", 0, "used after",
     "int i, j = 0; for (i = 0; i < n; i++) for (j = 0; j < m; j++) y[i * m + j] = 1; y[0] = i;"},
    {"pack", 1, NULL,
     "for (int i = 0; i < n; i++)\n  for (int j = 0; j < 6; j++) {\n    float s = 0;\n    for (int c = 0; c "
     "< m * 5; c++) s += x[c * 8 + j];\n    y[i * 6 + j] = s;\n  }"},
    {"pack", 2, NULL,
     "for (int i = 0; i < n; i++) for (int j = 1; j <= 9; j++) for (int c = 2; c < 5; c++) y[i * 9 + j] += "
     "x[j * 16 + c] * z[c * 16 + j];"},
    {"pack", 1, "runs is not known",
     "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) for (int c = 0; c < 4; c++) y[i * m + j] += "
     "x[c * 16];"},
    {"pack", 0, "may be written",
     "for (int i = 0; i < n; i++) for (int j = 0; j < 4; j++) y[i * 4 + j] = y[j * 8];"},
    {"pack", 0, "plain nest",
     "for (int i = 0; i < n; i++) for (int j = 0; j < 4; j++) if (x[j * 8] > 0) y[i * 4 + j] = x[j * 8];"},
    {"pack", 0, "together", "for (int i = 0; i < n; i++) for (int j = 0; j < 4; j++) y[i * 4 + j] = x[j];"},
    {"prefetch", 1, NULL,
     "int b[200]; for (int i = 0; i < 200; i++) b[i] = i * 7 % 200;\nfor (int i = 0; i < n; i++) y[i] = "
     "x[b[i]];"},
    {"prefetch", 1, NULL, "for (int i = 1; i <= m; i += 2) y[i] = x[i * n];"},
    {"prefetch", 0, "cannot guess", "for (int i = 0; i < n; i++) y[i] = x[i] + x[2 * i];"},
    {"prefetch", 0, "changes in the loop",
     "for (int i = 0; i < n; i++) { int at = i / 2; y[i] = x[at + i * m]; }"},
    {"align", 2, NULL,
     "for (int i = 0; i < n; i++)\n  for (int j = 0; j < m; j++)\n    y[i * m + j] = x[j] + z[i];"},
    {"align", 0, "no pointer", "float t[4]; for (int i = 0; i < 4; i++) t[i] = i; y[0] = t[n & 3];"},
    {"simd", 0, "alone on one side", "for (int i = 0; (size_t)i < (size_t)n; i++) y[i] = x[i] * 2;"},
    {"simd", 0, "no reduction",
     "float *p = y, *q = y; for (int i = 0; i < n; i++) p += 1; z[0] = (float)(p - q);"},
    {"simd", 0, "allows no other",
     "#pragma omp simd\nfor (int i = 0; i < n; i++)\n  for (int j = 0; j < m; j++)\n    y[i * m + j] = 1;"},
    {"simd", 1, NULL, "int c = 0; for (int i = 0; i < n; i++) c |= (int)x[i]; y[0] = c;"},
    {"accumulators", 2, NULL, "float s = 2; for (int i = 0; i < n; i++) s += x[i]; y[0] = s;"},
    {"accumulators", 2, NULL, "float s = 2; for (int i = 0; i <= n; ++i) { s -= x[i] * z[i]; } y[0] = s;"},
    {"accumulators", 2, NULL,
     "float s = 1, t = 3; int i; for (i = 3; i < n; i += 3) { float a = x[i]; s += a; t += a * a; }\n"
     "y[0] = s; y[1] = t + i;"},
    {"accumulators", 2, NULL, "double p = 1; for (int i = 0; i < n; i++) p *= x[i] > 0 ? 1 : -1; y[0] = p;"},
    {"accumulators", 2, NULL,
     "float big = x[0], low = 9; for (int i = 1; i < n; i++) { if (x[i] > big) big = x[i]; low = x[i] < low "
     "? "
     "x[i] : low; }\n"
     "y[0] = big; y[1] = low;"},
    {"accumulators", 2, NULL,
     "for (int i = 0; i < n; i++) { float s = 0, b = -99; for (size_t j = 0; j < (size_t)m; j++) { s += x[i "
     "* "
     "m + j]; b = fmaxf(b, x[j]); }\n"
     "  y[i] = s + b; }"},
    {"accumulators", 0, "accumulates nothing", "for (int i = 0; i < n; i++) y[i] = x[i];"},
    {"accumulators", 0, "scalar replacement", "for (int i = 0; i < n; i++) y[0] += x[i];"},
    {"fission", 1, NULL,
     "float s = 0; for (int i = 0; i < n; i++) { y[i] = x[i] * 2; s += y[i]; } z[0] = s;"},
    {"fission", 2, NULL,
     "float s = 0;\n    for (int i = 1; i < n; i++) {\n        float a = x[i - 1] + x[i];\n        float d = "
     "a - x[i];\n"
     "        y[i] = a;\n        z[i] = d;\n        s += d * d;\n    }\n    z[0] = s;"},
    {"fission", 0, "loops inside",
     "for (int i = 0; i < n; i++) { for (int j = 0; j < m; j++) y[i * m + j] = x[j]; z[i] = 1; }"},
    {"fission", 0, "keeps the compiler", "for (int i = 0; i < n; i++) { y[i] = x[i]; z[i] = 1; }"},
    {"simd", 0, "across memory", "float s = 0; for (int i = 0; i < n; i++) s += x[i * m]; y[0] = s;"},
    {"accumulators", 0, "across memory", "float s = 0; for (int i = 0; i < n; i++) s += x[i * m]; y[0] = s;"},
    {"fission", 0, "changes in between", "float s = 0; for (int i = 0; i < n; i++) { s += x[i]; y[i] = s; }"},
    {"fission", 0, "different places",
     "for (int i = 0; i < n; i++) { y[i] = floorf(x[i]); z[i] = y[i + 1]; }"},
    {"fission", 0, "computed twice",
     "for (int i = 0; i < n; i++) { float a = y[i]; y[i] = floorf(x[i]); z[i] = a; }"},
    {"fission", 0, "start may change", "int s = 1; for (int i = s; i < n; i++) { s += 1; y[i] = x[i]; }"},
    {"fusion", 1, NULL,
     "float s = 0, t = 0; for (int i = 0; i < n; i++) s += x[i];\n    for (int i = 0; i < n; i++) t += x[i] "
     "* 2;\n"
     "    y[0] = s; y[1] = t;"},
    {"fusion", 1, NULL,
     "for (int i = 0; i < n; i++) { float a = x[i]; y[i] = a * 2; }\n    for (int k = 0; k < n; ++k) { float "
     "a = y[k]; "
     "z[k] = a + x[k]; }"},
    {"fusion", 1, NULL,
     "for (int r = 0; r < n; r++) {\n        for (int i = 0; i < m; i++) y[r * m + i] = x[i];\n"
     "        for (int i = 0; i < m; i++) z[r * m + i] = y[r * m + i] * 2;\n    }"},
    {"fusion", 0, "both use s",
     "float s = 0; for (int i = 0; i < n; i++) s += x[i]; for (int i = 0; i < n; i++) y[i] = s;"},
    {"fusion", 0, "different places",
     "for (int i = 0; i < n; i++) y[i] = x[i]; for (int i = 0; i < n; i++) z[i] = y[i + 1];"},
    {"fusion", 0, "another range",
     "for (int i = 0; i < n; i++) y[i] = x[i]; for (int i = 0; i < m; i++) z[i] = x[i];"},
    {"fusion", 0, "counter is used",
     "int i, k; for (i = 0; i < n; i++) y[i] = x[i]; for (k = 0; k < n; k++) z[k] = x[k]; y[0] = i + k;"},
    {"vecmath", 1, NULL, "for (int i = 0; i < n; i++) y[i] = floorf(0.5f + expf(x[i] * 0));"},
    {"vecmath", 0, "no vector version", "for (int i = 0; i < n; i++) y[i] = floorf(x[i]);"},
    {"vecmath", 0, "already",
     "#pragma omp declare simd notinbranch\n    extern float expf(float);\n    for (int i = 0; i < n; i++) "
     "y[i] = "
     "expf(x[i]);"},
    {"unroll", 1, NULL, "for (int i = 0; i < n; i++) { if (x[i] > 0) y[i] = y[i - 1] + 1; }"},
    {"unroll", 1, NULL, "int i; for (i = 2; i <= n; i += 5) y[i] = y[i - 1] + 1; z[0] = i;"},
    {"unroll", 1, NULL, "for (size_t i = 1; i < (size_t)n; i++) y[i] = y[i - 1] + 1;"},
    {"unroll", 0, "independent", "for (int i = 0; i < n; i++) y[i] = x[i];"},
    {"unroll", 0, "by itself", "for (int i = 1; i < 8; i++) y[i] = y[i - 1];"},
    {"jam", 0, "break the vectors",
     "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i * m + j] = x[i] + x[j];"},
    {"jam", 1, NULL,
     "for (int i = 0; i < n; i++) {\n        const float *row = x + i * m;\n        float s = 0, t = i;\n"
     "        for (int j = 0; j < m; j++) {\n            float a = row[j];\n            s += a * x[j];\n     "
     "   }\n"
     "        y[i] = s + t;\n    }"},
    {"jam", 1, "used twice",
     "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { float s = 0; for (int c = 0; c < 3; c++) for "
     "(int d "
     "= 0; d < 2; d++)\n      s += x[(i + c) * 32 + j + d]; y[i * m + j] = s; }"},
    {"jam", 1, NULL,
     "float s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) s += x[i * m + j] * x[j]; y[0] = "
     "s;"},
    {"jam", 0, "depend on i",
     "for (int i = 0; i < n; i++) { y[i] = 0; for (int j = 0; j < i; j++) y[i] += x[j]; }"},
    {"jam", 0, "under a condition",
     "for (int i = 0; i < n; i++) if (x[i] > 0) for (int j = 0; j < m; j++) y[i * m + j] = x[j];"},
    {"jam", 0, "no plain scalar",
     "for (int i = 0; i < n; i++) { float t[2] = {0, 0}; for (int j = 0; j < m; j++) t[j & 1] += x[j]; y[i] "
     "= t[0] + "
     "t[1]; }"},
    {"hoist", 1, NULL,
     "float a = x[0] + 2; for (int i = 0; i < n; i++) { y[i] = x[i] * sqrtf(a * a) + (a + 1) * fabsf(a) - "
     "sqrtf(a * a); }"},
    {"hoist", 1, "stays the same",
     "for (int i = 0; i < n; i++) for (int c = 0; c < 4; c++)\n    for (int j = 0; j < m; j++) y[i * m + j] "
     "+= x[i * 4 + c] * "
     "x[c * m + j];"},
    {"hoist", 0, "stays the same", "for (int i = 0; i < n; i++) { y[i] = y[0] + x[i]; }"},
    {"hoist", 0, "stays the same", "for (int i = 0; i < n; i++) if (m > 100) y[i] = x[1000000 * m];"},
    {"hoist", 0, "stays the same", "float a = 1; for (int i = 0; i < n; i++) { y[i] = a * 2; a += 1; }"},
    {"scalar", 1, NULL, "for (int i = 0; i < n; i++) y[0] += x[i] * x[i];"},
    {"scalar", 1, NULL,
     "int i; for (i = 0; i < n; i++) { y[i] = 0; for (int j = 0; j < m; j++) { y[i] = y[i] + x[i * m + j]; "
     "if (x[j] > 3) "
     "y[i] -= 1; } }"},
    {"scalar", 0, "another place", "for (int i = 0; i < n; i++) { y[0] += x[i]; y[i] = 1; }"},
    {"scalar", 0, "every iteration", "for (int i = 0; i < n; i++) if (x[i] > 0) y[0] += x[i];"},
    {"scalar", 0, "another place",
     "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { y[i] += y[j]; }"},
    {"reciprocal", 1, NULL,
     "float d = 4; for (int i = 0; i < n; i++) { y[i] = (x[i] + 1) / d; z[i] /= d; z[i] += 2 * (x[i] / d); "
     "}"},
    {"reciprocal", 0, "stays the same",
     "for (int i = 0; i < n; i++) { y[i] = 1 / (x[i] + 5) + n / 2 + x[i] / 3; }"},
    {"peel", 2, NULL,
     "for (int i = 0; i < n; i++)\n        for (int j = 0; j < m; j++) {\n            if (i == 0 || j == 0 "
     "|| i == n - 1 || j "
     "== m - 1) {\n                y[i * m + j] = x[i * m + j];\n            } else {\n                y[i * "
     "m + j] = x[(i - 1) * m "
     "+ j] + x[(i + 1) * m + j] + x[i * m + j + 1];\n            }\n        }"},
    {"peel", 2, NULL,
     "for (int i = 0; i < n; i++)\n        for (int j = 0; j <= m; j++) {\n            int inside = i > 0 && "
     "i < n - 1 && j > 0 "
     "&& j < m;\n            y[i * (m + 1) + j] = inside ? x[i + j] * 2 : x[j] - 1;\n            if "
     "(!inside) z[j] += 1;\n        }"},
    {"peel", 1, NULL,
     "for (int i = 0; i < n; i++) { float s = 0; for (int r = 0; r < m; r++) { int at = i + r - 2; if (at >= "
     "0 && at < n && x[r] "
     "> 0) s += x[at]; } y[i] = s; }"},
    {"peel", 1, NULL,
     "int i; for (i = 2; i < n; ++i) { if (3 > i) y[i] = 1; else if (i - 1 < m) y[i] = 2; z[i] = i != 2; }"},
    {"peel", 0, "compares i", "for (int i = 0; i < n; i++) { m += 1; if (i < m) y[i] = x[i]; }"},
    {"peel", 0, "one type", "for (size_t i = 0; i < (size_t)n; i++) y[i] = i > 0 ? x[i] : 0;"},
    {"unswitch", 1, NULL,
     "int flag = n > m; for (int i = 0; i < n; i++) { if (flag) { y[i] = x[i]; z[i] = 1; } else y[i] = 2; "
     "z[i] += flag ? 1 : "
     "x[i]; }"},
    {"unswitch", 2, NULL,
     "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) if (m > 5 && n > 6) y[i * m + j] = x[j];"},
    {"unswitch", 0, "every iteration", "for (int i = 0; i < n; i++) if (x[0] > 1) y[i] = x[i];"},
    {"reuse", 1, NULL,
     "for (int t = 0; t < n; t++) {\n        float big = x[t * m], s = 1;\n        for (int h = 0; h < m; "
     "h++)\n            s += "
     "floorf(x[t * m + h] - big);\n        s = s > 0 ? 2 : 4;\n        for (int k2 = 0; k2 < m; k2++)\n      "
     "      y[t * m + k2] = "
     "floorf(x[t * m + k2] - big) / s;\n    }"},
    {"reuse", 0, "changes between",
     "float s = 0, b = 1; for (int i = 0; i < n; i++) s += floorf(x[i] - b); b = 2; for (int i = 0; i < n; "
     "i++) y[i] = "
     "floorf(x[i] - b) / s;"},
    {"reuse", 0, "other things",
     "float s = 0; for (int i = 0; i < n; i++) s += floorf(x[i]) + y[i]; for (int i = 0; i < n; i++) y[i] = "
     "floorf(x[i]) / s;"},
    {"reuse", 0, "changes between",
     "float s = 0; for (int i = 0; i < n; i++) { s += floorf(y[i]); } for (int i = 0; i < n; i++) y[i] = "
     "floorf(y[i]) * s;"},
    {"reuse", 0, "under a condition",
     "float s = 0; for (int i = 0; i < n; i++) if (x[i] > 0) s += floorf(x[i]); for (int i = 0; i < n; i++) "
     "y[i] = floorf(x[i]) * "
     "s;"},
    {"ivdep", 1, NULL, "for (int i = 0; i < n; i++) y[i] = x[i] + z[i];"},
    {"ivdep", 0, "might overlap", "for (int i = 0; i < n; i++) y[i] = y[i] * 2;"},
    {"ivdep", 0, "different places", "for (int i = 1; i < n; i++) y[i] = y[i - 1] + x[i];"},
    // What may not be seen through.
    {"fission", 0, "computed twice",
     "float s = 0; for (int i = 0; i < n; i++) { float a = s; s += floorf(x[i]); y[i] = a; }"},
    {"fission", 0, NULL,
     "#define S s\n    float s = 0; for (int i = 0; i < n; i++) { s += x[i]; y[i] = floorf(S); }"},
    {"hoist", 0, "volatile", "volatile float v = 1; for (int i = 0; i < n; i++) y[i] = sqrtf(v) * x[i];"},
    {"accumulators", 2, NULL,
     "int i; float s = 0; for (i = 2; i < n - 9; i++) s += x[i]; y[0] = s; y[1] = i;"},
    {"accumulators", 0, NULL,
     "float s = 0; for (int i = 0; i < n; i++) { s += x[i]; { int i = 3; y[9] = i; } } y[0] = s;"},
    {"jam", 1, "come first",
     "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { float s = 0; for (int c = 0; c < 3; c++) s "
     "+= x[i * 3 + c] * "
     "z[c * m + j]; y[i * m + j] = s; }"},
};

enum { VARIANTS_MAX = 64, BUFFER = 65536, BEFORE = 128 };
typedef void kernel_fn(float *y, const float *x, float *z, int n, int m);
static struct task task; // no flags, one thread, buffers that never overlap
static struct str all;   // every variant of a case, as one C file
static char *texts[VARIANTS_MAX];
static size_t variants;

static void add_variant(const char *text, size_t len)
{
    if (variants == VARIANTS_MAX)
        return;
    texts[variants] = xstrndup(text, len);
    str_addf(&all, "#undef k\n#define k k_%zu\n%s\n", variants++, text);
}

// The rewrite with the knobs it has now, and with the first value of each.
static void add_rewrite(const struct str *text)
{
    struct annots a;
    err_list errors = {0};
    CHECK_INT(annot_read(&a, str_c(text), text->len, "k.c", &errors), 0);
    vec_free(&errors);
    add_variant(str_c(text), text->len);
    struct str now = {0};
    str_add(&now, str_c(text));
    for (size_t i = 0; i < a.knobs.n; i++) {
        struct str next = {0};
        CHECK_INT(annot_set_knob(now.s, now.len, a.knobs.v[i].name, a.knobs.v[i].values[0], &next, NULL), 0);
        str_free(&now);
        now = next;
    }
    if (a.knobs.n)
        add_variant(now.s, now.len);
    str_free(&now);
    annot_free(&a);
}

static int apply_all(const struct rule *rule, const struct rule_source *s, const struct rule_site *site)
{
    struct err e = {0};
    struct str out = {0};
    int n = 0;
    if (!json_first(site->params)) {
        CHECK_INT(rule->apply(s, site->where, NULL, &out, &e), 0);
        add_rewrite(&out);
        str_free(&out);
        return 1;
    }
    for (const json *c = json_first(site->params); c; c = json_next(c))
        for (const json *v = json_first(c); v; v = json_next(v)) {
            json *params = json_object();
            json_put(params, json_key(c), json_copy(v));
            int r = rule->apply(s, site->where, params, &out, &e);
            CHECK_INT(r, 0);
            add_rewrite(&out);
            str_free(&out);
            json_free(params);
            n++;
        }
    return n;
}

static void offer_all(const struct rule *rule, const char *text, int offers, const char *refuses)
{
    struct rule_source s;
    struct err e = {0};
    rule_sites sites = {0};
    CHECK_INT(rule_source_open(&s, text, strlen(text), "k.c", "k", &task, &e), 0);
    int n = 0;
    bool refused = false;
    rule->sites(&s, &sites);
    for (size_t i = 0; i < sites.n; i++) {
        if (sites.v[i].ok)
            n += apply_all(rule, &s, &sites.v[i]);
        refused |= !sites.v[i].ok && refuses && strstr(sites.v[i].why, refuses);
    }
    bool good = n >= offers && (offers || n == 0) && (!refuses || refused);
    for (size_t i = 0; i < sites.n && !good; i++)
        printf("# %s at %s: %s: %s\n", rule->name, sites.v[i].where, sites.v[i].ok ? "offered" : "refused",
               sites.v[i].why);
    if (!good)
        printf("# in\n%s\n", text);
    CHECK(good);
    rule_sites_free(&sites);
    rule_source_close(&s);
}

static void *build(void)
{
    char dir[] = "/tmp/ks-loops-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    char *c = xasprintf("%s/k.c", dir), *so = xasprintf("%s/k.so", dir);
    const char *argv[] = {"gcc",   "-std=gnu17", "-O1", "-w", "-fopenmp-simd", "-shared",
                          "-fPIC", "-o",         so,    c,    "-lm",           NULL};
    struct proc_spec spec = {.argv = argv, .in = -1, .out = -1, .err = -1};
    struct proc_end end = {0};
    struct str log = {0};
    struct err e = {0};
    void *lib = NULL;
    CHECK_INT(io_write_file(c, all.s, all.len, 0600, &e), 0);
    if (proc_run(&spec, &log, 4000, 60000, &end, &e) == 0 && end.status == 0)
        lib = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        printf("# does not compile:\n# %s\n%s\n", log.len ? str_c(&log) : e.msg, str_c(&all));
    CHECK(lib != NULL);
    unlink(c), unlink(so), rmdir(dir);
    free(c), free(so);
    str_free(&log);
    return lib;
}

static void run(void *lib, size_t i, int n, int m, float out[2 * BUFFER])
{
    static float x[BUFFER];
    char name[32];
    kernel_fn *f;
    for (int k = 0; k < BUFFER; k++) {
        x[k] = (float)((k * 7 + k / 5) % 9 - 3);
        out[k] = (float)(k % 5);
        out[BUFFER + k] = (float)(k % 3);
    }
    snprintf(name, sizeof name, "k_%zu", i);
    void *p = dlsym(lib, name);
    memcpy(&f, &p, sizeof f);
    f(out + BEFORE, x + BEFORE, out + BUFFER + BEFORE, n, m);
}

static void compare(void *lib)
{
    static const int sizes[][2] = {{0, 0}, {1, 1}, {2, 1}, {7, 3}, {12, 16}, {5, 70}, {131, 67}, {67, 131}};
    static float want[2 * BUFFER], got[2 * BUFFER];
    for (size_t s = 0; s < countof(sizes); s++)
        for (size_t i = 0; i < variants; i++) {
            run(lib, i, sizes[s][0], sizes[s][1], i ? got : want);
            if (i && memcmp(got, want, sizeof want) != 0) {
                CHECK(!"the same results");
                printf("# n %d m %d:\n%s\nbecame\n%s\n", sizes[s][0], sizes[s][1], texts[0], texts[i]);
                return;
            }
        }
}

static const struct rule *rule_named(const char *name)
{
    for (size_t i = 0; i < rule_table_n; i++)
        if (str_eq(rule_table[i]->name, name))
            return rule_table[i];
    return NULL;
}

static void one_case(size_t c)
{
    const struct rule *rule = rule_named(cases[c].rule);
    CHECK(rule != NULL);
    char *text = xasprintf(HEAD "%s\n}\n", cases[c].body);
    str_add(&all, "#include <stddef.h>\n#include <math.h>\n");
    add_variant(text, strlen(text));
    offer_all(rule, text, cases[c].offers, cases[c].refuses);
    if (variants > 1) {
        void *lib = build();
        if (lib) {
            compare(lib);
            dlclose(lib);
        }
    }
    for (; variants; variants--)
        free(texts[variants - 1]);
    str_free(&all);
    free(text);
}

static void offers_and_refusals(void)
{
    for (size_t c = 0; c < countof(cases); c++)
        one_case(c);
}

// Several rules one after the other: where a later one has to understand what an earlier one made.
static const struct {
    const char *rule[4], *where[4], *name[4], *value[4];
    const char *body;
} chains[] = {
    {{"jam", "jam"},
     {"for k2 / for i / for j", "for k2"},
     {"block", "block"},
     {"simd", "unrolled"},
     "for (int k2 = 0; k2 < 5; k2++)\n    for (int i = 0; i < n; i++)\n        for (int j = 0; j < m; j++) "
     "{\n"
     "            float s = 0;\n            for (int c = 0; c < 3; c++)\n                for (int d = 0; d < "
     "2; d++)\n"
     "                    s += x[(i + c) * 9 + j + d] * z[(k2 * 3 + c) * 2 + d];\n"
     "            y[(k2 * n + i) * m + j] = s;\n        }"},
    {{"fission", "accumulators", "accumulators"},
     {"for i", "for i #2", "for i"},
     {"after", "lanes", "lanes"},
     {"1", "simd", "unrolled"},
     "float s = 0, t = 0; for (int i = 0; i < n; i++) { s += x[i]; t += x[i] * x[i]; } y[0] = s; y[1] = t;"},
    {{"jam"},
     {"for i"},
     {"block"},
     {"unrolled"},
     "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { y[j] += x[i] * x[j]; z[i * m + j] = x[j]; }"},
    {{"scalar", "accumulators"},
     {"for i / for j", "for i / for j"},
     {NULL, "lanes"},
     {NULL, "simd"},
     "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += x[i * m + j] * x[j];"},
};

static void one_chain(size_t c)
{
    struct edits list = {0};
    struct edits_env env = {rule_table, rule_table_n, "k.c", "k", &task};
    struct err e = {0};
    struct str out = {0};
    char *text = xasprintf(HEAD "%s\n}\n", chains[c].body);
    for (size_t i = 0; i < countof(chains[c].rule) && chains[c].rule[i]; i++) {
        json *params = chains[c].name[i] ? json_object() : NULL;
        if (params)
            json_put_str(params, chains[c].name[i], chains[c].value[i]);
        edits_add(&list, chains[c].rule[i], chains[c].where[i], params);
        json_free(params);
    }
    str_add(&all, "#include <stddef.h>\n#include <math.h>\n");
    add_variant(text, strlen(text));
    CHECK_INT(edits_replay(&list, text, strlen(text), &env, &out, NULL, NULL, &e), 0);
    if (*e.msg)
        printf("# %s in\n%s\n", e.msg, text);
    else
        add_rewrite(&out);
    void *lib = build();
    if (lib) {
        compare(lib);
        dlclose(lib);
    }
    for (; variants; variants--)
        free(texts[variants - 1]);
    str_free(&all);
    str_free(&out);
    edits_free(&list);
    free(text);
}

static void one_after_the_other(void)
{
    for (size_t c = 0; c < countof(chains); c++)
        one_chain(c);
}

int main(void)
{
    task.allow_fast_math = true;
    T(offers_and_refusals);
    T(one_after_the_other);
    T_END;
}
