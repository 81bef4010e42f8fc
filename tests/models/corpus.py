#!/usr/bin/env python3
"""A corpus of model answers: every form that code comes in, with every fault that answers have. Prints a JSON object a line:
id, form, fault, parent, text, cut (the server said that the token limit ended it), want (the outcomes that are right) and,
where a candidate may come of it, child (what it must be, but for white space). The same corpus at every call.

usage: corpus.py [COUNT]; all by default

Outcomes: candidate, same (the parent again), none (proposes nothing), cut, elided, broken, refused (code, but it does not fit).
What is written here was made from the prompt's own words and from what models do, not from the parser.
"""
import json
import random
import sys

PARENT = """#include <math.h>
#include <stddef.h>
// Scales each row by the inverse of its length.
static float total(const float *x, int n)
{
    float s = 0.0f;
    for (int i = 0; i < n; i++)
        s += x[i] * x[i];
    return s;
}

void scale_rows(float *y, const float *x, int T, int H)
{
    for (int t = 0; t < T; t++) {
        float s = 0.0f;
        for (int i = 0; i < H; i++)
            s += x[t * H + i] * x[t * H + i];
        float r = 1.0f / sqrtf(s + 1e-6f);
        for (int i = 0; i < H; i++)
            y[t * H + i] = x[t * H + i] * r;
    }
}
"""
# (name, [(old lines, new lines)]): every old text occurs once in the parent, and all lies in the body of scale_rows.
CHANGES = [
    ("Hoist the row's address",
     [("        float s = 0.0f;\n        for (int i = 0; i < H; i++)\n            s += x[t * H + i] * x[t * H + i];\n",
       "        const float *row = x + (size_t)t * H;\n        float s = 0.0f;\n        for (int i = 0; i < H; i++)\n"
       "            s += row[i] * row[i];\n")]),
    ("Two accumulators, and the loop of the store says simd",
     [("            s += x[t * H + i] * x[t * H + i];\n",
       "            s += x[t * H + i] * x[t * H + i] + 0.0f;\n"),
      ("            y[t * H + i] = x[t * H + i] * r;\n", "            y[t * H + i] = r * x[t * H + i];\n")]),
    ("Divide once a row",
     [("        float r = 1.0f / sqrtf(s + 1e-6f);\n",
       "        // One division for each row.\n        const float length = sqrtf(s + 1e-6f);\n        const float r = 1.0f / length;\n")]),
    ("Leave early where a row is empty",
     [("    for (int t = 0; t < T; t++) {\n", "    if (H < 1)\n        return;\n    for (int t = 0; t < T; t++) {\n")]),
]


def applied(changes, parent=PARENT):
    for old, new in changes:
        assert parent.count(old) == 1, old
        parent = parent.replace(old, new)
    return parent


def function(source):
    return source[source.index("void "):]


# ---- forms: how a change is written. A form takes the change as (changes, whole) and says what kind it is.

def blocks(changes):
    return "".join(f"<<<<<<< SEARCH\n{o}=======\n{n}>>>>>>> REPLACE\n" for o, n in changes)


def unified(parent, child, name="kernel.c"):
    import difflib
    return "".join(difflib.unified_diff(parent.splitlines(True), child.splitlines(True), "a/" + name, "b/" + name))


def hunks_only(parent, child):
    return "".join(l for l in unified(parent, child).splitlines(True) if l[:3] not in ("---", "+++"))


def envelope(a, inside):
    return f"<name>{a.name}</name>\n<description>\n{a.words}\n</description>\n{inside}"


class Answer:
    def __init__(self, name, changes, child=None, words="It keeps what is used again in a register."):
        self.name, self.changes, self.words = name, changes, words
        self.child = child if child is not None else applied(changes)


FORMS = {  # name: (kind, writer)
    "patch-tags": ("patch", lambda a: envelope(a, f"<patch>\n{blocks(a.changes)}</patch>\n")),
    "patch-bare": ("patch", lambda a: f"{a.words}\n\n{blocks(a.changes)}"),
    "patch-fence": ("patch", lambda a: envelope(a, f"```\n{blocks(a.changes)}```\n")),
    "patch-fence-in-tags": ("patch", lambda a: envelope(a, f"<patch>\n```c\n{blocks(a.changes)}```\n</patch>\n")),
    "patch-json": ("patch", lambda a: json.dumps({"name": a.name, "description": a.words, "patch": blocks(a.changes)})),
    "diff-fence": ("diff", lambda a: envelope(a, f"```diff\n{unified(PARENT, a.child)}```\n")),
    "diff-bare": ("diff", lambda a: f"{a.words}\n\n{unified(PARENT, a.child)}"),
    "diff-in-tags": ("diff", lambda a: envelope(a, f"<patch>\n{unified(PARENT, a.child)}</patch>\n")),
    "source-tags": ("source", lambda a: envelope(a, f"<source>\n{a.child}</source>\n")),
    "source-fence-in-tags": ("source", lambda a: envelope(a, f"<source>\n```c\n{a.child}```\n</source>\n")),
    "source-fence": ("source", lambda a: f"{a.words}\n\n```c\n{a.child}```\n"),
    "source-fence-plain": ("source", lambda a: f"{a.words}\n\n```\n{a.child}```\n"),
    "source-tildes": ("source", lambda a: f"{a.words}\n\n~~~c\n{a.child}~~~\n"),
    "source-after-prose": ("source", lambda a: f"Here is the new version: ```c\n{a.child}```\n"),
    "source-json": ("source", lambda a: json.dumps({"name": a.name, "description": a.words, "source": a.child})),
    "source-json-fence": ("source", lambda a: f"```json\n{json.dumps({'name': a.name, 'source': a.child}, indent=2)}\n```\n"),
    "source-bare": ("source", lambda a: a.child),
    "function-fence": ("function", lambda a: f"{a.words}\n\n```c\n{function(a.child)}```\n"),
    "function-tags": ("function", lambda a: envelope(a, f"<source>\n{function(a.child)}</source>\n")),
    "snippet-then-source": ("source", lambda a: "The loop\n\n```c\nfor (int i = 0; i < H; i++)\n    s += x[i];\n```\n\nbecomes, in "
                            f"the whole file:\n\n```c\n{a.child}```\n"),
}
WHOLE = {"source", "function"}


# ---- faults. Each takes (form's kind, writer, a change, a random source) and gives (text, cut, want, child) or None where
# the fault does not exist in that form.

def good(text, a, cut=False):
    return text, cut, ["candidate"], a.child


def plain(kind, write, a, r):
    return good(write(a), a)


def crlf(kind, write, a, r):
    return good(write(a).replace("\n", "\r\n"), a)


def thinking(kind, write, a, r):
    return good("<think>\nMaybe\n```c\nvoid scale_rows(float *y, const float *x, int T, int H)\n{\n}\n```\nor not.\n</think>\n\n" + write(a), a)


def thought_without_beginning(kind, write, a, r):
    return good("Let me see, the loop over i can go.\n</think>\n\n" + write(a), a)


def prose_around(kind, write, a, r):
    if kind in ("source", "diff") and write(a) == a.child:
        return None
    return good("Sure! I looked at it closely.\n\n" + write(a) + "\nThis should help; let me know how it goes.\n", a)


def no_last_newline(kind, write, a, r):
    return good(write(a).rstrip("\n"), a)


def byte_order_mark(kind, write, a, r):
    return good("\ufeff" + write(a), a)


def blank_lines_around(kind, write, a, r):
    return good("\n\n \n" + write(a) + "\n\n\t\n", a)


def stop_token(kind, write, a, r):
    if write(a) == a.child:
        return None
    return good(write(a) + "<|im_end|>\n", a)


def trailing_blanks(kind, write, a, r):
    text = write(a)
    if text.startswith("{") or "json" in text[:8]:
        return None
    return good("".join(l + (" " * r.randrange(3)) + "\n" if l.strip() else "\n" for l in text.split("\n")[:-1]), a)


def cut_and_said(kind, write, a, r):
    text = write(a)
    at = text.index(a.changes[0][1].split("\n")[0].strip()[:12]) + 6 if not text.startswith("{") else len(text) // 2
    return text[:max(at, len(text) // 2)], True, ["cut"], None


def cut_unsaid(kind, write, a, r):
    text = write(a)
    if kind == "diff":
        return None  # half a hunk may be a whole smaller one
    end = text.rindex("y[t * H + i]") if kind in WHOLE else text.rindex(a.changes[-1][1].strip()[:10])
    return text[:end + 5], False, ["cut", "broken", "none"], None


def no_such_lines(kind, write, a, r):
    if kind != "patch":
        return None
    wrong = [(o.replace("H", "HIDDEN_SIZE").replace("t++", "t += LANES").replace("1e-6f", "EPS_OF_ROW * scale"), n) for o, n in a.changes]
    return write(Answer(a.name, wrong, a.child)), False, ["refused"], None


def twice_the_lines(kind, write, a, r):
    if kind != "patch":
        return None
    twice = [("        for (int i = 0; i < H; i++)\n", "        for (int i = H - 1; i >= 0; i--)\n")]
    return write(Answer(a.name, twice, a.child)), False, ["refused"], None


def one_of_two_is_missing(kind, write, a, r):
    if kind != "patch":
        return None
    more = a.changes + [("        printf(\"%f\\n\", checksum);\n", "\n")]
    if r.random() < 0.5:
        more.reverse()
    return write(Answer(a.name, more, a.child)), False, ["refused"], None


def outside_of_the_body(kind, write, a, r):
    old, new = "void scale_rows(float *y, const float *x, int T, int H)\n", "void scale_rows(float *y, const float *x, long T, long H)\n"
    child = a.child.replace(old, new)
    if kind == "function":
        return None  # the body alone is taken of a function: the signature stays
    return write(Answer(a.name, a.changes + [(old, new)], child)), False, ["refused"], None


def inside_and_outside(kind, write, a, r):
    if kind == "function":
        return None
    old, new = "    return s;\n", "    return s * 2.0f;\n"
    return write(Answer(a.name, a.changes + [(old, new)], a.child.replace(old, new))), False, ["refused"], None


def parts_left_out(kind, write, a, r):
    if kind not in WHOLE:
        return None
    words = r.choice(["// ... rest of the code unchanged ...", "/* ... existing code ... */", "// ... (same as before)", "..."])
    lines = a.child.split("\n")
    at = next(i for i, l in enumerate(lines) if "y[t * H + i]" in l)
    child = "\n".join(lines[:at - 1] + ["        " + words] + lines[at + 1:])
    return write(Answer(a.name, a.changes, child)), False, ["elided", "cut", "broken"], None


def the_parent_again(kind, write, a, r):
    if kind == "diff":
        return None
    changes = [(o, o) for o, _ in a.changes]
    return write(Answer(a.name, changes, PARENT)), False, ["same"], None


def only_a_remark(kind, write, a, r):
    old = "        float r = 1.0f / sqrtf(s + 1e-6f);\n"
    changes = [(old, "        // The length of the row.\n" + old)]
    return write(Answer(a.name, changes)), False, ["same"], None


def markers_out_of_order(kind, write, a, r):
    if kind != "patch":
        return None
    swap = [("=======", "@@@"), (">>>>>>> REPLACE", "======="), ("@@@", ">>>>>>> REPLACE")]
    text = write(a)
    for x, y in swap:
        text = text.replace(x, y)
    return text, False, ["broken", "cut", "refused"], None


def markers_in_the_code(kind, write, a, r):
    old = "        float r = 1.0f / sqrtf(s + 1e-6f);\n"
    new = "        // ======= the factor =======\n        const float r = 1.0f / sqrtf(s + 1e-6f);\n"
    if a.changes[0][0] == old:
        return None
    b = Answer(a.name, a.changes + [(old, new)])
    return good(write(b), b)


def fence_in_a_comment(kind, write, a, r):
    old = "        float r = 1.0f / sqrtf(s + 1e-6f);\n"
    new = "        /* as in ```x / |x|``` */\n        const float r = 1.0f / sqrtf(s + 1e-6f);\n"
    if a.changes[0][0] == old:
        return None
    b = Answer(a.name, a.changes + [(old, new)])
    return good(write(b), b)


def shifted(kind, write, a, r):
    if kind != "patch":
        return None
    less = [("".join(l[4:] if l.startswith("    ") else l for l in o.splitlines(True)),
             "".join(l[4:] if l.startswith("    ") else l for l in n.splitlines(True))) for o, n in a.changes]
    text, _, _, child = good(write(Answer(a.name, less, a.child)), a)
    return text, False, ["candidate", "refused"], child


def tabs(kind, write, a, r):
    if kind != "patch":
        return None
    tab = [(o.replace("    ", "\t"), n.replace("    ", "\t")) for o, n in a.changes]
    return write(Answer(a.name, tab, a.child)), False, ["candidate", "refused"], a.child


def said_twice(kind, write, a, r):
    text = write(a)
    if text.startswith("{") or text == a.child:
        return None
    return text + "\n" + text, False, ["candidate", "refused", "broken"], a.child


def nothing(kind, write, a, r):
    text = r.choice(["", "   \n\n", "I'm sorry, I can't help with that.\n", "The kernel is already memory bound; I would not change it.\n",
                     "<name>No change</name>\n<description>There is nothing to gain.</description>\n", "```c\n```\n", "<think>\nhm\n</think>\n",
                     "Use `-O3` and profile it with `perf stat`.\n", "{\"name\": \"none\"}\n"])
    return text, False, ["none"], None


def another_function(kind, write, a, r):
    if kind not in WHOLE:
        return None
    child = function(a.child).replace("scale_rows", "fast_rows")
    return write(Answer(a.name, a.changes, "#include <math.h>\n" + child if kind == "source" else child)), False, ["none", "refused"], None


FAULTS = [plain, crlf, thinking, thought_without_beginning, prose_around, no_last_newline, byte_order_mark, blank_lines_around,
          stop_token, trailing_blanks, cut_and_said, cut_unsaid, no_such_lines, twice_the_lines, one_of_two_is_missing,
          outside_of_the_body, inside_and_outside, parts_left_out, the_parent_again, only_a_remark, markers_out_of_order,
          markers_in_the_code, fence_in_a_comment, shifted, tabs, said_twice, nothing, another_function]


def corpus(count):
    n = 0
    for turn in range(len(CHANGES)):
        for form, (kind, write) in FORMS.items():
            for fault in FAULTS:
                name, changes = CHANGES[turn % len(CHANGES)]
                r = random.Random(f"{turn} {form} {fault.__name__}")
                made = fault(kind, write, Answer(name, changes), r)
                if made is None:
                    continue
                text, cut, want, child = made
                # Every other round with the newlines of another system in the parent.
                parent = PARENT.replace("\n", "\r\n") if turn % 2 else PARENT
                yield {"id": n, "form": form, "fault": fault.__name__, "parent": parent, "text": text, "cut": cut, "want": want,
                       "child": child}
                n += 1
                if n == count:
                    return


if __name__ == "__main__":
    for item in corpus(int(sys.argv[1]) if len(sys.argv) > 1 else 0):
        print(json.dumps(item))
