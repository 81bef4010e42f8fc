#include "base/io.h"
#include "base/task.h"
#include "t.h"

// A whole task of 16 lines; tests change it or add to its end.
static const char GOOD[] = "[task]\n"
                           "name = rmsnorm\n"
                           "kernel = rms.c:rmsnorm\n"
                           "require = H%4==0\n"
                           "[args]\n"
                           "out = out f32[T,H]\n"
                           "x = in f32[T,H] normal(0, 2) align=16\n"
                           "w = inout i32[max(H,1)] int(-3,3)\n"
                           "T = dim i32\n"
                           "H = dim i32\n"
                           "eps = val f32 1e-6\n"
                           "[shapes]\n"
                           "one = T=1 H=64 test\n"
                           "big = T=32 H=4*1024 test bench weight=2\n"
                           "[reference]\n"
                           "c = ref.c:rmsnorm_ref\n";

static int parse(const char *text, const char *const *set, size_t n, struct task *t, err_list *errors)
{
    return task_parse("task.ini", text, strlen(text), "/s/rms", set, n, t, errors);
}

static void a_good_task_loads(void)
{
    struct task t;
    err_list errors = {0};
    char text[4096];
    snprintf(text, sizeof text,
             "%s[metric]\nbytes = 8*T*H\n[build]\nallow = fast-math threads\nthreads = 2\ndefine = A B=3\n"
             "[check]\nf32 = rtol 1e-4 k 8\ncache = cold\n[evolve]\niterations = 7\nseed = "
             "18446744073709551615\n[budget]\nwall = 1h30m\nusd = 5.00\n",
             GOOD);
    CHECK_INT(parse(text, NULL, 0, &t, &errors), 0);
    for (size_t i = 0; i < errors.n; i++)
        err_print(&errors.v[i], stdout);
    CHECK_STR(t.name, "rmsnorm");
    CHECK_STR(t.kernel_file, "rms.c");
    CHECK_STR(t.kernel_func, "rmsnorm");
    CHECK_INT(t.args.n, 6);
    CHECK_INT(t.dims.n, 2);
    CHECK_STR(t.dims.v[1], "H");
    CHECK_INT(t.args.v[1].align, 16);
    CHECK_NEAR(t.args.v[1].dist.b, 2, 0);
    CHECK_INT(t.args.v[4].dim, 1);
    CHECK_NEAR(t.args.v[5].value, 1e-6, 0);
    CHECK_INT(t.shapes.n, 2);
    CHECK_INT(t.shapes.v[1].dims[1], 4096);
    CHECK_NEAR(t.shapes.v[1].weight, 2, 0);
    CHECK(t.shapes.v[1].test && t.shapes.v[1].bench && !t.shapes.v[0].bench);
    CHECK(t.allow_fast_math && t.allow_threads && !t.allow_asm);
    CHECK_INT(t.threads, 2);
    CHECK_INT(t.define.n, 2);
    CHECK(t.tol[DT_F32].set && !t.tol[DT_F64].set);
    CHECK_NEAR(t.tol[DT_F32].k, 8, 0);
    CHECK_INT(t.cache, CACHE_COLD);
    CHECK(t.seed == UINT64_MAX);
    CHECK_NEAR(t.wall_s, 5400, 0);
    CHECK_INT(t.cflags.n, 2); // the default
    int64_t n = 0;
    CHECK_INT(task_elements(&t, &t.args.v[0], t.shapes.v[1].dims, &n, NULL), 0);
    CHECK_INT(n, 32 * 4096);
    CHECK(task_eval(&t, t.metric_bytes, t.shapes.v[0].dims, &n) && n == 512);
    CHECK(!task_eval(&t, t.metric_flops, t.shapes.v[0].dims, &n));
    CHECK(task_allows(&t, (int64_t[]){5, 8}) && !task_allows(&t, (int64_t[]){5, 9}));
    task_free(&t);
    vec_free(&errors);
}

// One mistake: `find` in GOOD becomes `by` ("" appends by at the end), which is complained about at
// line:column.
struct mistake {
    const char *find, *by;
    int line, column; // line 0: no line, as for --set
    const char *says, *hint;
};

static void replace(const char *find, const char *by, char *out, size_t size)
{
    const char *at = *find ? strstr(GOOD, find) : GOOD + strlen(GOOD);
    if (!at) {
        printf("# no '%s' in the text\n", find);
        at = GOOD;
    }
    snprintf(out, size, "%.*s%s%s", (int)(at - GOOD), GOOD, by, at + strlen(find));
}

static bool among(const err_list *l, const struct mistake *m)
{
    char where[64];
    snprintf(where, sizeof where, "task.ini:%d:%d", m->line, m->column);
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->v[i].where, where) == 0 && strstr(l->v[i].msg, m->says) &&
            strstr(l->v[i].hint, m->hint))
            return true;
    return false;
}

// Each mistake gives exactly one error, at its place, with its remedy.
static void check_mistakes(const struct mistake *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[4096];
        struct task t;
        err_list errors = {0};
        replace(rows[i].find, rows[i].by, text, sizeof text);
        int r = parse(text, NULL, 0, &t, &errors);
        if (r != -1 || errors.n != 1 || !among(&errors, &rows[i])) {
            printf("# '%s' for '%s': wanted %d:%d %s (%s)\n", rows[i].by, rows[i].find, rows[i].line,
                   rows[i].column, rows[i].says, rows[i].hint);
            for (size_t k = 0; k < errors.n; k++)
                printf("#   got %s: %s (%s)\n", errors.v[k].where, errors.v[k].msg, errors.v[k].hint);
            CHECK(false);
        }
        task_free(&t);
        vec_free(&errors);
    }
}

static void names_of_sections_and_keys(void)
{
    static const struct mistake rows[] = {
        {"", "[shapez]\n", 17, 2, "unknown section [shapez]", "Did you mean 'shapes'?"},
        {"", "[model]\n", 17, 2, "[model] needs a name", "[model fast]"},
        {"", "[task x]\n", 17, 2, "[task] takes no name", "Remove"},
        {"", "[evolve]\nislnds = 2\n", 18, 1, "unknown key 'islnds' in [evolve]", "Did you mean 'islands'?"},
        {"", "[budget]\nseed = 2\n", 18, 1, "unknown key 'seed' in [budget]", "It belongs to [evolve]."},
        {"", "[ui]\ncolour = red\n", 18, 1, "unknown key 'colour'", "theme"},
        {"", "[evolve]\nseed = 2\nseed = 3\n", 19, 1, "given twice, first on line 18", "Keep one"},
        {"", "[evolve]\n seed = 2\n", 18, 1, "indented", "Remove the spaces"},
        {"[task]\n", "kernel = a.c:b\n[task]\n", 1, 1, "before any section", "[task]"},
        {"name = rmsnorm", "name = r m", 2, 9, "' ' cannot stand in the name", "letters"},
    };
    check_mistakes(rows, sizeof rows / sizeof *rows);
}

static void values_of_task(void)
{
    static const struct mistake rows[] = {
        {"kernel = rms.c:rmsnorm\n", "", 2, 1, "names no kernel", "kernel = FILE:FUNCTION"},
        {"rms.c:rmsnorm", "rms.c", 3, 10, "wants file:function", "sgemm.c:sgemm"},
        {"rms.c:rmsnorm", "rms.c:rms()", 3, 16, "no name of a function", "without brackets"},
        {"rms.c:rmsnorm", "../rms.c:rmsnorm", 3, 10, "leads out of the project", "project ="},
        {"rms.c:rmsnorm", "/etc/rms.c:rmsnorm", 3, 10, "leads out of the project", "project ="},
        {"rms.c:rmsnorm", "a/../../b.c:rmsnorm", 3, 10, "leads out of the project", "project ="},
        {"rms.c:rmsnorm", "rms.cu:rmsnorm", 3, 10, "is CUDA", "backend = cuda"},
        {"name = rmsnorm", "backend = triton", 2, 11, "triton is not built yet; cpu and cuda are",
         "backend = cpu"},
        {"name = rmsnorm", "backend = cuad", 2, 11, "cannot be 'cuad'", "Did you mean 'cuda'?"},
        {"name = rmsnorm", "evolve = all", 2, 10, "one of body | file | markers", "body, file, markers"},
        {"H%4==0", "H%%4", 4, 13, "number or a name", "number, a name"},
        {"H%4==0", "G%4==0", 4, 11, "'G' is no dim", ""},
        {"H%4==0", "x%4==0", 4, 11, "'x' is no dim", "Only arguments that are dim"},
        {"ref.c:rmsnorm_ref", "../ref.c:f", 16, 5, "leads out of the session's folder", "inside"},
        {"[reference]\nc = ref.c:rmsnorm_ref\n", "", 1, 1, "no reference", "original = yes"},
        {"", "original = yes\n", 17, 1, "both a reference", "Keep one"},
        {"", "[launch]\nrun = k<<<1, 2>>>(x)\n", 18, 1, "the backend is cpu", "Remove it"},
        {"", "[build]\nthreads = 2\n", 18, 11, "does not allow threads", "allow = threads"},
        {"", "[build]\nallow = fast-math thread\n", 18, 19, "'thread'", "Did you mean 'threads'?"},
        {"", "[build]\ncflags = -O3 -fplugin=x.so\n", 18, 14, "'-fplugin=x.so' cannot stand", "Leave it out"},
        {"", "[build]\ncflags = -O3 foo.c\n", 18, 14, "no flag", "start with '-'"},
        {"", "[build]\ncflags = '-O3\n", 18, 10, "open quote", "Close"},
        {"", "[build]\ninclude = inc ../x\n", 18, 15, "leads out of the project", "inside"},
        {"", "[build]\ndefine = A 2B\n", 18, 12, "no macro", "NAME=VALUE"},
    };
    check_mistakes(rows, sizeof rows / sizeof *rows);
}

static void values_of_args(void)
{
    static const struct mistake rows[] = {
        {"eps = val f32 1e-6", "2eps = val f32 1", 11, 1, "no C identifier", "parameter's name"},
        {"eps = val f32 1e-6", "for = val f32 1", 11, 1, "no C identifier", "parameter's name"},
        {"eps = val f32 1e-6", "T = dim i32", 11, 1, "'T' is given twice, first on line 9", "Keep one"},
        {"eps = val f32 1e-6", "eps =", 11, 6, "without a direction", "in f32[N]"},
        {"eps = val f32 1e-6", "eps = vla f32 1", 11, 7, "not 'vla'", "Did you mean 'val'?"},
        {"eps = val f32 1e-6", "eps = val", 11, 10, "without a type", "val f32"},
        {"eps = val f32 1e-6", "eps = val f33 1", 11, 11, "unknown type 'f33'", "Did you mean 'f32'?"},
        {"eps = val f32 1e-6", "eps = val f32", 11, 14, "without its value", "1e-6"},
        {"eps = val f32 1e-6", "eps = val f32 x", 11, 15, "'x' is no value of type f32", "number"},
        {"eps = val f32 1e-6", "eps = val i8 300", 11, 14, "'300' is no value of type i8", "holds"},
        {"eps = val f32 1e-6", "eps = val f32[2] 1", 11, 14, "a val with a shape", "in, out or inout"},
        {"eps = val f32 1e-6", "eps = val f32 1 2", 11, 17, "behind the value", "Remove"},
        {"eps = val f32 1e-6", "eps = dim f32", 11, 11, "a dim of type f32", "i32"},
        {"eps = val f32 1e-6", "eps = in f32", 11, 7, "without a shape", "f32[M,N]"},
        {"eps = val f32 1e-6", "eps = in f32[H", 11, 15, "expected ']'", "Close"},
        {"eps = val f32 1e-6", "eps = in f32[H,]", 11, 16, "too early", "number"},
        {"eps = val f32 1e-6", "eps = in f32[H,Q]", 11, 16, "'Q' is no dim", ""},
        {"eps = val f32 1e-6", "eps = in f32[1,1,1,1,1]", 11, 22, "more than 4", "product"},
        {"eps = val f32 1e-6", "eps = in f32[H] norml(0,1)", 11, 17, "'norml'", "Did you mean 'normal'?"},
        {"eps = val f32 1e-6", "eps = in f32[H] normal(0)", 11, 17, "normal(0,1)", "example"},
        {"eps = val f32 1e-6", "eps = in f32[H] normal(0,-1)", 11, 17, "negative deviation", "numbers"},
        {"eps = val f32 1e-6", "eps = in i32[H] normal(0,1)", 11, 17, "gives fractions", "int(low,high)"},
        {"eps = val f32 1e-6", "eps = in u8[H] int(0,256)", 11, 16, "leaves the range", "numbers"},
        {"eps = val f32 1e-6", "eps = in u8[H] int(3,1)", 11, 16, "low <= high", "numbers"},
        {"eps = val f32 1e-6", "eps = in f32[H] sparse(0)", 11, 17, "density", "numbers"},
        {"eps = val f32 1e-6", "eps = in f32[H] ones zeros", 11, 22, "second distribution", "Keep one"},
        {"eps = val f32 1e-6", "eps = in f32[H] align=12", 11, 23, "no power of two", "align=16"},
        {"eps = val f32 1e-6", "eps = out f32[H] ones", 11, 18, "behind an output", "in and inout"},
    };
    check_mistakes(rows, sizeof rows / sizeof *rows);
}

static void values_of_shapes(void)
{
    static const struct mistake rows[] = {
        {"one = T=1 H=64 test", "one = T=1 test", 13, 15, "gives no 'H'", "every dim"},
        {"one = T=1 H=64 test", "one = T=1 H=64", 13, 15, "neither tested nor timed", "test, bench"},
        {"one = T=1 H=64 test", "one = T=1 H=63 test", 13, 7, "breaks require = H%4==0", "Change"},
        {"one = T=1 H=64 test", "one = T=0 H=64 test", 13, 9, "'T' cannot be 0", "from 1 up"},
        {"one = T=1 H=64 test", "one = T=1 H=4294967296 test", 13, 13, "cannot be 4294967296",
         "type of the dim"},
        {"one = T=1 H=64 test", "one = T=1 h=64 H=64 test", 13, 11, "'h' is no dim", "Did you mean"},
        {"one = T=1 H=64 test", "one = T=1 T=2 H=64 test", 13, 11, "'T' is given twice", "Keep one"},
        {"one = T=1 H=64 test", "one = T=1 H=64 tset", 13, 16, "not 'tset'", "Did you mean 'test'?"},
        {"one = T=1 H=64 test", "one = T=1 H=N test", 13, 13, "unknown name 'N'", "number"},
        {"one = T=1 H=64 test", "one = T=1 H=64 test weight=2", 13, 7, "not timed", "bench"},
        {"one = T=1 H=64 test", "one = T=1 H=64 test bench weight=0", 13, 34, "over 0", "weight=2"},
        {"one = T=1 H=64 test", "o:e = T=1 H=64 test", 13, 2, "':' before '='", "no ':'"},
        {"one = T=1 H=64 test", "o/e = T=1 H=64 test", 13, 1, "name of a shape", "letters"},
        {"one = T=1 H=64 test", "one = T=2000000000 H=2000000000 test", 13, 7, "2^40", "smaller"},
        {"one = T=1 H=64 test\nbig = T=32 H=4*1024 test", "big = T=32 H=4*1024", 13, 1, "no shape is a test",
         "ragged"},
        {"4*1024 test bench weight=2", "4*1024 test", 13, 1, "no shape is timed", "large"},
    };
    check_mistakes(rows, sizeof rows / sizeof *rows);
}

static void values_of_the_rest(void)
{
    static const struct mistake rows[] = {
        {"", "[metric]\nbytes = 8*K\n", 18, 11, "'K' is no dim", ""},
        {"", "[metric]\nbytes = T*TT\n", 18, 11, "'TT' is no dim", ""},
        {"", "[metric]\nflops = T-32\n", 14, 7, "not positive", "over 0"},
        {"", "[metric]\nflops = T+\n", 18, 11, "too early", "number"},
        {"", "[check]\nf32 = 1e-5\n", 18, 7, "rtol or k", "rtol 1e-5"},
        {"", "[check]\nf32 = rtol\n", 18, 11, "ends too early", "rtol 1e-5"},
        {"", "[check]\nf32 = rtol 1e-5 k -1\n", 18, 19, "number from 0 up", "rtol 1e-5"},
        {"", "[check]\nf32 = rtol 2\n", 18, 7, "accepts anything", "below 1"},
        {"", "[check]\ni32 = rtol 0\n", 18, 1, "unknown key 'i32'", ""},
        {"", "[check]\ncache = hot\n", 18, 9, "cannot be 'hot'", "warm, cold"},
        {"", "[check]\ndeterministic = true\n", 18, 17, "yes or no", "yes or no"},
        {"", "[accept]\ngain = 0.9\n", 18, 8, "between 1 and 1000", "range"},
        {"", "[accept]\ngain = 1.0x\n", 18, 11, "wants a number", "decimal"},
        {"", "[accept]\nverify =\n", 18, 9, "no value", "remove the line"},
        {"", "[evolve]\niterations = 1.5\n", 18, 14, "whole number", "without a point"},
        {"", "[evolve]\niterations = 0\n", 18, 14, "between 1 and", "range"},
        {"", "[evolve]\nseed = -1\n", 18, 8, "whole number", "2^64"},
        {"", "[budget]\nwall = 2w\n", 18, 8, "wants a duration", "1h30m"},
        {"", "[budget]\nwall = 1h30x\n", 18, 10, "wants a duration", "1h30m"},
        {"", "[budget]\nusd = -5\n", 18, 7, "between 0", "range"},
        {"", "[model a]\nurl = ftp://x\nmodel = m\n", 18, 7, "no http", "https://"},
        {"", "[model a]\nurl = https://x/v1\n", 18, 1, "[model a] has no model", "Add"},
        {"", "[model a]\nurl = https://x/v1\nmodel = m\nkey_env = sk-abc.def\n", 20, 11,
         "environment variable", "never the key"},
        {"", "[model a]\nurl = https://x\nmodel = m\ntemperature = 3\n", 20, 15, "between 0 and 2", "range"},
        {"", "[worker w]\ncount = 0\n", 18, 9, "between 1 and 256", "range"},
        {"", "[proposers]\nrules = lots\n", 18, 9, "wants a number", "decimal"},
        {"", "[proposers]\nruls = 1\n", 18, 1, "no proposer called 'ruls'", "Did you mean 'rules'?"},
        {"", "[proposers]\nexec = 1\n", 18, 1, "exec is not built yet", "Remove"},
        {"", "[ui]\nmouse = maybe\n", 18, 9, "yes or no", "yes or no"},
        {"", "[ui]\nunicode = utf8\n", 18, 11, "auto | yes | no", "auto"},
    };
    check_mistakes(rows, sizeof rows / sizeof *rows);
}

static void a_pasted_key_is_not_repeated(void)
{
    struct task t;
    err_list errors = {0};
    char text[4096];
    replace("", "[model a]\nurl = https://x\nmodel = m\nkey_env = sk-verysecret\n", text, sizeof text);
    CHECK_INT(parse(text, NULL, 0, &t, &errors), -1);
    for (size_t i = 0; i < errors.n; i++)
        CHECK(!strstr(errors.v[i].msg, "secret") && !strstr(errors.v[i].hint, "secret"));
    task_free(&t);
    vec_free(&errors);
}

static void all_errors_are_listed(void)
{
    static const char text[] =
        "[task]\nbackend = gpu\n[args]\nx = in f33[N]\n[shapes]\ns = N=4 test\n[foo]\n";
    struct task t;
    err_list errors = {0};
    CHECK_INT(parse(text, NULL, 0, &t, &errors), -1);
    static const struct mistake wanted[] = {
        {NULL, NULL, 2, 11, "cannot be 'gpu'", ""},  {NULL, NULL, 4, 8, "unknown type", ""},
        {NULL, NULL, 6, 5, "'N' is no dim", ""},     {NULL, NULL, 7, 2, "unknown section", ""},
        {NULL, NULL, 2, 1, "no kernel", ""},         {NULL, NULL, 4, 1, "no argument is out", ""},
        {NULL, NULL, 6, 1, "no shape is timed", ""}, {NULL, NULL, 1, 1, "no reference", ""},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        CHECK(among(&errors, &wanted[i]));
    CHECK_INT(errors.n, 8);
    task_free(&t);
    vec_free(&errors);
}

static void overrides_replace_what_the_file_says(void)
{
    static const char *const set[] = {
        "iterations=9",    "shapes.one=T=3 H=8 test", "build.cflags=-O1", "model a.url=http://h",
        "model a.model=m", "args.eps = val f32 2",    "wall=90"};
    struct task t;
    err_list errors = {0};
    char text[4096];
    replace("", "[build]\ncflags = -O2\ncflags = -g\n[evolve]\niterations = 5\n[proposers]\nrules = 2\n",
            text, sizeof text);
    CHECK_INT(parse(text, set, sizeof set / sizeof *set, &t, &errors), 0);
    for (size_t i = 0; i < errors.n; i++)
        err_print(&errors.v[i], stdout);
    CHECK_INT(t.iterations, 9);
    CHECK_INT(t.shapes.n, 2);
    CHECK_INT(t.shapes.v[0].dims[0], 3);
    CHECK_INT(t.cflags.n, 1);
    CHECK_STR(t.cflags.v[0], "-O1");
    CHECK_INT(t.args.n, 6);
    CHECK_STR(t.args.v[5].name, "eps"); // its place in the C order stays
    CHECK_NEAR(t.args.v[5].value, 2, 0);
    CHECK_NEAR(t.wall_s, 90, 0);
    CHECK_STR(json_str(json_get(t.extra, "model a"), "url"), "http://h");
    CHECK_STR(json_str(json_get(t.extra, "proposers"), "rules"), "2");
    task_free(&t);
    vec_free(&errors);
}

static void overrides_are_checked_alike(void)
{
    static const struct {
        const char *set, *says, *hint;
    } rows[] = {{"iteratons=9", "unknown key 'iteratons'", "Did you mean 'iterations'?"},
                {"evolve.islnds=9", "unknown key 'islnds'", "islands"},
                {"evlve.islands=9", "unknown section [evlve]", "evolve"},
                {"iterations", "no section.key=value", "--set"},
                {"iterations=x", "wants a number", "decimal"},
                {"backend=hip", "not built yet", "cpu"},
                {"model.url=http://h", "needs a name", "[model fast]"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct task t;
        err_list errors = {0};
        CHECK_INT(parse(GOOD, &rows[i].set, 1, &t, &errors), -1);
        CHECK_INT(errors.n, 1);
        if (errors.n) {
            CHECK_STR(errors.v[0].where, "--set");
            CHECK(strstr(errors.v[0].msg, rows[i].says) != NULL);
            CHECK(strstr(errors.v[0].hint, rows[i].hint) != NULL);
        }
        task_free(&t);
        vec_free(&errors);
    }
}

static void hidden_shapes_are_new_allowed_and_small(void)
{
    for (uint64_t secret = 1; secret < 40; secret++) {
        struct task t;
        err_list errors = {0};
        struct task_shape *s;
        size_t n;
        CHECK_INT(parse(GOOD, NULL, 0, &t, &errors), 0);
        task_hidden_shapes(&t, secret, &s, &n);
        bool one = false, less = false, more = false;
        CHECK(n >= 6 && n <= 16);
        for (size_t i = 0; i < n; i++) {
            int64_t count = 0;
            CHECK(s[i].hidden && s[i].test && !s[i].bench);
            CHECK(task_allows(&t, s[i].dims));
            CHECK(task_elements(&t, &t.args.v[0], s[i].dims, &count, NULL) == 0 && count <= 1 << 20);
            one |= s[i].dims[1] == 4; // the least H that require allows
            less |= s[i].dims[1] == 60;
            more |= s[i].dims[1] == 68;
            for (size_t k = 0; k < i; k++)
                CHECK(memcmp(s[i].dims, s[k].dims, 2 * sizeof *s[i].dims) != 0);
            for (size_t k = 0; k < t.shapes.n; k++)
                CHECK(!t.shapes.v[k].test ||
                      memcmp(s[i].dims, t.shapes.v[k].dims, 2 * sizeof *s[i].dims) != 0);
        }
        CHECK(one && less && more);
        for (size_t i = 0; i < n; i++)
            task_shape_free(&s[i]);
        free(s);
        task_free(&t);
        vec_free(&errors);
    }
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char *path = io_join(dir, name);
    CHECK_INT(io_write_file(path, text, strlen(text), 0600, NULL), 0);
    free(path);
}

// Files must exist, the config is merged below the task, and a session is found from below.
static void loading_from_a_folder(void)
{
    struct task t;
    err_list errors = {0};
    struct err e = {0};
    char *dir = io_temp_dir("ksmith-task", &e);
    setenv("XDG_CONFIG_HOME", dir, 1);
    write_file(dir, "task.ini", GOOD);
    CHECK_INT(task_load(dir, NULL, 0, &t, &errors), -1);
    CHECK_INT(errors.n, 2); // neither the kernel nor the reference is there
    CHECK(errors.n && strstr(errors.v[0].msg, "there is no file") && strstr(errors.v[0].where, ":3:10"));
    task_free(&t);
    errors.n = 0;
    write_file(dir, "rms.c", "");
    write_file(dir, "ref.c", "");
    char *sub = io_join(dir, "ksmith");
    CHECK_INT(io_mkdirs(sub, 0700, &e), 0);
    write_file(sub, "config.ini", "[evolve]\niterations = 12\n[ui]\ntheme = night\n");
    CHECK_INT(task_load(dir, NULL, 0, &t, &errors), 0);
    CHECK_INT(t.iterations, 12);
    CHECK_STR(json_str(json_get(t.extra, "ui"), "theme"), "night");
    task_free(&t);
    write_file(sub, "config.ini", "[task]\nname = x\n[ui]\nthem = night\n");
    CHECK_INT(task_load(dir, NULL, 0, &t, &errors), -1);
    CHECK_INT(errors.n, 2);
    CHECK(errors.n == 2 && strstr(errors.v[0].msg, "belongs to a task") &&
          strstr(errors.v[0].where, "config.ini:1:2"));
    CHECK(errors.n == 2 && strstr(errors.v[1].hint, "'theme'"));
    task_free(&t);
    char *found = task_find_dir(sub, &e), *real = realpath(dir, NULL);
    CHECK_STR(found, real);
    free(found);
    free(real);
    CHECK(task_find_dir("/", &e) == NULL && strstr(e.hint, "ksmith new"));
    errors.n = 0;
    CHECK_INT(task_load("/nonexistent", NULL, 0, &t, &errors), -1);
    CHECK(errors.n == 1 && errors.v[0].hint[0]);
    task_free(&t);
    io_remove(dir, NULL);
    free(sub);
    free(dir);
    vec_free(&errors);
}

// Every default that the table names is a value that the table's own parser takes.
static void defaults_of_the_table_are_values(void)
{
    for (size_t i = 0; i < task_keys_n; i++) {
        const struct task_key *k = &task_keys[i];
        CHECK(k->set && k->help && k->type && k->deflt);
        static const char *const plain[] = {"accept", "evolve", "budget"};
        for (size_t p = 0; p < 3; p++) {
            if (strcmp(k->section, plain[p]) != 0 || strcmp(k->deflt, "none") == 0)
                continue;
            char set[128];
            snprintf(set, sizeof set, "%s.%s=%s", k->section, k->key, k->deflt);
            const char *const sets[] = {set};
            struct task t, u;
            err_list errors = {0};
            CHECK_INT(parse(GOOD, sets, 1, &t, &errors), 0);
            CHECK_INT(parse(GOOD, NULL, 0, &u, &errors), 0);
            CHECK(t.gain == u.gain && t.regress == u.regress && t.race_seconds == u.race_seconds &&
                  t.islands == u.islands && t.iterations == u.iterations && t.population == u.population &&
                  t.patience == u.patience && t.seed == u.seed);
            task_free(&t);
            task_free(&u);
            vec_free(&errors);
        }
    }
}

// The man pages name every key of the table, with its type and its default.
static void the_man_pages_know_every_key(void)
{
    struct str task = {0}, config = {0};
    CHECK_INT(io_read_file("man/ksmith-task.5", 1 << 20, &task, NULL), 0);
    CHECK_INT(io_read_file("man/ksmith-config.5", 1 << 20, &config, NULL), 0);
    for (size_t i = 0; i < task_keys_n; i++) {
        const struct task_key *k = &task_keys[i];
        char section[64], item[128], deflt[128];
        snprintf(section, sizeof section, "\n.Ss Section %s", k->section);
        snprintf(item, sizeof item, "\n.It Cm %s No = Ar %s\n", k->key, k->type);
        snprintf(deflt, sizeof deflt, "\nDefault: %s.\n", k->deflt);
        const char *at = strstr(str_c(&task), section);
        at = at ? at : strstr(str_c(&config), section);
        snprintf(section, sizeof section, "\n.Ss Section [%s NAME]", k->section);
        at = at ? at : strstr(str_c(&config), section);
        const char *end = at ? strstr(at, "\n.El\n") : NULL;
        at = at ? strstr(at, item) : NULL;
        const char *next = at ? strstr(at + 1, "\n.It ") : NULL;
        const char *value = at ? strstr(at, deflt) : NULL;
        if (!value || value > end || (next && value > next)) {
            printf("# [%s] %s: no%s%s", k->section, k->key, item, deflt);
            CHECK(false);
        }
    }
    str_free(&task);
    str_free(&config);
}

static void garbage_is_no_crash(void)
{
    uint32_t x = 1;
    for (int round = 0; round < 3000; round++) {
        char text[sizeof GOOD];
        memcpy(text, GOOD, sizeof GOOD);
        for (int i = 0; i < 1 + round % 6; i++) {
            x = x * 1664525u + 1013904223u;
            text[(x >> 8) % (sizeof GOOD - 1)] = "[]()=,+*/%<>?:;#\n \t\0xZ09-.\"'"[(x >> 3) % 28];
        }
        struct task t;
        err_list errors = {0};
        int r = task_parse("task.ini", text, sizeof GOOD - 1, "/s", NULL, 0, &t, &errors);
        CHECK((r == 0) == (errors.n == 0));
        struct task_shape *s = NULL;
        size_t n = 0;
        if (r == 0)
            task_hidden_shapes(&t, 1, &s, &n);
        for (size_t i = 0; i < n; i++)
            task_shape_free(&s[i]);
        free(s);
        task_free(&t);
        vec_free(&errors);
    }
}

int main(void)
{
    T(a_good_task_loads);
    T(names_of_sections_and_keys);
    T(values_of_task);
    T(values_of_args);
    T(values_of_shapes);
    T(values_of_the_rest);
    T(a_pasted_key_is_not_repeated);
    T(all_errors_are_listed);
    T(overrides_replace_what_the_file_says);
    T(overrides_are_checked_alike);
    T(hidden_shapes_are_new_allowed_and_small);
    T(loading_from_a_folder);
    T(defaults_of_the_table_are_values);
    T(the_man_pages_know_every_key);
    T(garbage_is_no_crash);
    T_END;
}
