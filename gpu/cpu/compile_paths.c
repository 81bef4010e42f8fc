// Which of the user's files a compiler may read.
#include "cpu/compile_parts.h"

#include "base/io.h"

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 8, MAX_GRANTS = 1024, MAX_ENTRIES = 20000, MAX_HEADERS = 64, MAX_HEADER_BYTES = 1 << 20 };

// Whether nothing below dir begins with a dot or leaves it by a link, so that the folder can be granted as
// one.
static bool plain_tree(const char *dir, int depth, int *entries)
{
    DIR *d = depth < MAX_DEPTH ? opendir(dir) : NULL;
    bool ok = d != NULL;
    for (struct dirent *x; ok && (x = readdir(d));) {
        if (str_eq(x->d_name, ".") || str_eq(x->d_name, ".."))
            continue;
        ok = x->d_name[0] != '.' && ++*entries < MAX_ENTRIES;
        char *path = io_join(dir, x->d_name);
        struct stat st;
        if (ok && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            ok = plain_tree(path, depth + 1, entries);
        free(path);
    }
    if (d)
        closedir(d);
    return ok;
}

static void grant_below(const char *dir, int depth, strings *out)
{
    DIR *d = depth < MAX_DEPTH ? opendir(dir) : NULL;
    for (struct dirent *x; d && out->n < MAX_GRANTS && (x = readdir(d));) {
        if (x->d_name[0] == '.')
            continue;
        char *path = io_join(dir, x->d_name);
        struct stat st;
        int entries = 0;
        if (lstat(path, &st) < 0) {
            free(path);
        } else if (S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && plain_tree(path, depth + 1, &entries))) {
            vec_push(out, path);
        } else {
            if (S_ISDIR(st.st_mode))
                grant_below(path, depth + 1, out);
            free(path);
        }
    }
    if (d)
        closedir(d);
}

void compile_grant_folder(const char *dir, strings *out)
{
    grant_below(dir, 0, out);
}

// Only what is a header by its name: a candidate's #include must not quote other files of the project.
static bool is_header(const char *path)
{
    static const char *const ends[] = {".h", ".inc", ".inl", ".def", ".cuh", ".c"};
    for (size_t i = 0; i < countof(ends); i++)
        if (str_ends(path, ends[i]))
            return true;
    return false;
}

// The real path of a header that may be read, or NULL.
static char *inside(const char *path, const char *project)
{
    char *real = realpath(path, NULL), *root = realpath(project, NULL);
    struct stat st;
    size_t n = root ? strlen(root) : 0;
    bool ok = real && root && n > 1 && strncmp(real, root, n) == 0 && real[n] == '/' &&
              !strstr(real + n, "/.") && is_header(real) && stat(real, &st) == 0 && S_ISREG(st.st_mode);
    free(root);
    if (ok)
        return real;
    free(real);
    return NULL;
}

static bool listed(const strings *l, size_t from, const char *s)
{
    for (size_t i = from; i < l->n; i++)
        if (str_eq(l->v[i], s))
            return true;
    return false;
}

// The name in `#include "NAME"` at a line's start; malloc'ed, NULL where the line is another.
static char *included(const char *line)
{
    line += strspn(line, " \t");
    if (*line != '#')
        return NULL;
    line += 1 + strspn(line + 1, " \t");
    if (!str_starts(line, "include"))
        return NULL;
    line += 7 + strspn(line + 7, " \t");
    size_t n = *line == '"' ? strcspn(line + 1, "\"\n") : 0;
    return n && n < PATH_MAX && line[1 + n] == '"' ? xstrndup(line + 1, n) : NULL;
}

static void scan(const char *text, const char *dir, const char *project, const strings *include, size_t from,
                 strings *out)
{
    for (const char *line = text; line && out->n - from < MAX_HEADERS; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *name = included(line);
        for (size_t i = 0; name && i <= include->n; i++) {
            char *folder = i == 0 ? xstrdup(dir) : io_join(project, include->v[i - 1]);
            char *path = io_join(folder, name), *real = inside(path, project);
            free(folder);
            free(path);
            if (real && !listed(out, from, real)) {
                vec_push(out, real);
                real = NULL;
            }
            free(real);
        }
        free(name);
    }
}

void compile_grant_headers(const char *text, const char *dir, const char *project, const strings *include,
                           strings *out)
{
    size_t from = out->n;
    scan(text, dir, project, include, from, out);
    // The list grows while it is walked: headers of headers.
    for (size_t i = from; i < out->n; i++) {
        struct str s = {0};
        char *folder = xstrdup(out->v[i]);
        *strrchr(folder, '/') = 0;
        if (io_read_file(out->v[i], MAX_HEADER_BYTES, &s, NULL) == 0)
            scan(str_c(&s), folder, project, include, from, out);
        free(folder);
        str_free(&s);
    }
}
