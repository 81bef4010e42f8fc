#include "tui/model.h"

#include "base/clock.h"

static void hold(struct model *m)
{
    m->held = session_holder(m->session.dir, &m->holder);
}

int model_open(struct model *m, const char *dir, struct err *e)
{
    *m = (struct model){.selected = -1};
    if (session_open(&m->session, dir, SESSION_READ, e) < 0)
        return -1;
    m->st = &m->session.state;
    m->version = 1;
    const struct candidate *c = state_champion(m->st);
    m->selected = c ? c->id : m->st->c.n ? 0 : -1;
    hold(m);
    return 0;
}

static void free_streams(struct model *m)
{
    for (size_t i = 0; i < m->streams.n; i++) {
        free(m->streams.v[i].model);
        str_free(&m->streams.v[i].text);
    }
    vec_free(&m->streams);
}

void model_close(struct model *m)
{
    session_close(&m->session);
    json_free(m->status);
    json_free(m->progress);
    json_free(m->device);
    free_streams(m);
    vec_free(&m->marks);
    *m = (struct model){.selected = -1};
}

int model_poll(struct model *m, struct err *e)
{
    int64_t news = 0;
    if (session_poll(&m->session, &news, e) < 0)
        return -1;
    if (!news)
        return 0;
    m->version++;
    if (m->selected < 0 && m->st->c.n)
        m->selected = 0;
    return 1;
}

static struct live_text *stream_of(struct model *m, const char *model, int64_t parent)
{
    for (size_t i = 0; i < m->streams.n; i++)
        if (str_eq(m->streams.v[i].model, model) && m->streams.v[i].parent == parent)
            return &m->streams.v[i];
    vec_push(&m->streams, ((struct live_text){.model = xstrdup(model), .parent = parent}));
    return &m->streams.v[m->streams.n - 1];
}

enum { STREAM_MAX = 1 << 20, STREAMS_MAX = 64 };

static void take_text(struct model *m, const json *ev)
{
    const char *model = json_str_or(ev, "model", "");
    if (m->streams.n >= STREAMS_MAX)
        free_streams(m); // answers that never ended
    struct live_text *t = stream_of(m, model, json_int(ev, "parent", -1));
    if (json_bool(ev, "restart", false))
        str_clear(&t->text);
    if (t->text.len < STREAM_MAX)
        str_add(&t->text, json_str_or(ev, "text", ""));
}

static void take_answer(struct model *m, const json *ev)
{
    for (size_t i = m->streams.n; i-- > 0;)
        if (str_eq(m->streams.v[i].model, json_str_or(ev, "model", ""))) {
            free(m->streams.v[i].model);
            str_free(&m->streams.v[i].text);
            vec_remove(&m->streams, i);
            break;
        }
}

static void keep(json **slot, const json *ev)
{
    json_free(*slot);
    *slot = json_copy(ev);
}

void model_event(struct model *m, const json *ev)
{
    const char *name = json_str_or(ev, "ev", "");
    if (str_eq(name, "status"))
        keep(&m->status, ev);
    else if (str_eq(name, "stage") || str_eq(name, "progress"))
        keep(&m->progress, ev);
    else if (str_eq(name, "device"))
        keep(&m->device, ev);
    else if (str_eq(name, "text"))
        take_text(m, ev);
    else if (str_eq(name, "answer"))
        take_answer(m, ev);
}

const struct candidate *model_selected(const struct model *m)
{
    return m->selected >= 0 ? state_candidate(m->st, m->selected) : NULL;
}

bool model_marked(const struct model *m, int64_t id)
{
    for (size_t i = 0; i < m->marks.n; i++)
        if (m->marks.v[i] == id)
            return true;
    return false;
}

void model_mark(struct model *m, int64_t id, bool on)
{
    if (on == model_marked(m, id))
        return;
    if (on) {
        vec_push(&m->marks, id);
        return;
    }
    for (size_t i = m->marks.n; i-- > 0;)
        if (m->marks.v[i] == id)
            vec_remove(&m->marks, i);
}

char *model_source(struct model *m, int64_t id, size_t *n, struct err *e)
{
    const struct candidate *c = state_candidate(m->st, id);
    struct str text = {0};
    char hex[41];
    *n = 0;
    if (!c)
        return err_set(e, ERR_USAGE, "", "%lld is not a candidate", (long long)id), NULL;
    candidate_blob(c, hex);
    if (!m->session.lineage && lineage_open(&m->session.lineage, m->session.lineage_path, false, e) < 0)
        return NULL;
    if (lineage_read(m->session.lineage, hex, &text, e) < 0) {
        str_free(&text);
        return NULL;
    }
    *n = text.len;
    return str_steal(&text);
}

json *model_line(const struct model *m, int64_t at)
{
    return at < 0 ? NULL : session_line(&m->session, at, NULL);
}
