// 64 streams at a time against the faulty test server for some seconds, with a steering command every 20 ms:
// how soon the loop answers it, whether every request ends once, whether memory stays flat. usage: storm
// [SECONDS]
#include "tests/models/net.h"

#include "base/log.h"
#include "base/stats.h"

#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

enum { PARALLEL = 64, MOST = 100000 };
static struct server srv;
static char ended[MOST], good[MOST];
static int started, done, wrong;
static int64_t stop_at;
static struct chat *chat;
static struct model model;

struct one {
    int id;
};

static void start_one(void);

static void on_done(void *user, const struct chat_result *r)
{
    struct one *o = user;
    char want[64];
    snprintf(want, sizeof want, "answer to request %d. ", o->id);
    ended[o->id]++;
    done++;
    if (r->end == CHAT_OK && strncmp(str_c(&r->reply->text), want, strlen(want)) == 0)
        good[o->id]++;
    else
        wrong++;
    free(o);
    if (clock_ns() < stop_at && started < MOST)
        start_one();
}

static void start_one(void)
{
    struct one *o = malloc(sizeof *o);
    char text[64];
    o->id = started++;
    snprintf(text, sizeof text, "request %d.", o->id);
    struct chat_message m = {"user", text};
    chat_start(chat, &(struct chat_request){.model = &model,
                                            .messages = &m,
                                            .n = 1,
                                            .params = {.temperature = NAN},
                                            .seed = (uint64_t)o->id,
                                            .on_done = on_done,
                                            .user = o});
}

static void echo(void *user, int fd, short revents)
{
    char c;
    (void)user, (void)revents;
    if (read(fd, &c, 1) == 1 && write(fd, &c, 1) != 1)
        abort();
}

static double took[MOST];
static int pings, quit;
static void *ping(void *user)
{
    int fd = *(int *)user;
    while (!__atomic_load_n(&quit, __ATOMIC_RELAXED) && pings < MOST) {
        char c = 'p';
        int64_t at = clock_ns();
        if (write(fd, &c, 1) != 1 || read(fd, &c, 1) != 1)
            break;
        took[pings++] = (double)(clock_ns() - at) * 1e-6;
        clock_sleep_ms(20);
    }
    return NULL;
}

static long rss_kb(void)
{
    struct str s = {0};
    io_read_file("/proc/self/statm", 4096, &s, NULL);
    long pages = 0, all = 0;
    sscanf(str_c(&s), "%ld %ld", &all, &pages);
    str_free(&s);
    return pages * 4;
}

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? atoi(argv[1]) : 60, fds[2];
    json *section = json_object();
    err_list errors = {0};
    log_open("/dev/null");
    server_start(&srv, NULL, NULL);
    char *url = xasprintf("http://127.0.0.1:%d/storm", srv.port);
    json_put_str(section, "url", url);
    json_put_str(section, "model", "tiny");
    json_put_str(section, "stall", "1");
    json_put_str(section, "parallel", "64");
    json_put_str(section, "proxy", "");
    if (!srv.port || model_load(&model, "storm", section, "", &errors) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
        return 1;
    struct loop *l = loop_new();
    chat = chat_new(l, &model, 1, NULL, NULL);
    loop_watch(l, fds[0], POLLIN, echo, NULL);
    stop_at = clock_ns() + (int64_t)seconds * 1000000000;
    for (int i = 0; i < PARALLEL; i++)
        start_one();
    pthread_t thread;
    pthread_create(&thread, NULL, ping, &fds[1]);
    long first = 0;
    while (chat_running(chat, &model)) {
        loop_step(l, 1000);
        if (!first && clock_ns() > stop_at - (int64_t)seconds * 750000000)
            first = rss_kb();
    }
    __atomic_store_n(&quit, 1, __ATOMIC_RELAXED);
    shutdown(fds[0], SHUT_RDWR);
    pthread_join(thread, NULL);
    json *stats = server_stats(&srv), *whole = json_get(json_get(stats, "storm"), "whole");
    int lost = 0, doubled = 0;
    for (int i = 0; i < started; i++) {
        char text[64];
        snprintf(text, sizeof text, "request %d.", i);
        lost += ended[i] == 0 || json_int(whole, text, 0) == 0;
        doubled += ended[i] > 1 || good[i] > 1 || json_int(whole, text, 0) > 1;
    }
    CHECK_INT(lost + doubled + wrong, 0);
    printf("%d requests asked, %lld sent, %d ended, %d not ok, %d lost, %d doubled\n", started,
           (long long)json_int(json_get(stats, "storm"), "requests", 0), done, wrong, lost, doubled);
    printf("a command was answered after %.2f ms (median), %.2f ms (99%%), %.2f ms (worst) of %d\n",
           stats_quantile(took, (size_t)pings, 0.5), stats_quantile(took, (size_t)pings, 0.99),
           stats_quantile(took, (size_t)pings, 1), pings);
    printf("longest turn %.1f ms, memory %ld kB after a quarter, %ld kB at the end\n",
           loop_longest_turn_ms(l), first, rss_kb());
    json_free(stats);
    chat_free(chat);
    loop_free(l);
    server_stop(&srv);
    printf("%sok 1 - storm\n", t_bad ? "not " : "");
    t_failed_tests += t_bad;
    return t_failed_tests + t_count;
}
