// One question to one model, with patience: parameters that a server rejects are learned and left out, 429,
// 5xx and broken streams are asked again after a jittered wait (or what Retry-After says), a refused key is
// fetched once more. Every attempt's tokens and dollars are counted, also of those that failed.
#pragma once
#include "models/http.h"
#include "models/wire.h"

struct chat;
struct chat_call;

enum chat_end {
    CHAT_OK,
    CHAT_CUT,      // whole, but the model stopped at its token limit (finish_reason length)
    CHAT_FILTERED, // a content filter or the model refused
    CHAT_TOO_LONG, // prompt and answer do not fit the context; model_context() may know it now
    CHAT_DENIED,   // key, credit, model or URL: asking this model again is useless until a human acts
    CHAT_FAILED,   // patience is over, or the server rejects the request for another reason
    CHAT_END_COUNT
};

struct chat_result {
    enum chat_end end;
    const struct wire_reply *reply; // of the last attempt; may be partial where end is not CHAT_OK
    int attempts;
    double seconds, waited;       // in requests; between them and for the gate
    double tokens_in, tokens_out; // of all attempts
    bool estimated;               // some of these were not said by the server: 4 bytes a token
    double usd;                   // of all attempts; NAN where a price is unknown
    struct err err;               // in words where end is not CHAT_OK
};
typedef void chat_text_fn(void *user, const char *text, size_t n); // as it streams; NULL, 0: starts anew
typedef void chat_done_fn(void *user, const struct chat_result *r);

struct chat_request { // everything but the model is copied
    struct model *model;
    const struct chat_message *messages;
    size_t n;
    struct chat_params params;
    uint64_t seed;         // of the jitter
    chat_text_fn *on_text; // may be NULL
    chat_done_fn *on_done; // once, from the loop; the call is gone then
    void *user;
};

// models must outlive it; what is learned is saved to learned_path (NULL: nowhere) and read from it now.
struct chat *chat_new(struct loop *loop, struct model *models, size_t n, const char *learned_path,
                      struct err *e);
void chat_free(struct chat *c);
struct chat_call *chat_start(struct chat *c, const struct chat_request *r);
void chat_cancel(struct chat_call *c); // at once; no callback follows
// Requests of this model now, waiting ones included.
int chat_running(const struct chat *c, const struct model *m);
// Milliseconds until this model may be asked (429 and the like); 0: now; -1: denied, with the reason in *why.
int chat_wait_ms(const struct chat *c, const struct model *m, const char **why);
// Lifts a denial after a human acted.
void chat_forgive(struct chat *c, const struct model *m);
const char *chat_end_name(enum chat_end end);
