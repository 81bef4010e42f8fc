// Models and outside commands as proposers: the one header that the engine includes of engine/models. A
// request is a context (models/prompt.h) and who is asked; the answer comes to a callback on the poll loop,
// as the text of a candidate that already passed the patch and region checks, or as what became of it
// instead. Nothing here knows of workers, the journal or the screen; what it costs is reported with each
// proposal.
//
// Files, all in the session's state folder: exchanges.jsonl (what was asked and answered, redacted),
// learned.json (what servers taught), salvage/TAG.json (answers that an engineer may repair).
#pragma once
#include "base/task.h"
#include "evolve/loop.h"
#include "models/ensemble.h"
#include "models/prompt.h"
#include "models/record.h"

struct proposers;

struct proposers_options {
    struct loop *loop;
    const char *session_dir; // its folder prompts/ goes before the program's
    const char *state_dir;   // DIR/.ksmith
    const json *sections;    // task.extra: "model NAME" and "exec NAME" are read
    const char *path;        // task.ini, for messages
    uint64_t seed;
    // The state folder of another session: every answer comes from its exchanges.jsonl, without network or
    // command, and nothing is recorded. NULL: no replay.
    const char *replay;
    bool look; // only to look: nothing is written, and the prompts are there without any proposer too
};
// NULL where a section is wrong; every error is in errors. No section at all is no error: proposers_count is
// 0.
struct proposers *proposers_open(const struct proposers_options *o, err_list *errors);
// Cancels what runs.
void proposers_close(struct proposers *p);

struct proposer_info {
    const char *name;
    bool exec;                  // a command, not a model
    const char *what;           // the model's id, or the command
    const char *url;            // NULL of a command
    double price_in, price_out; // NAN: unknown
    double weight;              // of its section
    int running, most;          // requests now, at most
    int wait_ms;                // until it may be asked; -1: out until a human acts
    const char *why;            // out: the reason, else NULL
};
int proposers_count(const struct proposers *p); // models first, then commands
struct proposer_info proposers_info(const struct proposers *p, int who);
int proposers_find(const struct proposers *p, const char *name); // -1
// Chooses by ensemble_choose. arms[i].name names a proposer; those that cannot be asked now are busy whatever
// the arm says. A proposer without an arm counts as never asked. -1 where nobody can be asked now.
int proposers_choose(const struct proposers *p, const struct arm *arms, int n, struct draw d);
// Ends a denial, for an engineer who repaired what was wrong.
void proposers_forgive(struct proposers *p, int who);

enum proposal_end {
    PROPOSAL_SOURCE,  // source is a candidate
    PROPOSAL_TEXT,    // ASK_EXPLAIN: reply is the answer
    PROPOSAL_SAME,    // it would be the parent again
    PROPOSAL_NONE,    // nothing in the answer could be one
    PROPOSAL_SALVAGE, // it could not be applied, also after the diagnostic was sent back; it waits in the
                      // salvage queue
    PROPOSAL_REFUSED, // the model or its filter did not want to
    PROPOSAL_FAILED,  // no answer
    PROPOSAL_DENIED,  // no answer, and this proposer is out (proposers_info says why)
    PROPOSAL_END_COUNT
};
const char *proposal_end_name(enum proposal_end e);

struct proposal { // gone after the callback
    enum proposal_end end;
    int who;
    const char *tag, *name; // name of the proposer
    const char *source;     // PROPOSAL_SOURCE
    size_t source_len;
    const char *subject, *description; // for the commit; may be empty
    const char *reply;                 // the last answer as it came (redacted)
    const char *problem;               // in words, where there is no source
    double temperature;                // NAN: none
    int turns, attempts;               // exchanges; requests, those that failed included
    double seconds, waited;            // of answering; of waiting before attempts
    double tokens_in, tokens_out, usd; // of everything; usd NAN: unknown
    bool estimated;                    // some tokens are estimates
    const char *cut;                   // what the prompt left out, or ""
};
typedef void proposal_fn(void *user, const struct proposal *p);
typedef void proposal_text_fn(void *user, const char *text, size_t n); // as it streams; NULL: it starts anew

struct proposer_request {  // copied
    const char *tag;       // names its exchanges: the proposal's number ("17"); unique in the session
    int64_t iteration;     // of the draws (temperature, jitter)
    int who;               // index; proposers_choose
    struct prompt_ctx ctx; // ctx.source is the parent, ctx.func the kernel
    const char *path;      // of the kernel file, for messages
    enum task_evolve evolve;
    const json *feedback;   // feedback.json of a command; NULL: {}
    int64_t parent;         // id of the parent, for the salvage queue
    const json *note;       // kept with the exchanges and given back by proposers_replay_step
    const size_t *position; // read when an answer comes and kept with it (the number of candidates); NULL: 0
    proposal_text_fn *on_text; // may be NULL
    proposal_fn *on_done;      // once, from the loop, never from the ask; the call is gone then
    void *user;
};
struct proposer_call;
// NULL and an error where nothing can be asked (the kernel is larger than the model's context, a bad index).
struct proposer_call *proposers_ask(struct proposers *p, const struct proposer_request *r, struct err *e);
void proposers_cancel(struct proposer_call *c); // at once; no callback follows
// The prompt that a request would send. who -1: to a model that nobody configured.
int proposers_prompt(const struct proposers *p, const struct proposer_request *r, struct prompt *out,
                     struct err *e);
// All that a request would send, for `ksmith prompt`. iteration -1: the next one's draws.
struct preview {
    struct prompt prompt;
    size_t budget;   // most bytes of the prompt
    struct str to;   // to whom, in words
    struct str text; // the messages, or the files of a command, each under its name
    struct str body; // the request's body as it goes over the network; empty for a command
};
int proposers_preview(const struct proposers *p, const struct proposer_request *r, struct preview *out,
                      struct err *e);
void preview_free(struct preview *v);

// What one more request would cost about: prompt bytes / 4 and the mean answer so far. usd NAN: unknown.
void proposers_estimate(const struct proposers *p, int who, size_t prompt_bytes, double *usd, double *tokens);
// The same for a forecast: answers from a tenth of the model's limit to the whole, or what they were so far.
struct cost_range {
    double low_usd, high_usd, low_tokens, high_tokens;
};
struct cost_range proposers_range(const struct proposers *p, int who, double prompt_bytes);
// One short question to a model, without patience. fn is called once from the loop; -1 where who is a
// command.
struct probe {
    bool ok;
    double seconds, tokens_in, tokens_out, usd;
    const char *words; // what it answered, or why not
};
typedef void probe_fn(void *user, int who, const struct probe *r);
int proposers_probe(struct proposers *p, int who, probe_fn *fn, void *user);
// Everything under way, for budget_allows.
struct flight proposers_flight(const struct proposers *p);
// The number that the next request without a tag gets: one more than the highest of the recording, or in a
// replay 0, 1, 2 ...
int64_t proposers_next_tag(const struct proposers *p);
// In a replay: the k-th request to repeat, in the order in which the answers came. tag is NULL where none is
// left.
struct replay_step {
    char *tag;
    int who;    // -1: that proposer is no longer in the configuration
    int64_t at; // where the search stood when the answer came
    json *note;
};
struct replay_step proposers_replay_step(struct proposers *p, size_t k);
void replay_step_free(struct replay_step *s);
// The recording, for looking at ("17", turn 0); owned by p, NULL where nothing was recorded yet.
struct record *proposers_record(struct proposers *p);
