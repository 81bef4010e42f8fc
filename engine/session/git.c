#include "session/git.h"

#include "base/mem.h"

#include <git2.h>
#include <stdlib.h>
#include <string.h>

struct repo {
    git_repository *repo;
};

static int fail(struct err *e, const char *hint, const char *what)
{
    const git_error *g = git_error_last();
    return err_set(e, ERR_FAIL, hint, "%s: %s", what, g && g->message ? g->message : "unknown error of libgit2");
}

static void start(void)
{
    static bool started;
    if (started)
        return;
    started = true;
    git_libgit2_init();
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
    // A user's or system's configuration must not change what is written.
    for (int level = GIT_CONFIG_LEVEL_PROGRAMDATA; level <= GIT_CONFIG_LEVEL_GLOBAL; level++)
        git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "");
}

struct repo *repo_open(const char *path, bool create, struct err *e)
{
    start();
    git_repository *repo = NULL;
    int r = git_repository_open_bare(&repo, path);
    if (r == GIT_ENOTFOUND && create) {
        git_repository_init_options o;
        git_repository_init_options_init(&o, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
        o.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKPATH;
        o.initial_head = "main";
        r = git_repository_init_ext(&repo, path, &o);
    }
    if (r < 0) {
        fail(e,
             r == GIT_EOWNER ? "It belongs to another user: run ksmith as that user, or copy the session."
                             : "Move the folder away and run again: it is rebuilt from the journal as far as possible.",
             path);
        return NULL;
    }
    struct repo *g = xcalloc(1, sizeof *g);
    g->repo = repo;
    return g;
}

void repo_close(struct repo *g)
{
    if (!g)
        return;
    git_repository_free(g->repo);
    free(g);
}

int repo_put_blob(struct repo *g, const char *text, size_t n, char hex[41], struct err *e)
{
    git_oid id;
    if (git_blob_create_from_buffer(&id, g->repo, text, n) < 0)
        return fail(e, "Is the disk full?", "cannot store a source in the lineage repository");
    git_oid_tostr(hex, 41, &id);
    return 0;
}

int repo_get_blob(struct repo *g, const char *hex, struct str *out, struct err *e)
{
    git_oid id;
    git_blob *blob = NULL;
    if (git_oid_fromstr(&id, hex) < 0 || git_blob_lookup(&blob, g->repo, &id) < 0)
        return fail(e, "The lineage repository lost it; `git fsck` in .ksmith/lineage.git says more.", "cannot read a source");
    str_addn(out, git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob));
    git_blob_free(blob);
    return 0;
}

bool repo_has(struct repo *g, const char *hex)
{
    git_oid id;
    git_odb *odb = NULL;
    if (git_oid_fromstr(&id, hex) < 0 || git_repository_odb(&odb, g->repo) < 0)
        return false;
    bool has = git_odb_exists(odb, &id) == 1;
    git_odb_free(odb);
    return has;
}

static int put_tree(struct repo *g, const struct repo_commit *c, git_oid *tree, struct err *e)
{
    git_index *index = NULL;
    int r = git_index_new(&index);
    for (size_t i = 0; i < c->n_files && r == 0; i++) {
        git_index_entry entry = {.mode = GIT_FILEMODE_BLOB, .path = c->files[i].path};
        r = git_oid_fromstr(&entry.id, c->files[i].blob);
        if (r == 0)
            r = git_index_add(index, &entry);
    }
    if (r == 0)
        r = git_index_write_tree_to(tree, index, g->repo);
    git_index_free(index);
    return r < 0 ? fail(e, "", "cannot write a tree") : 0;
}

int repo_put_commit(struct repo *g, const struct repo_commit *c, char hex[41], struct err *e)
{
    git_oid tree_id, id;
    git_tree *tree = NULL;
    git_signature *author = NULL, *committer = NULL;
    git_commit **parents = xcalloc(c->n_parents, sizeof(git_commit *));
    if (put_tree(g, c, &tree_id, e) < 0) {
        free(parents);
        return -1;
    }
    int r = git_tree_lookup(&tree, g->repo, &tree_id);
    for (size_t i = 0; i < c->n_parents && r == 0; i++) {
        git_oid parent;
        r = git_oid_fromstr(&parent, c->parents[i]);
        if (r == 0)
            r = git_commit_lookup(&parents[i], g->repo, &parent);
    }
    if (r == 0)
        r = git_signature_new(&author, c->author, c->email, c->time, 0);
    if (r == 0)
        r = git_signature_new(&committer, "ksmith", "ksmith@localhost", c->time, 0);
    if (r == 0)
        r = git_commit_create(&id, g->repo, NULL, author, committer, NULL, c->message, tree, c->n_parents,
                              (const git_commit **)parents);
    if (r < 0)
        fail(e, "", "cannot write a commit");
    else
        git_oid_tostr(hex, 41, &id);
    for (size_t i = 0; i < c->n_parents; i++)
        git_commit_free(parents[i]);
    free(parents);
    git_signature_free(author);
    git_signature_free(committer);
    git_tree_free(tree);
    return r < 0 ? -1 : 0;
}

bool repo_get_ref(struct repo *g, const char *name, char hex[41])
{
    git_oid id;
    if (git_reference_name_to_id(&id, g->repo, name) < 0)
        return false;
    git_oid_tostr(hex, 41, &id);
    return true;
}

int repo_set_ref(struct repo *g, const char *name, const char *hex, struct err *e)
{
    char now[41];
    if (repo_get_ref(g, name, now) && strcmp(now, hex) == 0)
        return 0;
    git_oid id;
    git_reference *ref = NULL;
    int r = git_oid_fromstr(&id, hex);
    if (r == 0)
        r = git_reference_create(&ref, g->repo, name, &id, 1, "ksmith");
    git_reference_free(ref);
    if (r == GIT_ELOCKED)
        return fail(e, "Another git program holds the ref; remove a stale .lock file if there is none.", name);
    return r < 0 ? fail(e, "", name) : 0;
}

bool repo_identity(char name[128], char email[128])
{
    // Asked of the user's own configuration, which everything else here ignores.
    static const char *const files[] = {"/.gitconfig", "/.config/git/config"};
    start();
    const char *home = getenv("HOME");
    const char *n = getenv("GIT_AUTHOR_NAME"), *m = getenv("GIT_AUTHOR_EMAIL");
    name[0] = email[0] = 0;
    for (size_t i = 0; i < 2 && home; i++) {
        char *path = xasprintf("%s%s", home, files[i]);
        git_config *config = NULL;
        git_buf value = {0};
        if (git_config_open_ondisk(&config, path) == 0) {
            if (!name[0] && git_config_get_string_buf(&value, config, "user.name") == 0)
                snprintf(name, 128, "%s", value.ptr);
            git_buf_dispose(&value);
            if (!email[0] && git_config_get_string_buf(&value, config, "user.email") == 0)
                snprintf(email, 128, "%s", value.ptr);
            git_buf_dispose(&value);
        }
        git_config_free(config);
        free(path);
    }
    if (n && *n)
        snprintf(name, 128, "%s", n);
    if (m && *m)
        snprintf(email, 128, "%s", m);
    return name[0] && email[0];
}

void repo_blob_id(const char *text, size_t n, char hex[41])
{
    git_oid id;
    start();
    hex[0] = 0;
    if (git_odb_hash(&id, text, n, GIT_OBJECT_BLOB) == 0)
        git_oid_tostr(hex, 41, &id);
}
