// The annotations of a candidate, which stand in comments of its source:
//   #define BM 4            // knob: 2 4 8        (also: const int BM = 4; // knob: ..., int BM = 4; static
//   const ...)
//   // launch: k<<<T, 256, 0>>>(out, x, T)
//   // scratch: tmp f32[T,H]
//   // flags: -funroll-loops -fno-math-errno
#pragma once
#include "base/err.h"
#include "source/token.h"

struct knob {
    char *name, *value; // value: the current one as it stands
    size_t value_at, value_len;
    char **values; // of the list, in its order; the current one need not be among them (a problem says so)
    size_t n;
    uint32_t line;
};
struct annot_text {
    char *text;
    uint32_t line, col;
    size_t at, len; // bytes of the comment
};
struct annots {
    VEC(struct knob) knobs;
    VEC(struct annot_text) launches, scratch;
    VEC(struct annot_text) flag_lines;
    VEC(char *) flags; // single words of all flags: lines, in order
};

// Reads them; malformed ones (a knob comment without a constant before it, an empty list, a name twice, an
// unfinished quote) are errors with line and column. a is always safe to free.
int annot_read(struct annots *a, const char *text, size_t len, const char *path, err_list *errors);
void annot_free(struct annots *a);
const struct knob *annot_knob(const struct annots *a, const char *name);
// The text with one knob changed: a splice of the value's bytes.
int annot_set_knob(const char *text, size_t len, const char *name, const char *value, struct str *out,
                   struct err *e);
// Text without annotations (comments that stood alone on a line go with their line); said receives a line of
// words for each: "knob BM = 4 (tried 2 4 8)", "flags -funroll-loops", ...
void annot_strip(const char *text, size_t len, struct str *out, struct str *said);
// Appends "#define NAME value  // knob: values\n".
void annot_knob_line(struct str *out, const char *name, const char *value, const char *const *values,
                     size_t n);
bool annot_is(const char *comment, size_t len); // is this comment an annotation?
