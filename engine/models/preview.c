// What a request sends: how long its prompt may be, its parameters, the files of a command. Pure functions of
// the configuration and the request, so that `ksmith prompt` shows what the engine would send.
#include "models/proposer_int.h"

#include <math.h>

// Of a model that nobody configured.
enum { UNKNOWN_CONTEXT = 32768, UNKNOWN_ANSWER = 8192 };
// Code and prose in English; low, so that the prompt rather fits.
static const double bytes_per_token = 3.2;

size_t prompt_budget(const struct proposers *p, int who)
{
    if (who >= 0 && is_exec(p, who))
        return 1 << 20;
    const struct model *m = who < 0 ? NULL : &p->models.v[who];
    int tokens = m ? model_context(m) - model_answer_tokens(m) : UNKNOWN_CONTEXT - UNKNOWN_ANSWER;
    return (size_t)(tokens * bytes_per_token);
}

struct chat_params draw_params(const struct proposers *p, int who, struct draw d)
{
    struct chat_params out = {.temperature = NAN, .seed = (int64_t)(draw_bits(d, "seed", 0) >> 33)};
    if (!is_exec(p, who) && p->models.v[who].temperatures > 0) {
        const struct model *m = &p->models.v[who];
        out.temperature = m->temperature[draw_below(d, "temperature", 0, (uint64_t)m->temperatures)];
    }
    return out;
}

void exec_texts_fill(struct exec_texts *t, const struct proposer_request *r, const struct prompt *prompt)
{
    const struct prompt_ctx *x = &r->ctx;
    *t = (struct exec_texts){0};
    if (r->feedback)
        json_print(r->feedback, &t->feedback);
    else
        str_add(&t->feedback, "{}");
    str_addf(&t->task, "# Task\n%s\nOnly this may change: %s\n", x->task ? x->task : "",
             x->region ? x->region : "");
    if (x->hardware)
        str_addf(&t->task, "\n# Hardware\n%s", x->hardware);
    for (size_t i = 0; i < x->hints.n; i++)
        str_addf(&t->hints, "%s\n", x->hints.v[i].text);
    t->files = (struct exec_files){.cuda = x->cuda,
                                   .parent = x->source,
                                   .task = str_c(&t->task),
                                   .feedback = str_c(&t->feedback),
                                   .prompt = str_c(&prompt->user),
                                   .hint = t->hints.len ? t->hints.s : NULL};
}

void exec_texts_free(struct exec_texts *t)
{
    str_free(&t->feedback);
    str_free(&t->task);
    str_free(&t->hints);
}

int proposers_prompt(const struct proposers *p, const struct proposer_request *r, struct prompt *out,
                     struct err *e)
{
    *out = (struct prompt){0};
    if (r->who < -1 || r->who >= proposers_count(p) || !p->prompts)
        return err_set(e, ERR_USAGE, "`ksmith models` lists them.", "no proposer has the number %d", r->who);
    return prompt_build(p->prompts, &r->ctx, prompt_budget(p, r->who), out, e);
}

static void add_file(struct str *out, const char *name, const char *suffix, const char *text)
{
    if (!text)
        return;
    str_addf(out, "==> %s%s <==\n%s%s", name, suffix, text, str_ends(text, "\n") ? "" : "\n");
}

int proposers_preview(const struct proposers *p, const struct proposer_request *r, struct preview *out,
                      struct err *e)
{
    *out = (struct preview){0};
    if (proposers_prompt(p, r, &out->prompt, e) < 0)
        return -1;
    const char *system = str_c(&out->prompt.system), *user = str_c(&out->prompt.user);
    out->budget = prompt_budget(p, r->who);
    if (r->who >= 0 && is_exec(p, r->who)) {
        const struct exec_command *x = &p->execs.v[r->who - (int)p->models.n];
        struct exec_texts t;
        exec_texts_fill(&t, r, &out->prompt);
        const char *suffix = t.files.cuda ? ".cu" : ".c";
        str_addf(&out->to, "%s: %s", x->name, x->command);
        add_file(&out->text, "task", ".md", t.files.task);
        add_file(&out->text, "prompt", ".md", t.files.prompt);
        add_file(&out->text, "feedback", ".json", t.files.feedback);
        add_file(&out->text, "hint", ".txt", t.files.hint);
        add_file(&out->text, "parent", suffix, t.files.parent);
        exec_texts_free(&t);
        return 0;
    }
    add_file(&out->text, "system", "", system);
    add_file(&out->text, "user", "", user);
    if (r->who < 0) {
        str_add(&out->to, "no model is configured: as for one with a context of 32768 tokens");
        return 0;
    }
    const struct model *m = &p->models.v[r->who];
    struct draw d = {p->seed, (uint64_t)(r->iteration < 0 ? p->next_tag : r->iteration)};
    struct chat_params params = draw_params(p, r->who, d);
    const struct chat_message talk[] = {{"system", system}, {"user", user}};
    bool sent[PARAM_COUNT];
    str_addf(&out->to, "%s: %s at ", m->name, m->id);
    model_endpoint(m, &out->to);
    if (isfinite(params.temperature))
        str_addf(&out->to, ", temperature %g", params.temperature);
    wire_request(m, talk, countof(talk), &params, &out->body, sent);
    return 0;
}

void preview_free(struct preview *v)
{
    prompt_free(&v->prompt);
    str_free(&v->to);
    str_free(&v->text);
    str_free(&v->body);
}
