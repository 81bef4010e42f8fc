// The journal: what is written reads back, a torn tail is cut, damage elsewhere is named.
#include "base/clock.h"
#include "base/io.h"
#include "session/journal.h"
#include "t.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static char *dir, *path;

static json *event(const char *ev, int x)
{
    json *j = json_object();
    json_put_str(j, "ev", ev);
    json_put_int(j, "x", x);
    return j;
}

static int open_at_end(struct journal *j, int64_t *cut, struct err *e)
{
    struct journal_reader r;
    struct journal_line line;
    int got = journal_reader_open(&r, path, e);
    while (got == 0 && (got = journal_next(&r, &line, e)) == 1)
        got = 0;
    int result = got < 0 ? -1 : journal_open(j, path, &r, cut, e);
    journal_reader_close(&r);
    return result;
}

static void fresh(int lines)
{
    struct journal j;
    io_remove(path, NULL);
    CHECK(open_at_end(&j, NULL, NULL) == 0);
    for (int i = 0; i < lines; i++)
        CHECK(journal_append(&j, event(i ? "note" : "session", i), JOURNAL_LAZY, NULL, NULL) == 0);
    journal_close(&j);
}

// Lines read; -1 with *e where one is bad.
static int count(struct err *e, int64_t *torn)
{
    struct journal_reader r;
    struct journal_line line;
    int n = 0, got;
    CHECK(journal_reader_open(&r, path, e) == 0);
    while ((got = journal_next(&r, &line, e)) == 1) {
        n++;
        CHECK_INT(line.n, n);
        CHECK_INT(json_int(line.event, "x", -1), n - 1);
    }
    if (torn)
        *torn = r.torn;
    journal_reader_close(&r);
    return got < 0 ? -1 : n;
}

static void set_bytes(const char *data, size_t n)
{
    CHECK(io_write_file(path, data, n, 0600, NULL) == 0);
}

static void appends_and_reads(void)
{
    fresh(100);
    CHECK_INT(count(NULL, NULL), 100);
    struct str all = {0};
    io_read_file(path, 1 << 20, &all, NULL);
    CHECK(str_starts(str_c(&all), "{\"n\":1,\"t\":"));
    CHECK(strstr(str_c(&all), ",\"ev\":\"session\",\"x\":0,\"crc\":\"") != NULL);
    str_free(&all);
}

static void goes_on_after_reopening(void)
{
    struct journal j;
    struct journal_line line;
    fresh(3);
    CHECK(open_at_end(&j, NULL, NULL) == 0);
    CHECK(journal_append(&j, event("note", 3), JOURNAL_SYNC, &line, NULL) == 0);
    CHECK_INT(line.n, 4);
    CHECK_STR(line.ev, "note");
    json *again = journal_line_at(path, line.offset, NULL);
    CHECK_INT(json_int(again, "x", -1), 3);
    json_free(again);
    journal_close(&j);
    CHECK_INT(count(NULL, NULL), 4);
}

static void live_time_equals_replayed_time(void)
{
    struct journal j;
    struct journal_line line;
    fresh(1);
    CHECK(open_at_end(&j, NULL, NULL) == 0);
    for (int i = 0; i < 50; i++) {
        CHECK(journal_append(&j, event("note", i + 1), JOURNAL_LAZY, &line, NULL) == 0);
        json *again = journal_line_at(path, line.offset, NULL);
        CHECK(json_num(again, "t", 0) == line.t);
        json_free(again);
    }
    journal_close(&j);
}

// Every length of the last line: readers ignore it, the writer cuts it and the next line follows.
static void torn_tail_is_cut_at_every_byte(void)
{
    fresh(3);
    struct str all = {0};
    io_read_file(path, 1 << 20, &all, NULL);
    size_t two = (size_t)(strchr(strchr(all.s, '\n') + 1, '\n') + 1 - all.s);
    for (size_t n = two; n < all.len; n++) {
        int64_t torn, cut;
        struct journal j;
        set_bytes(all.s, n);
        CHECK_INT(count(NULL, &torn), 2);
        CHECK_INT(torn, n - two);
        CHECK(open_at_end(&j, &cut, NULL) == 0);
        CHECK_INT(cut, n - two);
        CHECK(journal_append(&j, event("note", 2), JOURNAL_LAZY, NULL, NULL) == 0);
        journal_close(&j);
        CHECK_INT(count(NULL, NULL), 3);
    }
    str_free(&all);
}

// After a power cut a file system may show zeros, or the wrong bytes, where data never arrived.
static void zeros_at_the_end_are_torn(void)
{
    fresh(2);
    struct str all = {0};
    int64_t torn;
    io_read_file(path, 1 << 20, &all, NULL);
    char zeros[5000] = {0};
    str_addn(&all, zeros, sizeof zeros);
    set_bytes(all.s, all.len);
    CHECK_INT(count(NULL, &torn), 2);
    CHECK_INT(torn, 5000);
    str_addn(&all, "\n", 1);
    set_bytes(all.s, all.len);
    CHECK_INT(count(NULL, &torn), 2);
    str_free(&all);
}

static void damage_in_the_middle_is_named(void)
{
    fresh(5);
    struct str all = {0};
    io_read_file(path, 1 << 20, &all, NULL);
    size_t second = (size_t)(strchr(all.s, '\n') + 1 - all.s);
    size_t third = (size_t)(strchr(all.s + second, '\n') + 1 - all.s);
    // Every single bit of line 2, its newline too, must be noticed.
    for (size_t at = second; at < third; at++)
        for (int bit = 0; bit < 8; bit++) {
            struct err e = {0};
            all.s[at] ^= (char)(1 << bit);
            set_bytes(all.s, all.len);
            CHECK_INT(count(&e, NULL), -1);
            CHECK(strstr(e.msg, "line 2") != NULL);
            CHECK(strstr(e.where, "journal.jsonl:2") != NULL);
            CHECK(e.hint[0]);
            all.s[at] ^= (char)(1 << bit);
        }
    // A line that is gone, and one that is there twice.
    struct str cut = {0};
    str_addn(&cut, all.s, second);
    str_add(&cut, all.s + third);
    set_bytes(cut.s, cut.len);
    CHECK_INT(count(NULL, NULL), -1);
    str_clear(&cut);
    str_addn(&cut, all.s, third);
    str_add(&cut, all.s + second);
    set_bytes(cut.s, cut.len);
    CHECK_INT(count(NULL, NULL), -1);
    str_free(&cut);
    str_free(&all);
}

static void reader_follows_growth_in_pieces(void)
{
    struct journal_reader r;
    struct journal_line line;
    fresh(4);
    struct str all = {0};
    io_read_file(path, 1 << 20, &all, NULL);
    io_remove(path, NULL);
    CHECK(journal_reader_open(&r, path, NULL) == 0);
    CHECK_INT(journal_next(&r, &line, NULL), 0); // no file yet
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600), n = 0;
    for (size_t i = 0; i < all.len; i++) {
        CHECK(io_write_all(fd, all.s + i, 1) == 0);
        int got = journal_next(&r, &line, NULL);
        CHECK(got >= 0);
        n += got;
        CHECK_INT(got, all.s[i] == '\n');
    }
    CHECK_INT(n, 4);
    close(fd);
    journal_reader_close(&r);
    str_free(&all);
}

// A writer that cuts a torn line off and goes on must not confuse a reader that had seen the torn bytes.
static void reader_survives_a_cut(void)
{
    struct journal_reader r;
    struct journal_line line;
    struct journal j;
    fresh(2);
    int fd = open(path, O_WRONLY | O_APPEND);
    CHECK(io_write_all(fd, "{\"n\":3,\"t\":12", 13) == 0);
    close(fd);
    CHECK(journal_reader_open(&r, path, NULL) == 0);
    CHECK_INT(journal_next(&r, &line, NULL), 1);
    CHECK_INT(journal_next(&r, &line, NULL), 1);
    CHECK_INT(journal_next(&r, &line, NULL), 0);
    CHECK_INT(r.torn, 13);
    CHECK(open_at_end(&j, NULL, NULL) == 0);
    CHECK(journal_append(&j, event("note", 2), JOURNAL_LAZY, NULL, NULL) == 0);
    CHECK_INT(journal_next(&r, &line, NULL), 1);
    CHECK_INT(line.n, 3);
    journal_close(&j);
    journal_reader_close(&r);
}

// RLIMIT_FSIZE stands for the full disk: the write comes back short, then fails.
static void full_disk_loses_nothing(void)
{
    struct journal j;
    struct err e = {0};
    struct rlimit old, small;
    fresh(3);
    CHECK(open_at_end(&j, NULL, NULL) == 0);
    int64_t size = j.size;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = (rlim_t)size + 20;
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK_INT(journal_append(&j, event("note", 3), JOURNAL_SYNC, NULL, &e), -1);
    CHECK(strstr(e.msg, "cannot write") != NULL);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK_INT(j.size, size);
    CHECK_INT(count(NULL, NULL), 3);
    CHECK(journal_append(&j, event("note", 3), JOURNAL_SYNC, NULL, NULL) == 0);
    CHECK_INT(count(NULL, NULL), 4);
    journal_close(&j);
}

// Any bytes at all: an answer, never a crash, and never more lines than were written.
static void random_damage_never_crashes(void)
{
    fresh(20);
    struct str all = {0};
    io_read_file(path, 1 << 20, &all, NULL);
    unsigned seed = 12345;
    for (int round = 0; round < 400; round++) {
        struct str bad = {0};
        struct journal_reader r;
        struct journal_line line;
        struct err e = {0};
        str_addn(&bad, all.s, all.len);
        for (int k = 0; k < 1 + round % 5; k++) {
            seed = seed * 1103515245u + 12345;
            size_t at = (seed >> 8) % bad.len;
            if (round % 3 == 0)
                str_splice(&bad, at, 1, "", 0);
            else if (round % 3 == 1)
                str_splice(&bad, at, 0, "\n", 1);
            else
                bad.s[at] = (char)(seed >> 24);
        }
        set_bytes(bad.s, bad.len);
        CHECK(journal_reader_open(&r, path, NULL) == 0);
        int n = 0, got;
        while ((got = journal_next(&r, &line, &e)) == 1)
            n++;
        CHECK(n <= 20);
        CHECK(got == 0 || e.msg[0]);
        journal_reader_close(&r);
        str_free(&bad);
    }
    str_free(&all);
}

int main(void)
{
    dir = io_temp_dir("ksmith-journal", NULL);
    path = io_join(dir, "journal.jsonl");
    T(appends_and_reads);
    T(goes_on_after_reopening);
    T(live_time_equals_replayed_time);
    T(torn_tail_is_cut_at_every_byte);
    T(zeros_at_the_end_are_torn);
    T(damage_in_the_middle_is_named);
    T(reader_follows_growth_in_pieces);
    T(reader_survives_a_cut);
    T(full_disk_loses_nothing);
    T(random_damage_never_crashes);
    io_remove(dir, NULL);
    free(path);
    free(dir);
    T_END;
}
