// The OpenAI-compatible chat protocol as texts: requests written, answers and stream events read. No network
// here.
#pragma once
#include "models/model.h"

struct chat_message {
    const char *role; // "system", "user", "assistant"
    const char *text;
};

struct chat_params {    // what differs from request to request
    double temperature; // NAN: not sent
    int64_t seed;       // sent where the model's section says seed = yes
    int max_tokens;     // 0: the model's own setting
};

// Appends the request's body; only what is set and was not rejected before is in it. sent says which
// parameters are.
void wire_request(const struct model *m, const struct chat_message *messages, size_t n,
                  const struct chat_params *p, struct str *out, bool sent[PARAM_COUNT]);

struct wire_error {
    int status;  // the HTTP status or the one inside the body; 0 unknown
    char *type;  // "insufficient_quota", "rate_limit_exceeded", ... or NULL
    char *param; // the rejected parameter, or NULL
    char *message;
};
void wire_error_free(struct wire_error *e);

struct wire_reply {
    struct str text;  // of choice 0, without reasoning
    size_t reasoning; // bytes of reasoning that were dropped
    char *finish;     // "stop", "length", "content_filter", ...; NULL where none was said
    char *model;      // what the server says it ran
    double tokens_in, tokens_out, tokens_cached, tokens_reasoning; // -1: not said
    double usd;              // what the server says it cost; NAN: not said
    bool done;               // [DONE] was seen, or it was no stream
    bool refused;            // the model's refusal field was filled
    struct wire_error error; // .message NULL: none
};
void wire_reply_init(struct wire_reply *r);
void wire_reply_free(struct wire_reply *r);
// Takes one stream event's data or a whole answer (a chunk has "delta", an answer "message"). delta_at: where
// in r->text the new part begins. -1 and an error where it is no JSON that can be understood.
int wire_take(struct wire_reply *r, const char *data, size_t n, size_t *delta_at, struct err *e);
// Reads an error body of any shape (JSON of several dialects, plain text, HTML) into words.
void wire_read_error(struct wire_error *e, int status, const char *body, size_t n);
