// What the workbench knows: the session's read model (journal), the engine's live events (socket), and what
// the engineer points at. Views read it; only the workbench changes it.
#pragma once
#include "base/json.h"
#include "session/session.h"

struct lines;

enum {
    MODEL_JOURNAL = 1,   // lines were folded
    MODEL_LIVE = 2,      // a live event came
    MODEL_SELECTION = 4, // another candidate is selected
    MODEL_MARKS = 8,
};

struct live_text { // a model's reply as it streams in
    char *model;
    int64_t parent;
    struct str text;
};

struct model {
    struct session session;
    const struct state *st; // the fold
    int64_t selected;       // candidate under the cursor; -1 where there is none
    VEC(int64_t) marks;     // in the order they were made
    unsigned version;       // grows whenever lines were folded
    // Live; NULL or empty where no engine talks to us.
    bool connected;
    json *status;   // last status event (phase, doing, id, of, spent_s, left_s, ...)
    json *progress; // last stage or progress event of the worker
    json *device;   // last telemetry of the device, where the worker tells it
    VEC(struct live_text) streams;
    struct session_holder holder; // who runs it
    bool held;
};

int model_open(struct model *m, const char *dir, struct err *e);
void model_close(struct model *m);
// Folds what the journal grew by; returns 1 where it did, 0 where not, -1 and an error.
int model_poll(struct model *m, struct err *e);
// Takes a live event.
void model_event(struct model *m, const json *event);

const struct candidate *model_selected(const struct model *m); // NULL where there is none
bool model_marked(const struct model *m, int64_t id);
void model_mark(struct model *m, int64_t id, bool on);
// The source of a candidate, malloc'ed; NULL and an error where it is lost.
char *model_source(struct model *m, int64_t id, size_t *n, struct err *e);
// The whole journal line of a verdict (or candidate, anchor), freed by the caller; NULL where there is none.
json *model_line(const struct model *m, int64_t at);
