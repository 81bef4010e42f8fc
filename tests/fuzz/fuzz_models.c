// libFuzzer entry for what comes from models: the first byte chooses the stream parser, the protocol reader
// or the reader of answers. Whatever the bytes, nothing half comes out. Build and run:
//   clang -g -O1 -std=c17 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -Iengine tests/fuzz/fuzz_models.c
//   \
//       engine/models/{sse,wire,reply,forms,model,learn}.c engine/base/*.c -lcjson -linih -lm -o fuzz_models
//   ./fuzz_models -max_len=4096 CORPUS
#include "models/forms.h"
#include "models/reply.h"
#include "models/sse.h"
#include "models/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool take(void *user, const char *name, const char *data, size_t n)
{
    struct wire_reply *r = user;
    size_t at;
    struct err e = {0};
    (void)name;
    if (data[n] != 0 || wire_take(r, data, n, &at, &e) < 0)
        return false;
    return r->error.message == NULL;
}

static void stream(const char *s, size_t n)
{
    struct wire_reply r;
    struct sse p;
    wire_reply_init(&r);
    sse_init(&p, take, &r);
    for (size_t i = 0, k; i < n; i += k) {
        k = 1 + (unsigned char)s[i] % 50;
        if (k > n - i)
            k = n - i;
        sse_feed(&p, s + i, k, NULL);
    }
    sse_end(&p, NULL);
    sse_free(&p);
    wire_reply_free(&r);
}

static void answer(const char *s, size_t n, bool cut)
{
    static const char parent[] = "void f(int *x)\n{\n    *x = 1;\n}\n";
    struct reply_opts o = {.func = "f", .parent = parent, .parent_len = sizeof parent - 1, .cut = cut};
    struct reply r;
    struct str masked = {0};
    reply_read(s, n, &o, &r);
    bool usable = r.kind == REPLY_SOURCE || r.kind == REPLY_PATCH;
    if ((usable && cut) || usable != (r.body.len > 0) || usable == (r.problem.len > 0))
        abort();
    if (r.kind == REPLY_SOURCE &&
        (!code_mask(r.body.s, r.body.len, &masked) || !code_balanced(&masked) || !code_defines(&masked, "f")))
        abort();
    str_free(&masked);
    reply_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct wire_error e = {0};
    if (n == 0)
        return 0;
    const char *s = (const char *)data + 1;
    n--;
    switch (data[0] % 4) {
    case 0:
        stream(s, n);
        break;
    case 1:
        wire_read_error(&e, 400, s, n);
        if (!e.message)
            abort();
        wire_error_free(&e);
        break;
    default:
        answer(s, n, data[0] % 4 == 3);
    }
    return 0;
}
