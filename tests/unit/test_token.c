// The token stream: lossless on anything, right on the odd corners of C and CUDA C.
#include "t.h"

#include "base/draw.h"
#include "base/io.h"
#include "source/token.h"

#include <dirent.h>
#include <time.h>

static bool lossless(const char *s, size_t n)
{
    struct tokens ts;
    tokens_read(&ts, s, n);
    struct str out = {0};
    tokens_emit(&ts, 0, ts.t.n, true, &out);
    bool same = out.len == n && (n == 0 || memcmp(out.s, s, n) == 0);
    // Leads and tokens follow one another without gap or overlap; lines agree with a count from the start.
    uint32_t at = 0;
    for (size_t i = 0; i < ts.t.n; i++) {
        const struct token *t = &ts.t.v[i];
        same = same && t->lead == at && t->at >= t->lead;
        at = t->at + t->len;
        if (n < 4096) {
            uint32_t line, col;
            text_place(s, n, t->at, &line, &col);
            same = same && line == t->line && col == t->col;
        }
    }
    same = same && at == n && ts.t.v[ts.t.n - 1].kind == TOK_EOF;
    for (size_t i = 1; i < ts.comments.n; i++)
        same = same && ts.comments.v[i].at >= ts.comments.v[i - 1].at + ts.comments.v[i - 1].len;
    str_free(&out);
    tokens_free(&ts);
    return same;
}

static void soup_is_lossless(void)
{
    static const char *const bits[] = {
        "/*",      "*/",      "//",       "\n",     "\\\n",     "\"", "'",         "R\"(", ")\"",
        "#if 0\n", "#else\n", "#endif\n", "(",      ")",        "{",  "}",         "<<<",  ">>>",
        "0x1p-3",  "1'000",   "a",        "\r\n",   "\xc3\xa9", "\\", "#define X", "..",   "->",
        "L'",      "u8R\"x(", ")x\"",     "\\\r\n", "$",        "@"};
    char buf[600];
    for (uint64_t k = 0; k < 4000; k++) {
        size_t n = 0, parts = (size_t)draw_below((struct draw){1, k}, "1", 0, 40);
        for (size_t i = 0; i < parts; i++) {
            if (draw_below((struct draw){1, k}, "2", i, 3) == 0) {
                buf[n++] = (char)draw_below((struct draw){1, k}, "3", i, 256);
            } else {
                const char *b = bits[draw_below((struct draw){1, k}, "4", i, countof(bits))];
                memcpy(buf + n, b, strlen(b));
                n += strlen(b);
            }
        }
        if (!lossless(buf, n)) {
            CHECK(!"lossless");
            printf("# case %llu\n", (unsigned long long)k);
            return;
        }
    }
    CHECK(lossless("", 0));
}

static size_t files_seen, bytes_seen;
static void files_below(const char *dir, int depth)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (struct dirent *f; (f = readdir(d));) {
        if (f->d_name[0] == '.')
            continue;
        char *path = io_join(dir, f->d_name);
        if (io_is_dir(path) && depth < 6) {
            files_below(path, depth + 1);
        } else if (str_ends(f->d_name, ".c") || str_ends(f->d_name, ".h") || str_ends(f->d_name, ".cu")) {
            struct str s = {0};
            if (io_read_file(path, 1 << 24, &s, NULL) == 0) {
                struct tokens ts;
                tokens_read(&ts, str_c(&s), s.len);
                if (!lossless(str_c(&s), s.len) || !ts.balanced) {
                    printf("# %s:%u:%u\n", path, ts.bad_line, ts.bad_col);
                    CHECK(!"lossless and balanced");
                }
                tokens_free(&ts);
                files_seen++;
                bytes_seen += s.len;
            }
            str_free(&s);
        }
        free(path);
    }
    closedir(d);
}

static void own_sources_are_lossless(void)
{
    files_below("engine", 0);
    files_below("gpu", 0);
    files_below("tests", 0);
    files_below("sessions", 0);
    CHECK(files_seen > 20);
}

static void kinds(const char *src, const char *want)
{
    struct tokens ts;
    tokens_read(&ts, src, strlen(src));
    struct str got = {0};
    static const char letters[] = "insc.po$"; // by enum tok_kind
    for (size_t i = 0; i + 1 < ts.t.n; i++) {
        str_addf(&got, "%s%c:", i ? " " : "", letters[ts.t.v[i].kind]);
        str_addn(&got, src + ts.t.v[i].at, ts.t.v[i].len);
    }
    CHECK_STR(str_c(&got), want);
    str_free(&got);
    tokens_free(&ts);
}

static void spellings(void)
{
    kinds("a->b<<=c>>>d", "i:a .:-> i:b .:<<= i:c .:>>> i:d");
    kinds("k<<<g,b>>>(x)", "i:k .:<<< i:g .:, i:b .:>>> .:( i:x .:)");
    kinds("0x1.8p-3f 1e+5 .5f 1'000u 1..2 3.f", "n:0x1.8p-3f n:1e+5 n:.5f n:1'000u n:1..2 n:3.f");
    kinds("L\"a\\\"b\" u8'x' 'a' R\"x(a)\" b)x\" b", "s:L\"a\\\"b\" c:u8'x' c:'a' s:R\"x(a)\" b)x\" i:b");
    kinds("x /* \" */ y // '\nz", "i:x i:y i:z");
    kinds("a // c \\\n still\nb", "i:a i:b");
    kinds("#define A(x) \\\n  (x) // c\nb", "p:#define A(x) \\\n  (x) i:b");
    kinds("  # pragma omp simd /* c\n d */ x\ny", "p:# pragma omp simd /* c\n d */ x i:y");
    kinds("a # b", "i:a .:# i:b");
    kinds("\"open\nx", "o:\" i:open i:x");
    kinds("a /* never", "i:a o:/* never");
    kinds("fo\\\no = 1", "i:fo\\\no .:= n:1");
    kinds("a+++b--->c ... ::", "i:a .:++ .:+ i:b .:-- .:-> i:c .:... .:::");
    kinds("a>>=b a>>b a<<b a<=b", "i:a .:>>= i:b i:a .:>> i:b i:a .:<< i:b i:a .:<= i:b");
}

static void branches(void)
{
    // Braces that only balance per branch: the first branch alone counts.
    static const char src[] =
        "#if A\nif (x) {\n#elif B\nif (y) {\n#else\n{\n#endif\n}\n#if 0\n{{{\n#else\n(b)\n#endif\n";
    struct tokens ts;
    tokens_read(&ts, src, strlen(src));
    CHECK(ts.balanced);
    size_t off = 0;
    for (size_t i = 0; i < ts.t.n; i++)
        off += ts.t.v[i].inactive;
    CHECK_INT(off, 6 + 1 + 3);
    CHECK(ts.t.v[0].match != 0);
    char w[32];
    CHECK_STR(token_pp_word(&ts, ts.t.v[0].match, w), "elif");
    tokens_free(&ts);
    static const char bad[] = "f(\n  a];\n}";
    tokens_read(&ts, bad, strlen(bad));
    CHECK(!ts.balanced);
    CHECK_INT(ts.bad_line, 2);
    CHECK_INT(ts.bad_col, 4);
    tokens_free(&ts);
}

static void hashes(void)
{
    char a[65], b[65];
    static const char x[] = "int f(int a)\n{\n    return a; // twice\n}\n",
                      y[] = "int f(int a) { return a; }";
    source_norm_hash(x, strlen(x), a);
    source_norm_hash(y, strlen(y), b);
    CHECK_STR(a, b);
    source_hash(x, strlen(x), a);
    source_hash(y, strlen(y), b);
    CHECK(strcmp(a, b) != 0);
    // What changes the build changes the hash: annotations, strings, where a macro's parenthesis stands.
    static const char *const differ[][2] = {
        {"int a;", "int a; // flags: -O3"},
        {"char *s = \"a b\";", "char *s = \"a  b\";"},
        {"#define f(x) x\n", "#define f (x) x\n"},
        {"#define N 4 // knob: 4 8\n", "#define N 4\n"},
        {"a + +b", "a ++ b"},
        {"int ab;", "int a b;"},
    };
    for (size_t i = 0; i < countof(differ); i++) {
        source_norm_hash(differ[i][0], strlen(differ[i][0]), a);
        source_norm_hash(differ[i][1], strlen(differ[i][1]), b);
        CHECK(strcmp(a, b) != 0);
    }
    source_norm_hash("#define  N\t4 /* c */\n", 21, a);
    source_norm_hash("#define N 4\n", 12, b);
    CHECK_STR(a, b);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--speed") == 0) { // a figure for people, no test
        struct str s = {0};
        if (io_read_file(argv[2], 1 << 28, &s, NULL) != 0)
            return 1;
        struct timespec t0, t1;
        clock_gettime(CLOCK_MONOTONIC, &t0);
        size_t n = 0;
        for (int k = 0; k < 50; k++) {
            struct tokens ts;
            tokens_read(&ts, s.s, s.len);
            n += ts.t.n;
            tokens_free(&ts);
        }
        clock_gettime(CLOCK_MONOTONIC, &t1);
        double sec = (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9;
        printf("%.1f MB/s, %.1f M tokens/s\n", 50.0 * (double)s.len / sec / 1e6, (double)n / sec / 1e6);
        str_free(&s);
        return 0;
    }
    T(soup_is_lossless);
    T(own_sources_are_lossless);
    T(spellings);
    T(branches);
    T(hashes);
    T_END;
}
