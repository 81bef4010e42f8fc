// A test server (tests/models/server.py) for unit tests: started with the test, ended with it.
#pragma once
#include "t.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/proc.h"
#include "models/chat.h"

#include <unistd.h>

static const char test_key[] = "sk-planted-5f1c9a7e22b84d0f";

struct server {
    pid_t pid;
    char *dir, *port_file;
    int port;
};

// port stays 0 where python3 is not there.
static void server_start(struct server *s, const char *replies, const char *const *more)
{
    struct err e = {0};
    *s = (struct server){.dir = io_temp_dir("ksmith-models", &e)};
    s->port_file = xasprintf("%s/port", s->dir);
    setenv("TEST_MODEL_KEY", test_key, 1);
    const char *argv[16] = {"python3", "tests/models/server.py", "--port-file", s->port_file};
    int n = 4;
    if (replies) {
        argv[n++] = "--replies";
        argv[n++] = replies;
    }
    for (; more && *more; more++)
        argv[n++] = *more;
    struct proc_spec p = {.argv = argv, .in = -1, .out = 2, .err = 2};
    if (proc_start(&p, &s->pid, &e) < 0) {
        printf("# %s\n", e.msg);
        return;
    }
    struct str text = {0};
    for (int i = 0; i < 1000 && !io_exists(s->port_file); i++)
        clock_sleep_ms(10);
    if (io_read_file(s->port_file, 100, &text, &e) == 0)
        s->port = atoi(str_c(&text));
    str_free(&text);
}

static void server_stop(struct server *s)
{
    if (s->pid)
        proc_kill(s->pid);
    io_remove(s->dir, NULL);
    free(s->dir);
    free(s->port_file);
}

// What the server saw of a scenario, by way of our own client. Free the root.
struct fetched {
    struct str body;
    bool done;
    struct http_result result;
};
static inline bool fetched_body(void *user, const char *data, size_t n)
{
    struct fetched *f = user;
    str_addn(&f->body, data, n);
    return true;
}
static inline void fetched_done(void *user, const struct http_result *r)
{
    struct fetched *f = user;
    f->done = true;
    f->result = *r;
}
static inline json *server_stats(const struct server *s)
{
    struct loop *l = loop_new();
    struct http *h = http_new(l, NULL);
    struct fetched f = {0};
    char *url = xasprintf("http://127.0.0.1:%d/stats", s->port);
    http_start(h, &(struct http_request){
                      .url = url, .on_body = fetched_body, .on_done = fetched_done, .proxy = "", .user = &f});
    while (!f.done)
        loop_step(l, 1000);
    json *j = json_parse(str_c(&f.body), f.body.len, NULL);
    str_free(&f.body);
    free(url);
    http_free(h);
    loop_free(l);
    return j;
}
