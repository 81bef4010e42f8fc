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

// Where and under which limits a compiler runs.
struct compile_place {
    char *work;       // private; finished binaries, the compiler cannot write here
    int lock;         // held on work/lock: says to others that the folder is in use
    char *build;      // work/build: the only folder that it can write
    strings readable; // the system's and the task's
};
// Runs argv in place->build, sandboxed. extra are more readable paths. raw receives its output (cut at 1
// MiB). Returns 0; 1: it failed, with the reason in raw; -1: the machine is in trouble.
int compile_run(const struct compile_place *place, const char *const *argv, const strings *extra,
                struct str *raw, struct err *e);
// Makes a work folder, and removes those that workers which were killed have left.
int compile_place_init(struct compile_place *p, const char *compiler, struct err *e);
void compile_place_free(struct compile_place *p);
void compile_strings_free(strings *l);

const struct task *compiler_task(const struct compiler *c);
