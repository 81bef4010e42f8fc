#!/usr/bin/env python3
"""A model server for tests: speaks the chat protocol on loopback with every fault that real ones have.

usage: server.py [--port-file FILE] [--replies DIR] [--stop-with-stdin] [--tls CERT KEY]

The first part of the path names the scenario: http://127.0.0.1:PORT/SCENARIO is what a test gives as url. A scenario is
words joined by '+', for example crlf+frag+reasoning. GET /stats tells what was seen, per scenario. With --replies the
scenario "ladder" answers with the files of DIR in the order of their names, one a request.
"""
import argparse
import json
import os
import random
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = "Hello w\u00f6rld \u20ac \U0001f600, a reply of a few words.\n"
KEY = os.environ.get("TEST_MODEL_KEY", "")
# A candidate for the sgemm session that nobody gave before.
UNIQUE = """<name>Try {n}</name>
<description>{words}</description>
<source>
// C = A * B for row-major matrices, as everybody writes it first.
void sgemm(const float *A, const float *B, float *C, int M, int N, int K)
{{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {{
            float sum = {n} * 0.0f;
            for (int k = 0; k < K; k++)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }}
}}
</source>
"""
stats, lock, replies = {}, threading.Lock(), []


def rejected(words):
    return 400, {"error": {"message": words, "type": "invalid_request_error"}}


# What a server of this kind says to a request it does not take; None: taken. n: earlier requests of this scenario.
def reject(word, body, n):
    if word == "no-max" and "max_tokens" in body:
        return 400, {"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                               "'max_completion_tokens' instead.", "type": "invalid_request_error",
                               "param": "max_tokens", "code": "unsupported_parameter"}}
    if word == "no-max-at-all" and ("max_tokens" in body or "max_completion_tokens" in body):
        name = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
        return rejected(f"Unrecognized request argument supplied: {name}")
    if word == "cap" and max(body.get("max_tokens", 0), body.get("max_completion_tokens", 0)) > 500:
        return rejected("max_tokens is too large: 100000. This model supports at most 500 completion tokens.")
    if word == "no-temp" and body.get("temperature", 1) != 1:
        return 400, {"error": {"message": "Unsupported value: 'temperature' does not support 0.5 with this model. Only "
                               "the default (1) value is supported.", "param": "temperature"}}
    if word == "one-of" and "temperature" in body and "top_p" in body:
        return rejected("`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
    if word == "no-options" and "stream_options" in body:
        return 422, {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}
    if word == "no-seed" and "seed" in body:
        return 400, {"object": "error", "message": "seed is not supported", "code": 400}
    if word == "no-stream" and body.get("stream"):
        return rejected("Streaming is not supported by this model")
    if word == "no-system" and any(m["role"] == "system" for m in body["messages"]):
        return rejected("System role not supported")
    if word == "null-check" and any(v is None for v in body.values()):
        return rejected("null is not allowed")
    if word == "small" and len(json.dumps(body["messages"])) > 2000:
        return rejected("This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.")
    if word == "short-429" and n < 2:
        return 429, {"error": {"message": "Rate limit reached"}}, {"Retry-After": "0.2"}
    if word == "date-429" and n < 1:
        when = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 2))
        return 429, {"error": {"message": "Rate limit reached"}}, {"Retry-After": when}
    if word == "long-429":
        return 429, {"error": {"message": "Rate limit reached"}}, {"Retry-After": "4000"}
    if word == "quota":
        return 429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    if word == "500" and n < 2:
        return 500, "internal error"
    if word == "html" and n < 1:
        return 502, "<html><body><h1>Bad gateway</h1>\x1b[31m</body></html>"
    if word == "always-500":
        return 500, {"error": "boom"}
    if word == "no-model":
        return 404, {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}
    if word == "filter-400":
        return 400, {"error": {"message": "The response was filtered", "code": "content_filter"}}
    if word == "redirect":
        return 302, "", {"Location": "http://127.0.0.1:1/stolen"}
    if word == "leak-error" and n < 2:
        return 500 if n else 429, {"error": {"message": f"slow down, {KEY}", "code": KEY}}, {"Retry-After": "0.1"}
    if word == "error-200" and n < 1:
        return 200, {"error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": "overloaded"}}}
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    words = ()

    def log_message(self, *_):
        pass

    def answer(self, status, body, headers=None):
        data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        html = data.startswith(b"<")
        self.send_header("Content-Type", "text/html" if html else "application/json")
        for k, v in (headers or {}).items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        with lock:
            self.answer(200, stats)

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path
        if path.startswith("http://"):  # we are used as a proxy: it is ours to answer whatever the host
            path = path.split("/", 3)[3]
            if self.headers.get("Proxy-Authorization") is None:
                self.answer(407, {"error": "the proxy wants a password"}, {"Proxy-Authenticate": "Basic"})
                return
        scenario, _, rest = path.lstrip("/").partition("/")
        self.words = scenario.split("+")
        try:
            body = json.loads(raw)
        except ValueError:
            self.answer(400, {"error": {"message": "the body is no JSON"}})
            return
        key = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        key = self.headers.get("X-Test-Key") or key
        last = body["messages"][-1]["content"]
        with lock:
            s = stats.setdefault(scenario, {"requests": 0, "paths": [], "params": [], "whole": {}, "seen": {}})
            n = s["requests"]
            s["requests"] += 1
            s["paths"] = (s["paths"] + [rest])[-20:]
            s["params"] = (s["params"] + [sorted(k for k in body if k not in ("model", "messages"))])[-20:]
            s["key_ok"] = bool(KEY) and key == KEY
            s["max"] = body.get("max_tokens") or body.get("max_completion_tokens") or 0
            s["title"] = self.headers.get("X-Title") or ""
            s["messages"] = len(body["messages"])
            s["seen"][last[:80]] = s["seen"].get(last[:80], 0) + 1
            s["now"] = s.get("now", 0) + 1
            s["most"] = max(s.get("most", 0), s["now"])
        try:
            self.scenario(scenario, rest, body, n, key, last)
        finally:
            with lock:
                s["now"] -= 1

    def scenario(self, scenario, rest, body, n, key, last):
        if "need-key" in self.words and key != KEY:
            self.answer(401, {"error": {"message": f"Incorrect API key provided: {key}"}})
            return
        if ("bare-path" in self.words and rest != "chat/completions") or \
           ("v1-path" in self.words and rest != "v1/chat/completions"):
            self.answer(404, {"detail": "Not Found"})
            return
        if "storm" in self.words:
            self.storm(scenario, body, n, last)
            return
        for w in self.words:
            r = reject(w, body, n)
            if r:
                self.answer(*r)
                return
        with lock:
            stats[scenario]["whole"][last[:80]] = stats[scenario]["whole"].get(last[:80], 0) + 1
        self.reply(body, n)

    # Faults drawn for each request; what was answered whole is counted, so that the test can compare its accounts.
    def storm(self, scenario, body, n, last):
        r = random.Random(n)
        kind = r.choices(["ok", "429", "500", "reset", "stall", "cut"], [50, 20, 8, 8, 4, 10])[0]
        if kind == "429":
            self.answer(429, {"error": {"message": "slow down"}}, {"Retry-After": "%.2f" % r.uniform(0.05, 0.6)})
        elif kind == "500":
            self.answer(500, {"error": {"message": "boom"}})
        else:
            self.words = ["frag", {"reset": "reset", "stall": "stall", "cut": "cut"}.get(kind, "plain")]
            text, name = "answer to " + last[:80] + " " + "x" * r.randrange(4000), last[:80]
            if "unique" in scenario:
                text, name = UNIQUE.format(n=n, words="x" * r.randrange(4000)), str(n)
            if kind == "ok":
                with lock:
                    w = stats[scenario]["whole"]
                    w[name] = w.get(name, 0) + 1
            self.reply(body, n, text)

    def text(self, n):
        if "ladder" in self.words:
            return open(replies[min(n, len(replies) - 1)], encoding="utf-8").read()
        if "leak" in self.words:  # in every place of a candidate
            return UNIQUE.format(n=n, words=KEY).replace("Try ", KEY + " ").replace("    for (int i = 0; i < M", f"    // {KEY}\n    for (int i = 0; i < M")
        if "leak-patch" in self.words:
            return f"<name>x</name>\n<patch>\n<<<<<<< SEARCH\n{KEY}\n=======\n// {KEY}\n>>>>>>> REPLACE\n</patch>\n"
        if "echo-key" in self.words:
            return "your key is " + KEY
        if "think" in self.words:
            return "<think>\nsecret thoughts\n</think>\n" + TEXT
        return TEXT

    def usage(self, text):
        if "no-usage" in self.words:
            return None
        u = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
             "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": None}
        if "cost" in self.words:
            u["cost"] = 0.0125
        return u

    def reason(self, n):
        if "length" in self.words:
            return "length"
        if "length-once" in self.words and n < 1:
            return "length"
        if "filter" in self.words:
            return "content_filter"
        return "stop"

    def reply(self, body, n, text=None):
        text = text or self.text(n)
        if not body.get("stream") or "ignores-stream" in self.words:
            message = {"role": "assistant", "content": text}
            if "parts" in self.words:
                message["content"] = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
            self.answer(200, {"id": "1", "object": "chat.completion", "model": "tiny",
                              "choices": [{"index": 0, "message": message, "finish_reason": self.reason(n)}],
                              "usage": self.usage(text)})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain" if "mislabelled" in self.words else "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.stream(text, n)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def events(self, text, n):
        def chunk(delta, finish=None):
            return {"object": "chat.completion.chunk", "model": "tiny", "usage": None,
                    "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        yield json.dumps(chunk({"role": "assistant", "content": ""}))
        if "reasoning" in self.words:
            for name in ("reasoning", "reasoning_content"):
                yield json.dumps(chunk({name: "do not show this", "content": None}))
        step = 7
        pieces = [text[i:i + step] for i in range(0, len(text), step)]
        for i, p in enumerate(pieces):
            if "error-mid" in self.words and i == 2 and n < 1:
                yield json.dumps({"error": {"message": "the provider broke", "code": 502}})
                return
            if "garbage" in self.words and i == 2 and n < 1:
                yield '{"choices": [{"delta": {"content": "x'
                return
            yield json.dumps(chunk({"content": p}), ensure_ascii="ascii" in self.words)
        if "control" in self.words:
            yield json.dumps(chunk({"content": "QQ"})).replace("QQ", "a\x01b\\ud83dc\\u0000d")
        if "no-finish" not in self.words:
            yield json.dumps(chunk({}, self.reason(n)))
        if self.usage(text) and "usage-last" in self.words:
            yield json.dumps({"choices": [], "usage": self.usage(text)})
        elif self.usage(text):
            yield json.dumps(dict(chunk({}), usage=self.usage(text)))
        if "no-done" not in self.words:
            yield "[DONE]"

    def stream(self, text, n):
        nl = "\r\n" if "crlf" in self.words else "\r" if "cr" in self.words else "\n"
        out = "\ufeff" if "bom" in self.words else ""
        if "comments" in self.words:
            out += ": PROCESSING" + nl + nl
        for e in self.events(text, n):
            out += ("data:" if "tight" in self.words else "data: ") + e + nl + nl
            if "comments" in self.words:
                out += ": keep-alive" + nl
        data = out.encode()
        if "double-done" in self.words:
            data += b"data: [DONE]\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"again\"}}]}\n\n"
        first = n < 1 or "storm" in self.path
        if "cut" in self.words and first:
            self.send(data[:len(data) // 2])
            return
        if "reset" in self.words and first:
            self.send(data[:len(data) // 2])
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        if "stall" in self.words and first:
            self.send(data[:len(data) // 2])
            time.sleep(20)
            return
        if "huge-line" in self.words:
            self.send(b"data: " + b"x" * (5 << 20))
            return
        if "slow" in self.words:
            for i in range(0, len(data), 200):
                self.send(data[i:i + 200])
                time.sleep(0.1)
            return
        self.send(data)

    def send(self, data):
        if "frag" not in self.words and "bytes" not in self.words:
            self.wfile.write(data)
            self.wfile.flush()
            return
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        r, i = random.Random(len(data)), 0
        while i < len(data):
            n = 1 if "bytes" in self.words else r.randrange(1, 900)
            self.wfile.write(data[i:i + n])
            self.wfile.flush()
            i += n
            if "bytes" not in self.words and r.random() < 0.2:
                time.sleep(r.random() * 0.01)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, ValueError, OSError)):
            super().handle_error(request, client_address)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--port-file")
    a.add_argument("--replies")
    a.add_argument("--tls", nargs=2)
    a.add_argument("--stop-with-stdin", action="store_true")
    args = a.parse_args()
    if args.replies:
        replies.extend(sorted(os.path.join(args.replies, f) for f in os.listdir(args.replies)))
    server = Server(("127.0.0.1", 0), Handler)
    if args.tls:
        import ssl
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*args.tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    port = server.server_address[1]
    if args.port_file:
        with open(args.port_file + ".tmp", "w", encoding="ascii") as f:
            f.write(str(port))
        os.rename(args.port_file + ".tmp", args.port_file)
    else:
        print(port, flush=True)
    if args.stop_with_stdin:
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
