#include "models/prompt.h"

#include "base/io.h"
#include "base/log.h"
#include "base/text.h"

#include <ctype.h>

static const char *const files[] = {"improve",  "repair",  "cross",  "explore",
                                    "simplify", "explain", "system", "user"};
enum { F_SYSTEM = ASK_COUNT, F_USER, F_COUNT, MAX_TEMPLATE = 256 << 10 };

struct prompts {
    struct str text[F_COUNT];
    char *path[F_COUNT];
};

enum list { L_ATTEMPTS, L_NEIGHBOURS, L_PROGRAMS, L_DISTANT, L_HINTS, L_COUNT };
static const char *const list_names[L_COUNT] = {"attempts", "neighbours", "programs", "distant", "hints"};

// What stands of the context at one step of cutting.
struct view {
    const struct prompts *p;
    const struct prompt_ctx *c;
    size_t count[L_COUNT];
    struct str log, cut, operator;
    bool no_profile, no_hardware;
    const struct prompt_item *item; // inside of a list
    int depth;
    struct err *e;
};

const char *ask_name(enum ask a)
{
    return files[a];
}

int ask_parse(const char *name, enum ask *out, struct err *e)
{
    for (int i = 0; i < ASK_COUNT; i++)
        if (str_eq(name, files[i])) {
            *out = (enum ask)i;
            return 0;
        }
    return err_set(e, ERR_USAGE, "improve, repair, cross, explore, simplify or explain",
                   "no request is named %s", name);
}

static const struct prompt_items *items_of(const struct prompt_ctx *c, enum list l)
{
    const struct prompt_items *const lists[L_COUNT] = {&c->attempts, &c->neighbours, &c->programs,
                                                       &c->distant, &c->hints};
    return lists[l];
}

// A value by name; NULL where no such name exists.
static const char *value_of(const struct view *v, const char *name)
{
    const struct prompt_ctx *c = v->c;
    const struct {
        const char *name, *value;
    } values[] = {
        {"func", c->func},
        {"region", c->region},
        {"task", c->task},
        {"hardware", v->no_hardware ? "" : c->hardware},
        {"source", c->source},
        {"verdict", c->verdict},
        {"profile", v->no_profile ? "" : c->profile},
        {"log", str_c(&v->log)},
        {"cut", str_c(&v->cut)},
        {"operator", str_c(&v->operator)},
        {"ask", ask_name(c->ask)},
        {"explain", c->ask == ASK_EXPLAIN ? "yes" : ""},
        {"cuda", c->cuda ? "yes" : ""},
        {"language", c->cuda ? "CUDA C++" : "C"},
        {"fence", c->cuda ? "cuda" : "c"},
        {"other_title", c->other.title},
        {"other_text", c->other.text},
        {"other_code", c->other.code},
        {"title", v->item ? v->item->title : c->title},
        {"text", v->item ? v->item->text : ""},
        {"code", v->item ? v->item->code : ""},
    };
    for (size_t i = 0; i < countof(values); i++)
        if (str_eq(values[i].name, name))
            return values[i].value ? values[i].value : "";
    for (int l = 0; l < L_COUNT; l++) {
        size_t k = strlen(list_names[l]);
        if (strncmp(name, list_names[l], k) == 0 && str_eq(name + k, ".any"))
            return v->count[l] ? "yes" : "";
    }
    return NULL;
}

static int list_of(const char *name)
{
    for (int l = 0; l < L_COUNT; l++)
        if (str_eq(name, list_names[l]))
            return l;
    return -1;
}

static int line_of(const char *text, const char *at)
{
    int line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

static int mistake(struct view *v, int file, const char *at, const char *what, const char *name)
{
    err_set(v->e, ERR_USAGE, "See the head of the man page's section on prompts for the names.", "%s: %s",
            what, name);
    err_at(v->e, v->p->path[file], line_of(str_c(&v->p->text[file]), at), 0);
    return -1;
}

// The end of the block that opened with {{#name}}, counting blocks of the same name inside.
static const char *block_end(const char *at, const char *end, const char *name)
{
    size_t k = strlen(name);
    int depth = 1;
    for (; (at = memmem(at, (size_t)(end - at), "{{", 2)); at += 2) {
        bool opens = at[2] == '#' || at[2] == '^';
        if ((!opens && at[2] != '/') || strncmp(at + 3, name, k) != 0 || strncmp(at + 3 + k, "}}", 2) != 0)
            continue;
        depth += opens ? 1 : -1;
        if (depth == 0)
            return at;
    }
    return NULL;
}

static int expand(struct view *v, int file, const char *at, const char *end, struct str *out);

static int expand_block(struct view *v, int file, const char *tag, const char *name, const char *body,
                        const char *stop, struct str *out)
{
    int l = list_of(name), r = 0;
    const char *value = l < 0 ? value_of(v, name) : NULL;
    if (l < 0 && !value)
        return mistake(v, file, tag, "unknown name", name);
    if (++v->depth > 16)
        return mistake(v, file, tag, "blocks nested too deep", name);
    if (l >= 0 && tag[2] == '#') {
        const struct prompt_item *outer = v->item;
        for (size_t i = 0; i < v->count[l] && r == 0; i++) {
            v->item = &items_of(v->c, (enum list)l)->v[i];
            r = expand(v, file, body, stop, out);
        }
        v->item = outer;
    } else if (l >= 0 ? v->count[l] == 0 : (*value != 0) == (tag[2] == '#')) {
        r = expand(v, file, body, stop, out);
    }
    v->depth--;
    return r;
}

static int expand(struct view *v, int file, const char *at, const char *end, struct str *out)
{
    while (at < end) {
        const char *tag = memmem(at, (size_t)(end - at), "{{", 2);
        str_addn(out, at, (size_t)((tag ? tag : end) - at));
        if (!tag)
            return 0;
        const char *close = memmem(tag, (size_t)(end - tag), "}}", 2);
        bool block = tag + 2 < end && (tag[2] == '#' || tag[2] == '^');
        const char *from = tag + 2 + block;
        char name[32] = "";
        if (!close || (size_t)(close - from) >= sizeof name)
            return mistake(v, file, tag, "a {{ without its }}", "");
        memcpy(name, from, (size_t)(close - from));
        at = close + 2;
        if (block) {
            const char *stop = block_end(at, end, name);
            if (!stop)
                return mistake(v, file, tag, "a block without its end", name);
            if (expand_block(v, file, tag, name, at, stop, out) < 0)
                return -1;
            at = stop + 5 + strlen(name);
            continue;
        }
        const char *value = value_of(v, name);
        if (!value)
            return mistake(v, file, tag, "unknown name", name);
        str_add(out, value);
    }
    return 0;
}

static int expand_file(struct view *v, int file, struct str *out)
{
    const char *s = str_c(&v->p->text[file]);
    return expand(v, file, s, s + v->p->text[file].len, out);
}

// ---- templates

static void full_view(struct view *v, const struct prompts *p, const struct prompt_ctx *c, struct err *e)
{
    *v = (struct view){.p = p, .c = c, .e = e};
    for (int l = 0; l < L_COUNT; l++)
        v->count[l] = items_of(c, (enum list)l)->n;
    if (c->log)
        str_add(&v->log, c->log);
}

static void view_free(struct view *v)
{
    str_free(&v->log);
    str_free(&v->cut);
    str_free(&v->operator);
}

// Every template is filled once with everything there, so that a mistake shows when the session opens.
static int prove(const struct prompts *p, struct err *e)
{
    static const struct prompt_item item = {"t", "t", "t"};
    const struct prompt_items items = {&item, 1};
    const struct prompt_ctx full = {.func = "f",
                                    .region = "r",
                                    .task = "t",
                                    .hardware = "h",
                                    .title = "t",
                                    .source = "s",
                                    .verdict = "v",
                                    .profile = "p",
                                    .log = "l",
                                    .attempts = items,
                                    .neighbours = items,
                                    .programs = items,
                                    .distant = items,
                                    .hints = items,
                                    .other = item,
                                    .cuda = true};
    const struct prompt_ctx none = {0};
    for (int file = 0; file < F_COUNT; file++)
        for (int i = 0; i < 2; i++) {
            struct view v;
            struct str out = {0};
            full_view(&v, p, i ? &none : &full, e);
            int r = expand_file(&v, file, &out);
            str_free(&out);
            view_free(&v);
            if (r < 0)
                return -1;
        }
    return 0;
}

struct prompts *prompts_load(const char *const *folders, struct err *e)
{
    struct prompts *p = xcalloc(1, sizeof *p);
    for (int i = 0; i < F_COUNT; i++) {
        for (const char *const *f = folders; *f && !p->path[i]; f++) {
            char *path = xasprintf("%s/%s.txt", *f, files[i]);
            if (io_exists(path)) {
                p->path[i] = path;
                if (io_read_file(path, MAX_TEMPLATE, &p->text[i], e) < 0) {
                    prompts_free(p);
                    return NULL;
                }
            } else
                free(path);
        }
        if (!p->path[i]) {
            err_set(e, ERR_FAIL, "Reinstall ksmith, or put the file into the session's folder prompts/.",
                    "the prompt template %s.txt is missing", files[i]);
            prompts_free(p);
            return NULL;
        }
    }
    if (prove(p, e) < 0) {
        prompts_free(p);
        return NULL;
    }
    return p;
}

struct prompts *prompts_open(const char *dir, struct err *e)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *mine = dir ? xasprintf("%s/prompts", dir) : NULL;
    char *users = config && *config ? xasprintf("%s/ksmith/prompts", config)
                                    : xasprintf("%s/.config/ksmith/prompts", home ? home : "");
    char *own = io_data_dir("engine/prompts"); // the source tree
    if (!own)
        own = io_data_dir("prompts"); // where it is installed
    const char *folders[4] = {0};
    size_t n = 0;
    if (mine)
        folders[n++] = mine;
    folders[n++] = users;
    if (own)
        folders[n++] = own;
    struct prompts *p = prompts_load(folders, e);
    free(mine);
    free(users);
    free(own);
    return p;
}

void prompts_free(struct prompts *p)
{
    if (!p)
        return;
    for (int i = 0; i < F_COUNT; i++) {
        str_free(&p->text[i]);
        free(p->path[i]);
    }
    free(p);
}

// ---- cutting

// Keeps the head and the tail of the log, whole lines.
static void shorten_log(struct view *v)
{
    const char *log = v->c->log;
    size_t n = strlen(log), keep = v->log.len / 2, lines = 0;
    if (keep < 400) {
        str_clear(&v->log);
        return;
    }
    size_t head = keep / 2, tail = n - keep / 2;
    while (head && log[head - 1] != '\n')
        head--;
    while (tail < n && log[tail] != '\n')
        tail++;
    for (size_t i = head; i < tail; i++)
        lines += log[i] == '\n';
    str_clear(&v->log);
    str_addn(&v->log, log, head);
    str_addf(&v->log, "[%zu lines left out]", lines);
    str_addn(&v->log, log + tail, n - tail);
}

// Leaves out what is missed least; false where only what must stay is left.
static bool cut_one(struct view *v)
{
    // The last of the distant programs first; one attempt, one program stay until the log is short.
    static const struct {
        enum list list;
        size_t least;
    } order[] = {{L_DISTANT, 0}, {L_PROGRAMS, 1}, {L_NEIGHBOURS, 1}, {L_ATTEMPTS, 3}};
    for (size_t i = 0; i < countof(order); i++)
        if (v->count[order[i].list] > order[i].least) {
            v->count[order[i].list]--;
            return true;
        }
    if (v->log.len > 2000) {
        shorten_log(v);
        return true;
    }
    if (!v->no_profile && v->c->profile && *v->c->profile)
        return v->no_profile = true;
    for (size_t i = 0; i < countof(order); i++)
        if (v->count[order[i].list]) {
            v->count[order[i].list]--;
            return true;
        }
    if (v->log.len) {
        shorten_log(v);
        return true;
    }
    if (!v->no_hardware && v->c->hardware && *v->c->hardware)
        return v->no_hardware = true;
    return false;
}

static void say_cut(struct view *v)
{
    static const char *const words[L_COUNT] = {"earlier attempts", "changes of relatives",
                                               "of the best versions", "different versions", "hints"};
    str_clear(&v->cut);
    for (int l = 0; l < L_COUNT; l++) {
        size_t all = items_of(v->c, (enum list)l)->n;
        if (v->count[l] < all)
            str_addf(&v->cut, "%s%zu of %zu %s", v->cut.len ? ", " : "", all - v->count[l], all, words[l]);
    }
    if (v->c->log && v->log.len != strlen(v->c->log))
        str_addf(&v->cut, "%s%s of the log", v->cut.len ? ", " : "", v->log.len ? "the middle" : "all");
    if (v->no_profile)
        str_addf(&v->cut, "%sthe profile", v->cut.len ? ", " : "");
    if (v->no_hardware)
        str_addf(&v->cut, "%sthe hardware", v->cut.len ? ", " : "");
    if (v->cut.len)
        str_splice(&v->cut, 0, 0, "Left out for want of room: ", 27);
}

static int render(struct view *v, struct prompt *out)
{
    str_clear(&out->system);
    str_clear(&out->user);
    str_clear(&v->operator);
    if (expand_file(v, (int)v->c->ask, &v->operator) < 0 || expand_file(v, F_SYSTEM, &out->system) < 0 ||
        expand_file(v, F_USER, &out->user) < 0)
        return -1;
    return 0;
}

int prompt_build(const struct prompts *p, const struct prompt_ctx *c, size_t budget, struct prompt *out,
                 struct err *e)
{
    struct view v;
    *out = (struct prompt){0};
    full_view(&v, p, c, e);
    int r = render(&v, out);
    size_t whole = out->system.len + out->user.len;
    while (r == 0 && out->system.len + out->user.len > budget) {
        if (!cut_one(&v)) {
            r = err_set(e, ERR_FAIL, "Use a model with a larger context, or set context = in its section.",
                        "the kernel alone needs %zu bytes of prompt, this model takes %zu",
                        out->system.len + out->user.len, budget);
            break;
        }
        say_cut(&v);
        r = render(&v, out);
    }
    size_t size = out->system.len + out->user.len;
    out->cut_bytes = whole > size ? whole - size : 0;
    str_addn(&out->cut, str_c(&v.cut), v.cut.len);
    // Nobody's secret goes to a third party.
    log_redact(&out->system);
    log_redact(&out->user);
    view_free(&v);
    if (r < 0)
        prompt_free(out);
    return r;
}

void prompt_free(struct prompt *p)
{
    str_free(&p->system);
    str_free(&p->user);
    str_free(&p->cut);
    *p = (struct prompt){0};
}
