// Measures how fast a journal of many candidates is read and folded: bench_replay [CANDIDATES] [SHAPES].
// Every candidate has a candidate line with an edit list and a verdict line with a row for each shape.
#include "base/clock.h"
#include "base/io.h"
#include "session/event.h"
#include "session/session.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static json *answer_of(int64_t id, int nshapes)
{
    json *a = json_object(), *shapes = json_array(), *features = json_object(), *stages = json_array();
    json_put_int(a, "id", id);
    json_put_str(a, "status", id % 3 ? "ok" : "compile_error");
    json_put_str(a, "stage", id % 3 ? "race" : "compile");
    for (int i = 0; i < nshapes; i++) {
        json *s = json_object();
        char name[16];
        snprintf(name, sizeof name, "shape%d", i);
        json_put_str(s, "name", name);
        json_put_num(s, "time_ns", 1234567.891 + (double)(id * 17 % 1000));
        json_put_num(s, "inc_ns", 1334567.891);
        json_put_num(s, "gain", 1.0811234 + (double)(id % 97) / 1000);
        json_put_num(s, "low", 1.071235);
        json_put_num(s, "high", 1.091234);
        json_put_num(s, "n", 8);
        json_push(shapes, s);
    }
    json_put_num(a, "gain", 1.0811);
    json_put_num(a, "low", 1.0712);
    json_put_num(a, "high", 1.0911);
    json_put(a, "shapes", shapes);
    json_put_num(features, "vec", (double)(id % 4));
    json_put_num(features, "acc", (double)(id % 5));
    json_put_num(features, "block", (double)(id % 4));
    json_put(a, "features", features);
    static const char *const names[] = {"compile", "smoke", "check", "race"};
    for (size_t i = 0; i < countof(names); i++) {
        json *s = json_object();
        json_put_str(s, "name", names[i]);
        json_put_num(s, "ms", 123.4);
        json_push(stages, s);
    }
    json_put(a, "stages", stages);
    json_put_str(a, "binary", "9f3a11c29f3a11c29f3a11c29f3a11c29f3a11c29f3a11c29f3a11c29f3a11c2");
    json_put_str(a, "reason", "no faster than its incumbent");
    return a;
}

static int generate(struct session *s, int64_t candidates, int nshapes, struct err *e)
{
    struct event_session head = {.name = "bench", .backend = "cpu", .kernel = "k.c:k", .islands = 4};
    json *edits = json_parse("[{\"rule\":\"interchange\",\"site\":3,\"with\":4}]", 43, e);
    int r = session_log(s, event_session(&head), JOURNAL_LAZY, e);
    for (int64_t id = 0; r == 0 && id < candidates; id++) {
        char blob[41];
        snprintf(blob, sizeof blob, "%040" PRIx64, (uint64_t)id * 0x9e3779b97f4a7c15u);
        int64_t parent = id * 7 / 8;
        struct event_candidate c = {.id = id,
                                    .parents = &parent,
                                    .nparents = id > 0,
                                    .op = id % 2 ? "interchange" : "tune",
                                    .proposer = "rules",
                                    .title = "Interchange loops 3 and 4",
                                    .island = (int)(id % 4),
                                    .gen = (int)(id % 50),
                                    .iter = id,
                                    .seen = id,
                                    .blob = blob,
                                    .edits = edits};
        json *answer = answer_of(id, nshapes);
        r = session_log(s, event_candidate(&c), JOURNAL_LAZY, e);
        if (r == 0)
            r = session_log(s, event_verdict_of(answer, parent, blob, 1.5, false), JOURNAL_LAZY, e);
        json_free(answer);
    }
    json_free(edits);
    return r;
}

static int measure(const char *dir, const char *what, struct err *e)
{
    struct session s;
    int64_t start = clock_ns();
    double cpu = clock_cpu();
    if (session_open(&s, dir, SESSION_READ, e) < 0)
        return -1;
    struct stat st = {0};
    struct rusage use;
    stat(s.journal_path, &st);
    getrusage(RUSAGE_SELF, &use);
    printf("%-14s %zu candidates, journal %.1f MB: %.2f s wall, %.2f s CPU, peak memory %.0f MB\n", what,
           s.state.c.n, (double)st.st_size / 1e6, (double)(clock_ns() - start) / 1e9, clock_cpu() - cpu,
           (double)use.ru_maxrss / 1e3);
    session_close(&s);
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct session s;
    const char *only = argc > 3 && !str_eq(argv[3], "keep") ? argv[3] : NULL; // measure this folder only
    bool keep = argc > 3 && !only; // print the folder and leave it there
    if (only)
        return measure(only, "replay", &e) < 0 ? (err_print(&e, stderr), 1) : 0;
    char *dir = io_temp_dir("ksmith-bench", &e), *snapshot = dir ? io_join(dir, ".ksmith/snapshot") : NULL;
    int64_t n = argc > 1 ? atoll(argv[1]) : 100000;
    int shapes = argc > 2 ? atoi(argv[2]) : 6, r = dir ? session_open(&s, dir, SESSION_WRITE, &e) : -1;
    if (r == 0) {
        int64_t start = clock_ns();
        r = generate(&s, n, shapes, &e);
        printf("%-14s %.2f s\n", "written in", (double)(clock_ns() - start) / 1e9);
        session_close(&s);
    }
    if (keep && r == 0)
        printf("%s\n", dir);
    fflush(stdout);
    for (int half = 0; r == 0 && half < 2 && !keep; half++) {
        // A process of its own, so that its peak memory is the reader's.
        if (half == 0)
            io_remove(snapshot, NULL);
        char *cmd = xasprintf("'%s' 0 0 '%s'", argv[0], dir);
        r = system(cmd); // NOLINT(cert-env33-c): our own path and folder
        free(cmd);
        if (half == 0 && r == 0 && (r = session_open(&s, dir, SESSION_WRITE, &e)) == 0)
            session_close(&s);
    }
    if (r)
        err_print(&e, stderr);
    if (dir && !keep)
        io_remove(dir, NULL);
    free(snapshot);
    free(dir);
    return r != 0;
}
