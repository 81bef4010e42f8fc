// ksmith asm: the machine code of one candidate, compiled anew with the task's flags and the candidate's own.
#include "cmd/one_kernel.h"
#include "cmd/show_text.h"

static int run(struct args *a)
{
    int status;
    json *ev = one_kernel_ask(a, a->npos ? a->pos[0] : "champion", "assembly", &status);
    const char *text = json_str_or(ev, "text", "");
    show_block(text, strlen(text), "", stdout);
    json_free(ev);
    return status;
}

static const struct opt opts[] = {OPT_TRUST, OPT_SET, OPT_END};

const struct cmd cmd_asm = {
    .name = "asm",
    .args = "[DIR] [ID|FILE]",
    .help = "the machine code of one candidate; the champion's by default",
    .more =
        "Compiled anew with the task's flags and the candidate's own, nothing is run. Addresses and padding\n"
        "are left out and jumps go to labels, so that two of them can be compared with diff. Needs\n"
        "objdump; nvdisasm with backend = cuda.",
    .group = "read",
    .max = 1,
    .takes_dir = true,
    .opts = opts,
    .complete = "id",
    .run = run,
};
