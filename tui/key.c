#include "tui/key.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "base/vec.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t code;
} names[] = {
    {"Up", K_UP},
    {"Down", K_DOWN},
    {"Left", K_LEFT},
    {"Right", K_RIGHT},
    {"PageUp", K_PAGE_UP},
    {"PageDown", K_PAGE_DOWN},
    {"Home", K_HOME},
    {"End", K_END},
    {"Insert", K_INSERT},
    {"Delete", K_DELETE},
    {"Backspace", K_BACKSPACE},
    {"Enter", K_ENTER},
    {"Tab", K_TAB},
    {"S-Tab", K_BACK_TAB},
    {"Esc", K_ESC},
    {"Space", ' '},
};

uint32_t key_parse(const char *name)
{
    uint32_t cp = 0;
    for (size_t i = 0; i < countof(names); i++)
        if (str_eq(names[i].name, name))
            return names[i].code;
    if (name[0] == 'F' && name[1]) {
        char *end = NULL;
        long number = strtol(name + 1, &end, 10);
        if (!*end && number >= 1 && number <= 12)
            return K_F1 + (uint32_t)number - 1;
    }
    if (str_starts(name, "C-") && name[2] >= 'a' && name[2] <= 'z' && !name[3])
        return (uint32_t)(name[2] - 'a' + 1);
    size_t n = strlen(name);
    return n && text_decode(name, n, &cp) == (int)n && cp >= ' ' ? cp : K_NONE;
}

const char *key_spell(uint32_t code, char buf[24])
{
    for (size_t i = 0; i < countof(names); i++)
        if (names[i].code == code)
            return names[i].name;
    if (code >= K_F1 && code <= K_F12)
        snprintf(buf, 24, "F%u", code - K_F1 + 1);
    else if (code >= 1 && code <= 26)
        snprintf(buf, 24, "C-%c", (char)('a' + code - 1));
    else if (code >= ' ' && code < 0x7f)
        snprintf(buf, 24, "%c", (char)code);
    else
        snprintf(buf, 24, "U+%04X", code);
    return buf;
}

struct binding {
    uint32_t code;
    enum action action;
};
struct keymap {
    VEC(struct binding) b;
};

void keymap_bind(struct keymap *m, uint32_t code, enum action a)
{
    for (size_t i = 0; i < m->b.n; i++)
        if (m->b.v[i].code == code) {
            m->b.v[i].action = a;
            return;
        }
    vec_push(&m->b, ((struct binding){code, a}));
}

struct keymap *keymap_new(void)
{
    struct keymap *m = xcalloc(1, sizeof *m);
    for (int a = 1; a < ACT_COUNT; a++) {
        size_t n = 0;
        char **words = str_words(actions[a].keys, &n);
        for (size_t i = 0; words && i < n; i++)
            keymap_bind(m, key_parse(words[i]), (enum action)a);
        free(words);
    }
    return m;
}

void keymap_free(struct keymap *m)
{
    if (m)
        vec_free(&m->b);
    free(m);
}

enum action keymap_find(const struct keymap *m, uint32_t code)
{
    for (size_t i = 0; i < m->b.n; i++)
        if (m->b.v[i].code == code)
            return m->b.v[i].action;
    return ACT_NONE;
}

const char *keymap_keys(const struct keymap *m, enum action a, char *buf, size_t n)
{
    size_t used = 0;
    buf[0] = 0;
    for (size_t i = 0; i < m->b.n; i++) {
        char name[24];
        if (m->b.v[i].action == a && used < n)
            used += (size_t)snprintf(buf + used, n - used, "%s%s", used ? " " : "",
                                     key_spell(m->b.v[i].code, name));
    }
    return buf;
}
