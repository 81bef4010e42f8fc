// The log: lines with a time on a file descriptor, with secrets cut out. A secret that was registered never
// reaches the log in any spelling of it that this program itself makes.
#pragma once
#include "base/str.h"

#include <stdbool.h>

// Opens path for appending; until then lines go to standard error. Returns -1 where it cannot be opened.
int log_open(const char *path);
__attribute__((format(printf, 1, 2))) void log_line(const char *fmt, ...);
// From now on s is shown as "[redacted]"; shorter than 6 bytes is ignored, since it would hide ordinary
// words.
void log_secret(const char *s);
// Whether a registered secret stands in text.
bool log_leaks(const char *text);
// Cuts every registered secret out of text; for the journal, messages and screens as well.
void log_redact(struct str *text);
