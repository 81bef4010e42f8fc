#include "models/http.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

#include <curl/curl.h>
#include <limits.h>
#include <poll.h>
#include <strings.h>
#include <time.h>

struct http {
    struct loop *loop;
    CURLM *multi;
    int timer;   // the loop's timer for libcurl, 0 where none is set
    int reaping; // the loop's timer that reaps calls which ended outside of a socket's turn
    bool inside; // libcurl is calling us: handles must not be removed now
    VEC(struct http_call *) calls;
};

struct http_call {
    struct http *h;
    CURL *easy;
    struct curl_slist *headers;
    char *body;
    http_head_fn *on_head;
    http_body_fn *on_body;
    http_done_fn *on_done;
    void *user;
    bool added, head_said, dead; // dead: cancelled inside a callback, freed after it
    bool stop;                   // `forced` ended it
    enum http_end forced;
    int stall_ms, total_ms;
    int watchdog; // loop timer
    int64_t start, last_byte;
    size_t bytes, max_bytes;
    char *content_type;
    long retry_after_ms;
    CURLcode bad; // an option that libcurl refused
    char message[CURL_ERROR_SIZE];
};

static const struct {
    const char *name;
    bool transient;
} ends[HTTP_END_COUNT] = {
    [HTTP_OK] = {"ok", false},
    [HTTP_RESOLVE] = {"unknown host", true},
    [HTTP_CONNECT] = {"no connection", true},
    [HTTP_TLS] = {"TLS", false},
    [HTTP_BROKEN] = {"broken off", true},
    [HTTP_STALL] = {"stalled", true},
    [HTTP_LATE] = {"too slow", true},
    [HTTP_TOO_BIG] = {"too large", false},
    [HTTP_REFUSED] = {"unusable", false},
    [HTTP_BAD] = {"cannot be sent", false},
};

const char *http_end_name(enum http_end end)
{
    return ends[end].name;
}

bool http_end_transient(enum http_end end)
{
    return ends[end].transient;
}

static void reap(struct http *h);

static void call_free(struct http_call *c)
{
    for (size_t i = 0; i < c->h->calls.n; i++)
        if (c->h->calls.v[i] == c) {
            vec_remove(&c->h->calls, i);
            break;
        }
    if (c->watchdog)
        loop_cancel(c->h->loop, c->watchdog);
    if (c->added)
        curl_multi_remove_handle(c->h->multi, c->easy);
    curl_easy_cleanup(c->easy);
    // The Authorization line holds the key.
    for (struct curl_slist *x = c->headers; x; x = x->next)
        explicit_bzero(x->data, strlen(x->data));
    curl_slist_free_all(c->headers);
    free(c->body);
    free(c->content_type);
    free(c);
}

// ---- libcurl's side of the loop

static void on_reap_timer(void *user)
{
    struct http *h = user;
    h->reaping = 0;
    reap(h);
}

static void reap_soon(struct http *h)
{
    if (!h->reaping)
        h->reaping = loop_after(h->loop, 0, on_reap_timer, h);
}

static void act(struct http *h, curl_socket_t fd, int events)
{
    int running;
    h->inside = true;
    curl_multi_socket_action(h->multi, fd, events, &running);
    h->inside = false;
    reap(h);
}

static void on_fd(void *user, int fd, short revents)
{
    int events = 0;
    if (revents & (POLLIN | POLLHUP))
        events |= CURL_CSELECT_IN;
    if (revents & POLLOUT)
        events |= CURL_CSELECT_OUT;
    if (revents & (POLLERR | POLLHUP | POLLNVAL))
        events |= CURL_CSELECT_ERR;
    act(user, fd, events);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *unused)
{
    struct http *h = user;
    (void)easy, (void)unused;
    if (what == CURL_POLL_REMOVE)
        loop_unwatch(h->loop, fd);
    else
        loop_watch(h->loop, fd,
                   (short)((what & CURL_POLL_IN ? POLLIN : 0) | (what & CURL_POLL_OUT ? POLLOUT : 0)), on_fd,
                   h);
    return 0;
}

static void on_timeout(void *user)
{
    struct http *h = user;
    h->timer = 0;
    act(h, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer(CURLM *multi, long ms, void *user)
{
    struct http *h = user;
    (void)multi;
    if (h->timer)
        loop_cancel(h->loop, h->timer);
    h->timer = 0;
    // Not at once from here: libcurl forbids calling back into it from its own callback.
    if (ms >= 0)
        h->timer = loop_after(h->loop, ms > INT_MAX ? INT_MAX : (int)ms, on_timeout, h);
    return 0;
}

struct http *http_new(struct loop *loop, struct err *e)
{
    static bool started;
    if (!started && curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        err_set(e, ERR_FAIL, "", "libcurl cannot start");
        return NULL;
    }
    started = true;
    struct http *h = xcalloc(1, sizeof *h);
    h->loop = loop;
    h->multi = curl_multi_init();
    if (!h->multi) {
        free(h);
        err_set(e, ERR_FAIL, "", "libcurl cannot start");
        return NULL;
    }
    curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
    curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
    return h;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    while (h->calls.n)
        call_free(h->calls.v[h->calls.n - 1]);
    vec_free(&h->calls);
    curl_multi_cleanup(h->multi); // may still close idle connections through on_socket and on_timer
    if (h->timer)
        loop_cancel(h->loop, h->timer);
    if (h->reaping)
        loop_cancel(h->loop, h->reaping);
    free(h);
}

size_t http_active(const struct http *h)
{
    return h->calls.n;
}

// ---- what arrives

static bool header_is(const char *line, size_t n, const char *name, const char **value, size_t *vlen)
{
    size_t k = strlen(name);
    if (n <= k || line[k] != ':' || strncasecmp(line, name, k) != 0)
        return false;
    line += k + 1;
    n -= k + 1;
    while (n && (*line == ' ' || *line == '\t'))
        line++, n--;
    while (n && (unsigned char)line[n - 1] <= ' ')
        n--;
    *value = line;
    *vlen = n;
    return true;
}

// "120", "0.5" or an HTTP date.
static long retry_after(const char *value, size_t n, double unit_ms)
{
    char *text = xstrndup(value, n), *end;
    double x = strtod(text, &end);
    long ms = -1;
    if (end != text && !*end && x >= 0) {
        ms = x * unit_ms > 3.6e6 * 24 ? 86400000L : (long)(x * unit_ms);
    } else if (unit_ms > 1) {
        time_t at = curl_getdate(text, NULL);
        if (at >= 0)
            ms = at > time(NULL) ? (long)(at - time(NULL)) * 1000 : 0;
    }
    free(text);
    return ms;
}

static size_t on_header(char *line, size_t size, size_t count, void *user)
{
    struct http_call *c = user;
    const char *v;
    size_t n = size * count, vlen;
    if (n > 5 && strncmp(line, "HTTP/", 5) == 0) { // a new head: after "100 Continue" or a proxy's answer
        c->retry_after_ms = -1;
        free(c->content_type);
        c->content_type = NULL;
    } else if (header_is(line, n, "content-type", &v, &vlen)) {
        free(c->content_type);
        c->content_type = xstrndup(v, vlen);
    } else if (header_is(line, n, "retry-after-ms", &v, &vlen)) {
        c->retry_after_ms = retry_after(v, vlen, 1);
    } else if (header_is(line, n, "retry-after", &v, &vlen) && c->retry_after_ms < 0) {
        c->retry_after_ms = retry_after(v, vlen, 1000);
    }
    c->last_byte = clock_ns();
    return c->dead || c->stop ? 0 : n;
}

static long status_of(struct http_call *c)
{
    long status = 0;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static void say_head(struct http_call *c)
{
    if (c->head_said)
        return;
    c->head_said = true;
    if (c->on_head)
        c->on_head(c->user, (int)status_of(c), c->content_type ? c->content_type : "");
}

static size_t on_write(char *data, size_t size, size_t count, void *user)
{
    struct http_call *c = user;
    size_t n = size * count;
    c->last_byte = clock_ns();
    c->bytes += n;
    if (!c->dead)
        say_head(c);
    if (c->dead || c->stop)
        return CURL_WRITEFUNC_ERROR;
    if (c->bytes > c->max_bytes) {
        c->stop = true;
        c->forced = HTTP_TOO_BIG;
        return CURL_WRITEFUNC_ERROR;
    }
    if (c->on_body && n && !c->on_body(c->user, data, n) && !c->dead) {
        c->stop = true;
        c->forced = HTTP_REFUSED;
    }
    return c->dead || c->stop ? CURL_WRITEFUNC_ERROR : n;
}

static enum http_end end_of(CURL *easy, CURLcode code)
{
    static const struct {
        CURLcode code;
        enum http_end end;
    } table[] = {
        {CURLE_OK, HTTP_OK},
        {CURLE_COULDNT_RESOLVE_HOST, HTTP_RESOLVE},
        {CURLE_COULDNT_RESOLVE_PROXY, HTTP_RESOLVE},
        {CURLE_COULDNT_CONNECT, HTTP_CONNECT},
        {CURLE_OPERATION_TIMEDOUT, HTTP_CONNECT},
        {CURLE_SSL_CONNECT_ERROR, HTTP_TLS},
        {CURLE_PEER_FAILED_VERIFICATION, HTTP_TLS},
        {CURLE_SSL_CACERT_BADFILE, HTTP_TLS},
        {CURLE_SSL_CERTPROBLEM, HTTP_TLS},
        {CURLE_SSL_ISSUER_ERROR, HTTP_TLS},
        {CURLE_UNSUPPORTED_PROTOCOL, HTTP_BAD},
        {CURLE_URL_MALFORMAT, HTTP_BAD},
        {CURLE_BAD_FUNCTION_ARGUMENT, HTTP_BAD},
        {CURLE_UNKNOWN_OPTION, HTTP_BAD},
        {CURLE_OUT_OF_MEMORY, HTTP_BAD},
    };
    for (size_t i = 0; i < countof(table); i++)
        if (table[i].code == code)
            return table[i].end;
    long proxy = 0; // a proxy that wants a password does not change its mind
    curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &proxy);
    return proxy >= 400 && proxy < 500 ? HTTP_BAD : HTTP_BROKEN;
}

static const char *const hints[HTTP_END_COUNT] = {
    [HTTP_RESOLVE] = "Check the host in url, and the name server of this machine.",
    [HTTP_CONNECT] = "Is the server up, and is a proxy needed (https_proxy, or proxy = in [model])?",
    [HTTP_TLS] = "For a private certificate authority: ca = FILE in [model]. Verification cannot be off.",
    [HTTP_STALL] = "A model that thinks long before its first byte needs a larger stall = in [model].",
    [HTTP_LATE] = "Raise timeout = in [model].",
    [HTTP_TOO_BIG] = "No model's answer is this large: check url.",
    [HTTP_BAD] = "Check url and proxy in [model].",
};

static void describe(const struct http_call *c, CURLcode code, struct http_result *r)
{
    struct str words = {0};
    switch (r->end) {
    case HTTP_STALL:
        str_addf(&words, "no byte for %g s", c->stall_ms / 1000.0);
        break;
    case HTTP_LATE:
        str_addf(&words, "not done after %g s", c->total_ms / 1000.0);
        break;
    case HTTP_TOO_BIG:
        str_addf(&words, "the answer is larger than %zu bytes", c->max_bytes);
        break;
    case HTTP_REFUSED:
        str_add(&words, "the answer cannot be used");
        break;
    default:
        str_addf(&words, "%s: %s", http_end_name(r->end),
                 c->message[0] ? c->message : curl_easy_strerror(code));
    }
    log_redact(&words);
    err_set(&r->err, ERR_FAIL, hints[r->end] ? hints[r->end] : "", "%s", str_c(&words));
    str_free(&words);
}

// Ends a call with its callback. The call is freed first, so that on_done may start another or free
// everything.
static void finish(struct http_call *c, CURLcode code)
{
    struct http_result r = {
        .end = c->bad    ? HTTP_BAD
               : c->stop ? c->forced
                         : end_of(c->easy, code),
        .status = (int)status_of(c),
        .retry_after_ms = c->retry_after_ms,
        .bytes = c->bytes,
        .seconds = (double)(clock_ns() - c->start) * 1e-9,
    };
    if (r.end == HTTP_OK && !c->dead)
        say_head(c); // an answer without a body
    if (r.end != HTTP_OK)
        describe(c, c->bad ? c->bad : code, &r);
    http_done_fn *done = c->dead ? NULL : c->on_done;
    void *user = c->user;
    call_free(c);
    if (done)
        done(user, &r);
}

static void reap(struct http *h)
{
    if (h->inside)
        return;
    for (size_t i = 0; i < h->calls.n;) {
        if (h->calls.v[i]->dead)
            call_free(h->calls.v[i]);
        else
            i++;
    }
    // One at a time through the loop's timer: on_done may free h, and one that parses much must not hold the
    // others.
    int left;
    CURLMsg *m = curl_multi_info_read(h->multi, &left);
    if (!m || m->msg != CURLMSG_DONE)
        return;
    struct http_call *c = NULL;
    CURLcode code = m->data.result;
    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&c);
    reap_soon(h);
    finish(c, code);
}

static void on_watchdog(void *user)
{
    struct http_call *c = user;
    int64_t now = clock_ns();
    c->watchdog = 0;
    int64_t stall_left = c->last_byte + (int64_t)c->stall_ms * 1000000 - now;
    int64_t total_left = c->total_ms ? c->start + (int64_t)c->total_ms * 1000000 - now : INT64_MAX;
    if (c->bad || stall_left <= 0 || total_left <= 0) {
        c->forced = stall_left <= 0 ? HTTP_STALL : HTTP_LATE;
        c->stop = true;
        finish(c, CURLE_OPERATION_TIMEDOUT);
        return;
    }
    int64_t left = stall_left < total_left ? stall_left : total_left;
    c->watchdog = loop_after(c->h->loop, (int)(left / 1000000) + 1, on_watchdog, c);
}

// ---- starting

static void set_failed(struct http_call *c, CURLcode code)
{
    if (code != CURLE_OK && c->bad == CURLE_OK)
        c->bad = code;
}
#define SET(c, option, value) set_failed((c), curl_easy_setopt((c)->easy, (option), (value)))

// A proxy's password is a secret like a key.
static void hide_password(const char *proxy)
{
    if (!proxy)
        return;
    const char *at = strrchr(proxy, '@'), *from = strstr(proxy, "://");
    from = from ? from + 3 : proxy;
    const char *colon = at && at > from ? memchr(from, ':', (size_t)(at - from)) : NULL;
    if (!colon)
        return;
    char *password = xstrndup(colon + 1, (size_t)(at - colon - 1));
    log_secret(password);
    free(password);
}

static void set_route(struct http_call *c, const struct http_request *r)
{
    static const char *const proxies[] = {"https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy",
                                          "ALL_PROXY"};
    for (size_t i = 0; i < countof(proxies); i++)
        hide_password(getenv(proxies[i]));
    if (r->proxy) {
        hide_password(r->proxy);
        SET(c, CURLOPT_PROXY, r->proxy);
    }
    const char *ca = r->ca_file ? r->ca_file : getenv("CURL_CA_BUNDLE");
    if (!ca || !*ca)
        ca = getenv("SSL_CERT_FILE");
    if (ca && *ca) {
        SET(c, CURLOPT_CAINFO, ca);
        SET(c, CURLOPT_PROXY_CAINFO, ca);
    }
    SET(c, CURLOPT_SSL_VERIFYPEER, 1L);
    SET(c, CURLOPT_SSL_VERIFYHOST, 2L);
    SET(c, CURLOPT_PROTOCOLS_STR, "https,http");
    SET(c, CURLOPT_FOLLOWLOCATION, 0L);
    SET(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(c, CURLOPT_CONNECTTIMEOUT_MS, (long)(r->connect_ms ? r->connect_ms : 15000));
    SET(c, CURLOPT_TCP_KEEPALIVE, 1L);
    SET(c, CURLOPT_NOSIGNAL, 1L);
    SET(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

static void set_headers(struct http_call *c, const struct http_request *r)
{
    // "Expect: 100-continue" makes some servers wait a second for nothing.
    c->headers = curl_slist_append(NULL, "Expect:");
    if (r->body)
        c->headers = curl_slist_append(c->headers, "Content-Type: application/json");
    if (r->bearer && *r->bearer) {
        char *line = xasprintf("Authorization: Bearer %s", r->bearer);
        c->headers = curl_slist_append(c->headers, line);
        explicit_bzero(line, strlen(line));
        free(line);
    }
    for (const char *const *x = r->headers; x && *x; x++)
        c->headers = curl_slist_append(c->headers, *x);
    SET(c, CURLOPT_HTTPHEADER, c->headers);
}

struct http_call *http_start(struct http *h, const struct http_request *r)
{
    struct http_call *c = xcalloc(1, sizeof *c);
    *c = (struct http_call){.h = h,
                            .on_head = r->on_head,
                            .on_body = r->on_body,
                            .on_done = r->on_done,
                            .user = r->user,
                            .stall_ms = r->stall_ms ? r->stall_ms : 120000,
                            .total_ms = r->total_ms,
                            .max_bytes = r->max_bytes ? r->max_bytes : (size_t)64 << 20,
                            .retry_after_ms = -1};
    c->start = c->last_byte = clock_ns();
    c->easy = curl_easy_init();
    vec_push(&h->calls, c);
    SET(c, CURLOPT_URL, r->url);
    SET(c, CURLOPT_PRIVATE, c);
    SET(c, CURLOPT_ERRORBUFFER, c->message);
    SET(c, CURLOPT_USERAGENT, "ksmith/" KSMITH_VERSION);
    SET(c, CURLOPT_HEADERFUNCTION, on_header);
    SET(c, CURLOPT_HEADERDATA, c);
    SET(c, CURLOPT_WRITEFUNCTION, on_write);
    SET(c, CURLOPT_WRITEDATA, c);
    set_route(c, r);
    set_headers(c, r);
    if (r->body) {
        c->body = xmalloc(r->body_len + 1);
        memcpy(c->body, r->body, r->body_len);
        SET(c, CURLOPT_POST, 1L);
        SET(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
        SET(c, CURLOPT_POSTFIELDS, c->body);
    }
    if (!c->bad)
        c->added = curl_multi_add_handle(h->multi, c->easy) == CURLM_OK;
    if (!c->added && !c->bad)
        c->bad = CURLE_FAILED_INIT;
    int first = c->bad ? 0 : c->total_ms && c->total_ms < c->stall_ms ? c->total_ms : c->stall_ms;
    c->watchdog = loop_after(h->loop, first, on_watchdog, c);
    return c;
}

void http_cancel(struct http_call *c)
{
    c->dead = true;
    if (!c->h->inside)
        call_free(c);
    else
        reap_soon(c->h);
}
