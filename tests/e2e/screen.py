"""A terminal for tests: runs ksmith on a pty of its own, shows what a user would see, counts the bytes."""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

try:
    import pyte
except ImportError:  # Debian's python3-pyte belongs to the system's Python
    if os.environ.get("KSMITH_PYTE") or not os.path.exists("/usr/bin/python3"):
        print("1..1\nok 1 - the workbench on a terminal # SKIP python3-pyte is not installed")
        sys.exit(0)
    os.environ["KSMITH_PYTE"] = "1"
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KSMITH = os.path.join(ROOT, os.environ.get("BUILD", "build"), "ksmith")


class Emulator(pyte.Screen):
    def select_graphic_rendition(self, *attrs, private=False):
        if not private:  # pyte 0.8 does not know xterm's private ones
            super().select_graphic_rendition(*attrs)


class Screen:
    def __init__(self, *argv, rows=24, cols=80, env=None, settle=True, shell=False):
        self.rows, self.cols = rows, cols
        self.emulator = Emulator(cols, rows)
        self.stream = pyte.ByteStream(self.emulator)
        self.raw = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "ESCDELAY": "25", **(env or {})})
            for name in [n for n, v in (env or {}).items() if v is None]:
                os.environ.pop(name, None)
            self.size(rows, cols, 1)
            if shell:  # with job control, as a user's shell has it
                os.execv("/bin/bash", ["bash", "-c", 'set -m; "$@"; read -r x; fg; read -r x', "bash", KSMITH, *argv])
            os.execv(KSMITH, [KSMITH, *argv])
        self.size(rows, cols, self.fd)
        if settle:
            end = time.time() + 10  # a busy machine takes its time to the first byte
            while not self.raw and time.time() < end:
                self.read(0.1)
            self.settle()

    def size(self, rows, cols, fd=None):
        fcntl.ioctl(self.fd if fd is None else fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def resize(self, rows, cols):
        self.rows, self.cols = rows, cols
        self.emulator.resize(rows, cols)
        self.size(rows, cols)

    def read(self, seconds):
        """Takes what comes for so long; the number of bytes."""
        end, got = time.time() + seconds, 0
        while (left := end - time.time()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                break
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            if not data:
                break
            got += len(data)
            self.raw += data
            self.stream.feed(data)
        return got

    def settle(self, quiet=0.25, most=8):
        """Reads until nothing came for a while; the bytes that came."""
        end, total = time.time() + most, 0
        while time.time() < end:
            n = self.read(quiet)
            total += n
            if not n:
                break
        return total

    def keys(self, text, quiet=0.25):
        os.write(self.fd, text.encode() if isinstance(text, str) else text)
        return self.settle(quiet)

    def text(self):
        return "\n".join(line.rstrip() for line in self.emulator.display)

    def line(self, i):
        return self.emulator.display[i].rstrip()

    def wait_for(self, text, seconds=10):
        end = time.time() + seconds
        while time.time() < end:
            self.read(0.05)
            if text in self.text():
                return True
        return False

    def ended(self, seconds=3):
        """The exit status once the program ended (-signal where one killed it), or None."""
        end = time.time() + seconds
        while time.time() < end:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        return None

    def cpu(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as f:
            w = f.read().rsplit(")", 1)[1].split()
        return (int(w[11]) + int(w[12])) / os.sysconf("SC_CLK_TCK")

    def switches(self):
        """How often it woke up of its own accord."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            return next(int(l.split()[1]) for l in f if l.startswith("voluntary_ctxt"))

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        os.close(self.fd)


class Tap:
    def __init__(self):
        self.n = self.bad = 0

    def ok(self, good, name, why=""):
        self.n += 1
        self.bad += not good
        print(f"{'ok' if good else 'not ok'} {self.n} - {name}", flush=True)
        if not good and why:
            print("\n".join("# " + l for l in str(why).splitlines()), flush=True)

    def end(self):
        print(f"1..{self.n}")
        sys.exit(1 if self.bad else 0)
