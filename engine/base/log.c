#include "base/log.h"

#include "base/io.h"
#include "base/text.h"
#include "base/vec.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int log_fd = STDERR_FILENO;
static VEC(char *) secrets;

int log_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (log_fd != STDERR_FILENO)
        close(log_fd);
    log_fd = fd;
    return 0;
}

void log_secret(const char *s)
{
    if (!s || strlen(s) < 6)
        return;
    for (size_t i = 0; i < secrets.n; i++)
        if (strcmp(secrets.v[i], s) == 0)
            return;
    vec_push(&secrets, xstrdup(s));
}

bool log_leaks(const char *text)
{
    for (size_t i = 0; i < secrets.n; i++)
        if (strstr(text, secrets.v[i]))
            return true;
    return false;
}

void log_redact(struct str *text)
{
    static const char mark[] = "[redacted]";
    for (size_t i = 0; i < secrets.n; i++) {
        size_t n = strlen(secrets.v[i]), from = 0;
        for (const char *at; text->s && (at = strstr(text->s + from, secrets.v[i]));) {
            size_t pos = (size_t)(at - text->s);
            str_splice(text, pos, n, mark, sizeof mark - 1);
            from = pos + sizeof mark - 1;
        }
    }
}

void log_line(const char *fmt, ...)
{
    struct str raw = {0}, line = {0};
    va_list ap;
    va_start(ap, fmt);
    str_addv(&raw, fmt, ap);
    va_end(ap);
    log_redact(&raw);
    time_t now = time(NULL);
    struct tm tm;
    char stamp[32];
    gmtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ ", &tm);
    str_add(&line, stamp);
    text_clean(&line, str_c(&raw), raw.len, TEXT_LINE);
    str_addc(&line, '\n');
    io_write_all(log_fd, line.s, line.len);
    str_free(&raw);
    str_free(&line);
}
