// A rewriting rule: looks at a kernel, says where it applies (sites) or why it refuses, and rewrites one
// site. Rules never contain a kernel: indices, bounds and operators come from the source.
#pragma once
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "source/analysis.h"
#include "source/func.h"

struct task;

enum rule_risk {
    RISK_NONE,  // cannot change results
    RISK_WORK,  // changes only the order or distribution of work
    RISK_ROUND, // may change rounding, NaN or alias behaviour
    RISK_SHAPE, // structural: full verification
};

// A kernel as a rule sees it: text, tokens, function, tree and analysis, all of the same text. All read-only.
struct rule_source {
    const char *text;
    size_t len;
    const char *path;
    const struct task *task; // may be NULL (ksmith rules FILE:FUNCTION)
    struct tokens ts;
    struct func f;
    struct ast t;
    struct analysis a;
    bool threads, fast_math; // what the task allows
};
int rule_source_open(struct rule_source *s, const char *text, size_t len, const char *path, const char *func,
                     const struct task *task, struct err *e);
void rule_source_close(struct rule_source *s);

// Where a rule applies. The descriptor survives edits elsewhere: it names things, it counts no lines. Built
// by site_of_stmt / found again by site_find (edits.h): "for i / for j", "for k #2", "decl acc", "file".
struct rule_site {
    char *where;   // descriptor
    int line;      // of the present text, for people
    bool ok;       // it applies here
    char why[240]; // where ok is false: the reason; else what it would do
    json *params;  // choices offered: {"name":[v1,v2,...]}; NULL for none. The first is the default.
};
typedef VEC(struct rule_site) rule_sites;
void rule_sites_free(rule_sites *s);

struct rule {
    const char *name; // "interchange"
    const char *help; // one line
    enum rule_risk risk;
    bool cuda;   // for __global__ kernels of CUDA C; the others are for functions of C
    int promise; // how early the search tries it, where nothing is known of it yet: 0 (as any) to 4
    // Appends every place that looks like one for this rule, applicable or refused with the reason.
    void (*sites)(const struct rule_source *s, rule_sites *out);
    // Rewrites one site: the whole new text in out. params holds one value for each name that the site
    // offered (missing: the default). -1 with words where it refuses.
    int (*apply)(const struct rule_source *s, const char *where, const json *params, struct str *out,
                 struct err *e);
};

static inline bool rule_fits(const struct rule *r, const struct rule_source *s)
{
    return r->cuda == s->f.is_global;
}

// The functions whose places are listed: the task's, and where the whole file may change the other kernels of
// a CUDA source as well. A place in another kernel is named "in NAME: PLACE".
void rule_functions(const char *text, size_t len, const char *path, const char *func, const struct task *task,
                    func_names *out);
char *rule_where(const char *func, const char *in, const char *where); // malloc'ed
// The place without the kernel's name; the name, or func where there is none, in `in`.
const char *rule_where_split(const char *where, const char *func, char in[128]);

// The table of all rules is rule_table[0..rule_table_n), in rules.c.
extern const struct rule *const rule_table[];
extern const size_t rule_table_n;
