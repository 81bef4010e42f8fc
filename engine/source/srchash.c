// Source identities (declared in token.h).
#include "base/hash.h"
#include "source/annot.h"
#include "source/token.h"

void source_hash(const char *src, size_t len, char out[65])
{
    sha256_hex(src, len, out);
}

// A directive without its comments and with runs of white space as one space.
static void add_directive(struct sha256 *h, const char *p, size_t n)
{
    struct tokens ts;
    tokens_read(&ts, p + 1, n - 1); // without '#': else it would be one token again
    sha256_add(h, "#", 1);
    for (size_t i = 0; i + 1 < ts.t.n; i++) {
        const struct token *t = &ts.t.v[i];
        // "#define f (x)" and "#define f(x)" differ, so the space before a token counts as one.
        sha256_add(h, t->lead < t->at ? " " : "", t->lead < t->at);
        sha256_add(h, ts.src + t->at, t->len);
    }
    sha256_add(h, "\n", 1);
    tokens_free(&ts);
}

void source_norm_hash(const char *src, size_t len, char out[65])
{
    struct tokens ts;
    tokens_read(&ts, src, len);
    struct sha256 h;
    sha256_init(&h);
    size_t c = 0;
    for (size_t i = 0; i < ts.t.n; i++) {
        const struct token *t = &ts.t.v[i];
        for (; c < ts.comments.n && (ts.comments.v[c].at < t->at || t->kind == TOK_EOF); c++)
            if (annot_is(src + ts.comments.v[c].at, ts.comments.v[c].len)) {
                sha256_add(&h, "@", 1);
                sha256_add(&h, src + ts.comments.v[c].at, ts.comments.v[c].len);
                sha256_add(&h, "\n", 1);
            }
        if (t->kind == TOK_PP && t->len)
            add_directive(&h, src + t->at, t->len);
        else
            sha256_add(&h, src + t->at, t->len);
        sha256_add(&h, "\n", 1);
    }
    sha256_end_hex(&h, out);
    tokens_free(&ts);
}
