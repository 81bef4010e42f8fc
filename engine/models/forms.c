#include "models/forms.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

size_t line_end(const char *s, size_t n, size_t at)
{
    const char *nl = at < n ? memchr(s + at, '\n', n - at) : NULL;
    return nl ? (size_t)(nl - s) : n;
}

size_t line_next(const char *s, size_t n, size_t at)
{
    size_t end = line_end(s, n, at);
    return end < n ? end + 1 : n;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t run_of(const char *s, size_t at, size_t end, char c)
{
    size_t k = at;
    while (k < end && s[k] == c)
        k++;
    return k - at;
}

// ---- fences

// Where the fence that opens in line [at, end) begins; end where none does. Inline code (`` ```x``` ``) opens
// none.
static size_t opening(const char *s, size_t at, size_t end, size_t *length)
{
    size_t first = at;
    while (first < end && blank(s[first]))
        first++;
    for (size_t i = first; i < end; i++) {
        if (s[i] != '`' && (s[i] != '~' || i != first))
            continue;
        size_t k = run_of(s, i, end, s[i]);
        if (k < 3) {
            i += k - 1;
            continue;
        }
        size_t info = i + k;
        bool rest_clean = true;
        for (size_t j = info; j < end; j++)
            rest_clean &= s[j] != '`';
        // In the middle of prose only a short label may follow: "here it is: ```c".
        size_t stop = end;
        while (stop > info && blank(s[stop - 1]))
            stop--;
        bool label = i == first || stop - info < 20;
        for (size_t j = info; j < stop && i != first; j++)
            label &= !blank(s[j]);
        if (rest_clean && label) {
            *length = k;
            return i;
        }
        return end;
    }
    return end;
}

// The end of the content where line [at, end) closes a fence; SIZE_MAX where it does not.
static size_t closing(const char *s, size_t at, size_t end, char c, size_t length)
{
    size_t i = at;
    while (i < end && blank(s[i]))
        i++;
    if (run_of(s, i, end, c) >= length)
        return at;
    size_t e = end, k = 0;
    while (e > at && blank(s[e - 1]))
        e--;
    while (e > at && s[e - 1] == c)
        e--, k++;
    return k == length && c == '`' && e > at ? e : (size_t)-1;
}

void fences_find(const char *s, size_t n, fences *out)
{
    bool reopened = false;
    for (size_t at = 0; at < n; at = reopened ? at : line_next(s, n, at)) {
        size_t end = line_end(s, n, at), length = 0, open = opening(s, at, end, &length);
        reopened = false;
        if (open == end)
            continue;
        struct fence f = {.open = at, .body = {line_next(s, n, at), n}, .close = n};
        size_t info = open + length, k = 0;
        while (info < end && blank(s[info]))
            info++;
        while (info < end && !blank(s[info]) && s[info] != '{' && s[info] != ',' && k + 1 < sizeof f.info)
            f.info[k++] = (char)tolower((unsigned char)s[info++]);
        for (at = f.body.at; at < n; at = line_next(s, n, at)) {
            end = line_end(s, n, at);
            size_t stop = closing(s, at, end, s[open], length), again = 0;
            if (stop == (size_t)-1)
                continue;
            f.body.end = stop;
            f.close = end;
            f.closed = true;
            // "```c" inside of a fence: the model forgot to close the first one.
            size_t o = stop == at ? opening(s, at, end, &again) : end;
            if (o < end && o + again < end && isalpha((unsigned char)s[o + again])) {
                f.closed = false;
                f.close = at;
                reopened = true;
            }
            break;
        }
        vec_push(out, f);
    }
}

// ---- blocks

enum mark { M_NONE, M_SEARCH, M_DIVIDER, M_REPLACE };

static enum mark mark_of(const char *s, size_t at, size_t end, const char **rest)
{
    static const struct {
        char c;
        const char *words[3];
        enum mark mark;
    } marks[] = {{'<', {"SEARCH", "ORIGINAL", NULL}, M_SEARCH},
                 {'>', {"REPLACE", "UPDATED", NULL}, M_REPLACE}};
    while (at < end && blank(s[at]))
        at++;
    while (end > at && (blank(s[end - 1]) || s[end - 1] == '\r'))
        end--;
    size_t eq = run_of(s, at, end, '=');
    if (eq >= 5 && eq <= 9 && at + eq == end)
        return M_DIVIDER;
    for (size_t i = 0; i < countof(marks); i++) {
        size_t k = run_of(s, at, end, marks[i].c), w = at + k;
        if (k < 5 || k > 9)
            continue;
        while (w < end && blank(s[w]))
            w++;
        for (const char *const *x = marks[i].words; *x; x++)
            if (end - w >= strlen(*x) && strncmp(s + w, *x, strlen(*x)) == 0) {
                *rest = s + w + strlen(*x);
                return marks[i].mark;
            }
    }
    return M_NONE;
}

static bool fence_line(const char *s, size_t at, size_t end)
{
    while (at < end && blank(s[at]))
        at++;
    return run_of(s, at, end, '`') >= 3 || run_of(s, at, end, '~') >= 3;
}

// A block that was there before is the answer given twice, not a change to be made twice: it goes.
static bool drop_repeated(struct str *out, size_t from)
{
    if (!memmem(out->s, from, out->s + from, out->len - from))
        return false;
    out->s[out->len = from] = 0;
    return true;
}

enum blocks_state blocks_collect(const char *s, size_t n, struct str *out, struct str *bad)
{
    enum mark state = M_NONE; // the mark seen last inside a block
    size_t count = 0, from = 0;
    for (size_t at = 0; at < n; at = line_next(s, n, at)) {
        size_t end = line_end(s, n, at);
        const char *rest = "";
        enum mark m = mark_of(s, at, end, &rest);
        if (m == M_SEARCH && state == M_NONE) {
            const char *anchor = memchr(rest, '@', (size_t)(s + end - rest));
            from = out->len;
            str_add(out, "<<<<<<< SEARCH");
            if (anchor && anchor + 1 < s + end && isdigit((unsigned char)anchor[1]))
                str_addf(out, " @%ld", strtol(anchor + 1, NULL, 10));
            str_addc(out, '\n');
            state = M_SEARCH;
            count++;
        } else if (m == M_SEARCH) {
            str_addf(bad, "block %zu has a second SEARCH marker before its REPLACE marker", count);
            return BLOCKS_BAD;
        } else if (m == M_REPLACE && state == M_NONE) {
            str_addf(bad, "a REPLACE marker stands without its block after block %zu", count);
            return BLOCKS_BAD;
        } else if (m == M_REPLACE && state == M_SEARCH) {
            str_addf(bad, "block %zu has no ======= line between SEARCH and REPLACE", count);
            return BLOCKS_BAD;
        } else if (state != M_NONE) {
            if (m == M_REPLACE)
                str_add(out, ">>>>>>> REPLACE");
            else if (m == M_DIVIDER && state == M_SEARCH)
                str_add(out, "=======");
            else if (fence_line(s, at, end))
                continue; // some put SEARCH and REPLACE into fences of their own
            else
                str_addn(out, s + at, end - at);
            str_addc(out, '\n');
            if (m == M_REPLACE && drop_repeated(out, from))
                count--;
            state = m == M_REPLACE ? M_NONE : m == M_DIVIDER ? M_DIVIDER : state;
        }
    }
    return state != M_NONE ? BLOCKS_OPEN : count ? BLOCKS_OK : BLOCKS_NONE;
}

static bool starts(const char *s, size_t at, size_t end, const char *prefix)
{
    size_t k = strlen(prefix);
    return end - at >= k && memcmp(s + at, prefix, k) == 0;
}

// Cuts a last line of white space; false where there is none.
static bool cut_blank_line(struct str *s)
{
    size_t k = s->len ? s->len - 1 : 0;
    while (k && blank(s->s[k - 1]))
        k--;
    if (!s->len || (k && s->s[k - 1] != '\n'))
        return false;
    s->s[s->len = k] = 0;
    return true;
}

static bool ends_blank(const struct str *s)
{
    struct str copy = {0};
    str_addn(&copy, str_c(s), s->len);
    bool yes = cut_blank_line(&copy);
    str_free(&copy);
    return yes;
}

static void hunk_out(struct str *out, struct str *old, struct str *new, size_t *count)
{
    // Blank lines after a hunk are the answer's, not the code's.
    while (ends_blank(old) && ends_blank(new)) {
        cut_blank_line(old);
        cut_blank_line(new);
    }
    bool changes = old->len != new->len || (old->len && memcmp(old->s, new->s, old->len) != 0);
    if (changes) {
        str_addf(out, "<<<<<<< SEARCH\n%s=======\n%s>>>>>>> REPLACE\n", str_c(old), str_c(new));
        ++*count;
    }
    str_clear(old);
    str_clear(new);
}

// The lines that a hunk's head announces, "@@ -3,4 +3,6 @@": -1 where it says none, as models write them.
struct hunk_lines {
    long old, new;
};
static struct hunk_lines hunk_head(const char *s, size_t at, size_t end)
{
    struct hunk_lines h = {-1, -1};
    char head[64];
    snprintf(head, sizeof head, "%.*s", (int)(end - at < 63 ? end - at : 63), s + at);
    long a, b;
    if (sscanf(head, "@@ -%ld,%ld +%ld,%ld @@", &a, &h.old, &b, &h.new) != 4)
        h = (struct hunk_lines){-1, -1};
    return h;
}

enum blocks_state hunks_collect(const char *s, size_t n, struct str *out)
{
    struct str old = {0}, new = {0};
    size_t count = 0;
    bool inside = false;
    struct hunk_lines left = {-1, -1};
    for (size_t at = 0; at < n; at = line_next(s, n, at)) {
        size_t end = line_end(s, n, at);
        bool head = starts(s, at, end, "@@");
        bool over = starts(s, at, end, "*** ") || starts(s, at, end, "diff --git") ||
                    starts(s, at, end, "--- a/") || starts(s, at, end, "+++ b/") || fence_line(s, at, end);
        if (head || over) {
            hunk_out(out, &old, &new, &count);
            inside = head;
            left = hunk_head(s, at, end);
            continue;
        }
        if (!inside || (at < end && s[at] == '\\'))
            continue;
        char c = at < end ? s[at] : ' ';
        // Counts are often wrong, so they end a hunk only before what cannot be a line of it.
        if (left.old == 0 && left.new == 0 && (at == end || !strchr("+- ", c))) {
            hunk_out(out, &old, &new, &count);
            inside = false;
            continue;
        }
        left.old -= c != '+';
        left.new -= c != '-';
        size_t from = at < end && strchr("+- ", c) ? at + 1 : at;
        if (c != '+') {
            str_addn(&old, s + from, end - from);
            str_addc(&old, '\n');
        }
        if (c != '-') {
            str_addn(&new, s + from, end - from);
            str_addc(&new, '\n');
        }
    }
    hunk_out(out, &old, &new, &count);
    str_free(&old);
    str_free(&new);
    return count ? BLOCKS_OK : BLOCKS_NONE;
}

// ---- code

bool code_mask(const char *s, size_t n, struct str *out)
{
    enum { CODE, LINE, BLOCK, STRING, CHAR } state = CODE;
    str_clear(out);
    str_reserve(out, n + 1);
    str_add(out, "");
    for (size_t i = 0; i < n; i++) {
        char c = s[i], next = i + 1 < n ? s[i + 1] : 0;
        char quote = state == STRING ? '"' : '\'';
        if (state == CODE) {
            state = c == '/' && next == '/'   ? LINE
                    : c == '/' && next == '*' ? BLOCK
                    : c == '"'                ? STRING
                                              : CODE;
            // A digit separator (1'000) is no character constant.
            if (c == '\'' && !(i && isalnum((unsigned char)s[i - 1])))
                state = CHAR;
            str_addc(out, state == CODE ? c : ' ');
            if (state == BLOCK) {
                str_addc(out, ' ');
                i++;
            }
            continue;
        }
        str_addc(out, c == '\n' ? '\n' : ' ');
        if ((state == LINE && c == '\n' && !(i && s[i - 1] == '\\')) ||
            (state > BLOCK && (c == quote || c == '\n')))
            state = CODE;
        else if ((state == BLOCK && c == '*' && next == '/') || (state > BLOCK && c == '\\' && i + 1 < n)) {
            str_addc(out, next == '\n' ? '\n' : ' ');
            i++;
            state = state == BLOCK ? CODE : state;
        }
    }
    return state == CODE || state == LINE;
}

static bool word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool code_defines(const struct str *m, const char *func)
{
    size_t k = strlen(func);
    const char *s = str_c(m), *end = s + m->len;
    for (const char *at = s; (at = strstr(at, func)); at += k) {
        if ((at > s && word_char(at[-1])) || word_char(at[k]))
            continue;
        const char *p = at + k;
        while (p < end && isspace((unsigned char)*p))
            p++;
        if (p == end || *p != '(')
            continue;
        int depth = 0;
        do {
            depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
            p++;
        } while (p < end && depth > 0);
        while (p < end && isspace((unsigned char)*p))
            p++;
        if (p < end && *p == '{')
            return true;
    }
    return false;
}

bool code_balanced(const struct str *m)
{
    VEC(char) open = {0};
    bool ok = true;
    for (size_t i = 0; i < m->len && ok; i++) {
        static const char pairs[] = "()[]{}";
        const char *at = m->s[i] ? strchr(pairs, m->s[i]) : NULL;
        if (!at)
            continue;
        if ((at - pairs) % 2 == 0)
            vec_push(&open, at[1]);
        else
            ok = open.n && open.v[--open.n] == *at;
    }
    ok &= open.n == 0;
    vec_free(&open);
    return ok;
}

static bool elision_words(const char *s, size_t n)
{
    static const char *const words[] = {"rest of",   "existing",       "unchanged",    "same as",
                                        "remaining", "omitted",        "previous",     "as before",
                                        "your code", "stays the same", "original code"};
    char *copy = xstrndup(s, n);
    bool dots = strstr(copy, "...") || strstr(copy, "\xe2\x80\xa6"), found = false;
    for (size_t i = 0; i < countof(words) && dots; i++)
        found |= strcasestr(copy, words[i]) != NULL;
    // Nothing but dots and comment marks.
    found |= dots && strspn(copy, " \t/*.\xe2\x80\xa6") == strlen(copy);
    free(copy);
    return found;
}

bool code_elided(const char *s, size_t n, const struct str *masked)
{
    for (size_t at = 0; at < n; at = line_next(s, n, at)) {
        size_t end = line_end(s, n, at);
        // Only what the mask blanked is a comment; an ellipsis in code is one where it stands alone.
        size_t from = at;
        while (from < end && !(s[from] == '/' && from + 1 < end && masked->s[from] == ' ' &&
                               (s[from + 1] == '/' || s[from + 1] == '*')))
            from++;
        if (from < end && elision_words(s + from, end - from))
            return true;
        size_t a = at, b = end;
        while (a < b && blank(s[a]))
            a++;
        while (b > a && blank(s[b - 1]))
            b--;
        if ((b - a == 3 && memcmp(s + a, "...", 3) == 0) ||
            (b - a == 3 && memcmp(s + a, "\xe2\x80\xa6", 3) == 0))
            return true;
    }
    return false;
}

bool code_same(const char *a, size_t n, const char *b, size_t m)
{
    size_t i = 0, j = 0;
    for (;;) {
        while (i < n && isspace((unsigned char)a[i]))
            i++;
        while (j < m && isspace((unsigned char)b[j]))
            j++;
        if (i == n || j == m)
            return i == n && j == m;
        if (a[i++] != b[j++])
            return false;
    }
}
