#define NCURSES_WIDECHAR 1
#include "tui/term.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

enum { ESC_MS = 30, COPY_MAX = 74000, CODE_PASTE_BEGIN = KEY_MAX + 1, CODE_PASTE_END };

// What leaves every mode that was entered, in one write: also from a signal handler.
static const char leave[] = "\033[?1006l\033[?1000l\033[?2004l\033[?25h\033[?1l\033>\033[?1049l\033[0m";
static const char paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l";

struct pair {
    int fg, bg;
};
static struct {
    SCREEN *screen;
    FILE *out;
    bool utf8, color, direct, mouse, ascii, xterm;
    int colors;
    struct theme theme;
    struct canvas shown; // what the terminal shows
    bool whole;          // draw everything
    VEC(struct pair) pairs;
    int log, real_err; // while curses runs, standard error goes to a file
} T = {.log = -1, .real_err = -1};
static struct termios found; // as the terminal was
static volatile sig_atomic_t found_valid;

// ---- leaving

static void give_back(int sig)
{
    ssize_t r = write(STDOUT_FILENO, leave, sizeof leave - 1);
    (void)r;
    if (found_valid)
        tcsetattr(STDIN_FILENO, TCSANOW, &found);
    raise(sig); // the handler was reset: the default action follows
}

static void guard_crashes(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static char stack[32768];
    stack_t alt = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction sa = {.sa_handler = give_back,
                           .sa_flags = (int)(SA_ONSTACK | SA_RESETHAND | SA_NODEFER)};
    sigaltstack(&alt, NULL);
    for (size_t i = 0; i < countof(signals); i++)
        sigaction(signals[i], &sa, NULL);
}

static void send(const char *s)
{
    if (T.xterm) {
        fputs(s, T.out);
        fflush(T.out);
    }
}

static void take_stderr(void)
{
    char path[] = "/tmp/ksmith-err.XXXXXX";
    T.log = mkostemp(path, O_CLOEXEC);
    if (T.log < 0)
        return;
    unlink(path);
    T.real_err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(T.log, STDERR_FILENO);
}

static void return_stderr(void)
{
    if (T.log < 0)
        return;
    char buf[4096];
    dup2(T.real_err, STDERR_FILENO);
    off_t size = lseek(T.log, 0, SEEK_END);
    lseek(T.log, size > (off_t)sizeof buf ? size - (off_t)sizeof buf : 0, SEEK_SET);
    ssize_t n = read(T.log, buf, sizeof buf);
    if (n > 0 && write(STDERR_FILENO, buf, (size_t)n) < n)
        clearerr(stderr); // nobody listens there
    close(T.log);
    close(T.real_err);
    T.log = T.real_err = -1;
}

void term_close(void)
{
    if (!T.screen)
        return;
    if (T.mouse)
        mousemask(0, NULL);
    send(paste_off);
    endwin();
    delscreen(T.screen);
    T.screen = NULL;
    canvas_free(&T.shown);
    vec_free(&T.pairs);
    return_stderr();
    if (found_valid)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &found);
    found_valid = 0;
}

// ---- opening

static SCREEN *open_screen(const char **notice)
{
    static const char *const others[] = {"xterm-256color", "xterm", "vt100"};
    const char *name = getenv("TERM");
    SCREEN *s = name && *name ? newterm(name, T.out, stdin) : NULL;
    for (size_t i = 0; !s && i < countof(others); i++) {
        s = newterm(others[i], T.out, stdin);
        if (s && notice) {
            static char text[160];
            snprintf(text, sizeof text, "this system does not know the terminal %.40s: drawing as for %s",
                     name && *name ? name : "(TERM is not set)", others[i]);
            *notice = text;
        }
    }
    return s;
}

static bool no_color(int option)
{
    const char *no = getenv("NO_COLOR");
    return option == 0 || (option < 0 && no && *no);
}

static void begin_colors(int option)
{
    T.color = !no_color(option) && has_colors() && start_color() == OK;
    T.colors = 0;
    if (!T.color)
        return;
    use_default_colors();
    T.direct = COLORS > 256;
    T.colors = T.direct ? 1 << 24 : COLORS >= 256 ? 256 : COLORS >= 16 ? 16 : 8;
}

static void begin_modes(void)
{
    raw();
    noecho();
    nonl();
    intrflush(stdscr, FALSE);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    meta(stdscr, TRUE);
    set_escdelay(ESC_MS);
    scrollok(stdscr, FALSE);
    curs_set(0);
    const char *clear_to = tigetstr("smcup");
    T.xterm = clear_to && clear_to != (char *)-1 && strstr(clear_to, "\033[?1049");
    if (T.xterm) {
        define_key("\033[200~", CODE_PASTE_BEGIN);
        define_key("\033[201~", CODE_PASTE_END);
        send(paste_on);
    }
}

int term_open(const struct term_options *o, const char **notice, struct err *e)
{
    static const char plain[] = "`ksmith ls`, `tree`, `log` and `attach` in a pipe print plain text.";
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(e, ERR_USAGE, plain, "the workbench needs a terminal");
    found_valid = tcgetattr(STDIN_FILENO, &found) == 0;
    T.out = stdout;
    fflush(stdout);
    T.screen = open_screen(notice);
    if (!T.screen)
        return err_set(e, ERR_USAGE, plain, "no description of this terminal was found (TERM=%s)",
                       getenv("TERM") ? getenv("TERM") : "");
    const char *cup = tigetstr("cup");
    if (!cup || cup == (char *)-1) {
        endwin();
        delscreen(T.screen);
        T.screen = NULL;
        return err_set(e, ERR_USAGE, plain, "this terminal (TERM=%s) cannot place its cursor",
                       getenv("TERM"));
    }
    guard_crashes();
    take_stderr();
    T.utf8 = !o->ascii && str_eq(nl_langinfo(CODESET), "UTF-8");
    begin_colors(o->color);
    begin_modes();
    term_mouse(o->mouse);
    theme_default(&T.theme);
    T.whole = true;
    return 0;
}

bool term_utf8(void)
{
    return T.utf8;
}

int term_fd(void)
{
    return STDIN_FILENO;
}

void term_size(int *rows, int *cols)
{
    *rows = LINES > 0 ? LINES : 1;
    *cols = COLS > 0 ? COLS : 1;
}

void term_resized(void)
{
    struct winsize w;
    if (T.screen && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0)
        resizeterm(w.ws_row, w.ws_col);
    T.whole = true;
}

// ---- painting

static int pair_of(int fg, int bg)
{
    if (!T.color || (fg == COLOR_DEFAULT && bg == COLOR_DEFAULT))
        return 0;
    for (size_t i = 0; i < T.pairs.n; i++)
        if (T.pairs.v[i].fg == fg && T.pairs.v[i].bg == bg)
            return (int)i + 1;
    if ((int)T.pairs.n + 1 >= COLOR_PAIRS)
        return 0;
    vec_push(&T.pairs, ((struct pair){fg, bg}));
    init_extended_pair((int)T.pairs.n, fg, bg);
    return (int)T.pairs.n;
}

static struct style style_of(const struct canvas_cell *cell)
{
    struct style s = T.theme.slots[cell->slot];
    if (cell->under != SLOT_NONE) {
        const struct style *u = &T.theme.slots[cell->under];
        // A reversed bar in one colour: the row's own would cost a slow line more than they tell.
        if (u->attrs & ATTR_REVERSE && u->fg == COLOR_DEFAULT)
            s = (struct style){COLOR_DEFAULT, COLOR_DEFAULT, 0};
        s.bg = u->bg;
        s.attrs |= u->attrs;
        // A background that sets its own foreground (a cursor bar) wins over text that sets none.
        if (s.fg == COLOR_DEFAULT ||
            (u->bg != COLOR_DEFAULT && u->fg != COLOR_DEFAULT && cell->slot == SLOT_DIM))
            s.fg = u->fg;
    }
    if (T.colors == 0) {
        struct style mono = theme_mono((enum slot)cell->slot, T.theme.slots[cell->slot]);
        if (cell->under != SLOT_NONE)
            mono.attrs |= theme_mono((enum slot)cell->under, T.theme.slots[cell->under]).attrs;
        return mono;
    }
    s.fg = theme_color(s.fg, T.colors);
    s.bg = theme_color(s.bg, T.colors);
    return s;
}

static attr_t curses_attrs(uint32_t attrs)
{
    static const struct {
        uint32_t ours;
        attr_t theirs;
    } rows[] = {{ATTR_BOLD, A_BOLD},
                {ATTR_DIM, A_DIM},
                {ATTR_UNDERLINE, A_UNDERLINE},
                {ATTR_REVERSE, A_REVERSE},
                {ATTR_ITALIC, A_ITALIC}};
    attr_t a = A_NORMAL;
    for (size_t i = 0; i < countof(rows); i++)
        if (attrs & rows[i].ours)
            a |= rows[i].theirs;
    return a;
}

static int plain_color(int c)
{
    return c == COLOR_DEFAULT ? -1 : c & 0xffffff;
}

static void put_cell(int row, int col, const struct canvas_cell *cell)
{
    wchar_t wide[CELL_BYTES + 1];
    struct style s = style_of(cell);
    size_t n = mbstowcs(wide, cell->ch, CELL_BYTES);
    if (n == (size_t)-1 || n == 0) {
        wide[0] = L'?';
        n = 1;
    }
    wide[n < CCHARW_MAX ? n : CCHARW_MAX - 1] = 0;
    int pair = pair_of(plain_color(s.fg), plain_color(s.bg));
    cchar_t cc;
    setcchar(&cc, wide, curses_attrs(s.attrs), 0, &pair);
    mvadd_wch(row, col, &cc);
}

static bool writable(void)
{
    struct pollfd p = {STDOUT_FILENO, POLLOUT, 0};
    return poll(&p, 1, 0) > 0 && (p.revents & POLLOUT);
}

static void remember(const struct canvas *c)
{
    if (T.shown.rows != c->rows || T.shown.cols != c->cols) {
        canvas_free(&T.shown);
        canvas_init(&T.shown, c->rows, c->cols, c->utf8);
    }
    memcpy(T.shown.cells, c->cells, (size_t)c->rows * (size_t)c->cols * sizeof *c->cells);
}

bool term_paint(const struct canvas *c, int row, int col)
{
    if (!T.screen || !writable())
        return false;
    bool all = T.whole || c->rows != T.shown.rows || c->cols != T.shown.cols;
    if (T.whole)
        erase();
    for (int r = 0; r < c->rows && r < LINES; r++)
        for (int k = 0; k < c->cols && k < COLS; k++) {
            size_t i = (size_t)r * (size_t)c->cols + (size_t)k;
            if (c->cells[i].width && (all || memcmp(&c->cells[i], &T.shown.cells[i], sizeof *c->cells) != 0))
                put_cell(r, k, &c->cells[i]);
        }
    remember(c);
    T.whole = false;
    curs_set(row >= 0);
    if (row >= 0)
        move(row, col < COLS ? col : COLS - 1);
    wnoutrefresh(stdscr);
    doupdate();
    return true;
}

void term_redraw(void)
{
    clearok(curscr, TRUE);
    T.whole = true;
}

void term_theme(const struct theme *t)
{
    T.theme = *t;
    T.whole = true;
}

// ---- keys

static const struct {
    int curses;
    uint32_t ours;
} codes[] = {{KEY_UP, K_UP},
             {KEY_DOWN, K_DOWN},
             {KEY_LEFT, K_LEFT},
             {KEY_RIGHT, K_RIGHT},
             {KEY_PPAGE, K_PAGE_UP},
             {KEY_NPAGE, K_PAGE_DOWN},
             {KEY_HOME, K_HOME},
             {KEY_END, K_END},
             {KEY_IC, K_INSERT},
             {KEY_DC, K_DELETE},
             {KEY_BACKSPACE, K_BACKSPACE},
             {KEY_ENTER, K_ENTER},
             {KEY_BTAB, K_BACK_TAB},
             {KEY_RESIZE, K_RESIZE},
             {CODE_PASTE_BEGIN, K_PASTE_BEGIN},
             {CODE_PASTE_END, K_PASTE_END}};

static uint32_t from_mouse(struct key *k)
{
    MEVENT m;
    if (getmouse(&m) != OK)
        return K_NONE;
    k->row = m.y;
    k->col = m.x;
    if (m.bstate & BUTTON4_PRESSED)
        k->wheel = -1;
    else if (m.bstate & BUTTON5_PRESSED)
        k->wheel = 1;
    else if (!(m.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED)))
        return K_NONE;
    return K_MOUSE;
}

static uint32_t from_curses(int code, struct key *k)
{
    if (code == KEY_MOUSE)
        return from_mouse(k);
    if (code >= KEY_F(1) && code <= KEY_F(12))
        return K_F1 + (uint32_t)(code - KEY_F(1));
    for (size_t i = 0; i < countof(codes); i++)
        if (codes[i].curses == code)
            return codes[i].ours;
    return K_NONE;
}

static uint32_t from_text(wint_t c)
{
    switch (c) {
    case '\r':
    case '\n':
        return K_ENTER;
    case '\t':
        return K_TAB;
    case 27:
        return K_ESC;
    case 8:
    case 127:
        return K_BACKSPACE;
    default:
        return (uint32_t)c;
    }
}

bool term_key(struct key *k)
{
    wint_t c;
    int r = get_wch(&c);
    *k = (struct key){0};
    if (r == ERR)
        return false;
    k->code = r == KEY_CODE_YES ? from_curses((int)c, k) : from_text(c);
    return true;
}

void term_mouse(bool on)
{
    T.mouse = on;
    mouseinterval(0);
    mousemask(on ? BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED : 0, NULL);
}

void term_bell(void)
{
    beep();
}

bool term_copy(const char *text, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (n > COPY_MAX)
        return false;
    struct str s = {0};
    str_add(&s, "\033]52;c;");
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < n ? (unsigned char)text[i + k] : 0);
        for (int k = 0; k < 4; k++)
            str_addc(&s, i + (size_t)k > n ? '=' : digits[v >> (18 - 6 * k) & 63]);
    }
    str_add(&s, "\a");
    fputs(str_c(&s), T.out);
    fflush(T.out);
    str_free(&s);
    return true;
}

// ---- lending the terminal

static void lend(void)
{
    if (T.mouse)
        mousemask(0, NULL);
    send(paste_off);
    curs_set(1);
    def_prog_mode();
    endwin();
    if (found_valid)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &found);
}

static void take_again(void)
{
    reset_prog_mode();
    send(paste_on);
    if (T.mouse)
        term_mouse(true);
    term_resized();
    flushinp();
    term_redraw();
}

void term_suspend(void)
{
    lend();
    sigset_t old, stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    signal(SIGTSTP, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &stop, &old);
    kill(0, SIGTSTP);
    // Continued in the background: stop again, the screen belongs to the shell. (Where stopping has no
    // effect, because no shell waits, this ends too.)
    for (int i = 0; i < 8 && tcgetpgrp(STDIN_FILENO) != getpgrp(); i++)
        kill(0, SIGTSTP);
    sigprocmask(SIG_SETMASK, &old, NULL);
    take_again();
}

int term_run(const char *const *argv)
{
    lend();
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        for (int s = 1; s < 32; s++)
            signal(s, SIG_DFL);
        if (T.real_err >= 0)
            dup2(T.real_err, STDERR_FILENO);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        fprintf(stderr, "ksmith: cannot run %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    take_again();
    if (pid < 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
