// The side of a child: maps the shared pages, enters the sandbox, loads the kernel and obeys the control
// page.
#pragma once

// The program was started as `ksmith-cpu --child CONTROL_FD ARENA_FD`. Never returns.
__attribute__((noreturn)) void child_main(int argc, char **argv);
