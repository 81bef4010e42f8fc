"""What the tests of models share: a scripted server, sessions on recorded verdicts, and a runner that prints TAP."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KSMITH = os.path.join(ROOT, os.environ.get("BUILD", "build"), "ksmith")
WORKER = os.path.join(ROOT, "tests", "cases", "recorded_worker.py")
SERVER = os.path.join(ROOT, "tests", "models", "server.py")
LADDER = os.path.join(ROOT, "tests", "models", "ladder")
KEY = "sk-planted-90b7d1e35c"
top = tempfile.mkdtemp(prefix="ksmith-models-")
os.environ.update(XDG_RUNTIME_DIR=top, XDG_CONFIG_HOME=top, HOME=top, LC_ALL="C.UTF-8", USER="ann", TEST_MODEL_KEY=KEY)
printed = []


class Served:
    """A test server; as a context manager it ends with the block."""

    def __init__(self, replies=LADDER):
        port_file = tempfile.mktemp(dir=top)
        self.process = subprocess.Popen([sys.executable, SERVER, "--replies", replies, "--port-file", port_file],
                                        stdin=subprocess.DEVNULL)
        for _ in range(500):
            if os.path.exists(port_file):
                self.port = open(port_file).read()
                return
            time.sleep(0.02)
        raise AssertionError("the test server does not start")

    def __enter__(self):
        return self

    def stats(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/stats") as f:
            return json.load(f)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def session(name, port, scenario="ladder+frag+need-key", rules=0, worker=WORKER, more=""):
    d = os.path.join(top, name)
    shutil.copytree(os.path.join(ROOT, "sessions", "sgemm-c"), d, ignore=shutil.ignore_patterns(".ksmith"))
    with open(os.path.join(d, "task.ini"), "a") as f:
        f.write(f"[proposers]\nrules = {rules}\n")
        if worker:
            f.write(f"[worker fake]\ncommand = {worker}\n")
        if scenario:
            f.write(f"[model scripted]\nurl = http://127.0.0.1:{port}/{scenario}\nmodel = tiny\nkey_env = TEST_MODEL_KEY\n"
                    "parallel = 1\nprice_in = 1\nprice_out = 2\n")
        f.write(more)
    return d


def ks(*args, status=0, env=None, timeout=120, **kw):
    p = subprocess.run([KSMITH, *args], capture_output=True, text=True, timeout=timeout, env={**os.environ, **(env or {})}, **kw)
    printed.append(p.stdout + p.stderr)
    assert status is None or p.returncode == status, f"{args}: status {p.returncode}\n{p.stdout}{p.stderr}"
    return p


def journal(d):
    return [json.loads(x) for x in open(f"{d}/.ksmith/journal.jsonl")]


def main(tests):
    count = bad = 0
    try:
        for name, fn in list(tests.items()):
            if not name.startswith("test_"):
                continue
            count += 1
            try:
                fn()
                print(f"ok {count} - {name}", flush=True)
            except Exception as e:  # noqa: BLE001
                bad += 1
                for line in f"line {e.__traceback__.tb_next.tb_lineno}: {type(e).__name__} {e}".splitlines()[:20]:
                    print(f"# {line[:1500]}")
                print(f"not ok {count} - {name}", flush=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(f"1..{count}")
    sys.exit(bad != 0)
