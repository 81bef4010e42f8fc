// One short question to one endpoint: is it there, does it take our key, what does it answer?
#include "models/proposer_int.h"

#include "base/log.h"
#include "base/text.h"

#include <math.h>

enum { ANSWER_TOKENS = 64, PROBE_S = 60, SHOWN = 60 };

struct probing {
    int who;
    probe_fn *fn;
    void *user;
};

static void on_done(void *user, const struct chat_result *r)
{
    struct probing *x = user;
    struct str words = {0};
    // A model that thinks first may spend all it may say on that: it is there all the same.
    bool ok = r->end == CHAT_OK || r->end == CHAT_CUT;
    if (ok) {
        const struct str *text = &r->reply->text;
        text_clean(&words, str_c(text), text->len < SHOWN ? text->len : SHOWN, TEXT_LINE);
    } else {
        str_addf(&words, "%s%s%s", r->err.msg, r->err.hint[0] ? ". " : "", r->err.hint);
    }
    log_redact(&words);
    x->fn(x->user, x->who,
          &(struct probe){ok, r->seconds, r->tokens_in, r->tokens_out, r->usd, str_c(&words)});
    str_free(&words);
    free(x);
}

int proposers_probe(struct proposers *p, int who, probe_fn *fn, void *user)
{
    if (is_exec(p, who))
        return -1;
    static const struct chat_message talk[] = {{"user", "Answer with the one word: ready"}};
    struct model *m = &p->models.v[who];
    struct probing *x = xmalloc(sizeof *x);
    *x = (struct probing){who, fn, user};
    m->patience_s = 0;
    if (m->timeout_s > PROBE_S)
        m->timeout_s = PROBE_S;
    chat_start(p->chat, &(struct chat_request){.model = m,
                                               .messages = talk,
                                               .n = 1,
                                               .params = {.temperature = NAN, .max_tokens = ANSWER_TOKENS},
                                               .on_done = on_done,
                                               .user = x});
    return 0;
}
