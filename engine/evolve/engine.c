// Life of the engine: opening, phases, the worker, budgets, the end.
#include "evolve/engine_int.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/log.h"
#include "evolve/population.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

enum { TICK_MS = 5000, RESTART_MAX = 5, QUIET_MS = 200 };

static void start_worker(struct engine *en);

// What an engineer typed, a compiler said or a model wrote may hold a key: the journal gets it cut out, and
// so does the state, which is what the journal says.
static json *without_secrets(json *event)
{
    struct str text = {0};
    json_print(event, &text);
    json *clean = NULL;
    if (log_leaks(str_c(&text))) {
        log_redact(&text);
        clean = json_parse(text.s, text.len, NULL);
    }
    str_free(&text);
    if (!clean)
        return event;
    json_free(event);
    return clean;
}

int engine_append(struct engine *en, json *event, bool sync)
{
    struct err e = {0};
    event = without_secrets(event);
    if (session_log(en->session, event, sync ? JOURNAL_SYNC : JOURNAL_LAZY, &e) == 0)
        return 0;
    log_line("journal: %s %s", e.msg, e.hint);
    // Nothing may be done that the journal does not know: stop, with what is there safe.
    engine_stop(en, ERR_FAIL, "%s", e.msg);
    return -1;
}

char *engine_source(struct engine *en, int64_t id)
{
    struct err e = {0};
    const struct candidate *c = state_candidate(en->state, id);
    struct str text = {0};
    char hex[41];
    if (id == 0)
        return xstrdup(en->baseline);
    if (c)
        candidate_blob(c, hex);
    if (!c || lineage_read(en->session->lineage, hex, &text, &e) < 0) {
        log_line("source of %lld: %s", (long long)id, e.msg);
        str_free(&text);
        return NULL;
    }
    return str_steal(&text);
}

double engine_spent(const struct engine *en)
{
    return en->state->wall + (clock_wall() - en->ticked);
}

static const char *phase_name(enum phase p)
{
    static const char *const names[] = {"starting", "preflight", "searching", "stopping", "stopped"};
    return names[p];
}

void engine_status(struct engine *en)
{
    const struct state *s = en->state;
    const struct candidate *champion = state_champion(s);
    json *o = json_object();
    double wall = population_budget(s, "wall", en->task.wall_s);
    json_put_str(o, "ev", "status");
    json_put_str(o, "phase", s->paused && en->phase == PHASE_SEARCH ? "paused" : phase_name(en->phase));
    json_put_str(o, "doing", en->stage);
    if (en->work_id >= 0)
        json_put_int(o, "id", en->work_id);
    if (champion) {
        json_put_int(o, "champion", champion->id);
        json_put_num(o, "speedup", champion->speedup.value);
    }
    json_put_int(o, "iterations", s->iterations - 1);
    json_put_num(o, "of", population_budget(s, "iterations", en->task.iterations));
    json_put_num(o, "spent_s", engine_spent(en));
    if (wall > 0)
        json_put_num(o, "left_s", fmax(0, wall - engine_spent(en)));
    json_put_num(o, "turn_ms", loop_longest_turn_ms(en->loop));
    json_put_num(o, "cpu_s", clock_cpu());
    if (en->stop_reason[0])
        json_put_str(o, "reason", en->stop_reason);
    server_broadcast(en->server, o);
    json_free(o);
}

// Journals the wall time since the last tick: budgets are decided by what the journal says.
static void tick(struct engine *en)
{
    double now = clock_wall();
    struct event_cost cost = {.wall = now - en->ticked, .cpu = clock_cpu() - en->cpu_ticked};
    en->ticked = now;
    en->cpu_ticked = clock_cpu();
    engine_append(en, event_cost(&cost), false);
}

static void engine_ask(struct engine *en);

static bool rests(const struct engine *en)
{
    return en->state->paused && en->phase == PHASE_SEARCH && en->work == WORK_NONE && en->steps_left <= 0;
}

static void on_tick(void *user)
{
    struct engine *en = user;
    en->tick_timer = loop_after(en->loop, TICK_MS, on_tick, en);
    if (rests(en)) { // a pause costs no budget, and wakes nobody
        en->ticked = clock_wall();
        return;
    }
    if (en->phase < PHASE_STOPPING && en->phase != PHASE_START)
        tick(en);
    engine_status(en);
    if (en->phase == PHASE_SEARCH && en->work == WORK_NONE)
        engine_next(en);
    else
        engine_ask(en);
}

void engine_stop(struct engine *en, int status, const char *fmt, ...)
{
    if (en->phase >= PHASE_STOPPING)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(en->stop_reason, sizeof en->stop_reason, fmt, ap);
    va_end(ap);
    en->phase = PHASE_STOPPING;
    en->status = status;
    log_line("stopping: %s", en->stop_reason);
    engine_status(en); // where the journal cannot be written, this is the only word
    loop_stop(en->loop);
}

static int64_t since_acceptance(const struct state *s)
{
    const struct candidate *c = s->accepted.n ? state_candidate(s, s->accepted.v[s->accepted.n - 1]) : NULL;
    return s->iterations - 1 - (c ? c->iter : 0);
}

// Why the search is over, or NULL.
static const char *budget_reason(struct engine *en, char *buf, size_t n)
{
    const struct state *s = en->state;
    double wall = population_budget(s, "wall", en->task.wall_s);
    double evaluations = population_budget(s, "evaluations", (double)en->task.evaluations);
    double iterations = population_budget(s, "iterations", en->task.iterations);
    if (iterations > 0 && (double)(s->iterations - 1) >= iterations)
        snprintf(buf, n, "all %.0f iterations are done", iterations);
    else if (evaluations > 0 && (double)s->evals >= evaluations)
        snprintf(buf, n, "the budget of %.0f evaluations is spent", evaluations);
    else if (wall > 0 && engine_spent(en) >= wall)
        snprintf(buf, n, "the budget of %.0f s is spent", wall);
    else if (en->task.patience > 0 && since_acceptance(s) >= en->task.patience)
        snprintf(buf, n, "nothing was accepted in %d iterations", en->task.patience);
    else
        return NULL;
    return buf;
}

// Asks models while the worker is busy, unless the run is at its end.
static void engine_ask(struct engine *en)
{
    char why[160];
    if (en->phase == PHASE_SEARCH && !en->o.judge_only && !budget_reason(en, why, sizeof why))
        asking_next(en);
}

void engine_next(struct engine *en)
{
    char why[160];
    if (en->phase != PHASE_SEARCH || en->work != WORK_NONE)
        return;
    if (en->o
            .judge_only) { // by the engineer's order, whatever the budget; that the search is paused stays so
        search_judge_waiting(en);
        engine_status(en);
        return;
    }
    if (en->steps_left == 0 || (en->state->paused && en->steps_left < 0)) {
        en->steps_left = -1;
        snprintf(en->stage, sizeof en->stage, "paused");
        engine_status(en);
        return;
    }
    // What a verdict or the engineer ordered to be raced again is not a new proposal: no budget cuts it off.
    if (en->remeasure.n == 0 && budget_reason(en, why, sizeof why)) {
        if (asking_running(en)) { // what was asked is paid for: its answer is taken before the run ends
            snprintf(en->stage, sizeof en->stage, "draining");
            return;
        }
        engine_stop(en, 0, "%s", why);
        return;
    }
    int64_t before = en->state->iterations;
    search_next(en);
    // Only a new proposal is a step, not a second look at an older one.
    if (en->steps_left > 0 && en->state->iterations > before)
        en->steps_left--;
    engine_status(en);
}

static const char *worker_fingerprint(const struct state *s)
{
    return s->workers.n ? s->workers.v[0].fingerprint : NULL;
}

// ---- the worker

static void send_open(struct engine *en)
{
    json *o = json_object(), *set = json_array(), *binaries = json_object();
    for (size_t i = 0; i < en->state->c.n; i++) {
        const struct candidate *c = &en->state->c.v[i];
        // The first of each binary; its twins are duplicates of it.
        if (c->binary && c->status == ST_OK && !json_has(binaries, c->binary))
            json_put_int(binaries, c->binary, c->id);
    }
    json_put_str(o, "op", "open");
    json_put_str(o, "dir", en->task.dir);
    for (size_t i = 0; i < en->o.n_overrides; i++)
        json_push(set, json_new_str(en->o.overrides[i]));
    json_put(o, "set", set);
    json_put_str(o, "samples", en->session->samples);
    json_put(o, "binaries", binaries);
    json_put_bool(o, "trust", en->o.trust);
    en->work = WORK_OPEN;
    worker_request(en->worker, o);
    json_free(o);
}

static void send_preflight(struct engine *en)
{
    json *o = json_object();
    json_put_str(o, "op", "preflight");
    json_put_str(o, "source", en->baseline);
    json_put(o, "flags", json_array());
    en->work = WORK_PREFLIGHT;
    en->phase = PHASE_PREFLIGHT;
    snprintf(en->stage, sizeof en->stage, "preflight");
    worker_request(en->worker, o);
    json_free(o);
}

static void on_opened(struct engine *en, const json *ev)
{
    const char *was = en->state->workers.n ? en->state->workers.v[0].fingerprint : NULL;
    bool changed = was && *was && !str_eq(was, json_str_or(ev, "fingerprint", ""));
    if (changed)
        log_line("the environment changed (%s, now %s): what is compared again is timed again", was,
                 json_str_or(ev, "fingerprint", ""));
    if (engine_append(en, event_worker("worker", ev), false) < 0)
        return;
    send_preflight(en);
}

static void preflight_words(const json *list, struct str *out)
{
    for (const json *p = json_first(list); p; p = json_next(p))
        str_addf(out, "%s%s%s%s", out->len ? "; " : "",
                 json_str_or(p, "msg", json_string(p) ? json_string(p) : "?"),
                 json_has(p, "hint") ? " -> " : "", json_str_or(p, "hint", ""));
}

static void on_preflight(struct engine *en, const json *ev)
{
    if (engine_append(en, event_preflight(ev), true) < 0)
        return;
    if (json_has(ev, "floor") &&
        engine_append(en, event_floor(json_num(ev, "floor", 0), worker_fingerprint(en->state)), false) < 0)
        return;
    if (!json_bool(ev, "ok", false)) {
        struct str why = {0};
        preflight_words(json_get(ev, "problems"), &why);
        engine_stop(en, ERR_FAIL, "the task is not sound: %s", str_c(&why));
        str_free(&why);
        return;
    }
    en->phase = PHASE_SEARCH;
    engine_next(en);
}

static void on_worker_event(void *user, const json *ev)
{
    struct engine *en = user;
    const char *name = json_str_or(ev, "ev", "");
    if (str_eq(name, "stage") || str_eq(name, "progress") || str_eq(name, "rate")) {
        const char *stage = json_str(ev, str_eq(name, "progress") ? "what" : "stage");
        if (stage && !str_eq(stage, en->stage)) {
            snprintf(en->stage, sizeof en->stage, "%s", stage);
            engine_status(en);
        }
        server_broadcast(en->server, ev);
        return;
    }
    if (str_eq(name, "floor")) {
        log_line("identical code of the champion differs by up to %.2f %%", 100 * json_num(ev, "floor", 0));
        engine_append(en, event_floor(json_num(ev, "floor", 0), worker_fingerprint(en->state)), false);
        return;
    }
    if (str_eq(name, "error")) {
        log_line("worker: %s %s", json_str_or(ev, "msg", ""), json_str_or(ev, "hint", ""));
        if (en->work == WORK_OPEN || en->work == WORK_PREFLIGHT) {
            engine_stop(en, ERR_FAIL, "%s %s", json_str_or(ev, "msg", "the worker failed"),
                        json_str_or(ev, "hint", ""));
            return;
        }
    }
    en->worker_deaths = 0;
    enum work was = en->work;
    en->work = WORK_NONE;
    if (str_eq(name, "opened"))
        on_opened(en, ev);
    else if (str_eq(name, "preflight"))
        on_preflight(en, ev);
    else if (was == WORK_JUDGE || was == WORK_ANCHOR || was == WORK_REMEASURE) {
        en->work = was;
        verdict_event(en, ev);
    }
}

static void on_worker_gone(void *user, const char *why)
{
    struct engine *en = user;
    int64_t id = en->work_id;
    enum work was = en->work;
    worker_free(en->worker);
    en->worker = NULL;
    en->work = WORK_NONE;
    if (en->phase >= PHASE_STOPPING)
        return;
    log_line("the worker ended (%s)", why);
    if (++en->worker_deaths > RESTART_MAX) {
        engine_stop(en, ERR_FAIL, "the worker ended %d times in a row (%s); see engine.log",
                    en->worker_deaths, why);
        return;
    }
    if (was == WORK_JUDGE && id > 0) {
        char reason[200];
        snprintf(reason, sizeof reason, "it took its worker with it (%s)", why);
        verdict_reject(en, id, ST_CRASH, en->stage, reason, -1);
    }
    start_worker(en);
}

static const struct worker_ops worker_ops = {on_worker_event, on_worker_gone};

static void start_worker(struct engine *en)
{
    struct err e = {0};
    char **argv = worker_command(&en->task, en->o.trust, &e);
    if (argv)
        en->worker = worker_start(en->loop, (const char *const *)argv, en->session->log, &worker_ops, en, &e);
    free(argv);
    if (en->worker)
        send_open(en);
    else
        engine_stop(en, ERR_FAIL, "%s %s", e.msg, e.hint);
}

// ---- opening and closing

static int task_hash(const struct engine *en, char hex[65], struct err *e)
{
    struct str text = {0};
    char *path = io_join(en->task.dir, "task.ini");
    int r = io_read_file(path, 1 << 20, &text, e);
    if (r == 0)
        sha256_hex(text.s, text.len, hex);
    free(path);
    str_free(&text);
    return r;
}

static int read_baseline(struct engine *en, struct err *e)
{
    struct str text = {0};
    char *path = io_join(en->task.project, en->task.kernel_file);
    int r = io_read_file(path, 4 << 20, &text, e);
    if (r == 0 && (!text.len || memchr(text.s, 0, text.len)))
        r = err_set(e, ERR_FAIL, "Name the kernel's source file in [task] kernel.", "%s is no C text", path);
    if (r == 0)
        en->baseline = str_steal(&text);
    str_free(&text);
    free(path);
    return r;
}

// A new session: its first lines, the baseline as candidate 0 and as the root commit.
static int begin(struct engine *en, struct err *e)
{
    char hash[65], head[41] = "";
    struct session *s = en->session;
    struct lineage_file *files = NULL;
    size_t n = 0;
    VEC(struct shape) shapes = {0};
    if (task_hash(en, hash, e) < 0 ||
        lineage_project(s->lineage, en->task.project, en->task.kernel_file, &files, &n, head, e) < 0)
        return -1;
    for (size_t i = 0; i < en->task.shapes.n; i++) {
        const struct task_shape *t = &en->task.shapes.v[i];
        vec_push(&shapes, (struct shape){t->name, t->bench, t->weight});
    }
    struct event_session first = {.name = en->task.name,
                                  .backend = en->task.backend == BACKEND_CUDA ? "cuda" : "cpu",
                                  .kernel = en->task.kernel_func,
                                  .head = head,
                                  .task = hash,
                                  .seed = en->task.seed,
                                  .islands = en->task.islands,
                                  .files = files,
                                  .nfiles = n,
                                  .shapes = shapes.v,
                                  .nshapes = shapes.n};
    struct event_candidate c = {.id = 0,
                                .op = "seed",
                                .proposer = "human",
                                .blob = files[0].blob,
                                .title = "The baseline, as the project has it"};
    struct lineage_accept a = {.id = 0, .over = -1, .champion = true};
    // A kill between these lines leaves some of them: the rest is made at the next start.
    int r = s->state.last ? 0 : session_log(s, event_session(&first), JOURNAL_SYNC, e);
    if (r == 0 && s->state.c.n == 0)
        r = session_log(s, event_candidate(&c), JOURNAL_SYNC, e);
    if (r == 0)
        r = lineage_accept(s, &a, e) < 0 ? -1 : 0;
    vec_free(&shapes);
    lineage_files_free(files, n);
    return r;
}

// Begins a new journal. An old one belongs to one task and one baseline: another kernel file would make every
// number in it a lie.
static int same_task(struct engine *en, struct err *e)
{
    char blob[41], first[41];
    const struct candidate *c = state_candidate(en->state, 0);
    if (!c || !(c->flags & CF_ACCEPTED))
        return begin(en, e);
    if (lineage_hash(en->baseline, strlen(en->baseline), blob, e) < 0)
        return -1;
    candidate_blob(c, first);
    if (!str_eq(first, blob))
        return err_set(e, ERR_FAIL,
                       "Give the new kernel a session of its own (ksmith try judges it without one), or "
                       "restore the file.",
                       "%s is no longer the baseline of this session", en->task.kernel_file);
    return 0;
}

static int open_all(struct engine *en, struct session *s, struct err *e)
{
    en->session = s;
    if (read_baseline(en, e) < 0 || session_open(s, en->task.dir, SESSION_WRITE, e) < 0)
        return -1;
    en->state = &s->state;
    if (log_open(s->log) < 0)
        return err_sys(e, "", "cannot open %s", s->log);
    log_line("engine %s, process %ld, session %s", KSMITH_VERSION, (long)getpid(), s->dir);
    if (s->cut)
        log_line("cut off a torn last line of %lld bytes", (long long)s->cut);
    if (same_task(en, e) < 0)
        return -1;
    en->ticked = clock_wall();
    if (!en->o.serve && en->state->stopped &&
        session_log(s, event_resume("the engine was started again"), JOURNAL_SYNC, e) < 0)
        return -1;
    char *socket = session_socket(s->dir, e);
    en->server = socket ? server_open(en->loop, socket, steer_request, en, e) : NULL;
    free(socket);
    return en->server ? 0 : -1;
}

static int open_asking(struct engine *en, struct err *e)
{
    err_list errors = {0};
    int r = asking_open(en, &errors);
    if (errors.n)
        *e = errors.v[0];
    vec_free(&errors);
    return r;
}

static void on_signal(void *user, int signal)
{
    struct engine *en = user;
    if (signal == SIGHUP)
        return; // the terminal is gone; the engine is not its child
    engine_stop(en, 0, "stopped by signal %d", signal);
}

static void finish(struct engine *en)
{
    struct err e = {0};
    if (en->worker) {
        worker_free(en->worker);
        en->worker = NULL;
    }
    tick(en);
    if (session_log(en->session, event_stop(en->status == 0 ? "done" : "error", en->stop_reason),
                    JOURNAL_SYNC, &e) < 0)
        log_line("journal: %s", e.msg);
    while (lineage_idle(en->session->lineage, en->state, 4, &e) > 0)
        ;
    log_line("longest turn of the loop %.1f ms, %.1f ms of CPU; %.2f s of CPU in %.1f s",
             loop_longest_turn_ms(en->loop), loop_longest_work_ms(en->loop), clock_cpu(),
             clock_wall() - en->started_wall);
    en->phase = PHASE_STOPPED;
    engine_status(en);
}

// Ends a serving engine when nobody is connected any more; one that judges goes on to the end of its queue.
static void on_quiet(void *user)
{
    struct engine *en = user;
    loop_after(en->loop, QUIET_MS, on_quiet, en);
    if (en->o.judge_only)
        engine_next(en);
    else if (server_clients(en->server) == 0 && !asking_running(en)) // an explanation is paid for
        loop_stop(en->loop);
}

static void say_ready(const struct engine_options *o, const struct err *e)
{
    if (o->ready_fd < 0)
        return;
    struct str text = {0};
    if (e)
        str_addf(&text, "%d%s%s%s\n%s", err_status(e), e->where, e->where[0] ? ": " : "", e->msg, e->hint);
    else
        str_addc(&text, '+');
    io_write_all(o->ready_fd, text.s, text.len);
    close(o->ready_fd);
    str_free(&text);
}

int engine_run(const struct engine_options *o)
{
    struct engine en = {.o = *o, .work_id = -1, .steps_left = -1, .started_wall = clock_wall()};
    struct session session = {.lock = -1};
    err_list errors = {0};
    struct err e = {0};
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, 0};
    int status = ERR_FAIL;
    en.loop = loop_new();
    loop_signals(en.loop, signals, on_signal, &en);
    if (task_load(o->dir, o->overrides, o->n_overrides, &en.task, &errors) < 0) {
        say_ready(o, &errors.v[0]);
        status = ERR_USAGE;
    } else if (open_all(&en, &session, &e) < 0 || open_asking(&en, &e) < 0) {
        say_ready(o, &e);
        log_line("%s", e.msg);
        status = err_status(&e);
    } else {
        say_ready(o, NULL);
        en.tick_timer = loop_after(en.loop, TICK_MS, on_tick, &en);
        if (o->serve || o->judge_only)
            loop_after(en.loop, QUIET_MS, on_quiet, &en);
        if (!o->serve)
            start_worker(&en);
        if (en.phase < PHASE_STOPPING)
            loop_run(en.loop);
        if (!o->serve)
            finish(&en);
        status = en.status;
    }
    asking_close(&en);
    server_close(en.server);
    session_close(&session);
    vec_free(&en.remeasure);
    vec_free(&en.breed);
    free(en.baseline);
    task_free(&en.task);
    vec_free(&errors);
    loop_free(en.loop);
    return status;
}
