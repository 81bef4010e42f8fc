// Asks a real server for candidates of a shipped kernel, for `make test-servers`. The model may be far too
// small to write one: what must hold is the loop around it. usage: real URL MODEL [REQUESTS]
#include "t.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "models/proposer.h"

#include <math.h>

enum { MOST = 64 };
static const char *url, *model;
static int requests = 6;
static char *state;

struct got {
    int done;
    enum proposal_end end;
    char *source;
    size_t streamed;
};
static struct got got[MOST];
static int ends[PROPOSAL_END_COUNT], before[MOST];
static double tokens_in, tokens_out, seconds;

static void on_text(void *user, const char *text, size_t n)
{
    (void)text;
    ((struct got *)user)->streamed += n;
}

static void on_done(void *user, const struct proposal *p)
{
    struct got *g = user;
    g->done++;
    g->end = p->end;
    free(g->source);
    g->source = p->source ? xstrdup(p->source) : NULL;
    ends[p->end]++;
    tokens_in += p->tokens_in;
    tokens_out += p->tokens_out;
    seconds += p->seconds;
    printf("# %s: %s after %d turns, %.0f tokens out%s, %.1f s, %s\n", p->tag, proposal_end_name(p->end),
           p->turns, p->tokens_out, p->estimated ? " (estimated)" : "", p->seconds,
           p->problem ? p->problem : p->subject);
    CHECK(p->end == PROPOSAL_FAILED || p->end == PROPOSAL_DENIED || p->tokens_out > 0);
}

static struct proposers *open_proposers(struct loop *l, bool replay)
{
    json *all = json_object(), *m = json_object();
    err_list errors = {0};
    json_put_str(m, "url", url);
    json_put_str(m, "model", model);
    json_put_str(m, "proxy", "");
    json_put_str(m, "temperature", "0.2 0.8");
    json_put_str(m, "max_tokens", "400");
    json_put_str(m, "max_limit", "500");
    json_put_str(m, "context", "4096");
    json_put(all, "model small", m);
    struct proposers *p = proposers_open(&(struct proposers_options){.loop = l,
                                                                     .session_dir = "engine",
                                                                     .state_dir = state,
                                                                     .sections = all,
                                                                     .path = "task.ini",
                                                                     .seed = 1,
                                                                     .replay = replay ? state : NULL},
                                         &errors);
    for (size_t i = 0; i < errors.n; i++)
        printf("# %s\n", errors.v[i].msg);
    vec_free(&errors);
    json_free(all);
    return p;
}

static void ask_all(bool replay)
{
    static const char parent[] =
        "void scale(float *x, int n)\n{\n    for (int i = 0; i < n; i++)\n        x[i] *= 2.0f;\n}\n";
    struct loop *l = loop_new();
    struct proposers *p = open_proposers(l, replay);
    CHECK(p != NULL);
    int asked = 0, limit = 580;
    int64_t until = clock_ns() + (int64_t)limit * 1000000000;
    while (p && clock_ns() < until) {
        int done = 0;
        for (int i = 0; i < asked; i++)
            done += got[i].done;
        if (done == requests)
            break;
        if (asked < requests && proposers_info(p, 0).running < 2) {
            char tag[16];
            snprintf(tag, sizeof tag, "%d", asked);
            got[asked].done = 0;
            struct proposer_request r = {.tag = tag,
                                         .iteration = asked,
                                         .ctx = {.ask = (enum ask)(asked % ASK_COUNT),
                                                 .func = "scale",
                                                 .region = "the body of scale",
                                                 .task = "scale(x, n) doubles each of the n floats of x.",
                                                 .source = parent,
                                                 .other = {"candidate 2", "unrolled", parent}},
                                         .path = "k.c",
                                         .evolve = EVOLVE_BODY,
                                         .on_text = on_text,
                                         .on_done = on_done,
                                         .user = &got[asked]};
            struct err e = {0};
            CHECK(proposers_ask(p, &r, &e) != NULL);
            asked++;
            continue;
        }
        loop_step(l, 1000);
    }
    for (int i = 0; i < requests; i++)
        CHECK_INT(got[i].done, 1);
    printf("# longest turn %.1f ms\n", loop_longest_turn_ms(l));
    proposers_close(p);
    loop_free(l);
}

static void a_real_server_is_asked(void)
{
    ask_all(false);
    CHECK_INT(ends[PROPOSAL_FAILED] + ends[PROPOSAL_DENIED], 0);
    for (int i = 0; i < requests; i++)
        CHECK(got[i].streamed > 0);
    for (int i = 0; i < PROPOSAL_END_COUNT; i++)
        if (ends[i])
            printf("# %d %s\n", ends[i], proposal_end_name((enum proposal_end)i));
    printf("# %.0f tokens in, %.0f out, %.1f s\n", tokens_in, tokens_out, seconds);
    for (int i = 0; i < requests; i++)
        before[i] = (int)got[i].end;
}

static void its_recording_ends_the_same(void)
{
    url = "http://127.0.0.1:1";
    ask_all(true);
    for (int i = 0; i < requests; i++)
        CHECK_INT((int)got[i].end, before[i]);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: real URL MODEL [REQUESTS]\n");
        return 2;
    }
    url = argv[1];
    model = argv[2];
    if (argc > 3)
        requests = atoi(argv[3]) < MOST ? atoi(argv[3]) : MOST;
    state = io_temp_dir("ksmith-real", &e);
    T(a_real_server_is_asked);
    T(its_recording_ends_the_same);
    for (int i = 0; i < requests; i++)
        free(got[i].source);
    io_remove(state, NULL);
    free(state);
    T_END;
}
