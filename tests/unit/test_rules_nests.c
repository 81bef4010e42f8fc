// A generator of small loop nests, seeded: whatever any rule offers for one, alone or after others, computes
// the same under -fsanitize=undefined. A few hundred nests; NESTS=5000 in the environment makes it a
// campaign, and NESTS_SEED=N another one. The values are small integers and every sum is exact, so any
// difference is a wrong rewrite.
#include "t.h"

#include "base/draw.h"
#include "base/io.h"
#include "base/proc.h"
#include "base/task.h"
#include "source/annot.h"
#include "source/edits.h"

#include <unistd.h>

enum { NESTS = 200, BATCH = 50, WALKS = 1, WALK_STEPS = 3 };

static struct task task;
static char dir[] = "/tmp/ks-nests-XXXXXX";
static int offers[64]; // by rule: how often one was tried

// ---- nests

struct gen {
    struct draw d;
    uint64_t n;
    struct str *out;
    bool clean; // as kernels are written: full ranges, and stores that fill a matrix
    int depth;  // loops so far
    int reads;  // of what the nest itself writes, left for this value: one keeps all sums below 2^24
    const char *vars[3], *sizes[3];
};

static int below(struct gen *g, int n)
{
    return (int)draw_below(g->d, "nest", g->n++, (uint64_t)n);
}

#define PICK(g, ...)                                 \
    pick_of((g), (const char *const[]){__VA_ARGS__}, \
            (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))
static const char *pick_of(struct gen *g, const char *const *list, int n)
{
    return list[below(g, n)];
}

// A place over the counters so far; each stays below 24 * 24 * 24.
static void place(struct gen *g, bool stored, struct str *out)
{
    const char *a = g->vars[below(g, g->depth)], *b = g->vars[below(g, g->depth)];
    if (g->clean && stored) {
        const char *by[] = {"", "m", "n"}, *rows = by[below(g, 2) + 1];
        if (g->depth == 1)
            str_addf(out, "%s", g->vars[0]);
        else if (str_eq(rows, "m"))
            str_addf(out, "%s * m + %s", g->vars[0], g->vars[1]);
        else
            str_addf(out, "%s * n + %s", g->vars[1], g->vars[0]);
        return;
    }
    const char *row = PICK(g, "n", "m", "24", "(n + 1)", "(m + 2)");
    switch (below(g, 6)) {
    case 0:
        str_addf(out, "%s", a);
        break;
    case 1:
        str_addf(out, "%s + %d", a, below(g, 3));
        break;
    case 2:
        str_addf(out, "2 * %s + %s", a, PICK(g, "0", "1"));
        break;
    default:
        str_addf(out, "%s * %s + %s", a, row, b);
    }
}

static void value(struct gen *g, int deep, struct str *out)
{
    int what = below(g, deep ? 7 : 4);
    if (what == 0) {
        str_addf(out, "%d", below(g, 4));
    } else if (what < 4) {
        str_addf(out, "%s[", g->clean || g->reads <= 0 ? "x" : PICK(g, "x", "x", "y", "z"));
        g->reads -= strchr("yz", out->s[out->len - 2]) != NULL;
        place(g, false, out);
        str_addc(out, ']');
    } else if (what == 4) {
        str_addf(out, "(float)%s", g->vars[below(g, g->depth)]);
    } else {
        str_addc(out, '(');
        value(g, deep - 1, out);
        str_addf(out, " %s ", PICK(g, "+", "-", "+"));
        value(g, deep - 1, out);
        str_addc(out, ')');
    }
}

static void statement(struct gen *g)
{
    struct str at = {0}, v = {0};
    int what = g->clean ? 9 - (below(g, 3) == 0) * 4 : below(g, 9);
    g->reads = what != 3 && what != 5;
    place(g, true, &at);
    value(g, 2, &v);
    switch (what) {
    case 0:
        str_addf(g->out, "if (%s > 1) y[%s] = %s;\n", v.s, at.s, v.s);
        break;
    case 1:
        str_addf(g->out, "{ float a = %s; y[%s] = a; z[%s] = a + 1; }\n", v.s, at.s, at.s);
        break;
    case 2:
        str_addf(g->out, "h[(int)(%s) & 15] += 1;\n", v.s);
        break;
    case 3:
        str_addf(g->out, "s += %s;\n", v.s);
        break;
    case 4:
        str_addf(g->out, "if (%s > big) big = %s;\n", v.s, v.s);
        break;
    case 5:
        str_addf(g->out, "%s[%s] += %s;\n", PICK(g, "y", "z"), at.s, v.s);
        break;
    default:
        str_addf(g->out, "%s[%s] = %s;\n", PICK(g, "y", "y", "z"), at.s, v.s);
    }
    str_free(&at);
    str_free(&v);
}

static void loop(struct gen *g, int levels);

static void inside(struct gen *g, int levels)
{
    bool leaf = levels == 1 || (g->clean && g->depth == 2 && below(g, 2));
    int deeper = leaf ? 0 : 1 + (below(g, g->clean ? 12 : 4) == 0);
    int own = leaf ? 1 + (below(g, g->clean ? 4 : 2) == 0) : below(g, g->clean ? 12 : 3) == 0;
    // acc = 0; for (...) acc += ...; place = acc: what many kernels are.
    if (g->clean ? g->depth == 2 && levels > 1 && below(g, 2) : levels == 2 && below(g, 3) == 0) {
        struct str at = {0};
        place(g, true, &at);
        str_add(g->out, "float acc = 0;\n");
        int was = g->depth;
        g->vars[was] = "c";
        str_addf(g->out, "for (int c = 0; c < %s; c++)\nacc += ", PICK(g, "n", "m", "5"));
        g->depth++;
        g->reads = 0;
        value(g, 1, g->out);
        g->depth = was;
        str_addf(g->out, ";\ny[%s] = acc;\n", at.s);
        str_free(&at);
        return;
    }
    for (int i = 0; i < own; i++)
        statement(g);
    for (int i = 0; i < deeper; i++)
        loop(g, levels - 1);
}

static void loop(struct gen *g, int levels)
{
    static const char *const names[] = {"i", "j", "l"}, *const before[] = {"p", "q", "r"};
    const char *type = PICK(g, "int ", "int ", "int ", "long ", "");
    const char *v = *type || g->clean ? names[g->depth] : before[g->depth];
    const char *hi = PICK(g, "n", "m", "n", "m", "7", "n - 1", "m / 2");
    if (g->clean)
        str_addf(g->out, "for (int %s = 0; %s < %s; %s++) {\n", v, v,
                 g->depth == 0   ? "n"
                 : g->depth == 1 ? "m"
                                 : "6",
                 v);
    else
        str_addf(g->out, "for (%s%s = %s; %s %s %s; %s) {\n", *type ? type : "", v,
                 PICK(g, "0", "0", "0", "1"), v, PICK(g, "<", "<", "<", "<="), hi,
                 below(g, 5) ? g->depth ? "@++" : "++@" : "@ += 2");
    for (char *at; (at = strchr(g->out->s, '@'));)
        *at = *v;
    g->vars[g->depth] = v;
    g->depth++;
    inside(g, levels);
    g->depth--;
    str_add(g->out, "}\n");
}

static void nest(struct draw d, struct str *out)
{
    struct gen g = {.d = d, .out = out};
    g.clean = below(&g, 2);
    str_add(out, "void k(float *y, const float *x, float *z, int *h, int n, int m)\n{\nfloat s = 0, big = "
                 "-9;\nint p, q, r;\n");
    for (int i = 1 + (below(&g, 3) == 0); i > 0; i--)
        loop(&g, g.clean ? 1 + (below(&g, 4) > 0) + below(&g, 2) : 1 + below(&g, 3));
    str_add(out, "y[0] = s;\nz[0] = big;\n(void)p, (void)q, (void)r;\n}\n");
}

// ---- rewrites

struct variants {
    struct str c;   // all of them as one C file
    struct str run; // calls of the test program
    int n;
};

static void add_variant(struct variants *v, const char *text)
{
    str_addf(&v->c, "#undef k\n#define k k_%d\n%s\n", v->n, text);
    v->n++;
}

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

// One of the places where the rule applies, rewritten; false where there is none.
static bool rewrite(size_t rule, const char *text, struct draw d, uint64_t n, struct str *out)
{
    struct rule_source s;
    struct err e = {0};
    rule_sites sites = {0};
    if (rule_source_open(&s, text, strlen(text), "k.c", "k", &task, &e) < 0) {
        CHECK_STR(e.msg, "");
        return false;
    }
    if (rule_fits(rule_table[rule], &s)) // else one for CUDA kernels
        rule_table[rule]->sites(&s, &sites);
    VEC(size_t) ok = {0};
    for (size_t i = 0; i < sites.n; i++)
        if (sites.v[i].ok)
            vec_push(&ok, i);
    bool done = false;
    if (ok.n) {
        const struct rule_site *site = &sites.v[ok.v[draw_below(d, "site", n, ok.n)]];
        json *params = pick_params(site->params, d, n);
        done = rule_table[rule]->apply(&s, site->where, params, out, &e) == 0;
        CHECK(done);
        if (!done)
            printf("# offered, then refused: %s at %s: %s\n%s\n", rule_table[rule]->name, site->where, e.msg,
                   text);
        offers[rule]++;
        json_free(params);
    }
    vec_free(&ok);
    rule_sites_free(&sites);
    rule_source_close(&s);
    return done;
}

// Some knobs at their smallest value, so that small sizes see whole blocks.
static void small_knobs(struct str *text, struct draw d, uint64_t n)
{
    struct annots a;
    err_list errors = {0};
    CHECK_INT(annot_read(&a, str_c(text), text->len, "k.c", &errors), 0);
    vec_free(&errors);
    for (size_t i = 0; i < a.knobs.n; i++) {
        struct str next = {0};
        size_t pick = (size_t)draw_below(d, "knob", 16 * n + i, a.knobs.v[i].n > 1 ? 2 : 1);
        CHECK_INT(
            annot_set_knob(text->s, text->len, a.knobs.v[i].name, a.knobs.v[i].values[pick], &next, NULL), 0);
        str_free(text);
        *text = next;
    }
    annot_free(&a);
}

static void add_nest(struct variants *v, struct draw d)
{
    struct str text = {0};
    int first = v->n;
    nest(d, &text);
    add_variant(v, str_c(&text));
    for (size_t r = 0; r < rule_table_n; r++) {
        struct str out = {0};
        if (rewrite(r, str_c(&text), d, r, &out)) {
            small_knobs(&out, d, r);
            add_variant(v, str_c(&out));
        }
        str_free(&out);
    }
    for (uint64_t w = 0; w < WALKS; w++) {
        struct str now = {0};
        str_add(&now, str_c(&text));
        for (uint64_t k = 0, tries = 0; k < WALK_STEPS && tries < 12; tries++) {
            struct str out = {0};
            uint64_t n = 1000 * (w + 1) + tries;
            if (rewrite((size_t)draw_below(d, "rule", n, rule_table_n), str_c(&now), d, n, &out)) {
                str_free(&now);
                now = out;
                k++;
            } else {
                str_free(&out);
            }
        }
        small_knobs(&now, d, 500 + w);
        add_variant(v, str_c(&now));
        str_free(&now);
    }
    str_addf(&v->run, "  check(%d, %d, (fn *[]){", first, v->n);
    for (int i = first; i < v->n; i++)
        str_addf(&v->run, "k_%d, ", i);
    str_add(&v->run, "});\n");
    str_free(&text);
}

// ---- the program that runs them

static const char head[] =
    "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n"
    "typedef void fn(float *, const float *, float *, int *, int, int);\n";
static const char tail[] =
    "#undef k\nenum { SIZE = 1 << 14, Y = 0, Z = 1, BEFORE = 64 };\n"
    "static float x[SIZE], all[2][2][SIZE]; static int h[2][64], bad;\n"
    "static void once(fn *f, int w, int n, int m) {\n"
    "  for (int q = 0; q < SIZE; q++) { x[q] = (float)((q * 7 + q / 5) % 9 - 3); all[w][Y][q] = (float)(q % "
    "5);\n"
    "    all[w][Z][q] = (float)(q % 3); }\n"
    "  memset(h[w], 0, sizeof h[w]);\n"
    "  f(all[w][Y] + BEFORE, x + BEFORE, all[w][Z] + BEFORE, h[w], n, m);\n}\n"
    "static void check(int first, int end, fn *const *f) {\n"
    "  static const int sizes[][2] = {{0, 0}, {1, 1}, {2, 5}, {7, 3}, {12, 16}, {17, 9}, {23, 23}};\n"
    "  for (int q = 0; q < 7; q++) { once(f[0], 0, sizes[q][0], sizes[q][1]);\n"
    "    for (int r = first + 1; r < end; r++) { fprintf(stderr, \"variant %d\\n\", r);\n"
    "      once(f[r - first], 1, sizes[q][0], sizes[q][1]);\n"
    "      if (memcmp(all[0], all[1], sizeof all[0]) || memcmp(h[0], h[1], sizeof h[0])) {\n"
    "        printf(\"differs %d %d n %d m %d\\n\", first, r, sizes[q][0], sizes[q][1]); bad++; return; } } "
    "} }\n"
    "int main(void) {\n";

// Variant k as it stands in the C file.
static void show(const struct variants *v, int k)
{
    char *mark = xasprintf("#define k k_%d\n", k);
    const char *at = strstr(str_c(&v->c), mark), *end = at ? strstr(at, "\n#undef k\n") : NULL;
    if (at)
        printf("%.*s\n", end ? (int)(end - at) : (int)strlen(at), at);
    free(mark);
}

static bool run(const char *const *argv, struct str *log, int ms, struct proc_end *end)
{
    struct proc_spec spec = {.argv = argv, .in = -1, .out = -1, .err = -1};
    struct err e = {0};
    int r = proc_run(&spec, log, 1 << 16, ms, end, &e);
    CHECK_STR(e.msg, "");
    return r == 0;
}

static void judge(const struct variants *v, const struct str *log, const struct proc_end *end)
{
    const char *differs = log->s ? strstr(log->s, "differs ") : NULL,
               *error = log->s ? strstr(log->s, "runtime error") : NULL;
    bool good = end->status == 0 && !differs && !error;
    CHECK(good);
    if (good)
        return;
    int first = -1, k = -1;
    if (differs) {
        sscanf(differs, "differs %d %d", &first, &k);
        printf("# %.60s\n", differs);
        show(v, first);
    } else {
        for (const char *at = str_c(log); (at = strstr(at, "variant ")) && (!error || at < error); at++)
            k = atoi(at + 8);
        printf("# status %d, %.200s\n", end->status, error ? error : "no message");
    }
    printf("became\n");
    show(v, k);
}

static void batch(uint64_t seed, uint64_t from, int count)
{
    struct variants v = {0};
    struct str log = {0};
    struct proc_end end = {0};
    struct err e = {0};
    for (int i = 0; i < count; i++)
        add_nest(&v, (struct draw){seed, from + (uint64_t)i});
    char *c = xasprintf("%s/n.c", dir), *exe = xasprintf("%s/n", dir);
    struct str all = {0};
    str_addf(&all, "%s%s%s%s  return bad != 0;\n}\n", head, str_c(&v.c), tail, str_c(&v.run));
    CHECK_INT(io_write_file(c, all.s, all.len, 0600, &e), 0);
    const char *cc[] = {
        "gcc", "-std=gnu17", "-O0", "-w",  "-fopenmp", "-fsanitize=undefined", "-fno-sanitize-recover=all",
        "-o",  exe,          c,     "-lm", NULL};
    const char *self[] = {exe, NULL};
    bool built = run(cc, &log, 300000, &end) && end.status == 0;
    CHECK(built);
    if (!built) {
        printf("# does not compile: %.2000s\n", str_c(&log));
    } else {
        str_clear(&log);
        run(self, &log, 120000, &end);
        judge(&v, &log, &end);
    }
    unlink(c), unlink(exe);
    free(c), free(exe);
    str_free(&all), str_free(&log), str_free(&v.c), str_free(&v.run);
}

static void same_results(void)
{
    const char *many = getenv("NESTS"), *seed = getenv("NESTS_SEED");
    int n = many ? atoi(many) : NESTS;
    for (int i = 0; i < n && !t_bad; i += BATCH)
        batch(seed ? strtoull(seed, NULL, 10) : 1, (uint64_t)i, n - i < BATCH ? n - i : BATCH);
    printf("# %d nests:", n);
    for (size_t r = 0; r < rule_table_n; r++)
        printf(" %s %d", rule_table[r]->name, offers[r]);
    putchar('\n');
    // A generator that no longer offers these anything would find nothing.
    static const char *const often[] = {"interchange", "simd", "accumulators", "scalar",   "hoist",
                                        "unroll",      "jam",  "fission",      "tile",     "privatize",
                                        "block",       "pack", "parallel",     "prefetch", "align"};
    for (size_t r = 0; r < rule_table_n && n >= NESTS; r++)
        for (size_t k = 0; k < countof(often); k++)
            if (str_eq(rule_table[r]->name, often[k]))
                CHECK(offers[r] > 3);
}

int main(void)
{
    CHECK(mkdtemp(dir) != NULL);
    task.allow_threads = true;
    task.threads = 3;
    T(same_results);
    rmdir(dir);
    T_END;
}
