#include "cpu/compile_parts.h"

#include "base/cflags.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/proc.h"
#include "cpu/elf.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEEP_BINARIES = 256, KEEP_FAILURES = 1024, MAX_SOURCE = 4 << 20 };

// A build that was done before: a binary, or the log of a failure.
struct made {
    unsigned char key[32];
    bool failed;
    uint64_t used; // for forgetting the one that was not asked for longest
    struct binary binary;
    char *log;
};

struct compiler {
    const struct task *task;
    char *path, *version;
    struct compile_place place;
    char *kernel_dir; // where the kernel stands in the project: its local headers are beside it
    VEC(struct made) made;
    uint64_t clock, serial;
};

// One build, before it is a command line.
struct build {
    const char *name; // file name in messages
    const char *source;
    const char *root;         // what local headers must be inside of
    const char *dir;          // for local headers
    const char *const *fixed; // flags of ours, NULL-terminated
    const char *const *flags; // of the candidate
    size_t nflags;
    bool of_task; // with the task's cflags, defines and folders
};

// A program of that name on PATH, or NULL.
static char *on_path(const char *name)
{
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? realpath(name, NULL) : NULL;
    const char *path = getenv("PATH");
    for (const char *p = path ? path : "/usr/bin:/bin"; *p; p += *p == ':') {
        size_t n = strcspn(p, ":");
        char *full = xasprintf("%.*s/%s", (int)n, p, name);
        if (n && *p == '/' && access(full, X_OK) == 0 && !io_is_dir(full))
            return full;
        free(full);
        p += n;
    }
    return NULL;
}

static char *find_compiler(struct err *e)
{
    static const char hint[] = "Install gcc (apt-get install gcc), or set CC to the name of a C compiler.";
    static const char *const names[] = {"gcc", "cc", "clang"};
    const char *cc = getenv("CC");
    char *found = cc && *cc ? on_path(cc) : NULL;
    if (!found && cc && *cc) { // never another one than the user named
        err_set(e, ERR_USAGE, hint, "CC=%.200s is no program that can be run", cc);
        return NULL;
    }
    for (size_t i = 0; !found && i < countof(names); i++)
        found = on_path(names[i]);
    if (!found)
        err_set(e, ERR_FAIL, hint, "there is no C compiler on this machine");
    return found;
}

// "gcc 12.2.0" from "gcc (Debian 12.2.0-14) 12.2.0", "clang 14.0.6" from "Debian clang version 14.0.6".
static char *version_words(const char *text)
{
    char *line = xstrndup(text, strcspn(text, "\n")), *mark = strstr(line, "version "),
         *last = strrchr(line, ' ');
    const char *number = mark ? mark + strlen("version ") : last ? last + 1 : "";
    char *out =
        xasprintf("%s %.*s", strstr(line, "clang") ? "clang" : "gcc", (int)strcspn(number, " "), number);
    free(line);
    return out;
}

static int read_version(struct compiler *c, struct err *e)
{
    const char *argv[] = {c->path, "--version", NULL};
    struct str out = {0};
    int r = compile_run(&c->place, argv, NULL, &out, e);
    if (r > 0)
        r = err_set(e, ERR_FAIL, "Install gcc (apt-get install gcc), or set CC to a C compiler.",
                    "%s does not run: %.200s", c->path, str_c(&out));
    if (r == 0)
        c->version = version_words(str_c(&out));
    str_free(&out);
    return r;
}

static char *folder_of(const char *project, const char *file)
{
    char *path = io_join(project, file), *slash = strrchr(path, '/');
    if (slash && slash != path)
        *slash = 0;
    return path;
}

int compiler_open(const struct task *t, struct compiler **out, struct err *e)
{
    *out = NULL;
    char *path = find_compiler(e);
    if (!path)
        return -1;
    struct compiler *c = xcalloc(1, sizeof *c);
    c->task = t;
    c->path = path;
    if (compile_place_init(&c->place, path, e) < 0) {
        compiler_close(c);
        return -1;
    }
    const char *project = t->project ? t->project : t->dir;
    c->kernel_dir = folder_of(project, t->kernel_file ? t->kernel_file : "kernel.c");
    for (size_t i = 0; i < t->include.n; i++) {
        char *dir = io_join(project, t->include.v[i]);
        compile_grant_folder(dir, &c->place.readable);
        free(dir);
    }
    if (read_version(c, e) < 0) {
        compiler_close(c);
        return -1;
    }
    *out = c;
    return 0;
}

void compiler_close(struct compiler *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->made.n; i++)
        free(c->made.v[i].log);
    vec_free(&c->made);
    compile_place_free(&c->place);
    free(c->kernel_dir);
    free(c->path);
    free(c->version);
    free(c);
}

const char *compiler_version(const struct compiler *c)
{
    return c->version;
}
const struct task *compiler_task(const struct compiler *c)
{
    return c->task;
}
const char *compiler_path(const struct compiler *c)
{
    return c->path;
}

static const char *project_of(const struct compiler *c)
{
    return c->task->project ? c->task->project : c->task->dir;
}

// The command line; the strings that had to be made are also in owned.
typedef VEC(const char *) words;
static void add_made(words *w, strings *owned, char *s)
{
    vec_push(owned, s);
    vec_push(w, s);
}
static void compile_words(const struct compiler *c, const struct build *b, words *w, strings *owned)
{
    const struct task *t = c->task;
    vec_push(w, c->path);
    vec_push(w, "-x");
    vec_push(w, "c");
    for (size_t i = 0; b->of_task && i < t->cflags.n; i++)
        vec_push(w, t->cflags.v[i]);
    for (size_t i = 0; b->of_task && i < t->define.n; i++)
        add_made(w, owned, xasprintf("-D%s", t->define.v[i]));
    for (size_t i = 0; i < b->nflags; i++)
        vec_push(w, b->flags[i]);
    for (const char *const *f = b->fixed; f && *f; f++)
        vec_push(w, *f);
    if (b->dir) {
        vec_push(w, "-iquote");
        vec_push(w, b->dir);
    }
    for (size_t i = 0; b->dir && i < t->include.n; i++) {
        char *dir = io_join(project_of(c), t->include.v[i]);
        vec_push(owned, dir);
        add_made(w, owned, xasprintf("-I%s", dir));
    }
    vec_push(w, "-fPIC");
    vec_push(w, "-fvisibility=default");
    vec_push(w, "-fdiagnostics-color=never");
    add_made(w, owned, xasprintf("-ffile-prefix-map=%s/=", project_of(c)));
    vec_push(w, "-ffile-prefix-map=./=");
    vec_push(w, "-c");
    vec_push(w, "-o");
    vec_push(w, "k.o");
    add_made(w, owned, xasprintf("./%s", b->name));
}

static bool has_flag(const struct compiler *c, const struct build *b, bool (*is)(const char *flag))
{
    for (size_t i = 0; b->of_task && i < c->task->cflags.n; i++)
        if (is(c->task->cflags.v[i]))
            return true;
    for (size_t i = 0; i < b->nflags; i++)
        if (is(b->flags[i]))
            return true;
    return false;
}
static bool is_lto(const char *flag)
{
    return str_starts(flag, "-flto");
}

// Without the start files: they bring constructors of their own, and under -ffast-math one that turns
// denormals off for the whole process at dlopen.
static void link_words(const struct compiler *c, const struct build *b, words *w)
{
    static const char *const fixed[] = {
        "-shared", "-nostartfiles", "-Wl,--build-id=none,-z,now,--no-undefined", "-o", "k.so", "k.o"};
    vec_push(w, c->path);
    for (size_t i = 0; i < countof(fixed); i++)
        vec_push(w, fixed[i]);
    if (has_flag(c, b, is_lto)) {
        for (size_t i = 0; i < c->task->cflags.n; i++)
            vec_push(w, c->task->cflags.v[i]);
    }
    if (has_flag(c, b, cflags_threads))
        vec_push(w, "-fopenmp");
    vec_push(w, "-lm");
    vec_push(w, NULL);
}

static void make_key(const struct compiler *c, const struct build *b, const words *w, const strings *headers,
                     unsigned char key[32])
{
    struct sha256 h;
    sha256_init(&h);
    sha256_add(&h, c->version, strlen(c->version) + 1);
    for (size_t i = 0; i < w->n; i++)
        sha256_add(&h, w->v[i], strlen(w->v[i]) + 1);
    sha256_add(&h, b->source, strlen(b->source) + 1);
    for (size_t i = 0; i < headers->n; i++) {
        struct stat st;
        if (stat(headers->v[i], &st) < 0)
            continue;
        int64_t what[3] = {(int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec};
        sha256_add(&h, headers->v[i], strlen(headers->v[i]) + 1);
        sha256_add(&h, what, sizeof what);
    }
    sha256_end(&h, key);
}

static struct made *find_made(struct compiler *c, const unsigned char key[32])
{
    for (size_t i = 0; i < c->made.n; i++)
        if (memcmp(c->made.v[i].key, key, 32) == 0)
            return &c->made.v[i];
    return NULL;
}

static void forget_oldest(struct compiler *c, bool failed, size_t keep)
{
    size_t n = 0, oldest = 0;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < c->made.n; i++) {
        const struct made *m = &c->made.v[i];
        n += m->failed == failed;
        if (m->failed == failed && m->used < least) {
            least = m->used;
            oldest = i;
        }
    }
    if (n < keep)
        return;
    if (!failed)
        unlink(c->made.v[oldest].binary.path);
    free(c->made.v[oldest].log);
    vec_remove(&c->made, oldest);
}

static void remember(struct compiler *c, const unsigned char key[32], const struct binary *b, const char *log)
{
    forget_oldest(c, log != NULL, log ? KEEP_FAILURES : KEEP_BINARIES);
    struct made m = {.failed = log != NULL, .used = ++c->clock};
    memcpy(m.key, key, 32);
    if (log)
        m.log = xstrdup(log);
    else
        m.binary = *b;
    vec_push(&c->made, m);
}

// Moves the finished object out of the compiler's reach and names it by its contents.
static int adopt(struct compiler *c, struct binary *out, struct err *e)
{
    char *made = io_join(c->place.build, "k.so");
    snprintf(out->path, sizeof out->path, "%s/b%llu.so", c->place.work, (unsigned long long)++c->serial);
    struct elf f = {0};
    int r = rename(made, out->path) < 0 ? err_sys(e, "", "cannot move %s", made) : elf_open(out->path, &f, e);
    free(made);
    if (r < 0)
        return r;
    elf_identity(&f, out->id);
    for (size_t i = 0; i < f.sections; i++) {
        const Elf64_Shdr *s = elf_section(&f, i);
        if (s->sh_flags & SHF_EXECINSTR)
            out->text_bytes += s->sh_size;
    }
    elf_close(&f);
    return 0;
}

static int clear_build(struct compiler *c, struct err *e)
{
    if (io_remove(c->place.build, e) < 0)
        return -1;
    return mkdir(c->place.build, 0700) < 0
               ? err_sys(e, "Start the run again.", "cannot make %s", c->place.build)
               : 0;
}

static int write_source(struct compiler *c, const struct build *b, struct err *e)
{
    char *path = io_join(c->place.build, b->name);
    FILE *f = fopen(path, "we");
    size_t n = strlen(b->source);
    bool ok = f && fwrite(b->source, 1, n, f) == n;
    if (f)
        ok = fclose(f) == 0 && ok;
    int r = ok ? 0
               : err_sys(e, "Free some space, or set TMPDIR to a folder on another disk.", "cannot write %s",
                         path);
    free(path);
    return r;
}

static int compile_and_link(struct compiler *c, const struct build *b, const words *w, const strings *headers,
                            struct binary *out, struct str *log, struct err *e)
{
    struct str raw = {0};
    words link = {0};
    link_words(c, b, &link);
    int r = clear_build(c, e);
    if (r == 0)
        r = write_source(c, b, e);
    if (r == 0)
        r = compile_run(&c->place, w->v, headers, &raw, e);
    if (r == 0) {
        str_clear(&raw); // warnings of a good build are nobody's concern here
        r = compile_run(&c->place, link.v, NULL, &raw, e);
    }
    if (r == 0)
        r = adopt(c, out, e);
    if (r > 0)
        compile_log_distil(str_c(&raw), raw.len, c->place.build, project_of(c), log);
    if (r > 0 && !log->len)
        str_add(log, "error: the compiler failed and said nothing\n");
    vec_free(&link);
    str_free(&raw);
    return r;
}

static int build(struct compiler *c, const struct build *b, struct binary *out, struct str *log,
                 struct err *e)
{
    *out = (struct binary){0};
    str_clear(log);
    if (strlen(b->source) > MAX_SOURCE) {
        str_add(log, "error: the source is larger than 4 MiB\n");
        return 1;
    }
    words w = {0};
    strings owned = {0}, headers = {0};
    unsigned char key[32];
    compile_words(c, b, &w, &owned);
    if (b->dir)
        compile_grant_headers(b->source, b->dir, b->root, &c->task->include, &headers);
    make_key(c, b, &w, &headers, key);
    vec_push(&w, NULL);
    struct made *before = find_made(c, key);
    int r = 0;
    if (before) {
        before->used = ++c->clock;
        *out = before->binary;
        out->cached = true;
        str_add(log, before->failed ? before->log : "");
        r = before->failed;
    } else {
        r = compile_and_link(c, b, &w, &headers, out, log, e);
        if (r >= 0)
            remember(c, key, out, r ? str_c(log) : NULL);
    }
    vec_free(&w);
    compile_strings_free(&owned);
    compile_strings_free(&headers);
    return r;
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "kernel.c";
}

int compiler_build(struct compiler *c, const char *source, const char *const *flags, size_t n,
                   struct binary *out, struct str *log, struct err *e)
{
    *out = (struct binary){0};
    for (size_t i = 0; i < n; i++) {
        struct err why = {0};
        int bad = cflags_check(flags[i], c->task->allow_fast_math, &why);
        if (bad == 0 && cflags_threads(flags[i]) && !c->task->allow_threads)
            bad = err_set(&why, ERR_USAGE, "", "%s needs `allow = threads` in the task", flags[i]);
        if (bad < 0) {
            str_clear(log);
            str_addf(log, "error: %s\n", why.msg);
            return 1;
        }
    }
    struct build b = {.name = base_name(c->task->kernel_file),
                      .source = source,
                      .root = project_of(c),
                      .dir = c->kernel_dir,
                      .flags = flags,
                      .nflags = n,
                      .of_task = true};
    return build(c, &b, out, log, e);
}

int compiler_reference(struct compiler *c, struct binary *out, struct str *log, struct err *e)
{
    static const char *const fixed[] = {"-O2", "-Dreal=double", "-include", "tgmath.h", NULL};
    *out = (struct binary){0};
    const char *file = c->task->ref_file;
    if (!file)
        return err_set(e, ERR_USAGE, "Write `c = ref.c:function` under [reference].",
                       "the task has no reference in C");
    char *path = io_join(c->task->dir, file), *dir = folder_of(c->task->dir, file);
    struct str text = {0};
    int r = io_read_file(path, MAX_SOURCE, &text, e);
    if (r == 0) {
        struct build b = {.name = base_name(file),
                          .source = str_c(&text),
                          .root = c->task->dir,
                          .dir = dir,
                          .fixed = fixed};
        r = build(c, &b, out, log, e);
    }
    str_free(&text);
    free(path);
    free(dir);
    return r;
}

int compiler_text(struct compiler *c, const char *name, const char *source, const char *const *extra,
                  size_t n, struct binary *out, struct str *log, struct err *e)
{
    struct build b = {.name = name, .source = source, .flags = extra, .nflags = n};
    return build(c, &b, out, log, e);
}

void compiler_command(const struct compiler *c, const char *const *flags, size_t n, struct str *out)
{
    struct build b = {.name = base_name(c->task->kernel_file),
                      .root = project_of(c),
                      .dir = c->kernel_dir,
                      .flags = flags,
                      .nflags = n,
                      .of_task = true};
    words w = {0}, link = {0};
    strings owned = {0};
    compile_words(c, &b, &w, &owned);
    link_words(c, &b, &link);
    for (size_t i = 0; i < w.n; i++)
        str_addf(out, "%s%s", i ? " " : "", w.v[i]);
    str_add(out, "\n");
    for (size_t i = 0; i + 1 < link.n; i++)
        str_addf(out, "%s%s", i ? " " : "", link.v[i]);
    str_add(out, "\n");
    vec_free(&w);
    vec_free(&link);
    compile_strings_free(&owned);
}
