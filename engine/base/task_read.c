// From text to items: which lines there are, and which of them counts where several sources give a key.
#include "base/task_parse.h"

#include "base/ini.h"
#include "base/str.h"

void task_item_free(struct task_item *it)
{
    free(it->section);
    free(it->name);
    free(it->key);
    free(it->value);
    free(it->path);
}

static bool same_key(const struct task_item *a, const struct task_item *b)
{
    return str_eq(a->section, b->section) && str_eq(a->name, b->name) && str_eq(a->key, b->key);
}

// Adds an item. A higher layer's first line for a key takes the place (and so the order) of the lower one's
// lines.
static void item_add(struct task_parser *p, struct task_item it, bool list)
{
    size_t place = p->items.n;
    bool twice = false;
    for (size_t i = p->items.n; i-- > 0;) {
        struct task_item *old = &p->items.v[i];
        if (!same_key(old, &it))
            continue;
        if (old->layer == it.layer) {
            if (!list && !twice && it.layer != LAYER_SET)
                task_error(p, &it, -1, "Keep one of them.", "'%s' is given twice, first on line %d", it.key,
                           old->line);
            twice |= !list;
            if (list || it.layer != LAYER_SET)
                continue;
        }
        task_item_free(old);
        vec_remove(&p->items, i);
        place = i;
    }
    if (twice && it.layer != LAYER_SET) {
        task_item_free(&it);
        return;
    }
    if (place > p->items.n)
        place = p->items.n;
    vec_push(&p->items, it);
    memmove(p->items.v + place + 1, p->items.v + place, (p->items.n - 1 - place) * sizeof it);
    p->items.v[place] = it;
}

struct layer {
    struct task_parser *p;
    const char *path;
    enum task_layer layer;
};

// "model fast" -> "model", "fast".
static void split_section(const char *whole, struct task_item *it)
{
    size_t n = strcspn(whole, " \t");
    it->section = xstrndup(whole, n);
    char *rest = xstrdup(whole + n), *name = str_trim(rest);
    it->name = *name ? xstrdup(name) : NULL;
    free(rest);
}

// Whether the section exists, may stand in this layer and has the name it needs. Says so at the item's key.
static bool section_good(struct task_parser *p, const struct task_item *it)
{
    bool named, in_config;
    if (!task_section_known(it->section, &named, &in_config))
        task_error_nearest(p, it, -1, it->section, task_sections(), "unknown section [%s]", it->section);
    else if (it->layer == LAYER_CONFIG && !in_config)
        task_error(p, it, -1, "Move it to a task.ini.", "[%s] belongs to a task, not to the config",
                   it->section);
    else if (named && !it->name)
        task_error(p, it, -1, "Write for instance: [model fast].", "[%s] needs a name", it->section);
    else if (!named && it->name)
        task_error(p, it, -1, "Remove what follows the section's name.", "[%s] takes no name", it->section);
    else
        return true;
    return false;
}

static void key_unknown(struct task_parser *p, const struct task_item *it)
{
    const char *known[65] = {0};
    task_section_keys(it->section, known, 64);
    // The key may be right and the section wrong: that is the better remedy.
    for (size_t i = 0; i < task_keys_n; i++)
        if (str_eq(task_keys[i].key, it->key)) {
            char hint[96];
            snprintf(hint, sizeof hint, "It belongs to [%s].", task_keys[i].section);
            task_error(p, it, -1, hint, "unknown key '%s' in [%s]", it->key, it->section);
            return;
        }
    task_error_nearest(p, it, -1, it->key, known, "unknown key '%s' in [%s]", it->key, it->section);
}

static void collect(void *user, const struct ini_item *in)
{
    struct layer *l = user;
    struct task_item it = {
        .line = in->line, .key_column = in->key_column, .value_column = in->value_column, .layer = l->layer};
    bool named, in_config;
    split_section(in->section, &it);
    it.key = xstrdup(in->key);
    it.value = xstrdup(in->value);
    it.path = xstrdup(l->path);
    const struct task_key *k = task_key_find(it.section, it.key);
    if (!it.section[0])
        task_error(l->p, &it, -1, "Write [task] or another section above it.",
                   "'%s' stands before any section", it.key);
    else if (!k && task_section_known(it.section, &named, &in_config))
        key_unknown(l->p, &it);
    else if (k && task_section_known(it.section, &named, &in_config) && named == (it.name != NULL) &&
             (in_config || l->layer != LAYER_CONFIG)) {
        item_add(l->p, it, k->list);
        return;
    }
    task_item_free(&it); // a wrong section was said where its header stands
}

// Section headers, also of sections without keys.
static void check_headers(struct task_parser *p, const char *path, enum task_layer layer, const char *text,
                          size_t len)
{
    int line = 0;
    for (const char *s = text, *end = text + len; s < end;) {
        const char *nl = memchr(s, '\n', (size_t)(end - s)), *stop = nl ? nl : end;
        const char *close = *s == '[' ? memchr(s, ']', (size_t)(stop - s)) : NULL;
        line++;
        if (close) {
            char *whole = xstrndup(s + 1, (size_t)(close - s - 1));
            struct task_item it = {
                .path = xstrdup(path), .line = line, .key_column = 2, .value_column = 2, .layer = layer};
            split_section(whole, &it);
            section_good(p, &it);
            task_item_free(&it);
            free(whole);
        }
        s = nl ? nl + 1 : end;
    }
}

void task_read_layer(struct task_parser *p, const char *path, enum task_layer layer, const char *text,
                     size_t len)
{
    struct layer l = {p, path, layer};
    check_headers(p, path, layer, text, len);
    ini_parse_text(path, text, len, collect, &l, p->errors);
}

// The one section that has the key; NULL and an error where there is none or several.
static const char *section_of_key(struct task_parser *p, const struct task_item *it)
{
    const char *found = NULL, *known[128] = {0};
    size_t n = 0;
    for (size_t i = 0; i < task_keys_n; i++) {
        bool named = false, in_config;
        task_section_known(task_keys[i].section, &named, &in_config);
        if (named || str_eq(task_keys[i].key, "NAME"))
            continue;
        if (n + 1 < countof(known))
            known[n++] = task_keys[i].key;
        if (!str_eq(task_keys[i].key, it->key))
            continue;
        if (found) {
            task_error(p, it, -1, "Write the section too.", "'%s' stands for %s.%s and %s.%s", it->key, found,
                       it->key, task_keys[i].section, it->key);
            return NULL;
        }
        found = task_keys[i].section;
    }
    if (!found)
        task_error_nearest(p, it, -1, it->key, known, "unknown key '%s'", it->key);
    return found;
}

void task_read_override(struct task_parser *p, const char *text)
{
    struct task_item it = {.layer = LAYER_SET, .path = xstrdup("--set")};
    const char *eq = strchr(text, '=');
    char *left = xstrndup(text, eq ? (size_t)(eq - text) : strlen(text)), *trimmed = str_trim(left);
    char *right = xstrdup(eq ? eq + 1 : "");
    char *dot = strrchr(trimmed, '.');
    it.key = xstrdup(dot ? dot + 1 : trimmed);
    it.value = xstrdup(str_trim(right));
    bool good = true;
    if (!eq) {
        task_error(p, &it, -1, "Write --set section.key=value.", "'%s' is no section.key=value", text);
        good = false;
    } else if (dot) {
        *dot = 0;
        split_section(trimmed, &it);
        good = section_good(p, &it);
    } else {
        const char *section = section_of_key(p, &it);
        good = section != NULL;
        it.section = xstrdup(section ? section : "");
    }
    const struct task_key *k = good ? task_key_find(it.section, it.key) : NULL;
    if (good && !k)
        key_unknown(p, &it);
    free(left);
    free(right);
    if (k)
        item_add(p, it, k->list);
    else
        task_item_free(&it);
}
