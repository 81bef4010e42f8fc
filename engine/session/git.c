#include "session/git.h"

#include "base/io.h"
#include "session/loose.h"

#include <dirent.h>
#include <fcntl.h>
#include <git2.h>
#include <git2/sys/commit.h>
#include <sys/stat.h>
#include <unistd.h>

struct repo {
    git_repository *git;
    char *path;
};

static int fail(struct err *e, int code, const char *what)
{
    const git_error *why = git_error_last();
    const char *hint = code == GIT_EOWNER
                           ? "The folder belongs to another user: copy the session to a folder of yours."
                       : code == GIT_ELOCKED ? "Another git command is at work in it: try again."
                                             : "";
    return err_set(e, ERR_FAIL, hint, "%s: %s", what, why && why->message ? why->message : "git failed");
}

// Objects synced before a call returns; nothing from the user's or the system's git configuration.
static void start(void)
{
    git_libgit2_init();
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
    for (int level = GIT_CONFIG_LEVEL_PROGRAMDATA; level <= GIT_CONFIG_LEVEL_GLOBAL; level++)
        git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "");
}

static int sync_tree(const char *path)
{
    DIR *d = opendir(path);
    if (!d)
        return -1;
    int r = 0;
    for (struct dirent *x; r == 0 && (x = readdir(d));) {
        if (str_eq(x->d_name, ".") || str_eq(x->d_name, ".."))
            continue;
        char *sub = io_join(path, x->d_name);
        if (io_is_dir(sub)) {
            r = sync_tree(sub);
        } else {
            int fd = open(sub, O_RDONLY | O_CLOEXEC);
            r = fd < 0 ? -1 : fsync(fd);
            if (fd >= 0)
                close(fd);
        }
        free(sub);
    }
    closedir(d);
    return r < 0 ? r : io_sync_dir(path);
}

static int create_in(const char *path, struct err *e)
{
    git_repository *git = NULL;
    git_repository_init_options o;
    git_repository_init_options_init(&o, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
    o.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKPATH | GIT_REPOSITORY_INIT_NO_REINIT;
    o.mode = 0700;
    o.initial_head = "main";
    o.description = "ksmith: the lineage of a session";
    git_config *config = NULL;
    int r = git_repository_init_ext(&git, path, &o);
    if (r == 0)
        r = git_repository_config(&config, git);
    // A stray `git gc` must not drop sources that no ref reaches yet.
    if (r == 0)
        r = git_config_set_int32(config, "gc.auto", 0);
    if (r == 0)
        r = git_config_set_string(config, "gc.pruneExpire", "never");
    git_config_free(config);
    git_repository_free(git);
    if (r < 0)
        return fail(e, r, "cannot make the lineage repository");
    // The folders of loose objects stand from the start: then only the object's own folder needs a sync.
    for (int i = 0; i < 256; i++) {
        char *sub = xasprintf("%s/objects/%02x", path, (unsigned)i);
        mkdir(sub, 0700);
        free(sub);
    }
    return 0;
}

int repo_create(const char *path, struct err *e)
{
    start();
    char *temp = xasprintf("%s.new", path), *parent = xasprintf("%s/..", path);
    int r = io_remove(temp, e);
    if (r == 0)
        r = create_in(temp, e);
    if (r == 0 && (sync_tree(temp) < 0 || rename(temp, path) < 0))
        r = err_sys(e, "", "cannot make %s", path);
    if (r == 0 && io_sync_dir(parent) < 0)
        r = err_sys(e, "", "cannot sync %s", parent);
    free(temp);
    free(parent);
    git_libgit2_shutdown();
    return r;
}

int repo_open(struct repo **out, const char *path, struct err *e)
{
    start();
    git_repository *git = NULL;
    int r = git_repository_open_bare(&git, path);
    if (r < 0) {
        fail(e, r, "cannot open the lineage repository");
        git_libgit2_shutdown();
        return -1;
    }
    struct repo *repo = xcalloc(1, sizeof *repo);
    *repo = (struct repo){.git = git, .path = xstrdup(path)};
    *out = repo;
    return 0;
}

void repo_close(struct repo *r)
{
    if (!r)
        return;
    git_repository_free(r->git);
    free(r->path);
    free(r);
    git_libgit2_shutdown();
}

int repo_refresh(struct repo *r, struct err *e)
{
    git_odb *odb = NULL;
    int c = git_repository_odb(&odb, r->git);
    if (c == 0)
        c = git_odb_refresh(odb);
    git_odb_free(odb);
    return c < 0 ? fail(e, c, "cannot look at the packs again") : 0;
}

static void to_hex(char hex[41], const git_oid *id)
{
    git_oid_tostr(hex, 41, id);
}

int repo_blob(struct repo *r, const char *data, size_t n, char hex[41], struct err *e)
{
    git_oid id;
    int c = git_blob_create_from_buffer(&id, r->git, data, n);
    if (c < 0)
        return fail(e, c, "cannot store a source");
    to_hex(hex, &id);
    return 0;
}

int repo_blob_id(const char *data, size_t n, char hex[41], struct err *e)
{
    git_oid id;
    int c = git_odb_hash(&id, data, n, GIT_OBJECT_BLOB);
    if (c < 0)
        return fail(e, c, "cannot hash a source");
    to_hex(hex, &id);
    return 0;
}

int repo_read(struct repo *r, const char *hex, struct str *out, struct err *e)
{
    git_oid id;
    git_blob *blob = NULL;
    int c = git_oid_fromstr(&id, hex);
    if (c == 0 && loose_damaged(r->path, hex))
        return err_set(e, ERR_FAIL, "The next `ksmith run` removes what is damaged and rebuilds what it can.",
                       "the object %s of %s is damaged", hex, r->path);
    if (c == 0)
        c = git_blob_lookup(&blob, r->git, &id);
    if (c < 0)
        return fail(e, c, "cannot read a source");
    str_addn(out, git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob));
    git_blob_free(blob);
    return 0;
}

bool repo_has(struct repo *r, const char *hex)
{
    git_oid id;
    git_odb *odb = NULL;
    bool has =
        git_oid_fromstr(&id, hex) == 0 && git_repository_odb(&odb, r->git) == 0 && git_odb_exists(odb, &id);
    git_odb_free(odb);
    return has;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct repo_entry *)a)->path, ((const struct repo_entry *)b)->path);
}

// The tree of entries [0, n), sorted, whose paths share the first `skip` bytes.
static int tree_of(struct repo *r, const struct repo_entry *x, size_t n, size_t skip, git_oid *out)
{
    git_treebuilder *tb = NULL;
    int c = git_treebuilder_new(&tb, r->git, NULL);
    for (size_t i = 0; c == 0 && i < n;) {
        const char *name = x[i].path + skip, *slash = strchr(name, '/');
        size_t same = i + 1;
        git_oid id;
        if (!slash) {
            c = git_oid_fromstr(&id, x[i].hex);
            if (c == 0)
                c = git_treebuilder_insert(
                    NULL, tb, name, &id, x[i].executable ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB);
        } else {
            size_t len = (size_t)(slash - name) + 1;
            while (same < n && strncmp(x[same].path + skip, name, len) == 0)
                same++;
            char *folder = xstrndup(name, len - 1);
            c = tree_of(r, x + i, same - i, skip + len, &id);
            if (c == 0)
                c = git_treebuilder_insert(NULL, tb, folder, &id, GIT_FILEMODE_TREE);
            free(folder);
        }
        i = same;
    }
    if (c == 0)
        c = git_treebuilder_write(out, tb);
    git_treebuilder_free(tb);
    return c;
}

int repo_tree(struct repo *r, const struct repo_entry *entries, size_t n, char hex[41], struct err *e)
{
    struct repo_entry *sorted = xmalloc((n + 1) * sizeof *sorted);
    if (n)
        memcpy(sorted, entries, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_path);
    git_oid id;
    int c = tree_of(r, sorted, n, 0, &id);
    free(sorted);
    if (c < 0)
        return fail(e, c, "cannot store a tree");
    to_hex(hex, &id);
    return 0;
}

// A name or address that git can write: no angle brackets or line ends, not empty.
static char *plain(const char *s, const char *otherwise)
{
    char *copy = xstrdup(s ? s : ""), *out = copy;
    for (const char *p = copy; *p; p++)
        if (*p != '<' && *p != '>' && (unsigned char)*p >= 0x20)
            *out++ = *p;
    *out = 0;
    bool empty = strspn(copy, " .,:;\"\\'") == strlen(copy);
    if (!empty)
        return copy;
    free(copy);
    return xstrdup(otherwise);
}

static int ids_of(const struct repo_commit *c, git_oid *tree, git_oid *ids, const git_oid **list)
{
    int r = git_oid_fromstr(tree, c->tree);
    for (int i = 0; r == 0 && i < c->nparents; i++) {
        r = git_oid_fromstr(&ids[i], c->parents[i]);
        list[i] = &ids[i];
    }
    return r;
}

int repo_commit(struct repo *r, const struct repo_commit *c, char hex[41], struct err *e)
{
    git_oid id, tree, *ids = xcalloc((size_t)c->nparents + 1, sizeof *ids);
    const git_oid **list = xcalloc((size_t)c->nparents + 1, sizeof *list);
    char *author = plain(c->author, "ksmith"), *mail = plain(c->mail, "ksmith@localhost");
    git_signature *by = NULL, *committer = NULL;
    int code = ids_of(c, &tree, ids, list);
    if (code == 0)
        code = git_signature_new(&by, author, mail, c->time, 0);
    if (code == 0)
        code = git_signature_new(&committer, "ksmith", "ksmith@localhost", c->time, 0);
    if (code == 0)
        code = git_commit_create_from_ids(&id, r->git, NULL, by, committer, NULL, c->message, &tree,
                                          (size_t)c->nparents, list);
    if (code == 0)
        to_hex(hex, &id);
    else
        fail(e, code, "cannot store a commit");
    git_signature_free(by);
    git_signature_free(committer);
    free(author);
    free(mail);
    free(ids);
    free(list);
    return code < 0 ? -1 : 0;
}

static git_commit *commit_at(struct repo *r, const char *hex)
{
    git_oid id;
    git_commit *commit = NULL;
    if (git_oid_fromstr(&id, hex) < 0 || git_commit_lookup(&commit, r->git, &id) < 0)
        return NULL;
    return commit;
}

int repo_commit_look(struct repo *r, const char *hex, int k, char parent[41], struct str *subject)
{
    git_commit *c = commit_at(r, hex);
    if (!c)
        return -1;
    parent[0] = 0;
    const git_oid *id = git_commit_parent_id(c, (unsigned)k);
    if (id)
        to_hex(parent, id);
    const char *text = git_commit_message(c);
    if (subject)
        str_addn(subject, text, strcspn(text, "\n"));
    git_commit_free(c);
    return 0;
}

int repo_commit_tree(struct repo *r, const char *hex, char tree[41])
{
    git_commit *c = commit_at(r, hex);
    if (!c)
        return -1;
    to_hex(tree, git_commit_tree_id(c));
    git_commit_free(c);
    return 0;
}

int repo_ref_get(struct repo *r, const char *name, char hex[41])
{
    git_oid id;
    if (git_reference_name_to_id(&id, r->git, name) < 0)
        return 0;
    to_hex(hex, &id);
    return 1;
}

void repo_ref_drop(struct repo *r, const char *name)
{
    git_reference_remove(r->git, name);
}

int repo_ref_set(struct repo *r, const char *name, const char *hex, struct err *e)
{
    git_oid id;
    git_reference *ref = NULL;
    char now[41];
    if (repo_ref_get(r, name, now) && strcmp(now, hex) == 0)
        return 0;
    int c = git_oid_fromstr(&id, hex);
    if (c == 0)
        c = git_reference_create(&ref, r->git, name, &id, 1, NULL);
    git_reference_free(ref);
    return c < 0 ? fail(e, c, "cannot move a ref") : 0;
}

char *repo_worktree(const char *path, char head[41])
{
    start();
    git_repository *git = NULL;
    git_oid id;
    char *top = NULL;
    head[0] = 0;
    if (git_repository_open_ext(&git, path, 0, NULL) == 0 && git_repository_workdir(git)) {
        top = xstrdup(git_repository_workdir(git));
        if (git_reference_name_to_id(&id, git, "HEAD") == 0)
            to_hex(head, &id);
    }
    git_repository_free(git);
    git_libgit2_shutdown();
    return top;
}

// Calls fn for every loose object, as its hex id.
static int each_loose(const char *path, int (*fn)(void *user, const char *hex, const char *file), void *user)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < 256; i++) {
        char *dir = xasprintf("%s/objects/%02x", path, i);
        DIR *d = opendir(dir);
        for (struct dirent *x; d && r == 0 && (x = readdir(d));) {
            char hex[41];
            if (strlen(x->d_name) != 38 || strspn(x->d_name, "0123456789abcdef") != 38)
                continue;
            snprintf(hex, sizeof hex, "%02x%.38s", i, x->d_name);
            char *file = io_join(dir, x->d_name);
            r = fn(user, hex, file);
            free(file);
        }
        if (d)
            closedir(d);
        free(dir);
    }
    return r;
}

struct packing {
    git_packbuilder *pb;
    git_odb *only;   // the new pack alone
    VEC(char *) old; // packs that were there before, without suffix
    bool unsure;
};

static int insert_loose(void *user, const char *hex, const char *file)
{
    (void)file;
    struct packing *p = user;
    git_oid id;
    int r = git_oid_fromstr(&id, hex);
    return r < 0 ? r : git_packbuilder_insert(p->pb, &id, NULL);
}

static int insert_any(const git_oid *id, void *user)
{
    struct packing *p = user;
    return git_packbuilder_insert(p->pb, id, NULL);
}

static int remove_loose(void *user, const char *hex, const char *file)
{
    struct packing *p = user;
    git_oid id;
    if (git_oid_fromstr(&id, hex) == 0 && git_odb_exists(p->only, &id))
        unlink(file);
    return 0;
}

static int still_there(const git_oid *id, void *user)
{
    struct packing *p = user;
    p->unsure |= !git_odb_exists(p->only, id);
    return 0;
}

static void list_packs(struct packing *p, const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *x; d && (x = readdir(d));)
        if (str_ends(x->d_name, ".idx")) {
            char *path = io_join(folder, x->d_name);
            path[strlen(path) - 4] = 0;
            vec_push(&p->old, path);
        }
    if (d)
        closedir(d);
}

static int sync_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -1 : fsync(fd);
    if (fd >= 0)
        close(fd);
    return r;
}

// The new pack is on the disk and readable on its own, or nothing is removed.
static int prove_pack(struct packing *p, const char *stem, const char *folder)
{
    char *pack = xasprintf("%s.pack", stem), *idx = xasprintf("%s.idx", stem);
    git_odb_backend *one = NULL;
    int r = sync_file(pack) < 0 || sync_file(idx) < 0 || io_sync_dir(folder) < 0 ? -1 : 0;
    if (r == 0)
        r = git_odb_new(&p->only);
    if (r == 0)
        r = git_odb_backend_one_pack(&one, idx);
    if (r == 0)
        r = git_odb_add_backend(p->only, one, 1);
    free(pack);
    free(idx);
    return r;
}

static void remove_old_packs(struct packing *p, struct repo *repo, const char *stem, const char *folder)
{
    git_odb *all = NULL;
    if (git_repository_odb(&all, repo->git) < 0 || git_odb_foreach(all, still_there, p) < 0)
        p->unsure = true;
    git_odb_free(all);
    // An index without its pack is an error to git, a pack without index is nothing: index first.
    for (int half = 0; half < 2 && !p->unsure; half++) {
        for (size_t i = 0; i < p->old.n; i++) {
            char *path = xasprintf("%s.%s", p->old.v[i], half ? "pack" : "idx");
            if (strcmp(p->old.v[i], stem) != 0)
                unlink(path);
            free(path);
        }
        io_sync_dir(folder);
    }
}

static int write_pack(struct packing *p, struct repo *repo, bool all, struct err *e)
{
    git_odb *odb = NULL;
    char *folder = xasprintf("%s/objects/pack", repo->path), *stem = NULL;
    list_packs(p, folder);
    int r = git_packbuilder_new(&p->pb, repo->git);
    if (r == 0)
        git_packbuilder_set_threads(p->pb, 1);
    if (r == 0 && all && (r = git_repository_odb(&odb, repo->git)) == 0)
        r = git_odb_foreach(odb, insert_any, p);
    else if (r == 0)
        r = each_loose(repo->path, insert_loose, p);
    if (r == 0 && git_packbuilder_object_count(p->pb) > 0) {
        r = git_packbuilder_write(p->pb, NULL, 0600, NULL, NULL);
        if (r == 0) {
            stem = xasprintf("%s/pack-%s", folder, git_packbuilder_name(p->pb));
            r = prove_pack(p, stem, folder);
        }
        if (r == 0)
            r = each_loose(repo->path, remove_loose, p);
        if (r == 0 && all)
            remove_old_packs(p, repo, stem, folder);
    }
    if (r < 0)
        fail(e, r, "cannot pack the lineage repository");
    git_odb_free(odb);
    free(folder);
    free(stem);
    return r < 0 ? -1 : 0;
}

int repo_pack(const char *path, bool all, struct err *e)
{
    struct repo *repo;
    if (repo_open(&repo, path, e) < 0)
        return -1;
    struct packing p = {0};
    int r = write_pack(&p, repo, all, e);
    git_packbuilder_free(p.pb);
    git_odb_free(p.only);
    for (size_t i = 0; i < p.old.n; i++)
        free(p.old.v[i]);
    vec_free(&p.old);
    repo_close(repo);
    return r;
}

static size_t count_in(const char *path, const char *suffix)
{
    DIR *d = opendir(path);
    size_t n = 0;
    for (struct dirent *x; d && (x = readdir(d));)
        n += x->d_name[0] != '.' && str_ends(x->d_name, suffix);
    if (d)
        closedir(d);
    return n;
}

size_t repo_loose(const char *path)
{
    // As git gc does: one folder of 256 speaks for the others.
    char *dir = xasprintf("%s/objects/17", path);
    size_t n = count_in(dir, "") * 256;
    free(dir);
    return n;
}

size_t repo_packs(const char *path)
{
    char *dir = xasprintf("%s/objects/pack", path);
    size_t n = count_in(dir, ".pack");
    free(dir);
    return n;
}
