// The fold's memory: an arena that lives as long as the state, and interned strings (equal strings are equal
// pointers, which is what keeps 100,000 candidates small).
#pragma once
#include <stddef.h>

struct state_memory;
struct state_memory *memory_new(void);
void memory_free(struct state_memory *m);
void *memory_alloc(struct state_memory *m, size_t n);             // aligned for any object; zeroed
const char *memory_copy(struct state_memory *m, const char *s);   // NULL stays NULL
const char *memory_intern(struct state_memory *m, const char *s); // NULL stays NULL
