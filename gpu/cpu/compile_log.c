// A compiler's log cut to what helps: errors first, no paths of ours, at most 4 KiB.
#include "cpu/compile_parts.h"

#include "base/text.h"

enum { LOG_BYTES = 4096 };

static const char *const noise[] = {"collect2: error: ld returned", "compilation terminated.",
                                    "cc1: all warnings being treated", "cc1: some warnings being treated"};
static const char *const errors[] = {": error:",     ": fatal error:",          ": undefined reference to",
                                     ": Error:",     "internal compiler error", "multiple definition of",
                                     ": relocation "};

static bool any(const char *line, size_t n, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memmem(line, n, words[i], strlen(words[i])))
            return true;
    return false;
}

// Removes every `what` from s[0..n) while appending it to out.
static void add_without(struct str *out, const char *s, size_t n, const char *const *what, size_t count)
{
    for (size_t i = 0; i < n;) {
        size_t cut = 0;
        for (size_t k = 0; k < count && !cut; k++) {
            size_t len = strlen(what[k]);
            if (len && n - i >= len && memcmp(s + i, what[k], len) == 0)
                cut = len;
        }
        if (!cut)
            str_addc(out, s[i++]);
        i += cut;
    }
}

struct block {
    size_t at, n;
    bool error;
};
typedef VEC(struct block) blocks;

// A block is a diagnostic with the lines that explain it; "In function" and "In file included from" belong to
// the one that follows.
static void split(const char *s, size_t n, blocks *out)
{
    struct block b = {0, 0, false};
    bool body = false;
    for (size_t i = 0; i < n;) {
        const char *eol = memchr(s + i, '\n', n - i);
        size_t len = eol ? (size_t)(eol - s) - i + 1 : n - i;
        bool error = any(s + i, len, errors, countof(errors));
        bool lead =
            any(s + i, len,
                (const char *const[]){": In function ", "In file included from", ": At top level"}, 3);
        bool starts = error || lead || any(s + i, len, (const char *const[]){": warning:"}, 1);
        if (starts && body) {
            vec_push(out, b);
            b = (struct block){i, 0, false};
            body = false;
        }
        body |= !lead;
        b.error |= error;
        b.n += len;
        i += len;
    }
    if (b.n)
        vec_push(out, b);
}

void compile_log_distil(const char *raw, size_t n, const char *work, const char *project, struct str *out)
{
    char *work_dir = xasprintf("%s/", work), *project_dir = xasprintf("%s/", project);
    const char *const cut[] = {work_dir, project_dir, "./", "/usr/bin/ld: "};
    struct str text = {0}, clean = {0};
    for (size_t i = 0; i < n;) {
        const char *eol = memchr(raw + i, '\n', n - i);
        size_t len = eol ? (size_t)(eol - raw) - i + 1 : n - i;
        if (!any(raw + i, len, noise, countof(noise)))
            add_without(&text, raw + i, len, cut, countof(cut));
        i += len;
    }
    text_clean(&clean, str_c(&text), text.len, TEXT_BLOCK);
    blocks all = {0};
    split(str_c(&clean), clean.len, &all);
    size_t start = out->len, left_out = 0;
    for (int errors_now = 1; errors_now >= 0; errors_now--) {
        for (size_t i = 0; i < all.n; i++) {
            if (all.v[i].error != errors_now)
                continue;
            size_t room = LOG_BYTES - 64 - (out->len - start);
            size_t take = all.v[i].n < room ? all.v[i].n : room;
            if (take < all.v[i].n)
                left_out++;
            if (take == all.v[i].n || out->len == start) // the first is shown in any case, if only in part
                str_addn(out, clean.s + all.v[i].at, take);
        }
    }
    if (left_out)
        str_addf(out, "%s(%zu more left out)\n", str_ends(str_c(out), "\n") ? "" : "\n", left_out);
    vec_free(&all);
    str_free(&text);
    str_free(&clean);
    free(work_dir);
    free(project_dir);
}
