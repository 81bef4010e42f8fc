// The cage of the compiler: candidates that try to read, write or reach what they should not, built as any
// other.
#include "cpu/compile_parts.h"
#include "cpu/probe_parts.h"

#include "base/clock.h"
#include "base/draw.h"
#include "base/io.h"
#include "base/proc.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char remedy[] =
    "Do not compile what models write on this machine, or run it on a kernel with Landlock and "
    "seccomp.";

struct rig {
    struct probe *p;
    char *dir;     // the secret's folder
    char *secret;  // path
    char word[40]; // what is in it
    struct task task;
    struct compiler *cc;
};

static bool holds_word(const struct str *s, const char *word)
{
    return memmem(str_c(s), s->len, word, strlen(word)) != NULL;
}

// Builds a source that has the secret's path in it; the word must come back neither in the log nor in the
// binary.
static void try_read(struct rig *r, const char *name, const char *before, const char *after)
{
    struct str source = {0}, log = {0}, so = {0};
    struct binary b;
    struct err e = {0};
    str_addf(&source, "%s%s%s", before, r->secret, after);
    int built = compiler_build(r->cc, str_c(&source), NULL, 0, &b, &log, &e);
    if (built == 0)
        (void)io_read_file(b.path, 64 << 20, &so, NULL);
    bool leaked = holds_word(&log, r->word) || holds_word(&so, r->word);
    probe_say(r->p, name, built >= 0 && !leaked, remedy, "%s",
              built < 0 ? e.msg
              : leaked  ? (built ? "the log quotes the file" : "the file is in the binary")
                        : "refused");
    str_free(&source);
    str_free(&log);
    str_free(&so);
}

// Runs a shell line in the compiler's cage.
static int shell(const char *line, struct str *out)
{
    struct compile_place place;
    struct err e = {0};
    if (compile_place_init(&place, "/usr/bin/gcc", &e) < 0)
        return -1;
    const char *argv[] = {"/bin/sh", "-c", line, NULL};
    int rc = compile_run(&place, argv, NULL, out, &e);
    compile_place_free(&place);
    return rc;
}

static void try_write(struct rig *r)
{
    char *outside = io_join(r->dir, "outside"),
         *line = xasprintf("echo x > '%s'; echo x > inside && cat inside", outside);
    struct str out = {0};
    int rc = shell(line, &out);
    bool wrote = io_exists(outside), works = strstr(str_c(&out), "x\n") != NULL;
    probe_say(r->p, "compiler cannot write outside", rc >= 0 && !wrote && works, remedy, "%s",
              wrote   ? "it wrote a file"
              : works ? "refused; its own folder is writable"
                      : "its own folder is not writable");
    str_free(&out);
    free(outside);
    free(line);
}

static void try_preload(struct rig *r)
{
    struct str out = {0};
    setenv("LD_PRELOAD_KSMITH", "x", 1); // any variable that was not chosen, as LD_PRELOAD would be
    const char *old = getenv("LD_PRELOAD");
    char *kept = old ? xstrdup(old) : NULL;
    setenv("LD_PRELOAD", "/nonexistent/ksmith.so", 1);
    int rc = shell("echo \"[$LD_PRELOAD$LD_PRELOAD_KSMITH]\"", &out);
    if (kept)
        setenv("LD_PRELOAD", kept, 1);
    else
        unsetenv("LD_PRELOAD");
    unsetenv("LD_PRELOAD_KSMITH");
    bool clean = rc == 0 && str_eq(str_c(&out), "[]\n");
    probe_say(r->p, "compiler ignores LD_PRELOAD", clean, "Unset LD_PRELOAD.", "%s",
              clean ? "ignored" : "it is passed on");
    str_free(&out);
    free(kept);
}

// A connection to a socket that really listens here.
static int connect_to(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int r = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&a, sizeof a);
    if (fd >= 0)
        close(fd);
    return r;
}

static void try_network(struct rig *r)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof a;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0 || bind(server, (struct sockaddr *)&a, sizeof a) < 0 || listen(server, 4) < 0 ||
        getsockname(server, (struct sockaddr *)&a, &n) < 0 || connect_to(ntohs(a.sin_port)) < 0) {
        probe_fact(r->p, "compiler cannot reach a network", "not tried: there is no loopback network here");
    } else {
        struct sandbox s = {.kind = SANDBOX_COMPILER};
        int status = 0;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            _exit(sandbox_prepare(&s, NULL) < 0 || sandbox_enter(&s) < 0
                      ? 90
                      : connect_to(ntohs(a.sin_port)) == 0);
        waitpid(pid, &status, 0);
        probe_say(r->p, "compiler cannot reach a network", WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  remedy, "%s", status == 0 ? "refused" : "it connected, or the attempt failed");
    }
    if (server >= 0)
        close(server);
}

// Runs a shell line that would go on for ever under a short limit; everything it started holds the write end
// of a pipe, so the end of the pipe proves that nothing is left.
static void try_runaway(struct rig *r, const char *name, const char *line)
{
    static const char *const ro[] = {"/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", NULL};
    static const char *const rw[] = {"/dev/null", NULL};
    const char *argv[] = {"/bin/sh", "-c", line, NULL};
    struct sandbox s = {
        .kind = SANDBOX_COMPILER, .read_only = ro, .read_write = rw, .processes = 32, .cpu_seconds = 5};
    int fds[2];
    pid_t pid;
    struct err e = {0};
    if (proc_pipe(fds) < 0)
        return;
    int made = sandbox_prepare(&s, &e);
    struct proc_spec spec = {.argv = argv,
                             .bare_env = true,
                             .in = -1,
                             .out = fds[1],
                             .err = -1,
                             .before_exec = sandbox_enter,
                             .user = &s};
    int started = made == 0 ? proc_start(&spec, &pid, &e) : -1;
    close(fds[1]);
    bool gone = false;
    if (started == 0) {
        char byte;
        bool ran = read(fds[0], &byte, 1) == 1; // the line says when it is under way
        clock_sleep_ms(100);
        proc_kill(pid);
        int64_t start = clock_ns();
        while (ran && !gone && clock_ns() - start < 2000000000)
            gone = read(fds[0], &byte, 1) == 0;
    }
    sandbox_done(&s);
    close(fds[0]);
    probe_say(r->p, name, gone, "Look for processes that are left over, with `ps`.", "%s",
              gone          ? "all of it is gone after the limit"
              : started < 0 ? e.msg
                            : "something outlived the limit");
}

// A library linked with -ffast-math turns denormals off for its whole process when it is loaded.
static void try_fast_math(struct rig *r)
{
    static const char source[] = "void k(float *o) { *o += 1; }\n";
    struct binary b;
    struct binary_facts facts;
    struct str log = {0}, ours = {0}, theirs = {0};
    const char *const flag = "-ffast-math";
    struct err e = {0};
    char *so = io_join(r->dir, "fast.so"), *c = io_join(r->dir, "fast.c");
    const char *argv[] = {compiler_path(r->cc), "-shared", "-fPIC", "-ffast-math", "-o", so, c, NULL};
    struct proc_spec spec = {.argv = argv, .in = -1};
    struct proc_end end = {0};
    int made = io_write_file(c, source, strlen(source), 0644, &e);
    made = made < 0 ? made : proc_run(&spec, &log, 4096, 20000, &end, &e);
    bool caught = false, clean = false;
    if (made == 0 && end.status == 0) { // linked as the compiler alone would
        struct binary plain = {0};
        snprintf(plain.path, sizeof plain.path, "%s", so);
        caught = compiler_check_binary(r->cc, &plain, "k", &facts, &theirs, &e) == 1;
    }
    if (compiler_build(r->cc, source, &flag, 1, &b, &log, &e) == 0)
        clean = compiler_check_binary(r->cc, &b, "k", &facts, &ours, &e) == 0;
    probe_say(r->p, "flush-to-zero at load is noticed", caught && clean, "", "%s",
              !caught ? "the check missed it"
              : clean ? "refused, and our own link does not do it"
                      : str_c(&ours));
    str_free(&log);
    str_free(&ours);
    str_free(&theirs);
    free(so);
    free(c);
}

static void try_all(struct rig *r)
{
    try_read(r, "compiler cannot #include secrets", "#include \"", "\"\nvoid k(void) {}\n");
    try_read(r, "compiler cannot .incbin secrets", "__asm__(\".data\\n.incbin \\\"",
             "\\\"\\n.text\"); void k(void) {}\n");
    try_read(r, "compiler cannot quote secrets", "#line 1 \"", "\"\nvoid k(void) { nowhere; }\n");
    try_write(r);
    try_network(r);
    try_preload(r);
    try_runaway(r, "compiler cannot loop for ever", "trap '' TERM HUP INT; echo; while :; do :; done");
    try_runaway(
        r, "compiler cannot leave processes",
        "trap '' TERM HUP INT; echo; i=0; while [ $i -lt 100 ]; do sleep 100 & i=$((i+1)); done; wait");
    try_fast_math(r);
}

void probe_compiler(struct probe *p)
{
    struct rig r = {.p = p};
    struct err e = {0};
    snprintf(r.word, sizeof r.word, "secret_%016llx", (unsigned long long)draw_secret());
    r.dir = io_temp_dir("ksmith-probe", &e);
    if (!r.dir) {
        probe_say(p, "temporary files", false, e.hint, "%s", e.msg);
        return;
    }
    r.secret = io_join(r.dir, "secret");
    char *project = io_join(r.dir, "project"), *text = xasprintf("int %s = 1;\n", r.word);
    r.task = (struct task){
        .dir = r.dir, .project = project, .kernel_file = "k.c", .kernel_func = "k", .allow_fast_math = true};
    if (io_write_file(r.secret, text, strlen(text), 0600, &e) < 0 || compiler_open(&r.task, &r.cc, &e) < 0) {
        probe_say(p, "compiler", false, e.hint, "%s", e.msg);
    } else {
        probe_fact(p, "compiler", "%s (%s)", compiler_version(r.cc), compiler_path(r.cc));
        try_all(&r);
        compiler_close(r.cc);
    }
    free(text);
    free(project);
    free(r.secret);
    io_remove(r.dir, NULL);
    free(r.dir);
}
