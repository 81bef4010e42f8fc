#include "models/proposer.h"

#include "base/io.h"
#include "base/log.h"
#include "models/proposer_int.h"

#include <math.h>

static const char *const end_names[PROPOSAL_END_COUNT] = {"source",  "text",    "same",   "none",
                                                          "salvage", "refused", "failed", "denied"};

const char *proposal_end_name(enum proposal_end e)
{
    return end_names[e];
}

static void read_sections(struct proposers *p, const struct proposers_options *o, err_list *errors)
{
    for (const json *s = json_first(o->sections); s; s = json_next(s)) {
        const char *name = json_key(s);
        if (str_starts(name, "model ")) {
            struct model m;
            model_load(&m, name + 6, s, o->path, errors);
            if (m.key_env)
                log_secret(
                    getenv(m.key_env)); // before anything is asked, so that nothing can say it meanwhile
            vec_push(&p->models, m);
            vec_push(&p->answers, 0);
            vec_push(&p->answer_tokens, 0);
        } else if (str_starts(name, "exec ")) {
            struct exec_command x;
            exec_load(&x, name + 5, s, o->path, errors);
            vec_push(&p->execs, x);
            vec_push(&p->exec_running, 0);
        }
    }
    for (int i = 0; i < proposers_count(p); i++)
        for (int k = 0; k < i; k++)
            if (str_eq(name_of(p, i), name_of(p, k)))
                err_list_add(errors, o->path, 0, 0, "Rename one of them.", "two proposers are named %s",
                             name_of(p, i));
}

// A key that goes over the network in the clear is worth a word.
static void warn_of_plain_http(const struct proposers *p)
{
    for (size_t i = 0; i < p->models.n; i++) {
        const struct model *m = &p->models.v[i];
        if ((m->key_env || m->key_cmd) && strncasecmp(m->url, "http://", 7) == 0 && !model_is_local(m))
            log_line("model %s: the key travels unencrypted to %s", m->name, m->url);
    }
}

struct proposers *proposers_open(const struct proposers_options *o, err_list *errors)
{
    struct proposers *p = xcalloc(1, sizeof *p);
    struct err e = {0};
    size_t before = errors->n;
    *p = (struct proposers){
        .loop = o->loop, .seed = o->seed, .replay = o->replay != NULL, .state_dir = xstrdup(o->state_dir)};
    read_sections(p, o, errors);
    char *learned = o->look && !io_exists(o->state_dir) ? NULL : xasprintf("%s/learned.json", o->state_dir);
    bool ok = errors->n == before;
    if (ok && o->look) {
        // Without a recording, none was made yet.
        p->prompts = prompts_open(o->session_dir, &e);
        p->record = record_open(o->state_dir, false, NULL);
    } else if (ok && proposers_count(p)) {
        warn_of_plain_http(p);
        p->prompts = prompts_open(o->session_dir, &e);
        p->record = p->prompts ? record_open(o->replay ? o->replay : o->state_dir, !o->replay, &e) : NULL;
    }
    bool reads = p->prompts && (p->record || o->look);
    p->chat = reads ? chat_new(o->loop, p->models.v, p->models.n, learned, &e) : NULL;
    if (ok && !p->chat && (o->look || proposers_count(p))) {
        vec_push(errors, e);
        ok = false;
    }
    if (ok && p->record && !o->replay)
        p->next_tag = record_highest(p->record) + 1;
    free(learned);
    if (!ok) {
        proposers_close(p);
        return NULL;
    }
    return p;
}

void proposers_close(struct proposers *p)
{
    if (!p)
        return;
    while (p->calls.n)
        proposers_cancel(p->calls.v[p->calls.n - 1]);
    chat_free(p->chat);
    prompts_free(p->prompts);
    record_free(p->record);
    for (size_t i = 0; i < p->models.n; i++)
        model_free(&p->models.v[i]);
    for (size_t i = 0; i < p->execs.n; i++)
        exec_free(&p->execs.v[i]);
    vec_free(&p->models);
    vec_free(&p->execs);
    vec_free(&p->exec_running);
    vec_free(&p->answers);
    vec_free(&p->answer_tokens);
    vec_free(&p->calls);
    free(p->state_dir);
    free(p);
}

int proposers_count(const struct proposers *p)
{
    return (int)(p->models.n + p->execs.n);
}

struct proposer_info proposers_info(const struct proposers *p, int who)
{
    struct proposer_info i = {.name = name_of(p, who), .exec = is_exec(p, who)};
    if (i.exec) {
        int k = who - (int)p->models.n;
        i.weight = p->execs.v[k].weight;
        i.what = p->execs.v[k].command;
        i.price_in = i.price_out = NAN;
        i.most = p->execs.v[k].parallel;
        i.running = p->exec_running.v[k];
    } else {
        const struct model *m = &p->models.v[who];
        i.weight = m->weight;
        i.what = m->id;
        i.url = m->url;
        i.price_in = m->price_in;
        i.price_out = m->price_out;
        i.most = m->parallel;
        i.running = chat_running(p->chat, m);
        i.wait_ms = chat_wait_ms(p->chat, m, &i.why);
    }
    return i;
}

int proposers_find(const struct proposers *p, const char *name)
{
    for (int i = 0; i < proposers_count(p); i++)
        if (str_eq(name_of(p, i), name))
            return i;
    return -1;
}

int proposers_choose(const struct proposers *p, const struct arm *arms, int n, struct draw d)
{
    int count = proposers_count(p);
    struct arm *mine = xcalloc((size_t)count + 1, sizeof *mine);
    for (int i = 0; i < count; i++) {
        struct proposer_info info = proposers_info(p, i);
        mine[i] = (struct arm){.name = info.name, .weight = info.weight};
        for (int k = 0; k < n; k++)
            if (str_eq(arms[k].name, info.name))
                mine[i] = arms[k];
        // A replay must choose as the run did, which a server's mood of today must not change.
        mine[i].busy |= !p->replay && (info.running >= info.most || info.wait_ms != 0);
    }
    int chosen = ensemble_choose(mine, count, d, "model");
    free(mine);
    return chosen;
}

void proposers_forgive(struct proposers *p, int who)
{
    if (!is_exec(p, who))
        chat_forgive(p->chat, &p->models.v[who]);
}

void proposers_estimate(const struct proposers *p, int who, size_t prompt_bytes, double *usd, double *tokens)
{
    if (is_exec(p, who)) {
        *usd = p->execs.v[who - (int)p->models.n].usd;
        *tokens = 0;
        return;
    }
    const struct model *m = &p->models.v[who];
    double out = p->answers.v[who] > 0 ? p->answer_tokens.v[who] / p->answers.v[who] : model_answer_tokens(m);
    double in = ceil((double)prompt_bytes / 4);
    *tokens = in + out;
    *usd = model_price(m, in, 0, out);
}

struct cost_range proposers_range(const struct proposers *p, int who, double prompt_bytes)
{
    if (is_exec(p, who)) {
        double usd = p->execs.v[who - (int)p->models.n].usd;
        return (struct cost_range){usd, usd, 0, 0};
    }
    const struct model *m = &p->models.v[who];
    double in = ceil(prompt_bytes / 4), high = model_answer_tokens(m), low = high / 10;
    return (struct cost_range){model_price(m, in, 0, low), model_price(m, in, 0, high), in + low, in + high};
}

struct flight proposers_flight(const struct proposers *p)
{
    struct flight f = {0};
    for (size_t i = 0; i < p->calls.n; i++) {
        double tokens = 0;
        f.usd += call_estimate(p->calls.v[i], &tokens);
        f.tokens += tokens;
        f.n++;
    }
    return f;
}

int64_t proposers_next_tag(const struct proposers *p)
{
    return p->next_tag;
}

struct replay_step proposers_replay_step(struct proposers *p, size_t k)
{
    struct replay_step s = {.who = -1};
    json *j = p->record ? record_answer(p->record, k) : NULL;
    if (j) {
        s.tag = xstrdup(json_str_or(j, "tag", "0"));
        s.who = proposers_find(p, json_str_or(j, "who", ""));
        s.at = json_int(j, "at", 0);
        s.note = json_has(j, "note") ? json_copy(json_get(j, "note")) : json_object();
    }
    json_free(j);
    return s;
}

void replay_step_free(struct replay_step *s)
{
    free(s->tag);
    json_free(s->note);
    *s = (struct replay_step){.who = -1};
}

struct record *proposers_record(struct proposers *p)
{
    return p->record;
}
