#include "base/task_parse.h"

// Sections in the order of the man page.
static const struct {
    const char *name;
    bool named, in_config;
} sections[] = {{"task", false, false},   {"args", false, false},  {"shapes", false, false},
                {"launch", false, false}, {"build", false, false}, {"reference", false, false},
                {"metric", false, false}, {"check", false, false}, {"accept", false, true},
                {"evolve", false, true},  {"budget", false, true}, {"model", true, true},
                {"exec", true, true},     {"worker", true, true},  {"proposers", false, true},
                {"ui", false, true}};

static const char *const w_backend[] = {"cpu", "cuda", NULL};
static const char *const w_evolve[] = {"body", "file", "markers", NULL};
static const char *const w_allow[] = {"fast-math", "threads", "precision", "asm", NULL};
static const char *const w_cache[] = {"warm", "cold", NULL};
static const char *const w_proposers[] = {"rules", "tune", "cross", "llm", NULL};
static const char *const w_policy[] = {"evolve", "random", "knobs", NULL};
static const char *const w_unicode[] = {"auto", "yes", "no", NULL};

#define AT(field) offsetof(struct task, field)
#define KEY(section, key, type, deflt, help, ...)    \
    {                                                \
        section, key, type, deflt, help, __VA_ARGS__ \
    }
#define TOL(type_, deflt_)                                                                                \
    KEY("check", #type_, "tolerance", deflt_,                                                             \
        "outputs y of this type pass where |y-r| <= X*|r| + Y*eps*rms(r), written 'rtol X' or 'rtol X k " \
        "Y'; r "                                                                                          \
        "is the reference's",                                                                             \
        .set = task_set_tolerance)

// The man pages ksmith-task.5 and ksmith-config.5 must name each row; tests/unit/test_task.c holds them to
// it.
const struct task_key task_keys[] = {
    KEY("task", "name", "word", "the folder's name", "what listings and commits call the session",
        .set = task_set_name, .at = AT(name)),
    KEY("task", "backend", "cpu | cuda", "cpu", "which worker compiles and times the kernel",
        .set = task_set_backend, .at = AT(backend), .words = w_backend),
    KEY("task", "kernel", "file:function", "required",
        "the kernel's file, relative to project, and its function", .set = task_set_function,
        .at = AT(kernel_file)),
    KEY("task", "project", "path", "the session's folder",
        "the root that kernel and include paths are relative to", .set = task_set_project, .at = AT(project)),
    KEY("task", "evolve", "body | file | markers", "body",
        "what may change: the function's body, the whole file, or what EVOLVE-BLOCK comments enclose",
        .set = task_set_choice, .at = AT(evolve), .words = w_evolve),
    KEY("task", "require", "expression", "any size works",
        "what the caller guarantees about the dims; several add up", .set = task_set_exprs, .at = AT(require),
        .list = true),
    KEY("args", "NAME", "argument", "required", "one argument of the kernel, in C parameter order",
        .set = task_set_arg),
    KEY("shapes", "NAME", "shape", "required", "sizes to test and to time", .set = task_set_shape),
    KEY("launch", "run", "launch", "the source's launch comments",
        "cuda only: how the kernel is launched; several lines run in order", .set = task_set_line,
        .at = AT(launches), .list = true),
    KEY("build", "cflags", "flags", "-O3 -march=native on cpu, none on cuda",
        "how the project really compiles the kernel; several add up", .set = task_set_flags, .at = AT(cflags),
        .list = true),
    KEY("build", "include", "paths", "none", "folders for #include, relative to project; several add up",
        .set = task_set_words, .at = AT(include), .list = true),
    KEY("build", "define", "macros", "none", "NAME or NAME=VALUE; several add up", .set = task_set_words,
        .at = AT(define), .list = true),
    KEY("build", "allow", "words", "none",
        "genes that the search may use: fast-math, threads, precision, asm", .set = task_set_allow,
        .words = w_allow, .list = true),
    KEY("build", "threads", "integer", "1",
        "threads that the kernel may run on; over 1 needs allow = threads", .set = task_set_int,
        .at = AT(threads), .low = 1, .high = 1024),
    KEY("reference", "c", "file:function", "required, or original",
        "the oracle in C, relative to the session's folder; compiled with real as double",
        .set = task_set_function, .at = AT(ref_file)),
    KEY("reference", "original", "yes | no", "no", "the baseline itself is the oracle", .set = task_set_yes,
        .at = AT(ref_original)),
    KEY("metric", "bytes", "expression", "none",
        "bytes that must move: gives GB/s and % of the measured ceiling", .set = task_set_expr,
        .at = AT(metric_bytes)),
    KEY("metric", "flops", "expression", "none",
        "operations that must be done: gives GFLOP/s and % of the ceiling", .set = task_set_expr,
        .at = AT(metric_flops)),
    TOL(f64, "rtol 1e-7 k 16"),
    TOL(f32, "rtol 1e-5 k 16"),
    TOL(f16, "rtol 1e-3 k 4"),
    TOL(bf16, "rtol 1.6e-2 k 4"),
    TOL(f8e4m3, "rtol 0.125 k 2"),
    TOL(f8e5m2, "rtol 0.25 k 2"),
    KEY("check", "cache", "warm | cold", "warm on cpu, cold on cuda",
        "the state of the cache before each timed run", .set = task_set_choice, .at = AT(cache),
        .words = w_cache),
    KEY("check", "deterministic", "yes | no", "yes", "two runs on the same inputs must give the same bytes",
        .set = task_set_yes, .at = AT(deterministic)),
    KEY("accept", "gain", "ratio", "1.01", "least speedup over the incumbent that counts",
        .set = task_set_number, .at = AT(gain), .low = 1, .high = 1000),
    KEY("accept", "regress", "ratio", "0.98",
        "a bench shape whose interval lies wholly below this forbids acceptance", .set = task_set_number,
        .at = AT(regress), .low = 0, .high = 1),
    KEY("accept", "time", "duration", "10s", "most seconds of one race", .set = task_set_duration,
        .at = AT(race_seconds), .low = 0.1, .high = 3600),
    KEY("accept", "verify", "command", "none", "the project's own tests, run before a kernel can be picked",
        .set = task_set_text, .at = AT(verify)),
    KEY("evolve", "policy", "evolve | random | knobs", "evolve",
        "evolve: select and vary; random: best of N blind rule sequences from the baseline; knobs: only "
        "flags "
        "and knobs",
        .set = task_set_choice, .at = AT(policy), .words = w_policy),
    KEY("evolve", "islands", "integer", "1", "populations that evolve apart and exchange their best",
        .set = task_set_int, .at = AT(islands), .low = 1, .high = 64),
    KEY("evolve", "iterations", "integer", "400", "proposals after which the run ends", .set = task_set_int,
        .at = AT(iterations), .low = 1, .high = 100000000),
    KEY("evolve", "population", "integer", "1000", "most living candidates", .set = task_set_int,
        .at = AT(population), .low = 2, .high = 1000000),
    KEY("evolve", "patience", "integer", "0", "end after so many iterations without acceptance; 0: never",
        .set = task_set_int, .at = AT(patience), .low = 0, .high = 100000000),
    KEY("evolve", "seed", "integer", "1",
        "of all random choices: the same seed and verdicts give the same run", .set = task_set_seed,
        .at = AT(seed)),
    KEY("budget", "wall", "duration", "none", "time after which the run ends, such as 90s, 15m, 2h or 1h30m",
        .set = task_set_duration, .at = AT(wall_s), .low = 0, .high = 366 * 86400.0),
    KEY("budget", "usd", "number", "none", "dollars for models after which no more are asked",
        .set = task_set_number, .at = AT(usd), .low = 0, .high = 1e9),
    KEY("budget", "evaluations", "integer", "none", "verdicts after which the run ends",
        .set = task_set_int64, .at = AT(evaluations), .low = 0, .high = 1e15),
    KEY("model", "url", "URL", "required", "base URL of an OpenAI-compatible API", .set = task_set_url),
    KEY("model", "model", "text", "required", "the model's name at that API", .set = task_set_text),
    KEY("model", "key_env", "word", "none", "the environment variable that holds the API key",
        .set = task_set_env),
    KEY("model", "key_cmd", "command", "none", "a command that prints the API key", .set = task_set_text),
    KEY("model", "weight", "number", "1",
        "share of this model among the models before anything is known of them", .set = task_set_weight,
        .low = 0, .high = 1e6),
    KEY("model", "parallel", "integer", "2", "requests to it at a time", .set = task_set_int, .low = 1,
        .high = 256),
    KEY("model", "temperature", "numbers", "not sent", "sampling temperatures; one is drawn for each request",
        .set = task_set_numbers, .low = 0, .high = 2),
    KEY("model", "top_p", "number", "not sent", "nucleus sampling", .set = task_set_number, .low = 0,
        .high = 1),
    KEY("model", "seed", "yes | no", "no", "send a seed, so that a server that can repeats itself",
        .set = task_set_yes),
    KEY("model", "effort", "word", "not sent", "reasoning_effort", .set = task_set_text),
    KEY("model", "max_tokens", "integer", "not sent", "longest reply", .set = task_set_int64, .low = 1,
        .high = 1e7),
    KEY("model", "max_limit", "integer", "4 times max_tokens",
        "how far max_tokens is raised for a reply that was cut off", .set = task_set_int64, .low = 1,
        .high = 1e7),
    KEY("model", "context", "integer", "32768", "tokens that prompt and reply share", .set = task_set_int64,
        .low = 1024, .high = 1e8),
    KEY("model", "price_in", "number", "unknown", "dollars for a million tokens of prompt",
        .set = task_set_number, .low = 0, .high = 1e5),
    KEY("model", "price_out", "number", "unknown", "dollars for a million tokens of reply",
        .set = task_set_number, .low = 0, .high = 1e5),
    KEY("model", "price_cached", "number", "price_in",
        "dollars for a million tokens of prompt that the server had cached", .set = task_set_number, .low = 0,
        .high = 1e5),
    KEY("model", "stream", "yes | no", "yes", "ask for the reply as it is written", .set = task_set_yes),
    KEY("model", "stall", "integer", "120", "seconds of silence after which a connection is given up",
        .set = task_set_int, .low = 1, .high = 7200),
    KEY("model", "timeout", "integer", "1800", "most seconds of one request", .set = task_set_int, .low = 1,
        .high = 86400),
    KEY("model", "patience", "integer", "900", "seconds to keep trying after 429, 5xx and broken connections",
        .set = task_set_int, .low = 0, .high = 86400),
    KEY("model", "proxy", "URL", "the environment's", "proxy to use instead of https_proxy",
        .set = task_set_text),
    KEY("model", "ca", "path", "the system's", "certificates to trust", .set = task_set_text),
    KEY("model", "header", "Name: value", "none",
        "one more header of each request; {key} in it stands for the key", .set = task_set_text),
    KEY("model", "header2", "Name: value", "none", "a second one", .set = task_set_text),
    KEY("model", "header3", "Name: value", "none", "a third one", .set = task_set_text),
    KEY("model", "body", "JSON object", "none", "more members for each request", .set = task_set_text),
    KEY("exec", "command", "command", "required",
        "makes a candidate in a folder with parent, task and feedback", .set = task_set_text),
    KEY("exec", "timeout", "integer", "600", "seconds after which it and all it started are killed",
        .set = task_set_int, .low = 1, .high = 86400),
    KEY("exec", "parallel", "integer", "1", "how many at a time", .set = task_set_int, .low = 1, .high = 64),
    KEY("exec", "weight", "number", "1", "share of it among the models and commands", .set = task_set_weight,
        .low = 0, .high = 1e6),
    KEY("exec", "usd", "number", "unknown", "dollars that one run costs, for the budget",
        .set = task_set_number, .low = 0, .high = 1e5),
    KEY("worker", "command", "command", "the backend's worker on this machine",
        "starts the worker, for instance through ssh", .set = task_set_text),
    KEY("worker", "device", "text", "any", "the device that the worker uses, as doctor lists it",
        .set = task_set_text),
    KEY("worker", "count", "integer", "1", "workers of this kind", .set = task_set_int, .low = 1,
        .high = 256),
    KEY("proposers", "NAME", "number", "1", "weight of a proposer: rules, tune, cross or llm; 0 turns it off",
        .set = task_set_proposer, .low = 0, .high = 1e6, .words = w_proposers),
    KEY("ui", "theme", "word", "the terminal's", "colour theme, a file in themes/", .set = task_set_text),
    KEY("ui", "keys", "path", "built in", "a file with key bindings", .set = task_set_text),
    KEY("ui", "mouse", "yes | no", "no", "whether the workbench takes the mouse", .set = task_set_yes),
    KEY("ui", "unicode", "auto | yes | no", "auto", "line drawing and bars in UTF-8, or in ASCII",
        .set = task_set_choice, .words = w_unicode),
};
const size_t task_keys_n = countof(task_keys);

const struct task_key *task_key_find(const char *section, const char *key)
{
    for (size_t i = 0; i < task_keys_n; i++)
        if (str_eq(task_keys[i].section, section) &&
            (str_eq(task_keys[i].key, key) || str_eq(task_keys[i].key, "NAME")))
            return &task_keys[i];
    return NULL;
}

bool task_section_known(const char *section, bool *named, bool *in_config)
{
    for (size_t i = 0; i < countof(sections); i++)
        if (str_eq(sections[i].name, section)) {
            *named = sections[i].named;
            *in_config = sections[i].in_config;
            return true;
        }
    return false;
}

const char *const *task_sections(void)
{
    static const char *names[countof(sections) + 1];
    for (size_t i = 0; i < countof(sections); i++)
        names[i] = sections[i].name;
    return names;
}

int task_section_keys(const char *section, const char **out, int max)
{
    int n = 0;
    for (size_t i = 0; i < task_keys_n && n < max; i++)
        if (str_eq(task_keys[i].section, section))
            out[n++] = task_keys[i].key;
    return n;
}
