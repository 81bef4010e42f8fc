#include "source/merge.h"

#include <git2.h>

// A conflict is found again in the merged text by its markers, so these must not stand in the texts: one
// longer than the longest run of a marker's character at the start of a line.
static size_t longest_run(const struct merge_side *s)
{
    size_t most = 0;
    for (size_t i = 0; i < s->len; i++) {
        char c = s->text[i];
        if ((i && s->text[i - 1] != '\n') || (c != '<' && c != '>' && c != '=' && c != '|'))
            continue;
        size_t n = i;
        while (n < s->len && s->text[n] == c)
            n++;
        most = n - i > most ? n - i : most;
        i = n - 1;
    }
    return most;
}

static bool marker(const char *line, size_t len, char c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (i >= len || line[i] != c)
            return false;
    return n == len || line[n] == ' ' || line[n] == '\n' || line[n] == '\r';
}

static void find_conflicts(struct merge_result *out, size_t n)
{
    struct merge_conflict c = {0};
    uint32_t line = 0;
    for (size_t at = 0; at < out->text.len;) {
        const char *s = out->text.s + at, *nl = memchr(s, '\n', out->text.len - at);
        size_t len = nl ? (size_t)(nl - s) : out->text.len - at;
        line++;
        if (marker(s, len, '<', n)) {
            c.line = line;
        } else if (c.line && marker(s, len, '>', n)) {
            c.last_line = line;
            vec_push(&out->conflicts, c);
            c.line = 0;
        }
        at += len + 1;
    }
}

static int check_sides(const struct merge_side *const sides[3], struct err *e)
{
    static const char *const names[] = {"base", "first", "second"};
    for (int i = 0; i < 3; i++) {
        if (sides[i]->len && memchr(sides[i]->text, 0, sides[i]->len))
            return err_set(e, ERR_USAGE, "Merge texts only.", "the %s text%s%s holds NUL bytes", names[i],
                           sides[i]->label ? ", " : "", sides[i]->label ? sides[i]->label : "");
        if (sides[i]->len >= 1u << 30) // the library refuses more
            return err_set(e, ERR_USAGE, "", "the %s text is over 1 GiB", names[i]);
    }
    return 0;
}

int merge_texts(const struct merge_side *base, const struct merge_side *ours, const struct merge_side *theirs,
                struct merge_result *out, struct err *e)
{
    const struct merge_side *sides[3] = {base, ours, theirs};
    *out = (struct merge_result){0};
    if (check_sides(sides, e) < 0)
        return -1;
    size_t size = GIT_MERGE_CONFLICT_MARKER_SIZE;
    git_merge_file_input in[3];
    for (int i = 0; i < 3; i++) {
        size_t run = longest_run(sides[i]);
        size = run >= size ? run + 1 : size;
        git_merge_file_input_init(&in[i], GIT_MERGE_FILE_INPUT_VERSION);
        in[i].ptr = sides[i]->text ? sides[i]->text : "";
        in[i].size = sides[i]->len;
        in[i].path = "kernel";
    }
    if (size > UINT16_MAX)
        return err_set(e, ERR_USAGE, "Shorten that line.", "a line begins with %zu marker characters",
                       size - 1);
    git_merge_file_options o;
    git_merge_file_options_init(&o, GIT_MERGE_FILE_OPTIONS_VERSION);
    o.ancestor_label = base->label;
    o.our_label = ours->label;
    o.their_label = theirs->label;
    o.flags = GIT_MERGE_FILE_STYLE_ZDIFF3;
    o.marker_size = (unsigned short)size;
    git_merge_file_result r = {0};
    git_libgit2_init();
    int code = git_merge_file(&r, &in[0], &in[1], &in[2], &o);
    if (code < 0) {
        const git_error *why = git_error_last();
        err_set(e, ERR_FAIL, "", "merge: %s", why && why->message ? why->message : "git failed");
    } else {
        str_addn(&out->text, r.ptr ? r.ptr : "", r.len);
        if (!r.automergeable)
            find_conflicts(out, size);
    }
    git_merge_file_result_free(&r);
    git_libgit2_shutdown();
    return code < 0 ? -1 : 0;
}

void merge_result_free(struct merge_result *r)
{
    str_free(&r->text);
    vec_free(&r->conflicts);
}
