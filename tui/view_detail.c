// One candidate whole: what it is, how it was judged, its shapes, its steps, its log and its source.
#include "base/clock.h"
#include "cmd/show_text.h"
#include "source/edits.h"
#include "tui/look.h"
#include "tui/page.h"
#include "tui/view.h"

#include <string.h>

struct detail {
    struct view view;
    struct page page;
    int64_t shown; // candidate
    unsigned version;
    bool made;
};

static struct detail *self(struct view *v)
{
    return (struct detail *)v;
}

static void add_ratio(struct page *p, const char *key, struct ratio r, const char *over)
{
    char text[64];
    if (!(r.value > 0))
        return;
    show_speedup(text, sizeof text, r);
    page_add(p, r.low > 1 ? SLOT_UP : r.high < 1 ? SLOT_DOWN : SLOT_TEXT, "%-12s%s over %s", key, text, over);
    p->v.v[p->v.n - 1].label = 12;
}

static void add_parents(struct page *p, const struct state *st, const struct candidate *c)
{
    for (int i = 0; i < c->nparents; i++) {
        const struct candidate *x = state_candidate(st, c->parents[i]);
        struct str s = {0};
        str_addf(&s, "%lld  %s", (long long)x->id, x->title ? x->title : show_word(st, x));
        page_field(p, i ? "crossed with" : "parent", str_c(&s));
        str_free(&s);
    }
}

static void add_head(struct page *p, const struct model *m, const struct candidate *c)
{
    const struct state *st = m->st;
    char text[200];
    struct look look = look_of(st, c);
    page_add(p, look.slot, "%lld  %s%s%s", (long long)c->id, show_word(st, c),
             c->flags & CF_PINNED ? ", pinned" : "", c->flags & CF_STONE ? ", stepping stone" : "");
    page_field(p, "change", c->title);
    add_ratio(p, "speedup", c->speedup, "the baseline");
    snprintf(text, sizeof text, "%lld", (long long)c->incumbent);
    add_ratio(p, "gain", c->gain, text);
    page_field(p, c->status == ST_OK ? "remark" : "why", c->reason);
    page_field(p, "stage", c->stage);
    page_field(p, "slower at", c->regress);
    if (c->status == ST_DUPLICATE && c->of >= 0) {
        snprintf(text, sizeof text, "%lld", (long long)c->of);
        page_field(p, "same as", text);
    }
    snprintf(text, sizeof text, "%s by %s%s%s, island %d, generation %d", c->op, c->proposer,
             c->model ? " " : "", c->model ? c->model : "", c->island, c->gen);
    page_field(p, "operator", text);
    add_parents(p, st, c);
    page_field(p, "commit", c->commit);
    page_field(p, "hint", c->hint);
    page_field(p, "note", c->note);
    for (size_t i = 0; i < c->tags.n; i++)
        page_field(p, "tag", c->tags.v[i]);
    if (c->cell[0] >= 0) {
        snprintf(text, sizeof text, "%d %d %d", c->cell[0], c->cell[1], c->cell[2]);
        page_field(p, "cell", text);
    }
    if (c->seconds > 0) {
        snprintf(text, sizeof text, "%.1f s to judge and propose", c->seconds);
        page_field(p, "cost", text);
    }
}

static void add_shapes(struct page *p, const struct state *st, const struct candidate *c)
{
    if (!c->ntimes)
        return;
    page_add(p, SLOT_TEXT, "%s", "");
    page_add(p, SLOT_DIM, "%-12s %10s %10s  %s", "shape", "time", "against", "ratio");
    for (int i = 0; i < c->ntimes; i++) {
        const struct shape_time *t = &c->times[i];
        char time[32], other[32] = "-", gain[64];
        show_time(time, sizeof time, t->time_ns);
        if (t->inc_ns > 0)
            show_time(other, sizeof other, t->inc_ns);
        struct ratio r = {(double)t->gain, (double)t->low, (double)t->high};
        show_speedup(gain, sizeof gain, r);
        page_add(p,
                 r.low > 1                  ? SLOT_UP
                 : r.high > 0 && r.high < 1 ? SLOT_DOWN
                                            : SLOT_TEXT,
                 "%-12s %10s %10s  %s", st->shapes.v[t->shape].name, time, other, gain);
    }
}

// "key value" of an object of numbers or words: counters, milliseconds of stages.
static void add_object(struct page *p, const char *title, const json *o)
{
    struct str line = {0};
    if (!o)
        return;
    for (json *item = json_first(o); item; item = json_next(item)) {
        const char *name = json_key(item), *word = json_string(item);
        if (name && word)
            str_addf(&line, "%s%s %s", line.len ? "  " : "", name, word);
        else if (name && json_is_number(item))
            str_addf(&line, "%s%s %.6g", line.len ? "  " : "", name, json_number(item, 0));
    }
    page_field(p, title, str_c(&line));
    str_free(&line);
}

static void add_verdict(struct page *p, const struct model *m, const struct candidate *c)
{
    json *line = model_line(m, c->at_verdict);
    if (!line)
        return;
    page_add(p, SLOT_TEXT, "%s", "");
    add_object(p, "counters", json_get(line, "static"));
    add_object(p, "stages, ms", json_get(line, "stages"));
    add_object(p, "race", json_get(line, "race"));
    add_object(p, "recheck", json_get(line, "recheck"));
    add_object(p, "error", json_get(line, "error"));
    page_field(p, "samples", json_str(line, "samples"));
    const char *log = json_str(line, "log");
    if (log && *log) {
        page_add(p, SLOT_STRONG, "Log");
        page_block(p, SLOT_TEXT, log, strlen(log));
    }
    json_free(line);
}

static void add_steps(struct page *p, const struct model *m, const struct candidate *c)
{
    json *line = model_line(m, c->at_candidate);
    struct edits edits = {0};
    struct str words = {0};
    if (line && json_has(line, "edits") && edits_from_json(&edits, json_get(line, "edits"), NULL) == 0 &&
        edits.v.n) {
        edits_words(&edits, &words);
        page_add(p, SLOT_TEXT, "%s", "");
        page_add(p, SLOT_STRONG, "Steps from the baseline");
        page_block(p, SLOT_TEXT, words.s, words.len);
    }
    edits_free(&edits);
    str_free(&words);
    json_free(line);
}

static void add_source(struct page *p, struct model *m, const struct candidate *c)
{
    struct err e = {0};
    size_t n;
    char *text = model_source(m, c->id, &n, &e);
    page_add(p, SLOT_TEXT, "%s", "");
    page_add(p, SLOT_STRONG, "Source");
    if (text)
        page_code(p, text, n);
    else
        page_add(p, SLOT_ERROR, "%s  %s", e.msg, e.hint);
}

static void make(struct detail *d)
{
    struct model *m = d->view.host->model;
    const struct candidate *c = model_selected(m);
    int64_t id = c ? c->id : -1;
    if (d->made && d->shown == id && d->version == m->version)
        return;
    if (d->shown != id)
        d->page.list.top = 0;
    d->made = true;
    d->shown = id;
    d->version = m->version;
    page_clear(&d->page);
    if (!c) {
        page_add(&d->page, SLOT_DIM, "No candidate is selected.");
        return;
    }
    add_head(&d->page, m, c);
    add_shapes(&d->page, m->st, c);
    add_verdict(&d->page, m, c);
    add_steps(&d->page, m, c);
    add_source(&d->page, m, c);
}

static void draw(struct view *v, struct canvas *c, struct rect r, bool focused)
{
    struct detail *d = self(v);
    (void)focused;
    make(d);
    page_draw(&d->page, c, r);
}

static bool act(struct view *v, enum action a, int count)
{
    struct detail *d = self(v);
    const struct candidate *c = model_selected(v->host->model);
    struct err e = {0};
    size_t n;
    if (a == ACT_YANK && c) {
        char *text = model_source(v->host->model, c->id, &n, &e);
        v->host->yank(v->host, "its source", text ? text : "");
        free(text);
        return true;
    }
    if (a == ACT_ENTER)
        return v->host->show(v->host, "diff"), true;
    return list_act(&d->page.list, a, count);
}

static void heading(struct view *v, struct str *out)
{
    const struct candidate *c = model_selected(v->host->model);
    if (c)
        str_addf(out, "%lld ", (long long)c->id);
}

static bool search(struct view *v, const char *text, bool back, bool again)
{
    make(self(v));
    return page_search(&self(v)->page, text, back, again);
}

static void close_view(struct view *v)
{
    page_free(&self(v)->page);
}

const struct view_ops view_detail = {
    .name = "detail",
    .title = "Candidate",
    .help = "verdict, shapes, steps, log and source of one candidate",
    .size = sizeof(struct detail),
    .key = ACT_VIEW_DETAIL,
    .close = close_view,
    .draw = draw,
    .act = act,
    .heading = heading,
    .search = search,
};
