#include "source/scan.h"

#include <ctype.h>

const char *scan_severity_name(enum scan_severity s)
{
    static const char *const names[] = {"reject", "flag", "note"};
    return names[s];
}

static const struct {
    const char *word;
    bool call; // only where a ( follows
    enum scan_severity severity;
    const char *reason;
} words[] = {
    {"asm", false, SCAN_REJECT, "inline assembly can reach files and the system past every check"},
    {"__asm__", false, SCAN_REJECT, "inline assembly can reach files and the system past every check"},
    {"__asm", false, SCAN_REJECT, "inline assembly can reach files and the system past every check"},
    {"_Pragma", false, SCAN_REJECT, "a pragma in disguise; write the line itself"},
    {"__DATE__", false, SCAN_REJECT, "the build would differ from one minute to the next"},
    {"__TIME__", false, SCAN_REJECT, "the build would differ from one minute to the next"},
    {"__TIMESTAMP__", false, SCAN_REJECT, "the build would differ from one minute to the next"},
    {"constructor", false, SCAN_REJECT, "code that runs when the kernel is loaded"},
    {"destructor", false, SCAN_REJECT, "code that runs when the kernel is unloaded"},
    {"ifunc", false, SCAN_REJECT, "code that runs when the kernel is loaded"},
    {"section", true, SCAN_REJECT, "code or data in a section of its own"},
    {"syscall", true, SCAN_REJECT, "a system call"},
    {"fork", true, SCAN_REJECT, "starts a process"},
    {"vfork", true, SCAN_REJECT, "starts a process"},
    {"clone", true, SCAN_REJECT, "starts a process or thread"},
    {"system", true, SCAN_REJECT, "starts a program"},
    {"popen", true, SCAN_REJECT, "starts a program"},
    {"execve", true, SCAN_REJECT, "starts a program"},
    {"execl", true, SCAN_REJECT, "starts a program"},
    {"execvp", true, SCAN_REJECT, "starts a program"},
    {"dlopen", true, SCAN_REJECT, "loads other code"},
    {"dlsym", true, SCAN_REJECT, "reaches other code"},
    {"mmap", true, SCAN_REJECT, "maps memory of its own"},
    {"mprotect", true, SCAN_REJECT, "changes memory protection"},
    {"ptrace", true, SCAN_REJECT, "reaches into other processes"},
    {"pthread_create", true, SCAN_REJECT, "starts a thread outside OpenMP"},
    {"thrd_create", true, SCAN_REJECT, "starts a thread outside OpenMP"},
    {"signal", true, SCAN_REJECT, "changes how signals are handled"},
    {"sigaction", true, SCAN_REJECT, "changes how signals are handled"},
    {"setjmp", true, SCAN_REJECT, "jumps past the harness"},
    {"longjmp", true, SCAN_REJECT, "jumps past the harness"},
    {"clock_gettime", true, SCAN_REJECT, "looks at the clock"},
    {"gettimeofday", true, SCAN_REJECT, "looks at the clock"},
    {"clock", true, SCAN_REJECT, "looks at the clock"},
    {"time", true, SCAN_REJECT, "looks at the clock"},
    {"__rdtsc", true, SCAN_REJECT, "looks at the clock"},
    {"__builtin_ia32_rdtsc", true, SCAN_REJECT, "looks at the clock"},
    {"open", true, SCAN_REJECT, "opens a file"},
    {"fopen", true, SCAN_REJECT, "opens a file"},
    {"_mm_setcsr", true, SCAN_REJECT, "changes the floating-point mode of the process"},
    {"_MM_SET_FLUSH_ZERO_MODE", true, SCAN_REJECT, "changes the floating-point mode of the process"},
    {"_MM_SET_DENORMALS_ZERO_MODE", true, SCAN_REJECT, "changes the floating-point mode of the process"},
    {"__builtin_ia32_ldmxcsr", true, SCAN_REJECT, "changes the floating-point mode of the process"},
    {"fesetenv", true, SCAN_REJECT, "changes the floating-point mode of the process"},
    {"fesetround", true, SCAN_REJECT, "changes the floating-point mode of the process"},
    {"exit", true, SCAN_REJECT, "ends the process"},
    {"_exit", true, SCAN_REJECT, "ends the process"},
    {"abort", true, SCAN_REJECT, "ends the process"},
    {"printf", true, SCAN_REJECT, "prints; a kernel only computes"},
    {"fprintf", true, SCAN_REJECT, "prints; a kernel only computes"},
    {"_Thread_local", false, SCAN_REJECT, "state that outlives the call"},
    {"__thread", false, SCAN_REJECT, "state that outlives the call"},
};

static const char *const headers[] = {
    "math.h",      "stdint.h",    "stddef.h",    "stdbool.h",   "string.h",    "float.h",
    "limits.h",    "tgmath.h",    "complex.h",   "immintrin.h", "xmmintrin.h", "emmintrin.h",
    "pmmintrin.h", "tmmintrin.h", "smmintrin.h", "nmmintrin.h", "x86intrin.h", "arm_neon.h",
    "arm_sve.h",   "stdlib.h",    "assert.h",    "stdalign.h",  "inttypes.h"};
static const char *const cuda_headers[] = {
    "cuda_fp16.h",    "cuda_bf16.h",          "cuda_fp8.h",
    "cuda_runtime.h", "cooperative_groups.h", "mma.h",
    "cuda/pipeline",  "cuda/barrier",         "cooperative_groups/reduce.h"};

struct scanner {
    const struct tokens *ts;
    const struct scan_opts *o;
    scan_findings *out;
};

static void find(struct scanner *s, uint32_t tok, enum scan_severity severity, const char *what, size_t n,
                 const char *reason)
{
    const struct token *t = &s->ts->t.v[tok];
    struct scan_finding f = {.severity = severity, .line = t->line, .col = t->col};
    snprintf(f.what, sizeof f.what, "%.*s", (int)n, what);
    snprintf(f.reason, sizeof f.reason, "%s", reason);
    vec_push(s->out, f);
}

static bool listed(const char *const *list, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i]) == len && strncmp(list[i], name, len) == 0)
            return true;
    return false;
}

static void scan_include(struct scanner *s, uint32_t tok)
{
    const struct token *t = &s->ts->t.v[tok];
    const char *p = s->ts->src + t->at, *end = p + t->len, *open = p;
    while (open < end && *open != '<' && *open != '"')
        open++;
    const char *close =
        open < end ? memchr(open + 1, *open == '<' ? '>' : '"', (size_t)(end - open - 1)) : NULL;
    if (!close) {
        find(s, tok, SCAN_REJECT, p, t->len, "an include whose file is made by a macro");
        return;
    }
    const char *name = open + 1;
    size_t n = (size_t)(close - name);
    if (*name == '/' || memmem(name, n, "..", 2))
        find(s, tok, SCAN_REJECT, p, t->len, "reads a file outside the project through the compiler");
    else if (!listed(headers, countof(headers), name, n) &&
             !(s->o->cuda && listed(cuda_headers, countof(cuda_headers), name, n)) &&
             !(s->o->threads && n == 5 && strncmp(name, "omp.h", 5) == 0))
        find(s, tok, SCAN_REJECT, p, t->len,
             "a header that kernels have no need of and the baseline does not include");
}

static bool word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// __constructor__ is constructor.
static size_t entry_of(const char *word, size_t n)
{
    size_t in = n;
    const char *bare = word;
    if (in > 4 && strncmp(bare, "__", 2) == 0 && strncmp(bare + in - 2, "__", 2) == 0) {
        bare += 2;
        in -= 4;
    }
    for (size_t i = 0; i < countof(words); i++) {
        size_t len = strlen(words[i].word);
        if ((len == n && strncmp(words[i].word, word, n) == 0) ||
            (len == in && strncmp(words[i].word, bare, in) == 0))
            return i;
    }
    return countof(words);
}

// The words of a macro's body count like those of the text.
static void scan_macro(struct scanner *s, uint32_t tok)
{
    const struct token *t = &s->ts->t.v[tok];
    const char *text = s->ts->src + t->at, *end = text + t->len;
    for (const char *at = text; at < end;) {
        const char *word = at;
        while (at < end && word_char(*at))
            at++;
        size_t n = (size_t)(at - word), i = n ? entry_of(word, n) : countof(words);
        if (i < countof(words) && !(s->o->allow_asm && strstr(words[i].word, "asm")))
            find(s, tok, words[i].severity, word, n, words[i].reason);
        if (n == 6 && strncmp(word, "static", 6) == 0)
            find(s, tok, SCAN_REJECT, "static", 6, "a variable that keeps its value from call to call");
        at += n == 0;
    }
    if (memmem(text, t->len, "##", 2) || memmem(text, t->len, "%:%:", 4))
        find(s, tok, SCAN_REJECT, "##", 2, "a macro that pastes names together can hide any of them");
}

// Spellings that mean something else to the compiler than to every reader, this one included: words cut by a
// line continuation, digraphs and trigraphs.
static void scan_disguises(struct scanner *s)
{
    const char *src = s->ts->src;
    for (uint32_t i = 0; i < s->ts->t.n; i++) {
        const struct token *t = &s->ts->t.v[i];
        for (uint32_t k = t->lead; k + 1 < t->at + t->len; k++) {
            size_t nl = src[k] != '\\' ? 0 : src[k + 1] == '\n' ? k + 1 : k + 2;
            if (!nl || nl + 1 >= s->ts->len || src[nl] != '\n' || k == 0)
                continue;
            if (word_char(src[nl + 1]) && (word_char(src[k - 1]) || src[k - 1] == '#'))
                find(s, i, SCAN_REJECT, "\\", 1, "a word cut in two by a line continuation");
        }
        if (t->kind != TOK_STR && t->kind != TOK_CHAR && memmem(src + t->at, t->len, "??", 2))
            find(s, i, SCAN_REJECT, "??", 2, "a trigraph");
        if (t->kind != TOK_PUNCT || t->at + t->len >= s->ts->len)
            continue;
        static const char *const digraphs[] = {"%:", "<%", "%>", "<:", ":>"};
        for (size_t k = 0; k < countof(digraphs); k++)
            if (strncmp(src + t->at, digraphs[k], 2) == 0)
                find(s, i, SCAN_REJECT, digraphs[k], 2, "a digraph; write the character itself");
    }
    for (uint32_t i = 0; i + 1 < s->ts->t.n; i++)
        if (token_op(s->ts, i, OP_QUEST) && token_op(s->ts, i + 1, OP_QUEST))
            find(s, i, SCAN_REJECT, "??", 2, "a trigraph");
}

static void scan_directive(struct scanner *s, uint32_t tok)
{
    const struct token *t = &s->ts->t.v[tok];
    char buf[32];
    const char *w = token_pp_word(s->ts, tok, buf), *text = s->ts->src + t->at;
    if (str_eq(w, "include") || str_eq(w, "include_next") || str_eq(w, "import"))
        scan_include(s, tok);
    else if (str_eq(w, "line") || isdigit((unsigned char)*w))
        find(s, tok, SCAN_REJECT, text, t->len, "hides where the code stands");
    else if (str_eq(w, "embed"))
        find(s, tok, SCAN_REJECT, text, t->len, "reads a file through the compiler");
    else if (str_eq(w, "pragma")) {
        bool parallel = memmem(text, t->len, "omp", 3) &&
                        (memmem(text, t->len, "parallel", 8) || memmem(text, t->len, "task", 4));
        if (parallel && !s->o->threads)
            find(s, tok, SCAN_REJECT, text, t->len, "starts threads, which the task does not allow");
        if (memmem(text, t->len, "GCC target", 10) || memmem(text, t->len, "GCC optimize", 12))
            find(s, tok, SCAN_REJECT, text, t->len,
                 "changes compiler flags inside the text; use a flags line");
        if (memmem(text, t->len, "weak", 4) || memmem(text, t->len, "redefine_extname", 16))
            find(s, tok, SCAN_REJECT, text, t->len, "changes what a name means to the linker");
    } else if (str_eq(w, "define")) {
        scan_macro(s, tok);
    }
}

// static without const, inside a function: keeps a value from call to call.
static void scan_static(struct scanner *s, uint32_t tok)
{
    bool is_const = false, is_func = false;
    for (uint32_t k = tok + 1; k < s->ts->t.n; k++) {
        if (s->ts->t.v[k].kind == TOK_PUNCT &&
            (token_op(s->ts, k, OP_SEMI) || token_op(s->ts, k, OP_ASSIGN) || token_op(s->ts, k, OP_LBRACE)))
            break;
        // const float *p: what p points to stays, p does not.
        is_const = (is_const && !token_op(s->ts, k, OP_MUL)) || token_is(s->ts, k, "const") ||
                   token_is(s->ts, k, "constexpr");
        if (token_op(s->ts, k, OP_LBRACK) && s->ts->t.v[k].match > k)
            k = s->ts->t.v[k].match;
        is_func |= token_op(s->ts, k, OP_LPAREN) && s->ts->t.v[k - 1].kind == TOK_IDENT;
    }
    if (!is_const && !is_func)
        find(s, tok, SCAN_REJECT, "static", 6, "a variable that keeps its value from call to call");
}

static void scan_word(struct scanner *s, uint32_t tok)
{
    const struct token *t = &s->ts->t.v[tok];
    const char *text = s->ts->src + t->at;
    size_t i = entry_of(text, t->len);
    // A member is something else.
    bool member = tok && (token_op(s->ts, tok - 1, OP_DOT) || token_op(s->ts, tok - 1, OP_ARROW));
    bool known = i < countof(words) && !member && (!words[i].call || token_op(s->ts, tok + 1, OP_LPAREN)) &&
                 !(s->o->allow_asm && strstr(words[i].word, "asm"));
    if (known)
        find(s, tok, words[i].severity, text, t->len, words[i].reason);
    if (token_is(s->ts, tok, "static") && !s->o->cuda)
        scan_static(s, tok);
}

// A declaration outside of functions, from its first token; returns the token after it.
static uint32_t scan_global(struct scanner *s, uint32_t first)
{
    const struct tokens *ts = s->ts;
    bool is_const = false, other = token_is(ts, first, "typedef") || token_is(ts, first, "static");
    bool tag = token_is(ts, first, "struct") || token_is(ts, first, "union") || token_is(ts, first, "enum");
    uint32_t i = first, name = 0;
    bool head = true; // before = and [
    for (; i < ts->t.n && !token_op(ts, i, OP_SEMI); i++) {
        const struct token *t = &ts->t.v[i];
        if (t->kind == TOK_PUNCT && t->op == OP_LPAREN && head)
            other = true; // a function
        if (t->kind == TOK_PUNCT && (t->op == OP_LPAREN || t->op == OP_LBRACK || t->op == OP_LBRACE) &&
            t->match > i) {
            bool body = t->op == OP_LBRACE && head && !tag;
            head = head && t->op == OP_LBRACE;
            i = t->match;
            if (body)
                return i + 1; // a function's or namespace's braces: no semicolon follows
            name = head ? 0 : name;
            continue;
        }
        head = head && !token_op(ts, i, OP_ASSIGN);
        is_const = (is_const && !(head && token_op(ts, i, OP_MUL))) || token_is(ts, i, "const");
        name = head && t->kind == TOK_IDENT && i > first ? i : name;
    }
    bool forward = tag && i - first == 2;
    if (!other && !is_const && !forward && name && !ts->t.v[first].inactive)
        find(s, name, SCAN_REJECT, ts->src + ts->t.v[name].at, ts->t.v[name].len,
             "a variable outside of functions keeps its value from call to call");
    return i + 1;
}

static void scan_globals(struct scanner *s)
{
    for (uint32_t i = 0; i < s->ts->t.n && s->ts->t.v[i].kind != TOK_EOF;) {
        bool plain = s->ts->t.v[i].kind == TOK_IDENT;
        i = plain ? scan_global(s, i) : i + 1;
    }
}

static void scan_all(struct scanner *s)
{
    for (uint32_t i = 0; i < s->ts->t.n; i++) {
        const struct token *t = &s->ts->t.v[i];
        if (t->kind == TOK_PP)
            scan_directive(s, i);
        else if (t->kind == TOK_IDENT)
            scan_word(s, i);
        else if (t->kind == TOK_STR && memmem(s->ts->src + t->at, t->len, ".incbin", 7))
            find(s, i, SCAN_REJECT, ".incbin", 7, "reads a file through the assembler");
    }
    scan_disguises(s);
    if (!s->o->cuda)
        scan_globals(s);
}

size_t scan_source(const char *text, size_t len, const char *baseline, size_t blen, const struct scan_opts *o,
                   scan_findings *out)
{
    struct tokens ts, base;
    scan_findings known = {0}, all = {0};
    tokens_read(&ts, text, len);
    struct scanner s = {&ts, o, &all};
    scan_all(&s);
    if (baseline) {
        tokens_read(&base, baseline, blen);
        struct scanner b = {&base, o, &known};
        scan_all(&b);
        tokens_free(&base);
    }
    size_t rejected = 0;
    for (size_t i = 0; i < all.n; i++) {
        bool old = false;
        for (size_t k = 0; k < known.n; k++)
            old |= str_eq(known.v[k].what, all.v[i].what);
        if (old)
            continue;
        vec_push(out, all.v[i]);
        rejected += all.v[i].severity == SCAN_REJECT;
    }
    vec_free(&known);
    vec_free(&all);
    tokens_free(&ts);
    return rejected;
}
