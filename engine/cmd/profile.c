// ksmith profile: what the GPU's profiler says of one candidate.
#include "cmd/one_kernel.h"
#include "cmd/show_text.h"

static void print(const json *ev)
{
    printf("on shape %s\n", json_str_or(ev, "shape", "?"));
    for (const json *k = json_first(json_get(ev, "kernels")); k; k = json_next(k)) {
        show_clean(json_str_or(k, "name", "?"), stdout);
        putchar('\n');
        for (const json *m = json_first(json_get(k, "metrics")); m; m = json_next(m)) {
            printf("  %-44s ", json_key(m));
            show_clean(json_string(m) ? json_string(m) : "", stdout);
            putchar('\n');
        }
    }
}

static int run(struct args *a)
{
    int status;
    json *ev = one_kernel_ask(a, a->pos[0], "profile", &status);
    if (ev && args_flag(a, "json"))
        show_json(ev);
    else if (ev)
        print(ev);
    json_free(ev);
    return status;
}

static const struct opt opts[] = {OPT_TRUST, OPT_JSON, OPT_SET, OPT_END};

const struct cmd cmd_profile = {
    .name = "profile",
    .args = "[DIR] ID|FILE",
    .help = "what NVIDIA's ncu says of one candidate on the first bench shape",
    .more = "Needs backend = cuda and ncu on PATH; nothing else of ksmith does.",
    .group = "read",
    .min = 1,
    .max = 1,
    .takes_dir = true,
    .opts = opts,
    .complete = "id",
    .run = run,
};
