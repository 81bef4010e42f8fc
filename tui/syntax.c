#include "tui/syntax.h"

#include "base/mem.h"
#include "source/token.h"

#include <string.h>

struct syntax {
    struct tokens tokens;
    size_t at;      // token looked at last
    size_t comment; // and comment
};

static const char *const keywords[] = {
    "auto",       "break",     "case",      "const",          "continue",
    "default",    "do",        "else",      "enum",           "extern",
    "for",        "goto",      "if",        "inline",         "register",
    "restrict",   "return",    "sizeof",    "static",         "struct",
    "switch",     "typedef",   "union",     "volatile",       "while",
    "_Alignas",   "_Alignof",  "_Generic",  "_Static_assert", "template",
    "typename",   "constexpr", "namespace", "using",          "class",
    "operator",   "true",      "false",     "nullptr",        "__restrict__",
    "__restrict", "__asm__",   "asm"};
static const char *const types[] = {
    "void",     "char",          "short",          "int",    "long",    "float",     "double", "signed",
    "unsigned", "_Bool",         "bool",           "size_t", "ssize_t", "ptrdiff_t", "half",   "half2",
    "__half",   "__half2",       "float2",         "float3", "float4",  "int2",      "int4",   "uint4",
    "dim3",     "__nv_bfloat16", "__nv_bfloat162", "__m128", "__m256",  "__m512",    "real"};
static const char *const builtins[] = {
    "__global__",      "__device__",    "__host__",   "__shared__", "__constant__", "__launch_bounds__",
    "__forceinline__", "__noinline__",  "threadIdx",  "blockIdx",   "blockDim",     "gridDim",
    "warpSize",        "__syncthreads", "__syncwarp", "__ldg",      "atomicAdd",    "atomicMax"};

static bool among(const char *s, size_t n, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == n && memcmp(words[i], s, n) == 0)
            return true;
    return false;
}

static bool starts(const char *s, size_t n, const char *prefix)
{
    size_t len = strlen(prefix);
    return n > len && memcmp(s, prefix, len) == 0;
}

static enum slot word_slot(const char *s, size_t n)
{
    if (among(s, n, keywords, countof(keywords)))
        return SLOT_KEYWORD;
    // int32_t, uint8_t and their kind
    if (among(s, n, types, countof(types)) ||
        (n > 5 && n < 10 && memcmp(s + n - 2, "_t", 2) == 0 && (starts(s, n, "int") || starts(s, n, "uint"))))
        return SLOT_TYPE;
    if (among(s, n, builtins, countof(builtins)) || starts(s, n, "__shfl") || starts(s, n, "_mm") ||
        starts(s, n, "__builtin_"))
        return SLOT_BUILTIN;
    return SLOT_CODE;
}

static enum slot token_slot(const struct tokens *ts, const struct token *t)
{
    switch (t->kind) {
    case TOK_IDENT:
        return word_slot(ts->src + t->at, t->len);
    case TOK_NUM:
        return SLOT_NUMBER;
    case TOK_STR:
    case TOK_CHAR:
        return SLOT_STRING;
    case TOK_PP:
        return SLOT_PREPROCESSOR;
    default:
        return SLOT_CODE;
    }
}

struct syntax *syntax_read(const char *text, size_t n)
{
    struct syntax *s = xcalloc(1, sizeof *s);
    tokens_read(&s->tokens, text, n);
    return s;
}

void syntax_free(struct syntax *s)
{
    if (!s)
        return;
    tokens_free(&s->tokens);
    free(s);
}

// Whether a byte lies in a comment; moves the place of the last look.
static bool in_comment(struct syntax *s, size_t at)
{
    const struct comment *v = s->tokens.comments.v;
    size_t n = s->tokens.comments.n;
    if (!n)
        return false;
    if (s->comment >= n || v[s->comment].at > at)
        s->comment = 0;
    while (s->comment + 1 < n && v[s->comment + 1].at <= at)
        s->comment++;
    return at >= v[s->comment].at && at < v[s->comment].at + v[s->comment].len;
}

enum slot syntax_at(struct syntax *s, size_t at)
{
    const struct token *v = s->tokens.t.v;
    size_t n = s->tokens.t.n;
    if (in_comment(s, at))
        return SLOT_COMMENT;
    if (!n)
        return SLOT_CODE;
    if (s->at >= n || v[s->at].at > at) { // backwards: from the start by halves
        size_t low = 0, high = n;
        while (high - low > 1) {
            size_t mid = (low + high) / 2;
            if (v[mid].at <= at)
                low = mid;
            else
                high = mid;
        }
        s->at = low;
    }
    while (s->at + 1 < n && v[s->at + 1].at <= at)
        s->at++;
    const struct token *t = &v[s->at];
    return at >= t->at && at < t->at + t->len ? token_slot(&s->tokens, t) : SLOT_CODE;
}
