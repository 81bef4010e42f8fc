// INI files through inih, with its traps closed. inih cuts lines at 199 bytes, turns an indented key into
// more of the value above, takes ':' as a separator and knows no line numbers; here each of these is an error
// in words, with line and column. The only file that includes inih is ini.c.
#pragma once
#include "base/err.h"

struct ini_item {
    const char *section, *key, *value; // valid during the call only
    int line;                          // 1-based
    int key_column, value_column;
};

// Called for each key; what it finds wrong it adds to the list that its owner holds.
typedef void ini_fn(void *user, const struct ini_item *item);

// Parses text[0..n). Syntax errors are added to errors under the name path; all good lines are still
// delivered. Returns 0, or -1 where errors were added.
int ini_parse_text(const char *path, const char *text, size_t n, ini_fn *fn, void *user, err_list *errors);
// The same for a file of at most 1 MiB.
int ini_parse_path(const char *path, ini_fn *fn, void *user, err_list *errors);
