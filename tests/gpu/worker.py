"""Talks to ksmith-cuda as an engine does: requests and events as JSON lines."""
import json
import os
import subprocess
import time


class Worker:
    def __init__(self, program, log=None):
        self.log = log
        self.program = program
        self.start()

    def start(self):
        self.p = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=open(self.log, "ab") if self.log else subprocess.DEVNULL)

    def ask(self, want, **request):
        """Sends a request; returns the first event named in want (or an error), with the others' names in _seen."""
        self.p.stdin.write((json.dumps(request) + "\n").encode())
        self.p.stdin.flush()
        begin, seen = time.monotonic(), []
        for line in self.p.stdout:
            ev = json.loads(line)
            if ev["ev"] in want or ev["ev"] in ("error", "cancelled"):
                ev["_seconds"] = time.monotonic() - begin
                ev["_seen"] = seen
                return ev
            seen.append(ev)
        raise RuntimeError("the worker ended with status %s" % self.p.wait())

    def open(self, folder, overrides=()):
        self.folder = folder
        self.opened = self.ask(("opened",), op="open", dir=os.path.abspath(folder), set=list(overrides))
        return self.opened

    def preflight(self, source, flags=()):
        self.baseline = source
        return self.ask(("preflight",), op="preflight", source=source, flags=list(flags))

    def judge(self, source, number, incumbent=None, until="race", op="rejudge", flags=(), by="rule"):
        return self.ask(("verdict",), op=op, id=number, source=source, flags=list(flags), by=by, until=until,
                        incumbent={"id": 0, "source": incumbent or self.baseline, "flags": []})

    def anchor(self, source, number):
        return self.ask(("anchor",), op="anchor", id=number, source=source, flags=[],
                        baseline={"id": 0, "source": self.baseline, "flags": []})

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def kernel_of(folder):
    for name in sorted(os.listdir(folder)):
        if name.endswith(".cu"):
            with open(os.path.join(folder, name)) as f:
                return f.read()
    raise RuntimeError("no .cu file in " + folder)
