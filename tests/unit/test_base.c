// The base: strings, JSON, INI, hashes, draws, statistics, text.
#include "t.h"

#include "base/draw.h"
#include "base/hash.h"
#include "base/ini.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/stats.h"
#include "base/text.h"

static void strings(void)
{
    struct str b = {0};
    CHECK_STR(str_c(&b), "");
    str_addf(&b, "%d-%s", 12, "ab");
    str_splice(&b, 2, 1, "+++", 3);
    CHECK_STR(str_c(&b), "12+++ab");
    str_free(&b);
    size_t n;
    char **w = str_words("  a 'b c' \"d\"e ", &n);
    CHECK_INT(n, 3);
    CHECK_STR(w[1], "b c");
    CHECK_STR(w[2], "de");
    free(w);
    CHECK(str_words("a 'b", &n) == NULL);
    const char *const words[] = {"pin", "kill", "approve"};
    CHECK_STR(str_nearest("aprove", words, 3), "approve");
    CHECK(str_nearest("xyzzy", words, 3) == NULL);
}

static void json_refuses_what_cjson_accepts(void)
{
    static const char *const bad[] = {"{} x",
                                      "{\"a\":\"x\\u0000y\"}",
                                      "{\"a\":\"\x1b\"}",
                                      "{\"a\":1,\"a\":2}",
                                      "[1,]",
                                      "{\"a\":\"\xff\"}",
                                      "",
                                      "[1 2]",
                                      "{\"a\":\"\xed\xa0\x80\"}"};
    for (size_t i = 0; i < countof(bad); i++) {
        struct err e = {0};
        json *j = json_parse(bad[i], strlen(bad[i]), &e);
        CHECK(j == NULL);
        CHECK(e.msg[0]);
        json_free(j);
    }
    struct str deep = {0};
    for (int i = 0; i < 100; i++)
        str_addc(&deep, '[');
    CHECK(json_parse(deep.s, deep.len, NULL) == NULL);
    str_free(&deep);
}

static void json_numbers_read_back(void)
{
    json *o = json_object();
    json_put_num(o, "third", 1.0 / 3);
    json_put_int(o, "big", 9007199254740993);
    json_put_int(o, "ns", 1491926160718000001);
    json_put_num(o, "nan", NAN);
    json_put_strn(o, "bytes", "a\0b\xff", 4);
    struct str s = {0};
    json_print(o, &s);
    json *back = json_parse(s.s, s.len, NULL);
    CHECK(json_num(back, "third", 0) == 1.0 / 3);
    CHECK(json_int(back, "big", 0) == 9007199254740993);
    CHECK(json_int(back, "ns", 0) == 1491926160718000001);
    CHECK(json_num(back, "nan", 7) == 7);
    CHECK_STR(json_str(back, "bytes"), "a^@b\\xff");
    CHECK(json_get(back, "BIG") == NULL);
    json_free(back);
    json_free(o);
    str_free(&s);
}

struct seen {
    int n, line, column;
    char last[64];
};

static void remember(void *user, const struct ini_item *item)
{
    struct seen *s = user;
    s->n++;
    s->line = item->line;
    s->column = item->value_column;
    snprintf(s->last, sizeof s->last, "%s.%s=%s", item->section, item->key, item->value);
}

static void ini_traps(void)
{
    static const struct {
        const char *text;
        int line, column;
    } bad[] = {
        {"[a]\nk = 1\n  m = 2\n", 3, 1}, {"[a]\nhost:port = z\n", 2, 5}, {"[a\nk=1\n", 1, 1},
        {"[a]\njust words\n", 2, 1},     {"[a] k = 1\n", 1, 4},          {"[a]\n= 1\n", 2, 1},
        {"[a]\nk = \xff\n", 2, 1},
    };
    for (size_t i = 0; i < countof(bad); i++) {
        err_list errors = {0};
        struct seen s = {0};
        CHECK(ini_parse_text("f", bad[i].text, strlen(bad[i].text), remember, &s, &errors) < 0);
        char want[32];
        snprintf(want, sizeof want, "f:%d:%d", bad[i].line, bad[i].column);
        CHECK(errors.n == 1);
        if (errors.n)
            CHECK_STR(errors.v[0].where, want);
        vec_free(&errors);
    }
    struct str text = {0};
    str_add(&text, "\xef\xbb\xbf[s]\r\nkey =  v w ; note\r\n# c\n");
    err_list errors = {0};
    struct seen s = {0};
    CHECK(ini_parse_text("f", text.s, text.len, remember, &s, &errors) == 0);
    CHECK_STR(s.last, "s.key=v w");
    CHECK_INT(s.line, 2);
    CHECK_INT(s.column, 8);
    str_clear(&text);
    str_add(&text, "[s]\nk = ");
    for (int i = 0; i < 300; i++)
        str_addc(&text, 'x');
    CHECK(ini_parse_text("f", text.s, text.len, remember, &s, &errors) < 0);
    CHECK(errors.n == 1);
    vec_free(&errors);
    str_free(&text);
}

static void hashes(void)
{
    char hex[65];
    sha256_hex("abc", 3, hex);
    CHECK_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256_hex("", 0, hex);
    CHECK_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(crc32_of("123456789", 9) == 0xcbf43926);
}

static void draws_depend_only_on_their_arguments(void)
{
    struct draw d = {1, 17};
    CHECK(draw_bits(d, "parent", 0) == draw_bits((struct draw){1, 17}, "parent", 0));
    CHECK(draw_bits(d, "parent", 0) != draw_bits(d, "parent", 1));
    CHECK(draw_bits(d, "parent", 0) != draw_bits(d, "site", 0));
    CHECK(draw_bits(d, "parent", 0) != draw_bits((struct draw){1, 18}, "parent", 0));
    double sum = 0, squares = 0;
    int bins[5] = {0}, n = 20000;
    for (int i = 0; i < n; i++) {
        double x = draw_normal(d, "n", (uint64_t)i);
        sum += x;
        squares += x * x;
        bins[draw_below(d, "b", (uint64_t)i, 5)]++;
    }
    CHECK_NEAR(sum / n, 0, 0.03);
    CHECK_NEAR(squares / n, 1, 0.05);
    for (int i = 0; i < 5; i++)
        CHECK_NEAR(bins[i], n / 5.0, 250);
    double w[] = {0, 3, 1, 0};
    int hit[4] = {0};
    for (int i = 0; i < n; i++)
        hit[draw_weighted(d, "w", (uint64_t)i, w, 4)]++;
    CHECK(hit[0] == 0 && hit[3] == 0);
    CHECK_NEAR(hit[1], 0.75 * n, 400);
}

static void statistics(void)
{
    CHECK_NEAR(stats_t(1, 0.95), 12.7062, 1e-3);
    CHECK_NEAR(stats_t(4, 0.95), 2.77645, 1e-4);
    CHECK_NEAR(stats_t(7, 0.95), 2.36462, 1e-4);
    CHECK_NEAR(stats_t(7, 0.99), 3.49948, 1e-4);
    double v[] = {4, 1, 3, 2};
    CHECK_NEAR(stats_median(v, 4), 2.5, 0);
    double x[] = {1, 2, 3, 4, 5};
    struct stats_interval i = stats_t_interval(x, 5, 0.95, 0);
    CHECK_NEAR(i.low, 3 - 1.96324, 1e-4);
    i = stats_t_interval((double[]){1, 1, 1}, 3, 0.95, 0.25);
    CHECK_NEAR(i.high, 1.25, 1e-12);
}

static void text_is_harmless(void)
{
    struct str s = {0};
    const char *evil = "a\x1b[31m\tb\xc2\x9b\xe2\x80\xae\r\n\xff";
    text_clean(&s, evil, strlen(evil), TEXT_LINE);
    CHECK_STR(str_c(&s), "a^[[31m b\\x9b<U+202E>^M\\n\\xff");
    str_clear(&s);
    text_clean(&s, "ab\tc\n\td", 7, TEXT_BLOCK);
    CHECK_STR(str_c(&s), "ab      c\n        d");
    str_free(&s);
}

static void secrets_are_cut_out(void)
{
    log_secret("sk-very-secret");
    struct str s = {0};
    str_add(&s, "x sk-very-secret y sk-very-secret");
    log_redact(&s);
    CHECK_STR(str_c(&s), "x [redacted] y [redacted]");
    str_free(&s);
}

static struct proc_end run(const char *script, int timeout_ms, struct str *out)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct proc_spec spec = {.argv = argv, .in = -1};
    struct proc_end end;
    CHECK(proc_run(&spec, out, 1000, timeout_ms, &end, NULL) == 0);
    return end;
}

static void children_end_when_told(void)
{
    struct str out = {0};
    struct proc_end end = run("echo hi; exit 3", 5000, &out);
    CHECK_INT(end.status, 3);
    CHECK_STR(str_c(&out), "hi\n");
    str_clear(&out);
    end = run("sleep 30 & sleep 30", 100, &out);
    CHECK(end.timed_out);
    end = run("yes | head -c 5000000", 5000, &out);
    CHECK(end.truncated && out.len == 1000 && end.status == 0);
    end = run("sleep 30 & exit 0", 5000, &out); // a grandchild that holds the pipe
    CHECK(!end.timed_out && end.status == 0);
    const char *argv[] = {"no-such-program-here", NULL};
    struct proc_spec spec = {.argv = argv, .in = -1};
    struct err e = {0};
    CHECK(proc_run(&spec, &out, 10, 100, &end, &e) < 0);
    CHECK(strstr(e.msg, "no-such-program-here") != NULL);
    str_free(&out);
}

int main(void)
{
    T(strings);
    T(json_refuses_what_cjson_accepts);
    T(json_numbers_read_back);
    T(ini_traps);
    T(hashes);
    T(draws_depend_only_on_their_arguments);
    T(statistics);
    T(text_is_harmless);
    T(secrets_are_cut_out);
    T(children_end_when_told);
    T_END;
}
