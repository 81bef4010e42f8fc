// What a compile says: ptxas's resource report, and the log cut down to what helps its author.
#pragma once
#include "base/str.h"
#include "base/vec.h"

#include <stddef.h>

struct kernel_report { // of one entry function
    char name[256];    // as the binary has it (mangled)
    int registers, barriers;
    int shared_bytes; // static
    int stack_bytes, spill_stores, spill_loads;
};
typedef VEC(struct kernel_report) kernel_reports;

// Reads the report of every entry function out of a log ("ptxas info : ..." lines, whose second line may
// begin with "ptxas         ." instead of blanks). Lines that are no report are left alone.
void report_parse(const char *log, size_t n, kernel_reports *out);
const struct kernel_report *report_find(const kernel_reports *r, const char *name); // NULL where absent

// Appends at most `limit` bytes: errors first in their order, each with its source line and caret, then
// warnings; ptxas's information is left out. A cut is said ("[3 more]"). file is the name that the user
// knows.
void report_distil(const char *log, size_t n, size_t limit, struct str *out);
