// ksmith diff: what changed between two candidates; a candidate against its parent by default.
#include "source/diff.h"

#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/show_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

static int columns(void)
{
    struct winsize w;
    const char *env = getenv("COLUMNS");
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col)
        return w.ws_col;
    return env ? (int)strtol(env, NULL, 10) : 80;
}

static void cell(const char *text, const struct diff_line *l, bool there, int width, struct str *out)
{
    struct str clean = {0};
    if (there)
        text_clean(&clean, text + l->at, l->len, TEXT_BLOCK);
    int shown = 0;
    const char *s = str_c(&clean);
    // By code points: kernels are nearly always ASCII, and a wider character only shifts its own row.
    for (size_t i = 0; i < clean.len && shown < width; shown++) {
        size_t n = 1;
        while (i + n < clean.len && ((unsigned char)s[i + n] & 0xc0) == 0x80)
            n++;
        str_addn(out, s + i, n);
        i += n;
    }
    for (; shown < width; shown++)
        str_addc(out, ' ');
    str_free(&clean);
}

static void side_by_side(const struct diff *d, int context)
{
    static const char marks[] = {[DIFF_SAME] = ' ', [DIFF_DEL] = '<', [DIFF_ADD] = '>', [DIFF_CHANGE] = '|'};
    diff_rows rows = {0};
    int width = (columns() - 3) / 2;
    diff_side_by_side(d, context, &rows);
    for (size_t i = 0; i < rows.n; i++) {
        const struct diff_row *r = &rows.v[i];
        struct str line = {0};
        if (r->gap)
            puts("...");
        cell(d->old_text, &r->l, r->left != 0, width, &line);
        str_addf(&line, " %c ", marks[r->kind]);
        cell(d->new_text, &r->r, r->right != 0, width, &line);
        while (line.len && line.s[line.len - 1] == ' ')
            line.s[--line.len] = 0;
        puts(str_c(&line));
        str_free(&line);
    }
    diff_rows_free(&rows);
}

static int show(struct args *a, struct session *s, struct err *e)
{
    const struct state *st = &s->state;
    const struct candidate *to = show_find(st, a->npos ? a->pos[a->npos - 1] : "champion", e), *from = NULL;
    if (!to)
        return cmd_fail(e);
    if (a->npos > 1)
        from = show_find(st, a->pos[0], e);
    else
        from = args_flag(a, "parent") && to->nparents ? state_candidate(st, to->parents[0])
                                                      : state_candidate(st, 0);
    if (!from)
        return cmd_fail(e);
    char *old = show_source(s, from, e), *new = old ? show_source(s, to, e) : NULL;
    if (!new) {
        free(old);
        return cmd_fail(e);
    }
    const char *path = st->files.n ? st->files.v[0].path : "kernel";
    struct diff d;
    diff_read(&d, old, strlen(old), new, strlen(new));
    int context = (int)strtol(args_value(a, "context", "3"), NULL, 10);
    if (args_flag(a, "side-by-side")) {
        side_by_side(&d, context);
    } else {
        struct str text = {0};
        diff_unified(&d, path, path, context < 0 ? 3 : context, &text);
        // To a terminal harmless, to a pipe byte for byte: `git apply` reads it.
        if (isatty(STDOUT_FILENO))
            show_block(str_c(&text), text.len, "", stdout);
        else
            fwrite(str_c(&text), 1, text.len, stdout);
        str_free(&text);
    }
    diff_free(&d);
    free(old);
    free(new);
    return 0;
}

static int run(struct args *a)
{
    struct session s;
    struct err e = {0};
    if (session_open(&s, a->dir, SESSION_READ, &e) < 0)
        return cmd_fail(&e);
    int status = show(a, &s, &e);
    session_close(&s);
    return status;
}

static const struct opt opts[] = {{"side-by-side", NULL, "two columns as wide as the terminal"},
                                  {"parent", NULL, "against its parent instead of the baseline"},
                                  {"context", "N", "lines around each change, 3 by default"},
                                  OPT_END};

const struct cmd cmd_diff = {
    .name = "diff",
    .args = "[DIR] [FROM] [ID]",
    .help = "what changed from the baseline (or FROM) to a candidate; the champion by default",
    .group = "read",
    .max = 2,
    .takes_dir = true,
    .opts = opts,
    .complete = "id",
    .run = run,
};
