#!/usr/bin/env python3
"""A worker whose verdicts are a function of the source alone, so that what the engine does with verdicts can be tested without
timing anything. Environment: FAKE_CRASH=N ends the process at every N-th judgement."""
import hashlib
import json
import os
import sys

BENCH = [{"name": "bench", "time_ns": 1e6}]


def score(text):
    """Speedup over the baseline, from the flags and knobs that the text carries."""
    digest = hashlib.sha256(text.encode()).digest()
    gain = 1.0 + text.count("#pragma omp simd") * 0.5
    return gain * (1.0 + digest[0] / 1000.0)


def judge(r, base):
    mine, rival = score(r["source"]), score(r["incumbent"]["source"])
    gain = mine / rival
    digest = hashlib.sha256(r["source"].encode()).digest()
    v = {"ev": "verdict", "id": r["id"], "status": "ok", "stage": "recheck", "binary": digest.hex(), "gain": gain,
         "low": gain * 0.999, "high": gain * 1.001, "faster": gain >= 1.01,
         "shapes": [{"name": "bench", "time_ns": 1e6 / mine, "inc_ns": 1e6 / rival, "gain": gain, "low": gain * 0.999,
                     "high": gain * 1.001, "n": 5}],
         "features": {"vec": digest[1] % 4, "acc": digest[2] % 5, "block": digest[3] % 4}}
    if digest[4] % 11 == 0:
        v = {"ev": "verdict", "id": r["id"], "status": "wrong", "stage": "check", "reason": "y[3] is 1, wanted 2"}
    if digest[4] % 11 == 1:
        v["status"], v["reason"], v["faster"] = "flagged", "faster than physics allows", False
    return v


def main():
    judged = 0
    for line in sys.stdin:
        r = json.loads(line)
        op = r["op"]
        if op == "open":
            a = {"ev": "opened", "device": "recorded", "compiler": "none", "fingerprint": "0123456789abcdef",
                 "protected": True}
        elif op == "preflight":
            a = {"ev": "preflight", "ok": True, "problems": [], "warnings": [], "shapes": BENCH, "floor": 0.001}
        elif op in ("judge", "rejudge"):
            judged += 1
            if judged == int(os.environ.get("FAKE_CRASH", "0")):
                os.kill(os.getpid(), 9)
            a = judge(r, None)
        elif op == "anchor":
            s = score(r["source"]) / score(r["baseline"]["source"])
            a = {"ev": "anchor", "id": r["id"], "speedup": s, "low": s * 0.999, "high": s * 1.001}
        else:
            break
        print(json.dumps(a), flush=True)


main()
