// Diffs: git applies the unified text, rows side by side rebuild both texts, and a small edit gives a small
// diff.
#include "t.h"

#include "base/draw.h"
#include "base/io.h"
#include "base/proc.h"
#include "source/diff.h"

#include <unistd.h>

// Two related texts: few different lines, so that many are equal; CRs, empty lines and a missing newline at
// the end occur.
static void texts(uint64_t seed, struct str *a, struct str *b)
{
    static const char *const lines[] = {"a\n",          "b\n", "\n",    "  c\n", "d\r\n",
                                        "int i = 0;\n", "}\n", "- x\n", "+ y\n", "@@\n"};
    struct draw d = {7, seed};
    size_t n = (size_t)draw_below(d, "lines", 0, 30);
    for (size_t i = 0; i < n; i++) {
        const char *line = lines[draw_below(d, "line", i, countof(lines))];
        uint64_t what = draw_below(d, "what", i, 8);
        if (what != 0)
            str_add(a, line);
        if (what == 1)
            str_add(b, lines[draw_below(d, "other", i, countof(lines))]);
        if (what != 2)
            str_add(b, line);
    }
    if (a->len && draw_below(d, "cut", 0, 4) == 0)
        a->s[--a->len] = 0;
    if (b->len && draw_below(d, "cut", 1, 4) == 0)
        b->s[--b->len] = 0;
}

static void add_line(struct str *out, const char *text, size_t len, const struct diff_line *l)
{
    str_addn(out, text + l->at, l->len);
    if (l->at + l->len < len)
        str_addc(out, '\n');
}

static bool rebuilds(const struct diff *d)
{
    diff_rows rows = {0};
    struct str a = {0}, b = {0};
    diff_side_by_side(d, -1, &rows);
    bool ok = true;
    for (size_t i = 0; i < rows.n; i++) {
        const struct diff_row *r = &rows.v[i];
        if (r->left)
            add_line(&a, d->old_text, d->old_len, &r->l);
        if (r->right)
            add_line(&b, d->new_text, d->new_len, &r->r);
        ok = ok && (r->kind == DIFF_ADD) == (r->left == 0) && (r->kind == DIFF_DEL) == (r->right == 0) &&
             !r->gap;
        for (size_t k = 0; k < r->le.n; k++)
            ok = ok && r->le.v[k].at < r->le.v[k].end && r->le.v[k].end <= r->l.len;
        for (size_t k = 0; k < r->re.n; k++)
            ok = ok && r->re.v[k].at < r->re.v[k].end && r->re.v[k].end <= r->r.len;
    }
    ok = ok && a.len == d->old_len && (!a.len || memcmp(a.s, d->old_text, a.len) == 0);
    ok = ok && b.len == d->new_len && (!b.len || memcmp(b.s, d->new_text, b.len) == 0);
    diff_rows_free(&rows);
    str_free(&a);
    str_free(&b);
    return ok;
}

static bool line_same(const struct diff *d, size_t i, size_t k)
{
    const struct diff_line *x = &d->la.v[i], *y = &d->lb.v[k];
    return x->len == y->len && memcmp(d->old_text + x->at, d->new_text + y->at, x->len) == 0 &&
           (x->at + x->len == d->old_len) == (y->at + y->len == d->new_len);
}

// The longest common subsequence, the slow way.
static size_t longest(const struct diff *d)
{
    static size_t t[80][80];
    for (size_t i = d->la.n + 1; i-- > 0;)
        for (size_t k = d->lb.n + 1; k-- > 0;)
            if (i == d->la.n || k == d->lb.n)
                t[i][k] = 0;
            else if (line_same(d, i, k))
                t[i][k] = t[i + 1][k + 1] + 1;
            else
                t[i][k] = t[i + 1][k] > t[i][k + 1] ? t[i + 1][k] : t[i][k + 1];
    return t[0][0];
}

static bool minimal(const struct diff *d)
{
    size_t common = 0;
    bool ok = true;
    for (size_t i = 0; i < d->spans.n; i++) {
        const struct diff_span *s = &d->spans.v[i];
        ok = ok && (i == 0 || d->spans.v[i - 1].same != s->same);
        for (uint32_t k = 0; s->same && k < s->na; k++)
            ok = ok && line_same(d, s->a + k, s->b + k);
        common += s->same ? s->na : 0;
    }
    if (common != longest(d))
        printf("# %zu lines in common, %zu are possible\n", common, longest(d));
    return ok && common == longest(d);
}

static void random_texts(void)
{
    for (uint64_t k = 0; k < 3000 && !t_bad; k++) {
        struct str a = {0}, b = {0};
        struct diff d;
        texts(k, &a, &b);
        diff_read(&d, str_c(&a), a.len, str_c(&b), b.len);
        CHECK(rebuilds(&d));
        CHECK(minimal(&d));
        CHECK(diff_equal(&d) == (a.len == b.len && strcmp(str_c(&a), str_c(&b)) == 0));
        size_t added, removed;
        diff_stat(&d, &added, &removed);
        CHECK_INT(d.la.n - removed, d.lb.n - added);
        if (t_bad)
            printf("# case %llu\n", (unsigned long long)k);
        diff_free(&d);
        str_free(&a);
        str_free(&b);
    }
}

// All cases as one patch of many files: git is started once.
static void git_applies_it(void)
{
    enum { CASES = 150 };
    char dir[] = "/tmp/ks-diff-XXXXXX";
    struct str patch = {0}, got = {0}, log = {0};
    struct err e = {0};
    CHECK(mkdtemp(dir) != NULL);
    for (uint64_t k = 0; k < CASES; k++) {
        struct str a = {0}, b = {0};
        struct diff d;
        texts(k, &a, &b);
        char *name = xasprintf("f%llu", (unsigned long long)k), *path = io_join(dir, name);
        CHECK_INT(io_write_file(path, str_c(&a), a.len, 0600, &e), 0);
        diff_read(&d, str_c(&a), a.len, str_c(&b), b.len);
        diff_unified(&d, name, name, (int)(k % 4), &patch);
        diff_free(&d);
        str_free(&a);
        str_free(&b);
        free(name);
        free(path);
    }
    char *file = io_join(dir, "patch");
    CHECK_INT(io_write_file(file, str_c(&patch), patch.len, 0600, &e), 0);
    const char *argv[] = {"git", "-C", dir, "apply", "--unidiff-zero", "--whitespace=nowarn", "patch", NULL};
    struct proc_spec spec = {.argv = argv, .in = -1, .out = -1, .err = -1};
    struct proc_end end = {0};
    CHECK(proc_run(&spec, &log, 4000, 60000, &end, &e) == 0 && end.status == 0);
    if (log.len)
        printf("# %s\n", str_c(&log));
    for (uint64_t k = 0; k < CASES; k++) {
        struct str a = {0}, b = {0};
        texts(k, &a, &b);
        char *name = xasprintf("f%llu", (unsigned long long)k), *path = io_join(dir, name);
        str_clear(&got);
        CHECK_INT(io_read_file(path, 1 << 20, &got, &e), 0);
        CHECK(got.len == b.len && strcmp(str_c(&got), str_c(&b)) == 0);
        unlink(path);
        str_free(&a);
        str_free(&b);
        free(name);
        free(path);
    }
    unlink(file);
    rmdir(dir);
    free(file);
    str_free(&patch);
    str_free(&got);
    str_free(&log);
}

static void what_a_reader_sees(void)
{
    static const char a[] = "1\n2\n3\n4\n5\n6\n7\n8\n9\nint x = a + b;\n11\n12\n13\n14\n15\n";
    static const char b[] = "1\n2\n3\n4\n5\n6\n7\n8\n9\nint x = a - b;\n11\n12\n13\n14\n15\n";
    struct diff d;
    diff_rows rows = {0};
    struct str u = {0};
    diff_read(&d, a, sizeof a - 1, b, sizeof b - 1);
    diff_unified(&d, "k.c", "k.c", 1, &u);
    CHECK_STR(str_c(&u),
              "--- a/k.c\n+++ b/k.c\n@@ -9,3 +9,3 @@\n 9\n-int x = a + b;\n+int x = a - b;\n 11\n");
    diff_side_by_side(&d, 2, &rows);
    CHECK_INT(rows.n, 5);
    if (rows.n == 5) {
        CHECK(rows.v[0].gap && rows.v[0].left == 8 && !rows.v[1].gap);
        CHECK(rows.v[2].kind == DIFF_CHANGE && rows.v[2].le.n == 1);
        CHECK(rows.v[2].le.n && a[rows.v[2].l.at + rows.v[2].le.v[0].at] == '+');
    }
    diff_rows_free(&rows);
    str_clear(&u);
    diff_free(&d);
    diff_read(&d, a, sizeof a - 1, a, sizeof a - 1);
    diff_unified(&d, "k.c", "k.c", 3, &u);
    CHECK(diff_equal(&d) && u.len == 0);
    diff_side_by_side(&d, 3, &rows);
    CHECK_INT(rows.n, 0);
    diff_rows_free(&rows);
    diff_free(&d);
    str_free(&u);
}

// Nothing in common, and more than the limit: no long wait, and still right.
static void large_texts(void)
{
    struct str a = {0}, b = {0};
    for (int i = 0; i < 30000; i++) {
        str_addf(&a, "a%d\n", i);
        str_addf(&b, "b%d\n", i);
    }
    struct diff d;
    diff_read(&d, a.s, a.len, b.s, b.len);
    CHECK(rebuilds(&d));
    CHECK(!d.too_big);
    diff_free(&d);
    while (a.len <= DIFF_MAX_BYTES)
        str_addf(&a, "%070d\n", 0);
    diff_read(&d, a.s, a.len, b.s, b.len);
    CHECK(d.too_big && d.spans.n == 1);
    diff_free(&d);
    str_free(&a);
    str_free(&b);
}

int main(void)
{
    T(random_texts);
    T(git_applies_it);
    T(what_a_reader_sees);
    T(large_texts);
    T_END;
}
