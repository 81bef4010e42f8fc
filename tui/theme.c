#include "tui/theme.h"

#include "base/ini.h"
#include "base/io.h"
#include "base/str.h"

#include <dirent.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const char *const slot_names[SLOT_COUNT] = {
    [SLOT_NONE] = "",
    [SLOT_TEXT] = "text",
    [SLOT_DIM] = "dim",
    [SLOT_STRONG] = "strong",
    [SLOT_TITLE] = "title",
    [SLOT_TITLE_FOCUS] = "title.focus",
    [SLOT_BORDER] = "border",
    [SLOT_STATUS] = "status",
    [SLOT_STATUS_KEY] = "status.key",
    [SLOT_CURSOR] = "cursor",
    [SLOT_CURSOR_BLUR] = "cursor.blur",
    [SLOT_MARK] = "mark",
    [SLOT_MATCH] = "match",
    [SLOT_PROMPT] = "prompt",
    [SLOT_INFO] = "info",
    [SLOT_WARN] = "warn",
    [SLOT_ERROR] = "error",
    [SLOT_CHAMPION] = "champion",
    [SLOT_ACCEPTED] = "accepted",
    [SLOT_ARCHIVED] = "archived",
    [SLOT_PENDING] = "pending",
    [SLOT_FAILED] = "failed",
    [SLOT_KILLED] = "killed",
    [SLOT_QUARANTINED] = "quarantined",
    [SLOT_PINNED] = "pinned",
    [SLOT_UP] = "up",
    [SLOT_DOWN] = "down",
    [SLOT_BAR] = "bar",
    [SLOT_BAR_REST] = "bar.rest",
    [SLOT_OP] = "operator",
    [SLOT_HASH] = "hash",
    [SLOT_REF] = "ref",
    [SLOT_GRAPH] = "graph",
    [SLOT_DIFF_ADD] = "diff.add",
    [SLOT_DIFF_DEL] = "diff.del",
    [SLOT_DIFF_ADD_WORD] = "diff.add.word",
    [SLOT_DIFF_DEL_WORD] = "diff.del.word",
    [SLOT_DIFF_HUNK] = "diff.hunk",
    [SLOT_LINE_NUMBER] = "line.number",
    [SLOT_CONFLICT] = "conflict",
    [SLOT_CODE] = "code",
    [SLOT_KEYWORD] = "code.keyword",
    [SLOT_TYPE] = "code.type",
    [SLOT_NUMBER] = "code.number",
    [SLOT_STRING] = "code.string",
    [SLOT_COMMENT] = "code.comment",
    [SLOT_PREPROCESSOR] = "code.preprocessor",
    [SLOT_BUILTIN] = "code.builtin",
    [SLOT_HEAT_0] = "heat.0",
    [SLOT_HEAT_1] = "heat.1",
    [SLOT_HEAT_2] = "heat.2",
    [SLOT_HEAT_3] = "heat.3",
    [SLOT_HEAT_4] = "heat.4",
    [SLOT_LINE_BEST] = "chart.best",
    [SLOT_LINE_MEDIAN] = "chart.median",
};

static const char *const color_names[16] = {
    "black",        "red",           "green",       "yellow",         "blue",
    "magenta",      "cyan",          "white",       "bright-black",   "bright-red",
    "bright-green", "bright-yellow", "bright-blue", "bright-magenta", "bright-cyan",
    "bright-white"};
static const struct {
    const char *name;
    uint32_t attr;
} attr_names[] = {{"bold", ATTR_BOLD},
                  {"dim", ATTR_DIM},
                  {"underline", ATTR_UNDERLINE},
                  {"reverse", ATTR_REVERSE},
                  {"italic", ATTR_ITALIC}};

// The built-in default: the sixteen names only, background untouched, so that it reads on dark and light.
void theme_default(struct theme *t)
{
    static const struct {
        enum slot slot;
        int fg, bg;
        uint32_t attrs;
    } rows[] = {
        {SLOT_DIM, -1, -1, ATTR_DIM},
        {SLOT_STRONG, -1, -1, ATTR_BOLD},
        {SLOT_TITLE, -1, -1, 0},
        {SLOT_TITLE_FOCUS, -1, -1, ATTR_BOLD | ATTR_REVERSE},
        {SLOT_BORDER, -1, -1, ATTR_DIM},
        {SLOT_STATUS, -1, -1, ATTR_REVERSE},
        {SLOT_STATUS_KEY, 6, -1, ATTR_BOLD},
        {SLOT_CURSOR, -1, -1, ATTR_REVERSE},
        {SLOT_CURSOR_BLUR, -1, -1, ATTR_UNDERLINE},
        {SLOT_MARK, 5, -1, ATTR_BOLD},
        {SLOT_MATCH, -1, -1, ATTR_REVERSE},
        {SLOT_PROMPT, -1, -1, ATTR_BOLD},
        {SLOT_INFO, 2, -1, 0},
        {SLOT_WARN, 3, -1, ATTR_BOLD},
        {SLOT_ERROR, 1, -1, ATTR_BOLD},
        {SLOT_CHAMPION, 2, -1, ATTR_BOLD},
        {SLOT_ACCEPTED, 2, -1, 0},
        {SLOT_ARCHIVED, 6, -1, 0},
        {SLOT_PENDING, 4, -1, 0},
        {SLOT_FAILED, 1, -1, 0},
        {SLOT_KILLED, -1, -1, ATTR_DIM},
        {SLOT_QUARANTINED, 5, -1, ATTR_BOLD},
        {SLOT_PINNED, 3, -1, ATTR_BOLD},
        {SLOT_UP, 2, -1, 0},
        {SLOT_DOWN, 1, -1, 0},
        {SLOT_BAR, 2, -1, 0},
        {SLOT_BAR_REST, -1, -1, ATTR_DIM},
        {SLOT_OP, 4, -1, 0},
        {SLOT_HASH, 3, -1, 0},
        {SLOT_REF, 6, -1, ATTR_BOLD},
        {SLOT_GRAPH, 5, -1, 0},
        {SLOT_DIFF_ADD, 2, -1, 0},
        {SLOT_DIFF_DEL, 1, -1, 0},
        {SLOT_DIFF_ADD_WORD, 2, -1, ATTR_REVERSE},
        {SLOT_DIFF_DEL_WORD, 1, -1, ATTR_REVERSE},
        {SLOT_DIFF_HUNK, 6, -1, 0},
        {SLOT_LINE_NUMBER, -1, -1, ATTR_DIM},
        {SLOT_CONFLICT, 1, -1, ATTR_BOLD},
        {SLOT_KEYWORD, 5, -1, 0},
        {SLOT_TYPE, 6, -1, 0},
        {SLOT_NUMBER, 4, -1, 0},
        {SLOT_STRING, 2, -1, 0},
        {SLOT_COMMENT, -1, -1, ATTR_DIM},
        {SLOT_PREPROCESSOR, 5, -1, 0},
        {SLOT_BUILTIN, 3, -1, 0},
        {SLOT_HEAT_0, -1, -1, ATTR_DIM},
        {SLOT_HEAT_1, 4, -1, 0},
        {SLOT_HEAT_2, 6, -1, 0},
        {SLOT_HEAT_3, 3, -1, 0},
        {SLOT_HEAT_4, 2, -1, ATTR_BOLD},
        {SLOT_LINE_BEST, 2, -1, ATTR_BOLD},
        {SLOT_LINE_MEDIAN, 6, -1, 0},
    };
    memset(t, 0, sizeof *t);
    memcpy(t->name, "default", sizeof "default");
    for (int i = 0; i < SLOT_COUNT; i++)
        t->slots[i] = (struct style){COLOR_DEFAULT, COLOR_DEFAULT, 0};
    for (size_t i = 0; i < countof(rows); i++)
        t->slots[rows[i].slot] = (struct style){rows[i].fg, rows[i].bg, rows[i].attrs};
}

// ---- reading

struct reading {
    const char *path;
    struct theme theme;
    err_list *errors;
};

static bool parse_color(const char *s, int32_t *out)
{
    char *end = NULL;
    if (str_eq(s, "default")) {
        *out = COLOR_DEFAULT;
        return true;
    }
    for (int i = 0; i < 16; i++)
        if (str_eq(s, color_names[i])) {
            *out = i;
            return true;
        }
    if (s[0] == '#' && strspn(s + 1, "0123456789abcdefABCDEF") == 6 && !s[7]) {
        long rgb = strtol(s + 1, &end, 16);
        *out = (int32_t)(COLOR_RGB | rgb);
        return *end == 0;
    }
    long n = strtol(s, &end, 10);
    *out = (int32_t)n;
    return end > s && *end == 0 && n >= 0 && n < 256;
}

static int attr_of(const char *s, uint32_t *attr)
{
    for (size_t i = 0; i < countof(attr_names); i++)
        if (str_eq(s, attr_names[i].name)) {
            *attr |= attr_names[i].attr;
            return 0;
        }
    return -1;
}

static int parse_style(struct reading *r, const struct ini_item *item, struct style *out)
{
    size_t n = 0;
    char **words = str_words(item->value, &n);
    struct style s = {COLOR_DEFAULT, COLOR_DEFAULT, 0};
    int bad = 0;
    if (!words || n == 0) {
        err_list_add(r->errors, r->path, item->line, item->value_column, "As in: text = default default bold",
                     "a style is a foreground, a background and attributes");
        bad = 1;
    }
    for (size_t i = 0; words && i < n; i++) {
        bool ok = i < 2 ? parse_color(words[i], i ? &s.bg : &s.fg) : attr_of(words[i], &s.attrs) == 0;
        if (ok)
            continue;
        err_list_add(r->errors, r->path, item->line, item->value_column,
                     i < 2 ? "default, a name such as red or bright-blue, 0 to 255, or #rrggbb."
                           : "bold, dim, underline, reverse, italic.",
                     i < 2 ? "%s is not a colour" : "%s is not an attribute", words[i]);
        bad = 1;
    }
    free(words);
    *out = s;
    return bad ? -1 : 0;
}

static void unknown_slot(struct reading *r, const struct ini_item *item)
{
    const char *near = str_nearest(item->key, slot_names + 1, SLOT_COUNT - 1);
    char *hint = near ? xasprintf("Did you mean %s?", near) : xstrdup("ksmith-theme(5) lists the slots.");
    err_list_add(r->errors, r->path, item->line, item->key_column, hint, "there is no slot %s", item->key);
    free(hint);
}

// "diff.*" sets every slot that begins so; a later line may refine one.
static void set_slots(struct reading *r, const struct ini_item *item)
{
    struct style s;
    size_t n = strlen(item->key);
    bool wild = n && item->key[n - 1] == '*', any = false;
    if (parse_style(r, item, &s) < 0)
        return;
    for (int i = 1; i < SLOT_COUNT; i++)
        if (wild ? strncmp(slot_names[i], item->key, n - 1) == 0 : str_eq(slot_names[i], item->key)) {
            r->theme.slots[i] = s;
            any = true;
        }
    if (!any)
        unknown_slot(r, item);
}

static void take(void *user, const struct ini_item *item)
{
    struct reading *r = user;
    if (str_eq(item->section, "slots")) {
        set_slots(r, item);
    } else if (str_eq(item->section, "theme") && str_eq(item->key, "name")) {
        snprintf(r->theme.name, sizeof r->theme.name, "%s", item->value);
    } else if (str_eq(item->section, "theme") && str_eq(item->key, "about")) {
        return;
    } else {
        err_list_add(r->errors, r->path, item->line, item->key_column,
                     "[theme] has name and about; [slots] the rest.", "[%s] %s means nothing in a theme",
                     item->section, item->key);
    }
}

// ---- finding

// Folders that hold themes, best first; each malloc'ed.
static size_t folders(char *out[3])
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    size_t n = 0;
    if (xdg && *xdg)
        out[n++] = xasprintf("%s/ksmith/themes", xdg);
    else if (home && *home)
        out[n++] = xasprintf("%s/.config/ksmith/themes", home);
    char *shipped = io_data_dir("themes");
    if (shipped)
        out[n++] = shipped;
    return n;
}

static char *find(const char *name)
{
    char *dirs[3], *found = NULL;
    if (strchr(name, '/'))
        return xstrdup(name);
    size_t n = folders(dirs);
    for (size_t i = 0; i < n; i++) {
        char *path = xasprintf("%s/%s.ini", dirs[i], name);
        if (!found && io_exists(path))
            found = path;
        else
            free(path);
        free(dirs[i]);
    }
    return found;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **theme_list(void)
{
    VEC(char *) names = {0};
    char *dirs[3];
    size_t n = folders(dirs);
    vec_push(&names, xstrdup("default"));
    for (size_t i = 0; i < n; i++) {
        DIR *d = opendir(dirs[i]);
        for (struct dirent *x; d && (x = readdir(d));) {
            if (x->d_name[0] == '.' || !str_ends(x->d_name, ".ini"))
                continue;
            char *name = xasprintf("%.*s", (int)strlen(x->d_name) - 4, x->d_name);
            bool known = false;
            for (size_t k = 0; k < names.n; k++)
                known = known || str_eq(names.v[k], name);
            if (known)
                free(name);
            else
                vec_push(&names, name);
        }
        if (d)
            closedir(d);
        free(dirs[i]);
    }
    qsort(names.v, names.n, sizeof *names.v, by_name);
    vec_push(&names, NULL);
    return names.v;
}

static void not_found(const char *name, err_list *errors)
{
    struct str hint = {0};
    char **names = theme_list();
    str_add(&hint, "There are:");
    for (size_t i = 0; names[i]; i++) {
        str_addf(&hint, " %s", names[i]);
        free(names[i]);
    }
    free(names);
    err_list_add(errors, "", 0, 0, str_c(&hint), "there is no theme %s", name);
    str_free(&hint);
}

int theme_load(struct theme *t, const char *name, err_list *errors)
{
    struct reading r = {.errors = errors};
    size_t before = errors->n;
    char *path = find(name);
    theme_default(&r.theme);
    if (!path && str_eq(name, "default")) {
        *t = r.theme;
        return 0;
    }
    if (!path) {
        not_found(name, errors);
        return -1;
    }
    const char *slash = strrchr(path, '/');
    snprintf(r.theme.name, sizeof r.theme.name, "%.*s",
             (int)(strlen(slash ? slash + 1 : path) - (str_ends(path, ".ini") ? 4 : 0)),
             slash ? slash + 1 : path);
    r.path = path;
    ini_parse_path(path, take, &r, errors);
    free(path);
    if (errors->n > before)
        return -1;
    *t = r.theme;
    return 0;
}

// ---- fewer colours

static const uint8_t basic[16][3] = {{0, 0, 0},       {205, 0, 0},   {0, 205, 0},   {205, 205, 0},
                                     {0, 0, 238},     {205, 0, 205}, {0, 205, 205}, {229, 229, 229},
                                     {127, 127, 127}, {255, 0, 0},   {0, 255, 0},   {255, 255, 0},
                                     {92, 92, 255},   {255, 0, 255}, {0, 255, 255}, {255, 255, 255}};

static int level(int i)
{
    return i ? 55 + 40 * i : 0;
}

static void to_rgb(int32_t c, int rgb[3])
{
    if (c & COLOR_RGB) {
        rgb[0] = c >> 16 & 255;
        rgb[1] = c >> 8 & 255;
        rgb[2] = c & 255;
    } else if (c < 16) {
        for (int i = 0; i < 3; i++)
            rgb[i] = basic[c][i];
    } else if (c < 232) {
        rgb[0] = level((c - 16) / 36);
        rgb[1] = level((c - 16) / 6 % 6);
        rgb[2] = level((c - 16) % 6);
    } else {
        rgb[0] = rgb[1] = rgb[2] = 8 + 10 * (c - 232);
    }
}

static int32_t nearest(const int rgb[3], int from, int to)
{
    int32_t best = from;
    long best_distance = -1;
    for (int32_t i = from; i < to; i++) {
        int x[3];
        to_rgb(i, x);
        long d = 0;
        for (int k = 0; k < 3; k++)
            d += (long)(x[k] - rgb[k]) * (x[k] - rgb[k]);
        if (best_distance < 0 || d < best_distance) {
            best = i;
            best_distance = d;
        }
    }
    return best;
}

int32_t theme_color(int32_t c, int colors)
{
    int rgb[3];
    if (c == COLOR_DEFAULT || colors == 0)
        return COLOR_DEFAULT;
    if (colors > 256) { // direct colour: small palette numbers would be near black there
        to_rgb(c, rgb);
        return COLOR_RGB | rgb[0] << 16 | rgb[1] << 8 | rgb[2];
    }
    if (!(c & COLOR_RGB) && c < colors)
        return c;
    to_rgb(c, rgb);
    // The first sixteen are the user's own; exact colours come from the cube and the greys.
    return colors == 256 ? nearest(rgb, 16, 256) : nearest(rgb, 0, colors);
}

struct style theme_mono(enum slot slot, struct style s)
{
    static const struct {
        enum slot slot;
        uint32_t attrs;
    } rows[] = {{SLOT_TITLE_FOCUS, ATTR_REVERSE | ATTR_BOLD},
                {SLOT_STATUS, ATTR_REVERSE},
                {SLOT_CURSOR, ATTR_REVERSE},
                {SLOT_CURSOR_BLUR, ATTR_UNDERLINE},
                {SLOT_MATCH, ATTR_REVERSE},
                {SLOT_MARK, ATTR_BOLD},
                {SLOT_ERROR, ATTR_BOLD},
                {SLOT_WARN, ATTR_BOLD},
                {SLOT_CHAMPION, ATTR_BOLD},
                {SLOT_DIFF_ADD_WORD, ATTR_REVERSE},
                {SLOT_DIFF_DEL_WORD, ATTR_REVERSE},
                {SLOT_DIFF_ADD, ATTR_BOLD},
                {SLOT_KEYWORD, ATTR_BOLD},
                {SLOT_STATUS_KEY, ATTR_BOLD},
                {SLOT_HEAT_4, ATTR_REVERSE},
                {SLOT_HEAT_3, ATTR_BOLD},
                {SLOT_LINE_BEST, ATTR_BOLD}};
    struct style out = {COLOR_DEFAULT, COLOR_DEFAULT, s.attrs & (uint32_t)~ATTR_ITALIC};
    for (size_t i = 0; i < countof(rows); i++)
        if (rows[i].slot == slot)
            out.attrs |= rows[i].attrs;
    return out;
}

// ---- printing

static void print_color(int32_t c, FILE *f)
{
    if (c == COLOR_DEFAULT)
        fputs("default", f);
    else if (c & COLOR_RGB)
        fprintf(f, "#%06x", c & 0xffffff);
    else if (c < 16)
        fputs(color_names[c], f);
    else
        fprintf(f, "%d", c);
}

void theme_print(const struct theme *t, FILE *f)
{
    fprintf(f, "[theme]\nname = %s\n\n[slots]\n", t->name);
    for (int i = 1; i < SLOT_COUNT; i++) {
        fprintf(f, "%-18s = ", slot_names[i]);
        print_color(t->slots[i].fg, f);
        fputc(' ', f);
        print_color(t->slots[i].bg, f);
        for (size_t k = 0; k < countof(attr_names); k++)
            if (t->slots[i].attrs & attr_names[k].attr)
                fprintf(f, " %s", attr_names[k].name);
        fputc('\n', f);
    }
}
