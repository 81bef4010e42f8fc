#!/usr/bin/env python3
"""screenshot.py DIR OUT.svg [COLSxROWS] [THEME] [KEYS...]: what the workbench shows on a session after these keys, as SVG. The
pictures of README.md are made with it from a real run; a key that begins with + is waited after."""
import html
import sys

DIR, OUT = sys.argv[1:3]
SIZE = sys.argv[3] if len(sys.argv) > 3 else "120x34"
THEME = sys.argv[4] if len(sys.argv) > 4 else "dark"
from screen import Screen  # noqa: E402

NAMES = {"black": "#16181c", "red": "#ff8f85", "green": "#8fd18a", "brown": "#f0c674", "blue": "#7fb4ff", "magenta": "#d7a0f0",
         "cyan": "#7fd1d8", "white": "#d4d7dd"}
BACK, FORE, W, H = "#16181c", "#d4d7dd", 8.4, 18


def color(name, otherwise):
    if name == "default":
        return otherwise
    return NAMES.get(name, f"#{name}" if len(name) == 6 else otherwise)


def main():
    cols, rows = map(int, SIZE.split("x"))
    s = Screen("attach", DIR, "--theme", THEME, rows=rows, cols=cols)
    for keys in sys.argv[5:]:
        s.keys(keys.encode().decode("unicode_escape"), 0.3)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{cols * W + 16:.0f}" height="{rows * H + 16}" '
           f'font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="14"><rect width="100%" height="100%" rx="6" fill="{BACK}"/>']
    for y in range(rows):
        line, x = s.emulator.buffer[y], 0
        while x < cols:
            c, end = line[x], x
            while end < cols and line[end][1:] == c[1:]:
                end += 1
            text = "".join(line[i].data for i in range(x, end))
            fg, bg = color(c.fg, FORE), color(c.bg, BACK)
            if c.reverse:
                fg, bg = bg, fg
            if bg != BACK:
                out.append(f'<rect x="{8 + x * W:.1f}" y="{8 + y * H}" width="{(end - x) * W:.1f}" height="{H}" fill="{bg}"/>')
            if text.strip():
                style = (' font-weight="bold"' if c.bold else "") + (' text-decoration="underline"' if c.underscore else "")
                out.append(f'<text x="{8 + x * W:.1f}" y="{8 + y * H + 14}" fill="{fg}"{style} xml:space="preserve" '
                           f'textLength="{(end - x) * W:.1f}">{html.escape(text)}</text>')
            x = end
    out.append("</svg>")
    with open(OUT, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")
    s.close()


main()
