#!/usr/bin/env python3
"""man.py PROGRAM PAGE [--check]: puts the lists that the program prints between the page's BEGIN and END marks."""
import re
import subprocess
import sys

program, page = sys.argv[1:3]
text = old = open(page, encoding="utf-8").read()
for mark, verb in (("COMMANDS", "man"), ("STEERING", "man-steering")):
    body = subprocess.run([program, "completion", verb], capture_output=True, text=True, check=True).stdout
    begin, end = rf'.\" BEGIN {mark}' + "\n", rf'.\" END {mark}'
    text = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: begin + body + end, text, flags=re.S)
if "--check" in sys.argv:
    sys.exit(0 if text == old else "the page differs from the program: run `make man`")
open(page, "w", encoding="utf-8").write(text)
