#include "session/memory.h"

#include "base/hash.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 * 1024 };

struct block {
    struct block *next;
    size_t used, size;
    _Alignas(16) char data[];
};

struct state_memory {
    struct block *blocks;
    const char **table; // open addressing, a power of two
    size_t slots, count;
};

struct state_memory *memory_new(void)
{
    struct state_memory *m = xcalloc(1, sizeof *m);
    m->slots = 256;
    m->table = xcalloc(m->slots, sizeof *m->table);
    return m;
}

void memory_free(struct state_memory *m)
{
    if (!m)
        return;
    for (struct block *b = m->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(m->table);
    free(m);
}

static void *take(struct state_memory *m, size_t n, size_t align)
{
    struct block *b = m->blocks;
    size_t at = b ? (b->used + align - 1) & ~(align - 1) : 0;
    if (!b || at + n > b->size) {
        size_t size = n > BLOCK ? n : BLOCK;
        b = xmalloc(sizeof *b + size);
        *b = (struct block){.next = m->blocks, .size = size};
        m->blocks = b;
        at = 0;
    }
    b->used = at + n;
    return b->data + at;
}

void *memory_alloc(struct state_memory *m, size_t n)
{
    void *p = take(m, n, 16);
    memset(p, 0, n);
    return p;
}

const char *memory_copy(struct state_memory *m, const char *s)
{
    if (!s)
        return NULL;
    size_t n = strlen(s) + 1;
    return memcpy(take(m, n, 1), s, n);
}

static const char **slot_of(const struct state_memory *m, const char *s)
{
    size_t i = hash_bytes(s, strlen(s), 0) & (m->slots - 1);
    while (m->table[i] && strcmp(m->table[i], s) != 0)
        i = (i + 1) & (m->slots - 1);
    return &m->table[i];
}

const char *memory_intern(struct state_memory *m, const char *s)
{
    if (!s)
        return NULL;
    if (m->count * 2 >= m->slots) {
        const char **old = m->table;
        size_t n = m->slots;
        m->slots *= 2;
        m->table = xcalloc(m->slots, sizeof *m->table);
        for (size_t i = 0; i < n; i++)
            if (old[i])
                *slot_of(m, old[i]) = old[i];
        free(old);
    }
    const char **slot = slot_of(m, s);
    if (!*slot) {
        *slot = memory_copy(m, s);
        m->count++;
    }
    return *slot;
}
