// One description of the whole state that runs in three ways: into a digest, into a snapshot, out of one.
// A snapshot is derived from the journal and may be deleted at any time; what does not fit is ignored.
#include "base/hash.h"
#include "base/io.h"
#include "session/fold.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

enum {
    SNAPSHOT = 2,
    CHUNK = 1 << 16,
    MOST = 1 << 30,
    TAIL = 4096
}; // raise SNAPSHOT when the description changes

struct codec {
    bool load, bad;
    struct sha256 *sha; // digest: bytes go here instead of staying in out
    struct str out;
    const char *in, *end;
    struct state_memory *memory; // load
};

static void raw(struct codec *c, void *p, size_t n)
{
    if (!c->load) {
        str_addn(&c->out, p, n);
        if (c->sha && c->out.len >= CHUNK) {
            sha256_add(c->sha, c->out.s, c->out.len);
            str_clear(&c->out);
        }
    } else if (c->bad || (size_t)(c->end - c->in) < n) {
        c->bad = true;
        memset(p, 0, n);
    } else {
        memcpy(p, c->in, n);
        c->in += n;
    }
}
#define FIELD(c, x) raw((c), &(x), sizeof(x))

static void text(struct codec *c, const char **s, bool intern)
{
    uint32_t n = *s && !c->load ? (uint32_t)strlen(*s) + 1 : 0;
    FIELD(c, n);
    if (!c->load) {
        if (n)
            raw(c, (void *)*s, n);
        return;
    }
    *s = NULL;
    if (n && ((size_t)(c->end - c->in) < n || c->in[n - 1])) {
        c->bad = true;
    } else if (n) {
        *s = intern ? memory_intern(c->memory, c->in) : memory_copy(c->memory, c->in);
        c->in += n;
    }
}
#define TEXT(c, x) text((c), &(x), false)
#define NAME(c, x) text((c), &(x), true)

// How many elements follow; each takes at least one byte, so a wrong count cannot ask for the moon.
static size_t count(struct codec *c, size_t n)
{
    uint64_t k = n;
    FIELD(c, k);
    if (c->load && k > (size_t)(c->end - c->in)) {
        c->bad = true;
        k = 0;
    }
    return (size_t)k;
}

#define LIST(c, list, i)                                              \
    size_t n_##i = count((c), (list)->n);                             \
    if ((c)->load) {                                                  \
        (list)->v = n_##i ? xcalloc(n_##i, sizeof *(list)->v) : NULL; \
        (list)->n = (list)->cap = n_##i;                              \
    }                                                                 \
    for (size_t i = 0; i < (list)->n; i++)

static int64_t *ids(struct codec *c, int64_t *list, int *n)
{
    size_t k = count(c, (size_t)*n);
    if (c->load) {
        *n = (int)k;
        list = k ? memory_alloc(c->memory, k * sizeof *list) : NULL;
    }
    if (k)
        raw(c, list, k * sizeof *list);
    return list;
}

static void ratio(struct codec *c, struct ratio *r)
{
    FIELD(c, r->value);
    FIELD(c, r->low);
    FIELD(c, r->high);
}

static void times(struct codec *c, struct candidate *x)
{
    size_t k = count(c, (size_t)x->ntimes);
    if (c->load) {
        x->ntimes = (int)k;
        x->times = k ? memory_alloc(c->memory, k * sizeof *x->times) : NULL;
    }
    for (size_t i = 0; i < k; i++) {
        struct shape_time *t = &x->times[i];
        FIELD(c, t->shape);
        FIELD(c, t->n);
        FIELD(c, t->time_ns);
        FIELD(c, t->inc_ns);
        FIELD(c, t->gain);
        FIELD(c, t->low);
        FIELD(c, t->high);
    }
}

static void candidate(struct codec *c, struct candidate *x)
{
    FIELD(c, x->id);
    x->parents = ids(c, x->parents, &x->nparents);
    x->inspired = ids(c, x->inspired, &x->ninspired);
    NAME(c, x->op);
    NAME(c, x->proposer);
    NAME(c, x->model);
    NAME(c, x->title);
    NAME(c, x->hint);
    FIELD(c, x->blob);
    FIELD(c, x->flags);
    FIELD(c, x->island);
    FIELD(c, x->gen);
    FIELD(c, x->iter);
    FIELD(c, x->seen);
    FIELD(c, x->status);
    NAME(c, x->stage);
    TEXT(c, x->reason);
    FIELD(c, x->of);
    FIELD(c, x->incumbent);
    ratio(c, &x->gain);
    ratio(c, &x->speedup);
    times(c, x);
    FIELD(c, x->cell);
    TEXT(c, x->binary);
    NAME(c, x->regress);
    TEXT(c, x->note);
    LIST(c, &x->tags, i)
    NAME(c, x->tags.v[i]);
    FIELD(c, x->born);
    FIELD(c, x->judged);
    FIELD(c, x->seconds);
    FIELD(c, x->usd);
    FIELD(c, x->accepted_line);
    TEXT(c, x->commit);
    FIELD(c, x->at_candidate);
    FIELD(c, x->at_verdict);
    FIELD(c, x->at_anchor);
    FIELD(c, x->first_child);
    FIELD(c, x->last_child);
    FIELD(c, x->next_sibling);
}

static void commit(struct codec *c, struct commit *x)
{
    FIELD(c, x->id);
    TEXT(c, x->hex);
    size_t k = count(c, (size_t)x->nparents);
    if (c->load) {
        x->nparents = (int)k;
        x->parents = k ? memory_alloc(c->memory, k * sizeof *x->parents) : NULL;
    }
    for (size_t i = 0; i < k; i++)
        NAME(c, x->parents[i]);
    TEXT(c, x->message);
    NAME(c, x->author);
    NAME(c, x->mail);
    FIELD(c, x->time);
    FIELD(c, x->stone);
    FIELD(c, x->main);
}

static void stats(struct codec *c, stats_list *list)
{
    LIST(c, list, i)
    {
        struct op_stats *x = &list->v[i];
        NAME(c, x->name);
        FIELD(c, x->tried);
        FIELD(c, x->judged);
        FIELD(c, x->ok);
        FIELD(c, x->faster);
        FIELD(c, x->accepted);
        FIELD(c, x->seconds);
        FIELD(c, x->usd);
        FIELD(c, x->log_gain);
        FIELD(c, x->asked);
        FIELD(c, x->tokens_in);
        FIELD(c, x->tokens_out);
        FIELD(c, x->unpriced);
    }
}

static void steering(struct codec *c, struct state *st)
{
    LIST(c, &st->steers, i)
    {
        struct steer *x = &st->steers.v[i];
        FIELD(c, x->n);
        FIELD(c, x->t);
        NAME(c, x->who);
        NAME(c, x->cmd);
        TEXT(c, x->args);
        FIELD(c, x->undone);
        FIELD(c, x->undoable);
        LIST(c, &x->changes, k)
        {
            struct steer_change *ch = &x->changes.v[k];
            FIELD(c, ch->kind);
            FIELD(c, ch->id);
            FIELD(c, ch->flags);
            FIELD(c, ch->island);
            NAME(c, ch->text);
            NAME(c, ch->what);
            NAME(c, ch->key);
        }
    }
    LIST(c, &st->hints, j)
    {
        struct hint *x = &st->hints.v[j];
        FIELD(c, x->n);
        FIELD(c, x->id);
        FIELD(c, x->island);
        TEXT(c, x->text);
        FIELD(c, x->gone);
    }
    LIST(c, &st->settings, s)
    {
        NAME(c, st->settings.v[s].kind);
        NAME(c, st->settings.v[s].key);
        TEXT(c, st->settings.v[s].value);
    }
    FIELD(c, st->focus);
}

static void session_line(struct codec *c, struct state *st)
{
    const char **texts[] = {&st->version, &st->name, &st->backend, &st->kernel,
                            &st->head,    &st->host, &st->task};
    for (size_t i = 0; i < countof(texts); i++)
        TEXT(c, *texts[i]);
    FIELD(c, st->seed);
    FIELD(c, st->islands);
    FIELD(c, st->started);
    FIELD(c, st->latest);
    LIST(c, &st->files, f)
    {
        TEXT(c, st->files.v[f].path);
        FIELD(c, st->files.v[f].blob);
        FIELD(c, st->files.v[f].executable);
    }
    LIST(c, &st->shapes, s)
    {
        NAME(c, st->shapes.v[s].name);
        FIELD(c, st->shapes.v[s].bench);
        FIELD(c, st->shapes.v[s].weight);
    }
}

static void population(struct codec *c, struct state *st)
{
    LIST(c, &st->c, i)
    candidate(c, &st->c.v[i]);
    LIST(c, &st->cells, k)
    {
        FIELD(c, st->cells.v[k].island);
        FIELD(c, st->cells.v[k].bins);
        FIELD(c, st->cells.v[k].id);
    }
    LIST(c, &st->commits, m)
    commit(c, &st->commits.v[m]);
    LIST(c, &st->champions, h)
    FIELD(c, st->champions.v[h]);
    LIST(c, &st->accepted, a)
    FIELD(c, st->accepted.v[a]);
    FIELD(c, st->by_status);
    LIST(c, &st->funnel, f)
    {
        NAME(c, st->funnel.v[f].stage);
        FIELD(c, st->funnel.v[f].by_status);
    }
    stats(c, &st->ops);
    stats(c, &st->proposers);
    stats(c, &st->models);
}

static void run(struct codec *c, struct state *st)
{
    LIST(c, &st->workers, i)
    {
        struct worker_info *w = &st->workers.v[i];
        const char **names[] = {&w->name, &w->device, &w->compiler, &w->driver, &w->fingerprint, &w->why};
        for (size_t k = 0; k < countof(names); k++)
            NAME(c, *names[k]);
        FIELD(c, w->is_protected);
        FIELD(c, w->since);
        FIELD(c, w->at);
    }
    FIELD(c, st->floor);
    NAME(c, st->floor_fingerprint);
    FIELD(c, st->preflight_done);
    FIELD(c, st->preflight_ok);
    FIELD(c, st->at_preflight);
    FIELD(c, st->at_worker);
    FIELD(c, st->paused);
    FIELD(c, st->stopped);
    TEXT(c, st->paused_why);
    TEXT(c, st->stop_reason);
    TEXT(c, st->stop_msg);
    FIELD(c, st->wall);
    FIELD(c, st->cpu);
    FIELD(c, st->usd);
    FIELD(c, st->evals);
    FIELD(c, st->iterations);
    FIELD(c, st->tokens_in);
    FIELD(c, st->tokens_out);
}

static void whole(struct codec *c, struct state *st)
{
    FIELD(c, st->last);
    FIELD(c, st->offset);
    session_line(c, st);
    population(c, st);
    steering(c, st);
    run(c, st);
}

void state_digest(const struct state *st, char hex[65])
{
    struct sha256 sha;
    sha256_init(&sha);
    struct codec c = {.sha = &sha};
    whole(&c, (struct state *)st); // only read, since load is off
    sha256_add(&sha, str_c(&c.out), c.out.len);
    str_free(&c.out);
    sha256_end_hex(&sha, hex);
}

// What ties a snapshot to its journal: the first and the last bytes before its offset.
static int journal_mark(const char *path, int64_t offset, char hex[65])
{
    char buf[TAIL];
    struct sha256 sha;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = offset < TAIL ? (size_t)offset : TAIL;
    sha256_init(&sha);
    int r = fd < 0 ? -1 : 0;
    for (int last = 0; r == 0 && last < 2; last++) {
        ssize_t got = pread(fd, buf, n, last ? (off_t)(offset - (int64_t)n) : 0);
        r = got == (ssize_t)n ? 0 : -1;
        sha256_add(&sha, buf, n);
    }
    if (fd >= 0)
        close(fd);
    sha256_end_hex(&sha, hex);
    return r;
}

// "ksmith snapshot 1 VERSION MARK CRC\n" and the state's bytes.
int state_save(const struct state *st, const char *path, const char *journal_path, struct err *e)
{
    char mark[65];
    if (journal_mark(journal_path, st->offset, mark) < 0)
        return err_sys(e, "", "cannot read %s", journal_path);
    struct codec c = {0};
    whole(&c, (struct state *)st);
    struct str file = {0};
    str_addf(&file, "ksmith snapshot %d %s %s %08" PRIx32 "\n", SNAPSHOT, KSMITH_VERSION, mark,
             crc32_of(str_c(&c.out), c.out.len));
    size_t head = file.len;
    str_addn(&file, str_c(&c.out), c.out.len);
    str_free(&c.out);
    int r = head + 1 < MOST ? io_write_file(path, file.s, file.len, 0600, e) : 0;
    str_free(&file);
    return r;
}

int state_load(struct state *st, const char *path, const char *journal_path)
{
    struct str file = {0};
    char want[160], mark[65];
    state_free(st);
    state_init(st);
    bool ok = io_read_file(path, MOST, &file, NULL) == 0;
    const char *nl = ok ? memchr(str_c(&file), '\n', file.len) : NULL;
    if (nl) {
        struct codec c = {.load = true, .in = nl + 1, .end = file.s + file.len, .memory = st->memory};
        int64_t offset = 0;
        if (c.end - c.in >= 16)
            memcpy(&offset, c.in + sizeof(int64_t), sizeof offset);
        ok = offset > 0 && journal_mark(journal_path, offset, mark) == 0;
        snprintf(want, sizeof want, "ksmith snapshot %d %s %s %08" PRIx32 "\n", SNAPSHOT, KSMITH_VERSION,
                 ok ? mark : "", crc32_of(c.in, (size_t)(c.end - c.in)));
        ok = ok && str_starts(str_c(&file), want);
        if (ok)
            whole(&c, st);
        ok = ok && !c.bad && c.in == c.end;
    }
    str_free(&file);
    if (ok && nl)
        return 0;
    state_free(st);
    state_init(st);
    return -1;
}
