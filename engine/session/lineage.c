// Acceptance: which commits a winner needs, what they say, and the order in which things reach the disk.
#include "session/lineage.h"

#include "base/clock.h"
#include "base/io.h"
#include "session/lineage_private.h"
#include "session/session.h"

#include <inttypes.h>

int lineage_open(struct lineage **out, const char *path, bool write, struct err *e)
{
    // A folder without HEAD is no repository of ours to repair; creation is by rename, so it is all or
    // nothing.
    if (write && !io_exists(path) && repo_create(path, e) < 0)
        return -1;
    struct lineage *l = xcalloc(1, sizeof *l);
    *l = (struct lineage){.path = xstrdup(path), .write = write};
    if (repo_open(&l->repo, path, e) < 0) {
        lineage_close(l);
        return -1;
    }
    *out = l;
    return 0;
}

void lineage_close(struct lineage *l)
{
    if (!l)
        return;
    repo_close(l->repo);
    free(l->path);
    free(l);
}

int lineage_blob(struct lineage *l, const char *text, size_t n, char hex[41], struct err *e)
{
    return repo_blob(l->repo, text, n, hex, e);
}

int lineage_hash(const char *text, size_t n, char hex[41], struct err *e)
{
    return repo_blob_id(text, n, hex, e);
}

int lineage_read(struct lineage *l, const char *hex, struct str *out, struct err *e)
{
    return repo_read(l->repo, hex, out, e);
}

int lineage_refresh(struct lineage *l, struct err *e)
{
    return repo_refresh(l->repo, e);
}

int lineage_tree(struct lineage *l, const struct state *st, const char *blob, char hex[41], struct err *e)
{
    struct repo_entry *x = xmalloc((st->files.n + 1) * sizeof *x);
    for (size_t i = 0; i < st->files.n; i++)
        x[i] = (struct repo_entry){.path = st->files.v[i].path,
                                   .hex = i == 0 ? blob : st->files.v[i].blob,
                                   .executable = st->files.v[i].executable};
    int r = st->files.n ? repo_tree(l->repo, x, st->files.n, hex, e)
                        : err_set(e, ERR_FAIL, "", "the session line names no kernel file");
    free(x);
    return r;
}

int lineage_commit(struct lineage *l, const struct state *st, const struct commit *c, char hex[41],
                   struct err *e)
{
    char blob[41], tree[41];
    candidate_blob(&st->c.v[c->id], blob);
    if (lineage_tree(l, st, blob, tree, e) < 0)
        return -1;
    struct repo_commit rc = {.tree = tree,
                             .parents = c->parents,
                             .nparents = c->nparents,
                             .message = c->message,
                             .author = c->author,
                             .mail = c->mail,
                             .time = c->time};
    return repo_commit(l->repo, &rc, hex, e);
}

// What is about to be accepted: commits in order, strings owned.
struct plan {
    struct session *s;
    const struct lineage_accept *a;
    VEC(struct commit) commits;
    VEC(int64_t) seen; // candidates without a commit yet that need one
    int64_t time;
    struct err *e;
};

typedef VEC(int64_t) id_list;

static void add_id(id_list *ids, int64_t id)
{
    for (size_t i = 0; i < ids->n; i++)
        if (ids->v[i] == id)
            return;
    vec_push(ids, id);
}

// The parents that a commit can have: a parent that failed (an LLM repaired it) is no step of the lineage,
// its own parents are; a duplicate stands for its first copy.
static void real_parents(const struct state *st, int64_t id, id_list *out, int depth)
{
    const struct candidate *c = &st->c.v[id];
    for (int i = 0; i < c->nparents; i++) {
        const struct candidate *p = &st->c.v[c->parents[i]];
        if (p->status == ST_DUPLICATE && p->of >= 0 && p->of < id)
            p = &st->c.v[p->of];
        if (p->id == 0 || p->status == ST_OK || p->commit || depth > 1000)
            add_id(out, p->id);
        else
            real_parents(st, p->id, out, depth + 1);
    }
    if (depth == 0 && !out->n && id > 0)
        add_id(out, 0);
}

static int by_id(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// The winner and all ancestors that have no commit; parents have lower ids, so sorting is the order to
// commit.
static void gather(struct plan *p)
{
    const struct state *st = &p->s->state;
    vec_push(&p->seen, p->a->id);
    for (size_t i = 0; i < p->seen.n; i++) {
        id_list parents = {0};
        real_parents(st, p->seen.v[i], &parents, 0);
        for (size_t k = 0; k < parents.n; k++) {
            bool known = st->c.v[parents.v[k]].commit != NULL;
            for (size_t j = 0; !known && j < p->seen.n; j++)
                known = p->seen.v[j] == parents.v[k];
            if (!known)
                vec_push(&p->seen, parents.v[k]);
        }
        vec_free(&parents);
    }
    qsort(p->seen.v, p->seen.n, sizeof *p->seen.v, by_id);
}

static const char *hex_of(const struct plan *p, int64_t id)
{
    for (size_t i = 0; i < p->commits.n; i++)
        if (p->commits.v[i].id == id && !p->commits.v[i].main)
            return p->commits.v[i].hex;
    return p->s->state.c.v[id].commit;
}

static void add_line(struct str *m, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    str_addf(m, "%s: ", key);
    // A trailer is one line.
    for (const char *c = value; *c; c++)
        str_addc(m, (unsigned char)*c < 0x20 ? ' ' : *c);
    str_addc(m, '\n');
}

static void add_duration(struct str *m, double ns)
{
    static const struct {
        double over, unit;
        const char *name;
    } units[] = {{1e9, 1e9, "s"}, {1e6, 1e6, "ms"}, {1e3, 1e3, "us"}, {0, 1, "ns"}};
    for (size_t i = 0; i < countof(units); i++)
        if (ns >= units[i].over) {
            str_addf(m, "%.3g %s", ns / units[i].unit, units[i].name);
            return;
        }
}

static void add_shapes(struct str *m, const struct state *st, const struct candidate *c)
{
    struct str text = {0};
    for (int i = 0; i < c->ntimes; i++) {
        const struct shape_time *t = &c->times[i];
        str_addf(&text, "%s%s ", i ? ", " : "", st->shapes.v[t->shape].name);
        add_duration(&text, t->time_ns);
        if (t->gain > 0)
            str_addf(&text, " (%.3gx)", (double)t->gain);
    }
    add_line(m, "Shapes", str_c(&text));
    str_free(&text);
}

static void add_trailers(struct str *m, const struct plan *p, const struct candidate *c, bool stone)
{
    const struct state *st = &p->s->state;
    const struct worker_info *w = st->workers.n ? &st->workers.v[st->workers.n - 1] : NULL;
    str_addf(m, "Candidate: %" PRId64 "\n", c->id);
    if (stone)
        add_line(m, "Status", "stepping-stone");
    if (c->speedup.value > 0)
        str_addf(m, "Speedup: %.4g [%.4g, %.4g]\n", c->speedup.value, c->speedup.low, c->speedup.high);
    add_shapes(m, st, c);
    add_line(m, "Operator", c->op);
    add_line(m, "Proposer", c->proposer);
    add_line(m, "Model", c->model);
    struct str ids = {0};
    for (int i = 0; i < c->ninspired; i++)
        str_addf(&ids, "%s%" PRId64, i ? ", " : "", c->inspired[i]);
    add_line(m, "Inspired-by", str_c(&ids));
    str_free(&ids);
    if (w) {
        add_line(m, "Device", w->device);
        add_line(m, "Driver", w->driver);
        add_line(m, "Compiler", w->compiler);
    }
    add_line(m, "Ksmith", KSMITH_VERSION);
}

static void describe(const struct plan *p, const struct candidate *c, struct lineage_text *text)
{
    *text = (struct lineage_text){0};
    if (p->a->describe)
        p->a->describe(p->a->user, c->id, text);
    if (!text->subject || !*text->subject)
        text->subject = c->title ? c->title : c->id == 0 ? "Baseline" : c->op;
}

// The message is the caller's words and our trailers; it goes into the journal as it is.
static char *message_of(const struct plan *p, const struct candidate *c, const struct lineage_text *text,
                        bool stone)
{
    struct str m = {0};
    for (const char *s = text->subject; *s; s++)
        str_addc(&m, (unsigned char)*s < 0x20 ? ' ' : *s);
    str_add(&m, "\n\n");
    if (text->body && *text->body) {
        str_add(&m, text->body);
        str_add(&m, str_ends(text->body, "\n") ? "\n" : "\n\n");
    }
    add_trailers(&m, p, c, stone);
    // As the journal will give it back: clean UTF-8.
    json *clean = json_new_str(str_c(&m));
    str_clear(&m);
    str_add(&m, json_string(clean));
    json_free(clean);
    return str_steal(&m);
}

static int store(struct plan *p, struct commit *c)
{
    char hex[41];
    if (lineage_commit(p->s->lineage, &p->s->state, c, hex, p->e) < 0)
        return -1;
    c->hex = xstrdup(hex);
    return 0;
}

static char *clean_copy(const char *s)
{
    json *clean = json_new_str(s);
    char *copy = xstrdup(json_string(clean));
    json_free(clean);
    return copy;
}

static int plan_commit(struct plan *p, int64_t id)
{
    const struct state *st = &p->s->state;
    const struct candidate *c = &st->c.v[id];
    bool stone = id != p->a->id;
    id_list parents = {0};
    if (id > 0)
        real_parents(st, id, &parents, 0);
    struct lineage_text text;
    describe(p, c, &text);
    struct commit k = {.id = id, .nparents = (int)parents.n, .time = p->time, .stone = stone};
    k.parents = xcalloc(parents.n + 1, sizeof *k.parents);
    for (size_t i = 0; i < parents.n; i++)
        k.parents[i] = xstrdup(hex_of(p, parents.v[i]));
    vec_free(&parents);
    k.message = message_of(p, c, &text, stone);
    k.author = clean_copy(text.name && *text.name ? text.name : "ksmith");
    k.mail = clean_copy(text.mail && *text.mail ? text.mail : "ksmith@localhost");
    vec_push(&p->commits, k);
    return store(p, &p->commits.v[p->commits.n - 1]);
}

// The next link of main: parents are the last link and the winner, the tree and the words are the winner's.
static int plan_main(struct plan *p)
{
    const struct commit *old = state_main(&p->s->state);
    const struct commit *won = &p->commits.v[p->commits.n - 1];
    struct commit k = {.id = won->id, .nparents = 2, .time = p->time, .main = true};
    if (!old)
        return err_set(p->e, ERR_FAIL, "", "the baseline has to be accepted first");
    k.parents = xcalloc(2, sizeof *k.parents);
    k.parents[0] = xstrdup(old->hex);
    k.parents[1] = xstrdup(won->hex);
    k.message = xstrdup(won->message);
    k.author = xstrdup(won->author);
    k.mail = xstrdup(won->mail);
    vec_push(&p->commits, k);
    return store(p, &p->commits.v[p->commits.n - 1]);
}

static json *commit_json(const struct commit *c)
{
    json *j = json_object(), *parents = json_array();
    json_put_int(j, "id", c->id);
    json_put_str(j, "commit", c->hex);
    for (int i = 0; i < c->nparents; i++)
        json_push(parents, json_new_str(c->parents[i]));
    json_put(j, "parents", parents);
    json_put_str(j, "message", c->message);
    json_put_str(j, "author", c->author);
    json_put_str(j, "mail", c->mail);
    json_put_int(j, "time", c->time);
    if (c->stone)
        json_put_bool(j, "stone", true);
    return j;
}

static json *accept_event(const struct plan *p)
{
    json *j = json_object(), *commits = json_array();
    json_put_str(j, "ev", "accept");
    json_put_int(j, "id", p->a->id);
    if (p->a->over >= 0)
        json_put_int(j, "over", p->a->over);
    if (p->a->gain > 0) {
        json_put_num(j, "gain", p->a->gain);
        json_put_num(j, "low", p->a->low);
        json_put_num(j, "high", p->a->high);
    }
    json_put_bool(j, "champion", p->a->champion);
    json_put(j, "commits", commits);
    for (size_t i = 0; i < p->commits.n; i++) {
        if (p->commits.v[i].main)
            json_put(j, "main", commit_json(&p->commits.v[i]));
        else
            json_push(commits, commit_json(&p->commits.v[i]));
    }
    return j;
}

static void plan_free(struct plan *p)
{
    for (size_t i = 0; i < p->commits.n; i++) {
        struct commit *c = &p->commits.v[i];
        for (int k = 0; k < c->nparents; k++)
            free((char *)c->parents[k]);
        free(c->parents);
        free((char *)c->hex);
        free((char *)c->message);
        free((char *)c->author);
        free((char *)c->mail);
    }
    vec_free(&p->commits);
    vec_free(&p->seen);
}

int lineage_accept(struct session *s, const struct lineage_accept *a, struct err *e)
{
    const struct candidate *c = state_candidate(&s->state, a->id);
    if (!c || c->flags & CF_ACCEPTED)
        return err_set(e, ERR_FAIL, "", "candidate %" PRId64 " %s", a->id,
                       c ? "is accepted already" : "does not exist");
    struct plan p = {.s = s, .a = a, .time = (int64_t)clock_wall(), .e = e};
    gather(&p);
    int r = 0;
    for (size_t i = 0; r == 0 && i < p.seen.n; i++)
        r = plan_commit(&p, p.seen.v[i]);
    if (r == 0 && a->champion && a->id > 0)
        r = plan_main(&p);
    // From here on the objects are on the disk; the line is the commit point.
    if (r == 0)
        r = session_log(s, accept_event(&p), JOURNAL_SYNC, e);
    plan_free(&p);
    if (r < 0)
        return r;
    return lineage_refs(s->lineage, &s->state, NULL, e) < 0 ? 1 : 0;
}

int lineage_pick(struct lineage *l, const struct state *st, int64_t id, const char *text,
                 const struct lineage_text *say, char hex[41], struct err *e)
{
    const struct candidate *c = state_candidate(st, id);
    const struct commit *root = state_commit_of(st, 0);
    char blob[41], tree[41], name[64];
    if (!c || !root)
        return err_set(e, ERR_FAIL, "", "there is no candidate %" PRId64 " or no accepted baseline", id);
    candidate_blob(c, blob);
    if ((text && repo_blob(l->repo, text, strlen(text), blob, e) < 0) ||
        lineage_tree(l, st, blob, tree, e) < 0)
        return -1;
    struct str message = {0};
    str_addf(&message, "%s\n", say->subject);
    if (say->body && *say->body)
        str_addf(&message, "\n%s\n", say->body);
    struct repo_commit rc = {.tree = tree,
                             .parents = &root->hex,
                             .nparents = 1,
                             .message = str_c(&message),
                             .author = say->name,
                             .mail = say->mail,
                             .time = (int64_t)clock_wall()};
    int r = repo_commit(l->repo, &rc, hex, e);
    str_free(&message);
    snprintf(name, sizeof name, "refs/heads/pick-%" PRId64, id);
    return r < 0 ? r : repo_ref_set(l->repo, name, hex, e);
}
