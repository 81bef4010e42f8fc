// The views drawn into a canvas from a journal that was written and folded: what stands there in UTF-8 and in
// ASCII, that every size is drawn without harm, and that the keys select and ask for what they should.
#include "base/io.h"
#include "session/event.h"
#include "t.h"
#include "tui/view.h"

#include <locale.h>

static char *root;
static struct model model;
static struct host host;
static char commands[400], shown[40], yanked[200];

static const char blob[] = "1111111111111111111111111111111111111111";
#define HEX(d) d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d

static void do_select(struct host *h, int64_t id)
{
    h->model->selected = id;
}

static void do_show(struct host *h, const char *view)
{
    (void)h;
    snprintf(shown, sizeof shown, "%s", view);
}

static void do_command(struct host *h, const char *command)
{
    (void)h;
    snprintf(commands, sizeof commands, "%s", command);
}

static void do_yank(struct host *h, const char *what, const char *text)
{
    (void)h;
    (void)what;
    snprintf(yanked, sizeof yanked, "%s", text);
}

static void log_raw(struct session *s, const char *text)
{
    struct err e = {0};
    json *j = json_parse(text, strlen(text), NULL);
    CHECK(j != NULL);
    CHECK(session_log(s, j, JOURNAL_LAZY, &e) == 0);
    if (e.msg[0])
        printf("# %s: %s\n", text, e.msg);
}

// What befell them: 0 and 1 are accepted, 2 and 3 fail.
static void tell(struct session *s)
{
    log_raw(s, "{\"ev\":\"worker\",\"name\":\"cpu0\",\"device\":\"A test CPU\",\"compiler\":\"cc 1\","
               "\"fingerprint\":\"f1\",\"protected\":false,\"why\":\"no Landlock here\"}");
    log_raw(s, "{\"ev\":\"verdict\",\"id\":0,\"status\":\"ok\",\"stage\":\"check\",\"seconds\":1,"
               "\"cell\":[0,0,0]}");
    log_raw(s, "{\"ev\":\"archive\",\"id\":0,\"island\":0,\"cell\":[0,0,0]}");
    log_raw(s, "{\"ev\":\"accept\",\"id\":0,\"over\":0,\"gain\":1,\"low\":1,\"high\":1,\"champion\":true,"
               "\"commits\":[{\"id\":0,\"commit\":\"" HEX(
                   "a") "\",\"parents\":[],\"message\":"
                        "\"Baseline\",\"author\":\"ann\",\"mail\":\"a@b\",\"time\":1}]}");
    log_raw(s, "{\"ev\":\"verdict\",\"id\":1,\"status\":\"ok\",\"stage\":\"recheck\",\"seconds\":1,"
               "\"inc\":0,\"gain\":4.5,\"low\":4.4,\"high\":4.6,\"faster\":true,\"cell\":[3,1,2]}");
    log_raw(s, "{\"ev\":\"archive\",\"id\":1,\"island\":1,\"cell\":[3,1,2]}");
    log_raw(s,
            "{\"ev\":\"accept\",\"id\":1,\"over\":0,\"gain\":4.5,\"low\":4.4,\"high\":4.6,\"champion\":"
            "true,\"commits\":[{\"id\":1,\"commit\":\"" HEX("b") "\",\"parents\":[\"" HEX(
                "a") "\"],"
                     "\"message\":\"Unroll by four\\n\\nSpeedup: 4.5\",\"author\":\"ann\",\"mail\":\"a@b\","
                     "\"time\":2}]}");
    log_raw(s, "{\"ev\":\"verdict\",\"id\":2,\"status\":\"compile_error\",\"stage\":\"compile\","
               "\"seconds\":1}");
    log_raw(s, "{\"ev\":\"verdict\",\"id\":3,\"status\":\"wrong\",\"stage\":\"check\",\"seconds\":1}");
}

// A CPU session of `n` candidates, each a child of the baseline.
static void fresh(int n, bool story)
{
    struct session s;
    struct err e = {0};
    struct shape shape = {"big", true, 1};
    struct lineage_file file = {.path = "k.c"};
    char *ksmith = io_join(root, ".ksmith");
    memcpy(file.blob, blob, 41);
    io_remove(ksmith, NULL);
    free(ksmith);
    CHECK(session_open(&s, root, SESSION_WRITE, &e) == 0);
    struct event_session head = {.name = "t",
                                 .backend = "cpu",
                                 .kernel = "k.c:k",
                                 .seed = 1,
                                 .islands = 2,
                                 .files = &file,
                                 .nfiles = 1,
                                 .shapes = &shape,
                                 .nshapes = 1};
    CHECK(session_log(&s, event_session(&head), JOURNAL_LAZY, NULL) == 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t parent = 0;
        struct event_candidate c = {.id = i,
                                    .parents = &parent,
                                    .nparents = i > 0,
                                    .op = i ? "tune" : "seed",
                                    .proposer = "rules",
                                    .title = i ? "Unroll by four" : "baseline",
                                    .iter = i,
                                    .gen = i > 0,
                                    .blob = blob};
        CHECK(session_log(&s, event_candidate(&c), JOURNAL_LAZY, NULL) == 0);
    }
    if (story)
        tell(&s);
    session_close(&s);
    CHECK(model_open(&model, root, &e) == 0);
    if (e.msg[0])
        printf("# %s\n", e.msg);
    host = (struct host){
        .model = &model, .select = do_select, .show = do_show, .command = do_command, .yank = do_yank};
}

static struct view *open_view(const struct view_ops *ops)
{
    struct view *v = xcalloc(1, ops->size);
    v->ops = ops;
    v->host = &host;
    if (ops->open)
        ops->open(v);
    return v;
}

static void close_view(struct view *v)
{
    if (v->ops->close)
        v->ops->close(v);
    free(v);
}

// What the view shows at a size; the caller frees.
static char *text_of(struct view *v, int rows, int cols, bool utf8)
{
    struct canvas c;
    struct str s = {0};
    canvas_init(&c, rows, cols, utf8);
    canvas_fill(&c, canvas_all(&c), SLOT_TEXT);
    v->ops->draw(v, &c, canvas_all(&c), true);
    canvas_text(&c, &s);
    canvas_free(&c);
    return s.s ? str_steal(&s) : xstrdup("");
}

static bool shows(struct view *v, int rows, int cols, bool utf8, const char *want)
{
    char *s = text_of(v, rows, cols, utf8);
    bool found = strstr(s, want) != NULL;
    if (!found)
        printf("# %s at %dx%d lacks <%s>:\n# %s\n", v->ops->name, cols, rows, want, s);
    free(s);
    return found;
}

static const struct {
    int rows, cols;
} sizes[] = {{24, 80}, {10, 40}, {40, 120}, {2, 3}};

// Each view at each size: the word that must stand there from 40x10 on, and pure ASCII where asked for.
static void every_size_is_drawn(void)
{
    static const struct {
        const struct view_ops *ops;
        const char *want;
    } views[] = {{&view_lineage, "bbbbbbbb"}, {&view_archive, "4.50x"},      {&view_progress, "candidates"},
                 {&view_funnel, "wrong"},     {&view_workers, "A test CPU"}, {&view_log, "compile"}};
    fresh(5, true);
    for (size_t i = 0; i < countof(views); i++)
        for (size_t k = 0; k < countof(sizes); k++)
            for (int utf8 = 0; utf8 < 2; utf8++) {
                struct view *v = open_view(views[i].ops);
                char *s = text_of(v, sizes[k].rows, sizes[k].cols, utf8);
                CHECK(sizes[k].cols < 40 || shows(v, sizes[k].rows, sizes[k].cols, utf8, views[i].want));
                for (const char *p = s; *p && !utf8; p++)
                    CHECK((unsigned char)*p < 0x80);
                free(s);
                close_view(v);
            }
    model_close(&model);
}

static void empty_says_what_comes(void)
{
    static const struct {
        const struct view_ops *ops;
        const char *want;
    } views[] = {{&view_lineage, "No commit yet"},         {&view_archive, "The archive is empty"},
                 {&view_progress, "Nothing was measured"}, {&view_funnel, "No verdict yet"},
                 {&view_workers, "none was started"},      {&view_log, "Nothing happened yet"}};
    fresh(0, false);
    for (size_t i = 0; i < countof(views); i++) {
        struct view *v = open_view(views[i].ops);
        CHECK(shows(v, 24, 80, true, views[i].want));
        CHECK(!v->ops->search || !v->ops->search(v, "x", false, true));
        v->ops->act(v, ACT_ENTER, 0);
        v->ops->act(v, ACT_DOWN, 3);
        CHECK(shows(v, 24, 80, true, views[i].want));
        close_view(v);
    }
    model_close(&model);
}

static void lineage_follows_both_ways(void)
{
    fresh(5, true);
    model.selected = 0;
    struct view *v = open_view(&view_lineage);
    CHECK(shows(v, 24, 80, false, "show aaaaaaaaaa")); // begins at the selection
    CHECK(shows(v, 10, 40, false, "git -C .ksmith/lineage.git show aaaaaa"));
    v->ops->act(v, ACT_TOP, 0);
    CHECK_INT(model.selected, 1);
    CHECK(shows(v, 24, 80, false, "show bbbbbbbbbb"));
    model.selected = 0;
    v->ops->changed(v, MODEL_SELECTION);
    v->ops->act(v, ACT_YANK, 0);
    CHECK_STR(yanked, HEX("a"));
    CHECK(v->ops->search(v, "UNROLL", false, false) == false); // a capital: case counts
    CHECK(v->ops->search(v, "unroll", false, false));
    CHECK_INT(model.selected, 1);
    v->ops->act(v, ACT_ENTER, 0);
    CHECK(shows(v, 24, 80, true, "Speedup: 4.5"));
    close_view(v);
    model_close(&model);
}

static void archive_moves_between_cells(void)
{
    fresh(5, true);
    model.selected = 0;
    struct view *v = open_view(&view_archive);
    CHECK(shows(v, 24, 80, true, "0  vector width scalar, accumulators 1, loop depth 1"));
    CHECK(v->ops->search(v, "unroll", false, false));
    CHECK_INT(model.selected, 1);
    CHECK(shows(v, 24, 80, true, "1  vector width 64 B, accumulators 2-3, loop depth 3"));
    v->ops->act(v, ACT_LEFT, 0);
    CHECK(shows(v, 24, 80, true, "nothing of this kind yet"));
    v->ops->act(v, ACT_RIGHT, 9); // stays inside
    CHECK_INT(model.selected, 1);
    v->ops->act(v, ACT_LAYOUT, 0); // island 0 lacks it
    char *s = text_of(v, 24, 80, true);
    CHECK(!strstr(s, "4.50x"));
    free(s);
    close_view(v);
    model_close(&model);
}

static void funnel_lists_the_dead(void)
{
    fresh(5, true);
    struct view *v = open_view(&view_funnel);
    CHECK(shows(v, 24, 80, true, "operator"));
    CHECK(v->ops->search(v, "compile_error", false, false));
    v->ops->act(v, ACT_ENTER, 0);
    CHECK_STR(commands, "filter stage=compile status=compile_error");
    CHECK_STR(shown, "tree");
    CHECK(v->ops->search(v, "tune", false, false));
    v->ops->act(v, ACT_ENTER, 0);
    CHECK_STR(commands, "filter op=tune");
    close_view(v);
    model_close(&model);
}

static void workers_say_why_unprotected(void)
{
    fresh(5, true);
    struct view *v = open_view(&view_workers);
    CHECK(shows(v, 24, 80, true, "UNPROTECTED: no Landlock here"));
    CHECK(shows(v, 24, 80, true, "cc 1"));
    close_view(v);
    model_close(&model);
}

static void live(const char *text)
{
    json *j = json_parse(text, strlen(text), NULL);
    CHECK(j != NULL);
    model_event(&model, j);
    json_free(j);
}

static void workers_show_what_is_live(void)
{
    fresh(5, true);
    model.connected = true;
    struct view *v = open_view(&view_workers);
    live("{\"ev\":\"status\",\"phase\":\"search\",\"doing\":\"race\",\"id\":4,\"iterations\":10,\"of\":40,"
         "\"spent_s\":100,\"left_s\":150}");
    live("{\"ev\":\"progress\",\"what\":\"oracle\",\"done\":3,\"of\":8}");
    live("{\"ev\":\"text\",\"model\":\"m1\",\"parent\":1,\"text\":\"I would\\u001b[2J try\"}");
    CHECK(shows(v, 40, 80, true, "race 4"));
    CHECK(shows(v, 40, 80, true, "oracle: 3 of 8"));
    CHECK(shows(v, 40, 80, true, "25 of 40 iterations in")); // 10 s each, 150 s left
    CHECK(shows(v, 40, 80, true, "then the time is up"));
    CHECK(shows(v, 40, 80, true, "m1 answers (parent 1)"));
    CHECK(shows(v, 40, 80, true, "I would^[[2J try")); // it drives no terminal
    live("{\"ev\":\"status\",\"phase\":\"search\",\"iterations\":10,\"of\":20,\"spent_s\":100,\"left_s\":"
         "500}");
    CHECK(shows(v, 40, 80, true, "20 of 20 iterations in"));
    close_view(v);
    model_close(&model);
}

static void log_filters_and_selects(void)
{
    struct err e = {0};
    fresh(5, true);
    struct view *v = open_view(&view_log);
    free(text_of(v, 24, 80, true));
    CHECK(v->ops->command(v, "kind", "accept", &e));
    char *s = text_of(v, 24, 80, true);
    CHECK(!strstr(s, "compile") && strstr(s, "ACCEPTED"));
    free(s);
    model.selected = 0;
    v->ops->act(v, ACT_ENTER, 0); // at the end: the last accepted one
    CHECK_INT(model.selected, 1);
    CHECK(v->ops->command(v, "kind", "nonsense", &e) && e.msg[0]);
    close_view(v);
    model_close(&model);
}

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    root = io_temp_dir("ksmith-views", NULL);
    T(every_size_is_drawn);
    T(empty_says_what_comes);
    T(lineage_follows_both_ways);
    T(archive_moves_between_cells);
    T(funnel_lists_the_dead);
    T(workers_say_why_unprotected);
    T(workers_show_what_is_live);
    T(log_filters_and_selects);
    io_remove(root, NULL);
    free(root);
    T_END;
}
