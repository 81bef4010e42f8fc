// Constructs that a candidate may not contain, whoever wrote it: they reach outside the kernel, hide state
// between calls, read files through the compiler or make a build differ from the text. The table is in
// scan.c.
#pragma once
#include "base/err.h"
#include "source/token.h"

enum scan_severity {
    SCAN_REJECT, // never
    SCAN_FLAG,   // a human looks (quarantine)
    SCAN_NOTE,   // said, not stopped
};
struct scan_finding {
    enum scan_severity severity;
    uint32_t line, col;
    char what[64];    // the construct as it stands: "asm", "#include \"/etc/passwd\""
    char reason[160]; // why, in words
};
typedef VEC(struct scan_finding) scan_findings;

struct scan_opts {
    bool cuda;    // device code: other allow-list of headers
    bool threads; // OpenMP pragmas and omp.h allowed
    bool allow_asm;
    const char *func; // the kernel itself (its definition is no redefinition), may be NULL
};
// Scans text. What the baseline already contains (same construct, e.g. an include or a static table) is not
// reported again: baseline may be NULL. Returns the number of SCAN_REJECT findings.
size_t scan_source(const char *text, size_t len, const char *baseline, size_t blen, const struct scan_opts *o,
                   scan_findings *out);
const char *scan_severity_name(enum scan_severity s);
