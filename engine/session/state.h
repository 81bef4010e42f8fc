// The read model: what a session is = the fold of its journal's lines. state_apply() is a pure function of
// the state and one line; two folds of the same lines are equal (state_digest). The engine, the workbench and
// every listing read this struct; only the fold writes it.
//
// THE JOURNAL'S EVENTS (this table is the specification; man/ksmith-journal.5 says the same). Every line also
// has n, t, ev and crc (journal.h). Ids are candidates' numbers: 0 is the baseline, then 1, 2, 3 without
// gaps. Keys marked ? may be absent. RATIO below is three keys: the point and its interval's low and high.
// SHAPES is an array of rows [name, time_ns, inc_ns, gain, low, high, n], one a bench shape: this candidate's
// and its incumbent's median, the ratio with its interval, replicates.
//
// session    first line only: format (1), ksmith (version), name, backend, kernel, seed, islands, host, head?
//            (the project's git commit), files [[path, blob, "x" or ""]...] (the kernel file first), shapes
//            [[name, bench 0|1, weight]...], task? (SHA-256 of the task's text)
// worker     a worker is up: name, device, compiler, driver?, fingerprint, protected, why?, env? {}
// preflight  ok, problems? [{msg,hint}], warnings? [..], shapes? [[name,time_ns,bytes_s,flops_s,pct]..],
//            ceilings? {}, error? {}
// floor      floor (A/A floor, a log ratio), fingerprint
// candidate  id, parents [ids], op, proposer, island, iter, gen, blob, seen? (the population was seen up to
//            this line), model?, title? (what changed, one line), edits? [..] (from the nearest
//            first-parent ancestor that has none), inspired? [ids], flags?,
//            seconds? and usd? (what proposing cost), hint?
// verdict    id, status, stage, reason?, of? (duplicate of), inc? (incumbent raced), gain low high?
//            (RATIO over inc), faster?, regress?, shapes? SHAPES, cell? [bins], blob? (source that was
//            timed), binary?, again? (re-measured), stages? {name: ms}, static? {}, race? {}, recheck? {},
//            error? {}, log?, samples?, seconds? (present where a worker judged). The last verdict of a
//            candidate counts.
// anchor     id, speedup low high (RATIO over the baseline), shapes? [[name, speedup, low, high]..]
// accept     id, over, gain low high, champion, commits [{id,commit,parents[],message,author,mail,time,
//            stone?}..] (stepping stones first, the winner last), main? {commit,parents[],message,...}
// archive    id, island, cell, over? (the elite that it takes the cell from)
// evict      id, island, why?
// migrate    id, from, to, cell, over?
// steer      who, cmd, args {}: see "Steering" below
// cost       since the last: wall?, cpu?, usd?, tokens_in?, tokens_out?; of one request: model, answer?
// (source,
//            none, same, salvage, refused, failed, denied, text), seconds?, unpriced?
// pause, resume   why?
// stop       reason (done | budget | user | error | ...), msg?
// note       msg, id?: the engine's own remarks ("a torn line of 17 bytes was cut off")
//
// Steering (args): pin, unpin, approve, reject {id}; kill {id, tree?}, revive {id, tree?}; tag, untag {id,
// tag}; note {id, text}; hint {text, id? | island?}, unhint {hint: line number}; move {id, island}; weight
// {of: operator or model, value}; budget {what, value}; focus {id}, unfocus {}; breed {id, times}; undo
// {line}; and, kept in the history without an effect of their own (the engine acts on them, other lines
// follow): cross, edit, clone, remeasure, explain, step, pause, resume, stop. An unknown cmd is a bad line.
#pragma once
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "session/journal.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOURNAL_FORMAT = 1, STATE_CELL = 3 };

enum status {
    ST_PENDING, // proposed, no verdict yet
    ST_OK,
    ST_DUPLICATE,
    ST_REJECTED,
    ST_COMPILE_ERROR,
    ST_LAUNCH_ERROR,
    ST_WRONG,
    ST_TIMEOUT,
    ST_CRASH,
    ST_FLAGGED, // too good to be true, or precision lost: quarantined
    ST_COUNT
};
const char *status_name(enum status s);
int status_parse(const char *name); // -1 where unknown

struct ratio { // point and interval; all 0 where unknown
    double value, low, high;
};

struct shape_time {
    int shape;              // index into state.shapes
    int n;                  // replicates
    double time_ns, inc_ns; // medians of this candidate and of its incumbent in the same race
    float gain, low, high;
};

// Flags of a candidate.
enum {
    CF_ARCHIVED = 1 << 0, // holds a cell of an island now
    CF_ACCEPTED = 1 << 1,
    CF_STONE = 1 << 2, // committed only as an ancestor of a winner
    CF_PINNED = 1 << 3,
    CF_KILLED = 1 << 4,
    CF_QUARANTINED = 1 << 5,
    CF_EVICTED = 1 << 6,  // held a cell once
    CF_FASTER = 1 << 7,   // won race and recheck
    CF_ANCHORED = 1 << 8, // speedup was measured against the baseline, not multiplied up
    CF_APPROVED = 1 << 9,
    CF_REJECTED = 1 << 10, // by a human
    CF_CHAMPION = 1 << 11, // was champion at some time
};

// Strings belong to the state; NULL where absent.
struct candidate {
    int64_t id;
    int64_t *parents; // the first is the one it is an edit of
    int64_t *inspired;
    int nparents, ninspired;
    const char *op, *proposer, *model; // interned: equal strings are equal pointers within one state
    const char *title;
    const char *hint;
    unsigned char blob[20]; // git id of the source; candidate_blob() writes it in hex
    unsigned flags;
    int island, gen;
    int64_t iter, seen;
    enum status status;
    const char *stage, *reason; // stage is interned
    int64_t of, incumbent;      // -1 where none
    struct ratio gain;          // over its incumbent
    struct ratio speedup;       // over the baseline: anchored, or the incumbent's speedup times gain
    struct shape_time *times;
    int ntimes;
    int cell[STATE_CELL]; // -1 where unknown
    const char *binary;   // hex digits, or NULL
    const char *regress;
    const char *note; // the last note
    VEC(const char *) tags;
    double born, judged;   // wall clock, seconds; judged 0 = never
    double seconds, usd;   // proposing and judging
    int64_t accepted_line; // n of the accept line, 0 where none
    const char *commit;    // 40 hex digits, or NULL
    // Places of whole lines in the journal, for details on demand; -1 where none.
    int64_t at_candidate, at_verdict, at_anchor;
    // The tree under the first parent, by id; -1 ends.
    int64_t first_child, last_child, next_sibling;
};
void candidate_blob(const struct candidate *c, char hex[41]);

struct commit { // one commit of the lineage, as the journal tells it
    int64_t id; // candidate; its blob is the kernel file's in the tree
    const char *hex;
    const char **parents;
    int nparents;
    const char *message, *author, *mail;
    int64_t time;     // seconds, UTC
    bool stone, main; // main: a link of refs/heads/main
};

struct cell { // an elite
    int island, bins[STATE_CELL];
    int64_t id;
};

struct shape {
    const char *name;
    bool bench;
    double weight;
};
struct file {
    const char *path;
    char blob[41];
    bool executable;
};

struct funnel {
    const char *stage;
    int64_t by_status[ST_COUNT];
};

struct op_stats { // of an operator, proposer or model
    const char *name;
    int64_t tried, judged, ok, faster, accepted;
    double seconds, usd;
    double log_gain; // sum over the accepted
    // Of a model or a command, from the cost lines of its requests.
    int64_t asked, tokens_in, tokens_out;
    int64_t unpriced; // requests whose price is unknown
};
typedef VEC(struct op_stats) stats_list;

// What was before a steering action, for undo.
enum change_kind {
    CHANGE_FLAGS,
    CHANGE_ISLAND,
    CHANGE_NOTE,
    CHANGE_TAG,   // a tag was added
    CHANGE_UNTAG, // a tag was taken away
    CHANGE_HINT,  // a hint was given or taken back
    CHANGE_SETTING,
    CHANGE_FOCUS,
};
struct steer_change {
    enum change_kind kind;
    int64_t id;     // candidate, hint's line or focus
    unsigned flags; // the steering flags
    int island;
    const char *text;       // note, tag or a setting's value
    const char *what, *key; // of a setting
};

struct steer { // an entry of the history
    int64_t n;
    double t;
    const char *who, *cmd;
    const char *args; // JSON text
    bool undone, undoable;
    // What it changed, for undo: flags of candidates, or one setting.
    VEC(struct steer_change) changes; // for undo
};

struct hint {
    int64_t n;  // of the steer line that gave it
    int64_t id; // candidate, or -1
    int island; // or -1; both -1: everywhere
    const char *text;
    bool gone;
};
struct setting { // weight of an operator or model, a budget: the last word of the user
    const char *kind, *key;
    const char *value; // "" where it was taken back
};

struct worker_info {
    const char *name, *device, *compiler, *driver, *fingerprint, *why;
    bool is_protected;
    double since;
    int64_t at; // place of the line
};

struct state {
    int64_t last;   // n of the last line folded
    int64_t offset; // where the next line begins
    // session line
    const char *version, *name, *backend, *kernel, *head, *host, *task;
    uint64_t seed;
    int islands;
    double started, latest; // t of the first and of the last line
    VEC(struct file) files;
    VEC(struct shape) shapes;
    // population: candidate id is its index
    VEC(struct candidate) c;
    VEC(struct cell) cells;
    VEC(struct commit) commits;
    VEC(int64_t) champions; // ids, oldest first; champions.v[0] is the baseline once it is the root
    VEC(int64_t) accepted;  // ids in order, the baseline first
    int64_t by_status[ST_COUNT];
    VEC(struct funnel) funnel; // where verdicts were decided
    stats_list ops, proposers, models;
    // steering
    VEC(struct steer) steers;
    VEC(struct hint) hints;
    VEC(struct setting) settings;
    int64_t focus; // candidate, or -1
    // run
    VEC(struct worker_info) workers; // the last of each name
    double floor;                    // A/A floor, log ratio; 0 where not measured
    const char *floor_fingerprint;
    bool preflight_done, preflight_ok;
    int64_t at_preflight, at_worker;
    bool paused, stopped;
    const char *paused_why, *stop_reason, *stop_msg;
    double wall, cpu, usd;
    int64_t evals;      // verdicts that a worker gave
    int64_t iterations; // the highest iter + 1
    int64_t tokens_in, tokens_out;
    // private to the fold
    struct state_memory *memory;
};

void state_init(struct state *st);
void state_free(struct state *st);
// Folds one line. -1 where the line contradicts what was before it (an unknown id, a second session line):
// e says what; the state is then not to be used further.
int state_apply(struct state *st, const struct journal_line *line, struct err *e);
// Whether an event would fold, without folding it: asked before a line is appended.
int state_check(const struct state *st, const json *event, struct err *e);
// SHA-256 over all that lines decide, for tests and snapshots.
void state_digest(const struct state *st, char hex[65]);

// Looking things up; NULL where there is none.
const struct candidate *state_candidate(const struct state *st, int64_t id);
const struct candidate *state_champion(const struct state *st);
const struct candidate *state_elite(const struct state *st, int island, const int bins[STATE_CELL]);
const struct commit *state_commit_of(const struct state *st, int64_t id); // never a link of main
const struct commit *state_main(const struct state *st);                  // the head of main
const struct op_stats *state_op(const struct state *st, const char *op);
const char *state_setting(const struct state *st, const char *kind, const char *key); // NULL where not set
const struct steer *state_last_undoable(const struct state *st, const char *who);     // who NULL: anybody's
// The candidate nearest to the root that is an ancestor of both along first parents, or -1.
int64_t state_common_ancestor(const struct state *st, int64_t a, int64_t b);
bool state_is_ancestor(const struct state *st, int64_t ancestor, int64_t id); // along all parents; itself too

// Snapshots: derived, deletable. Loading fails (returns -1, no error shown) where the file is absent, of
// another version, or does not fit the journal beside it; *st is then the empty state.
int state_save(const struct state *st, const char *path, const char *journal_path, struct err *e);
int state_load(struct state *st, const char *path, const char *journal_path); // st is initialised
