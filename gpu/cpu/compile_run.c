// One run of a compiler, an assembler and linker, or objdump: sandboxed, limited, and its end put into words.
#include "cpu/compile_parts.h"

#include "base/io.h"
#include "base/proc.h"
#include "cpu/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { WALL_MS = 20000, CPU_SECONDS = 20, RAW_BYTES = 1 << 20, PROCESSES = 32 };
static const uint64_t MEMORY = 2ull << 30, FILE_BYTES = 64ull << 20;

void compile_strings_free(strings *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    vec_free(l);
}

static const char prefix[] = "ksmith-cc";

// Holds work/lock; -1 where somebody else does. It ends with the process, however that ends.
static int lock_work(const char *work, int create)
{
    char *path = io_join(work, "lock");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | create, 0600);
    free(path);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void remove_stale(const char *tmp)
{
    DIR *d = opendir(tmp);
    for (struct dirent *x; d && (x = readdir(d));) {
        if (!str_starts(x->d_name, prefix))
            continue;
        char *path = io_join(tmp, x->d_name);
        struct stat st;
        int lock =
            lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() ? lock_work(path, 0) : -1;
        if (lock >= 0) {
            io_remove(path, NULL);
            close(lock);
        }
        free(path);
    }
    if (d)
        closedir(d);
}

int compile_place_init(struct compile_place *p, const char *compiler, struct err *e)
{
    static const char *const always[] = {
        "/usr",         "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives",
        "/proc/cpuinfo"}; // where -march=native looks on some machines
    const char *tmp = getenv("TMPDIR");
    *p = (struct compile_place){.lock = -1};
    remove_stale(tmp && *tmp ? tmp : "/tmp");
    p->work = io_temp_dir(prefix, e);
    if (!p->work)
        return -1;
    p->lock = lock_work(p->work, O_CREAT);
    p->build = io_join(p->work, "build");
    if (mkdir(p->build, 0700) < 0) {
        err_sys(e, "Set TMPDIR to a folder that can be written.", "cannot make %s", p->build);
        compile_place_free(p);
        return -1;
    }
    for (size_t i = 0; i < countof(always); i++)
        vec_push(&p->readable, xstrdup(always[i]));
    // A compiler of its own tree (/opt/gcc-14/bin/gcc) reads that tree.
    char *real = realpath(compiler, NULL), *bin = real ? strrchr(real, '/') : NULL;
    if (bin)
        *bin = 0;
    if (bin && str_ends(real, "/bin") && !str_starts(real, "/usr/") && strlen(real) > strlen("/bin")) {
        real[strlen(real) - strlen("/bin")] = 0;
        vec_push(&p->readable, xstrdup(real));
    }
    free(real);
    return 0;
}

void compile_place_free(struct compile_place *p)
{
    compile_strings_free(&p->readable);
    if (p->work)
        io_remove(p->work, NULL);
    if (p->work && p->lock >= 0)
        close(p->lock);
    free(p->work);
    free(p->build);
    *p = (struct compile_place){.lock = -1};
}

static bool disk_is_full(const char *dir)
{
    struct statvfs v;
    return statvfs(dir, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize < 1 << 20;
}

// Why a run that did not succeed failed. The log is the candidate's to write (#error), so it is asked only
// about what this machine can confirm.
static int judge_end(const struct compile_place *place, const char *program, const struct proc_end *end,
                     struct str *raw, struct err *e)
{
    if (disk_is_full(place->work))
        return err_set(e, ERR_FAIL, "Free some space, or set TMPDIR to a folder on another disk.",
                       "the disk of %s is full", place->work);
    if (!io_is_dir(place->build))
        return err_set(e, ERR_FAIL, "Start the run again; keep cleaners of temporary files away from it.",
                       "the work folder %s has vanished", place->work);
    if (end->status == 126 || end->status == 127)
        return err_set(e, ERR_FAIL, "`ksmith doctor` says what holds on this machine.",
                       "%s could not be started in the sandbox", program);
    struct str why = {0};
    if (end->timed_out)
        str_addf(&why, "error: the compiler was stopped at its limit of %d s\n", WALL_MS / 1000);
    else if (end->signal == SIGXFSZ || strstr(str_c(raw), "File size limit exceeded"))
        str_addf(&why, "error: the output is larger than %d MB\n", (int)(FILE_BYTES >> 20));
    else if (end->signal == SIGKILL || strstr(str_c(raw), "Killed signal terminated program"))
        str_addf(&why, "error: the compiler was stopped at its limit of %d s of CPU time\n", CPU_SECONDS);
    else if (end->signal)
        str_addf(&why, "error: the compiler was killed by signal %d\n", end->signal);
    else if (strstr(str_c(raw), "out of memory") || strstr(str_c(raw), "virtual memory exhausted"))
        str_addf(&why, "error: the compiler needs more than %d GB of memory\n", (int)(MEMORY >> 30));
    if (end->truncated)
        str_addf(&why, "error: the compiler wrote over %d MiB of messages; the end is not here\n",
                 RAW_BYTES >> 20);
    str_splice(raw, 0, 0, str_c(&why), why.len);
    str_free(&why);
    return 1;
}

int compile_run(const struct compile_place *place, const char *const *argv, const strings *extra,
                struct str *raw, struct err *e)
{
    VEC(const char *) readable = {0};
    for (size_t i = 0; i < place->readable.n; i++)
        vec_push(&readable, place->readable.v[i]);
    for (size_t i = 0; extra && i < extra->n; i++)
        vec_push(&readable, extra->v[i]);
    vec_push(&readable, NULL);
    const char *const writable[] = {place->build, "/dev/null", NULL};
    char *tmp = xasprintf("TMPDIR=%s", place->build);
    const char *const env[] = {tmp, "LC_ALL=C", "CCACHE_DISABLE=1", NULL};
    struct sandbox cage = {.kind = SANDBOX_COMPILER,
                           .read_only = readable.v,
                           .read_write = writable,
                           .memory_bytes = MEMORY,
                           .file_bytes = FILE_BYTES,
                           .cpu_seconds = CPU_SECONDS,
                           .processes = PROCESSES};
    struct proc_spec spec = {.argv = argv,
                             .dir = place->build,
                             .env = env,
                             .bare_env = true,
                             .in = -1,
                             .before_exec = sandbox_enter,
                             .user = &cage};
    struct proc_end end = {0};
    int r = sandbox_prepare(&cage, e);
    if (r == 0) {
        r = proc_run(&spec, raw, RAW_BYTES, WALL_MS, &end, e);
        sandbox_done(&cage);
    }
    vec_free(&readable);
    free(tmp);
    if (r < 0 || (end.status == 0 && !end.timed_out))
        return r;
    return judge_end(place, argv[0], &end, raw, e);
}
