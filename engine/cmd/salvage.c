// ksmith salvage: answers of models that could not be applied: read, repaired in the editor, or dropped.
#include "base/io.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/editor.h"
#include "cmd/look.h"
#include "cmd/show_text.h"
#include "models/apply.h"
#include "models/record.h"

#include <unistd.h>

// What stands above this line of the file that is edited is for the eyes only.
static const char scissors[] = "# ---- what stands below this line is tried again ----\n";

struct call {
    struct args *a;
    struct look *l;
    const char *dir; // DIR/.ksmith
    const char *tag;
    json *item; // of the tag
};

static const char *first_line(const char *s, char buf[80])
{
    snprintf(buf, 80, "%.*s", (int)strcspn(s, "\n"), s);
    return buf;
}

static int list(const struct call *c)
{
    json *all = salvage_list(c->dir);
    char buf[80];
    if (!json_count(all) && !args_flag(c->a, "json"))
        puts("nothing waits for repair");
    else if (!args_flag(c->a, "json"))
        printf("%6s %6s  %-16s %-8s %-40s %s\n", "n", "parent", "by", "form", "change", "problem");
    for (const json *x = json_first(all); x; x = json_next(x)) {
        if (args_flag(c->a, "json")) {
            show_json(x);
            continue;
        }
        printf("%6s %6lld  %-16.16s %-8.8s ", json_str_or(x, "tag", "?"),
               (long long)json_int(x, "parent", -1), json_str_or(x, "who", "?"), json_str_or(x, "kind", "?"));
        snprintf(buf, sizeof buf, "%-40.40s ", json_str_or(x, "name", ""));
        show_clean(buf, stdout);
        show_clean(first_line(json_str_or(x, "problem", ""), buf), stdout);
        putchar('\n');
    }
    json_free(all);
    return 0;
}

static void field(const char *name, const char *value)
{
    if (!value || !*value)
        return;
    printf("%-9s ", name);
    show_clean(value, stdout);
    putchar('\n');
}

static int show(const struct call *c)
{
    const char *body = json_str_or(c->item, "body", ""), *reply = json_str_or(c->item, "reply", "");
    const char *problem = json_str_or(c->item, "problem", ""),
               *about = json_str_or(c->item, "description", "");
    if (args_flag(c->a, "json")) {
        show_json(c->item);
        return 0;
    }
    printf("answer %s to a request about candidate %lld\n", c->tag,
           (long long)json_int(c->item, "parent", -1));
    field("by", json_str(c->item, "who"));
    field("change", json_str(c->item, "name"));
    if (*about)
        show_block(about, strlen(about), "  ", stdout);
    puts("problem:");
    show_block(problem, strlen(problem), "  ", stdout);
    puts(*body ? "what was read of it:" : "the answer:");
    show_block(*body ? body : reply, strlen(*body ? body : reply), "  | ", stdout);
    return 0;
}

static int drop(const struct call *c)
{
    struct err e = {0};
    if (salvage_drop(c->dir, c->tag, &e) < 0)
        return cmd_fail(&e);
    printf("dropped answer %s\n", c->tag);
    return 0;
}

// ---- repairing

// The file to edit: what is wrong, as remarks, then the change itself.
static void fill(const struct call *c, struct str *out)
{
    const char *problem = json_str_or(c->item, "problem", ""), *body = json_str_or(c->item, "body", "");
    str_addf(out, "# Answer %s of %s: %s\n#\n", c->tag, json_str_or(c->item, "who", "?"),
             json_str_or(c->item, "name", ""));
    for (const char *p = problem; *p;) {
        size_t n = strcspn(p, "\n");
        str_addf(out, "# %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
    str_addf(out,
             "#\n# Repair it: SEARCH/REPLACE blocks, a unified diff, or the whole kernel file. An empty rest "
             "leaves all as it is.\n# The source it starts from: ksmith show --source %lld\n",
             (long long)json_int(c->item, "parent", 0));
    str_add(out, scissors);
    str_add(out, *body ? body : json_str_or(c->item, "reply", ""));
}

static int edit_text(struct str *text, struct err *e)
{
    char *dir = io_temp_dir("ksmith-salvage", e), *path = dir ? io_join(dir, "answer.txt") : NULL;
    int r = path ? io_write_file(path, text->s, text->len, 0600, e) : -1;
    if (r == 0)
        r = editor_open(path, e);
    str_clear(text);
    if (r == 0)
        r = io_read_file(path, 8 << 20, text, e);
    if (dir)
        io_remove(dir, NULL);
    free(path);
    free(dir);
    const char *cut = strstr(str_c(text), scissors);
    if (cut)
        str_splice(text, 0, (size_t)(cut - text->s) + sizeof scissors - 1, "", 0);
    return r;
}

// What was repaired so far is kept when it still does not apply.
static void keep(const struct call *c, const char *text, const char *problem)
{
    json *o = json_object();
    for (const json *x = json_first(c->item); x; x = json_next(x))
        if (!str_eq(json_key(x), "body") && !str_eq(json_key(x), "problem"))
            json_put(o, json_key(x), json_copy(x));
    json_put_str(o, "body", text);
    json_put_str(o, "problem", problem);
    salvage_put(c->dir, c->tag, o, NULL);
    json_free(o);
}

static int hand_in(const struct call *c, const struct str *child, const char *name, struct err *e)
{
    int fd = client_open(c->a->dir, CLIENT_SERVE, e);
    json *reply = NULL;
    const char *subject = *name ? name : json_str_or(c->item, "name", "");
    if (fd >= 0)
        reply = client_add(fd,
                           &(struct client_candidate){.text = str_c(child),
                                                      .len = child->len,
                                                      .op = "salvage",
                                                      .subject = *subject ? subject : "A repaired answer",
                                                      .model = json_str(c->item, "who"),
                                                      .parent = json_int(c->item, "parent", 0)},
                           e);
    bool ok = json_bool(reply, "ok", false);
    if (reply && !ok)
        client_refusal(reply, e);
    if (ok) {
        show_clean(json_str_or(reply, "msg", "taken"), stdout);
        puts("; it is judged in its turn (`ksmith run` where no search runs)");
        ok = salvage_drop(c->dir, c->tag, e) == 0;
    }
    json_free(reply);
    if (fd >= 0)
        close(fd);
    return ok ? 0 : -1;
}

static int apply(const struct call *c, const struct str *text, const char *parent, struct err *e)
{
    const struct task *t = &c->l->task;
    struct reply r = {0};
    struct str child = {0}, problem = {0};
    size_t n = strlen(parent);
    reply_read(text->s, text->len, &(struct reply_opts){t->kernel_func, parent, n, false}, &r);
    int ok = reply_apply(&r, &(struct apply_opts){parent, n, t->kernel_file, t->kernel_func, t->evolve},
                         &child, &problem);
    if (ok == 0) {
        ok = hand_in(c, &child, str_c(&r.name), e);
        if (ok < 0)
            keep(c, str_c(text), e->msg);
    } else {
        keep(c, str_c(text), str_c(&problem));
        show_block(problem.s, problem.len, "", stderr);
        err_set(e, ERR_FAIL, "Edit it again: your text is kept in the queue.",
                "answer %s still does not apply", c->tag);
    }
    reply_free(&r);
    str_free(&child);
    str_free(&problem);
    return ok;
}

static int edit(const struct call *c)
{
    struct err e = {0};
    struct str text = {0};
    int64_t parent = json_int(c->item, "parent", 0);
    char *source = look_source(c->l, parent);
    int r = source ? 0
                   : err_set(&e, ERR_FAIL, "", "the source of candidate %lld, which it changes, is lost",
                             (long long)parent);
    if (r == 0) {
        fill(c, &text);
        r = edit_text(&text, &e);
    }
    if (r == 0 && strspn(str_c(&text), " \t\r\n") == text.len)
        puts("left as it is");
    else if (r == 0)
        r = apply(c, &text, source, &e);
    free(source);
    str_free(&text);
    return r < 0 ? cmd_fail(&e) : 0;
}

static const struct {
    const char *name;
    int (*fn)(const struct call *c);
} verbs[] = {{"show", show}, {"edit", edit}, {"drop", drop}};

static int run(struct args *a)
{
    struct look l;
    struct err e = {0};
    struct call c = {a, &l, NULL, a->npos > 1 ? a->pos[1] : NULL, NULL};
    int status = look_open(&l, a);
    size_t v = 0;
    while (a->npos && v < countof(verbs) && !str_eq(verbs[v].name, a->pos[0]))
        v++;
    c.dir = l.session.ksmith;
    if (status == 0 && a->npos == 0) {
        status = list(&c);
    } else if (status == 0 && (v == countof(verbs) || !c.tag)) {
        err_set(&e, ERR_USAGE, "Usage: ksmith salvage [DIR] [show | edit | drop N]", "%s what?",
                v == countof(verbs) ? a->pos[0] : verbs[v].name);
        status = cmd_fail(&e);
    } else if (status == 0) {
        c.item = salvage_get(c.dir, c.tag, &e);
        status = c.item ? verbs[v].fn(&c) : cmd_fail(&e);
    }
    json_free(c.item);
    look_close(&l);
    return status;
}

static const struct opt opts[] = {OPT_JSON, OPT_SET, OPT_END};

const struct cmd cmd_salvage = {
    .name = "salvage",
    .args = "[DIR] [show | edit | drop N]",
    .help = "answers of models that could not be applied: list, read, repair in $EDITOR, drop",
    .more =
        "What is repaired becomes a candidate of the model and of the engineer who repaired it. What still\n"
        "does not apply stays in the queue as it was edited.",
    .group = "models",
    .max = 2,
    .takes_dir = true,
    .opts = opts,
    .run = run,
};
