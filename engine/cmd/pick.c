// ksmith pick: brings one kernel into a project as one clean commit on a new branch. Nothing in the work tree
// or the index is touched: the commit is made beside them. ksmith's own comments are stripped, and what they
// meant is said in the message.
#include "base/io.h"
#include "base/proc.h"
#include "base/task.h"
#include "cmd/cmd.h"
#include "cmd/show_text.h"
#include "evolve/oneshot.h"
#include "evolve/population.h"
#include "source/annot.h"

#include <unistd.h>

struct pick {
    struct args *a;
    struct task task;
    struct session session;
    const struct candidate *c;
    char *project;         // top of the project's work tree
    char *path;            // of the kernel file in it
    char *source;          // of the candidate
    struct str text, said; // stripped, and what the annotations meant
    struct str message;
    char branch[64], commit[41];
};

// Runs git in the project; the first line of its output in out.
static int git(const struct pick *p, const char *const *args, const char *const *env, int in, struct str *out,
               struct err *e)
{
    VEC(const char *) argv = {0};
    vec_push(&argv, "git");
    vec_push(&argv, "-C");
    vec_push(&argv, p->project);
    for (; *args; args++)
        vec_push(&argv, *args);
    vec_push(&argv, NULL);
    struct proc_spec spec = {.argv = argv.v, .in = in, .env = env};
    struct proc_end end;
    int r = proc_run(&spec, out, 65536, 60000, &end, e);
    if (r == 0 && end.status != 0)
        r = err_set(e, ERR_FAIL, "", "git %s: %.300s", argv.v[3], str_c(out));
    while (out->len && out->s[out->len - 1] == '\n')
        out->s[--out->len] = 0;
    vec_free(&argv);
    return r;
}

#define GIT(p, out, e, ...) git((p), (const char *const[]){__VA_ARGS__, NULL}, NULL, -1, (out), (e))

static int find_project(struct pick *p, const char *into, struct err *e)
{
    struct str top = {0};
    p->project = realpath(into, NULL);
    if (!p->project)
        return err_sys(e, "Name a folder inside a git work tree.", "cannot open %s", into);
    if (GIT(p, &top, e, "rev-parse", "--show-toplevel") < 0) {
        str_free(&top);
        return err_set(e, ERR_USAGE, "Name a folder inside a git work tree.", "%s is no git work tree", into);
    }
    free(p->project);
    p->project = str_steal(&top);
    // The kernel at the place it has in the session's project, or with the same name somewhere unique.
    struct str found = {0};
    char *glob = xasprintf(":(top,glob)**/%s", p->task.kernel_file);
    int r = GIT(p, &found, e, "ls-files", glob);
    free(glob);
    if (r == 0 && (!found.len || strchr(found.s, '\n')))
        r = err_set(e, ERR_USAGE,
                    "Use git cherry-pick with the branch pick-N of .ksmith/lineage.git instead.", "%s in %s",
                    found.len ? "several files are called like the kernel"
                              : "no committed file is called like the kernel",
                    p->project);
    p->path = r == 0 ? str_steal(&found) : NULL;
    str_free(&found);
    return r;
}

// The project's file as it is committed must be what the search began with.
static int check_base(struct pick *p, struct err *e)
{
    struct str blob = {0};
    char *spec = xasprintf("HEAD:%s", p->path), base[41];
    int r = GIT(p, &blob, e, "rev-parse", spec);
    candidate_blob(state_candidate(&p->session.state, 0), base);
    if (r == 0 && !str_eq(str_c(&blob), base))
        r = err_set(
            e, ERR_FAIL,
            "Fetch the branch pick-N from .ksmith/lineage.git and cherry-pick it: git merges the two.",
            "%s has changed since the session began", p->path);
    free(spec);
    str_free(&blob);
    return r;
}

static void write_message(struct pick *p, const char *timing)
{
    char speed[64];
    show_speedup(speed, sizeof speed, p->c->speedup);
    str_addf(&p->message, "%s: faster %s (%s)\n\n", p->task.name, p->task.kernel_func, speed);
    str_addf(&p->message, "Measured by ksmith against the kernel before it, candidate %lld of its session.\n",
             (long long)p->c->id);
    if (timing)
        str_addf(&p->message, "As this project compiles it (%s).\n", timing);
    if (p->said.len) {
        str_add(&p->message, "\nWhat stood in the source as annotations:\n");
        for (const char *line = str_c(&p->said); *line;) {
            size_t n = strcspn(line, "\n");
            str_addf(&p->message, "  %.*s\n", (int)n, line);
            line += n + (line[n] == '\n');
        }
    }
    str_addf(&p->message, "\nCandidate: %lld\nKsmith: %s\n", (long long)p->c->id, KSMITH_VERSION);
}

// Times the stripped text with the project's own flags alone: what the search added as flags is not there.
static int time_again(struct pick *p, struct str *words, struct err *e)
{
    char *baseline = oneshot_baseline(&p->task, e);
    struct oneshot *o = baseline ? oneshot_open(&p->task, NULL, 0, args_flag(p->a, "trust"), e) : NULL;
    json *pre = json_object(), *ask = json_object(), *inc = json_object(), *v = NULL, *ready = NULL;
    json_put_str(pre, "op", "preflight");
    json_put_str(ask, "op", "rejudge");
    json_put_int(ask, "id", p->c->id);
    json_put_str(ask, "by", "human");
    json_put_str(ask, "source", str_c(&p->text));
    json_put(ask, "flags", json_array());
    if (baseline) {
        json_put_str(pre, "source", baseline);
        json_put_str(inc, "source", baseline);
    }
    json_put(ask, "incumbent", inc);
    ready = o ? oneshot_ask(o, pre, "preflight", NULL, NULL, e) : NULL;
    v = ready ? oneshot_ask(o, ask, "verdict", NULL, NULL, e) : NULL;
    int r = v ? 0 : -1;
    if (v && !str_eq(json_str(v, "status"), "ok"))
        r = err_set(e, ERR_FAIL, "Its flags matter: see `ksmith show`.",
                    "without the session's flags it is %s: %s", json_str_or(v, "status", "?"),
                    json_str_or(v, "reason", ""));
    else if (v)
        str_addf(words, "%.2fx, interval %.2f to %.2f", json_num(v, "gain", 0), json_num(v, "low", 0),
                 json_num(v, "high", 0));
    oneshot_close(o);
    free(baseline);
    json_free(pre);
    json_free(ask);
    json_free(v);
    json_free(ready);
    return r;
}

static int write_temp(const struct str *text, char path[64], struct err *e)
{
    snprintf(path, 64, "/tmp/ksmith-pick.XXXXXX");
    int fd = mkstemp(path);
    int r = fd < 0 || io_write_all(fd, text->s, text->len) < 0 ? err_sys(e, "", "cannot write %s", path) : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

// blob, an index of its own, tree, commit, branch.
static int make_commit(struct pick *p, struct err *e)
{
    char source[64], message[64], index[80], *env = NULL, *info = NULL;
    struct str blob = {0}, none = {0}, tree = {0}, commit = {0};
    int r = write_temp(&p->text, source, e);
    snprintf(index, sizeof index, "%s.index", source);
    env = xasprintf("GIT_INDEX_FILE=%s", index);
    const char *const envs[] = {env, NULL};
    if (r == 0)
        r = write_temp(&p->message, message, e);
    if (r == 0)
        r = GIT(p, &blob, e, "hash-object", "-w", "--no-filters", source);
    if (r == 0)
        r = git(p, (const char *const[]){"read-tree", "HEAD", NULL}, envs, -1, &none, e);
    info = xasprintf("100644,%s,%s", str_c(&blob), p->path);
    if (r == 0)
        r = git(p, (const char *const[]){"update-index", "--cacheinfo", info, NULL}, envs, -1, &none, e);
    if (r == 0)
        r = git(p, (const char *const[]){"write-tree", NULL}, envs, -1, &tree, e);
    if (r == 0)
        r = GIT(p, &commit, e, "commit-tree", str_c(&tree), "-p", "HEAD", "-F", message);
    if (r == 0) {
        str_clear(&none);
        r = GIT(p, &none, e, "branch", p->branch, str_c(&commit));
    }
    if (r == 0)
        snprintf(p->commit, sizeof p->commit, "%s", str_c(&commit));
    unlink(source);
    unlink(message);
    unlink(index);
    free(env);
    free(info);
    str_free(&blob);
    str_free(&none);
    str_free(&tree);
    str_free(&commit);
    return r;
}

// The project's own tests, in a checkout of the new commit that is thrown away.
static int verify(struct pick *p, struct err *e)
{
    char *dir = io_temp_dir("ksmith-verify", e);
    struct str out = {0};
    if (!dir)
        return -1;
    char *tree = xasprintf("%s/tree", dir);
    int r = GIT(p, &out, e, "worktree", "add", "--detach", "-q", tree, p->commit);
    const char *argv[] = {"sh", "-c", p->task.verify, NULL};
    struct proc_spec spec = {.argv = argv, .dir = tree, .in = -1};
    struct proc_end end;
    str_clear(&out);
    if (r == 0)
        r = proc_run(&spec, &out, 1 << 20, 3600000, &end, e);
    if (r == 0 && end.status != 0) {
        show_block(str_c(&out), out.len, "  | ", stderr);
        r = err_set(e, ERR_FAIL, "The branch was not kept.",
                    "the project's own tests fail with this kernel (%s)", p->task.verify);
    }
    struct str ignored = {0};
    GIT(p, &ignored, NULL, "worktree", "remove", "--force", tree);
    if (r < 0)
        GIT(p, &ignored, NULL, "branch", "-D", p->branch);
    str_free(&ignored);
    io_remove(dir, NULL);
    free(tree);
    free(dir);
    str_free(&out);
    return r;
}

static int pick(struct pick *p, struct err *e)
{
    struct str timing = {0};
    p->c = show_find(&p->session.state, p->a->npos ? p->a->pos[0] : "champion", e);
    if (!p->c)
        return -1;
    if (!population_alive(p->c) || p->c->id == 0)
        return err_set(e, ERR_USAGE, "Pick a correct, living candidate.", "%lld is %s", (long long)p->c->id,
                       show_word(&p->session.state, p->c));
    if (p->task.verify && !args_flag(p->a, "trust"))
        return err_set(e, ERR_USAGE, "Read it, then run again with --trust.", "the task wants to run: %s",
                       p->task.verify);
    snprintf(p->branch, sizeof p->branch, "ksmith/%.30s-%lld", p->task.name, (long long)p->c->id);
    if (find_project(p, args_value(p->a, "into", "."), e) < 0 || check_base(p, e) < 0)
        return -1;
    p->source = show_source(&p->session, p->c, e);
    if (!p->source)
        return -1;
    annot_strip(p->source, strlen(p->source), &p->text, &p->said);
    int r = args_flag(p->a, "untimed") ? 0 : time_again(p, &timing, e);
    if (r == 0) {
        write_message(p, timing.len ? str_c(&timing) : NULL);
        r = make_commit(p, e);
    }
    if (r == 0 && p->task.verify)
        r = verify(p, e);
    if (r == 0)
        printf("branch %s: commit %.10s changes %s\n%s%s%smerge it with: git -C %s merge %s\n", p->branch,
               p->commit, p->path, timing.len ? "as the project compiles it: " : "",
               timing.len ? str_c(&timing) : "", timing.len ? "\n" : "", p->project, p->branch);
    str_free(&timing);
    return r;
}

static int run(struct args *a)
{
    struct pick p = {.a = a};
    struct err e = {0};
    err_list errors = {0};
    int status;
    if (task_load(a->dir, NULL, 0, &p.task, &errors) < 0) {
        status = cmd_fail_list(&errors);
    } else if (session_open(&p.session, a->dir, SESSION_READ, &e) < 0) {
        status = cmd_fail(&e);
    } else {
        status = pick(&p, &e) < 0 ? cmd_fail(&e) : 0;
        session_close(&p.session);
    }
    free(p.project);
    free(p.path);
    free(p.source);
    str_free(&p.text);
    str_free(&p.said);
    str_free(&p.message);
    task_free(&p.task);
    vec_free(&errors);
    return status;
}

static const struct opt opts[] = {
    {"into", "PROJECT", "a folder of the project's git work tree; the current one by default"},
    {"untimed", NULL, "do not time it again as the project compiles it"},
    OPT_TRUST,
    OPT_END};

const struct cmd cmd_pick = {
    .name = "pick",
    .args = "[DIR] [ID] --into PROJECT",
    .help = "bring a kernel into a project as one commit on a new branch; the champion by default",
    .more = "Neither the work tree nor the index is touched. The task's verify command runs in a checkout of "
            "its own, and\n"
            "the branch is kept only where it passes.",
    .group = "start",
    .max = 1,
    .takes_dir = true,
    .opts = opts,
    .complete = "id",
    .run = run,
};
