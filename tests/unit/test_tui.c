// The pure parts of the workbench: canvas, layout, lists, keys, the typed line, rows, the commit graph, diffs
// as lines, charts, themes, syntax.
#include "base/io.h"
#include "session/event.h"
#include "session/session.h"
#include "t.h"
#include "tui/canvas.h"
#include "tui/chart.h"
#include "tui/diff_lines.h"
#include "tui/entry.h"
#include "tui/graph.h"
#include "tui/layout.h"
#include "tui/list.h"
#include "tui/rows.h"
#include "tui/syntax.h"

#include <locale.h>
#include <math.h>

static bool shows(const struct canvas *c, const char *want)
{
    struct str s = {0};
    canvas_text(c, &s);
    bool same = str_eq(str_c(&s), want);
    if (!same)
        printf("# got <%s> wanted <%s>\n", str_c(&s), want);
    str_free(&s);
    return same;
}

static void test_canvas(void)
{
    struct canvas c;
    canvas_init(&c, 2, 10, true);
    struct rect all = canvas_all(&c);
    CHECK(canvas_put(&c, all, 0, 0, SLOT_TEXT, "abc") == 3);
    CHECK(canvas_put(&c, all, 0, 8, SLOT_TEXT, "xyz") == 11); // clipped, and yet its end is told
    CHECK(shows(&c, "abc     xy\n\n"));
    canvas_put(&c, all, 1, -2, SLOT_TEXT, "hidden");
    CHECK(shows(&c, "abc     xy\ndden\n"));
    canvas_fill(&c, all, SLOT_TEXT);
    canvas_put(&c, all, 0, 0, SLOT_TEXT, "\xe5\xad\x97"); // a wide character
    canvas_put(&c, all, 0, 1, SLOT_TEXT, "x");            // over its right half: no half is left
    CHECK(shows(&c, " x\n\n"));
    canvas_fill(&c, all, SLOT_TEXT);
    CHECK(canvas_put(&c, all, 0, 9, SLOT_TEXT, "\xe5\xad\x97") == 11);
    CHECK(shows(&c, "\n\n")); // no room for both halves
    canvas_put(&c, all, 0, 0, SLOT_TEXT, "e\xcc\x81!");
    CHECK(shows(&c, "e\xcc\x81!\n\n"));
    canvas_fill(&c, all, SLOT_TEXT);
    canvas_field(&c, all, 0, 0, 5, false, SLOT_TEXT, "too long");
    CHECK(shows(&c, "too \xe2\x80\xa6\n\n"));
    canvas_field(&c, all, 1, 2, 5, true, SLOT_TEXT, "12");
    CHECK(shows(&c, "too \xe2\x80\xa6\n     12\n"));
    canvas_free(&c);
}

static void test_canvas_hostile(void)
{
    struct canvas c;
    canvas_init(&c, 1, 60, true);
    const char bad[] = "a\x1b]52;c;x\x07 \r\b\n\t\xc2\x9b \xe2\x80\xae \xff z";
    canvas_putn(&c, canvas_all(&c), 0, 0, SLOT_TEXT, bad, sizeof bad - 1);
    struct str s = {0};
    canvas_text(&c, &s);
    for (size_t i = 0; i + 1 < s.len; i++)
        CHECK((unsigned char)s.s[i] >= 0x20 && s.s[i] != 0x7f);
    CHECK(!strstr(s.s, "\xe2\x80\xae") && !strstr(s.s, "\xc2\x9b") && strchr(s.s, 'z'));
    str_free(&s);
    canvas_free(&c);
    canvas_init(&c, 1, 20, false);
    canvas_put(&c, canvas_all(&c), 0, 0, SLOT_TEXT, "\xc3\xa9t\xc3\xa9");
    CHECK(shows(&c, "?t?\n"));
    for (int g = 0; g < GLYPH_COUNT; g++)
        CHECK(strlen(canvas_glyph(&c, (enum glyph)g)) == 1);
    canvas_free(&c);
}

static bool inside(struct rect r, int rows, int cols)
{
    return r.rows == 0 || (r.row >= 0 && r.col >= 0 && r.rows > 0 && r.cols > 0 && r.row + r.rows <= rows &&
                           r.col + r.cols <= cols);
}

static bool apart(struct rect a, struct rect b)
{
    return !a.rows || !b.rows || a.row + a.rows <= b.row || b.row + b.rows <= a.row ||
           a.col + a.cols <= b.col || b.col + b.cols <= a.col;
}

static void test_layout(void)
{
    for (int rows = 1; rows <= 100; rows++)
        for (int cols = 1; cols <= 300; cols += 7)
            for (int how = 0; how < 8; how++) {
                struct layout l = layout_make(rows, cols, how & 1, how & 2, how & 4);
                const struct rect r[] = {l.left_title, l.left, l.right_title, l.right, l.status, l.bottom};
                if (l.too_small)
                    continue;
                CHECK(l.left.rows > 0 || l.right.rows > 0);
                for (size_t i = 0; i < countof(r); i++) {
                    CHECK(inside(r[i], rows, cols));
                    for (size_t k = 0; k < i; k++)
                        CHECK(apart(r[i], r[k]));
                }
            }
}

static void test_list(void)
{
    struct list l = {0};
    list_fit(&l, 100, 10);
    CHECK(l.cursor == 0 && l.top == 0);
    CHECK(list_act(&l, ACT_DOWN, 12) && l.cursor == 12 && l.top == 3);
    CHECK(list_act(&l, ACT_BOTTOM, 0) && l.cursor == 99 && l.top == 90);
    CHECK(list_act(&l, ACT_PAGE_DOWN, 0) && l.cursor == 99);
    CHECK(list_act(&l, ACT_TOP, 42) && l.cursor == 41);
    CHECK(list_act(&l, ACT_UP, 1000) && l.cursor == 0 && l.top == 0);
    CHECK(!list_act(&l, ACT_PIN, 0));
    list_fit(&l, 0, 10); // everything went away
    CHECK(l.cursor == -1 && l.top == 0);
    CHECK(list_act(&l, ACT_DOWN, 0) && l.cursor == -1);
    list_fit(&l, 3, 0);
    CHECK(l.cursor == 0);
}

static void test_keys(void)
{
    char buf[24];
    CHECK(key_parse("C-x") == 24 && key_parse("F5") == K_F1 + 4 && key_parse("Space") == ' ' &&
          key_parse("F13") == K_NONE);
    CHECK(key_parse("\xc3\xa9") == 0xe9 && key_parse("") == K_NONE && key_parse("ab") == K_NONE);
    CHECK(str_eq(key_spell(24, buf), "C-x") && str_eq(key_spell(K_PAGE_UP, buf), "PageUp"));
    // Each default key parses, and no two actions share one.
    struct keymap *m = keymap_new();
    for (int a = 1; a < ACT_COUNT; a++) {
        size_t n = 0;
        char **words = str_words(actions[a].keys, &n);
        CHECK(words != NULL);
        CHECK(actions[a].name && actions[a].help && actions[a].group);
        CHECK(action_find(actions[a].name) == (enum action)a);
        for (size_t i = 0; words && i < n; i++) {
            CHECK(key_parse(words[i]) != K_NONE);
            if (keymap_find(m, key_parse(words[i])) != (enum action)a) {
                printf("# %s is also %s\n", words[i], actions[keymap_find(m, key_parse(words[i]))].name);
                CHECK(false);
            }
        }
        free(words);
    }
    keymap_free(m);
}

static enum entry_result type(struct entry *p, const char *text)
{
    enum entry_result r = ENTRY_GOES_ON;
    for (; *text && r == ENTRY_GOES_ON; text++) {
        struct key k = {.code = *text == '\n' ? K_ENTER : (uint32_t)(unsigned char)*text};
        r = entry_key(p, &k);
    }
    return r;
}

static void offer_two(void *user, const char *before, const char *word, word_list *out)
{
    (void)user;
    (void)before;
    if (str_starts("pause", word))
        vec_push(out, xstrdup("pause"));
    if (str_starts("pin", word))
        vec_push(out, xstrdup("pin"));
}

static void press(struct entry *p, uint32_t code)
{
    struct key k = {.code = code};
    entry_key(p, &k);
}

static void test_entry(void)
{
    struct entry p = {.complete = offer_two};
    entry_begin(&p, ENTRY_COMMAND, ":", NULL);
    CHECK(type(&p, "one two") == ENTRY_GOES_ON);
    press(&p, 23); // C-w
    CHECK(str_eq(str_c(&p.text), "one "));
    press(&p, 1);
    type(&p, "x");
    CHECK(str_eq(str_c(&p.text), "xone "));
    CHECK(type(&p, "\n") == ENTRY_DONE);
    entry_begin(&p, ENTRY_COMMAND, ":", NULL);
    press(&p, K_UP);
    CHECK(str_eq(str_c(&p.text), "xone "));
    press(&p, K_DOWN);
    CHECK(p.text.len == 0);
    type(&p, "p");
    press(&p, K_TAB);
    CHECK(str_eq(str_c(&p.text), "pause"));
    press(&p, K_TAB);
    CHECK(str_eq(str_c(&p.text), "pin"));
    press(&p, K_BACK_TAB);
    CHECK(str_eq(str_c(&p.text), "pause"));
    press(&p, 21);
    struct key e = {.code = 0xe9}, back = {.code = K_BACKSPACE};
    entry_key(&p, &e);
    CHECK(str_eq(str_c(&p.text), "\xc3\xa9"));
    entry_key(&p, &back); // one character, two bytes
    CHECK(p.text.len == 0);
    entry_paste(&p, "a\nb\x1b[31mc", 9);
    CHECK_STR(str_c(&p.text), "a b[31mc"); // no newline, no escape
    CHECK(entry_key(&p, &(struct key){.code = K_ESC}) == ENTRY_CANCELLED);
    entry_begin(&p, ENTRY_CONFIRM, "sure?", NULL);
    CHECK(type(&p, "n") == ENTRY_CANCELLED);
    entry_begin(&p, ENTRY_CONFIRM, "sure?", NULL);
    CHECK(type(&p, "\n") == ENTRY_CANCELLED);
    entry_begin(&p, ENTRY_CONFIRM, "sure?", NULL);
    CHECK(type(&p, "y") == ENTRY_DONE);
    entry_free(&p);
}

// ---- a state made by hand: 0 <- 1 <- 3, 0 <- 2 (speedups 1, 2, 0.5, 3), 3 is also a child of 2

static void fill(struct state *st)
{
    static int64_t p1[] = {0}, p3[] = {1, 2};
    const double speed[] = {1, 2, 0.5, 3};
    state_init(st);
    st->islands = 1;
    for (int i = 0; i < 4; i++) {
        struct candidate c = {.id = i,
                              .status = ST_OK,
                              .speedup = {speed[i], speed[i], speed[i]},
                              .op = i ? "tune" : "seed",
                              .of = -1,
                              .incumbent = -1,
                              .first_child = -1,
                              .last_child = -1,
                              .next_sibling = -1,
                              .gen = i};
        vec_push(&st->c, c);
    }
    for (int i = 1; i < 3; i++) {
        st->c.v[i].parents = p1;
        st->c.v[i].nparents = 1;
    }
    st->c.v[3].parents = p3;
    st->c.v[3].nparents = 2;
    st->c.v[0].first_child = 1;
    st->c.v[1].next_sibling = 2;
    st->c.v[0].last_child = 2;
    st->c.v[1].first_child = st->c.v[1].last_child = 3;
}

static void empty(struct state *st)
{
    for (size_t i = 0; i < st->c.n; i++)
        st->c.v[i].parents = NULL;
    vec_free(&st->c);
    vec_free(&st->commits);
}

static bool order(const struct rows *r, const char *want)
{
    struct str s = {0};
    for (size_t i = 0; i < r->v.n; i++)
        str_addf(&s, "%s%lld/%d", i ? " " : "", (long long)r->v.v[i].id, r->v.v[i].depth);
    bool same = str_eq(str_c(&s), want);
    if (!same)
        printf("# rows %s, wanted %s\n", str_c(&s), want);
    str_free(&s);
    return same;
}

static void test_rows(void)
{
    struct state st = {0};
    struct rows r = {0};
    fill(&st);
    rows_make(&r, &st);
    CHECK(order(&r, "0/0 1/1 3/1 2/1")); // 3 is the only child of 1: no deeper
    CHECK(rows_find(&r, &st, 3) == 2);
    rows_fold(&r, 1, true);
    rows_make(&r, &st);
    CHECK(order(&r, "0/0 1/1 2/1"));
    CHECK(rows_find(&r, &st, 3) == 1); // hidden: its parent stands for it
    rows_fold(&r, 1, false);
    r.layout = ROWS_RANK;
    r.sort = SORT_SPEEDUP;
    rows_make(&r, &st);
    CHECK(order(&r, "3/0 1/0 0/0 2/0"));
    st.c.v[3].flags |= CF_KILLED; // what is killed ranks with those that have no speedup
    rows_make(&r, &st);
    CHECK(order(&r, "1/0 0/0 2/0 3/0"));
    r.reverse = true;
    rows_make(&r, &st);
    CHECK(order(&r, "2/0 0/0 1/0 3/0"));
    rows_free(&r);
    empty(&st);
}

static void test_graph(void)
{
    struct state st = {0};
    struct graph g = {0};
    fill(&st);
    const char *b[] = {"a"}, *m[] = {"b", "c"};
    struct commit commits[] = {{.hex = "a"},
                               {.hex = "b", .parents = b, .nparents = 1},
                               {.hex = "c", .parents = b, .nparents = 1},
                               {.hex = "d", .parents = m, .nparents = 2}};
    for (size_t i = 0; i < countof(commits); i++)
        vec_push(&st.commits, commits[i]);
    graph_make(&g, &st);
    CHECK(g.v.n == 4 && g.v.v[0].commit == 3 && g.v.v[0].kind[0] == LANE_MERGE &&
          g.v.v[0].kind[1] == LANE_OPENS);
    CHECK(g.v.v[1].commit == 2 && g.v.v[1].kind[0] == LANE_PASS && g.v.v[1].kind[1] == LANE_COMMIT);
    CHECK(g.v.v[2].commit == 1 && g.v.v[2].kind[0] == LANE_COMMIT && g.v.v[2].kind[1] == LANE_PASS);
    CHECK(g.v.v[3].commit == 0 && g.v.v[3].kind[0] == LANE_COMMIT && g.v.v[3].kind[1] == LANE_JOINS);
    graph_free(&g);
    empty(&st);
}

static void test_diff_lines(void)
{
    const char a[] = "one\ntwo\nthree\nfour\n", b[] = "one\n  two\nTHREE\nfour\nfive\n";
    struct diff_lines d;
    diff_lines_make(&d, a, sizeof a - 1, b, sizeof b - 1, -1, true, false);
    CHECK(d.v.n == 5 && d.hunks.n == 2 && d.added == 3 && d.removed == 2);
    diff_lines_free(&d);
    diff_lines_make(&d, a, sizeof a - 1, b, sizeof b - 1, -1, true, true);
    CHECK(d.v.n == 7 && d.v.v[1].kind == DIFF_LINE_DEL && d.v.v[2].kind == DIFF_LINE_DEL &&
          d.v.v[3].kind == DIFF_LINE_ADD);
    diff_lines_free(&d);
    diff_lines_make(&d, a, sizeof a - 1, b, sizeof b - 1, -1, false, false); // white space does not count
    CHECK(d.added == 2 && d.removed == 1);
    // The text is the real one, blanks and all.
    bool found = false;
    for (uint32_t i = 0; i < d.rows.n; i++) {
        struct diff_line l = diff_lines_text(&d, i, 1);
        found = found || (l.len == 5 && memcmp(b + l.at, "  two", 5) == 0);
    }
    CHECK(found);
    diff_lines_free(&d);
    diff_lines_make(&d, a, sizeof a - 1, a, sizeof a - 1, 3, true, false);
    CHECK(d.hunks.n == 0);
    diff_lines_free(&d);
}

static void test_chart(void)
{
    const double x[] = {0, 10}, y[] = {1, 4};
    struct chart ch = {0, 10, 1, 4, true};
    struct chart_series s = {x, y, 2, SLOT_TEXT, false, 'o'};
    struct canvas c;
    canvas_init(&c, 7, 28, false);
    chart_draw(&ch, &s, 1, &c, canvas_all(&c), "steps");
    struct str text = {0};
    canvas_text(&c, &text);
    CHECK(strstr(text.s, "4.00x") && strstr(text.s, "1.00x") && strstr(text.s, "2.00x") &&
          strstr(text.s, "10 steps"));
    CHECK(strchr(text.s, 'o') != NULL);
    str_free(&text);
    canvas_free(&c);
    canvas_init(&c, 2, 2, true); // no room: nothing, and no crash
    chart_draw(&ch, &s, 1, &c, canvas_all(&c), "steps");
    CHECK(shows(&c, "\n\n"));
    canvas_free(&c);
}

// ---- themes

static double channel(int v)
{
    double x = v / 255.0;
    return x <= 0.03928 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}

static double luminance(int32_t c)
{
    return 0.2126 * channel(c >> 16 & 255) + 0.7152 * channel(c >> 8 & 255) + 0.0722 * channel(c & 255);
}

static double contrast(int32_t a, int32_t b)
{
    double x = luminance(a), y = luminance(b);
    return x > y ? (x + 0.05) / (y + 0.05) : (y + 0.05) / (x + 0.05);
}

static void test_shipped_themes(void)
{
    static const char *const names[] = {"default", "dark", "light", "high-contrast", "colour-blind", "mono"};
    for (size_t n = 0; n < countof(names); n++) {
        err_list errors = {0};
        struct theme t;
        char *path = xasprintf("themes/%s.ini", names[n]);
        CHECK(theme_load(&t, path, &errors) == 0);
        for (size_t i = 0; i < errors.n; i++)
            printf("# %s: %s\n", errors.v[i].where, errors.v[i].msg);
        CHECK_STR(t.name, names[n]);
        for (int i = 1; i < SLOT_COUNT; i++) {
            struct style s = t.slots[i];
            bool both = s.fg != COLOR_DEFAULT && s.bg != COLOR_DEFAULT;
            double c = both ? contrast(theme_color(s.fg, 1 << 24), theme_color(s.bg, 1 << 24)) : 21;
            if (c < 4.5)
                printf("# %s %s: contrast %.1f\n", names[n], slot_names[i], c);
            CHECK(c >= 4.5);
        }
        vec_free(&errors);
        free(path);
    }
    // The shipped default says what is built in.
    struct theme built, shipped;
    err_list errors = {0};
    theme_default(&built);
    CHECK(theme_load(&shipped, "themes/default.ini", &errors) == 0);
    CHECK(memcmp(built.slots + 1, shipped.slots + 1, sizeof built.slots - sizeof *built.slots) == 0);
}

static void test_theme_files(void)
{
    char *dir = io_temp_dir("ksmith-theme", NULL), *path = io_join(dir, "mine.ini");
    const char bad[] =
        "[slots]\ntext = redd default\nnope = red\ncursor = red default flashing\n[theme]\nsize = 3\n";
    const char good[] = "[slots]\ndiff.* = #010203 default\ndiff.add = 114 #1d3a24 bold\n";
    err_list errors = {0};
    struct theme t;
    io_write_file(path, bad, sizeof bad - 1, 0600, NULL);
    theme_default(&t);
    CHECK(theme_load(&t, path, &errors) < 0 && errors.n == 4);
    CHECK(errors.n == 4 && strstr(errors.v[0].where, "mine.ini:2:8") && strstr(errors.v[0].msg, "redd"));
    CHECK(str_eq(t.name, "default"));
    vec_free(&errors);
    errors = (err_list){0};
    io_write_file(path, good, sizeof good - 1, 0600, NULL);
    CHECK(theme_load(&t, path, &errors) == 0 && str_eq(t.name, "mine"));
    CHECK(t.slots[SLOT_DIFF_DEL].fg == (COLOR_RGB | 0x010203) && t.slots[SLOT_DIFF_ADD].fg == 114);
    CHECK(t.slots[SLOT_DIFF_ADD].bg == (COLOR_RGB | 0x1d3a24) && t.slots[SLOT_DIFF_ADD].attrs == ATTR_BOLD);
    CHECK(theme_load(&t, "no-such-theme", &errors) < 0 && strstr(errors.v[0].hint, "default"));
    vec_free(&errors);
    io_remove(dir, NULL);
    free(dir);
    free(path);
}

static void test_fewer_colours(void)
{
    CHECK(theme_color(COLOR_DEFAULT, 8) == COLOR_DEFAULT && theme_color(5, 0) == COLOR_DEFAULT);
    CHECK(theme_color(COLOR_RGB | 0xff0000, 256) == 196 && theme_color(196, 8) == 1);
    CHECK(theme_color(COLOR_RGB | 0x808080, 256) >= 232);
    CHECK(theme_color(3, 256) == 3 && theme_color(1, 1 << 24) == (COLOR_RGB | 0xcd0000));
}

static void test_syntax(void)
{
    const char text[] =
        "#define N 4\nstatic float f(int n) { /* x */ return n * 2.5f + __ldg(p); } // \"s\"\n";
    struct syntax *s = syntax_read(text, sizeof text - 1);
    CHECK(syntax_at(s, 0) == SLOT_PREPROCESSOR &&
          syntax_at(s, (size_t)(strstr(text, "static") - text)) == SLOT_KEYWORD);
    CHECK(syntax_at(s, (size_t)(strstr(text, "2.5f") - text)) == SLOT_NUMBER);
    CHECK(syntax_at(s, (size_t)(strstr(text, "/* x") - text) + 2) == SLOT_COMMENT);
    CHECK(syntax_at(s, (size_t)(strstr(text, "__ldg") - text)) == SLOT_BUILTIN);
    CHECK(syntax_at(s, (size_t)(strstr(text, "float") - text)) == SLOT_TYPE); // backwards
    CHECK(syntax_at(s, (size_t)(strstr(text, "\"s\"") - text)) == SLOT_COMMENT);
    syntax_free(s);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    T(test_canvas);
    T(test_canvas_hostile);
    T(test_layout);
    T(test_list);
    T(test_keys);
    T(test_entry);
    T(test_rows);
    T(test_graph);
    T(test_diff_lines);
    T(test_chart);
    T(test_shipped_themes);
    T(test_theme_files);
    T(test_fewer_colours);
    T(test_syntax);
    T_END;
}
