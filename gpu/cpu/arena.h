// The buffers of a kernel on pages that the judge shares with its children: placement, guard pages, red
// zones, poison. Every buffer lies in a room of its own between two unmapped pages (unmapped in the children
// only).
#pragma once
#include "base/err.h"
#include "cpu/control.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum placement {
    PLACE_RANDOM, // anywhere in the room, red zones on both sides
    PLACE_END,    // the last byte is the last before an unmapped page, as far as the alignment allows
    PLACE_START,  // the first byte is the first after an unmapped page
};

enum { PAGE = 4096, RED = 2048 };

struct arena_buffer {
    size_t room, room_bytes; // offset and size of the room
    size_t at, bytes;        // offset and size of the buffer that lies in it now
    char *data;              // the same in this process
};

struct arena {
    int fd;
    char *base;
    size_t bytes;
    uint64_t address; // where every child maps it
    uint64_t secret;  // red zones and placements are drawn from it
    uint64_t draws;
    int n;
    struct arena_buffer buffer[MAX_BUFFERS];
};

// Rooms for n buffers of at most most[i] bytes. Release with arena_close (also after a failure).
int arena_open(struct arena *a, const size_t *most, int n, struct err *e);
void arena_close(struct arena *a);
// Fills in the guard pages and the address of a child's control page.
void arena_describe(const struct arena *a, struct control *c);
// Puts buffer i somewhere new and draws its red zones. align is a power of two.
void arena_place(struct arena *a, int i, size_t bytes, size_t align, enum placement how);
uint64_t arena_address(const struct arena *a, int i); // in a child
// Fills buffer i with bytes that no kernel would write by chance and no reader takes for a result; size is
// that of an element.
void arena_poison(struct arena *a, int i, uint64_t salt, size_t size);
// How many whole elements of `size` bytes still hold the poison of that salt.
size_t arena_poisoned(const struct arena *a, int i, uint64_t salt, size_t size);
// True where the red zones of buffer i are untouched; else *distance is how far outside the nearest changed
// byte lies: negative before the start, positive after the end.
bool arena_intact(const struct arena *a, int i, long *distance);
