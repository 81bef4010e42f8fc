#!/usr/bin/env python3
"""Campaigns that show what a verdict is worth. Drives ksmith-cpu over its protocol.

  power.py --kernel dot --mode aa --n 100 [--load]        identical code: how many verdicts say "faster" (asked: none)
  power.py --kernel dot --mode power --less 3 --n 50      a kernel with that many percent less work: how many are found
  power.py --kernel dot --mode repeat --n 20              the same verdict twice: how far apart (asked: under 1 % in 95 %)

--load runs a compile loop on the other core meanwhile. Prints one line of figures."""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))

# A small session per kernel, and the kernel with EXTRA parts per thousand of its work done twice, so that the one without
# does that much less. The repeated part is real work: its results are stored again.
KERNELS = {
    "sgemm": ("""A = in f32[M,K]
B = in f32[K,N]
C = out f32[M,N]
M = dim i32
N = dim i32
K = dim i32""", "M=7 N=9 K=5", "M=160 N=160 K=160", """void k(const float *A, const float *B, float *C, int M, int N, int K)
{
    int extra = EXTRA;
    __asm__("" : "+r"(extra)); // the same code on both sides, but for this number
    int more = (int)((long)M * extra / 1000);
    for (int ii = -more; ii < M; ii++) {
        int i = ii < 0 ? -ii - 1 : ii;
        for (int j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int k = 0; k < K; k++)
            for (int j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}
"""),
    "dot": ("""x = in f32[N]
y = in f32[N]
out = out f32[1]
N = dim i32""", "N=100", "N=65536", """static __attribute__((noinline)) float part(const float *x, const float *y, int n, float sum)
{
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}
void k(const float *x, const float *y, float *out, int N)
{
    int extra = EXTRA;
    __asm__("" : "+r"(extra));
    int more = (int)((long)N * extra / 1000);
    float zero = part(x, y, more, 0) > -1e30f ? 0 : 1; // one chain: two that do not wait for each other can cost the time of one
    out[0] = part(x, y, N, zero);
}
"""),
    "jacobi2d": ("""a = in f32[H,W]
b = out f32[H,W]
H = dim i32
W = dim i32""", "H=9 W=11", "H=300 W=300", """void k(const float *a, float *b, int H, int W)
{
    int extra = EXTRA;
    __asm__("" : "+r"(extra));
    int more = (int)((long)H * extra / 1000);
    for (int ii = -more; ii < H; ii++) {
        int i = ii < 0 ? -ii - 1 : ii;
        for (int j = 0; j < W; j++) {
            if (i == 0 || j == 0 || i == H - 1 || j == W - 1)
                b[i * W + j] = a[i * W + j];
            else
                b[i * W + j] = 0.2f * (a[i * W + j] + a[i * W + j - 1] + a[i * W + j + 1] + a[(i - 1) * W + j] + a[(i + 1) * W + j]);
        }
    }
}
"""),
    "saxpy": ("""x = in f32[N]
y = in f32[N]
z = out f32[N]
N = dim i32""", "N=100", "N=60000", """void k(const float *x, const float *y, float *z, int N)
{
    int extra = EXTRA;
    __asm__("" : "+r"(extra));
    int more = (int)((long)N * extra / 1000);
    for (int i = N - more; i < N; i++) // the far end: the near one would only fetch early what comes next
        z[i] = 2.5f * x[i] + y[i];
    __asm__ volatile("" : : : "memory");
    for (int i = 0; i < N; i++)
        z[i] = 2.5f * x[i] + y[i];
}
"""),
}


class Worker:
    def __init__(self, task_dir):
        self.p = subprocess.Popen([os.path.join(BUILD, "ksmith-cpu")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, bufsize=1)
        self.ask({"op": "open", "dir": task_dir, "set": []}, "opened")

    def ask(self, request, want):
        self.p.stdin.write(json.dumps(request) + "\n")
        for line in self.p.stdout:
            e = json.loads(line)
            if e["ev"] == want:
                return e
            if e["ev"] == "error":
                sys.exit(f"worker: {e}")
        sys.exit("worker: ended")

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def session(kernel):
    args, test, bench, _ = KERNELS[kernel]
    d = tempfile.mkdtemp(prefix="ksmith-power-")
    with open(os.path.join(d, "task.ini"), "w", encoding="utf-8") as f:
        f.write(f"[task]\nname = power\nbackend = cpu\nkernel = k.c:k\n[args]\n{args}\n[shapes]\nt = {test} test\n"
                f"b = {bench} bench\n[build]\ncflags = -O3 -march=native\n[reference]\noriginal = yes\n")
    with open(os.path.join(d, "k.c"), "w", encoding="utf-8") as f:
        f.write(source(kernel, 0))
    return d


def source(kernel, extra, mark=""):
    return f"#define EXTRA {extra}\n{mark}" + KERNELS[kernel][3]


def compile_loop(stop):
    c = os.path.join(tempfile.mkdtemp(prefix="ksmith-load-"), "x.c")
    with open(c, "w", encoding="utf-8") as f:
        f.write("#include <stdio.h>\n" + "".join(f"int f{i}(int a) {{ return a * {i} + {i * 7 % 13}; }}\n" for i in range(3000)))
    while not stop.is_set():
        subprocess.run(["taskset", "-c", "0", "gcc", "-O2", "-c", c, "-o", "/dev/null"], check=False)
    shutil.rmtree(os.path.dirname(c), ignore_errors=True)


def percentile(v, q):
    v = sorted(v)
    return v[min(len(v) - 1, int(q * len(v)))] if v else float("nan")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kernel", choices=KERNELS, required=True)
    p.add_argument("--mode", choices=("aa", "power", "repeat"), required=True)
    p.add_argument("--n", type=int, default=20)
    p.add_argument("--less", type=float, default=3)
    p.add_argument("--load", action="store_true")
    a = p.parse_args()
    d = session(a.kernel)
    stop = threading.Event()
    if a.load:
        threading.Thread(target=compile_loop, args=(stop,), daemon=True).start()
    w = Worker(d)
    pre = w.ask({"op": "preflight", "source": source(a.kernel, 0), "flags": []}, "preflight")
    if not pre["ok"]:
        sys.exit(f"preflight: {pre}")
    extra = round(a.less * 10 / (1 - a.less / 100)) if a.mode == "power" else 0
    start = time.time()
    won, gains, other, longest = 0, [], {}, 0.0
    for i in range(a.n):
        t = time.time()
        v = w.ask({"op": "rejudge", "id": -1, "by": "rule", "source": source(a.kernel, 0), "flags": [],
                   "incumbent": {"id": 0, "source": source(a.kernel, extra), "flags": []}}, "verdict")
        longest = max(longest, time.time() - t)
        if v["status"] != "ok":
            other[v["status"] + ": " + v["reason"]] = other.get(v["status"], 0) + 1
        won += v.get("faster", False)
        gains.append(v.get("gain", float("nan")))
        if a.mode == "aa" and v.get("faster"):
            print("# winner:", json.dumps({k: v[k] for k in ("gain", "low", "high", "race", "recheck")}), flush=True)
    apart = [abs(math.log(gains[i] / gains[i + 1])) * 100 for i in range(0, len(gains) - 1, 2)]
    print(f"{a.kernel} {a.mode}{' loaded' if a.load else ''}{f' {a.less:g}% less' if a.mode == 'power' else ''}: {won} of {a.n} faster; "
          f"gain median {percentile(gains, .5):.4f} [{percentile(gains, .025):.4f}, {percentile(gains, .975):.4f}]; "
          f"two verdicts apart: median {percentile(apart, .5):.2f} %, 95 % under {percentile(apart, .95):.2f} %; floor {pre['floor'] * 100:.2f} %; "
          f"{(time.time() - start) / a.n:.2f} s a verdict, longest {longest:.1f} s{f'; not ok: {other}' if other else ''}", flush=True)
    stop.set()
    w.close()
    shutil.rmtree(d, ignore_errors=True)


main()
