#include "session/loose.h"

#include "base/io.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { OBJECT_MAX = 256 << 20, CHUNK = 65536 };

// "blob 123\0": how many bytes follow, or -1.
static long declared(const unsigned char *head, size_t n, size_t *used)
{
    const unsigned char *end = memchr(head, 0, n < 64 ? n : 64), *blank = memchr(head, ' ', n < 64 ? n : 64);
    char *stop = NULL;
    if (!end || !blank || blank > end)
        return -1;
    long size = strtol((const char *)blank + 1, &stop, 10);
    *used = (size_t)(end - head) + 1;
    return stop == (const char *)end ? size : -1;
}

// Inflates everything and counts.
static bool whole(const struct str *file)
{
    unsigned char out[CHUNK];
    z_stream z = {.next_in = (unsigned char *)file->s, .avail_in = (unsigned)file->len};
    long size = -1, total = 0;
    int r = inflateInit(&z);
    if (r != Z_OK)
        return true; // no memory: not the object's fault
    for (bool first = true; r == Z_OK; first = false) {
        size_t used = 0;
        z.next_out = out;
        z.avail_out = sizeof out;
        r = inflate(&z, Z_NO_FLUSH);
        size_t got = sizeof out - z.avail_out;
        if (first)
            size = declared(out, got, &used);
        total += (long)(got - used);
        if (r == Z_OK && !got && !z.avail_in)
            break;
    }
    inflateEnd(&z);
    return r == Z_STREAM_END && size >= 0 && size == total;
}

static bool damaged(const char *path)
{
    struct str file = {0};
    bool bad = io_exists(path) && (io_read_file(path, OBJECT_MAX, &file, NULL) < 0 || !whole(&file));
    str_free(&file);
    return bad;
}

bool loose_damaged(const char *repository, const char *hex)
{
    char *path = xasprintf("%s/objects/%.2s/%s", repository, hex, hex + 2);
    bool bad = damaged(path);
    free(path);
    return bad;
}

static int sweep_folder(const char *dir, const char *two, struct str *ids)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *x; d && (x = readdir(d));) {
        char *path = strlen(x->d_name) == 38 ? xasprintf("%s/%s", dir, x->d_name) : NULL;
        if (path && damaged(path) && unlink(path) == 0) {
            str_addf(ids, "%s%s%s", ids->len ? " " : "", two, x->d_name);
            n++;
        }
        free(path);
    }
    if (d)
        closedir(d);
    return n;
}

int loose_sweep(const char *repository, struct str *ids)
{
    int n = 0;
    for (int i = 0; i < 256; i++) {
        char two[3];
        snprintf(two, sizeof two, "%02x", i);
        char *dir = xasprintf("%s/objects/%s", repository, two);
        n += sweep_folder(dir, two, ids);
        free(dir);
    }
    return n;
}
