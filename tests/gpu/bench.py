#!/usr/bin/env python3
"""What the referee is worth on this GPU: bench.py BIN [seconds]. Identical code on kernels of 5 us, 60 us and 2 ms (no winner may
come out of it), code with 1 % less work, the difference of two sessions on the same pair, and candidates a minute."""
import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hostile
from worker import Worker

BIN = sys.argv[1] if len(sys.argv) > 1 else "build"
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 60
top = tempfile.mkdtemp(prefix="ksmith-bench-")
os.environ.update(XDG_CONFIG_HOME=top, XDG_RUNTIME_DIR=top)
WORKS = {"5us": 40, "60us": 500, "2ms": 16000}


def source(work, salt=0):
    return hostile.kernel("if (i < n) { float v = x[i];\n#pragma unroll 1\n    for (int k = 0; k < %d; k++) v = v * 0.999f + 0.001f;\n    %s\n"
                          "    if (v == 1e30f) y[i] = v; }" % (work, hostile.RIGHT)) + "// %d\n" % salt


def folder(name, body):
    d = os.path.join(top, name)
    os.makedirs(d)
    for file, text in (("task.ini", hostile.TASK.replace("deterministic = yes", "deterministic = no")), ("ref.c", hostile.REF), ("k.cu", body)):
        with open(os.path.join(d, file), "w") as f:
            f.write(text)
    return d


def median(v):
    return sorted(v)[len(v) // 2] if v else 0


def session(name, work, number):
    w = Worker(os.path.join(BIN, "ksmith-cuda"))
    d = os.path.join(top, name) if number else folder(name, source(work))
    w.open(d, ["accept.gain=1.005"])
    ev = w.preflight(source(work))
    if not ev.get("ok"):
        print(name, ev)
        sys.exit(1)
    return w, ev


def same_code(name, work, seconds):
    w, ev = session(name, work, 0)
    begin, gains, widths, winners, seen = time.monotonic(), [], [], 0, 0
    while time.monotonic() - begin < seconds:
        seen += 1
        v = w.judge(source(work, seen), seen)
        if v.get("status") != "ok":
            print("  ", v.get("status"), v.get("reason"), v.get("msg"))
            continue
        winners += v["faster"]
        gains.append(v["gain"])
        widths.append((v["high"] - v["low"]) / 2)
    spent = time.monotonic() - begin
    off = sorted(abs(g - 1) for g in gains)
    print("%-5s %8.1f us, floor %.3f %%: %d verdicts of identical code, %d winners, half-width median %.3f %%, off by median %.3f %%, "
          "95th %.3f %%, most %.3f %%; %.0f verdicts a minute" % (name, ev["shapes"][0]["time_ns"] / 1e3, 100 * ev["floor"], seen, winners,
          100 * median(widths), 100 * median(off), 100 * off[int(len(off) * 0.95)], 100 * off[-1], 60 * seen / spent), flush=True)
    w.close()
    return winners


def planted(name, work, seconds):
    less = round(work * 0.99 - 0.4)
    w, _ = session(name, work, 1)
    begin, accepted, gains, seen = time.monotonic(), 0, [], 0
    while time.monotonic() - begin < seconds:
        seen += 1
        v = w.judge(source(less, seen), seen)
        accepted += bool(v.get("faster"))
        gains.append(v.get("gain", 0))
    print("%-5s %d of %d accepted with %.2f %% less work, gain median %.4f, from %.4f to %.4f" % (name, accepted, seen,
          100 * (1 - less / work), median(gains), min(gains), max(gains)), flush=True)
    w.close()


def two_sessions(name, work, pairs):
    """The same pair judged in fresh sessions: how far apart are the answers?"""
    less, gains = int(work * 0.9), []
    for _ in range(pairs):
        w, _ = session(name, work, 1)
        gains.append(w.judge(source(less), 1).get("gain", 0))
        w.close()
    apart = sorted(abs(a - b) / b for i, a in enumerate(gains) for b in gains[:i])
    print("%-5s %d sessions on one pair: gains %s, apart 95th %.3f %%" % (name, pairs, " ".join("%.4f" % g for g in gains),
          100 * apart[int(len(apart) * 0.95)]), flush=True)


bad = 0
for name, work in WORKS.items():
    bad += same_code(name, work, SECONDS)
for name, work in WORKS.items():
    planted(name, work, SECONDS / 3)
two_sessions("60us", WORKS["60us"], 6)
sys.exit(bad != 0)
