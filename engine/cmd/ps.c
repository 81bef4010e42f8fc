// ksmith ps: the engines of this user on this machine.
#include "base/io.h"
#include "cmd/cmd.h"
#include "cmd/show_text.h"
#include "evolve/server.h"

#include <dirent.h>
#include <unistd.h>

static void show(const json *o, bool as_json)
{
    char speed[32];
    if (as_json) {
        show_json(o);
        return;
    }
    show_speedup(speed, sizeof speed, (struct ratio){json_num(o, "speedup", 0), 0, 0});
    printf("%7lld %-14.14s %6lld %10s %-10s ", (long long)json_int(o, "pid", 0), json_str_or(o, "name", "?"),
           (long long)json_int(o, "iterations", 0), speed,
           json_bool(o, "paused", false) ? "paused" : json_str_or(o, "doing", ""));
    show_clean(json_str_or(o, "dir", ""), stdout);
    putchar('\n');
}

static bool ask(const char *path, bool as_json)
{
    int fd = server_connect(path);
    if (fd < 0)
        return false;
    json *o = json_object();
    json_put_str(o, "cmd", "hello");
    json *reply = server_ask(fd, o, 2000, NULL);
    if (reply)
        show(reply, as_json);
    json_free(o);
    json_free(reply);
    close(fd);
    return reply != NULL;
}

static int run(struct args *a)
{
    struct err e = {0};
    char *dir = io_runtime_dir(&e);
    if (!dir)
        return cmd_fail(&e);
    bool as_json = args_flag(a, "json");
    if (!as_json)
        printf("%7s %-14s %6s %10s %-10s %s\n", "pid", "name", "tried", "best", "doing", "session");
    DIR *d = opendir(dir);
    for (struct dirent *x; d && (x = readdir(d));) {
        if (!str_ends(x->d_name, ".sock"))
            continue;
        char *path = io_join(dir, x->d_name);
        ask(path, as_json);
        free(path);
    }
    if (d)
        closedir(d);
    free(dir);
    return 0;
}

static const struct opt opts[] = {OPT_JSON, OPT_END};

const struct cmd cmd_ps = {
    .name = "ps",
    .args = "[--json]",
    .help = "the engines of this user on this machine",
    .group = "watch and steer",
    .opts = opts,
    .run = run,
};
