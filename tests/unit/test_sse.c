// Server-sent events: every way to cut a stream gives the same events.
#include "t.h"

#include "base/hash.h"
#include "models/sse.h"

struct got {
    struct str all;
    size_t stop_after, n;
};

static bool take(void *user, const char *name, const char *data, size_t n)
{
    struct got *g = user;
    str_addf(&g->all, "%s=", name);
    str_addn(&g->all, data, n);
    str_addc(&g->all, '|');
    return ++g->n != g->stop_after;
}

static void run(const char *text, size_t len, size_t piece, struct got *g)
{
    struct sse s;
    sse_init(&s, take, g);
    for (size_t i = 0; i < len; i += piece) {
        size_t n = len - i < piece ? len - i : piece;
        char *copy = malloc(n); // exact size, so that a sanitizer sees an overread
        memcpy(copy, text + i, n);
        CHECK(sse_feed(&s, copy, n, NULL) == 0);
        free(copy);
    }
    CHECK(sse_end(&s, NULL) == 0);
    sse_free(&s);
}

static const struct {
    const char *in, *out;
} cases[] = {
    {"data: a\n\n", "message=a|"},
    {"data:a\r\ndata: b\r\n\r\n", "message=a\nb|"},
    {"data: a\rdata\r\rdata: c\r\r", "message=a\n|message=c|"},
    {"\xef\xbb\xbf"
     "data: x\n\n",
     "message=x|"},
    {": keep-alive\n\n\n:\ndata: 1\n: between\ndata: 2\n\n", "message=1\n2|"},
    {"event: done\nid: 7\nretry: 10\ndata: y\n\ndata: z\n\n", "done=y|message=z|"},
    {"event: empty\n\ndata: z\n\n", "message=z|"},
    {"data:  two spaces\nData: not ours\nfoo\n\n", "message= two spaces|"},
    {"data: \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n\n", "message=\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80|"},
    {"data: last without a blank line", "message=last without a blank line|"},
    {"data: [DONE]\r\n", "message=[DONE]|"},
    {"{\"error\":{}}", "json={\"error\":{}}|"},
    {"data: a\n{\"error\":1}\n", "message=a|json={\"error\":1}|"},
    {"error: {\"code\":500}\n\n", "error={\"code\":500}|"},
    {"", ""},
    {"\n\r\n\r", ""},
};

static void any_fragmentation_gives_the_same_events(void)
{
    for (size_t i = 0; i < countof(cases); i++)
        for (size_t piece = 1; piece <= strlen(cases[i].in) + 1; piece++) {
            struct got g = {0};
            run(cases[i].in, strlen(cases[i].in), piece, &g);
            CHECK_STR(str_c(&g.all), cases[i].out);
            str_free(&g.all);
        }
}

static void a_callback_can_stop_it(void)
{
    struct got g = {.stop_after = 2};
    const char *text = "data: 1\n\ndata: 2\n\ndata: 3\n\n";
    run(text, strlen(text), 100, &g);
    CHECK_STR(str_c(&g.all), "message=1|message=2|");
    str_free(&g.all);
}

static void sizes_are_capped(void)
{
    struct got g = {0};
    struct sse s;
    struct err e = {0};
    sse_init(&s, take, &g);
    size_t n = SSE_MAX_LINE + 10;
    char *big = malloc(n);
    memset(big, 'x', n);
    CHECK(sse_feed(&s, big, n, &e) < 0);
    CHECK(e.msg[0]);
    CHECK(sse_feed(&s, "data: a\n\n", 9, &e) == 0);
    CHECK_INT(g.n, 0);
    sse_free(&s);
    sse_init(&s, take, &g);
    int r = 0;
    for (int i = 0; i < 4 && r == 0; i++) {
        r = sse_feed(&s, "data:", 5, &e);
        if (r == 0)
            r = sse_feed(&s, big, SSE_MAX_LINE - 100, &e);
        if (r == 0)
            r = sse_feed(&s, "\n", 1, &e);
    }
    CHECK(r < 0);
    sse_free(&s);
    free(big);
    str_free(&g.all);
}

static void noise_is_survived(void)
{
    for (unsigned seed = 0; seed < 300; seed++) {
        static const char alphabet[] = "data: \n\r\xef\xbb\xbf{}:\xffx";
        char text[200];
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = alphabet[hash_mix(seed * 1000u + i) % (sizeof alphabet)];
        struct got whole = {0}, cut = {0};
        run(text, sizeof text, sizeof text, &whole);
        run(text, sizeof text, 1 + seed % 7, &cut);
        CHECK_INT(whole.all.len, cut.all.len);
        CHECK(whole.all.len == 0 || memcmp(whole.all.s, cut.all.s, whole.all.len) == 0);
        str_free(&whole.all);
        str_free(&cut.all);
    }
}

int main(void)
{
    T(any_fragmentation_gives_the_same_events);
    T(a_callback_can_stop_it);
    T(sizes_are_capped);
    T(noise_is_survived);
    T_END;
}
