// The engine's socket: commands in, answers and live events out, JSON lines. A request is {"cmd":"kill
// 42","who":"ann@host", "re":7}; the answer {"re":7,"ok":true,"msg":"..."}. After {"cmd":"subscribe"} a
// client gets every live event. Only the owner of the session may connect (0600 and SO_PEERCRED). A client
// that does not read is dropped, never waited for.
#pragma once
#include "base/json.h"
#include "evolve/loop.h"

struct server;
// Handles one request; returns the answer (freed by the server) without "re".
typedef json *server_fn(void *user, const json *request);

struct server *server_open(struct loop *l, const char *path, server_fn *fn, void *user, struct err *e);
void server_close(struct server *s); // also removes the socket's file
void server_broadcast(struct server *s, const json *event);
int server_clients(const struct server *s);

// The other side, for ctl and ps: connects to path; -1 with ECONNREFUSED or ENOENT in errno where no engine
// listens.
int server_connect(const char *path);
// Sends one request on fd and waits up to timeout_ms for its answer; NULL and an error otherwise.
json *server_ask(int fd, const json *request, int timeout_ms, struct err *e);
