// Help: the keys as they are bound now, the commands, what the glyphs mean. Made from the same tables that
// the program runs by.
#include "evolve/steer.h"
#include "tui/key.h"
#include "tui/page.h"
#include "tui/view.h"

#include <string.h>

struct help {
    struct view view;
    struct page page;
    bool made, utf8;
};

static struct help *self(struct view *v)
{
    return (struct help *)v;
}

static void add_group(struct help *h, const char *group)
{
    page_add(&h->page, SLOT_STRONG, "%c%s", group[0] - 'a' + 'A', group + 1);
    for (int i = 1; i < ACT_COUNT; i++) {
        char keys[80];
        if (!str_eq(actions[i].group, group))
            continue;
        keymap_keys(h->view.host->keys, (enum action)i, keys, sizeof keys);
        page_add(&h->page, SLOT_TEXT, "  %-16s %s%s%s%s", keys, actions[i].help,
                 actions[i].views ? "  [" : "", actions[i].views ? actions[i].views : "",
                 actions[i].views ? "]" : "");
        h->page.v.v[h->page.v.n - 1].label = 18;
    }
    page_add(&h->page, SLOT_TEXT, "%s", "");
}

static void add_glyphs(struct help *h, const struct canvas *c)
{
    static const struct {
        enum glyph glyph;
        const char *word;
    } rows[] = {{GLYPH_CHAMPION, "champion: the proven best"},
                {GLYPH_ACCEPTED, "accepted: proven faster, a commit"},
                {GLYPH_ARCHIVED, "archived: correct, the best of its kind"},
                {GLYPH_OK, "correct, not faster"},
                {GLYPH_PENDING, "waits for its verdict"},
                {GLYPH_FAILED, "failed: does not compile, wrong, slower than a limit ..."},
                {GLYPH_QUARANTINED, "quarantined: too good to be true, waits for you (A, D)"},
                {GLYPH_KILLED, "killed"},
                {GLYPH_PINNED, "pinned"},
                {GLYPH_MARKED, "marked"}};
    page_add(&h->page, SLOT_STRONG, "What the signs mean");
    for (size_t i = 0; i < countof(rows); i++)
        page_add(&h->page, SLOT_TEXT, "  %s  %s", canvas_glyph(c, rows[i].glyph), rows[i].word);
    page_add(&h->page, SLOT_TEXT, "%s", "");
}

static void add_commands(struct help *h)
{
    page_add(&h->page, SLOT_STRONG, "Commands (after :, Tab completes; also as `ksmith ctl COMMAND`)");
    for (size_t i = 0; i < steer_verbs_n; i++) {
        page_add(&h->page, SLOT_TEXT, "  :%-9s %-24s %s", steer_verbs[i].name, steer_verbs[i].args,
                 steer_verbs[i].help);
        h->page.v.v[h->page.v.n - 1].label = 12;
    }
    page_add(&h->page, SLOT_TEXT,
             "  :42 selects a candidate; :filter, :sort, :layout, :against, :theme, :set, :bind, :view,");
    page_add(&h->page, SLOT_TEXT, "  :run, :save-display and the names of all keys' actions work too.");
}

static void make(struct help *h, const struct canvas *c)
{
    static const char *const groups[] = {"moving", "views", "what is shown", "steering", "program"};
    if (h->made && h->utf8 == c->utf8)
        return;
    page_clear(&h->page);
    page_add(&h->page, SLOT_TEXT,
             "A number before a key repeats it: begin it with 0, as in 05j. / searches in here.");
    page_add(&h->page, SLOT_TEXT, "%s", "");
    for (size_t i = 0; i < countof(groups); i++)
        add_group(h, groups[i]);
    add_glyphs(h, c);
    add_commands(h);
    h->made = true;
    h->utf8 = c->utf8;
}

static void draw(struct view *v, struct canvas *c, struct rect r, bool focused)
{
    (void)focused;
    make(self(v), c);
    page_draw(&self(v)->page, c, r);
}

static void open(struct view *v)
{
    self(v)->made = false;
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
}

static void changed(struct view *v, unsigned what)
{
    (void)what;
    self(v)->made = false; // keys may have been bound anew
}

const struct view_ops view_help = {
    .name = "help",
    .title = "Help",
    .help = "the keys and commands",
    .size = sizeof(struct help),
    .key = ACT_HELP,
    .open = open,
    .close = close_view,
    .draw = draw,
    .act = act,
    .changed = changed,
    .search = search,
};
