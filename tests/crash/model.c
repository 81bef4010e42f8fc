#include "model.h"

#include "base/hash.h"
#include "base/io.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const variant_names[VARIANTS] = {"kept", "strict", "names", "torn", "zeros", "mixed"};

bool op_read(const char **p, const char *end, struct op *op)
{
    *op = (struct op){0};
    const char *nl = *p < end ? memchr(*p, '\n', (size_t)(end - *p)) : NULL;
    if (!nl)
        return false;
    char *line = xstrndup(*p, (size_t)(nl - *p));
    unsigned long long ino = 0;
    long long at = 0;
    int used = 0;
    bool ok = sscanf(line, "%11s %llu %lld %zu %n", op->name, &ino, &at, &op->n, &used) == 4 && used > 0;
    if (ok && (size_t)(end - nl - 1) >= op->n) {
        op->ino = ino;
        op->at = at;
        op->data = nl + 1;
        char *tab = strchr(line + used, '\t');
        op->b = tab ? xstrdup(tab + 1) : NULL;
        op->a = tab ? xstrndup(line + used, (size_t)(tab - line - used)) : xstrdup(line + used);
        *p = nl + 1 + op->n;
    } else {
        ok = false;
    }
    free(line);
    return ok;
}

void op_free(struct op *op)
{
    free(op->a);
    free(op->b);
}

void model_init(struct model *m, const char *prefix)
{
    *m = (struct model){.root = xcalloc(1, sizeof *m->root), .prefix = xstrdup(prefix)};
    m->root->dir = true;
}

static struct entry *find(entry_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].name, name) == 0)
            return &list->v[i];
    return NULL;
}

// The folder that a path's last part is in; *name gets that part. "x/.." is understood. NULL where unknown.
static struct node *folder_of(const struct model *m, const char *path, char **name)
{
    struct node *at = m->root, *trail[64] = {m->root};
    int depth = 0;
    size_t skip = strlen(m->prefix);
    *name = NULL;
    if (strncmp(path, m->prefix, skip) != 0)
        return NULL;
    const char *p = path + skip + strspn(path + skip, "/");
    for (;;) {
        size_t n = strcspn(p, "/");
        const char *next = p + n + strspn(p + n, "/");
        char *part = xstrndup(p, n);
        if (!*next && strcmp(part, "..") != 0) {
            *name = part;
            return at;
        }
        if (strcmp(part, "..") == 0) {
            depth = depth ? depth - 1 : 0;
            at = trail[depth];
        } else {
            struct entry *e = find(&at->entries, part);
            at = e && e->node->dir ? e->node : NULL;
        }
        free(part);
        if (!at || depth > 60)
            return NULL;
        if (at != trail[depth])
            trail[++depth] = at;
        if (!*next) {
            *name = xstrdup("");
            return at;
        }
        p = next;
    }
}

static struct node *by_inode(const struct model *m, uint64_t ino)
{
    for (size_t i = m->inodes.n; i-- > 0;)
        if (m->inodes.v[i].ino == ino)
            return m->inodes.v[i].node;
    return NULL;
}

static void put(struct node *dir, const char *name, struct node *node)
{
    struct entry *e = find(&dir->entries, name);
    if (e)
        e->node = node;
    else
        vec_push(&dir->entries, (struct entry){xstrdup(name), node});
}

static struct node *take(struct node *dir, const char *name)
{
    for (size_t i = 0; i < dir->entries.n; i++)
        if (strcmp(dir->entries.v[i].name, name) == 0) {
            struct node *node = dir->entries.v[i].node;
            free(dir->entries.v[i].name);
            vec_remove(&dir->entries, i);
            return node;
        }
    return NULL;
}

static void create(struct model *m, const struct op *op, bool dir)
{
    char *name;
    struct node *in = folder_of(m, op->a, &name);
    if (in && *name) {
        // Never freed: earlier synced entries may still name a node.
        struct node *node = xcalloc(1, sizeof *node);
        node->dir = dir;
        put(in, name, node);
        if (!dir)
            vec_push(&m->inodes, (struct known){op->ino, node});
    }
    free(name);
}

static void move(struct model *m, const struct op *op)
{
    char *from, *to;
    struct node *a = folder_of(m, op->a, &from), *b = folder_of(m, op->b, &to);
    bool copy = strcmp(op->name, "link") == 0;
    struct entry *e = a ? find(&a->entries, from) : NULL;
    if (e && b) {
        struct node *node = e->node;
        if (!copy)
            take(a, from);
        put(b, to, node);
    }
    free(from);
    free(to);
}

static void sync_folder(struct model *m, const struct op *op)
{
    char *name;
    struct node *dir = folder_of(m, op->a, &name);
    if (dir && *name) {
        struct entry *e = find(&dir->entries, name);
        dir = e ? e->node : NULL;
    }
    free(name);
    if (!dir || !dir->dir)
        return;
    for (size_t i = 0; i < dir->synced_entries.n; i++)
        free(dir->synced_entries.v[i].name);
    dir->synced_entries.n = 0;
    for (size_t i = 0; i < dir->entries.n; i++)
        vec_push(&dir->synced_entries,
                 (struct entry){xstrdup(dir->entries.v[i].name), dir->entries.v[i].node});
}

static void change_bytes(struct model *m, const struct op *op)
{
    struct node *f = by_inode(m, op->ino);
    if (!f)
        return;
    size_t at = (size_t)op->at;
    if (strcmp(op->name, "sync") == 0) {
        str_clear(&f->now);
        str_addn(&f->now, op->data, op->n);
        str_clear(&f->synced);
        str_addn(&f->synced, op->data, op->n);
        f->ever_synced = true;
        return;
    }
    size_t want = strcmp(op->name, "truncate") == 0 ? at : at + op->n;
    while (f->now.len < want)
        str_addc(&f->now, 0);
    if (strcmp(op->name, "truncate") == 0)
        f->now.len = at;
    else
        memcpy(f->now.s + at, op->data, op->n);
}

void model_apply(struct model *m, const struct op *op)
{
    const char *n = op->name;
    if (strcmp(n, "create") == 0 || strcmp(n, "mkdir") == 0) {
        create(m, op, n[0] == 'm');
    } else if (strcmp(n, "rename") == 0 || strcmp(n, "link") == 0) {
        move(m, op);
    } else if (strcmp(n, "unlink") == 0 || strcmp(n, "rmdir") == 0) {
        char *name;
        struct node *dir = folder_of(m, op->a, &name);
        if (dir)
            take(dir, name);
        free(name);
    } else if (strcmp(n, "syncdir") == 0) {
        sync_folder(m, op);
    } else {
        change_bytes(m, op);
    }
}

static void write_file(const struct node *f, const char *path, enum variant v)
{
    struct str out = {0};
    const struct str *from = v == KEPT || v == TORN || v == ZEROS ? &f->now : &f->synced;
    str_addn(&out, str_c(from), from->len);
    if (v == TORN && f->now.len > f->synced.len)
        out.len = f->synced.len + (f->now.len - f->synced.len) / 2;
    // A file that was overwritten in place may have any of both; the longer tail is what matters here.
    for (size_t i = f->synced.len; v == ZEROS && i < out.len; i++)
        out.s[i] = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || io_write_all(fd, str_c(&out), out.len) < 0)
        perror(path);
    close(fd);
    str_free(&out);
}

static void write_dir(const struct node *d, const char *path, enum variant v, uint64_t *seed)
{
    *seed = hash_mix(*seed);
    bool durable = v == STRICT || (v == MIXED && *seed % 2);
    const entry_list *list = durable ? &d->synced_entries : &d->entries;
    mkdir(path, 0700);
    for (size_t i = 0; i < list->n; i++) {
        char *sub = io_join(path, list->v[i].name);
        *seed = hash_mix(*seed);
        if (list->v[i].node->dir)
            write_dir(list->v[i].node, sub, v, seed);
        else
            write_file(list->v[i].node, sub, v == MIXED ? (enum variant)(*seed % MIXED) : v);
        free(sub);
    }
}

void model_write(const struct model *m, const char *path, enum variant v, uint64_t seed)
{
    write_dir(m->root, path, v, &seed);
}
