// Which files of the project go into the lineage: the kernel file and the local headers it includes.
#include "base/io.h"
#include "session/lineage_private.h"

#include <libgen.h>
#include <sys/stat.h>

enum { MOST_FILES = 64, MOST_BYTES = 8 << 20 };

struct project {
    struct lineage *l;
    char *top; // real path, without '/' at its end; paths are relative to it
    VEC(struct lineage_file) files;
    struct err *e;
};

static int add_file(struct project *p, const char *real);

// The name in `#include "name"` at s, malloc'ed; NULL where the line is none.
static char *included(const char *s)
{
    s += strspn(s, " \t");
    if (*s++ != '#')
        return NULL;
    s += strspn(s, " \t");
    if (!str_starts(s, "include"))
        return NULL;
    s += 7 + strspn(s + 7, " \t");
    size_t n = *s == '"' ? strcspn(s + 1, "\"\n") : 0;
    return n && s[1 + n] == '"' ? xstrndup(s + 1, n) : NULL;
}

static int add_included(struct project *p, const char *from, const char *text)
{
    char *copy = xstrdup(from), *dir = dirname(copy);
    int r = 0;
    for (const char *line = text; r == 0 && line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char *name = included(line);
        if (!name)
            continue;
        char *path = io_join(dir, name), *real = realpath(path, NULL);
        size_t n = strlen(p->top);
        // What lies outside the project or is not there (a system's header) is the compiler's business.
        if (real && strncmp(real, p->top, n) == 0 && real[n] == '/')
            r = add_file(p, real);
        free(real);
        free(path);
        free(name);
    }
    free(copy);
    return r;
}

static int add_file(struct project *p, const char *real)
{
    const char *relative = real + strlen(p->top) + 1;
    for (size_t i = 0; i < p->files.n; i++)
        if (strcmp(p->files.v[i].path, relative) == 0)
            return 0;
    if (p->files.n >= MOST_FILES)
        return 0;
    struct str text = {0};
    struct stat st;
    struct lineage_file f = {.executable = stat(real, &st) == 0 && (st.st_mode & 0100)};
    int r = io_read_file(real, MOST_BYTES, &text, p->e);
    if (r == 0)
        r = lineage_blob(p->l, str_c(&text), text.len, f.blob, p->e);
    if (r == 0) {
        f.path = xstrdup(relative);
        vec_push(&p->files, f);
        r = add_included(p, real, str_c(&text));
    }
    str_free(&text);
    return r;
}

int lineage_project(struct lineage *l, const char *root, const char *kernel, struct lineage_file **files,
                    size_t *n, char head[41], struct err *e)
{
    char commit[41], *path = io_join(root, kernel), *real = realpath(path, NULL);
    *files = NULL;
    *n = 0;
    int r = real ? 0 : err_sys(e, "", "cannot read %s", path);
    struct project p = {.l = l, .e = e};
    if (r == 0) {
        char *work = repo_worktree(root, commit);
        p.top = realpath(work ? work : root, NULL);
        free(work);
        size_t len = p.top ? strlen(p.top) : 0;
        if (!p.top || strncmp(real, p.top, len) != 0 || real[len] != '/')
            r = err_set(e, ERR_USAGE, "Set project = to the folder that holds the kernel.",
                        "the kernel %s lies outside the project %s", real, root);
        else
            r = add_file(&p, real);
        if (head)
            memcpy(head, commit, 41);
    }
    free(p.top);
    free(path);
    free(real);
    if (r < 0) {
        lineage_files_free(p.files.v, p.files.n);
        return r;
    }
    *files = p.files.v;
    *n = p.files.n;
    return 0;
}

void lineage_files_free(struct lineage_file *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(files[i].path);
    free(files);
}
