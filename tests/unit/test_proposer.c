// Proposers on the loop: answers become candidates, one diagnostic goes back, what fails waits for repair, a
// recording gives the same again without a network, commands are killed with all they start, and no key gets
// onto the disk.
#include "tests/models/net.h"

#include "base/log.h"
#include "models/apply.h"
#include "models/proposer.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>

static struct server srv;
static char *state, *replies;
static const char parent[] =
    "#include <stddef.h>\n\nvoid scale(float *x, int n)\n{\n    for (int i = 0; i < n; i++)\n"
    "        x[i] *= 2.0f;\n}\n";
#define NEW                                                                                                 \
    "#include <stddef.h>\n\nvoid scale(float *x, int n)\n{\n    for (int i = 0; i < n; i++)\n        x[i] " \
    "+= x[i];\n}\n"
#define BLOCK "<<<<<<< SEARCH\n        x[i] *= 2.0f;\n=======\n        x[i] += x[i];\n>>>>>>> REPLACE\n"

// What the scenario "ladder" answers, one after the other.
static const char *const ladder[] = {
    "<name>Add</name>\n<description>\nAn add is cheaper.\n</description>\n<patch>\n" BLOCK "</patch>\n",
    "<name>Wrong place</name>\n<patch>\n<<<<<<< SEARCH\nno such line\n=======\nx\n>>>>>>> "
    "REPLACE\n</patch>\n",
    "Sorry. <source>\n" NEW "</source>\n```c\n" NEW "```\n",
    "<patch>\n<<<<<<< SEARCH\nno such line\n=======\nx\n>>>>>>> REPLACE\n</patch>\n",
    "<name>Still wrong</name>\n<patch>\n<<<<<<< SEARCH\nno such line\n=======\nx\n>>>>>>> "
    "REPLACE\n</patch>\n",
    "```c\n#include <stddef.h>\n\nvoid scale(float *x, int n)\n{\n    /* faster */\n    for (int i = 0; i < "
    "n; i++)\n        x[i] *= 2.0f;\n}\n```\n",
    "```c\n#include <stddef.h>\n\nvoid scale(float *x, int n)\n{\n    for (int i = 0; i < n; i++)\n        "
    "x[i] *= 2.0f;\n}\n```\n",
    "I cannot improve it.\n",
    "Really not.\n",
    "```c\n#include <stddef.h>\nint system(const char *);\nvoid scale(float *x, int n)\n{\n    "
    "system(\"true\");\n}\n```\n",
    "```c\n" NEW "```\n",
    "It is bound by memory.\n",
};

struct got {
    bool done;
    enum proposal_end end;
    char *source, *subject, *problem, *reply;
    int turns, attempts;
    double tokens_in, usd, temperature;
    struct str streamed;
};

static void on_done(void *user, const struct proposal *p)
{
    struct got *g = user;
    CHECK(!g->done);
    *g = (struct got){.done = true,
                      .end = p->end,
                      .source = p->source ? xstrdup(p->source) : NULL,
                      .subject = xstrdup(p->subject),
                      .problem = xstrdup(p->problem ? p->problem : ""),
                      .reply = xstrdup(p->reply),
                      .turns = p->turns,
                      .attempts = p->attempts,
                      .tokens_in = p->tokens_in,
                      .usd = p->usd,
                      .temperature = p->temperature,
                      .streamed = g->streamed};
}

static void on_text(void *user, const char *text, size_t n)
{
    struct got *g = user;
    if (text)
        str_addn(&g->streamed, text, n);
    else
        str_clear(&g->streamed);
}

static void got_free(struct got *g)
{
    free(g->source);
    free(g->subject);
    free(g->problem);
    free(g->reply);
    str_free(&g->streamed);
    *g = (struct got){0};
}

static json *sections(const char *scenario, const char *exec)
{
    json *all = json_object(), *m = json_object();
    char *url = xasprintf("http://127.0.0.1:%d/%s", srv.port, scenario);
    json_put_str(m, "url", url);
    json_put_str(m, "model", "tiny");
    json_put_str(m, "proxy", "");
    json_put_str(m, "key_env", "TEST_MODEL_KEY");
    json_put_str(m, "temperature", "0.2 0.9");
    json_put_str(m, "price_in", "1");
    json_put_str(m, "price_out", "1");
    json_put(all, "model tiny", m);
    if (exec) {
        json *x = json_object();
        json_put_str(x, "command", exec);
        json_put_str(x, "timeout", "2");
        json_put(all, "exec agent", x);
    }
    free(url);
    return all;
}

static struct proposers *open_with(struct loop *l, json *s, bool replay)
{
    err_list errors = {0};
    struct proposers *p = proposers_open(&(struct proposers_options){.loop = l,
                                                                     .session_dir = "engine",
                                                                     .state_dir = state,
                                                                     .sections = s,
                                                                     .path = "task.ini",
                                                                     .seed = 5,
                                                                     .replay = replay ? state : NULL},
                                         &errors);
    for (size_t i = 0; i < errors.n; i++)
        printf("# %s\n", errors.v[i].msg);
    vec_free(&errors);
    json_free(s);
    return p;
}

static struct proposer_request request(const char *tag, enum ask ask, struct got *g)
{
    static const struct prompt_item hint = {NULL, "rows are padded", NULL};
    *g = (struct got){0};
    return (struct proposer_request){.tag = tag,
                                     .iteration = atoi(tag),
                                     .ctx = {.ask = ask,
                                             .func = "scale",
                                             .region = "the body of scale",
                                             .task = "Scale x.",
                                             .source = parent,
                                             .hints = {&hint, 1}},
                                     .path = "k.c",
                                     .evolve = EVOLVE_BODY,
                                     .parent = 3,
                                     .on_text = on_text,
                                     .on_done = on_done,
                                     .user = g};
}

static void run_one(struct loop *l, struct proposers *p, const char *tag, enum ask ask, int who,
                    struct got *g)
{
    struct proposer_request r = request(tag, ask, g);
    struct err e = {0};
    r.who = who;
    CHECK(proposers_ask(p, &r, &e) != NULL);
    CHECK(!g->done);
    CHECK_INT(proposers_flight(p).n, 1);
    int64_t until = clock_ns() + (int64_t)30e9;
    while (!g->done && clock_ns() < until)
        loop_step(l, 1000);
    CHECK(g->done);
    CHECK_INT(proposers_flight(p).n, 0);
}

static const struct {
    const char *tag;
    enum ask ask;
    enum proposal_end end;
    int turns;
    const char *says; // in the problem
} steps[] = {
    {"1", ASK_IMPROVE, PROPOSAL_SOURCE, 1, ""},
    {"2", ASK_IMPROVE, PROPOSAL_SOURCE, 2, ""}, // after one diagnostic
    {"3", ASK_IMPROVE, PROPOSAL_SALVAGE, 2, "does not apply"},
    {"4", ASK_IMPROVE, PROPOSAL_SAME, 2, "same as before"},
    {"5", ASK_IMPROVE, PROPOSAL_NONE, 2, "no code"},
    {"6", ASK_IMPROVE, PROPOSAL_SOURCE, 2, ""}, // the first one reached outside of the body
    {"7", ASK_EXPLAIN, PROPOSAL_TEXT, 1, ""},
};

static void walk(bool replay)
{
    struct loop *l = loop_new();
    struct proposers *p = open_with(l, sections("ladder+need-key+frag", NULL), replay);
    CHECK(p != NULL);
    for (size_t i = 0; p && i < countof(steps); i++) {
        struct got g;
        run_one(l, p, steps[i].tag, steps[i].ask, 0, &g);
        if (g.end != steps[i].end)
            printf("# step %s: %s: %s\n", steps[i].tag, proposal_end_name(g.end), g.problem);
        CHECK_INT(g.end, steps[i].end);
        CHECK_INT(g.turns, steps[i].turns);
        CHECK(strstr(g.problem ? g.problem : "", steps[i].says));
        CHECK((g.end == PROPOSAL_SOURCE) == (g.source != NULL));
        if (g.source)
            CHECK_STR(g.source, NEW);
        if (i == 0)
            CHECK_STR(g.subject, "Add");
        CHECK_INT(g.tokens_in, 100 * steps[i].turns);
        CHECK_NEAR(g.usd, 120e-6 * steps[i].turns, 1e-12);
        CHECK(g.temperature == 0.2 || g.temperature == 0.9);
        if (!replay)
            CHECK_STR(str_c(&g.streamed) +
                          (steps[i].turns > 1 ? strlen(str_c(&g.streamed)) - strlen(g.reply) : 0),
                      g.reply);
        got_free(&g);
    }
    json *waiting = salvage_list(state);
    CHECK_INT(json_count(waiting), 1);
    CHECK_STR(json_str(json_first(waiting), "tag"), "3");
    CHECK_STR(json_str(json_first(waiting), "name"), "Still wrong");
    CHECK_INT(json_int(json_first(waiting), "parent", 0), 3);
    CHECK(strstr(json_str_or(json_first(waiting), "body", ""), "no such line"));
    json_free(waiting);
    proposers_close(p);
    loop_free(l);
}

static void answers_become_candidates(void)
{
    walk(false);
}

static void a_recording_gives_the_same_without_a_network(void)
{
    int port = srv.port;
    json *before = server_stats(&srv);
    srv.port = 1; // nobody listens there
    walk(true);
    srv.port = port;
    json *after = server_stats(&srv);
    const char *name = "ladder+need-key+frag";
    CHECK_INT(json_int(json_get(before, name), "requests", -1),
              json_int(json_get(after, name), "requests", -2));
    json_free(before);
    json_free(after);
    // What is not in the recording fails in words.
    struct loop *l = loop_new();
    struct proposers *p = open_with(l, sections("ladder", NULL), true);
    struct got g;
    run_one(l, p, "999", ASK_IMPROVE, 0, &g);
    CHECK_INT(g.end, PROPOSAL_FAILED);
    CHECK(strstr(g.problem, "recording"));
    got_free(&g);
    proposers_close(p);
    loop_free(l);
}

static void cut_answers_are_raised_or_continued(void)
{
    struct loop *l = loop_new();
    struct proposers *p = open_with(l, sections("length-once+ladder", NULL), false);
    struct got g;
    run_one(l, p, "20", ASK_EXPLAIN, 0, &g);
    CHECK_INT(g.end, PROPOSAL_TEXT);
    CHECK_INT(g.turns, 2);
    json *stats = server_stats(&srv);
    CHECK(json_int(json_get(stats, "length-once+ladder"), "max", 0) >= 8192);
    json_free(stats);
    got_free(&g);
    proposers_close(p);
    // A model that is always cut never gives half a kernel.
    p = open_with(l, sections("length+ladder", NULL), false);
    run_one(l, p, "21", ASK_IMPROVE, 0, &g);
    CHECK(g.end == PROPOSAL_SALVAGE || g.end == PROPOSAL_NONE);
    CHECK(g.turns > 2 && g.turns < 8);
    salvage_drop(state, "21", NULL);
    got_free(&g);
    proposers_close(p);
    loop_free(l);
}

static void commands_are_taken_at_their_word(void)
{
    static const struct {
        const char *command;
        enum proposal_end end;
        const char *says;
    } cases[] = {
        {"sed 's/x\\[i\\] \\*= 2.0f/x[i] += x[i]/' parent.c > candidate.c; echo added", PROPOSAL_SOURCE, ""},
        {"sed -i 's/x\\[i\\] \\*= 2.0f/x[i] += x[i]/' parent.c", PROPOSAL_SOURCE, ""},
        {"printf '%s\\n' '<<<<<<< SEARCH' '        x[i] *= 2.0f;' ======= '        x[i] += x[i];' '>>>>>>> "
         "REPLACE' > candidate.patch",
         PROPOSAL_SOURCE, ""},
        {"printf 'I did\\n```c\\n'; sed 's/x\\[i\\] \\*= 2.0f/x[i] += x[i]/' parent.c; printf '```\\n'",
         PROPOSAL_SOURCE, ""},
        {"cp parent.c old.c; sed 's/x\\[i\\] \\*= 2.0f/x[i] += x[i]/' old.c > parent.tmp; diff -u old.c "
         "parent.tmp > candidate.patch; true",
         PROPOSAL_SOURCE, ""},
        {"grep -q padded hint.txt && grep -q 'Scale x' task.md && grep -q '{}' feedback.json && grep -q "
         "'What to do now' "
         "prompt.md && sed 's/x\\[i\\] \\*= 2.0f/x[i] += x[i]/' parent.c > candidate.c",
         PROPOSAL_SOURCE, ""},
        {"true", PROPOSAL_FAILED, "left no candidate"},
        {"echo oh no >&2; exit 3", PROPOSAL_FAILED, "exit status 3: oh no"},
        {"echo I have no idea", PROPOSAL_NONE, ""},
        {"cp parent.c candidate.c", PROPOSAL_SAME, ""},
        {"ln -s /etc/passwd candidate.c", PROPOSAL_FAILED, "left no candidate"},
        {"sleep 60", PROPOSAL_FAILED, "time limit"},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct loop *l = loop_new();
        struct proposers *p = open_with(l, sections("plain", cases[i].command), false);
        struct got g;
        char tag[16];
        snprintf(tag, sizeof tag, "%zu", 100 + i);
        run_one(l, p, tag, ASK_IMPROVE, proposers_find(p, "agent"), &g);
        if (g.end != cases[i].end || !strstr(g.problem, cases[i].says))
            printf("# %s: %s: %s\n", cases[i].command, proposal_end_name(g.end), g.problem);
        CHECK_INT(g.end, cases[i].end);
        CHECK(strstr(g.problem, cases[i].says));
        if (g.source)
            CHECK_STR(g.source, NEW);
        CHECK(isnan(g.usd));
        got_free(&g);
        proposers_close(p);
        loop_free(l);
    }
}

// Not there, or dead and not yet collected by whoever inherits orphans on this machine.
static bool is_gone(int pid)
{
    char *path = xasprintf("/proc/%d/stat", pid);
    struct str text = {0};
    bool there = io_read_file(path, 4096, &text, NULL) == 0;
    const char *paren = strrchr(str_c(&text), ')');
    bool dead = !there || (paren && paren[1] == ' ' && (paren[2] == 'Z' || paren[2] == 'X'));
    str_free(&text);
    free(path);
    return dead;
}

static void a_command_leaves_nothing_behind(void)
{
    char *pid_file = xasprintf("%s/pid", srv.dir), *folder = xasprintf("%s/tmp", srv.dir);
    char *command = xasprintf("sleep 300 & echo $! > %s; sleep 300", pid_file);
    const char *old = getenv("TMPDIR");
    char *saved = old ? xstrdup(old) : NULL;
    io_mkdirs(folder, 0700, NULL);
    setenv("TMPDIR", folder, 1);
    for (int cancel = 0; cancel < 2; cancel++) {
        struct loop *l = loop_new();
        struct proposers *p = open_with(l, sections("plain", command), false);
        struct got g;
        struct proposer_request r = request("200", ASK_IMPROVE, &g);
        r.who = proposers_find(p, "agent");
        struct proposer_call *c = proposers_ask(p, &r, NULL);
        CHECK(c != NULL);
        struct str pid = {0};
        for (int i = 0; i < 300 && !strchr(str_c(&pid), '\n'); i++) {
            loop_step(l, 10);
            str_clear(&pid);
            if (io_exists(pid_file))
                io_read_file(pid_file, 100, &pid, NULL);
        }
        CHECK_INT(proposers_info(p, r.who).running, 1);
        if (cancel)
            proposers_cancel(c);
        for (int i = 0; i < 500 && !cancel && !g.done; i++)
            loop_step(l, 10);
        CHECK_INT(proposers_info(p, r.who).running, 0);
        CHECK(g.done == !cancel);
        clock_sleep_ms(50);
        CHECK(is_gone(atoi(str_c(&pid)))); // the grandchild too
        io_remove(pid_file, NULL);
        str_free(&pid);
        got_free(&g);
        proposers_close(p);
        loop_free(l);
    }
    CHECK(rmdir(folder) == 0); // and so are the folders it worked in
    if (saved)
        setenv("TMPDIR", saved, 1);
    else
        unsetenv("TMPDIR");
    free(saved);
    free(command);
    free(folder);
    free(pid_file);
}

static void who_is_asked(void)
{
    struct loop *l = loop_new();
    struct proposers *p = open_with(l, sections("quota", "true"), false);
    CHECK_INT(proposers_count(p), 2);
    struct got g;
    run_one(l, p, "300", ASK_IMPROVE, 0, &g);
    CHECK_INT(g.end, PROPOSAL_DENIED);
    got_free(&g);
    CHECK_INT(proposers_info(p, 0).wait_ms, -1);
    CHECK(proposers_info(p, 0).why && strstr(proposers_info(p, 0).why, "quota"));
    for (uint64_t i = 0; i < 50; i++) // the other one from now on
        CHECK_INT(proposers_choose(p, NULL, 0, (struct draw){1, i}), 1);
    proposers_forgive(p, 0);
    CHECK_INT(proposers_info(p, 0).wait_ms, 0);
    struct err e = {0};
    struct proposer_request r = request("301", ASK_IMPROVE, &g);
    r.who = 7;
    CHECK(proposers_ask(p, &r, &e) == NULL && e.msg[0]);
    proposers_close(p);
    loop_free(l);
}

static int find_text(const char *dir, const char *needle)
{
    int found = 0;
    DIR *d = opendir(dir);
    for (struct dirent *x; d && (x = readdir(d));) {
        char *path = io_join(dir, x->d_name);
        struct str text = {0};
        if (x->d_name[0] == '.' && (!x->d_name[1] || x->d_name[1] == '.'))
            ;
        else if (io_is_dir(path))
            found += find_text(path, needle);
        else if (io_read_file(path, 64 << 20, &text, NULL) == 0 &&
                 memmem(str_c(&text), text.len, needle, strlen(needle))) {
            printf("# %s holds %.4s\n", path, needle);
            found++;
        }
        str_free(&text);
        free(path);
    }
    if (d)
        closedir(d);
    return found;
}

static void no_key_is_on_the_disk(void)
{
    // A server that repeats the key in its answer, and a command that prints it.
    struct loop *l = loop_new();
    struct proposers *p =
        open_with(l, sections("echo-key", "echo $TEST_MODEL_KEY; echo $TEST_MODEL_KEY >&2; exit 1"), false);
    struct got g;
    run_one(l, p, "400", ASK_EXPLAIN, 0, &g);
    CHECK_INT(g.end, PROPOSAL_TEXT);
    CHECK(strstr(g.reply, "[redacted]") && !strstr(g.reply, test_key));
    got_free(&g);
    run_one(l, p, "401", ASK_IMPROVE, 1, &g);
    CHECK(!strstr(g.problem, test_key));
    log_line("the key is %s, says the log", test_key);
    got_free(&g);
    proposers_close(p);
    loop_free(l);
    CHECK_INT(find_text(srv.dir, test_key), 0);
    CHECK(find_text(srv.dir, "[redacted]") >= 2); // the search finds what is there
}

static void recordings_survive_a_crash(void)
{
    struct err e = {0};
    char *dir = io_temp_dir("ksmith-record", &e), *path = xasprintf("%s/exchanges.jsonl", dir);
    struct record *r = record_open(dir, true, &e);
    struct exchange x = {.tag = "1",
                         .kind = "llm",
                         .who = "m",
                         .reply = "a\nb\"c",
                         .end = "ok",
                         .usd = NAN,
                         .temperature = NAN};
    CHECK(record_add(r, &x, &e) == 0);
    x.tag = "2";
    x.turn = 1;
    CHECK(record_add(r, &x, &e) == 0);
    x.tag = "../etc";
    CHECK(record_add(r, &x, &e) < 0);
    struct record *reader = record_open(dir, false, &e);
    CHECK_INT(record_count(reader), 2);
    x.tag = "3";
    CHECK(record_add(r, &x, &e) == 0);
    json *j = record_find(reader, "3", 1); // appended by another
    CHECK_STR(json_str(j, "reply"), "a\nb\"c");
    CHECK(!json_has(j, "usd"));
    json_free(j);
    record_free(reader);
    record_free(r);
    struct stat st;
    CHECK(stat(path, &st) == 0 && (st.st_mode & 077) == 0);
    CHECK(truncate(path, st.st_size - 5) == 0);
    r = record_open(dir, true, &e);
    CHECK_INT(record_count(r), 2);
    x.tag = "4";
    CHECK(record_add(r, &x, &e) == 0);
    j = record_find(r, "4", 1);
    CHECK(j != NULL);
    json_free(j);
    CHECK(record_find(r, "3", 1) == NULL);
    record_free(r);
    io_remove(dir, NULL);
    free(path);
    free(dir);
}

int main(void)
{
    struct err e = {0};
    replies = io_temp_dir("ksmith-replies", &e);
    for (size_t i = 0; i < countof(ladder); i++) {
        char *path = xasprintf("%s/%02zu.txt", replies, i);
        io_write_file(path, ladder[i], strlen(ladder[i]), 0600, &e);
        free(path);
    }
    server_start(&srv, replies, NULL);
    if (!srv.port) {
        printf("Bail out! the test server does not start\n");
        return 1;
    }
    state = xasprintf("%s/state", srv.dir);
    io_mkdirs(state, 0700, &e);
    char *log = xasprintf("%s/log", srv.dir);
    CHECK(log_open(log) == 0);
    T(answers_become_candidates);
    T(a_recording_gives_the_same_without_a_network);
    T(cut_answers_are_raised_or_continued);
    T(commands_are_taken_at_their_word);
    T(a_command_leaves_nothing_behind);
    T(who_is_asked);
    T(no_key_is_on_the_disk);
    T(recordings_survive_a_crash);
    io_remove(replies, NULL);
    free(replies);
    free(log);
    free(state);
    server_stop(&srv);
    T_END;
}
