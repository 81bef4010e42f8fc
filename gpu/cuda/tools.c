#include "cuda/tools.h"

#include "base/draw.h"
#include "base/io.h"
#include "base/proc.h"
#include "cpu/assembly.h"
#include "cuda/build.h"
#include "cuda/trial.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { LIMIT_MS = 120000, OUTPUT = 4 << 20 };

// The program on PATH or where CUDA puts it; false where it is missing.
static bool find_tool(const char *name, char out[PATH_MAX])
{
    const char *path = getenv("PATH");
    char *all = xasprintf("%s:/usr/local/cuda/bin:/opt/cuda/bin", path ? path : "/usr/bin");
    bool found = false;
    for (char *x = all, *end; x && *x && !found; x = end) {
        end = strchr(x, ':');
        if (end)
            *end++ = 0;
        found = *x == '/' && snprintf(out, PATH_MAX, "%s/%s", x, name) < PATH_MAX && access(out, X_OK) == 0;
    }
    free(all);
    return found;
}

static bool self(char out[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (n > 0)
        out[n] = 0;
    return n > 0;
}

struct job {
    char *dir, *file;
    char program[PATH_MAX], tool[PATH_MAX];
};

static bool job_open(struct job *x, const char *tool)
{
    x->dir = find_tool(tool, x->tool) && self(x->program) ? io_temp_dir("ksmith-trial", NULL) : NULL;
    x->file = x->dir ? io_join(x->dir, "trial") : NULL;
    return x->dir != NULL;
}

static void job_close(struct job *x)
{
    if (x->dir)
        io_remove(x->dir, NULL);
    free(x->dir);
    free(x->file);
}

// options come between the tool and our own program.
static bool job_run(const struct job *x, const char *const *options, size_t n, struct str *out,
                    struct proc_end *end)
{
    VEC(const char *) argv = {0};
    vec_push(&argv, x->tool);
    for (size_t i = 0; i < n; i++)
        vec_push(&argv, options[i]);
    const char *own[] = {x->program, "--card", x->file, NULL};
    for (size_t i = 0; i < countof(own); i++)
        vec_push(&argv, own[i]);
    struct proc_spec spec = {.argv = argv.v, .dir = x->dir, .in = -1};
    int r = proc_run(&spec, out, OUTPUT, LIMIT_MS, end, NULL);
    vec_free(&argv);
    return r == 0;
}

// ---- compute-sanitizer

enum { FOUND = 99 };

// The first finding: the text of its first line, and the kernel that it names.
static void finding(const char *text, struct str *out)
{
    static const char *const marks[] = {"Invalid ", "Race reported", "Uninitialized ", "Misaligned "};
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        for (size_t i = 0; i < countof(marks); i++) {
            const char *at = memmem(line, n, marks[i], strlen(marks[i]));
            if (at) {
                str_addn(out, at, (size_t)(line + n - at));
                return;
            }
        }
        line += n + (line[n] == '\n');
    }
}

static bool sanitize_with(const struct job *x, const char *tool, struct fault *f)
{
    char which[32];
    snprintf(which, sizeof which, "%s", tool);
    const char *options[] = {"--tool", which, "--error-exitcode", "99"};
    struct str out = {0}, what = {0};
    struct proc_end end = {0};
    bool ran = job_run(x, options, countof(options), &out, &end), good = true;
    if (ran && end.status == FOUND) {
        finding(str_c(&out), &what);
        // Errors of the driver's calls alone are the tool's own trouble, not the kernel's.
        if (what.len)
            good = fault_set(f, STATUS_WRONG, "%s: %.300s", tool, str_c(&what));
    }
    str_free(&out);
    str_free(&what);
    return good;
}

bool tools_sanitize(struct judge *j, const struct binary *b, struct fault *f)
{
    struct job x = {0};
    struct device *d = j->device;
    bool ok = true;
    // The largest of the test shapes that is small: enough blocks to meet each other, and quick.
    struct shape_data *s = NULL;
    for (size_t i = 0; i < j->test.n; i++)
        if (!s || (j->test.v[i]->bytes > s->bytes && j->test.v[i]->bytes < 1 << 20))
            s = j->test.v[i];
    if (s && job_open(&x, "compute-sanitizer")) {
        struct trial_spec t = {.shape = s,
                               .sets = s->sets.v,
                               .nsets = 1,
                               .kernel = {b->device, NULL},
                               .copies = 1,
                               .samples = 1,
                               .flags = TRIAL_SEPARATE,
                               .limit_s = LIMIT_MS / 1000.0};
        struct fault trouble = {0};
        if (trial_record(d, j, &t, x.file, &trouble))
            ok = sanitize_with(&x, "memcheck", f) && sanitize_with(&x, "racecheck", f);
    }
    job_close(&x);
    return ok;
}

// ---- ncu

// The next field of a CSV line with quotes; NULL at its end.
static char *next_field(char **at)
{
    char *p = *at, *out;
    if (*p == 0 || *p == '\n')
        return NULL;
    bool quoted = *p == '"';
    out = p += quoted;
    while (*p && (quoted ? *p != '"' : *p != ',' && *p != '\n'))
        p++;
    if (quoted && *p)
        *p++ = 0;
    if (*p == ',')
        *p++ = 0;
    else if (*p == '\n')
        *p = 0;
    *at = p;
    return out;
}

enum { COLUMNS = 32 };

static int split(char *line, char *field[COLUMNS])
{
    int n = 0;
    for (char *f; n < COLUMNS && (f = next_field(&line)) != NULL; n++)
        field[n] = f;
    return n;
}

static json *kernel_row(json *kernels, const char *id, const char *name)
{
    for (json *x = json_first(kernels); x; x = json_next(x))
        if (str_eq(json_str(x, "id"), id))
            return json_get(x, "metrics");
    json *row = json_object(), *metrics = json_object();
    json_put_str(row, "id", id);
    json_put_str(row, "name", name);
    json_put(row, "metrics", metrics);
    json_push(kernels, row);
    return metrics;
}

static int column(char *const *head, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (str_eq(head[i], name))
            return i;
    return -1;
}

// Rows of "ID","Kernel Name","Metric Name","Metric Unit","Metric Value"; our own kernels are left out.
static void read_csv(char *text, json *kernels)
{
    char *head[COLUMNS], *field[COLUMNS];
    int heads = 0, id = -1, kernel = -1, metric = -1, unit = -1, value = -1;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (!heads && str_starts(line, "\"ID\"")) {
            heads = split(line, head);
            id = column(head, heads, "ID");
            kernel = column(head, heads, "Kernel Name");
            metric = column(head, heads, "Metric Name");
            unit = column(head, heads, "Metric Unit");
            value = column(head, heads, "Metric Value");
            continue;
        }
        if (id < 0 || kernel < 0 || metric < 0 || unit < 0 || value < 0 || split(line, field) <= value ||
            str_starts(field[kernel], "ks_") || !*field[metric])
            continue;
        char *shown = xasprintf("%s%s%s", field[value], *field[unit] ? " " : "", field[unit]);
        json *to = kernel_row(kernels, field[id], field[kernel]);
        if (!json_has(to, field[metric]))
            json_put_str(to, field[metric], shown);
        free(shown);
    }
}

bool tools_profile(struct judge *j, const struct binary *b, json *out, struct fault *f)
{
    struct job x = {0};
    static const char *const options[] = {"--csv",
                                          "--page",
                                          "details",
                                          "--clock-control",
                                          "none",
                                          "--section",
                                          "SpeedOfLight",
                                          "--section",
                                          "Occupancy",
                                          "--section",
                                          "LaunchStats",
                                          "--section",
                                          "MemoryWorkloadAnalysis",
                                          "--section",
                                          "WarpStateStats"};
    if (!job_open(&x, "ncu")) {
        job_close(&x);
        return fault_set(f, STATUS_TROUBLE, "ncu is not installed on this machine");
    }
    struct shape_data *s = j->bench.v[0];
    if (s->sets.n == 0)
        vec_push(&s->sets, dataset_new(&j->task, &j->buffers, s, draw_secret(), VARIANT_PLAIN));
    struct trial_spec t = {.shape = s,
                           .sets = s->sets.v,
                           .nsets = 1,
                           .kernel = {b->device, NULL},
                           .copies = 1,
                           .samples = 1,
                           .limit_s = LIMIT_MS / 1000.0};
    struct str text = {0};
    struct proc_end end = {0};
    json *kernels = json_array();
    bool ok = trial_record(j->device, j, &t, x.file, f);
    if (ok && (!job_run(&x, options, countof(options), &text, &end) || end.status != 0))
        ok = fault_set(f, STATUS_TROUBLE, "ncu does not work here: %.300s", str_c(&text));
    if (ok)
        read_csv(text.s, kernels);
    json_put_str(out, "shape", s->shape->name);
    json_put(out, "kernels", kernels);
    str_free(&text);
    job_close(&x);
    return ok;
}

// ---- nvdisasm

// What it reads was made by NVRTC from a candidate's text, so it has a limit of time and of output.
bool tools_assembly(struct judge *j, const struct binary *b, struct str *out, struct fault *f)
{
    const struct gpu_kernel *k = b->device;
    char tool[PATH_MAX];
    struct str listing = {0};
    struct proc_end end = {0};
    struct err e = {0};
    (void)j;
    if (!find_tool("nvdisasm", tool))
        return fault_set(f, STATUS_TROUBLE, "nvdisasm is not on PATH: it comes with the CUDA toolkit");
    char *dir = io_temp_dir("ksmith-sass", &e), *file = dir ? io_join(dir, "kernel.cubin") : NULL;
    bool ok = file && io_write_file(file, k->image.s, k->image.len, 0600, &e) == 0;
    if (ok) {
        const char *argv[] = {tool, "-c", file, NULL};
        struct proc_spec spec = {.argv = argv, .dir = dir, .in = -1};
        ok = proc_run(&spec, &listing, OUTPUT, LIMIT_MS, &end, &e) == 0 && end.status == 0 && !end.timed_out;
    }
    if (ok)
        assembly_sass(str_c(&listing), out);
    else
        fault_set(f, STATUS_TROUBLE, "nvdisasm failed: %.300s", e.kind ? e.msg : str_c(&listing));
    if (dir)
        io_remove(dir, NULL);
    free(file);
    free(dir);
    str_free(&listing);
    return ok;
}
