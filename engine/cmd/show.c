// ksmith show: one candidate whole.
#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/show_text.h"
#include "source/edits.h"

static void put_line(const char *key, const char *value)
{
    if (!value || !*value)
        return;
    printf("%-11s ", key);
    show_clean(value, stdout);
    putchar('\n');
}

static void print_shapes(const struct state *st, const struct candidate *c)
{
    for (int i = 0; i < c->ntimes; i++) {
        const struct shape_time *t = &c->times[i];
        char time[32], gain[64];
        show_time(time, sizeof time, t->time_ns);
        show_speedup(gain, sizeof gain, (struct ratio){(double)t->gain, (double)t->low, (double)t->high});
        printf("  %-12s %10s  %s over %lld\n", st->shapes.v[t->shape].name, time, gain,
               (long long)c->incumbent);
    }
}

static void print_edits(struct session *s, const struct candidate *c)
{
    json *line = session_line(s, c->at_candidate, NULL);
    struct edits edits = {0};
    struct str words = {0};
    if (json_has(line, "edits") && edits_from_json(&edits, json_get(line, "edits"), NULL) == 0 && edits.v.n) {
        edits_words(&edits, &words);
        puts("steps from the baseline:");
        show_block(words.s, words.len, "  ", stdout);
    }
    edits_free(&edits);
    str_free(&words);
    json_free(line);
}

static void print_log(struct session *s, const struct candidate *c)
{
    json *line = c->at_verdict >= 0 ? session_line(s, c->at_verdict, NULL) : NULL;
    const char *log = json_str(line, "log");
    if (log && *log) {
        puts("compiler:");
        show_block(log, strlen(log), "  | ", stdout);
    }
    json_free(line);
}

static void print_candidate(struct session *s, const struct candidate *c)
{
    const struct state *st = &s->state;
    char text[160], age[32];
    show_age(age, sizeof age, clock_wall() - c->born);
    printf("candidate %lld: %s, %s ago\n", (long long)c->id, show_word(st, c), age);
    put_line("change", c->title);
    show_speedup(text, sizeof text, c->speedup);
    put_line("speedup", c->speedup.value > 0 ? text : NULL);
    if (c->gain.value > 0) {
        show_speedup(text, sizeof text, c->gain);
        printf("%-11s %s over %lld\n", "gain", text, (long long)c->incumbent);
    }
    put_line("reason", c->reason);
    put_line("stage", c->stage);
    snprintf(text, sizeof text, "%s by %s%s%s", c->op, c->proposer, c->model ? " " : "",
             c->model ? c->model : "");
    put_line("operator", text);
    for (int i = 0; i < c->nparents; i++)
        printf("%-11s %lld\n", i ? "and" : "parent", (long long)c->parents[i]);
    put_line("commit", c->commit);
    put_line("note", c->note);
    for (size_t i = 0; i < c->tags.n; i++)
        put_line("tag", c->tags.v[i]);
    print_shapes(st, c);
    print_edits(s, c);
    print_log(s, c);
}

static int show(struct args *a, struct session *s, struct err *e)
{
    const struct candidate *c = show_find(&s->state, a->npos ? a->pos[0] : "champion", e);
    if (!c)
        return cmd_fail(e);
    if (args_flag(a, "json")) {
        json *o = show_candidate_json(&s->state, c), *line = session_line(s, c->at_candidate, NULL);
        json *verdict = c->at_verdict >= 0 ? session_line(s, c->at_verdict, NULL) : NULL;
        if (json_has(line, "edits"))
            json_put(o, "edits", json_copy(json_get(line, "edits")));
        if (verdict)
            json_put(o, "verdict", json_copy(verdict));
        show_json(o);
        json_free(o);
        json_free(line);
        json_free(verdict);
        return 0;
    }
    char *text = show_source(s, c, e);
    if (args_flag(a, "source")) {
        if (!text)
            return cmd_fail(e);
        fputs(text, stdout); // bytes as they are: this is what redirection into a file wants
    } else {
        print_candidate(s, c);
        if (text && !args_flag(a, "brief")) {
            puts("source:");
            show_block(text, strlen(text), "  ", stdout);
        }
    }
    free(text);
    return 0;
}

static int run(struct args *a)
{
    struct session s;
    struct err e = {0};
    if (session_open(&s, a->dir, SESSION_READ, &e) < 0)
        return cmd_fail(&e);
    int status = show(a, &s, &e);
    session_close(&s);
    return status;
}

static const struct opt opts[] = {{"source", NULL, "only the source, byte for byte"},
                                  {"brief", NULL, "without the source"},
                                  OPT_JSON,
                                  OPT_END};

const struct cmd cmd_show = {
    .name = "show",
    .args = "[DIR] [ID]",
    .help = "one candidate: verdict, shapes, steps, source; the champion by default",
    .group = "read",
    .max = 1,
    .takes_dir = true,
    .opts = opts,
    .complete = "id",
    .run = run,
};
