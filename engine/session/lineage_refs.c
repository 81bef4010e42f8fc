// Refs as a cache of the journal: set from the fold, lost commits rebuilt, sources kept reachable, packing.
#include "base/io.h"
#include "session/lineage_private.h"

#include <dirent.h>
#include <inttypes.h>
#include <unistd.h>

// A commit that only keeps things reachable.
static int keeper(struct lineage *l, const char *tree, const char *const *parents, int n, const char *message,
                  int64_t time, char hex[41], struct err *e)
{
    struct repo_commit c = {.tree = tree,
                            .parents = parents,
                            .nparents = n,
                            .message = message,
                            .author = "ksmith",
                            .mail = "ksmith@localhost",
                            .time = time};
    return repo_commit(l->repo, &c, hex, e);
}

// How many accepted commits the chain under `tip` keeps, where it is the one that the fold would build.
static size_t chain_length(struct lineage *l, const struct state *st, const char *tip)
{
    struct str subject = {0};
    char second[41];
    long long k = 0;
    size_t n = 0;
    if (repo_commit_look(l->repo, tip, 1, second, &subject) == 0) {
        const char *at = str_starts(str_c(&subject), "accepted ") ? subject.s + 9 : "";
        k = strtoll(at, NULL, 10);
    }
    str_free(&subject);
    if (k >= 1 && (size_t)k <= st->accepted.n) {
        // The first link has one parent, the accepted commit; the others (previous link, accepted commit).
        char first[41];
        const struct commit *c = state_commit_of(st, st->accepted.v[k - 1]);
        if (c && repo_commit_look(l->repo, tip, 0, first, NULL) == 0 &&
            strcmp(k == 1 ? first : second, c->hex) == 0)
            n = (size_t)k;
    }
    return n;
}

static int keep_accepted(struct lineage *l, const struct state *st, char tip[41], struct err *e)
{
    size_t done = repo_ref_get(l->repo, LINEAGE_KEEP, tip) ? chain_length(l, st, tip) : 0;
    for (size_t i = done; i < st->accepted.n; i++) {
        const struct commit *c = state_commit_of(st, st->accepted.v[i]);
        char tree[41], before[41], message[64];
        if (!c || repo_commit_tree(l->repo, c->hex, tree) < 0)
            return err_set(e, ERR_FAIL, "", "the commit of candidate %" PRId64 " is missing",
                           st->accepted.v[i]);
        memcpy(before, tip, 41);
        const char *parents[2] = {i ? before : c->hex, c->hex};
        snprintf(message, sizeof message, "accepted %zu: candidate %" PRId64 "\n", i + 1, c->id);
        if (keeper(l, tree, parents, i ? 2 : 1, message, c->time, tip, e) < 0)
            return -1;
    }
    return 0;
}

static int set_ref(struct lineage *l, const char *name, const char *hex, int *moved, struct err *e)
{
    char now[41];
    if (repo_ref_get(l->repo, name, now) && strcmp(now, hex) == 0)
        return 0;
    if (moved)
        ++*moved;
    return repo_ref_set(l->repo, name, hex, e);
}

int lineage_refs(struct lineage *l, const struct state *st, int *moved, struct err *e)
{
    const struct commit *head = state_main(st);
    char tip[41] = "";
    if (!head)
        return 0;
    if (set_ref(l, LINEAGE_MAIN, head->hex, moved, e) < 0 || keep_accepted(l, st, tip, e) < 0)
        return -1;
    return set_ref(l, LINEAGE_KEEP, tip, moved, e);
}

// Locks and temporary files of a process that died; the session's lock says that we are alone.
static int sweep(const char *dir, int depth)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *x; d && (x = readdir(d));) {
        if (x->d_name[0] == '.')
            continue;
        char *path = io_join(dir, x->d_name);
        bool stale = str_ends(x->d_name, ".lock") || str_starts(x->d_name, "tmp_object_git2_") ||
                     str_starts(x->d_name, "pack_git2_");
        if (stale && !io_is_dir(path))
            n += unlink(path) == 0;
        else if (depth > 0 && io_is_dir(path))
            n += sweep(path, depth - 1);
        free(path);
    }
    if (d)
        closedir(d);
    return n;
}

static int rebuild(struct lineage *l, const struct state *st, const struct commit *c, struct err *e)
{
    char hex[41], blob[41];
    candidate_blob(&st->c.v[c->id], blob);
    if (!repo_has(l->repo, blob))
        return err_set(e, ERR_FAIL, "Put .ksmith/lineage.git back from a backup.",
                       "the source of candidate %" PRId64 " (%s) is missing from the lineage", c->id, blob);
    if (lineage_commit(l, st, c, hex, e) < 0)
        return -1;
    if (strcmp(hex, c->hex) != 0)
        return err_set(e, ERR_FAIL, "Put .ksmith/ back from a backup.",
                       "the commit of candidate %" PRId64 " was %s and is rebuilt as %s", c->id, c->hex, hex);
    return 0;
}

void lineage_distrust(struct lineage *l)
{
    static const char *const refs[] = {LINEAGE_KEEP, LINEAGE_ATTEMPTS, LINEAGE_RECENT};
    for (size_t i = 0; i < countof(refs); i++)
        repo_ref_drop(l->repo, refs[i]);
}

int lineage_repair(struct lineage *l, const struct state *st, struct lineage_repaired *did, struct err *e)
{
    struct lineage_repaired none = {0};
    did = did ? did : &none;
    *did = none;
    did->locks = sweep(l->path, 4);
    for (size_t i = 0; i < st->commits.n; i++) {
        char tree[41];
        if (repo_commit_tree(l->repo, st->commits.v[i].hex, tree) == 0 && repo_has(l->repo, tree))
            continue;
        if (rebuild(l, st, &st->commits.v[i], e) < 0)
            return -1;
        did->commits++;
    }
    return lineage_refs(l, st, &did->refs, e);
}

// Up to which candidate (exclusive) a ref of sources reaches: its subject is "sources FROM-TO".
static int64_t sources_end(struct lineage *l, const char *ref, char tip[41])
{
    struct str subject = {0};
    char parent[41];
    int64_t end = 0;
    tip[0] = 0;
    if (repo_ref_get(l->repo, ref, tip) && repo_commit_look(l->repo, tip, 0, parent, &subject) == 0) {
        const char *dash = strchr(str_c(&subject), '-');
        end = str_starts(str_c(&subject), "sources ") && dash ? strtoll(dash + 1, NULL, 10) + 1 : 0;
    }
    str_free(&subject);
    return end;
}

static int sources(struct lineage *l, const struct state *st, int64_t from, int64_t to, const char *parent,
                   char hex[41], struct err *e)
{
    struct repo_entry *x = xmalloc((size_t)(to - from) * sizeof *x);
    char(*names)[48] = xmalloc((size_t)(to - from) * sizeof *names), tree[41], message[80];
    char(*blobs)[41] = xmalloc((size_t)(to - from) * sizeof *blobs);
    const char *dot = st->files.n ? strrchr(st->files.v[0].path, '.') : NULL;
    size_t n = 0;
    for (int64_t i = from; i < to; i++) {
        candidate_blob(&st->c.v[i], blobs[n]);
        if (!repo_has(l->repo, blobs[n])) // a disk lost it
            continue;
        snprintf(names[n], sizeof *names, "%06" PRId64 "%.16s", i, dot && !strchr(dot, '/') ? dot : "");
        x[n] = (struct repo_entry){.path = names[n], .hex = blobs[n]};
        n++;
    }
    int r = repo_tree(l->repo, x, n, tree, e);
    free(x);
    free(names);
    free(blobs);
    snprintf(message, sizeof message, "sources %" PRId64 "-%" PRId64 "\n", from, to - 1);
    const char *parents[1] = {parent};
    return r < 0 ? r
                 : keeper(l, tree, parents, *parent ? 1 : 0, message, (int64_t)st->c.v[to - 1].born, hex, e);
}

int lineage_idle(struct lineage *l, const struct state *st, int groups, struct err *e)
{
    char tip[41], hex[41];
    int64_t done = sources_end(l, LINEAGE_ATTEMPTS, tip), all = (int64_t)st->c.n;
    if (done % LINEAGE_GROUP || done > all) {
        done = 0; // not ours: begin again
        tip[0] = 0;
    }
    for (; all - done >= LINEAGE_GROUP; done += LINEAGE_GROUP) {
        if (groups-- <= 0)
            return 1;
        if (sources(l, st, done, done + LINEAGE_GROUP, tip, hex, e) < 0 ||
            repo_ref_set(l->repo, LINEAGE_ATTEMPTS, hex, e) < 0)
            return -1;
        memcpy(tip, hex, 41);
    }
    char recent[41];
    if (all == done || sources_end(l, LINEAGE_RECENT, recent) == all)
        return 0;
    if (sources(l, st, done, all, "", hex, e) < 0 || repo_ref_set(l->repo, LINEAGE_RECENT, hex, e) < 0)
        return -1;
    return 0;
}

bool lineage_wants_packing(struct lineage *l)
{
    return repo_loose(l->path) > 2000 || repo_packs(l->path) > 30;
}

int lineage_pack(const char *path, bool all, struct err *e)
{
    return repo_pack(path, all || repo_packs(path) > 30, e);
}
