#!/usr/bin/env python3
"""man.py PROGRAM PAGE [--check]: puts the lists that the program prints between the page's BEGIN and END marks."""
import re
import subprocess
import sys

program, page = sys.argv[1:3]
text = old = open(page, encoding="utf-8").read()
def said(*words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout


def keys():
    """The workbench's table of keys as mdoc."""
    out = ""
    for line in said("attach", "sessions/saxpy-c", "--keys").splitlines():
        if line and line[0] != " ":
            out += f".Ss {line.capitalize()}\n.Bl -tag -width page-down-\n"
        elif not line:
            out += ".El\n"
        else:
            key, name, help_ = line[2:21].strip(), line[21:40].strip(), line[40:].strip()
            text = key.replace("\\", "\\e").replace("-", "\\-").replace('"', '\\(dq')
            out += f".It Ic {name}" + "".join(f" , Li \\&{k}" for k in text.split()) + f"\n{help_}\n"
    return out + ".El\n"


def slots():
    rows = [l.split("=")[0].strip() for l in said("attach", "sessions/saxpy-c", "--print-theme").split("[slots]\n")[1].splitlines()]
    return ".Bd -literal -offset indent -compact\n" + "\n".join("  ".join(f"{r:<18}" for r in rows[i:i + 4]).rstrip() for i in range(0, len(rows), 4)) + "\n.Ed\n"


for mark, make in (("COMMANDS", lambda: said("completion", "man")), ("STEERING", lambda: said("completion", "man-steering")),
                   ("KEYS", keys), ("SLOTS", slots)):
    if rf'.\" BEGIN {mark}' not in text:
        continue
    body = make()
    begin, end = rf'.\" BEGIN {mark}' + "\n", rf'.\" END {mark}'
    text = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _, begin=begin, body=body, end=end: begin + body + end, text, flags=re.S)
if "--check" in sys.argv:
    sys.exit(0 if text == old else "the page differs from the program: run `make man`")
open(page, "w", encoding="utf-8").write(text)
