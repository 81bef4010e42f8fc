// The engineer's editor, on this terminal.
#pragma once
#include "base/err.h"

// $KSMITH_EDITOR, $VISUAL, $EDITOR or vi, as git does: the variable may hold arguments.
const char *editor_name(void);
// Opens path in it and waits; -1 and an error where it ends with another status than 0.
int editor_open(const char *path, struct err *e);
