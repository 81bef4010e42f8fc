// HTTP for talking to models: one libcurl multi handle that lives in the poll loop
// (curl_multi_socket_action), so any number of streams costs no thread and no polling. http.c is the only
// file that includes libcurl.
//
// What holds for every call: https and http only, no redirects, TLS verified, no signals, HTTP/1.1, nothing
// verbose, credentials are wiped from memory when the call ends. Errors are redacted (base/log.h) before
// anybody sees them.
#pragma once
#include "base/err.h"
#include "evolve/loop.h"

struct http;
struct http_call;

enum http_end {
    HTTP_OK,      // a whole answer arrived, whatever its status
    HTTP_RESOLVE, // no such host, or no answer from the name server
    HTTP_CONNECT, // refused, unreachable, or no connection within connect_ms
    HTTP_TLS,     // the certificate or the handshake is bad: never worth a retry
    HTTP_BROKEN,  // the connection broke after it stood (reset, short body, bad framing)
    HTTP_STALL,   // not one byte for stall_ms
    HTTP_LATE,    // over total_ms
    HTTP_TOO_BIG, // more than max_bytes
    HTTP_REFUSED, // on_body said stop
    HTTP_BAD,     // the URL, the proxy or an option is wrong: never worth a retry
    HTTP_END_COUNT
};

struct http_result {
    enum http_end end;
    int status;          // 0 where no answer's head arrived
    long retry_after_ms; // -1 where the server named none
    size_t bytes;        // of the body
    double seconds;      // from start to end
    struct err err;      // in words where end is not HTTP_OK
};

// Called once when the head is complete. content_type is "" where absent.
typedef void http_head_fn(void *user, int status, const char *content_type);
// A fragment of the body, of any size and cut anywhere. false stops the call (HTTP_REFUSED).
typedef bool http_body_fn(void *user, const char *data, size_t n);
// Called exactly once per call that was not cancelled, from the loop, never from http_start. The call is gone
// then.
typedef void http_done_fn(void *user, const struct http_result *r);

struct http_request { // everything is copied
    const char *url;
    const char *const *headers; // "Name: value", NULL-terminated, or NULL
    const char *bearer;         // sent as "Authorization: Bearer ..."; NULL or "" for none
    const char *body;           // NULL: GET, else POST
    size_t body_len;
    const char *proxy;     // NULL: what the environment says (https_proxy, no_proxy); "" for none at all
    const char *ca_file;   // NULL: CURL_CA_BUNDLE or SSL_CERT_FILE where set, else the system's
    int connect_ms;        // 0: 15 s
    int stall_ms;          // 0: 120 s; counts from the start and from each byte received
    int total_ms;          // 0: no limit
    size_t max_bytes;      // 0: 64 MiB
    http_head_fn *on_head; // may be NULL, as on_body
    http_body_fn *on_body;
    http_done_fn *on_done;
    void *user;
};

// The loop must outlive it. NULL and an error where libcurl cannot start.
struct http *http_new(struct loop *loop, struct err *e);
// Cancels what still runs.
void http_free(struct http *h);
struct http_call *http_start(struct http *h, const struct http_request *r);
// At once, no callback follows; may be called from any callback of the call, on_done excepted (it is gone
// there).
void http_cancel(struct http_call *c);
size_t http_active(const struct http *h);
const char *http_end_name(enum http_end end);
// Whether such an end may be over on its own (a stall, a reset), so that asking again is worth it.
bool http_end_transient(enum http_end end);
