// Workers, models and budgets: what judges, what proposes, what it costs, what is happening now.
#include "cmd/headroom.h"
#include "cmd/show_text.h"
#include "tui/page.h"
#include "tui/view.h"

#include <string.h>

struct workers_view {
    struct view view;
    struct page page;
    struct page preflight; // read from the journal, so kept until that grows
    unsigned version;
};

static struct workers_view *self(struct view *v)
{
    return (struct workers_view *)v;
}

static void add_workers(struct page *p, const struct model *m)
{
    const struct state *st = m->st;
    page_add(p, SLOT_STRONG, "Workers");
    if (!st->workers.n)
        page_add(p, SLOT_DIM, "  none was started yet");
    for (size_t i = 0; i < st->workers.n; i++) {
        const struct worker_info *w = &st->workers.v[i];
        page_field(p, w->name ? w->name : "worker", w->device);
        page_field(p, "  compiler", w->compiler);
        page_field(p, "  driver", w->driver);
        page_field(p, "  machine", w->fingerprint);
        if (w->is_protected)
            page_field(p, "  protected", "yes: candidates run in a sandbox (`ksmith doctor` tries it)");
        else
            page_add(p, SLOT_WARN, "  UNPROTECTED: %s", w->why ? w->why : "no sandbox holds here");
    }
    if (st->floor > 0)
        page_add(p, SLOT_TEXT, "  identical code differs by up to %.2f %% here", 100 * st->floor);
}

// A preflight's rows: what the baseline reaches of what the machine can do.
static void add_preflight(struct page *p, const struct model *m)
{
    json *line = model_line(m, m->st->at_preflight);
    if (!line)
        return;
    page_add(p, SLOT_TEXT, "%s", "");
    page_add(p, m->st->preflight_ok ? SLOT_STRONG : SLOT_ERROR, "Preflight: %s",
             m->st->preflight_ok ? "the task is sound" : "failed");
    for (json *x = json_first(json_get(line, "problems")); x; x = json_next(x))
        page_add(p, SLOT_ERROR, "  %s  %s", json_str_or(x, "msg", ""), json_str_or(x, "hint", ""));
    for (json *x = json_first(json_get(line, "warnings")); x; x = json_next(x))
        page_add(p, SLOT_WARN, "  %s", json_string(x) ? json_string(x) : json_str_or(x, "msg", ""));
    for (json *x = json_first(json_get(line, "ceilings")); x; x = json_next(x))
        if (json_key(x) && json_is_number(x))
            page_add(p, SLOT_TEXT, "  ceiling: %s %.4g", json_key(x), json_number(x, 0));
    json_free(line);
    struct str words = {0};
    headroom_words(m->st, m->session.journal_path, &words);
    page_block(p, SLOT_TEXT, str_c(&words), words.len);
    str_free(&words);
}

static void add_now(struct page *p, const struct model *m)
{
    char text[160];
    page_add(p, SLOT_TEXT, "%s", "");
    page_add(p, SLOT_STRONG, "Now");
    if (!m->connected || !m->status) {
        page_add(p, SLOT_DIM, "  no engine runs; :run starts the search");
        return;
    }
    page_field(p, "phase", json_str_or(m->status, "phase", ""));
    snprintf(text, sizeof text, "%s %lld", json_str_or(m->status, "doing", ""),
             (long long)json_int(m->status, "id", -1));
    page_field(p, "stage", json_has(m->status, "id") ? text : json_str_or(m->status, "doing", ""));
    if (json_int(m->progress, "of", 0) > 0) {
        snprintf(text, sizeof text, "%s: %lld of %lld", json_str_or(m->progress, "what", ""),
                 (long long)json_int(m->progress, "done", 0), (long long)json_int(m->progress, "of", 0));
        page_field(p, "progress", text);
    }
    snprintf(text, sizeof text, "%.2f s of CPU, longest turn %.1f ms", json_num(m->status, "cpu_s", 0),
             json_num(m->status, "turn_ms", 0));
    page_field(p, "engine", text);
    for (json *x = json_first(m->device); x; x = json_next(x))
        if (json_key(x) && json_is_number(x))
            page_add(p, SLOT_TEXT, "  %-12s%.6g", json_key(x), json_number(x, 0));
}

// At the pace so far: when the iterations are through or the time is up, whichever comes first, and the cost.
static void add_forecast(struct page *p, const struct model *m)
{
    double done = json_num(m->status, "iterations", 0), of = json_num(m->status, "of", 0);
    double spent = json_num(m->status, "spent_s", 0), left = json_num(m->status, "left_s", -1);
    char text[160], age[32];
    if (done < 1 || of <= done || spent <= 0)
        return;
    double need = spent / done * (of - done), at_end = of;
    bool short_of_time = json_has(m->status, "left_s") && left < need;
    if (short_of_time)
        at_end = done + left * done / spent;
    show_age(age, sizeof age, short_of_time ? left : need);
    int n = snprintf(text, sizeof text, "%.0f of %.0f iterations in %s more%s", at_end, of, age,
                     short_of_time ? ", then the time is up" : "");
    if (m->st->usd > 0 && n > 0 && n < (int)sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ", $%.2f in all", m->st->usd / done * at_end);
    page_field(p, "forecast", text);
}

static void add_budget(struct page *p, const struct model *m)
{
    const struct state *st = m->st;
    char text[160], age[32];
    page_add(p, SLOT_TEXT, "%s", "");
    page_add(p, SLOT_STRONG, "Budget");
    show_age(age, sizeof age, m->status ? json_num(m->status, "spent_s", st->wall) : st->wall);
    snprintf(text, sizeof text, "%s, %lld iterations, %lld verdicts", age, (long long)st->iterations - 1,
             (long long)st->evals);
    page_field(p, "spent", text);
    if (m->status && json_has(m->status, "left_s")) {
        show_age(age, sizeof age, json_num(m->status, "left_s", 0));
        page_field(p, "time left", age);
    }
    if (m->connected && m->status)
        add_forecast(p, m);
    if (st->tokens_in + st->tokens_out > 0) {
        snprintf(text, sizeof text, "%lld in, %lld out, $%.4f", (long long)st->tokens_in,
                 (long long)st->tokens_out, st->usd);
        page_field(p, "tokens", text);
    }
    for (size_t i = 0; i < st->settings.n; i++)
        if (st->settings.v[i].value && *st->settings.v[i].value) {
            snprintf(text, sizeof text, "%s %s = %s", st->settings.v[i].kind, st->settings.v[i].key,
                     st->settings.v[i].value);
            page_field(p, "set by hand", text);
        }
    for (size_t i = 0; i < st->hints.n; i++)
        if (!st->hints.v[i].gone)
            page_field(p, "hint", st->hints.v[i].text);
}

static void add_models(struct page *p, const struct model *m)
{
    const struct state *st = m->st;
    if (st->models.n) {
        page_add(p, SLOT_TEXT, "%s", "");
        page_add(p, SLOT_STRONG, "Models");
        page_add(p, SLOT_DIM, "  %-20s %5s %7s %4s %8s %9s %8s %9s", "name", "tried", "correct", "",
                 "accepted", "tokens in", "out", "dollars");
    }
    for (size_t i = 0; i < st->models.n; i++) {
        const struct op_stats *s = &st->models.v[i];
        page_add(p, SLOT_TEXT, "  %-20s %5lld %7lld %3.0f%% %8lld %9lld %8lld %9.4f%s", s->name,
                 (long long)s->tried, (long long)s->ok,
                 s->tried ? 100.0 * (double)s->ok / (double)s->tried : 0, (long long)s->accepted,
                 (long long)s->tokens_in, (long long)s->tokens_out, s->usd,
                 s->unpriced ? " and more: some had no price" : "");
    }
    for (size_t i = 0; i < m->streams.n; i++) {
        const struct live_text *t = &m->streams.v[i];
        page_add(p, SLOT_TEXT, "%s", "");
        page_add(p, SLOT_STRONG, "%s answers (parent %lld)", t->model, (long long)t->parent);
        page_block(p, SLOT_TEXT, str_c(&t->text), t->text.len);
    }
}

static void draw(struct view *v, struct canvas *c, struct rect r, bool focused)
{
    struct workers_view *w = self(v);
    const struct model *m = v->host->model;
    (void)focused;
    if (w->version != m->version) {
        page_clear(&w->preflight);
        add_preflight(&w->preflight, m);
        w->version = m->version;
    }
    page_clear(&w->page);
    add_workers(&w->page, m);
    add_now(&w->page, m);
    add_budget(&w->page, m);
    for (size_t i = 0; i < w->preflight.v.n; i++)
        page_add(&w->page, w->preflight.v.v[i].slot, "%s", w->preflight.v.v[i].text);
    add_models(&w->page, m);
    page_draw(&w->page, c, r);
}

static bool act(struct view *v, enum action a, int count)
{
    return list_act(&self(v)->page.list, a, count);
}

static bool search(struct view *v, const char *text, bool back, bool again)
{
    return page_search(&self(v)->page, text, back, again);
}

static void close_view(struct view *v)
{
    page_free(&self(v)->page);
    page_free(&self(v)->preflight);
}

const struct view_ops view_workers = {
    .name = "workers",
    .title = "Workers",
    .help = "workers, models and budgets",
    .size = sizeof(struct workers_view),
    .key = ACT_VIEW_WORKERS,
    .close = close_view,
    .draw = draw,
    .act = act,
    .search = search,
};
