// Prompts: everything is said, what does not fit is cut in order and said, hostile text stays text.
#include "t.h"

#include "base/io.h"
#include "base/log.h"
#include "models/facts.h"
#include "models/prompt.h"

static struct prompts *p;
static const struct prompt_item attempts[] = {{"candidate 9", "wrong at stage check", "-a\n+b"},
                                              {"candidate 8", "slower", NULL},
                                              {"candidate 7", "timeout", NULL},
                                              {"candidate 6", "no change", NULL}};
static const struct prompt_item programs[] = {{"candidate 3, 1.5x", "blocked", "void k3(void) { }"},
                                              {"candidate 4, 1.4x", "vector", "void k4(void) { }"}};
static const struct prompt_item distant[] = {{"candidate 5", "recursive", "void k5(void) { }"}};
static const struct prompt_item hints[] = {{NULL, "the caller's rows are padded", NULL}};

static struct prompt_ctx context(void)
{
    return (struct prompt_ctx){.func = "scale",
                               .region = "lines 3-7 (body of scale)",
                               .task = "The function scale.",
                               .hardware = "- device: x",
                               .title = "candidate 2, 1.2x",
                               .source = "void scale(float *x) { {{source}} {{#log}} }",
                               .verdict = "ok, 1.2x",
                               .log = "k.c:1: warning: unused",
                               .attempts = {attempts, 4},
                               .programs = {programs, 2},
                               .distant = {distant, 1},
                               .hints = {hints, 1}};
}

static void everything_is_said(void)
{
    for (int a = 0; a < ASK_COUNT; a++) {
        struct prompt_ctx c = context();
        struct prompt out;
        struct err e = {0};
        c.ask = (enum ask)a;
        c.other = (struct prompt_item){"candidate 77", "unrolled", "void k77(void) { }"};
        CHECK(prompt_build(p, &c, 1 << 20, &out, &e) == 0);
        const char *const want[] = {
            "The function scale.",   "- device: x", "candidate 2, 1.2x", "ok, 1.2x", "warning: unused",
            "candidate 9",           "-a\n+b",      "k3(void)",          "k5(void)", "rows are padded",
            "candidate 6: no change"};
        for (size_t i = 0; i < countof(want); i++)
            if (!strstr(str_c(&out.user), want[i])) {
                printf("# %s lacks %s\n", ask_name(c.ask), want[i]);
                t_bad = 1;
            }
        CHECK((strstr(str_c(&out.user), "k77") != NULL) == (a == ASK_CROSS));
        // Who explains is told neither what may change nor how a change is written.
        CHECK((strstr(str_c(&out.system), "lines 3-7 (body of scale)") != NULL) == (a != ASK_EXPLAIN));
        CHECK((strstr(str_c(&out.system), "<<<<<<< SEARCH") != NULL) == (a != ASK_EXPLAIN));
        CHECK(!strstr(str_c(&out.system), "launch:"));
        // Places inside of a candidate are its text.
        CHECK(strstr(str_c(&out.user), "{ {{source}} {{#log}} }"));
        CHECK_INT(out.cut.len, 0);
        // The same again.
        struct prompt again;
        CHECK(prompt_build(p, &c, 1 << 20, &again, &e) == 0);
        CHECK_STR(str_c(&again.user), str_c(&out.user));
        prompt_free(&again);
        prompt_free(&out);
    }
}

static void what_is_empty_has_no_heading(void)
{
    struct prompt_ctx c = {.func = "f", .region = "all", .task = "T.", .source = "S", .cuda = true};
    struct prompt out;
    struct err e = {0};
    CHECK(prompt_build(p, &c, 1 << 20, &out, &e) == 0);
    const char *const no[] = {"Hardware", "judged", "log", "Tried before",
                              "engineer", "{{",     "}}",  "best versions"};
    for (size_t i = 0; i < countof(no); i++)
        CHECK(!strstr(str_c(&out.user), no[i]));
    CHECK(strstr(str_c(&out.user), "```cuda\nS\n```"));
    CHECK(strstr(str_c(&out.system), "launch: f<<<"));
    prompt_free(&out);
}

static void cutting_follows_an_order_and_is_said(void)
{
    struct prompt_ctx c = context();
    struct prompt out;
    struct err e = {0};
    struct str log = {0};
    for (int i = 0; i < 400; i++)
        str_addf(&log, "k.c:%d: error: line %d of the log\n", i, i);
    c.log = log.s;
    CHECK(prompt_build(p, &c, 1 << 20, &out, &e) == 0);
    size_t whole = out.system.len + out.user.len, last = whole;
    prompt_free(&out);
    int steps = 0;
    for (size_t budget = whole - 1;; budget = last - 1) {
        if (prompt_build(p, &c, budget, &out, &e) < 0)
            break;
        last = out.system.len + out.user.len;
        CHECK(last <= budget);
        CHECK(strstr(str_c(&out.user), "Left out for want of room: "));
        CHECK(strstr(str_c(&out.user), str_c(&out.cut)));
        CHECK(strstr(str_c(&out.user), "{ {{source}}"));
        CHECK(strstr(str_c(&out.user), "rows are padded"));
        if (steps == 0)
            CHECK(!strstr(str_c(&out.user), "k5(void)") && strstr(str_c(&out.user), "k3(void)"));
        // An item goes whole or not at all, and the newest attempt goes last of its kind.
        if (strstr(str_c(&out.user), "candidate 8"))
            CHECK(strstr(str_c(&out.user), "candidate 9"));
        prompt_free(&out);
        if (++steps > 100)
            break;
    }
    CHECK(steps > 6 && steps < 100);
    CHECK(strstr(e.msg, "the kernel alone needs"));
    str_free(&log);
}

static void secrets_do_not_leave(void)
{
    struct prompt_ctx c = context();
    struct prompt out;
    struct err e = {0};
    log_secret("sk-very-secret-1");
    c.source = "// sk-very-secret-1\nvoid scale(void) { }";
    CHECK(prompt_build(p, &c, 1 << 20, &out, &e) == 0);
    CHECK(!strstr(str_c(&out.user), "sk-very"));
    prompt_free(&out);
}

static void mistakes_in_templates_are_found_when_loaded(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"a\n{{nosuch}}", "unknown name"},
        {"{{#log}}never closed", "block without its end"},
        {"a {{log", "{{ without"},
        {"{{#nosuch}}{{/nosuch}}", "unknown name"},
    };
    struct err e = {0};
    char *dir = io_temp_dir("ksmith-prompts", &e), *path = xasprintf("%s/user.txt", dir);
    const char *const folders[] = {dir, "engine/prompts", NULL};
    for (size_t i = 0; i < countof(cases); i++) {
        e = (struct err){0};
        CHECK(io_write_file(path, cases[i].text, strlen(cases[i].text), 0600, &e) == 0);
        CHECK(prompts_load(folders, &e) == NULL);
        CHECK(strstr(e.msg, cases[i].says));
        CHECK(strstr(e.where, "user.txt:"));
    }
    CHECK(io_write_file(path, "{{source}}", 10, 0600, &e) == 0);
    struct prompts *mine = prompts_load(folders, &e);
    struct prompt out;
    struct prompt_ctx c = context();
    CHECK(mine && prompt_build(mine, &c, 1 << 20, &out, &e) == 0);
    CHECK_STR(str_c(&out.user), c.source);
    prompt_free(&out);
    prompts_free(mine);
    const char *const nowhere[] = {dir, NULL};
    CHECK(prompts_load(nowhere, &e) == NULL);
    CHECK(strstr(e.msg, "missing"));
    io_remove(dir, NULL);
    free(path);
    free(dir);
}

static void verdicts_and_logs_become_words(void)
{
    static const char verdict[] = "{\"status\":\"ok\",\"gain\":1.213,\"low\":1.2,\"high\":1.22,\"faster\":"
                                  "true,\"shapes\":[{\"name\":\"big\",\"time_ns\":"
                                  "1234567,\"gain\":1.2,\"low\":1.1,\"high\":1.3,\"ceiling_pct\":71}],"
                                  "\"static\":{\"registers\":40},\"regress\":\"small\"}";
    struct str out = {0};
    json *v = json_parse(verdict, sizeof verdict - 1, NULL);
    facts_verdict(v, &out);
    CHECK_STR(
        str_c(&out),
        "proven faster, 1.213x [1.200, 1.220], slower on shape small\n- big: 1.235 ms, 1.200x of the version "
        "it raced [1.100, 1.300], 71 % of the ceiling\n- static.registers: 40\n");
    json_free(v);
    str_clear(&out);
    facts_outcome(NULL, &out);
    CHECK_STR(str_c(&out), "not judged yet");
    str_clear(&out);
    facts_log("/tmp/ks.abc/cand.c:2:5: error: 'x' undeclared\n  x = 1;\n  ^\nnoise\x1b[31m\nnoise\x1b[31m\n",
              10000, &out);
    CHECK_STR(str_c(&out), "cand.c:2:5: error: 'x' undeclared\n  x = 1;\n  ^\nnoise^[[31m   (2 times)\n");
    str_clear(&out);
    struct str big = {0};
    for (int i = 0; i < 1000; i++)
        str_addf(&big, "chatter %d\n", i);
    str_add(&big, "k.c:7: error: here it is\n");
    for (int i = 0; i < 1000; i++)
        str_addf(&big, "more %d\n", i);
    facts_log(str_c(&big), 300, &out);
    CHECK(out.len <= 300 && strstr(str_c(&out), "here it is"));
    str_free(&big);
    str_free(&out);
}

int main(void)
{
    struct err e = {0};
    const char *const folders[] = {"engine/prompts", NULL};
    p = prompts_load(folders, &e);
    if (!p) {
        printf("Bail out! %s %s\n", e.where, e.msg);
        return 1;
    }
    T(everything_is_said);
    T(what_is_empty_has_no_heading);
    T(cutting_follows_an_order_and_is_said);
    T(secrets_do_not_leave);
    T(mistakes_in_templates_are_found_when_loaded);
    T(verdicts_and_logs_become_words);
    prompts_free(p);
    T_END;
}
