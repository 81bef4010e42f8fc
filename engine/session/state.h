// The read model: what the lines of the journal add up to. State is a pure function of the lines; two folds agree. This
// header is the specification of the journal's events: each line has "n" (its number), "t" (seconds since 1970), "ev" and
// "crc"; the other keys per event are listed at the struct they end up in. Builders below make each event, so that writer
// and fold cannot drift apart.
#pragma once
#include "base/json.h"
#include "base/vec.h"

#include <stdint.h>

// "ok" in the journal and so on: cand_status_name.
enum cand_status {
    CAND_PENDING, // no verdict yet
    CAND_OK,
    CAND_DUPLICATE,
    CAND_REJECTED,
    CAND_COMPILE_ERROR,
    CAND_LAUNCH_ERROR,
    CAND_WRONG,
    CAND_TIMEOUT,
    CAND_CRASH,
    CAND_FLAGGED,
    CAND_STATUS_COUNT
};
const char *cand_status_name(enum cand_status s);
enum cand_status cand_status_of(const char *name); // CAND_PENDING where unknown

struct shape_time { // of one bench shape
    float time_us;  // of the candidate
    float gain, low, high; // against the incumbent
};

// candidate: id, parents [..], op, proposer, island, iter, blob (git id of the source), hash (16 hex digits of the
//            normalised source), subject, edits [..], seen (journal line the population was seen up to), author, model
// verdict:   id, status, stage, reason, of, incumbent, gain, low, high, speedup, slow, shigh (against the baseline), cell,
//            features, shapes [[us,gain,low,high],..] in the task's bench order, binary, seconds, by_anchor
// accept:    id, commit, subject, title (true where it became the champion)
// archive:   id, cell          evict: id          migrate: id, to
struct cand {
    int64_t id;
    int64_t parents[2]; // -1: none
    int island, generation;
    int64_t iteration;
    double born; // t of its candidate line
    uint64_t offset, verdict_offset; // of its lines in the journal: details are read when looked at
    const char *op, *proposer, *model, *author; // interned, never NULL
    const char *subject, *reason, *stage;
    char blob[41], hash[17], commit[41], binary[17];
    enum cand_status status;
    int64_t of;        // duplicate of
    int64_t incumbent; // raced against; -1
    uint64_t accept_n; // number of its accept line; 0: none
    double gain, low, high;            // against the incumbent; 0: not raced
    double speedup, speed_low, speed_high; // against the baseline; 0: not known
    double seconds;                    // of worker time
    int cell;                          // -1: none
    int children;
    uint32_t shapes_at; // into state.shapes; n_shapes of them
    int n_shapes;
    const char *note, *tags; // NULL: none
    bool accepted, archived, pinned, killed, quarantined, evicted, approved;
};

struct op_stat {
    const char *name;
    int64_t tried, ok, accepted;
    double seconds, log_gain; // sum over accepted of log(speedup / parent's speedup)
};

// steer: verb, args [..], who, id (of the candidate acted on, where there is one), undo (n of the line it takes back)
struct steer_line {
    uint64_t n, offset;
    double t;
    const char *verb, *who, *args; // args joined by spaces
    bool undone;
    int64_t undoes; // -1
};

struct hint {
    int64_t scope; // candidate id, or -1 for all
    const char *text;
    uint64_t n;
};

struct state {
    VEC(struct cand) cands; // by id: cands.v[i].id == i
    VEC(struct shape_time) shapes;
    VEC(struct op_stat) ops;
    VEC(struct steer_line) steers;
    VEC(struct hint) hints;
    VEC(const char *) bench; // names of the bench shapes, from the preflight line
    VEC(int64_t) champions;  // in the order they took the title; the last is the champion
    uint64_t lines;          // folded so far: the n of the last line
    double first_t, last_t;
    int64_t iterations; // proposals so far
    int64_t evaluations; // verdicts of workers
    int64_t accepted;
    int64_t last_accept_iter;
    double spent_s, spent_usd; // budget ticks (cost: s, usd)
    double wall_limit, eval_limit, iter_limit; // set by `budget`; 0: as the task says
    bool paused;
    int64_t focus;      // -1: none
    VEC(int64_t) breed; // parents ordered next, each entry one proposal
    VEC(const char *) weights; // "op=2.5" set by steering, last one counts
    const char *stop;   // reason of the last stop line, NULL while running or never run
    bool stopped_done;  // it ended by itself
    // session: format, name, task (sha256), kernel, func, ksmith, baseline line is candidate 0
    const char *name, *task_hash, *kernel, *func;
    // worker: device, compiler, fingerprint, protected, why
    const char *device, *compiler, *fingerprint, *unprotected;
    // preflight: ok, problems, warnings, shapes, floor, ceilings; kept whole by offset
    bool preflight_ok;
    double floor;
    uint64_t preflight_offset;
    int64_t by_status[CAND_STATUS_COUNT];
    struct interner *names;
};

void state_init(struct state *s);
void state_free(struct state *s);
// Folds one line that starts at byte offset. -1 and words where the event does not fit the state (an id out of order, an unknown
// event): the journal was written by something else.
int state_fold(struct state *s, const json *line, uint64_t offset, struct err *e);
struct cand *state_cand(const struct state *s, int64_t id); // NULL where there is none
const struct cand *state_champion(const struct state *s);   // the baseline at first; NULL before it
const struct cand *state_elite(const struct state *s, int island, int cell); // best living archived one, NULL
const struct op_stat *state_op(const struct state *s, const char *name);
// "pin", "killed", ... of a candidate in one word for listings: "champion", "accepted", "archived", "ok", "wrong", ...
const char *state_word(const struct state *s, const struct cand *c);
bool state_descends(const struct state *s, const struct cand *c, int64_t ancestor); // through either parent
// A digest of everything above: equal states, equal digests.
uint64_t state_digest(const struct state *s);
// A candidate as a program wants it: the journal's keys (ls --json, show --json).
json *state_cand_json(const struct state *s, const struct cand *c);

// Builders. Strings may be NULL where the key is optional. The caller owns the result until it is appended.
json *event_new(const char *ev);
json *event_session(const char *name, const char *task_hash, const char *kernel, const char *func);
struct event_candidate {
    int64_t id, parents[2], iteration;
    int island;
    uint64_t seen;
    const char *op, *proposer, *model, *author, *blob, *hash, *subject;
    const json *edits; // copied
};
json *event_candidate(const struct event_candidate *c);
json *event_simple(const char *ev, int64_t id); // archive, evict
