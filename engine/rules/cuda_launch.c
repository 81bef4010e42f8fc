// The launch of a kernel as text: read, changed, put back into a source.
#include "rules/cuda.h"

#include "base/task.h"
#include "source/annot.h"

#include <ctype.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static char *trimmed(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at++;
    while (end > at && isspace((unsigned char)end[-1]))
        end--;
    return xstrndup(at, (size_t)(end - at));
}

// The next comma outside of brackets, or end.
static const char *item_end(const char *at, const char *end)
{
    int depth = 0;
    for (; at < end; at++) {
        depth += *at == '(' || *at == '[';
        depth -= *at == ')' || *at == ']';
        if (*at == ',' && depth == 0)
            return at;
    }
    return end;
}

static int list(const char *at, const char *end, char **out, int max)
{
    int n = 0;
    while (at < end) {
        const char *stop = item_end(at, end);
        if (n == max)
            return -1;
        out[n++] = trimmed(at, stop);
        at = stop + (stop < end);
    }
    return n;
}

// "dim3(a, b)" or "(a, b)" or "a".
static int sizes(const char *text, char *out[3])
{
    size_t n = strlen(text);
    if (str_starts(text, "dim3")) {
        const char *open = strchr(text, '(');
        return open && text[n - 1] == ')' ? list(open + 1, text + n - 1, out, 3) : -1;
    }
    out[0] = xstrdup(text);
    return 1;
}

// Does the launch start this kernel?
static bool starts_kernel(const struct rule_source *s, const char *text)
{
    size_t n = strlen(s->f.name);
    while (isspace((unsigned char)*text))
        text++;
    return strncmp(text, s->f.name, n) == 0 && !is_word(text[n]) && text[n] != ':';
}

static bool parse(const char *text, struct cu_launch *l)
{
    const char *open = strstr(text, "<<<"), *close = strstr(text, ">>>");
    const char *args = close ? strchr(close, '(') : NULL, *last = args ? strrchr(args, ')') : NULL;
    char *conf[4] = {0};
    if (!open || !last || close < open || memchr(text, '<', (size_t)(open - text)))
        return false;
    int n = list(open + 3, close, conf, 4);
    bool ok = n >= 2;
    if (ok) {
        l->ngrid = sizes(conf[0], l->grid);
        l->nblock = sizes(conf[1], l->block);
        if (n > 2 && !str_eq(conf[2], "0"))
            l->shared = xstrdup(conf[2]);
        l->args = trimmed(args + 1, last);
        ok = l->ngrid > 0 && l->nblock > 0 && n < 4;
    }
    for (int i = 0; i < 4; i++)
        free(conf[i]);
    return ok;
}

int cu_launch_read(const struct rule_source *s, struct cu_launch *l, char why[240])
{
    struct annots a;
    err_list errors = {0};
    const char *found = NULL;
    int count = 0;
    *l = (struct cu_launch){0};
    annot_read(&a, s->text, s->len, s->path, &errors);
    vec_free(&errors);
    for (size_t i = 0; i < a.launches.n; i++)
        if (starts_kernel(s, a.launches.v[i].text))
            found = a.launches.v[i].text, count++;
    for (size_t i = 0; !a.launches.n && s->task && i < s->task->launches.n; i++)
        if (starts_kernel(s, s->task->launches.v[i]))
            found = s->task->launches.v[i], count++;
    int r = -1;
    if (count != 1)
        snprintf(why, 240,
                 count ? "the kernel is launched more than once" : "nothing says how it is launched");
    else if (!parse(found, l))
        snprintf(why, 240, "its launch is not understood");
    else
        r = 0;
    annot_free(&a);
    return r;
}

void cu_launch_free(struct cu_launch *l)
{
    for (int i = 0; i < 3; i++) {
        free(l->grid[i]);
        free(l->block[i]);
    }
    free(l->shared);
    free(l->args);
    *l = (struct cu_launch){0};
}

static void print_sizes(char *const *v, int n, struct str *out)
{
    if (n == 1) {
        str_add(out, v[0]);
        return;
    }
    for (int i = 0; i < n; i++)
        str_addf(out, "%s%s", i ? ", " : "dim3(", v[i]);
    str_addc(out, ')');
}

void cu_launch_print(const struct rule_source *s, const struct cu_launch *l, struct str *out)
{
    str_addf(out, "%s<<<", s->f.name);
    print_sizes(l->grid, l->ngrid, out);
    str_add(out, ", ");
    print_sizes(l->block, l->nblock, out);
    if (l->shared)
        str_addf(out, ", %s", l->shared);
    str_addf(out, ">>>(%s)", l->args);
}

// Does the kernel leave something for each block?
static bool leaves_blocks(const struct rule_source *s)
{
    bool found = false;
    struct poly block;
    poly_atom(&block, "blockIdx.x");
    for (size_t i = 0; i < s->a.accesses.n && !found; i++) {
        const char *base;
        struct poly sub = {0};
        found = (s->a.accesses.v[i].kind & ACC_WRITE) && cu_access(s, s->a.accesses.v[i].node, &base, &sub) &&
                poly_equal(&sub, &block);
        poly_free(&sub);
    }
    poly_free(&block);
    return found;
}

// The old number of blocks where it stands in other annotations.
static void others_follow(const struct rule_source *s, struct str *text, const char *was, const char *is)
{
    struct annots a;
    err_list errors = {0};
    annot_read(&a, str_c(text), text->len, s->path, &errors);
    vec_free(&errors);
    // From the last to the first; both lists are in the order of the text.
    size_t i = a.launches.n, k = a.scratch.n;
    while (i || k) {
        bool scratch = !i || (k && a.scratch.v[k - 1].at > a.launches.v[i - 1].at);
        struct annot_text *x = scratch ? &a.scratch.v[--k] : &a.launches.v[--i];
        if (!scratch && starts_kernel(s, x->text))
            continue;
        struct str now = {0};
        const char *at = x->text;
        for (const char *hit; (hit = strstr(at, was)); at = hit + strlen(was)) {
            str_addn(&now, at, (size_t)(hit - at));
            str_add(&now, is);
        }
        str_addf(&now, "%s", at);
        char *comment = xasprintf("// %s: %s", scratch ? "scratch" : "launch", now.s);
        str_splice(text, x->at, x->len, comment, strlen(comment));
        free(comment);
        str_free(&now);
    }
    annot_free(&a);
}

int cu_launch_put(const struct rule_source *s, struct str *text, const struct cu_launch *l, struct err *e)
{
    struct annots a;
    err_list errors = {0};
    struct str line = {0}, all = {0};
    cu_launch_print(s, l, &line);
    annot_read(&a, str_c(text), text->len, s->path, &errors);
    vec_free(&errors);
    int r = 0;
    bool done = false;
    for (size_t i = 0; i < a.launches.n && !done; i++) {
        if (!starts_kernel(s, a.launches.v[i].text))
            continue;
        char *comment = xasprintf("// launch: %s", line.s);
        str_splice(text, a.launches.v[i].at, a.launches.v[i].len, comment, strlen(comment));
        free(comment);
        done = true;
    }
    if (!done && !a.launches.n) {
        for (size_t i = 0; s->task && i < s->task->launches.n; i++)
            str_addf(&all, "// launch: %s\n",
                     starts_kernel(s, s->task->launches.v[i]) ? line.s : s->task->launches.v[i]);
        r = rewrite_at_start(s, text, str_c(&all), e);
    }
    annot_free(&a);
    str_free(&line);
    str_free(&all);
    struct cu_launch was;
    char why[240];
    if (r == 0 && cu_launch_read(s, &was, why) == 0 && strchr(was.grid[0], '(') &&
        !str_eq(was.grid[0], l->grid[0]) && leaves_blocks(s))
        others_follow(s, text, was.grid[0], l->grid[0]);
    cu_launch_free(&was);
    return r;
}

static bool flat(char *const *v, int n)
{
    for (int i = 1; i < n; i++)
        if (!str_eq(v[i], "1"))
            return false;
    return true;
}

bool cu_launch_flat(const struct cu_launch *l)
{
    return flat(l->grid, l->ngrid) && flat(l->block, l->nblock);
}

static int64_t number(const struct rule_source *s, const char *text)
{
    char *end;
    long long v = strtoll(text, &end, 10);
    if (*text && !*end)
        return v;
    const struct macro *m = ast_macro(&s->t, text);
    if (m && !m->function && !m->opaque) {
        v = strtoll(m->body, &end, 10);
        while (*end == ' ' || *end == '\t')
            end++;
        return *end && strncmp(end, "//", 2) != 0 ? 0 : v;
    }
    const struct node *n = cu_value(s, text);
    int64_t c;
    return n && node_const(&s->t, n, &c) ? c : 0;
}

int64_t cu_block_size(const struct rule_source *s, const struct cu_launch *l, int d)
{
    return d >= l->nblock ? 1 : number(s, l->block[d]);
}

bool cu_block_warps(const struct rule_source *s, const struct cu_launch *l)
{
    struct annots a;
    err_list errors = {0};
    int64_t now = cu_block_size(s, l, 0);
    annot_read(&a, s->text, s->len, s->path, &errors);
    vec_free(&errors);
    const struct knob *k = annot_knob(&a, l->block[0]);
    bool ok = now > 0 && now % 32 == 0;
    for (size_t i = 0; ok && k && i < k->n; i++)
        ok = atoi(k->values[i]) > 0 && atoi(k->values[i]) % 32 == 0;
    annot_free(&a);
    return ok;
}

bool cu_mentions(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n)
        if ((at == text || (!is_word(at[-1]) && at[-1] != '.')) && !is_word(at[n]) && at[n] != '.')
            return true;
    return false;
}

void cu_replace(const char *text, const char *word, const char *by, struct str *out)
{
    size_t n = strlen(word);
    for (const char *at = text; *at;) {
        bool here = strncmp(at, word, n) == 0 && !is_word(at[n]) && at[n] != '.' &&
                    (at == text || (!is_word(at[-1]) && at[-1] != '.'));
        if (here) {
            str_add(out, by);
            at += n;
        } else {
            str_addc(out, *at++);
        }
    }
}

void cu_site(const struct rule_source *s, rule_sites *out, bool ok, json *params, const char *why, ...)
{
    struct rule_site site = {
        .where = xstrdup("kernel"), .line = (int)s->ts.t.v[s->f.name_tok].line, .ok = ok, .params = params};
    va_list ap;
    va_start(ap, why);
    vsnprintf(site.why, sizeof site.why, why, ap);
    va_end(ap);
    vec_push(out, site);
}
