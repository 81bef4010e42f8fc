// The client against a server on loopback that has every fault: streams cut anywhere, rejections, storms,
// keys.
#include "tests/models/net.h"

#include "base/hash.h"
#include "base/log.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

static struct server srv;
static char *learned;
#define TEXT "Hello w\u00f6rld \u20ac \U0001f600, a reply of a few words.\n"

struct asked {
    struct str text, streamed;
    struct chat_result r;
    char *finish;
    double in, out, cached, usd;
    bool done;
    int restarts;
};

static void on_text(void *user, const char *text, size_t n)
{
    struct asked *a = user;
    if (!text) {
        a->restarts++;
        str_clear(&a->streamed);
        return;
    }
    str_addn(&a->streamed, text, n);
}

static void on_done(void *user, const struct chat_result *r)
{
    struct asked *a = user;
    a->r = *r;
    str_addn(&a->text, str_c(&r->reply->text), r->reply->text.len);
    a->done = true;
}

static void asked_free(struct asked *a)
{
    str_free(&a->text);
    str_free(&a->streamed);
    *a = (struct asked){0};
}

// A model section from "k=v;k=v".
static json *section(const char *scenario, const char *settings)
{
    json *o = json_object();
    char *url = xasprintf("http://127.0.0.1:%d/%s", srv.port, scenario);
    json_put_str(o, "url", url);
    json_put_str(o, "model", "tiny");
    json_put_str(o, "proxy", "");
    free(url);
    char *copy = xstrdup(settings ? settings : ""), *save = NULL;
    for (char *p = strtok_r(copy, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
        char *eq = strchr(p, '=');
        *eq = 0;
        json_put_str(o, p, eq + 1);
    }
    free(copy);
    return o;
}

static int load(struct model *m, const char *scenario, const char *settings)
{
    json *o = section(scenario, settings);
    err_list errors = {0};
    int r = model_load(m, scenario, o, "task.ini", &errors);
    for (size_t i = 0; i < errors.n; i++)
        printf("# %s\n", errors.v[i].msg);
    vec_free(&errors);
    json_free(o);
    return r;
}

// Asks once; the model stays for further questions where m is given.
static void ask_model(struct model *m, struct asked *a)
{
    struct loop *l = loop_new();
    struct chat *c = chat_new(l, m, 1, learned, NULL);
    struct chat_message messages[] = {{"system", "You improve kernels."}, {"user", "Say hello."}};
    *a = (struct asked){0};
    chat_start(c, &(struct chat_request){.model = m,
                                         .messages = messages,
                                         .n = 2,
                                         .params = {.temperature = m->temperatures ? m->temperature[0] : NAN},
                                         .seed = 1,
                                         .on_text = on_text,
                                         .on_done = on_done,
                                         .user = a});
    int64_t until = clock_ns() + (int64_t)60e9;
    while (!a->done && clock_ns() < until)
        loop_step(l, 1000);
    CHECK(a->done);
    CHECK_INT(chat_running(c, m), 0);
    chat_free(c);
    loop_free(l);
}

static enum chat_end ask(const char *scenario, const char *settings, struct asked *a)
{
    struct model m;
    CHECK(load(&m, scenario, settings) == 0);
    ask_model(&m, a);
    model_free(&m);
    return a->r.end;
}

static json *seen(json *stats, const char *scenario)
{
    return json_get(stats, scenario);
}

static void every_shape_of_stream_is_read(void)
{
    static const char *const scenarios[] = {
        "plain",
        "crlf",
        "cr",
        "bytes",
        "frag+crlf",
        "bom+comments",
        "tight",
        "no-done",
        "no-finish",
        "mislabelled",
        "ignores-stream",
        "ignores-stream+parts",
        "ignores-stream+frag",
        "reasoning",
        "double-done",
        "usage-last+crlf",
        "ascii",
        "bom+bytes+cr+comments",
        "null-check",
    };
    for (size_t i = 0; i < countof(scenarios); i++) {
        struct asked a;
        enum chat_end end = ask(scenarios[i], NULL, &a);
        if (end != CHAT_OK || !str_eq(str_c(&a.text), TEXT))
            printf("# scenario %s: %s: %s\n", scenarios[i], chat_end_name(end), a.r.err.msg);
        CHECK_INT(end, CHAT_OK);
        CHECK_STR(str_c(&a.text), TEXT);
        CHECK_INT(a.r.attempts, 1);
        CHECK_INT(a.r.tokens_in, 100);
        CHECK_INT(a.r.tokens_out, 20);
        CHECK(!a.r.estimated);
        CHECK(isnan(a.r.usd)); // no price was given: unknown, not zero
        if (!strstr(scenarios[i], "ignores"))
            CHECK_STR(str_c(&a.streamed), TEXT);
        asked_free(&a);
    }
    struct asked a;
    CHECK_INT(ask("control", NULL, &a), CHAT_OK);
    CHECK(strstr(str_c(&a.text), "a\ufffdb\ufffdc\ufffdd"));
    asked_free(&a);
}

static void broken_answers_are_asked_again(void)
{
    static const struct {
        const char *scenario, *settings;
        int attempts;
    } cases[] = {
        {"cut", NULL, 2},       {"reset", NULL, 2},     {"stall", "stall=1", 2}, {"garbage", NULL, 2},
        {"error-mid", NULL, 2}, {"500", NULL, 3},       {"html", NULL, 2},       {"short-429", NULL, 3},
        {"date-429", NULL, 2},  {"error-200", NULL, 2},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct asked a;
        enum chat_end end = ask(cases[i].scenario, cases[i].settings, &a);
        if (end != CHAT_OK)
            printf("# scenario %s: %s\n", cases[i].scenario, a.r.err.msg);
        CHECK_INT(end, CHAT_OK);
        CHECK_STR(str_c(&a.text), TEXT);
        CHECK_STR(str_c(&a.streamed), TEXT);
        CHECK_INT(a.r.attempts, cases[i].attempts);
        // Half an answer was paid for, although nobody says how much.
        bool half = str_eq(cases[i].scenario, "cut") || str_eq(cases[i].scenario, "reset");
        if (half)
            CHECK(a.r.estimated && a.r.tokens_in > 100);
        asked_free(&a);
    }
}

static void rejected_parameters_are_learned_and_remembered(void)
{
    static const struct {
        const char *scenario, *settings;
        int attempts;
        const char *without; // a parameter that must not be in the last request
        const char *with;    // one that must
    } cases[] = {
        {"no-max", "max_tokens=200", 2, "max_tokens", "max_completion_tokens"},
        {"no-max-at-all", "max_tokens=200", 3, "max_completion_tokens", "stream"},
        {"cap", "max_tokens=100000", 2, "", "max_tokens"},
        {"no-temp", "temperature=0.5", 2, "temperature", "stream"},
        {"one-of", "temperature=0.5;top_p=0.9", 2, "top_p", "temperature"},
        {"no-options", NULL, 2, "stream_options", "stream"},
        {"no-seed", "seed=yes", 2, "seed", "stream"},
        {"no-stream", NULL, 2, "stream", NULL},
        {"no-max+no-temp+no-options+no-seed+one-of", "seed=yes;temperature=0.5;top_p=0.9;max_tokens=10", 5,
         "temperature", "max_completion_tokens"},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct asked a;
        CHECK_INT(ask(cases[i].scenario, cases[i].settings, &a), CHAT_OK);
        CHECK_STR(str_c(&a.text), TEXT);
        if (a.r.attempts != cases[i].attempts)
            printf("# scenario %s\n", cases[i].scenario);
        CHECK_INT(a.r.attempts, cases[i].attempts);
        asked_free(&a);
        // A new client reads what the last one learned from the file.
        CHECK_INT(ask(cases[i].scenario, cases[i].settings, &a), CHAT_OK);
        CHECK_INT(a.r.attempts, 1);
        asked_free(&a);
        json *stats = server_stats(&srv), *last = NULL;
        for (json *x = json_first(json_get(seen(stats, cases[i].scenario), "params")); x; x = json_next(x))
            last = x;
        bool has = false, hasnt = true;
        for (json *x = json_first(last); x; x = json_next(x)) {
            hasnt &= !str_eq(json_string(x), cases[i].without);
            has |= cases[i].with && str_eq(json_string(x), cases[i].with);
        }
        CHECK(hasnt);
        CHECK(has || !cases[i].with);
        if (str_eq(cases[i].scenario, "cap"))
            CHECK_INT(json_int(seen(stats, "cap"), "max", 0), 500);
        json_free(stats);
    }
    struct asked a;
    CHECK_INT(ask("no-system", NULL, &a), CHAT_OK);
    json *stats = server_stats(&srv);
    CHECK_INT(json_int(seen(stats, "no-system"), "messages", 0), 1);
    json_free(stats);
    asked_free(&a);
}

static void paths_are_found(void)
{
    static const struct {
        const char *scenario, *url, *settings;
        int attempts;
    } cases[] = {
        {"v1-path", "", NULL, 1},       {"v1-path", "/", NULL, 1},
        {"v1-path", "/v1", NULL, 1},    {"v1-path", "/v1/", NULL, 1},
        {"bare-path", "", NULL, 2},     {"bare-path", "/chat/completions", NULL, 1},
        {"bare-path", "/v1/", NULL, 2}, {"v1-path", "/v1/chat/completions/", NULL, 1},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct asked a;
        struct model m;
        CHECK(load(&m, cases[i].scenario, NULL) == 0);
        free(m.url);
        m.url = xasprintf("http://127.0.0.1:%d/%s%s", srv.port, cases[i].scenario, cases[i].url);
        ask_model(&m, &a);
        CHECK_INT(a.r.end, CHAT_OK);
        CHECK_INT(a.r.attempts, cases[i].attempts);
        asked_free(&a);
        model_free(&m);
    }
}

static void ends_are_told_apart(void)
{
    static const struct {
        const char *scenario, *settings;
        enum chat_end end;
        int attempts;
    } cases[] = {
        {"length", NULL, CHAT_CUT, 1},
        {"filter", NULL, CHAT_FILTERED, 1},
        {"filter-400", NULL, CHAT_FILTERED, 1},
        {"quota", NULL, CHAT_DENIED, 1},
        {"no-model", NULL, CHAT_DENIED, 1},
        {"redirect", NULL, CHAT_DENIED, 1},
        {"long-429", "patience=3", CHAT_FAILED, 1},
        {"always-500", "patience=2", CHAT_FAILED, 0},
        {"huge-line", "patience=0", CHAT_FAILED, 1},
        {"need-key", NULL, CHAT_DENIED, 1},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct asked a;
        enum chat_end end = ask(cases[i].scenario, cases[i].settings, &a);
        if (end != cases[i].end)
            printf("# scenario %s: %s: %s\n", cases[i].scenario, chat_end_name(end), a.r.err.msg);
        CHECK_INT(end, cases[i].end);
        CHECK(a.r.err.msg[0]);
        if (cases[i].attempts)
            CHECK_INT(a.r.attempts, cases[i].attempts);
        asked_free(&a);
    }
    struct model m;
    struct asked a;
    CHECK(load(&m, "small", NULL) == 0);
    struct loop *l = loop_new();
    struct chat *c = chat_new(l, &m, 1, NULL, NULL);
    char *big = xcalloc(1, 3001);
    memset(big, 'k', 3000);
    struct chat_message messages[] = {{"user", big}};
    a = (struct asked){0};
    chat_start(c, &(struct chat_request){.model = &m,
                                         .messages = messages,
                                         .n = 1,
                                         .params = {.temperature = NAN},
                                         .on_done = on_done,
                                         .user = &a});
    while (!a.done)
        loop_step(l, 1000);
    CHECK_INT(a.r.end, CHAT_TOO_LONG);
    CHECK_INT(model_context(&m), 4096);
    asked_free(&a);
    chat_free(c);
    loop_free(l);
    free(big);
    model_free(&m);
}

static void prices_are_counted(void)
{
    struct asked a;
    CHECK_INT(ask("plain", "price_in=2;price_out=10;price_cached=1", &a), CHAT_OK);
    CHECK_NEAR(a.r.usd, (60 * 2 + 40 * 1 + 20 * 10) * 1e-6, 1e-12);
    asked_free(&a);
    CHECK_INT(ask("cost", NULL, &a), CHAT_OK); // the server's own figure
    CHECK_NEAR(a.r.usd, 0.0125, 1e-12);
    asked_free(&a);
    CHECK_INT(ask("no-usage", "price_in=2;price_out=10", &a), CHAT_OK);
    CHECK(a.r.estimated);
    CHECK(a.r.usd > 0);
    asked_free(&a);
}

static void keys_come_from_the_environment_or_a_command(void)
{
    struct asked a;
    CHECK_INT(ask("need-key", "key_env=TEST_MODEL_KEY", &a), CHAT_OK);
    asked_free(&a);
    CHECK_INT(ask("need-key", "key_cmd=printf '%s\\n' \"$TEST_MODEL_KEY\"", &a), CHAT_OK);
    asked_free(&a);
    CHECK_INT(ask("need-key", "key_env=TEST_MODEL_KEY;header=X-Test-Key: {key};header2=X-Title: ksmith", &a),
              CHAT_OK);
    asked_free(&a);
    json *stats = server_stats(&srv);
    CHECK(json_bool(seen(stats, "need-key"), "key_ok", false));
    CHECK_STR(json_str(seen(stats, "need-key"), "title"), "ksmith");
    json_free(stats);
    // The command gives an old key first: the server refuses it, the command is run once more.
    char *flag = xasprintf("%s/flag", srv.dir);
    char *cmd = xasprintf(
        "key_cmd=if [ -e %s ]; then echo $TEST_MODEL_KEY; else touch %s; echo old-key-1234; fi", flag, flag);
    for (char *p = cmd; *p; p++)
        if (*p == ';')
            *p = '\n'; // ';' separates settings here
    CHECK_INT(ask("need-key", cmd, &a), CHAT_OK);
    CHECK_INT(a.r.attempts, 2);
    asked_free(&a);
    free(cmd);
    free(flag);
    // What a server repeats of the key does not get into messages.
    CHECK_INT(ask("need-key", "key_cmd=echo wrong-key-99887766", &a), CHAT_DENIED);
    CHECK(!strstr(a.r.err.msg, "wrong-key"));
    CHECK(strstr(a.r.err.msg, "[redacted]"));
    asked_free(&a);
    CHECK_INT(ask("need-key", "key_env=TEST_MODEL_NO_SUCH_KEY", &a), CHAT_DENIED);
    CHECK_INT(a.r.attempts, 0);
    asked_free(&a);
    CHECK_INT(ask("need-key", "key_cmd=exit 3", &a), CHAT_DENIED);
    CHECK(strstr(a.r.err.msg, "exit status 3"));
    asked_free(&a);
}

static void a_cancel_is_at_once(void)
{
    struct model m;
    CHECK(load(&m, "slow", NULL) == 0);
    struct loop *l = loop_new();
    struct chat *c = chat_new(l, &m, 1, NULL, NULL);
    struct chat_message messages[] = {{"user", "hi"}};
    struct asked a = {0};
    struct chat_call *call = chat_start(c, &(struct chat_request){.model = &m,
                                                                  .messages = messages,
                                                                  .n = 1,
                                                                  .params = {.temperature = NAN},
                                                                  .on_text = on_text,
                                                                  .on_done = on_done,
                                                                  .user = &a});
    for (int i = 0; i < 200 && !a.streamed.len; i++)
        loop_step(l, 100);
    CHECK(a.streamed.len > 0);
    chat_cancel(call);
    CHECK_INT(chat_running(c, &m), 0);
    for (int i = 0; i < 5; i++)
        loop_step(l, 20);
    CHECK(!a.done);
    asked_free(&a);
    // And the whole client with calls in flight.
    for (int i = 0; i < 8; i++)
        chat_start(c, &(struct chat_request){.model = &m,
                                             .messages = messages,
                                             .n = 1,
                                             .params = {.temperature = NAN},
                                             .on_done = on_done,
                                             .user = &a});
    for (int i = 0; i < 20; i++)
        loop_step(l, 5);
    chat_free(c);
    loop_free(l);
    model_free(&m);
}

struct crowd {
    int done, good;
    char want[40];
    bool right;
};

static void crowd_done(void *user, const struct chat_result *r)
{
    struct crowd *c = user;
    c->done++;
    c->good += r->end == CHAT_OK;
    c->right = strstr(str_c(&r->reply->text), c->want) != NULL;
}

static void a_storm_loses_and_doubles_nothing(void)
{
    enum { N = 64 };
    struct model m;
    static struct crowd crowd[N];
    CHECK(load(&m, "storm", "stall=1;parallel=64") == 0);
    struct loop *l = loop_new();
    struct chat *c = chat_new(l, &m, 1, NULL, NULL);
    for (int i = 0; i < N; i++) {
        char *text = xasprintf("request %d.", i);
        crowd[i] = (struct crowd){0};
        snprintf(crowd[i].want, sizeof crowd[i].want, "answer to request %d. ", i);
        struct chat_message messages[] = {{"user", text}};
        chat_start(c, &(struct chat_request){.model = &m,
                                             .messages = messages,
                                             .n = 1,
                                             .params = {.temperature = NAN},
                                             .seed = (uint64_t)i,
                                             .on_done = crowd_done,
                                             .user = &crowd[i]});
        free(text);
    }
    int64_t until = clock_ns() + (int64_t)120e9;
    while (chat_running(c, &m) && clock_ns() < until)
        loop_step(l, 1000);
    json *stats = server_stats(&srv);
    const json *whole = json_get(seen(stats, "storm"), "whole");
    for (int i = 0; i < N; i++) {
        char text[40];
        snprintf(text, sizeof text, "request %d.", i);
        CHECK_INT(crowd[i].done, 1);
        CHECK_INT(crowd[i].good, 1);
        CHECK(crowd[i].right);
        CHECK_INT(json_int(whole, text, 0), 1);
    }
    printf("# storm: %lld requests for %d answers, longest turn %.1f ms\n",
           (long long)json_int(seen(stats, "storm"), "requests", 0), N, loop_longest_turn_ms(l));
    json_free(stats);
    chat_free(c);
    loop_free(l);
    model_free(&m);
}

static void servers_that_are_not_there(void)
{
    struct model m;
    struct asked a;
    CHECK(load(&m, "plain", "patience=1") == 0);
    free(m.url);
    m.url = xstrdup("http://127.0.0.1:1/v1");
    ask_model(&m, &a);
    CHECK_INT(a.r.end, CHAT_FAILED);
    asked_free(&a);
    free(m.url);
    m.url = xstrdup("https://127.0.0.1:1/v1");
    m.patience_s = 0;
    ask_model(&m, &a);
    CHECK_INT(a.r.end, CHAT_FAILED);
    asked_free(&a);
    // A plain server where TLS is expected.
    free(m.url);
    m.url = xasprintf("https://127.0.0.1:%d/plain", srv.port);
    ask_model(&m, &a);
    CHECK_INT(a.r.end, CHAT_DENIED);
    asked_free(&a);
    model_free(&m);
}

static void proxies_are_used(void)
{
    struct model m;
    struct asked a;
    char *proxy = xasprintf("proxy=http://me:very-secret-word@127.0.0.1:%d", srv.port);
    CHECK(load(&m, "plain", proxy) == 0);
    free(m.url);
    m.url = xstrdup("http://model.invalid/plain");
    ask_model(&m, &a);
    CHECK_INT(a.r.end, CHAT_OK);
    CHECK_STR(str_c(&a.text), TEXT);
    asked_free(&a);
    model_free(&m);
    free(proxy);
    // The password is a secret from now on.
    struct str words = {0};
    str_add(&words, "very-secret-word");
    log_redact(&words);
    CHECK_STR(str_c(&words), "[redacted]");
    str_free(&words);
}

// A certificate of nobody known is refused until its file is named; it cannot be waved through.
static void certificates_are_verified(void)
{
    char *cert = xasprintf("%s/cert.pem", srv.dir), *key = xasprintf("%s/key.pem", srv.dir);
    const char *const argv[] = {"openssl",  "req",
                                "-x509",    "-newkey",
                                "rsa:2048", "-nodes",
                                "-days",    "2",
                                "-keyout",  key,
                                "-out",     cert,
                                "-subj",    "/CN=127.0.0.1",
                                "-addext",  "subjectAltName=IP:127.0.0.1",
                                NULL};
    struct proc_spec spec = {.argv = argv, .in = -1};
    struct proc_end end;
    struct str out = {0};
    struct err e = {0};
    bool made = proc_run(&spec, &out, 1 << 16, 60000, &end, &e) == 0 && end.status == 0;
    str_free(&out);
    if (made) {
        struct server tls;
        const char *const more[] = {"--tls", cert, key, NULL};
        server_start(&tls, NULL, more);
        int port = srv.port;
        srv.port = tls.port;
        struct model m;
        struct asked a;
        CHECK(load(&m, "plain", NULL) == 0);
        free(m.url);
        m.url = xasprintf("https://127.0.0.1:%d/plain", tls.port);
        ask_model(&m, &a);
        CHECK_INT(a.r.end, CHAT_DENIED);
        CHECK(strstr(a.r.err.msg, "certificate"));
        CHECK_INT(a.r.attempts, 1);
        asked_free(&a);
        m.ca = xstrdup(cert);
        ask_model(&m, &a);
        CHECK_INT(a.r.end, CHAT_OK);
        asked_free(&a);
        // The name counts too.
        free(m.url);
        m.url = xasprintf("https://localhost:%d/plain", tls.port);
        ask_model(&m, &a);
        CHECK_INT(a.r.end, CHAT_DENIED);
        asked_free(&a);
        model_free(&m);
        srv.port = port;
        server_stop(&tls);
    } else
        printf("# openssl is not there: certificates were not tested\n");
    free(cert);
    free(key);
}

int main(void)
{
    server_start(&srv, NULL, NULL);
    if (!srv.port) {
        printf("Bail out! the test server does not start\n");
        return 1;
    }
    learned = xasprintf("%s/learned.json", srv.dir);
    char *log = xasprintf("%s/log", srv.dir);
    CHECK(log_open(log) == 0);
    T(every_shape_of_stream_is_read);
    T(broken_answers_are_asked_again);
    T(rejected_parameters_are_learned_and_remembered);
    T(paths_are_found);
    T(ends_are_told_apart);
    T(prices_are_counted);
    T(keys_come_from_the_environment_or_a_command);
    T(a_cancel_is_at_once);
    T(a_storm_loses_and_doubles_nothing);
    T(servers_that_are_not_there);
    T(proxies_are_used);
    T(certificates_are_verified);
    free(log);
    free(learned);
    server_stop(&srv);
    T_END;
}
