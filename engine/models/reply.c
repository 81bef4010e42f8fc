#include "models/reply.h"

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "models/forms.h"

#include <ctype.h>
#include <stdint.h>
#include <strings.h>

static const char *const kind_names[REPLY_KIND_COUNT] = {
    [REPLY_PATCH] = "patch",   [REPLY_SOURCE] = "source", [REPLY_NONE] = "no code", [REPLY_CUT] = "cut off",
    [REPLY_ELIDED] = "elided", [REPLY_BROKEN] = "broken", [REPLY_SAME] = "same",
};

const char *reply_kind_name(enum reply_kind k)
{
    return kind_names[k];
}

void reply_free(struct reply *r)
{
    str_free(&r->name);
    str_free(&r->description);
    str_free(&r->body);
    str_free(&r->problem);
    *r = (struct reply){0};
}

// ---- reading text

// Without byte order mark and NUL, with LF newlines, valid UTF-8.
static void normalise(const char *s, size_t n, struct str *out)
{
    if (n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0)
        s += 3, n -= 3;
    str_reserve(out, n + 1);
    str_add(out, ""); // terminated even where nothing follows
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        int k = text_decode(s + i, n - i, &cp);
        if (s[i] == '\r')
            str_addc(out, '\n');
        else if (k == 0 && s[i])
            str_add(out, "\xef\xbf\xbd");
        else
            str_addn(out, s + i, s[i] ? (size_t)k : 0);
        i += s[i] == '\r' && i + 1 < n && s[i + 1] == '\n' ? 2 : k ? (size_t)k : 1;
    }
}

static const struct {
    const char *open, *close;
} thoughts[] = {
    {"<think>", "</think>"},           {"<thinking>", "</thinking>"},   {"<thought>", "</thought>"},
    {"[THINK]", "[/THINK]"},           {"<reasoning>", "</reasoning>"}, {"<seed:think>", "</seed:think>"},
    {"<reflection>", "</reflection>"},
};

static char *find_tag(const char *s, const char *tag)
{
    return strcasestr(s, tag);
}

// Drops thoughts of one kind. false: one never ends.
static bool drop_kind(struct str *t, const char *open_tag, const char *close_tag)
{
    const char *s = str_c(t), *open = find_tag(s, open_tag), *close = find_tag(s, close_tag);
    size_t k = strlen(close_tag);
    // Templates begin inside of the thought, so that only its end is in the answer.
    if (close && (!open || close < open))
        str_splice(t, 0, (size_t)(close - s) + k, "", 0);
    for (;;) {
        s = str_c(t);
        open = find_tag(s, open_tag);
        // Only where a line begins with it, so that a kernel that mentions it stays whole.
        while (open && open != s && open[-1] != '\n')
            open = find_tag(open + 1, open_tag);
        if (!open)
            return true;
        close = find_tag(open, close_tag);
        if (!close)
            return false;
        str_splice(t, (size_t)(open - s), (size_t)(close - open) + k, "", 0);
    }
}

// Reasoning goes first: it is full of code that the model decided against. false: it never ended.
static bool drop_thoughts(struct str *t)
{
    static const char final[] = "<|channel|>final<|message|>";
    const char *last = NULL;
    for (const char *at = str_c(t); (at = strstr(at, final)); at += sizeof final - 1)
        last = at + sizeof final - 1;
    if (last)
        str_splice(t, 0, (size_t)(last - t->s), "", 0);
    size_t before;
    do { // one kind may stand behind another on its line
        before = t->len;
        for (size_t i = 0; i < countof(thoughts); i++)
            if (!drop_kind(t, thoughts[i].open, thoughts[i].close))
                return false;
    } while (t->len != before);
    return true;
}

// ---- the envelope

struct envelope {
    struct str name, description, code, prose;
    bool any; // a code tag was there
};

static void envelope_free(struct envelope *v)
{
    str_free(&v->name);
    str_free(&v->description);
    str_free(&v->code);
    str_free(&v->prose);
}

static const char *const code_tags[] = {"patch", "diff", "source", "code", "kernel", "search_replace"};

// Does line [at, end) begin with <tag>? The length of what stands before its content.
static size_t tag_at(const char *s, size_t at, size_t end, const char *tag)
{
    size_t k = strlen(tag), i = at;
    while (i < end && (s[i] == ' ' || s[i] == '\t'))
        i++;
    if (end - i < k + 2 || s[i] != '<' || strncasecmp(s + i + 1, tag, k) != 0 || s[i + k + 1] != '>')
        return 0;
    return i + k + 2 - at;
}

// Finds </tag> that ends a line, from `at` on; n where it is not there.
static size_t tag_close(const char *s, size_t n, size_t at, const char *tag, size_t *after)
{
    char *close = xasprintf("</%s>", tag);
    size_t k = strlen(close), found = n;
    for (size_t i = at; i + k <= n; i++)
        if (strncasecmp(s + i, close, k) == 0) {
            size_t end = line_end(s, n, i + k);
            size_t j = i + k;
            while (j < end && isspace((unsigned char)s[j]))
                j++;
            if (j == end) {
                found = i;
                *after = end;
                break;
            }
        }
    free(close);
    return found;
}

// A <name> or <description> at line [at, end): moves *at behind it.
static bool take_meta(const char *s, size_t n, size_t *at, size_t end, struct envelope *v)
{
    for (size_t i = 0; i < 2; i++) {
        const char *tag = i ? "description" : "name";
        struct str *into = i ? &v->description : &v->name;
        size_t k = tag_at(s, *at, end, tag), after = n;
        size_t close = k ? tag_close(s, n, *at + k, tag, &after) : n;
        if (close == n)
            continue;
        str_clear(into);
        str_addn(into, s + *at + k, close - *at - k);
        *at = after;
        return true;
    }
    return false;
}

static bool take_code_tag(const char *s, size_t n, size_t *at, size_t end, struct envelope *v)
{
    for (size_t i = 0; i < countof(code_tags); i++) {
        size_t k = tag_at(s, *at, end, code_tags[i]), after = n;
        if (!k)
            continue;
        size_t close = tag_close(s, n, *at + k, code_tags[i], &after);
        v->any = true;
        if (v->code.len && v->code.s[v->code.len - 1] != '\n')
            str_addc(&v->code, '\n');
        size_t from = *at + k + (s[*at + k] == '\n'); // the code begins on its own line
        if (close > from)
            str_addn(&v->code, s + from, close - from);
        *at = after;
        return true;
    }
    return false;
}

static void take_tags(const char *s, size_t n, struct envelope *v)
{
    for (size_t at = 0; at < n; at = line_next(s, n, at)) {
        size_t end = line_end(s, n, at);
        if (take_meta(s, n, &at, end, v) || take_code_tag(s, n, &at, end, v))
            continue;
        str_addn(&v->prose, s + at, end - at);
        str_addc(&v->prose, '\n');
    }
}

// Where the prose before any code ends.
static size_t prose_end(const char *s, size_t n)
{
    fences f = {0};
    fences_find(s, n, &f);
    const char *block = memmem(s, n, "<<<<<<<", 7);
    size_t end = f.n ? f.v[0].open : block ? (size_t)(block - s) : 0;
    vec_free(&f);
    return end;
}

// Where a JSON object may stand in s[*at, *n): the whole, a fence that says json, or what stands between
// prose.
static bool find_json(const char *s, size_t *at, size_t *n)
{
    fences f = {0};
    while (*at < *n && isspace((unsigned char)s[*at]))
        ++*at;
    if (*at < *n && s[*at] != '{') {
        const char *line = memmem(s, *n, "\n{", 2);
        fences_find(s, *n, &f);
        for (size_t i = 0; i < f.n; i++)
            if (str_eq(f.v[i].info, "json")) {
                *at = f.v[i].body.at;
                *n = f.v[i].body.end;
                line = NULL;
                break;
            }
        if (line)
            *at = (size_t)(line + 1 - s);
        vec_free(&f);
    }
    while (*n > *at && s[*n - 1] != '}')
        --*n;
    return *at < *n && s[*at] == '{';
}

// The envelope as a JSON object.
static bool take_json(const char *s, size_t n, struct envelope *v)
{
    static const char *const code[] = {"source", "code", "kernel", "patch", "diff"};
    size_t at = 0;
    json *j = find_json(s, &at, &n) ? json_parse(s + at, n - at, NULL) : NULL;
    for (size_t i = 0; i < countof(code) && !v->any; i++)
        if (json_str(j, code[i])) {
            str_add(&v->code, json_str(j, code[i]));
            v->any = true;
        }
    if (v->any) {
        str_add(&v->name, json_str_or(j, "name", json_str_or(j, "title", "")));
        str_add(&v->description, json_str_or(j, "description", ""));
    }
    json_free(j);
    return v->any;
}

// "NAME: x", "**Description:** x", "## Name: x" at the start of a line.
static void take_labels(const char *s, size_t n, struct envelope *v)
{
    static const char *const labels[] = {"name", "description"};
    for (size_t at = 0; at < n; at = line_next(s, n, at)) {
        size_t end = line_end(s, n, at), i = at;
        while (i < end && strchr("#* \t-", s[i]))
            i++;
        for (size_t k = 0; k < countof(labels); k++) {
            size_t len = strlen(labels[k]);
            struct str *into = k ? &v->description : &v->name;
            if (into->len || end - i <= len || strncasecmp(s + i, labels[k], len) != 0)
                continue;
            size_t j = i + len;
            while (j < end && s[j] == '*')
                j++;
            if (j == end || s[j] != ':')
                continue;
            j++;
            while (j < end && strchr("* \t", s[j]))
                j++;
            str_addn(into, s + j, end - j);
        }
    }
}

// ---- names fit for a commit

static void tidy(struct str *s, size_t most, enum text_mode mode)
{
    struct str clean = {0};
    char *trimmed = str_trim(s->s ? s->s : (char[]){""});
    for (char *c = trimmed; mode == TEXT_LINE && *c; c++)
        if (isspace((unsigned char)*c))
            *c = ' ';
    text_clean(&clean, trimmed, strlen(trimmed), mode);
    log_redact(&clean);
    if (clean.len > most) {
        size_t cut = most;
        while (cut && ((unsigned char)clean.s[cut] & 0xc0) == 0x80)
            cut--;
        str_splice(&clean, cut, clean.len - cut, "", 0);
    }
    str_free(s);
    *s = clean;
}

// Without a description the prose before the code is one.
static void describe(struct reply *r, struct envelope *v, const char *s, size_t n)
{
    if (!v->description.len)
        str_addn(&v->description, v->any ? str_c(&v->prose) : s, v->any ? v->prose.len : n);
    str_addn(&r->name, str_c(&v->name), v->name.len);
    str_addn(&r->description, str_c(&v->description), v->description.len);
    tidy(&r->name, 72, TEXT_LINE);
    while (r->name.len && strchr("\"'`*.", r->name.s[r->name.len - 1]))
        r->name.s[--r->name.len] = 0;
    while (r->name.len && strchr("\"'`*", r->name.s[0]))
        str_splice(&r->name, 0, 1, "", 0);
    tidy(&r->description, 2000, TEXT_BLOCK);
}

// ---- what it proposes

__attribute__((format(printf, 3, 4))) static void conclude(struct reply *r, enum reply_kind kind,
                                                           const char *fmt, ...)
{
    va_list ap;
    r->kind = kind;
    str_clear(&r->problem);
    va_start(ap, fmt);
    str_addv(&r->problem, fmt, ap);
    va_end(ap);
}

// Judges one text as the whole source or the function. That it is whole is seen from its brackets, not from a
// closing fence, which models forget.
static void judge_source(struct reply *r, const char *s, size_t n, const struct reply_opts *o)
{
    struct str masked = {0}, parent = {0};
    bool whole = code_mask(s, n, &masked);
    bool balanced = whole && code_balanced(&masked);
    bool parent_balanced = code_mask(o->parent, o->parent_len, &parent) && code_balanced(&parent);
    if (o->cut)
        conclude(r, REPLY_CUT, "Your answer was cut off at the token limit.");
    else if (!balanced && parent_balanced)
        conclude(r, REPLY_CUT, "The code is not complete: %s is not closed. Send the complete function.",
                 whole ? "a bracket" : "a comment or a string");
    else if (code_elided(s, n, &masked))
        conclude(r, REPLY_ELIDED,
                 "The code leaves parts out (\"...\"). Write every line out, or use SEARCH/REPLACE blocks.");
    else if (!code_defines(&masked, o->func))
        conclude(r, REPLY_NONE, "The code does not define the function %s.", o->func);
    else if (code_same(s, n, o->parent, o->parent_len))
        conclude(r, REPLY_SAME,
                 "The code is the same as before. Change something that can matter for speed.");
    else {
        r->kind = REPLY_SOURCE;
        while (n && isspace((unsigned char)s[n - 1]))
            n--;
        while (n && *s == '\n')
            s++, n--;
        str_clear(&r->body);
        str_addn(&r->body, s, n);
        str_addc(&r->body, '\n');
    }
    str_free(&masked);
    str_free(&parent);
}

// SEARCH/REPLACE blocks or hunks; false where there are none.
static bool take_patch(struct reply *r, const char *s, size_t n, const struct reply_opts *o)
{
    struct str blocks = {0}, bad = {0};
    enum blocks_state state = blocks_collect(s, n, &blocks, &bad);
    if (state == BLOCKS_NONE)
        state = hunks_collect(s, n, &blocks);
    if (state == BLOCKS_BAD)
        conclude(r, REPLY_BROKEN, "The patch cannot be read: %s.", str_c(&bad));
    else if (state == BLOCKS_OPEN || (state == BLOCKS_OK && o->cut))
        conclude(r, REPLY_CUT,
                 "The last SEARCH/REPLACE block is not complete. Send all blocks again, each whole.");
    else if (state == BLOCKS_OK) {
        r->kind = REPLY_PATCH;
        str_clear(&r->body);
        str_addn(&r->body, blocks.s, blocks.len);
    }
    str_free(&blocks);
    str_free(&bad);
    return state != BLOCKS_NONE;
}

// The fence that holds the new source: the last one that defines the function and is not the parent.
static bool take_fences(struct reply *r, const char *s, size_t n, const struct reply_opts *o)
{
    fences f = {0};
    struct str masked = {0};
    bool any = false;
    fences_find(s, n, &f);
    for (size_t i = f.n; i-- > 0;) {
        const struct fence *x = &f.v[i];
        code_mask(s + x->body.at, x->body.end - x->body.at, &masked);
        bool last_open = !x->closed && x->body.end == n;
        // Half a definition in the last fence is the answer, and it is cut off: an earlier one does not stand
        // in.
        bool begun = last_open && strstr(str_c(&masked), o->func) != NULL;
        if (!code_defines(&masked, o->func) && !begun)
            continue;
        any = true;
        judge_source(r, s + x->body.at, x->body.end - x->body.at, o);
        if (r->kind != REPLY_SAME)
            break;
    }
    if (!any && f.n)
        conclude(r, o->cut ? REPLY_CUT : REPLY_NONE, "No code block of your answer defines the function %s.",
                 o->func);
    str_free(&masked);
    vec_free(&f);
    return any || f.n;
}

// A whole answer that is code without any fence begins with code and ends with it.
static bool looks_bare(const char *s, size_t n)
{
    static const char *const first[] = {"#",          "//",     "/*",     "void",     "static",
                                        "__global__", "extern", "inline", "template", "typedef",
                                        "__device__", "float",  "double", "int"};
    size_t at = 0;
    while (at < n && isspace((unsigned char)s[at]))
        at++;
    while (n > at && isspace((unsigned char)s[n - 1]))
        n--;
    bool good = false;
    for (size_t i = 0; i < countof(first); i++)
        good |= n - at >= strlen(first[i]) && memcmp(s + at, first[i], strlen(first[i])) == 0;
    // "# Heading" is Markdown, "#include" is C.
    if (good && s[at] == '#' && !(at + 1 < n && isalpha((unsigned char)s[at + 1])))
        good = false;
    return good;
}

static void take_code(struct reply *r, const char *s, size_t n, bool code_only, const struct reply_opts *o)
{
    if (take_patch(r, s, n, o) || take_fences(r, s, n, o))
        return;
    if (code_only || looks_bare(s, n))
        judge_source(r, s, n, o);
    else if (o->cut)
        conclude(r, REPLY_CUT, "Your answer was cut off at the token limit before any code.");
    else
        conclude(r, REPLY_NONE, "Your answer holds no code that defines the function %s.", o->func);
}

void reply_read(const char *text, size_t n, const struct reply_opts *o, struct reply *out)
{
    struct str t = {0};
    struct envelope v = {0};
    *out = (struct reply){.kind = REPLY_NONE};
    normalise(text, n, &t);
    bool thought = drop_thoughts(&t);
    const char *s = str_c(&t);
    if (!thought) {
        conclude(out, REPLY_CUT, "Your answer ended inside of its reasoning. Answer with the code.");
    } else {
        if (!take_json(s, t.len, &v))
            take_tags(s, t.len, &v);
        size_t prose = prose_end(s, t.len);
        take_labels(v.any ? str_c(&v.prose) : s, v.any ? v.prose.len : prose, &v);
        if (v.any)
            take_code(out, str_c(&v.code), v.code.len, true, o);
        else
            take_code(out, s, t.len, false, o);
        describe(out, &v, s, prose);
    }
    bool usable = out->kind == REPLY_SOURCE || out->kind == REPLY_PATCH;
    str_clear(usable ? &out->problem : &out->body);
    envelope_free(&v);
    str_free(&t);
}
