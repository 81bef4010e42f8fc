#include "cpu/arena.h"

#include "base/draw.h"
#include "base/hash.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t draw(struct arena *a)
{
    return hash_mix(a->secret + ++a->draws * 0x9e3779b97f4a7c15u);
}

static size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

int arena_open(struct arena *a, const size_t *most, int n, struct err *e)
{
    *a = (struct arena){.fd = -1, .n = n, .secret = draw_secret()};
    size_t at = PAGE;
    for (int i = 0; i < n; i++) {
        a->buffer[i].room = at;
        a->buffer[i].room_bytes = pages(most[i]) + 2 * PAGE;
        at += a->buffer[i].room_bytes + PAGE;
    }
    a->bytes = at;
    a->address = 0x200000000000u + draw(a) % 0x3f0000000u * PAGE;
    a->fd = memfd_create("ksmith-buffers", MFD_CLOEXEC);
    if (a->fd < 0 || ftruncate(a->fd, (off_t)at) < 0)
        return err_sys(e, "Make the shapes smaller or free some memory.", "no room for %zu MiB of buffers",
                       at >> 20);
    a->base = mmap(NULL, at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, a->fd, 0);
    if (a->base == MAP_FAILED) {
        a->base = NULL;
        return err_sys(e, "Make the shapes smaller or free some memory.", "no room for %zu MiB of buffers",
                       at >> 20);
    }
    return 0;
}

void arena_close(struct arena *a)
{
    if (a->base)
        munmap(a->base, a->bytes);
    if (a->fd >= 0)
        close(a->fd);
    *a = (struct arena){.fd = -1};
}

void arena_describe(const struct arena *a, struct control *c)
{
    c->arena_address = a->address;
    c->arena_bytes = a->bytes;
    c->guards = 0;
    for (int i = 0; i <= a->n && c->guards < MAX_GUARDS; i++) {
        uint64_t at = i < a->n ? a->buffer[i].room - PAGE : a->bytes - PAGE;
        c->guard[c->guards].offset = at;
        c->guard[c->guards++].bytes = PAGE;
    }
}

// The byte of a red zone at an offset of the arena.
static unsigned char red_byte(const struct arena *a, size_t at)
{
    return (unsigned char)(hash_mix(a->secret ^ (at / 8)) >> (at % 8 * 8));
}

static void red_fill(struct arena *a, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        a->base[i] = (char)red_byte(a, i);
}

// The red zones of a buffer, within its room.
static void red_bounds(const struct arena_buffer *b, size_t *low, size_t *high)
{
    size_t end = b->room + b->room_bytes;
    *low = b->at - b->room > RED ? b->at - RED : b->room;
    *high = end - (b->at + b->bytes) > RED ? b->at + b->bytes + RED : end;
}

void arena_place(struct arena *a, int i, size_t bytes, size_t align, enum placement how)
{
    struct arena_buffer *b = &a->buffer[i];
    size_t space = b->room_bytes - bytes;
    size_t slack = how == PLACE_START ? 0 : space / align * align;
    if (how == PLACE_RANDOM) {
        // Somewhere in the middle two pages, so that both red zones fit.
        size_t least = RED, most = space > PAGE + RED ? PAGE + RED : space - RED;
        slack = (least + draw(a) % (most - least + 1)) / align * align;
    }
    b->at = b->room + slack;
    b->bytes = bytes;
    b->data = a->base + b->at;
    size_t low, high;
    red_bounds(b, &low, &high);
    red_fill(a, low, b->at);
    red_fill(a, b->at + bytes, high);
}

uint64_t arena_address(const struct arena *a, int i)
{
    return a->address + a->buffer[i].at;
}

// A NaN with an odd payload in every wide float format, and a large odd number in every wide integer format.
// For one byte every pattern can be a right answer, so it changes with the salt, and no answer is right
// twice.
static void pattern(uint64_t salt, size_t size, unsigned char out[8])
{
    uint64_t h = hash_mix(salt);
    uint64_t x = size == 1 ? (h & 0xff) * 0x0101010101010101u
                           : 0xffa5ffa5ffa5ffa5u ^ ((h & 0x5a) * 0x0001000100010001u);
    memcpy(out, &x, 8);
}

void arena_poison(struct arena *a, int i, uint64_t salt, size_t size)
{
    struct arena_buffer *b = &a->buffer[i];
    unsigned char p[8];
    pattern(salt, size, p);
    size_t n = b->bytes / 8 * 8;
    for (size_t at = 0; at < n; at += 8)
        memcpy(b->data + at, p, 8);
    memcpy(b->data + n, p, b->bytes - n);
}

size_t arena_poisoned(const struct arena *a, int i, uint64_t salt, size_t size)
{
    const struct arena_buffer *b = &a->buffer[i];
    unsigned char p[8];
    pattern(salt, size, p);
    size_t count = 0;
    for (size_t at = 0; at + size <= b->bytes; at += size)
        count += memcmp(b->data + at, p + at % 8, size) == 0;
    return count;
}

bool arena_intact(const struct arena *a, int i, long *distance)
{
    const struct arena_buffer *b = &a->buffer[i];
    size_t low, high, end = b->at + b->bytes;
    red_bounds(b, &low, &high);
    for (size_t at = end; at < high; at++) {
        if ((unsigned char)a->base[at] != red_byte(a, at)) {
            *distance = (long)(at - end) + 1;
            return false;
        }
    }
    for (size_t at = b->at; at > low; at--) {
        if ((unsigned char)a->base[at - 1] != red_byte(a, at - 1)) {
            *distance = -(long)(b->at - at) - 1;
            return false;
        }
    }
    return true;
}
