// A [model NAME] section: where a model is, what it costs, how it is asked, and what its server taught us.
// The keys of the section are model_keys (the man page and completion read the same table).
#pragma once
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

enum { MODEL_MAX_TEMPERATURES = 8, MODEL_MAX_HEADERS = 16 };

// What a request may leave out where a server rejects it.
enum model_param {
    PARAM_TEMPERATURE,
    PARAM_TOP_P,
    PARAM_SEED,
    PARAM_STREAM_OPTIONS,
    PARAM_EFFORT,
    PARAM_MAX_TOKENS,
    PARAM_STREAM,
    PARAM_SYSTEM, // not a field: a server that takes no system message gets it inside the user's
    PARAM_COUNT
};

// Learned from rejections, remembered across runs (model_learned_json, model_learned_read).
struct model_learned {
    bool drop[PARAM_COUNT];
    bool completion_name; // max_completion_tokens instead of max_tokens
    bool other_path;      // with /v1 where the rules say without, or the other way round
    int max_cap;          // most output tokens that the server takes; 0 unknown
    int context;          // its context in tokens; 0 unknown
};

struct model {
    char *name; // of the section
    char *url, *id, *key_env, *key_cmd, *proxy, *ca, *effort;
    char *headers[MODEL_MAX_HEADERS + 1];       // "Name: value"; {key} stands for the key; NULL-terminated
    json *body;                                 // more members for the request, or NULL
    double temperature[MODEL_MAX_TEMPERATURES]; // a set to draw from; none: the server's default
    int temperatures;
    double top_p;   // NAN: not sent
    bool seed;      // send the draw's seed
    bool stream;    // default yes
    int max_tokens; // of an answer; 0: not sent
    int max_limit;  // most that a cut answer may raise it to
    int context;    // tokens that prompt and answer share; 0: unknown (32768 is assumed)
    int parallel;   // requests at a time
    double weight;  // share before anything is known of it
    int stall_s, timeout_s, patience_s;
    double price_in, price_out, price_cached; // dollars per million tokens; NAN: unknown
    struct model_learned learned;
    char *key; // secret; NULL until model_key
};

// From {"url":"...",...} as task_load leaves it in task.extra. Every error is added; -1 where there was one.
// m is always safe to free.
int model_load(struct model *m, const char *name, const json *section, const char *path, err_list *errors);
void model_free(struct model *m);

// Where to POST: the base URL with /v1 added where it names no version, /chat/completions added unless there,
// query kept.
void model_endpoint(const struct model *m, struct str *out);
// Whether the host of url is this machine.
bool model_is_local(const struct model *m);
// Takes the key (from key_env here; from key_cmd its output is passed in), registers it as a secret. -1 where
// it is empty, too short to be hidden (under 6 bytes) or holds what no header may.
int model_set_key(struct model *m, const char *key, struct err *e);

int model_context(const struct model *m);       // learned, configured or assumed
int model_answer_tokens(const struct model *m); // what an answer may take of it
// Dollars of a request; NAN where a price that matters is unknown. Negative counts are unknown.
double model_price(const struct model *m, double in, double cached, double out);

// The name that a parameter has in requests of this model.
const char *model_param_name(const struct model *m, enum model_param p);
// Reads a rejection (status 400, 404, 413, 415, 422 or an error that says so) and changes what is sent. sent:
// the parameters of that request. True where the request is worth sending again; *what says what was learned.
bool model_learn(struct model *m, const bool sent[PARAM_COUNT], const char *param, const char *message,
                 struct str *what);
json *model_learned_json(const struct model *m);
void model_learned_read(struct model *m, const json *j);
// The file that keeps what all models taught, {"NAME URL ID":{...}}. A missing or broken one teaches nothing.
void model_learned_load(struct model *models, size_t n, const char *path);
int model_learned_save(const struct model *models, size_t n, const char *path, struct err *e);
