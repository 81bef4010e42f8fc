// What the files compile*.c share; nobody else includes it.
#pragma once
#include "base/task.h"
#include "cpu/compile.h"

// Appends raw[0..n), distilled: errors first, the folders work and project cut out of it, at most 4 KiB.
void compile_log_distil(const char *raw, size_t n, const char *work, const char *project, struct str *out);

// Appends what below the include folder dir a compiler may read: its entries without dot entries, never the
// folder itself.
void compile_grant_folder(const char *dir, strings *out);
// Appends the headers that text includes with quotes, and those that they include, as absolute paths; only
// files inside project, never below a dot entry. dir is where text stands; include its further folders.
void compile_grant_headers(const char *text, const char *dir, const char *project, const strings *include,
                           strings *out);
