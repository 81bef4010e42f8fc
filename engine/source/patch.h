// Patches of SEARCH/REPLACE blocks, as models write them:
//   <<<<<<< SEARCH        (or "SEARCH @120": the line the text begins on, to choose among several)
//   old lines
//   =======
//   new lines
//   >>>>>>> REPLACE
// They apply whole or not at all. Matching ignores white space at line ends and the kind of newline; where
// that finds nothing, a shift of the whole block's indentation is tried, and applied to the new lines too.
// The text's own newlines (CRLF or LF, last line with or without) are kept.
#pragma once
#include "base/err.h"
#include "source/region.h"

struct patch_result {
    struct str text;       // the new text, where it applied
    size_t blocks;         // how many blocks the patch holds
    size_t shifted;        // how many needed an indentation shift
    struct str diagnostic; // where it did not apply: what, the nearest text with its lines and similarity, a
                           // diff between SEARCH and it, the editable lines. Fit to be sent back to a model.
    bool nothing;          // every block applies, and the text is what it was
};
// Applies patch to text. Only bytes inside the region may change (NULL: everywhere); the region is found
// again by the caller afterwards. Refused with words: no block, a block that matches nothing, more than once,
// or outside the region, an empty SEARCH where the region is not empty (then it is what replaces an empty
// region or, with an @line anchor, inserts before that line), a patch that changes nothing, markers out of
// order, NUL bytes.
int patch_apply(const char *text, size_t len, const char *patch, size_t plen, const struct region *r,
                struct patch_result *out, struct err *e);
void patch_result_free(struct patch_result *p);
