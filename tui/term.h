// The terminal: the only file that includes curses. Shows canvases, reads keys, lends the terminal to an
// editor, and gives it back as it was found, also after a crash. One terminal a process.
#pragma once
#include "base/err.h"
#include "tui/canvas.h"
#include "tui/key.h"

struct term_options {
    int color; // -1: as the terminal and NO_COLOR say; 0: none; 1: also where NO_COLOR is set
    bool mouse;
    bool ascii; // no UTF-8 although the locale has it
};

// ERR_USAGE where this terminal cannot be drawn on (no tty, dumb): e says what to use instead. A TERM that
// the system does not know is replaced by the nearest it does; *notice (may be NULL) then says so.
int term_open(const struct term_options *o, const char **notice, struct err *e);
void term_close(void); // safe to call twice
bool term_utf8(void);
int term_fd(void); // to poll for keys
void term_size(int *rows, int *cols);
// After SIGWINCH: asks the kernel for the size and tells curses.
void term_resized(void);
void term_theme(const struct theme *t);
// Shows what differs from the last canvas; the cursor at a cell, or hidden where row is -1. Nothing is
// written and false returned while the terminal takes nothing (a stalled line): try again later.
bool term_paint(const struct canvas *c, int row, int col);
void term_redraw(void); // the next paint draws everything
// The next key that was typed; false where there is none now. Never blocks longer than the 30 ms that tell
// Esc from an arrow.
bool term_key(struct key *k);
void term_mouse(bool on);
void term_bell(void);
// Copies to the clipboard of the terminal's user by OSC 52; false where the text is too long for it.
bool term_copy(const char *text, size_t n);
// Stops this process as ^Z does; returns when it goes on.
void term_suspend(void);
// Runs a command with the terminal given to it; its exit status, 128 + signal, or -1.
int term_run(const char *const *argv);
