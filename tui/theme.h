// Themes: what each slot (a meaning, never a colour) looks like. A theme is an INI file of themes/ that
// patches the built-in default, so that a missing slot never breaks; where a terminal has fewer colours each
// is replaced by the nearest it has, down to none (attributes only). Grammar in man/ksmith-theme.5.
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum slot {
    SLOT_NONE, // no background of its own
    SLOT_TEXT,
    SLOT_DIM,
    SLOT_STRONG,
    SLOT_TITLE,       // heading of a pane
    SLOT_TITLE_FOCUS, // of the pane that has the keys
    SLOT_BORDER,
    SLOT_STATUS,      // the status line's background and text
    SLOT_STATUS_KEY,  // a key's name in help and on the bottom line
    SLOT_CURSOR,      // background of the selected row
    SLOT_CURSOR_BLUR, // the same in a pane without the keys
    SLOT_MARK,
    SLOT_MATCH, // what a search found
    SLOT_PROMPT,
    SLOT_INFO, // answers of the engine, by weight
    SLOT_WARN,
    SLOT_ERROR,
    SLOT_CHAMPION, // candidates by what they are
    SLOT_ACCEPTED,
    SLOT_ARCHIVED,
    SLOT_PENDING,
    SLOT_FAILED,
    SLOT_KILLED,
    SLOT_QUARANTINED,
    SLOT_PINNED,
    SLOT_UP, // faster, slower, neither
    SLOT_DOWN,
    SLOT_BAR,
    SLOT_BAR_REST,
    SLOT_OP, // operator and proposer
    SLOT_HASH,
    SLOT_REF,
    SLOT_GRAPH,
    SLOT_DIFF_ADD, // foreground and tint of lines; *_WORD is the emphasis inside a line
    SLOT_DIFF_DEL,
    SLOT_DIFF_ADD_WORD,
    SLOT_DIFF_DEL_WORD,
    SLOT_DIFF_HUNK,
    SLOT_LINE_NUMBER,
    SLOT_CONFLICT,
    SLOT_CODE, // syntax
    SLOT_KEYWORD,
    SLOT_TYPE,
    SLOT_NUMBER,
    SLOT_STRING,
    SLOT_COMMENT,
    SLOT_PREPROCESSOR,
    SLOT_BUILTIN, // CUDA's qualifiers, variables and intrinsics
    SLOT_HEAT_0,  // the archive's map, from cold to hot
    SLOT_HEAT_1,
    SLOT_HEAT_2,
    SLOT_HEAT_3,
    SLOT_HEAT_4,
    SLOT_LINE_BEST, // lines of the progress chart
    SLOT_LINE_MEDIAN,
    SLOT_COUNT
};

enum { ATTR_BOLD = 1, ATTR_DIM = 2, ATTR_UNDERLINE = 4, ATTR_REVERSE = 8, ATTR_ITALIC = 16 };
enum { COLOR_DEFAULT = -1, COLOR_RGB = 1 << 24 }; // 0..255: palette; COLOR_RGB | 0xrrggbb: 24 bits

struct style {
    int32_t fg, bg;
    uint32_t attrs;
};
struct theme {
    char name[40];
    struct style slots[SLOT_COUNT];
};

extern const char *const slot_names[SLOT_COUNT]; // "diff.add.word"; SLOT_NONE's is ""
// The built-in default: sixteen colours on any background.
void theme_default(struct theme *t);
// name: a file NAME.ini of $XDG_CONFIG_HOME/ksmith/themes, of the installed or the source tree's themes/, or
// a path with a slash. On errors (all of them are listed, with line and column) *t is unchanged.
int theme_load(struct theme *t, const char *name, err_list *errors);
// Names of the themes that theme_load finds, sorted; each malloc'ed, and the array too (NULL-terminated).
char **theme_list(void);
// The nearest of a terminal's colours: colors is 0 (none), 8, 16, 256 or 1 << 24. COLOR_DEFAULT stays.
int32_t theme_color(int32_t color, int colors);
// A style for a terminal with no colours: what the colours said is said by attributes (cursor reverse, ...).
struct style theme_mono(enum slot slot, struct style s);
// The whole effective table as an INI file.
void theme_print(const struct theme *t, FILE *f);
