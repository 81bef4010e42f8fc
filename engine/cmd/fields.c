#include "cmd/fields.h"

#include "cmd/show_text.h"

#include <math.h>

enum field {
    F_ID,
    F_STATE,
    F_STATUS,
    F_STAGE,
    F_SPEEDUP,
    F_GAIN,
    F_OP,
    F_PROPOSER,
    F_MODEL,
    F_ISLAND,
    F_GENERATION,
    F_ITERATION,
    F_PARENT,
    F_CELL,
    F_ACCEPTED,
    F_PINNED,
    F_SUBJECT,
    F_REASON,
    F_NOTE,
    F_TAGS,
    F_SECONDS
};

const struct filter_field cand_fields[] = {
    [F_ID] = {"id", false, "number"},
    [F_STATE] = {"state", true, "champion, accepted, archived, killed, quarantined, or the status"},
    [F_STATUS] = {"status", true, "of the verdict: ok, wrong, compile_error, ..."},
    [F_STAGE] = {"stage", true, "where the verdict was decided"},
    [F_SPEEDUP] = {"speedup", false, "over the baseline"},
    [F_GAIN] = {"gain", false, "over the incumbent"},
    [F_OP] = {"op", true, "operator"},
    [F_PROPOSER] = {"proposer", true, "rules, tune, llm, exec, human"},
    [F_MODEL] = {"model", true, "name of the model"},
    [F_ISLAND] = {"island", false, ""},
    [F_GENERATION] = {"generation", false, "depth in the tree"},
    [F_ITERATION] = {"iteration", false, "number of the proposal"},
    [F_PARENT] = {"parent", false, "number of the first parent"},
    [F_CELL] = {"cell", false, "of the archive, as one number"},
    [F_ACCEPTED] = {"accepted", false, "1 where it is a commit"},
    [F_PINNED] = {"pinned", false, ""},
    [F_SUBJECT] = {"title", true, "what changed"},
    [F_REASON] = {"reason", true, "of the verdict"},
    [F_NOTE] = {"note", true, ""},
    [F_TAGS] = {"tag", true, ""},
    [F_SECONDS] = {"seconds", false, "of worker time"},
};
const int cand_fields_n = (int)countof(cand_fields);

static struct filter_value number(double x)
{
    return (struct filter_value){x, NULL};
}

static struct filter_value text(const char *s)
{
    return (struct filter_value){NAN, s};
}

struct filter_value cand_field(const void *view, int field)
{
    const struct cand_view *v = view;
    const struct candidate *c = v->cand;
    switch ((enum field)field) {
    case F_ID:
        return number((double)c->id);
    case F_STATE:
        return text(show_word(v->state, c));
    case F_STATUS:
        return text(status_name(c->status));
    case F_STAGE:
        return text(c->stage);
    case F_SPEEDUP:
        return number(c->speedup.value > 0 ? c->speedup.value : NAN);
    case F_GAIN:
        return number(c->gain.value > 0 ? c->gain.value : NAN);
    case F_OP:
        return text(c->op);
    case F_PROPOSER:
        return text(c->proposer);
    case F_MODEL:
        return text(c->model);
    case F_ISLAND:
        return number(c->island);
    case F_GENERATION:
        return number(c->gen);
    case F_ITERATION:
        return number((double)c->iter);
    case F_PARENT:
        return number(c->nparents ? (double)c->parents[0] : NAN);
    case F_CELL:
        return number(c->cell[0] < 0 ? NAN : (c->cell[0] * 5 + c->cell[1]) * 4 + c->cell[2]);
    case F_ACCEPTED:
        return number((c->flags & CF_ACCEPTED) != 0);
    case F_PINNED:
        return number((c->flags & CF_PINNED) != 0);
    case F_SUBJECT:
        return text(c->title);
    case F_REASON:
        return text(c->reason);
    case F_NOTE:
        return text(c->note);
    case F_TAGS:
        return text(c->tags.n ? c->tags.v[c->tags.n - 1] : NULL);
    case F_SECONDS:
        return number(c->seconds);
    }
    return number(NAN);
}
