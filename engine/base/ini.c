#include "base/ini.h"

#include "base/io.h"
#include "base/str.h"
#include "base/text.h"

#include <ctype.h>
#include <ini.h>

enum { LINE_MAX_BYTES = 190, SECTION_MAX_BYTES = 48 };

// Feeds inih one checked line at a time and knows which line that is.
struct feed {
    const char *path;
    const char *at, *end;
    int line;
    const char *text; // the line that was fed last
    size_t text_len;
    ini_fn *fn;
    void *user;
    err_list *errors;
};

static bool blank_or_comment(const char *s, size_t n)
{
    while (n && isspace((unsigned char)*s))
        s++, n--;
    return n == 0 || *s == ';' || *s == '#';
}

static void complain(struct feed *f, int column, const char *hint, const char *msg)
{
    err_list_add(f->errors, f->path, f->line, column, hint, "%s", msg);
}

static bool section_ok(struct feed *f, const char *s, size_t n)
{
    const char *close = memchr(s, ']', n);
    if (!close) {
        complain(f, 1, "Close the section name: [task]", "a section name without ']'");
        return false;
    }
    if (close - s > SECTION_MAX_BYTES) {
        complain(f, 1, "Use a name of at most 47 bytes.", "a section name that is too long");
        return false;
    }
    if (!blank_or_comment(close + 1, n - (size_t)(close + 1 - s))) {
        complain(f, (int)(close - s) + 2, "Put keys on lines of their own.", "text after a section name");
        return false;
    }
    return true;
}

// True where inih will read the line as a person would.
static bool line_ok(struct feed *f, const char *s, size_t n)
{
    if (blank_or_comment(s, n))
        return true;
    if (!text_valid_utf8(s, n) || memchr(s, 0, n)) {
        complain(f, 1, "Save the file as UTF-8 text.", "not valid UTF-8 text");
        return false;
    }
    if (n > LINE_MAX_BYTES) {
        complain(f, LINE_MAX_BYTES, "Split the value over several lines with the same key (lists add up).",
                 "a line of over 190 bytes");
        return false;
    }
    if (isspace((unsigned char)*s)) {
        complain(f, 1, "Remove the spaces before the key.", "an indented line");
        return false;
    }
    if (*s == '[')
        return section_ok(f, s, n);
    const char *eq = memchr(s, '=', n);
    if (!eq) {
        complain(f, 1, "Write key = value.", "neither a section, a key nor a comment");
        return false;
    }
    const char *colon = memchr(s, ':', (size_t)(eq - s));
    if (colon) {
        complain(f, (int)(colon - s) + 1, "Keys have no ':' in them.", "':' before '='");
        return false;
    }
    if (eq == s) {
        complain(f, 1, "Write key = value.", "a value without a key");
        return false;
    }
    return true;
}

static char *feed_line(char *out, int size, void *stream)
{
    struct feed *f = stream;
    while (f->at < f->end) {
        const char *nl = memchr(f->at, '\n', (size_t)(f->end - f->at));
        size_t n = nl ? (size_t)(nl - f->at) : (size_t)(f->end - f->at);
        const char *s = f->at;
        f->at += n + (nl != NULL);
        f->line++;
        if (n && s[n - 1] == '\r')
            n--;
        if (!line_ok(f, s, n) || blank_or_comment(s, n) || (int)n + 2 > size)
            continue;
        f->text = s;
        f->text_len = n;
        memcpy(out, s, n);
        memcpy(out + n, "\n", 2);
        return out;
    }
    return NULL;
}

static int deliver(void *user, const char *section, const char *key, const char *value)
{
    struct feed *f = user;
    const char *eq = memchr(f->text, '=', f->text_len);
    size_t column = eq ? (size_t)(eq - f->text) + 1 : 0;
    while (column < f->text_len && isspace((unsigned char)f->text[column]))
        column++;
    struct ini_item item = {section, key, value, f->line, 1, (int)column + 1};
    f->fn(f->user, &item);
    return 1;
}

int ini_parse_text(const char *path, const char *text, size_t n, ini_fn *fn, void *user, err_list *errors)
{
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        n -= 3;
    }
    size_t before = errors->n;
    struct feed f = {path, text, text + n, 0, text, 0, fn, user, errors};
    if (ini_parse_stream(feed_line, &f, deliver, &f) < 0)
        err_list_add(errors, path, 0, 0, "", "out of memory while reading");
    return errors->n > before ? -1 : 0;
}

int ini_parse_path(const char *path, ini_fn *fn, void *user, err_list *errors)
{
    struct str text = {0};
    struct err e = {0};
    if (io_read_file(path, 1 << 20, &text, &e) < 0) {
        vec_push(errors, e);
        return -1;
    }
    int r = ini_parse_text(path, str_c(&text), text.len, fn, user, errors);
    str_free(&text);
    return r;
}
