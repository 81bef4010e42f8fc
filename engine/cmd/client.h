// A command's end of a session's engine: one that runs, or one that is started for the moment it takes.
#pragma once
#include "base/json.h"

#include <stdbool.h>

// Puts "who" (user@host) and "author" (as git knows the engineer) into a request.
void client_who(json *request);
// Appends a word to a command line of the socket, quoted where it must be.
void client_word(const char *word, struct str *line);
// Connects to the session's engine. Where none runs and the session ran before, one that only answers
// steering is started: unless CLIENT_NO, with the session's commands trusted where CLIENT_TRUST. The
// descriptor; -1 with an error.
enum client_serve { CLIENT_NO, CLIENT_SERVE, CLIENT_TRUST };
int client_open(const char *dir, enum client_serve serve, struct err *e);
// Hands a kernel's text in as a candidate: the answer's "ok" and "msg", or NULL and an error where the engine
// does not answer. op is "edit", "seed" or "salvage"; model (may be NULL) is who wrote it.
struct client_candidate {
    const char *text, *op, *subject, *model;
    size_t len;
    long long parent;
};
json *client_add(int fd, const struct client_candidate *c, struct err *e);
// The words of a refusal as an error.
void client_refusal(const json *reply, struct err *e);
