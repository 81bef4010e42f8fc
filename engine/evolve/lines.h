// JSON lines over a descriptor that does not block: a worker's pipes, a workbench's socket. Output is
// buffered with a cap; a peer that does not read loses the connection's events, never stops the engine.
#pragma once
#include "base/json.h"
#include "evolve/loop.h"

struct lines;
struct lines_ops {
    // One whole line was read. The object belongs to the callee's caller and is freed after the call.
    void (*line)(void *user, json *object);
    // A line that is no JSON object; the connection stays open.
    void (*bad)(void *user, const char *text, const struct err *e);
    // The peer is gone. The lines object must be freed by the owner, here or later; not called after
    // lines_free.
    void (*closed)(void *user);
};

// Takes both descriptors (they may be the same) and closes them in lines_free. max_line: a longer line is
// `bad`.
struct lines *lines_new(struct loop *l, int in, int out, size_t max_line, const struct lines_ops *ops,
                        void *user);
void lines_free(struct lines *c);
// Sends one line; the object stays the caller's. Returns -1 where over 16 MiB wait unsent or the peer is
// gone.
int lines_send(struct lines *c, const json *object);
size_t lines_unsent(const struct lines *c);
// Blocks up to ms until all is sent.
void lines_flush(struct lines *c, int ms);
