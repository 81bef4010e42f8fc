#include "session/lineage.h"

#include "base/io.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 32, GROUP = 256, PARENTS_MAX = 3 };
static const char ATTEMPTS[] = "refs/ksmith/attempts", LINEAGE[] = "refs/ksmith/lineage", MAIN[] = "refs/heads/main";

struct lineage {
    struct repo *repo;
    // The tree that every commit starts from: kernel first. Owned strings.
    VEC(struct repo_file) files;
    char main[41], chain[41], baseline[41]; // tips as the accept lines say
    size_t grouped; // sources in attempts so far
    char attempts[41];
};

struct lineage *lineage_open(const char *dir, bool create, struct err *e)
{
    char *path = io_join(dir, "lineage.git");
    struct repo *repo = repo_open(path, create, e);
    free(path);
    if (!repo)
        return NULL;
    struct lineage *l = xcalloc(1, sizeof *l);
    l->repo = repo;
    return l;
}

static void forget_files(struct lineage *l)
{
    for (size_t i = 0; i < l->files.n; i++) {
        free((char *)(uintptr_t)l->files.v[i].path);
        free((char *)(uintptr_t)l->files.v[i].blob);
    }
    vec_free(&l->files);
}

void lineage_close(struct lineage *l)
{
    if (!l)
        return;
    forget_files(l);
    repo_close(l->repo);
    free(l);
}

struct repo *lineage_repo(struct lineage *l)
{
    return l->repo;
}

static void add_file(struct lineage *l, const char *path, const char *blob)
{
    vec_push(&l->files, (struct repo_file){xstrdup(path), xstrdup(blob)});
}

// Writes the commit that a description from an accept line names.
static int write_commit(struct lineage *l, const json *d, char hex[41], struct err *e)
{
    struct repo_file files[FILES_MAX];
    const char *parents[PARENTS_MAX];
    struct repo_commit c = {.files = files, .parents = parents};
    for (; c.n_files < l->files.n && c.n_files < FILES_MAX; c.n_files++)
        files[c.n_files] = l->files.v[c.n_files];
    if (c.n_files)
        files[0].blob = json_str_or(d, "blob", files[0].blob);
    for (const json *p = json_first(json_get(d, "parents")); p && c.n_parents < PARENTS_MAX; p = json_next(p))
        parents[c.n_parents++] = json_string(p);
    c.author = json_str_or(d, "author", "ksmith");
    c.email = json_str_or(d, "email", "ksmith@localhost");
    c.time = json_int(d, "time", 0);
    c.message = json_str_or(d, "message", "");
    return repo_put_commit(l->repo, &c, hex, e);
}

// A description of a commit; parents are added by the caller.
static json *describe(const char *role, const struct cand *c, const char *message)
{
    json *d = json_object();
    json_put_str(d, "role", role);
    json_put_int(d, "id", c->id);
    json_put_str(d, "blob", c->blob);
    json_put_int(d, "time", (int64_t)floor(c->born));
    // "Ann Lee <ann@example.org>": an engineer's own edit carries their name.
    const char *open = strrchr(c->author, '<');
    if (open && open > c->author && str_ends(c->author, ">")) {
        json_put_strn(d, "author", c->author, (size_t)(open - c->author) - 1);
        json_put_strn(d, "email", open + 1, strlen(open) - 2);
    }
    json_put_str(d, "message", message);
    json_put(d, "parents", json_array());
    return d;
}

static void add_parent(json *d, const char *hex)
{
    json *parents = json_get(d, "parents");
    for (const json *p = json_first(parents); p; p = json_next(p))
        if (str_eq(json_string(p), hex))
            return;
    if (hex && *hex)
        json_push(parents, json_new_str(hex));
}

static int write_described(struct lineage *l, json *list, json *d, char hex[41], struct err *e)
{
    if (write_commit(l, d, hex, e) < 0) {
        json_free(d);
        return -1;
    }
    json_put_str(d, "commit", hex);
    json_push(list, d);
    return 0;
}

static void candidate_trailers(const struct lineage_accept *a, const struct cand *c, bool stone, struct str *out)
{
    str_addf(out, "\n\nCandidate: %lld\n", (long long)c->id);
    if (stone)
        str_add(out, "Status: stepping-stone\n");
    if (c->speedup > 0)
        str_addf(out, "Speedup: %.4g [%.4g, %.4g]\n", c->speedup, c->speed_low, c->speed_high);
    if (c->incumbent >= 0 && c->gain > 0)
        str_addf(out, "Step: %.4g [%.4g, %.4g] over %lld\n", c->gain, c->low, c->high, (long long)c->incumbent);
    if (c->n_shapes) {
        str_add(out, "Shapes:");
        for (int i = 0; i < c->n_shapes; i++)
            str_addf(out, "%s %s %.4g us", i ? "," : "", (size_t)i < a->state->bench.n ? a->state->bench.v[i] : "?",
                     (double)a->state->shapes.v[c->shapes_at + (uint32_t)i].time_us);
        str_addc(out, '\n');
    }
    str_addf(out, "Operator: %s\nProposer: %s\n", c->op, c->proposer);
    if (*c->model)
        str_addf(out, "Model: %s\n", c->model);
    str_add(out, a->trailers ? a->trailers : "");
    str_addf(out, "Ksmith: %s\n", KSMITH_VERSION);
}

// The commit of an ancestor: its own where it has one, else made now as a stepping stone. hex is "" for none.
struct made {
    int64_t id;
    char hex[41];
};
typedef VEC(struct made) made_list;

static int commit_of(struct lineage *l, const struct lineage_accept *a, int64_t id, json *list, made_list *made, char hex[41],
                     struct err *e)
{
    const struct cand *c = state_cand(a->state, id);
    hex[0] = 0;
    if (!c)
        return 0;
    for (size_t i = 0; i < made->n; i++)
        if (made->v[i].id == id) {
            memcpy(hex, made->v[i].hex, 41);
            return 0;
        }
    if (c->commit[0]) {
        memcpy(hex, c->commit, 41);
        return 0;
    }
    char parents[2][41];
    for (int i = 0; i < 2; i++)
        if (commit_of(l, a, c->parents[i], list, made, parents[i], e) < 0)
            return -1;
    struct str message = {0};
    str_add(&message, c->subject);
    candidate_trailers(a, c, true, &message);
    json *d = describe("stone", c, str_c(&message));
    str_free(&message);
    for (int i = 0; i < 2; i++)
        add_parent(d, parents[i]);
    if (write_described(l, list, d, hex, e) < 0)
        return -1;
    struct made m = {.id = id};
    memcpy(m.hex, hex, 41);
    vec_push(made, m);
    return 0;
}

static int own_commit(struct lineage *l, const struct lineage_accept *a, json *list, char hex[41], struct err *e)
{
    made_list made = {0};
    char parents[2][41] = {{0}};
    int r = 0;
    for (int i = 0; i < 2 && r == 0; i++)
        r = commit_of(l, a, a->cand->parents[i], list, &made, parents[i], e);
    vec_free(&made);
    if (r < 0)
        return -1;
    struct str message = {0};
    str_add(&message, a->subject);
    if (a->body && *a->body)
        str_addf(&message, "\n\n%s", a->body);
    candidate_trailers(a, a->cand, false, &message);
    json *d = describe("candidate", a->cand, str_c(&message));
    str_free(&message);
    for (int i = 0; i < 2; i++)
        add_parent(d, parents[i]);
    return write_described(l, list, d, hex, e);
}

// main's next commit: previous main and the winner; the baseline's own commit begins it.
static int main_commit(struct lineage *l, const struct lineage_accept *a, json *list, const char *own, struct err *e)
{
    char hex[41], message[400];
    if (!l->main[0])
        return 0;
    snprintf(message, sizeof message, "%.250s\n\nCandidate: %lld\nSpeedup: %.4g [%.4g, %.4g]\n", a->subject,
             (long long)a->cand->id, a->cand->speedup, a->cand->speed_low, a->cand->speed_high);
    json *d = describe("main", a->cand, message);
    add_parent(d, l->main);
    add_parent(d, own);
    return write_described(l, list, d, hex, e);
}

static int chain_commit(struct lineage *l, const struct lineage_accept *a, json *list, const char *own, struct err *e)
{
    char hex[41], message[64];
    snprintf(message, sizeof message, "Accepted: candidate %lld\n", (long long)a->cand->id);
    json *d = describe("chain", a->cand, message);
    add_parent(d, own);
    add_parent(d, l->chain);
    return write_described(l, list, d, hex, e);
}

json *lineage_accept(struct lineage *l, const struct lineage_accept *a, struct err *e)
{
    json *event = event_simple("accept", a->cand->id), *list = json_array();
    char own[41];
    json_put_bool(event, "title", a->title);
    if (a->files) {
        json *files = json_array();
        forget_files(l);
        for (size_t i = 0; i < a->n_files && i < FILES_MAX; i++) {
            json *f = json_object();
            json_put_str(f, "path", a->files[i].path);
            json_put_str(f, "blob", a->files[i].blob);
            json_push(files, f);
            add_file(l, a->files[i].path, a->files[i].blob);
        }
        json_put(event, "files", files);
    }
    int r = own_commit(l, a, list, own, e);
    if (r == 0)
        json_put_str(event, "commit", own);
    if (r == 0 && a->title)
        r = main_commit(l, a, list, own, e);
    if (r == 0)
        r = chain_commit(l, a, list, own, e);
    json_put(event, "commits", list);
    if (r < 0) {
        json_free(event);
        return NULL;
    }
    return event;
}

// What the accept line says the tips are.
static void follow(struct lineage *l, const json *accept)
{
    const char *own = json_str_or(accept, "commit", "");
    if (json_int(accept, "id", -1) == 0) {
        snprintf(l->baseline, sizeof l->baseline, "%s", own);
        snprintf(l->main, sizeof l->main, "%s", own);
    }
    for (const json *d = json_first(json_get(accept, "commits")); d; d = json_next(d)) {
        const char *role = json_str_or(d, "role", ""), *hex = json_str_or(d, "commit", "");
        if (str_eq(role, "main"))
            snprintf(l->main, sizeof l->main, "%s", hex);
        else if (str_eq(role, "chain"))
            snprintf(l->chain, sizeof l->chain, "%s", hex);
    }
}

static int set_tips(struct lineage *l, struct err *e)
{
    if (l->main[0] && repo_set_ref(l->repo, MAIN, l->main, e) < 0)
        return -1;
    return l->chain[0] ? repo_set_ref(l->repo, LINEAGE, l->chain, e) : 0;
}

int lineage_refs(struct lineage *l, const json *accept, struct err *e)
{
    follow(l, accept);
    return set_tips(l, e);
}

struct repair {
    struct lineage *l;
    size_t lost;
};

static int repair_line(void *user, const json *line, uint64_t offset, struct err *e)
{
    struct repair *r = user;
    (void)offset;
    (void)e;
    if (str_eq(json_str(line, "ev"), "candidate") && !repo_has(r->l->repo, json_str_or(line, "blob", "")))
        r->lost++;
    if (!str_eq(json_str(line, "ev"), "accept"))
        return 0;
    if (json_has(line, "files")) {
        forget_files(r->l);
        for (const json *f = json_first(json_get(line, "files")); f; f = json_next(f))
            add_file(r->l, json_str_or(f, "path", ""), json_str_or(f, "blob", ""));
    }
    for (const json *d = json_first(json_get(line, "commits")); d; d = json_next(d)) {
        char hex[41];
        struct err lost = {0};
        const char *want = json_str_or(d, "commit", "");
        if (!repo_has(r->l->repo, want) && (write_commit(r->l, d, hex, &lost) < 0 || strcmp(hex, want) != 0))
            r->lost++;
    }
    follow(r->l, line);
    return 0;
}

int lineage_repair(struct lineage *l, const char *journal, size_t *lost, struct err *e)
{
    struct repair r = {l, 0};
    uint64_t offset = 0, lines = 0;
    if (journal_read(journal, &offset, &lines, repair_line, &r, e) < 0)
        return -1;
    *lost = r.lost;
    // A tip whose commit could not be rebuilt must not become a broken ref.
    if ((l->main[0] && !repo_has(l->repo, l->main)) || (l->chain[0] && !repo_has(l->repo, l->chain)))
        return 0;
    return set_tips(l, e);
}

int lineage_attempts(struct lineage *l, const struct state *s, struct err *e)
{
    char tip[41] = "";
    size_t done = l->grouped;
    memcpy(tip, l->attempts, sizeof tip);
    while (done < s->cands.n) {
        size_t n = s->cands.n - done < GROUP ? s->cands.n - done : GROUP;
        struct repo_file files[GROUP];
        char (*names)[24] = xcalloc(n, sizeof *names);
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            const struct cand *c = &s->cands.v[done + i];
            if (!repo_has(l->repo, c->blob))
                continue;
            snprintf(names[i], sizeof names[i], "%lld", (long long)c->id);
            files[kept++] = (struct repo_file){names[i], c->blob};
        }
        char message[96], hex[41];
        const struct cand *last = &s->cands.v[done + n - 1];
        snprintf(message, sizeof message, "Sources of candidates %zu to %lld\n", done, (long long)last->id);
        const char *parent = tip;
        struct repo_commit c = {.files = files, .n_files = kept, .parents = &parent, .n_parents = tip[0] ? 1 : 0,
                                .author = "ksmith", .email = "ksmith@localhost", .time = (int64_t)floor(last->born),
                                .message = message};
        int r = repo_put_commit(l->repo, &c, hex, e);
        if (r == 0)
            r = repo_set_ref(l->repo, ATTEMPTS, hex, e);
        free(names);
        if (r < 0)
            return -1;
        if (n < GROUP) // an incomplete group is replaced next time
            return 0;
        done += n;
        l->grouped = done;
        memcpy(tip, hex, sizeof tip);
        memcpy(l->attempts, hex, sizeof l->attempts);
    }
    return 0;
}

int lineage_pick(struct lineage *l, const struct state *s, int64_t id, const char *message, char hex[41], struct err *e)
{
    const struct cand *c = state_cand(s, id);
    char name[48];
    json *d = describe("pick", c, message);
    add_parent(d, l->baseline);
    int r = write_commit(l, d, hex, e);
    json_free(d);
    snprintf(name, sizeof name, "refs/heads/pick-%lld", (long long)id);
    return r < 0 ? -1 : repo_set_ref(l->repo, name, hex, e);
}
