// Line diff: Myers' linear-space algorithm between anchors of lines that occur once on both sides, with
// limits of bytes, lines and work, so that no pair of texts holds the caller up.
#pragma once
#include "base/str.h"
#include "base/vec.h"

#include <stdint.h>

enum diff_kind { DIFF_SAME, DIFF_DEL, DIFF_ADD, DIFF_CHANGE /* rows only: left and right */ };

struct diff_line {
    size_t at, len; // bytes without the newline
};
struct diff_span { // a run: lines [a, a+na) of the old became [b, b+nb) of the new; same: na == nb
    bool same;
    uint32_t a, na, b, nb;
};
struct diff {
    const char *old_text, *new_text; // not owned
    size_t old_len, new_len;
    VEC(struct diff_line) la, lb;
    VEC(struct diff_span) spans; // in order, alternate same and not
    bool coarse;                 // a limit was hit: correct but not the smallest
    bool too_big;                // over the byte limit: one span of everything
};

enum { DIFF_MAX_BYTES = 8 << 20, DIFF_MAX_TOKENS = 400 };
void diff_read(struct diff *d, const char *a, size_t alen, const char *b, size_t blen);
void diff_free(struct diff *d);
bool diff_equal(const struct diff *d);
void diff_stat(const struct diff *d, size_t *added, size_t *removed);

// Unified text that `git apply` accepts: "--- a/PATH", "+++ b/PATH", hunks, "\ No newline at end of file".
// Nothing where the texts are equal.
void diff_unified(const struct diff *d, const char *old_path, const char *new_path, int context,
                  struct str *out);

struct diff_emph { // bytes [at, end) of the line's text that differ
    uint32_t at, end;
};
struct diff_row {
    enum diff_kind kind;  // SAME: both; DEL: left only; ADD: right only; CHANGE: both, differing
    uint32_t left, right; // 1-based line numbers, 0 where there is none
    struct diff_line l, r;
    VEC(struct diff_emph)
    le, re;   // CHANGE only; empty where over DIFF_MAX_TOKENS tokens (the whole line differs)
    bool gap; // rows only of hunks: lines were left out before this row
};
typedef VEC(struct diff_row) diff_rows;
// Side by side rows. context < 0: all lines; else hunks with so many lines around each change.
void diff_side_by_side(const struct diff *d, int context, diff_rows *out);
void diff_rows_free(diff_rows *r);
