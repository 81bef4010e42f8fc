// ksmith seed: brings candidates in by hand or from elsewhere; each is judged like any other, with a line of
// its own.
#include "base/clock.h"
#include "base/io.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/run.h"
#include "cmd/show_text.h"
#include "evolve/oneshot.h"
#include "evolve/server.h"
#include "models/apply.h"

#include <unistd.h>

enum { POLL_MS = 100, KERNEL_MAX = 4 << 20 };

struct seed {
    const char *path;
    int64_t id; // -1: not taken
    bool told;
};

struct seeding {
    struct args *a;
    struct look l;
    int64_t parent;
    char *parent_text;
    struct seed *v;
    int n, failed;
    bool searches; // an engine was there before us
};

static void tell(const char *path, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void tell(const char *path, const char *fmt, ...)
{
    struct str text = {0};
    va_list ap;
    va_start(ap, fmt);
    str_addv(&text, fmt, ap);
    va_end(ap);
    show_clean(path, stdout);
    fputs(": ", stdout);
    show_clean(str_c(&text), stdout);
    putchar('\n');
    fflush(stdout);
    str_free(&text);
}

static void fail(struct seeding *s, struct seed *x, const struct err *e)
{
    x->told = true;
    s->failed++;
    tell(x->path, "not taken: %s%s%s", e->msg, *e->hint ? ". " : "", e->hint);
}

// ---- what a file proposes

static bool is_answer(const char *path)
{
    static const char *const ends[] = {".patch", ".diff", ".txt", ".md"};
    for (size_t i = 0; i < countof(ends); i++)
        if (str_ends(path, ends[i]))
            return true;
    return false;
}

// A patch or a model's answer, applied to the parent.
static int read_answer(const struct seeding *s, const struct str *text, struct str *child, struct str *name,
                       struct err *e)
{
    const struct task *t = &s->l.task;
    size_t n = strlen(s->parent_text);
    struct reply r = {0};
    struct str problem = {0};
    reply_read(str_c(text), text->len, &(struct reply_opts){t->kernel_func, s->parent_text, n, false}, &r);
    int ok =
        reply_apply(&r, &(struct apply_opts){s->parent_text, n, t->kernel_file, t->kernel_func, t->evolve},
                    child, &problem);
    str_add(name, str_c(&r.name));
    if (ok < 0)
        err_set(e, ERR_FAIL, "", "%s", str_c(&problem));
    reply_free(&r);
    str_free(&problem);
    return ok;
}

static int read_kernel(const struct seeding *s, const char *path, struct str *child, struct str *name,
                       struct err *e)
{
    struct str text = {0};
    int r = io_read_file(path, KERNEL_MAX, &text, e);
    if (r == 0 && (!text.len || memchr(text.s, 0, text.len)))
        r = err_set(e, ERR_FAIL, "", "it is no text");
    if (r == 0 && is_answer(path))
        r = read_answer(s, &text, child, name, e);
    else if (r == 0)
        str_addn(child, text.s, text.len);
    if (!name->len) {
        const char *base = strrchr(path, '/');
        str_addf(name, "Brought in from %s", base ? base + 1 : path);
    }
    str_free(&text);
    return r;
}

// ---- the engine

static bool serves_only(int fd)
{
    json *request = json_object();
    json_put_str(request, "cmd", "hello");
    json *reply = server_ask(fd, request, 5000, NULL);
    bool serves = !reply || json_bool(reply, "serving", false);
    json_free(request);
    json_free(reply);
    return serves;
}

// An engine that judges: the one that runs, else one of ours that proposes nothing.
static int connect_judge(struct seeding *s, struct err *e)
{
    size_t n = 0;
    const char **set = args_values(s->a, "set", &n);
    struct engine_options o = {.dir = s->a->dir,
                               .overrides = set,
                               .n_overrides = n,
                               .trust = args_flag(s->a, "trust"),
                               .judge_only = true,
                               .ready_fd = -1};
    int fd = -1;
    // One that only answers steering is gone in a moment.
    for (int i = 0; i < 20 && fd < 0; i++) {
        *e = (struct err){0};
        fd = client_open(s->a->dir, CLIENT_NO, e);
        if (fd >= 0 && serves_only(fd)) {
            close(fd);
            fd = -1;
            clock_sleep_ms(300);
            continue;
        }
        s->searches = fd >= 0;
        struct session_holder h;
        if (fd < 0 && session_holder(s->a->dir, &h) && !h.here)
            break;
        if (fd < 0 && (*e = (struct err){0}, run_engine(&o, e)) < 0)
            clock_sleep_ms(150);
        else if (fd < 0)
            fd = client_open(s->a->dir, CLIENT_NO, e);
    }
    free(set);
    return fd;
}

static void hand_in(struct seeding *s, int fd, struct seed *x)
{
    struct str child = {0}, name = {0};
    struct err e = {0};
    json *reply = NULL;
    if (read_kernel(s, x->path, &child, &name, &e) == 0)
        reply = client_add(fd,
                           &(struct client_candidate){.text = str_c(&child),
                                                      .len = child.len,
                                                      .op = "seed",
                                                      .subject = str_c(&name),
                                                      .model = args_value(s->a, "by", NULL),
                                                      .parent = s->parent},
                           &e);
    if (reply && !json_bool(reply, "ok", false))
        client_refusal(reply, &e);
    x->id = e.kind ? -1 : json_int(reply, "id", -1);
    if (x->id < 0)
        fail(s, x, &e);
    json_free(reply);
    str_free(&child);
    str_free(&name);
}

// ---- verdicts

static bool decided(const struct candidate *c)
{
    bool wins = c->status == ST_OK && (c->flags & (CF_FASTER | CF_ACCEPTED | CF_KILLED)) == CF_FASTER;
    return c->status != ST_PENDING && !wins;
}

static void tell_verdict(struct seeding *s, struct seed *x, const struct candidate *c)
{
    char speed[64], commit[40] = "";
    const char *word = show_word(&s->l.session.state, c);
    x->told = true;
    show_speedup(speed, sizeof speed, c->speedup);
    if (c->commit)
        snprintf(commit, sizeof commit, ", commit %.10s", c->commit);
    bool raced = c->status == ST_OK && c->speedup.value > 0;
    if (c->of >= 0)
        tell(x->path, "candidate %lld: the same as %lld: %s", (long long)c->id, (long long)c->of,
             c->reason ? c->reason : "");
    else
        tell(x->path, "candidate %lld: %s%s%s%s%s%s", (long long)c->id, word, raced ? " " : "",
             raced ? speed : "", commit, c->reason ? ": " : "", c->reason ? c->reason : "");
}

static bool engine_is_there(const struct seeding *s)
{
    struct session_holder h;
    return session_holder(s->a->dir, &h);
}

// Follows the journal until each has its verdict.
static int follow_verdicts(struct seeding *s, struct session *now, struct err *e)
{
    for (int left = 1, gone = 0; left;) {
        gone += !engine_is_there(s); // looked at before the journal, so that its last lines are read
        if (session_poll(now, NULL, e) < 0)
            return -1;
        left = 0;
        for (int i = 0; i < s->n; i++) {
            struct seed *x = &s->v[i];
            const struct candidate *c = x->told ? NULL : state_candidate(&now->state, x->id);
            if (c && decided(c))
                tell_verdict(s, x, c);
            left += !x->told;
        }
        bool rests = s->searches && now->state.paused;
        for (int i = 0; left && (gone > 1 || rests) && i < s->n; i++)
            if (!s->v[i].told) {
                tell(s->v[i].path, "candidate %lld: waits for its verdict: %s", (long long)s->v[i].id,
                     rests                 ? "the search is paused"
                     : now->state.stop_msg ? now->state.stop_msg
                                           : "no engine runs");
                s->v[i].told = true;
                s->failed += !rests;
            }
        if (left)
            clock_sleep_ms(POLL_MS);
    }
    return 0;
}

static int seed_all(struct seeding *s, struct err *e)
{
    int fd = args_flag(s->a, "no-wait") ? client_open(s->a->dir, CLIENT_SERVE, e) : -1;
    if (fd < 0 && (fd = connect_judge(s, e)) < 0)
        return -1;
    for (int i = 0; i < s->n; i++)
        hand_in(s, fd, &s->v[i]);
    int r = 0;
    for (int i = 0; args_flag(s->a, "no-wait") && i < s->n; i++)
        if (!s->v[i].told)
            tell(s->v[i].path, "candidate %lld", (long long)s->v[i].id);
    if (!args_flag(s->a, "no-wait")) {
        // Opened anew: before the first engine of a session there was no journal to read on from.
        session_close(&s->l.session);
        r = session_open(&s->l.session, s->a->dir, SESSION_READ, e);
        if (r == 0)
            r = follow_verdicts(s, &s->l.session, e);
    }
    close(fd);
    return r;
}

static int find_parent(struct seeding *s, struct err *e)
{
    const char *word = args_value(s->a, "parent", NULL);
    const struct candidate *c = word ? show_find(&s->l.session.state, word, e) : NULL;
    if (word && !c)
        return -1;
    s->parent = c ? c->id : 0;
    s->parent_text = s->parent ? look_source(&s->l, s->parent) : oneshot_baseline(&s->l.task, e);
    if (!s->parent_text && !e->kind)
        err_set(e, ERR_FAIL, "", "the source of candidate %lld is lost", (long long)s->parent);
    return s->parent_text ? 0 : -1;
}

static int run(struct args *a)
{
    struct seeding s = {.a = a, .n = a->npos};
    struct err e = {0};
    int status = look_open(&s.l, a);
    s.v = xcalloc((size_t)s.n + 1, sizeof *s.v);
    for (int i = 0; i < s.n; i++)
        s.v[i] = (struct seed){.path = a->pos[i], .id = -1};
    if (status == 0 && (find_parent(&s, &e) < 0 || seed_all(&s, &e) < 0))
        status = cmd_fail(&e);
    if (status == 0 && s.failed)
        status = ERR_FAIL;
    free(s.parent_text);
    free(s.v);
    look_close(&s.l);
    return status;
}

static const struct opt opts[] = {
    {"parent", "ID", "what they are children of, and what patches change; the baseline by default"},
    {"by", "NAME", "who made them: a model's or an agent's name"},
    {"no-wait", NULL, "only bring them in; they are judged in their turn"},
    OPT_TRUST,
    OPT_SET,
    OPT_END};

const struct cmd cmd_seed = {
    .name = "seed",
    .args = "[DIR] FILE...",
    .help = "bring candidates in: whole kernel files, patches or saved answers, each judged as any other",
    .more = "A running search judges them; where none runs, an engine that proposes nothing does. One line a "
            "file:\n"
            "its number and verdict. A .patch, .diff, .txt or .md is read like a model's answer. The exit "
            "status is\n"
            "1 where a file was not taken or not judged; a wrong or slow one is judged, so that it is 0.",
    .group = "models",
    .min = 1,
    .max = -1,
    .takes_dir = true,
    .opts = opts,
    .complete = "file",
    .run = run,
};
