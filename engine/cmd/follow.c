#include "cmd/follow.h"

#include "base/clock.h"
#include "cmd/event_text.h"
#include "cmd/headroom.h"
#include "cmd/show_text.h"
#include "evolve/lines.h"
#include "evolve/server.h"

#include <langinfo.h>
#include <math.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { REFRESH_MS = 250 };

struct follower {
    const struct follow_options *o;
    struct loop *loop;
    struct state state;
    struct journal_reader reader;
    struct lines *lines; // to the engine; NULL where it is gone
    json *status;        // the last status event
    bool quiet;          // reading what happened before we came
    bool terminal, bar_shown, stopping, interrupted;
    struct err e;
};

static void erase_bar(struct follower *f)
{
    if (f->bar_shown)
        fputs("\r\033[K", stdout);
    f->bar_shown = false;
}

static void bar(const struct follower *f, double part, int width, struct str *out)
{
    bool utf8 = str_eq(nl_langinfo(CODESET), "UTF-8");
    int full = (int)(part * width + 0.5);
    for (int i = 0; i < width; i++)
        str_add(out, i < full ? (utf8 ? "█" : "#") : (utf8 ? "░" : "."));
    (void)f;
}

static void draw_bar(struct follower *f)
{
    const struct state *s = &f->state;
    const struct candidate *c = state_champion(s);
    struct winsize w = {0};
    if (!f->terminal || !f->status || !c)
        return;
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
    double spent = json_num(f->status, "spent_s", 0), left = json_num(f->status, "left_s", -1);
    double of = json_num(f->status, "of", 0), tried = (double)(s->iterations - 1),
           part = of > 0 ? tried / of : 0;
    if (left >= 0 && spent + left > 0)
        part = fmax(part, spent / (spent + left));
    struct str line = {0};
    char speed[64], time[32] = "";
    show_speedup(speed, sizeof speed, c->speedup);
    if (left >= 0)
        snprintf(time, sizeof time, " %d:%02d left", (int)left / 60, (int)left % 60);
    bar(f, fmin(part, 1), 16, &line);
    str_addf(&line, " %lld tried %.0f/min best #%lld %s%s  %s", (long long)tried,
             spent > 1 ? 60 * (double)s->evals / spent : 0, (long long)c->id, speed, time,
             json_str_or(f->status, "doing", ""));
    if (json_has(f->status, "id"))
        str_addf(&line, " #%lld", (long long)json_int(f->status, "id", 0));
    // Cut by characters; the bar's are three bytes each in UTF-8.
    int columns = w.ws_col ? w.ws_col - 1 : 79, shown = 0;
    size_t end = 0;
    while (end < line.len && shown < columns) {
        end++;
        while (end < line.len && ((unsigned char)line.s[end] & 0xc0) == 0x80)
            end++;
        shown++;
    }
    erase_bar(f);
    fwrite(line.s, 1, end, stdout);
    fflush(stdout);
    f->bar_shown = true;
    str_free(&line);
}

static void tell(void *user, const struct journal_line *line)
{
    struct follower *f = user;
    if (f->quiet)
        return;
    erase_bar(f);
    event_print(&f->state, line->event, line->t, stdout);
}

static void catch_up(struct follower *f)
{
    if (event_follow(&f->reader, &f->state, tell, f, &f->e) < 0 && f->loop)
        loop_stop(f->loop);
    fflush(stdout);
}

static void on_line(void *user, json *o)
{
    struct follower *f = user;
    if (str_eq(json_str(o, "ev"), "status")) {
        json_free(f->status);
        f->status = json_copy(o);
    }
    catch_up(f);
    draw_bar(f);
}

static void on_bad(void *user, const char *text, const struct err *e)
{
    (void)user;
    (void)text;
    (void)e;
}

static void on_closed(void *user)
{
    struct follower *f = user;
    catch_up(f);
    loop_stop(f->loop);
}

static const struct lines_ops ops = {on_line, on_bad, on_closed};

static void send(struct follower *f, const char *cmd)
{
    json *o = json_object();
    char who[80];
    const char *user = getenv("USER");
    snprintf(who, sizeof who, "%.60s", user && *user ? user : "the engineer");
    json_put_str(o, "cmd", cmd);
    json_put_str(o, "who", who);
    lines_send(f->lines, o);
    json_free(o);
}

static void on_signal(void *user, int signal)
{
    struct follower *f = user;
    if (signal == SIGINT && f->o->stop_on_interrupt && !f->stopping) {
        f->stopping = f->interrupted = true;
        erase_bar(f);
        puts("stopping (what is proven is kept; Ctrl-C again leaves the engine to finish by itself)");
        send(f, "stop");
        return;
    }
    f->interrupted = true;
    loop_stop(f->loop);
}

static void on_refresh(void *user)
{
    struct follower *f = user;
    catch_up(f);
    draw_bar(f);
    loop_after(f->loop, REFRESH_MS, on_refresh, f);
}

static int result(struct follower *f)
{
    const struct state *s = &f->state;
    const struct candidate *c = state_champion(s);
    char speed[64];
    erase_bar(f);
    if (f->e.kind) {
        err_print(&f->e, stderr);
        return ERR_FAIL;
    }
    if (!s->stopped && json_has(f->status, "reason")) { // it could not write that into its journal
        printf("stopped: ");
        show_clean(json_str_or(f->status, "reason", ""), stdout);
        puts("\nWhat was acknowledged is kept; `ksmith run` goes on from there.");
        return ERR_FAIL;
    }
    if (!s->stopped) {
        puts(f->interrupted
                 ? "The engine runs on; `ksmith attach` follows it again, `ksmith ctl stop` ends it."
                 : "The engine ended without a word: see .ksmith/engine.log; `ksmith run` goes on from the "
                   "journal.");
        return f->interrupted ? 0 : ERR_FAIL;
    }
    if (c && c->id > 0) {
        show_speedup(speed, sizeof speed, c->speedup);
        printf("champion: %lld, %s over the baseline, commit %.10s\n", (long long)c->id, speed,
               c->commit ? c->commit : "-");
    } else if (c && !str_eq(s->stop_reason, "error")) {
        printf("no improvement: none of %lld candidates was proven faster than the baseline; nothing was "
               "committed\n",
               (long long)(s->iterations - 1));
    }
    struct str words = {0};
    headroom_words(s, f->reader.path, &words);
    fputs(str_c(&words), stdout);
    str_free(&words);
    return str_eq(s->stop_reason, "error") ? ERR_FAIL : 0;
}

static int begin(struct follower *f, struct session *session, char **socket, struct err *e)
{
    // The lock-free check of the folder first: a session that never ran is said in words.
    if (session_open(session, f->o->dir, SESSION_READ, e) < 0)
        return -1;
    *socket = session_socket(session->dir, e);
    int r = *socket ? journal_reader_open(&f->reader, session->journal_path, e) : -1;
    session_close(session);
    return r;
}

int follow(const struct follow_options *o)
{
    struct follower f = {.o = o, .terminal = isatty(STDOUT_FILENO)};
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, 0};
    struct session session;
    struct err e = {0};
    char *socket = NULL;
    if (begin(&f, &session, &socket, &e) < 0) {
        free(socket);
        err_print(&e, stderr);
        return ERR_FAIL;
    }
    state_init(&f.state);
    // Signals first: a Ctrl-C in the first moment means the same as a later one.
    f.loop = loop_new();
    loop_signals(f.loop, signals, on_signal, &f);
    f.quiet = !o->tell_all;
    catch_up(&f);
    f.quiet = false;
    int fd = server_connect(socket), status;
    if (fd >= 0) {
        f.lines = lines_new(f.loop, fd, fd, 8 << 20, &ops, &f);
        send(&f, "subscribe");
        loop_after(f.loop, REFRESH_MS, on_refresh, &f);
        loop_run(f.loop);
    }
    catch_up(&f);
    status = result(&f);
    lines_free(f.lines);
    loop_free(f.loop);
    json_free(f.status);
    journal_reader_close(&f.reader);
    state_free(&f.state);
    free(socket);
    return status;
}
