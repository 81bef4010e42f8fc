#include "models/exec.h"

#include "base/io.h"
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_OUTPUT = 4 << 20, MAX_SOURCE = 4 << 20, MAX_SHOWN = 2000 };

struct exec_call {
    struct loop *loop;
    struct run *run;
    char *dir, *parent; // parent: the text it was given
    const char *suffix;
    int timeout_s;
    exec_fn *fn;
    void *user;
};

int exec_load(struct exec_command *x, const char *name, const json *section, const char *path,
              err_list *errors)
{
    size_t before = errors->n;
    *x = (struct exec_command){
        .name = xstrdup(name), .timeout_s = 600, .parallel = 1, .weight = 1, .usd = NAN};
    const struct {
        const char *key;
        int *whole;
        double *real;
        double low, high;
    } numbers[] = {{"timeout", &x->timeout_s, NULL, 1, 86400},
                   {"parallel", &x->parallel, NULL, 1, 64},
                   {"weight", NULL, &x->weight, 0, 1e6},
                   {"usd", NULL, &x->usd, 0, 1e5}};
    for (const json *j = json_first(section); j; j = json_next(j)) {
        const char *key = json_key(j), *value = json_string(j);
        bool known = str_eq(key, "command");
        for (size_t i = 0; i < countof(numbers) && value; i++) {
            if (!str_eq(key, numbers[i].key))
                continue;
            char *end;
            double v = strtod(value, &end);
            known = true;
            if (end == value || *end || !(v >= numbers[i].low && v <= numbers[i].high))
                err_list_add(errors, path, 0, 0, "", "[exec %s] %s = %s: expected a number from %g to %g",
                             name, key, value, numbers[i].low, numbers[i].high);
            else if (numbers[i].whole)
                *numbers[i].whole = (int)v;
            else
                *numbers[i].real = v;
        }
        if (!known)
            err_list_add(errors, path, 0, 0, "command, timeout, parallel, weight or usd",
                         "[exec %s] unknown key %s", name, key);
    }
    if (json_str(section, "command"))
        x->command = xstrdup(json_str(section, "command"));
    else
        err_list_add(errors, path, 0, 0, "Example: command = my-agent \"$(cat prompt.md)\"",
                     "[exec %s] has no command", name);
    return errors->n > before ? -1 : 0;
}

void exec_free(struct exec_command *x)
{
    free(x->name);
    free(x->command);
    *x = (struct exec_command){0};
}

// Not synced: the folder does not outlive the run.
static int put_file(const char *dir, const char *name, const char *suffix, const char *text, struct err *e)
{
    if (!text)
        return 0;
    char *path = xasprintf("%s/%s%s", dir, name, suffix);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 || io_write_all(fd, text, strlen(text)) < 0 ? err_sys(e, "", "cannot write %s", path) : 0;
    if (fd >= 0)
        close(fd);
    free(path);
    return r;
}

// A file that the command left; false where there is none, or it is no regular file (a link could name any
// file), or empty.
static bool take_file(const char *dir, const char *name, const char *suffix, struct str *out)
{
    char *path = xasprintf("%s/%s%s", dir, name, suffix);
    struct stat st;
    str_clear(out);
    bool good = lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
                io_read_file(path, MAX_SOURCE, out, NULL) == 0;
    free(path);
    return good;
}

static void call_free(struct exec_call *c)
{
    if (c->dir)
        io_remove(c->dir, NULL);
    free(c->dir);
    free(c->parent);
    free(c);
}

static void add_json(struct str *out, const char *description, const char *key, const struct str *code)
{
    json *o = json_object();
    json_put_str(o, "description", description);
    json_put_strn(o, key, str_c(code), code->len);
    json_print(o, out);
    json_free(o);
}

// The end of what it printed, which is where programs say what came of it.
static void shown_end(const struct run_result *r, struct str *out)
{
    const struct str *parts[] = {&r->out, &r->err};
    for (size_t i = 0; i < countof(parts); i++) {
        size_t n = parts[i]->len, from = n > MAX_SHOWN ? n - MAX_SHOWN : 0;
        text_clean(out, str_c(parts[i]) + from, n - from, TEXT_BLOCK);
    }
    log_redact(out);
}

static void collect(const struct exec_call *c, const struct run_result *r, struct exec_result *out)
{
    struct str text = {0};
    shown_end(r, &out->printed);
    const char *said = str_c(&out->printed);
    if (take_file(c->dir, "candidate", c->suffix, &text))
        add_json(&out->answer, said, "source", &text);
    else if (take_file(c->dir, "parent", c->suffix, &text) && !str_eq(str_c(&text), c->parent))
        add_json(&out->answer, said, "source", &text);
    else if (take_file(c->dir, "candidate", ".patch", &text) ||
             take_file(c->dir, "candidate", ".diff", &text))
        add_json(&out->answer, said, "patch", &text);
    else
        str_addn(&out->answer, str_c(&r->out), r->out.len);
    str_free(&text);
}

static void on_end(void *user, const struct run_result *r)
{
    struct exec_call *c = user;
    struct exec_result out = {.seconds = r->seconds};
    c->run = NULL;
    collect(c, r, &out);
    out.ok = r->end.status == 0 && !r->end.timed_out && out.answer.len > 0;
    if (!out.ok) {
        struct str how = {0};
        proc_describe(&r->end, &how);
        const char *last = strrchr(str_c(&out.printed), '\n');
        while (last && last > out.printed.s && last[1] == 0) { // the last line that says something
            out.printed.s[last - out.printed.s] = 0;
            last = strrchr(out.printed.s, '\n');
        }
        err_set(&out.err, ERR_FAIL,
                r->end.timed_out ? "Raise timeout = in its section." : "Run the command by hand.",
                "%s%s%.200s", r->end.status == 0 && !r->end.timed_out ? "it left no candidate" : str_c(&how),
                out.printed.len ? ": " : "", last ? last + 1 : str_c(&out.printed));
        str_free(&how);
    }
    c->fn(c->user, &out);
    str_free(&out.answer);
    str_free(&out.printed);
    call_free(c);
}

struct exec_call *exec_start(struct loop *loop, const struct exec_command *x, const struct exec_files *f,
                             exec_fn *fn, void *user, struct err *e)
{
    struct exec_call *c = xcalloc(1, sizeof *c);
    *c = (struct exec_call){.loop = loop, .fn = fn, .user = user, .timeout_s = x->timeout_s};
    c->suffix = f->cuda ? ".cu" : ".c";
    c->parent = xstrdup(f->parent);
    c->dir = io_temp_dir("ksmith-exec", e);
    int r = c->dir ? 0 : -1;
    const struct {
        const char *name, *suffix, *text;
    } files[] = {{"parent", c->suffix, f->parent},
                 {"task", ".md", f->task},
                 {"feedback", ".json", f->feedback},
                 {"prompt", ".md", f->prompt},
                 {"hint", ".txt", f->hint}};
    for (size_t i = 0; i < countof(files) && r == 0; i++)
        r = put_file(c->dir, files[i].name, files[i].suffix, files[i].text, e);
    if (r == 0) {
        const char *const argv[] = {"sh", "-c", x->command, NULL};
        c->run = run_start(loop,
                           &(struct run_spec){.argv = argv,
                                              .dir = c->dir,
                                              .limit = MAX_OUTPUT,
                                              .timeout_ms = x->timeout_s * 1000,
                                              .fn = on_end,
                                              .user = c},
                           e);
    }
    if (!c->run) {
        call_free(c);
        return NULL;
    }
    return c;
}

void exec_cancel(struct exec_call *c)
{
    run_cancel(c->run);
    call_free(c);
}
